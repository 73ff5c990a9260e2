//! Functions in a Keras model: compiled Python, in base64, in the JSON of its configuration.
//!
//! The JSON is looked for in whatever it is in, byte by byte: no HDF5 is read here. An attribute of HDF5 is neither
//! packed nor split, so that the configuration of a model stands in the file as it is.

use std::ops::Range;

/// What stands before the name of a class, without white space.
const KEY: &[u8] = b"\"class_name\":\"";

/// The classes that hold a function.
const CLASSES: [&[u8]; 2] = [b"Lambda", b"__lambda__"];

/// A layer has its function after it within this.
const NEAR: u64 = 4 << 10;

/// Places that are kept; more are many enough.
const KEPT: usize = 100;

/// Looks for layers with functions in bytes that come piece by piece.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// The bytes of all that came before.
    at: u64,
    /// How much of the key has come, and then of the name.
    matched: usize,
    name: Vec<u8>,
    /// The byte where the key begins.
    start: u64,
    escape: Option<Vec<u8>>,
    found: Vec<Range<u64>>,
}

impl Finder {
    /// The places of the names of classes that hold a function, in these bytes.
    pub(super) fn all(bytes: &[u8]) -> Vec<Range<u64>> {
        let mut finder = Self::default();
        finder.push(bytes);
        finder.found
    }

    /// Looks at the next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some((byte, rest)) = bytes.split_first() {
            if self.matched == 0 && self.escape.is_none() && !matches!(byte, b'"' | b'\\') {
                let next = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
                let skipped = next.unwrap_or(rest.len()).saturating_add(1);
                self.at = self.at.saturating_add(u64::try_from(skipped).unwrap_or(u64::MAX));
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            self.byte(*byte);
            self.at = self.at.saturating_add(1);
            bytes = rest;
        }
    }

    /// What was found.
    pub(super) fn finish(self) -> Vec<Range<u64>> {
        self.found
    }

    /// Characters may be written as `\uXXXX`, in keys too.
    fn byte(&mut self, byte: u8) {
        match &mut self.escape {
            None if byte == b'\\' => self.escape = Some(Vec::new()),
            None if byte.is_ascii_whitespace() => {}
            None => self.character(byte),
            Some(digits) => {
                digits.push(byte);
                let is_code = digits.first() == Some(&b'u');
                if is_code && digits.len() < 5 {
                    return;
                }
                let code = digits.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
                let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.escape = None;
                // Any other escaped character is in no name that is looked for.
                self.character(
                    code.filter(u8::is_ascii_alphanumeric)
                        .or(code.filter(|it| *it == b'_'))
                        .unwrap_or(0),
                );
            }
        }
    }

    fn character(&mut self, character: u8) {
        if let Some(expected) = KEY.get(self.matched) {
            if character == *expected {
                if self.matched == 0 {
                    self.start = self.at;
                }
                self.matched = self.matched.saturating_add(1);
            } else {
                self.begin(character, self.at);
            }
            return;
        }
        if character == b'"' {
            if CLASSES.contains(&self.name.as_slice()) {
                self.find();
            }
            // The quote may begin a key, if what came before was none.
            self.name.clear();
            self.begin(b'"', self.at);
        } else if self.name.len() < 10 {
            self.name.push(character);
        } else {
            self.name.clear();
            self.matched = 0;
        }
    }

    fn begin(&mut self, character: u8, at: u64) {
        self.matched = usize::from(character == b'"');
        self.start = at;
    }

    fn find(&mut self) {
        let is_function = self.name == b"__lambda__";
        let is_near = |last: &Range<u64>| self.start.saturating_sub(last.end) < NEAR;
        if is_function && self.found.last().is_some_and(is_near) || self.found.len() >= KEPT {
            return;
        }
        self.found.push(self.start..self.at.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(found: Vec<Range<u64>>) -> Vec<(u64, u64)> {
        found.into_iter().map(|place| (place.start, place.end)).collect()
    }

    #[test]
    fn layers_are_found_however_they_are_written_and_wherever_pieces_end() {
        for (json, want) in [
            (r#"{"class_name": "Lambda"}"#, &[(1, 23)][..]),
            (r#"{"class_name":"Lambda"}"#, &[(1, 22)]),
            ("{\"class_name\"\n:\t\"Lambda\"}", &[(1, 24)]),
            (r#"{"\u0063lass_name": "L\u0061mbda"}"#, &[(1, 33)]),
            (r#"{"class_name": "__lambda__"}"#, &[(1, 27)]),
            (r#"{"class_name": "Dense"}"#, &[]),
            (r#"{"class_name": "LambdaX"}"#, &[]),
            (r#"{"class_name": "MyLambda"}"#, &[]),
            (r#"{"class_names": "Lambda"}"#, &[]),
            (r#"{"text": "\"class_name\": \"Lambda\""}"#, &[]),
            (r#""""class_name":"Lambda""#, &[(2, 23)]),
            (r#""class_name":"{"class_name":"Lambda"}"#, &[(15, 36)]),
            // A layer and its function are one.
            (
                r#"{"class_name":"Lambda","config":{"function":{"class_name":"__lambda__"}}}"#,
                &[(1, 22)],
            ),
            (r#"{"class_name":"Lambda"},{"class_name":"Lambda"}"#, &[(1, 22), (25, 46)]),
        ] {
            let bytes = json.as_bytes();
            assert_eq!(places(Finder::all(bytes)), want, "{json}");
            for end in 0..bytes.len() {
                let mut finder = Finder::default();
                finder.push(&bytes[..end]);
                finder.push(&bytes[end..]);
                assert_eq!(places(finder.finish()), want, "{json} {end}");
            }
        }
    }
}
