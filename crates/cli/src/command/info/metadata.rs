//! The metadata of a checkpoint: what its files claim of themselves.

use std::io::{self, Write};

use serde::de::IgnoredAny;
use weigh::Survey;
use weigh::format::text::{escaped, write_escape};

/// A key and a value, and the files that have both.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    /// Places in [`Survey::shards`].
    pub(super) shards: Vec<usize>,
}

/// The metadata of a checkpoint, as far as it is looked at.
pub(super) struct Metadata {
    /// Each pair once, in natural order of the keys.
    pub(super) entries: Vec<Entry>,
    /// How many pairs there are: each once, or as often as it comes where not all were looked at.
    pub(super) pairs: usize,
}

/// Pairs that are looked at for the screen, which shows a few: a header may have millions.
pub(super) const ENOUGH: usize = 10_000;

impl Metadata {
    /// The first pairs of all files, `most` of them at most.
    pub(super) fn of(survey: &Survey, most: usize) -> Self {
        let shards = survey.shards().iter().filter_map(weigh::SurveyedShard::inspection);
        let all: usize = shards.map(|inspection| inspection.metadata().len()).sum();
        let entries = entries(survey, most);
        let pairs = if all > most { all } else { entries.len() };
        Self { entries, pairs }
    }
}

fn entries(survey: &Survey, most: usize) -> Vec<Entry> {
    let pairs = survey.metadata().map(|(shard, key, value)| (key, value, shard));
    let mut pairs: Vec<(String, String, usize)> = pairs.take(most).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut entries: Vec<Entry> = Vec::new();
    for (key, value, shard) in pairs {
        match entries.last_mut() {
            Some(last) if last.key == key && last.value == value => last.shards.push(shard),
            _ => entries.push(Entry { key, value, shards: vec![shard] }),
        }
    }
    let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let order = survey.natural_order(&keys);
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    let places = order.into_iter().filter_map(|place| usize::try_from(place).ok());
    places.filter_map(|place| entries.get_mut(place)?.take()).collect()
}

/// Text cut to `width` columns, escaped; `true` if something is left out.
pub(super) fn cut(text: &str, width: usize) -> (String, bool) {
    let mut shown = String::new();
    let mut columns = 0;
    for (at, character) in text.char_indices() {
        let mut piece = String::new();
        if weigh::format::text::is_unsafe_to_print(character) {
            // Writing to a String does not fail.
            let _ = write_escape(&mut piece, character);
        } else {
            piece.push(character);
        }
        let length = piece.chars().count();
        let is_last = at + character.len_utf8() == text.len();
        if columns + length + usize::from(!is_last) > width {
            shown.push('…');
            return (shown, true);
        }
        columns += length;
        shown.push_str(&piece);
    }
    (shown, false)
}

/// Writes a value whole: JSON expanded, other text line by line; each line after `indent`.
pub(super) fn write_whole(out: &mut impl Write, value: &str, indent: &str) -> io::Result<()> {
    if is_structure(value) {
        return write_expanded(out, value, indent);
    }
    for line in value.split('\n') {
        let indent = if line.is_empty() { "" } else { indent };
        writeln!(out, "{indent}{}", escaped(line))?;
    }
    Ok(())
}

/// Whether a value is an object or an array in JSON, with something in it.
pub(super) fn is_structure(value: &str) -> bool {
    let value = value.trim_ascii();
    value.len() > 2 && value.starts_with(['{', '[']) && depth(value) <= MOST_DEPTH && is_json(value)
}

/// Deeper JSON is shown as it is: its indentation would be longer than itself.
const MOST_DEPTH: usize = 32;

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Levels of brackets, those inside of strings left out.
fn depth(json: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    tokens(json, |token| {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
        Ok(())
    })
    .map_or(usize::MAX, |()| most)
}

