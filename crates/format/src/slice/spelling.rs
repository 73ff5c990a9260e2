//! Lists of indices as text, the way numpy has them between its brackets: `0:10,:,::2,-1`.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use core::str::FromStr;

use super::Index;
use crate::text::{escaped, shortened};

/// A list of indices, one for each dimension from the outermost on, that can be read from text.
///
/// Places are decimal, `start:stop:step` with any of the three left out is a range, `...` an ellipsis; commas
/// separate, and one may end the list. Spaces around them are ignored. A number that is beyond an `i64` stays
/// beyond every dimension, as in numpy: as a bound it is the end, as a place an error.
///
/// ```
/// use weigh_format::slice::{Index, Indices};
///
/// let indices: Indices = "0:10, ..., ::2, -1".parse()?;
/// let want = [Index::from(0..10), Index::Ellipsis, Index::ALL.step(2), Index::At(-1)];
/// assert_eq!(*indices, want);
/// assert_eq!(indices.to_string(), "0:10,...,::2,-1");
/// # Ok::<(), weigh_format::slice::SyntaxError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Indices(Vec<Index>);

impl Deref for Indices {
    type Target = [Index];

    fn deref(&self) -> &[Index] {
        &self.0
    }
}

impl From<Vec<Index>> for Indices {
    fn from(indices: Vec<Index>) -> Self {
        Self(indices)
    }
}

impl From<Indices> for Vec<Index> {
    fn from(indices: Indices) -> Self {
        indices.0
    }
}

impl FromStr for Indices {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut indices = Vec::new();
        let mut parts = parts(text, ',').peekable();
        while let Some((at, part)) = parts.next() {
            let ends_the_list = parts.peek().is_none() && !indices.is_empty();
            if ends_the_list && part.trim_ascii().is_empty() {
                break;
            }
            let index = index(part).map_err(|(inside, kind)| SyntaxError {
                text: shortened(text).into_owned(),
                at: at.saturating_add(inside),
                kind,
            })?;
            indices.push(index);
        }
        Ok(Self(indices))
    }
}

impl fmt::Display for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, index) in self.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{index}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::At(place) => write!(f, "{place}"),
            Self::Ellipsis => f.write_str("..."),
            Self::Range { start, stop, step } => {
                if let Some(start) = start {
                    write!(f, "{start}")?;
                }
                f.write_str(":")?;
                if let Some(stop) = stop {
                    write!(f, "{stop}")?;
                }
                if step == 1 { Ok(()) } else { write!(f, ":{step}") }
            }
        }
    }
}

/// Why a text is no list of indices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SyntaxError {
    text: String,
    at: usize,
    kind: SyntaxErrorKind,
}

/// What is wrong with a list of indices.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SyntaxErrorKind {
    /// There is nothing where an index should be.
    Missing,
    /// Not a whole number.
    NotANumber,
    /// A range of more than start, stop and step.
    TooManyColons,
    /// A place below −2^63 or over 2^63 − 1.
    BeyondEverySize,
}

impl SyntaxError {
    /// The text, cut if it is long.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where in the text it goes wrong, as a byte offset.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> SyntaxErrorKind {
        self.kind
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "slice-syntax"
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self.kind {
            SyntaxErrorKind::Missing => Some("Write `:` for a whole dimension, `...` for several."),
            SyntaxErrorKind::NotANumber => {
                Some("An index is like `3`, `-1`, `2:10`, `::2` or `...`.")
            }
            SyntaxErrorKind::TooManyColons => {
                Some("A range is start:stop:step; commas separate dimensions.")
            }
            SyntaxErrorKind::BeyondEverySize => None,
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = match self.kind {
            SyntaxErrorKind::Missing => "there is no index",
            SyntaxErrorKind::NotANumber => "not a whole number",
            SyntaxErrorKind::TooManyColons => "a range has at most two colons",
            SyntaxErrorKind::BeyondEverySize => "no dimension has such a place",
        };
        write!(f, "index \"{}\" at byte {}: {wrong}", escaped(&self.text), self.at)
    }
}

impl core::error::Error for SyntaxError {}

/// The parts of `text` between separators of one byte, each with its byte offset.
fn parts(text: &str, separator: char) -> impl Iterator<Item = (usize, &str)> {
    text.split(separator).scan(0_usize, |next, part| {
        let at = *next;
        *next = at.saturating_add(part.len()).saturating_add(1);
        Some((at, part))
    })
}

/// Where in a text it goes wrong, and what.
type Fault = (usize, SyntaxErrorKind);

