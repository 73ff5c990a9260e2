//! The text of a map of names: a pair a line.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;

/// Reads a map of names: on each line an old name, a tab, and the new name.
///
/// Blank lines and lines that begin with `#` are left out, and lines may end as Windows ends them. Nothing
/// is escaped: names with a tab or a line feed, and old ones that begin with `#`, cannot be written so.
///
/// # Errors
///
/// [`MapError`], for the first line that is not a pair, and for an old name that comes twice.
///
/// ```
/// use weigh_inventory::rename::parse_map;
///
/// let map = parse_map("# to the new module\nfc.w\tdense.weight\n")?;
/// assert_eq!(map, [("fc.w".into(), "dense.weight".into())]);
/// # Ok::<(), weigh_inventory::rename::MapError>(())
/// ```
pub fn parse_map(text: &str) -> Result<Vec<(String, String)>, MapError> {
    let mut pairs = Vec::new();
    let mut lines_of: HashMap<&str, usize> = HashMap::new();
    // Some editors begin a file with a mark that says it is UTF-8.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, number) in text.lines().zip(1..) {
        let fail = |kind| Err(MapError { line: number, kind });
        if line.trim().is_empty() && !line.contains('\t') || line.starts_with('#') {
            continue;
        }
        let Some((old, new)) = line.split_once('\t') else {
            return fail(MapErrorKind::NoTab);
        };
        if new.contains('\t') {
            return fail(MapErrorKind::SecondTab);
        }
        if let Some(first) = lines_of.insert(old, number) {
            return fail(MapErrorKind::Twice { name: old.into(), first });
        }
        pairs.push((old.into(), new.into()));
    }
    Ok(pairs)
}

/// Why a text is not a map of names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MapError {
    line: usize,
    kind: MapErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MapErrorKind {
    /// There is no tab in it.
    NoTab,
    /// There is more than one tab in it.
    SecondTab,
    /// The old name was on a line before.
    Twice {
        /// The old name.
        name: String,
        /// The line it was on, from 1 on.
        first: usize,
    },
}

impl MapError {
    /// The line, from 1 on.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is wrong with it.
    #[must_use]
    pub fn kind(&self) -> &MapErrorKind {
        &self.kind
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "rename-map"
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self.kind {
            MapErrorKind::NoTab | MapErrorKind::SecondTab => {
                "Write an old name, one tab and the new name on each line."
            }
            MapErrorKind::Twice { .. } => {
                "A tensor can have one new name: remove one of the lines."
            }
        }
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match &self.kind {
            MapErrorKind::NoTab => write!(f, "line {line} has no tab"),
            MapErrorKind::SecondTab => write!(f, "line {line} has more than one tab"),
            MapErrorKind::Twice { name, first } => {
                write!(f, "line {line} maps `{name}` again; line {first} did")
            }
        }
    }
}

impl Error for MapError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_pair_or_nothing() {
        let read = |text| parse_map(text).map_err(|error| error.to_string());
        let pair = |old: &str, new: &str| (String::from(old), String::from(new));
        for (text, want) in [
            ("", vec![]),
            ("a\tb", vec![pair("a", "b")]),
            (
                "\u{feff}a\tb\r\n\r\n # \tc\n#a\tc\n  \n\t\n",
                vec![pair("a", "b"), pair(" # ", "c"), pair("", "")],
            ),
            (" é \t b", vec![pair(" é ", " b")]),
        ] {
            assert_eq!(read(text), Ok(want), "{text:?}");
        }
        for (text, want) in [
            ("a\tb\nx", "line 2 has no tab"),
            ("#\na\tb\tc", "line 2 has more than one tab"),
            ("a\tb\n\nc\td\na\te", "line 4 maps `a` again; line 1 did"),
        ] {
            assert_eq!(read(text), Err(want.into()), "{text:?}");
        }
        let error = parse_map("x").unwrap_err();
        assert_eq!(
            (error.code(), error.line(), error.kind()),
            ("rename-map", 1, &MapErrorKind::NoTab)
        );
    }
}
