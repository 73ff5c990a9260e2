//! Globs: their syntax, checked here so that an error has a position, and their matching.

use std::iter::Peekable;
use std::str::CharIndices;

use globset::{Candidate, GlobBuilder, GlobMatcher};

use super::Selection;
use super::error::{Dialect, PatternError, PatternErrorKind};

/// A compiled glob.
#[derive(Clone, Debug)]
pub(super) struct Glob(GlobMatcher);

impl Glob {
    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.is_match_candidate(&Candidate::from_bytes(name))
    }
}

/// Compiles `text`; `None` if it has no glob character, and so is a name.
pub(super) fn parse(text: &str) -> Result<Option<Glob>, PatternError> {
    if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
        return Ok(None);
    }
    if text.len() > Selection::GLOB_BYTES {
        return Err(PatternError::new(
            Dialect::Glob,
            text,
            Selection::GLOB_BYTES,
            PatternErrorKind::TooLong,
        ));
    }
    let checked = check(text)?;
    let glob = GlobBuilder::new(&checked)
        .literal_separator(false)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(|_| PatternError::new(Dialect::Glob, text, 0, PatternErrorKind::Unsupported))?;
    // A `GlobSet` would look at extensions and base names, which names of tensors do not have; the
    // matcher of one glob is its regular expression and nothing else. It panics on one over
    // 10 MiB, far from what `Selection::GLOB_BYTES` allows.
    Ok(Some(Glob(glob.compile_matcher())))
}

/// Checks the syntax of `text`, and returns it with each run of `*` made one: `**` before or after
/// a slash would mean directories, and names have none.
fn check(text: &str) -> Result<String, PatternError> {
    let fail = |at: usize, kind| Err(PatternError::new(Dialect::Glob, text, at, kind));
    let mut checked = String::with_capacity(text.len());
    let mut braces: Vec<usize> = Vec::new();
    let mut after_star = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let star = character == '*';
        if !(star && after_star) {
            checked.push(character);
        }
        after_star = star;
        match character {
            '\\' => match characters.next() {
                Some((_, escaped)) => checked.push(escaped),
                None => return fail(at, PatternErrorKind::DanglingEscape),
            },
            '[' => match class(&mut characters, &mut checked) {
                Ok(()) => {}
                Err((Some(inside), kind)) => return fail(inside, kind),
                Err((None, kind)) => return fail(at, kind),
            },
            ']' => return fail(at, PatternErrorKind::UnopenedClass),
            '{' if braces.len() >= Selection::BRACES => return fail(at, PatternErrorKind::TooDeep),
            '{' => braces.push(at),
            '}' if braces.pop().is_none() => return fail(at, PatternErrorKind::UnopenedBrace),
            _ => {}
        }
    }
    match braces.pop() {
        Some(at) => fail(at, PatternErrorKind::UnclosedBrace),
        None => Ok(checked),
    }
}

