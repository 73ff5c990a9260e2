//! A value as people read it: JSON a member a line, other text line by line, and nothing without end.

use std::io::{self, Write};

use weigh::format::text::escaped;

use super::json::{Token, Tokens, is_structure, tokens};
use crate::units;

/// Bytes of a text that are shown of it, if it has many more.
const SHOWN: usize = 1000;

/// Bytes of a text that is shown whole, at most.
const MOST_SHOWN: usize = 2000;

/// Bytes of a `data:` URI, an image most often, that is shown whole.
const MOST_URI: usize = 100;

/// Lines that are shown of a value: JSON in a header may have as many as bytes.
const MOST_LINES: usize = 10_000;

/// Writes a value, each line after `indent`.
pub(super) fn write_lines(out: &mut impl Write, value: &str, indent: &str) -> io::Result<()> {
    if is_structure(value) {
        return write_json(out, value, indent);
    }
    let mut left = value;
    for _ in 0..MOST_LINES {
        let (line, rest) =
            left.split_once('\n').map_or((left, None), |(line, rest)| (line, Some(rest)));
        let indent = if line.is_empty() { "" } else { indent };
        writeln!(out, "{indent}{}", shown(line))?;
        match rest {
            Some(rest) => left = rest,
            None => return Ok(()),
        }
    }
    writeln!(out, "{indent}{}", more(left))
}

/// A text of one line escaped, and shortened if it is long.
pub(super) fn shown(text: &str) -> String {
    match shortened(text) {
        None => escaped(text).to_string(),
        Some(start) => format!("{}… ({})", escaped(start), size(text)),
    }
}

/// Writes JSON a member a line. Strings, numbers, order and repeated keys stay as they are in the text.
fn write_json(out: &mut impl Write, json: &str, indent: &str) -> io::Result<()> {
    let mut depth = 0_usize;
    let mut is_empty = false;
    let mut lines = 0;
    let mut line = |out: &mut dyn Write, depth: usize| {
        lines += 1;
        write!(out, "\n{indent}{}", "  ".repeat(depth))?;
        io::Result::Ok(lines < MOST_LINES)
    };
    write!(out, "{indent}")?;
    let mut pieces: Tokens<'_> = tokens(json);
    while let Some(token) = pieces.next() {
        let was_empty = std::mem::take(&mut is_empty);
        let mut goes_on = true;
        if was_empty && !matches!(token, Token::Close(_)) {
            goes_on = line(out, depth)?;
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
                    goes_on = line(out, depth)?;
                }
                write!(out, "{bracket}")?;
            }
            Token::Comma => {
                write!(out, ",")?;
                goes_on = line(out, depth)?;
            }
            Token::Colon => write!(out, ": ")?,
            Token::Other(text) => write_piece(out, text)?,
        }
        if !goes_on && !pieces.rest().is_empty() {
            return writeln!(out, "{}", more(pieces.rest()));
        }
    }
    writeln!(out)
}

/// Writes a string, a number or a word of JSON.
fn write_piece(out: &mut impl Write, piece: &str) -> io::Result<()> {
    let Some(string) = piece.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
        return write!(out, "{}", shown(piece));
    };
    match shortened(string) {
        None => write!(out, "{}", escaped(piece)),
        Some(start) => write!(out, "\"{}…\" ({})", escaped(start), size(string)),
    }
}

/// What is shown of a text that is not shown whole.
fn shortened(text: &str) -> Option<&str> {
    if text.len() > MOST_URI && text.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("data:")) {
        let head = text.get(..text.floor_char_boundary(MOST_URI)).unwrap_or_default();
        if let Some((media_type, _)) = head.split_once(',')
            && !media_type.contains(' ')
        {
            return text.get(..=media_type.len());
        }
    }
    if text.len() <= MOST_SHOWN {
        return None;
    }
    text.get(..text.floor_char_boundary(SHOWN))
}

fn size(text: &str) -> String {
    units::bytes(text.len() as u64)
}

fn more(rest: &str) -> String {
    format!("… ({} more)", size(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(value: &str) -> String {
        let mut out = Vec::new();
        write_lines(&mut out, value, "  ").unwrap();
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
            assert_eq!(lines(value), want, "{value}");
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
            assert_eq!(lines(value), want, "{value}");
        }
    }

    #[test]
    fn what_is_very_long_is_shortened_with_its_size() {
        let uri = format!("data:image/png;base64,{}", "A".repeat(79));
        for (value, want) in [
            ("a".repeat(MOST_SHOWN), format!("  {}\n", "a".repeat(MOST_SHOWN))),
            ("é".repeat(MOST_SHOWN), format!("  {}… (3.91 KiB)\n", "é".repeat(SHOWN / 2))),
            (uri.clone(), "  data:image/png;base64,… (101 B)\n".into()),
            (format!("data: {}", "A,".repeat(50)), format!("  data: {}\n", "A,".repeat(50))),
            (uri[1..].into(), format!("  {}\n", &uri[1..])),
            (uri[..100].into(), format!("  {}\n", &uri[..100])),
            (
                format!(r#"{{"a":"{uri}"}}"#),
                "  {\n    \"a\": \"data:image/png;base64,…\" (101 B)\n  }\n".into(),
            ),
            (format!("[{}]", "1".repeat(2001)), {
                format!("  [\n    {}… (1.95 KiB)\n  ]\n", "1".repeat(SHOWN))
            }),
        ] {
            assert_eq!(lines(&value), want);
        }
    }

    #[test]
    fn no_value_has_lines_without_end() {
        for (value, last) in [
            (format!("[{}1]", "1,".repeat(2_000_000)), "… (3.80 MiB more)"),
            ("\n".repeat(3_000_000), "… (2.85 MiB more)"),
            ("\n".repeat(MOST_LINES), "… (0 B more)"),
        ] {
            let shown = lines(&value);
            assert!(shown.lines().count() <= MOST_LINES + 1);
            let end = shown.lines().last().unwrap();
            assert!(end.ends_with(last), "{end}");
        }
        assert_eq!(lines(&"\n".repeat(MOST_LINES - 1)), "\n".repeat(MOST_LINES));
    }
}
