//! JSON as it stands in a text: its pieces, and how deep they are nested.

use serde::de::IgnoredAny;

/// A piece of JSON; strings, numbers and words are not told apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Token<'t> {
    Open(char),
    Close(char),
    Comma,
    Colon,
    Other(&'t str),
}

/// Deeper JSON is shown as it is: its indentation would be longer than itself.
pub(super) const MOST_DEPTH: usize = 32;

/// Whether a value is an object or an array in JSON, with something in it, not too deep.
pub(super) fn is_structure(value: &str) -> bool {
    let value = value.trim_ascii();
    value.len() > 2 && value.starts_with(['{', '[']) && depth(value) <= MOST_DEPTH && is_json(value)
}

/// JSON without white space; strings, numbers, order and repeated keys stay as they are in the text.
pub(crate) fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for token in tokens(json) {
        match token {
            Token::Open(bracket) | Token::Close(bracket) => text.push(bracket),
            Token::Comma => text.push(','),
            Token::Colon => text.push(':'),
            Token::Other(other) => text.push_str(other),
        }
    }
    text
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Levels of brackets, those inside of strings left out.
fn depth(json: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for token in tokens(json) {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// The pieces of JSON, which has to be well formed.
pub(super) fn tokens(json: &str) -> Tokens<'_> {
    Tokens { rest: json }
}

/// See [`tokens`].
#[derive(Clone, Debug)]
pub(super) struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    /// What has not been looked at yet.
    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let text = self.rest.trim_ascii_start();
        let first = text.chars().next()?;
        let (token, length) = match first {
            '{' | '[' => (Token::Open(first), 1),
            '}' | ']' => (Token::Close(first), 1),
            ',' => (Token::Comma, 1),
            ':' => (Token::Colon, 1),
            '"' => {
                let end = string_end(text);
                (Token::Other(text.get(..end).unwrap_or_default()), end)
            }
            _ => {
                let ends = |character: char| {
                    "{}[],:\"".contains(character) || character.is_ascii_whitespace()
                };
                let end = text.find(ends).unwrap_or(text.len()).max(first.len_utf8());
                (Token::Other(text.get(..end).unwrap_or_default()), end)
            }
        };
        self.rest = text.get(length..).unwrap_or_default();
        Some(token)
    }
}

/// Where the string that `json` begins with ends.
fn string_end(json: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_json_is_the_same_without_white_space() {
        for (json, want) in [
            ("1.50", "1.50"),
            (" { \"a b\" : [ 1e999 ,\n true ] , \"a b\":{} }", r#"{"a b":[1e999,true],"a b":{}}"#),
            (r#""\" , ""#, r#""\" , ""#),
        ] {
            assert_eq!(compact(json), want);
        }
    }

    #[test]
    fn what_is_too_deep_is_no_structure() {
        let most = "[".repeat(MOST_DEPTH) + &"]".repeat(MOST_DEPTH);
        assert!(is_structure(&most) && !is_structure(&format!("[{most}]")));
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(!is_structure(&deep));
        for (value, want) in [("{}", false), ("[1]", true), ("{1}", false), (" [{}]\n", true)] {
            assert_eq!(is_structure(value), want, "{value}");
        }
    }
}