/// Reads one index.
fn index(text: &str) -> Result<Index, Fault> {
    if text.trim_ascii() == "..." {
        return Ok(Index::Ellipsis);
    }
    if !text.contains(':') {
        return match number(0, text)? {
            Some(Number { value, is_exact: true }) => Ok(Index::At(value)),
            Some(_) => Err((begin(text), SyntaxErrorKind::BeyondEverySize)),
            None => Err((0, SyntaxErrorKind::Missing)),
        };
    }
    let mut parts = parts(text, ':');
    let mut bound = || -> Result<Option<i64>, Fault> {
        let Some((at, part)) = parts.next() else { return Ok(None) };
        Ok(number(at, part)?.map(|number| number.value))
    };
    let range = Index::Range { start: bound()?, stop: bound()?, step: bound()?.unwrap_or(1) };
    match parts.next() {
        Some((at, _)) => Err((at.saturating_sub(1), SyntaxErrorKind::TooManyColons)),
        None => Ok(range),
    }
}

/// A number, or what is nearest to it.
struct Number {
    value: i64,
    is_exact: bool,
}

/// Reads a number that may be left out. `at` is where `text` begins.
fn number(at: usize, text: &str) -> Result<Option<Number>, Fault> {
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() {
        return Ok(None);
    }
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err((at.saturating_add(begin(text)), SyntaxErrorKind::NotANumber));
    }
    // Digits that are not read are too many.
    let nearest = if trimmed.starts_with('-') { i64::MIN } else { i64::MAX };
    let exact = trimmed.parse().ok();
    Ok(Some(Number { value: exact.unwrap_or(nearest), is_exact: exact.is_some() }))
}

/// Where the white space that a text begins with ends.
fn begin(text: &str) -> usize {
    text.len().saturating_sub(text.trim_ascii_start().len())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_list_reads_as_numpy_reads_it() {
        for (text, want) in [
            ("0:10,:,::2,-1", "0:10,:,::2,-1"),
            ("...", "..."),
            ("...,3", "...,3"),
            (" 1 : 2 ,\t3 ", "1:2,3"),
            ("1,", "1"),
            ("1, ", "1"),
            ("::", ":"),
            ("1:2:", "1:2"),
            ("::1", ":"),
            ("::0", "::0"),
            ("+1:-0", "1:0"),
            ("007", "7"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            // Bounds beyond 64 bits are the ends.
            (
                "-9223372036854775809:9223372036854775808:99999999999999999999",
                "-9223372036854775808:9223372036854775807:9223372036854775807",
            ),
        ] {
            let got = text.parse::<Indices>().unwrap().to_string();
            assert_eq!(got, want, "{text}");
        }
    }

    #[test]
    fn what_is_no_list_says_where() {
        use SyntaxErrorKind::{BeyondEverySize, Missing, NotANumber, TooManyColons};
        for (text, at, kind) in [
            ("", 0, Missing),
            ("  ", 0, Missing),
            (",", 0, Missing),
            ("1,,2", 2, Missing),
            ("1,,", 2, Missing),
            ("1, ,2", 2, Missing),
            ("a", 0, NotANumber),
            ("1, a", 3, NotANumber),
            ("1:x:2", 2, NotANumber),
            ("1.5", 0, NotANumber),
            ("1 2", 0, NotANumber),
            ("- 1", 0, NotANumber),
            ("--1", 0, NotANumber),
            ("-", 0, NotANumber),
            ("1_000", 0, NotANumber),
            ("..", 0, NotANumber),
            ("[0]", 0, NotANumber),
            ("None", 0, NotANumber),
            ("\u{661}", 0, NotANumber),
            ("99999999999999999999x", 0, NotANumber),
            ("0,1:2:3:4", 7, TooManyColons),
            (":::", 2, TooManyColons),
            (" 9223372036854775808", 1, BeyondEverySize),
            ("-9223372036854775809", 0, BeyondEverySize),
        ] {
            let error = text.parse::<Indices>().unwrap_err();
            assert_eq!((error.position(), error.kind()), (at, kind), "{text}");
            assert_eq!((error.text(), error.code()), (text, "slice-syntax"));
        }
    }

    #[test]
    fn every_fault_of_a_text_is_told() {
        for (text, message, help) in [
            (
                "1,,2",
                "index \"1,,2\" at byte 2: there is no index",
                Some("Write `:` for a whole dimension, `...` for several."),
            ),
            (
                "\u{1b}",
                "index \"\\u001b\" at byte 0: not a whole number",
                Some("An index is like `3`, `-1`, `2:10`, `::2` or `...`."),
            ),
            (
                "1:2:3:4",
                "index \"1:2:3:4\" at byte 5: a range has at most two colons",
                Some("A range is start:stop:step; commas separate dimensions."),
            ),
            (
                "9223372036854775808",
                "index \"9223372036854775808\" at byte 0: no dimension has such a place",
                None,
            ),
        ] {
            let error = text.parse::<Indices>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.help()), (message, help));
        }
        let long = "1".repeat(100_000);
        assert!(long.parse::<Indices>().unwrap_err().text().len() < 300);
    }
}