/// Reads the rest of a class, after its `[`, onto `checked`. An error has a position if it is not
/// about the whole class.
fn class(
    characters: &mut Peekable<CharIndices<'_>>,
    checked: &mut String,
) -> Result<(), (Option<usize>, PatternErrorKind)> {
    if let Some((_, negation)) = characters.next_if(|&(_, next)| next == '!' || next == '^') {
        checked.push(negation);
    }
    let mut first = true;
    // The lower end of a range that waits for its upper, or the character before.
    let mut lower: Option<char> = None;
    let mut in_range = false;
    for (at, character) in characters.by_ref() {
        checked.push(character);
        if !character.is_ascii() {
            return Err((Some(at), PatternErrorKind::ClassNotAscii));
        }
        match character {
            ']' if !first => return Ok(()),
            // `[:alpha:]` in a class means letters in some dialects and not in others.
            ':' if lower == Some('[') && !in_range => {
                return Err((Some(at), PatternErrorKind::ClassName));
            }
            '-' if !first && !in_range => in_range = true,
            upper if in_range => {
                if lower.is_some_and(|lower| upper < lower) {
                    return Err((Some(at), PatternErrorKind::ReversedRange));
                }
                (lower, in_range) = (Some(upper), false);
            }
            other => lower = Some(other),
        }
        first = false;
    }
    Err((None, PatternErrorKind::UnclosedClass))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(glob: &str, name: &str) -> bool {
        parse(glob).unwrap().map_or(glob == name, |pattern| pattern.matches(name))
    }

    #[test]
    fn both_sides_of_every_construct() {
        for (glob, yes, no) in [
            ("*", &["", "a.b", "a\nb", "é/."][..], &[][..]),
            ("a.*", &["a.", "a.b.c"], &["a", "ab"]),
            ("*.weight", &[".weight", "a.b.weight", "a/b.weight"], &["weight", "a.weight.x"]),
            ("*.", &["a.", ".", "..", "a..", "/."], &["", "a"]),
            ("a?c", &["abc", "a.c", "a/c"], &["ac", "abbc", "aéc"]),
            ("l.[0-9].w", &["l.0.w", "l.9.w"], &["l.10.w", "l.a.w"]),
            ("[!a]", &["b", "."], &["a", ""]),
            ("[]a-]", &["]", "a", "-"], &["b"]),
            ("[a\\]", &["a", "\\"], &["b"]),
            ("{q,k,v}_proj", &["q_proj", "v_proj"], &["o_proj", "qk_proj"]),
            ("{a{b,c},d}", &["ab", "ac", "d"], &["a", "abc"]),
            ("a{,.b}", &["a", "a.b"], &["ab"]),
            ("a\\*b", &["a*b"], &["aab", "a\\*b"]),
            ("a\\**", &["a*", "a*b"], &["ab"]),
            ("**/b", &["/b", "a/b"], &["b"]),
            ("a**b", &["ab", "a.b"], &["a"]),
            ("a,b?", &["a,bc"], &["a,b"]),
            ("plain", &["plain"], &["plain2", "Plain", ""]),
            ("é*", &["é", "éa"], &["e"]),
        ] {
            for name in yes {
                assert!(matches(glob, name), "{glob} should match {name:?}");
            }
            for name in no {
                assert!(!matches(glob, name), "{glob} should not match {name:?}");
            }
        }
    }

    #[test]
    fn every_error_says_where() {
        use PatternErrorKind as Kind;
        let deep = "{".repeat(Selection::BRACES + 1);
        let long = "*".repeat(Selection::GLOB_BYTES + 1);
        for (glob, at, kind, text) in [
            (
                "a\\",
                1,
                Kind::DanglingEscape,
                "glob \"a\\\" at byte 1: nothing follows the backslash",
            ),
            ("é[a", 2, Kind::UnclosedClass, "glob \"é[a\" at byte 2: [ without a closing ]"),
            ("[]", 0, Kind::UnclosedClass, "glob \"[]\" at byte 0: [ without a closing ]"),
            ("a]", 1, Kind::UnopenedClass, "glob \"a]\" at byte 1: ] without an opening ["),
            ("a{b{c}", 1, Kind::UnclosedBrace, "glob \"a{b{c}\" at byte 1: { without a closing }"),
            ("{a}}", 3, Kind::UnopenedBrace, "glob \"{a}}\" at byte 3: } without an opening {"),
            (
                "[z-a]",
                3,
                Kind::ReversedRange,
                "glob \"[z-a]\" at byte 3: the range ends before it begins",
            ),
            (
                "[aé]",
                2,
                Kind::ClassNotAscii,
                "glob \"[aé]\" at byte 2: only ASCII characters can be in [ ]",
            ),
            (
                "[[:a:]]",
                2,
                Kind::ClassName,
                "glob \"[[:a:]]\" at byte 2: named classes are not supported",
            ),
            (
                &deep,
                16,
                Kind::TooDeep,
                "glob \"{{{{{{{{{{{{{{{{{\" at byte 16: braces nested too deep",
            ),
            (&long, 4096, Kind::TooLong, "glob of 4097 bytes, over the limit of 4096"),
        ] {
            let error = parse(glob).unwrap_err();
            assert_eq!((error.position(), error.kind()), (at, kind), "{glob}");
            assert_eq!(error.to_string(), text);
            assert!(!error.help().is_empty());
        }
    }

    #[test]
    fn the_largest_globs_compile() {
        for piece in ["*a", "?", "[!a-z]", "{a,b}", "\\*", "é?", "[a-zA-Z0-9]*{x,}"] {
            let glob = piece.repeat(Selection::GLOB_BYTES / piece.len());
            assert!(!parse(&glob).unwrap().unwrap().matches("b"), "{piece}");
        }
        let depth = Selection::BRACES;
        let nested = format!("{}a{}", "{*,".repeat(depth), "}".repeat(depth));
        assert!(parse(&nested).unwrap().unwrap().matches("b"));
    }

    /// The meaning of globs without braces, as plainly as it can be said.
    fn naive(glob: &[u8], name: &[u8]) -> bool {
        match (glob.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                naive(rest, name) || name.split_first().is_some_and(|(_, name)| naive(glob, name))
            }
            (Some((b'?', glob)), Some((_, name))) => naive(glob, name),
            (Some((b'\\', glob)), Some((character, name))) => {
                glob.first() == Some(character) && naive(&glob[1..], name)
            }
            (Some((want, glob)), Some((character, name))) => want == character && naive(glob, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_naive_matcher(
            glob in r"([ab./*?]|\\[a*?\[]){0,8}", name in r"[ab./*?\[]{0,8}",
        ) {
            prop_assert_eq!(matches(&glob, &name), naive(glob.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error_inside_it(
            glob in r"([\[\]{}\\*?!^:,a-z-]|\PC){0,40}", name in r"\PC{0,20}",
        ) {
            match parse(&glob) {
                Ok(Some(pattern)) => drop(pattern.matches(&name)),
                Ok(None) => prop_assert!(!glob.contains('*')),
                Err(error) => {
                    prop_assert!(glob.is_char_boundary(error.position()));
                    prop_assert_ne!(error.kind(), PatternErrorKind::Unsupported);
                }
            }
        }
    }
}
