//! Regular expressions that cannot take more memory than [`Selection`] says.

use regex::{Regex, RegexBuilder};
use regex_syntax::Parser;

use super::Selection;
use super::error::{Dialect, PatternError, PatternErrorKind};

/// Compiles `text`, which is looked for anywhere in a name.
pub(crate) fn compile(text: &str, ignore_case: bool) -> Result<Regex, PatternError> {
    let fail = |at, kind| PatternError::new(Dialect::Regex, text, at, kind);
    if text.len() > Selection::REGEX_BYTES {
        return Err(fail(Selection::REGEX_BYTES, PatternErrorKind::TooLong));
    }
    // Parsed here for the position of a fault, which the builder only draws.
    Parser::new().parse(text).map_err(|error| {
        let (at, detail) = match error {
            regex_syntax::Error::Parse(error) => {
                (error.span().start.offset, error.kind().to_string())
            }
            regex_syntax::Error::Translate(error) => {
                (error.span().start.offset, error.kind().to_string())
            }
            _ => return fail(0, PatternErrorKind::Unsupported),
        };
        fail(at, PatternErrorKind::Syntax).detailed(detail)
    })?;
    RegexBuilder::new(text)
        .case_insensitive(ignore_case)
        .size_limit(Selection::REGEX_COMPILED_BYTES)
        .dfa_size_limit(Selection::REGEX_COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => fail(0, PatternErrorKind::TooLarge),
            _ => fail(0, PatternErrorKind::Unsupported),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_where_and_what_to_do() {
        let long = "a".repeat(Selection::REGEX_BYTES + 1);
        for (text, kind, message) in [
            ("é(a", PatternErrorKind::Syntax, "regex \"é(a\" at byte 2: unclosed group"),
            ("a)", PatternErrorKind::Syntax, "regex \"a)\" at byte 1: unopened group"),
            ("[z-a]", PatternErrorKind::Syntax, ""),
            ("*a", PatternErrorKind::Syntax, ""),
            (r"\p{Nothing}", PatternErrorKind::Syntax, ""),
            ("a{9999999999}", PatternErrorKind::Syntax, ""),
            (
                r"\w{1000}",
                PatternErrorKind::TooLarge,
                r#"regex "\w{1000}" takes over 1048576 bytes when compiled"#,
            ),
            ("((a{99}){99}){99}", PatternErrorKind::TooLarge, ""),
            (&long, PatternErrorKind::TooLong, "regex of 4097 bytes, over the limit of 4096"),
        ] {
            let error = compile(text, false).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            if !message.is_empty() {
                assert_eq!(error.to_string(), message);
            }
            assert_eq!((error.code(), error.pattern()), ("selector-syntax", text));
            assert!(!error.help().is_empty());
        }
        let deep = "(".repeat(300);
        assert_eq!(compile(&deep, false).unwrap_err().kind(), PatternErrorKind::Syntax);
        assert!(compile(&long[1..], false).is_ok());
    }
}