/// Writes JSON a member a line. Strings, numbers, order and repeated keys stay as they are in the text.
fn write_expanded(out: &mut impl Write, json: &str, indent: &str) -> io::Result<()> {
    let mut depth = 0_usize;
    let mut is_empty = false;
    let line = |out: &mut dyn Write, depth: usize| write!(out, "\n{indent}{}", "  ".repeat(depth));
    write!(out, "{indent}")?;
    tokens(json, |token| {
        let was_empty = std::mem::take(&mut is_empty);
        if was_empty && !matches!(token, Token::Close(_)) {
            line(out, depth)?;
        }
        match token {
            Token::Open(bracket) => {
                write!(out, "{bracket}")?;
                depth += 1;
                is_empty = true;
            }
            Token::Close(bracket) => {
                depth = depth.saturating_sub(1);
                if !was_empty {
                    line(out, depth)?;
                }
                write!(out, "{bracket}")?;
            }
            Token::Comma => {
                write!(out, ",")?;
                line(out, depth)?;
            }
            Token::Colon => write!(out, ": ")?,
            Token::Other(text) => write!(out, "{}", escaped(text))?,
        }
        Ok(())
    })?;
    writeln!(out)
}

/// A piece of JSON; strings, numbers and words are not told apart.
enum Token<'t> {
    Open(char),
    Close(char),
    Comma,
    Colon,
    Other(&'t str),
}

/// Splits JSON, which has to be well formed, into its pieces.
fn tokens<'t>(json: &'t str, mut each: impl FnMut(Token<'t>) -> io::Result<()>) -> io::Result<()> {
    let mut rest = json.trim_ascii_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '{' | '[' => (Token::Open(first), 1),
            '}' | ']' => (Token::Close(first), 1),
            ',' => (Token::Comma, 1),
            ':' => (Token::Colon, 1),
            '"' => {
                let end = string_end(rest);
                (Token::Other(rest.get(..end).unwrap_or_default()), end)
            }
            _ => {
                let ends = |character: char| {
                    "{}[],:\"".contains(character) || character.is_ascii_whitespace()
                };
                let end = rest.find(ends).unwrap_or(rest.len()).max(first.len_utf8());
                (Token::Other(rest.get(..end).unwrap_or_default()), end)
            }
        };
        each(token)?;
        rest = rest.get(length..).unwrap_or_default().trim_ascii_start();
    }
    Ok(())
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
    fn text_is_cut_after_it_is_escaped() {
        for (text, width, want) in [
            ("", 5, ("", false)),
            ("12345", 5, ("12345", false)),
            ("123456", 5, ("1234…", true)),
            ("a\nb", 5, ("a\\nb", false)),
            ("\u{202e}ab", 8, ("\\u202eab", false)),
            ("\u{202e}ab", 7, ("\\u202e…", true)),
            ("\u{202e}ab", 5, ("…", true)),
            ("é漢", 2, ("é漢", false)),
        ] {
            let (shown, is_cut) = cut(text, width);
            assert_eq!((shown.as_str(), is_cut), want, "{text:?} in {width}");
        }
    }

    fn whole(value: &str) -> String {
        let mut out = Vec::new();
        write_whole(&mut out, value, "  ").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_in_a_string_is_expanded_as_it_is() {
        for (value, want) in [
            (
                r#"{"b":[1,2.50,{}],"a" : "x, {y}\"", "a":1e999}"#,
                "  {\n    \"b\": [\n      1,\n      2.50,\n      {}\n    ],\n    \"a\": \"x, {y}\\\"\",\n    \"a\": 1e999\n  }\n",
            ),
            ("[[]]", "  [\n    []\n  ]\n"),
            ("{\"\u{202e}\": 1}", "  {\n    \"\\u202e\": 1\n  }\n"),
        ] {
            assert_eq!(whole(value), want, "{value}");
        }
    }

    #[test]
    fn what_is_not_json_stays_text() {
        for (value, want) in [
            ("", "\n"),
            ("plain", "  plain\n"),
            ("{not json}", "  {not json}\n"),
            ("{}", "  {}\n"),
            ("two\nlines\u{1b}[2J", "  two\n  lines\\u001b[2J\n"),
        ] {
            assert_eq!(whole(value), want, "{value}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(whole(&deep), format!("  {deep}\n"));
        let most = "[".repeat(MOST_DEPTH) + &"]".repeat(MOST_DEPTH);
        assert!(is_structure(&most) && !is_structure(&format!("[{most}]")));
    }
}
