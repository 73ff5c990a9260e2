//! `s/REGEX/REPLACEMENT/FLAGS`: its syntax and what it does to a name.

use std::error::Error;
use std::fmt;

use regex::Regex;

use crate::select::{PatternError, regular};

/// A substitution, ready for use.
#[derive(Clone, Debug)]
pub(super) struct Substitute {
    expression: String,
    regex: Regex,
    replacement: Vec<Piece>,
    every: bool,
}

/// A name would be too long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLong;

/// A piece of a replacement.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Piece {
    Text(String),
    /// What the group found; 0 is the whole.
    Group(usize),
}

impl Substitute {
    pub(super) fn parse(expression: &str) -> Result<Self, SubstituteError> {
        let fail = |at, kind| SubstituteError { expression: expression.into(), at, kind };
        let mut characters = expression.char_indices();
        let delimiter = match (characters.next(), characters.next()) {
            (Some((_, 's')), Some((_, delimiter))) if !matches!(delimiter, '\\' | '\n') => {
                delimiter
            }
            _ => return Err(fail(0, SubstituteErrorKind::NoSubstitution)),
        };
        let from = 1 + delimiter.len_utf8();
        let (pattern, from) = pattern_part(expression, from, delimiter)
            .ok_or_else(|| fail(expression.len(), SubstituteErrorKind::Unterminated))?;
        let (replacement, flags_from) = part(expression, from, delimiter)
            .ok_or_else(|| fail(expression.len(), SubstituteErrorKind::Unterminated))?;
        let (mut every, mut ignore_case) = (false, false);
        for (at, flag) in expression[flags_from..].char_indices() {
            let known = match flag {
                'g' => &mut every,
                'i' => &mut ignore_case,
                _ => return Err(fail(flags_from + at, SubstituteErrorKind::UnknownFlag(flag))),
            };
            *known = true;
        }
        let pattern = without_delimiters(pattern, delimiter);
        let regex = regular::compile(&pattern, ignore_case)
            .map_err(|error| fail(1 + delimiter.len_utf8(), SubstituteErrorKind::Regex(error)))?;
        let replacement = pieces(replacement, delimiter, regex.captures_len() - 1)
            .map_err(|(at, kind)| fail(from + at, kind))?;
        Ok(Self { expression: expression.into(), regex, replacement, every })
    }

    /// As it was given.
    pub(super) fn expression(&self) -> &str {
        &self.expression
    }

    /// `name` with its replacements, which may have `most` bytes; `None` if nothing was found.
    pub(super) fn apply(&self, name: &str, most: usize) -> Result<Option<String>, TooLong> {
        let times = if self.every { usize::MAX } else { 1 };
        let mut new = String::new();
        let mut done = 0;
        let mut found = false;
        for captures in self.regex.captures_iter(name).take(times) {
            found = true;
            let whole = captures.get_match();
            new.push_str(&name[done..whole.start()]);
            done = whole.end();
            for piece in &self.replacement {
                match piece {
                    Piece::Text(text) => new.push_str(text),
                    Piece::Group(number) => {
                        new.push_str(captures.get(*number).map_or("", |group| group.as_str()));
                    }
                }
                // Looked at on the way: what `g` repeats can be far longer than any memory.
                if new.len() > most {
                    return Err(TooLong);
                }
            }
        }
        if !found {
            return Ok(None);
        }
        new.push_str(&name[done..]);
        if new.len() > most { Err(TooLong) } else { Ok(Some(new)) }
    }
}

/// What stands from `from` on up to the next delimiter, and where that ends. `None` if there is no next.
fn part(expression: &str, from: usize, delimiter: char) -> Option<(&str, usize)> {
    until(expression, from, delimiter, |_| false)
}

/// The same of a regular expression, in whose bracketed classes a delimiter is an ordinary character.
fn pattern_part(expression: &str, from: usize, delimiter: char) -> Option<(&str, usize)> {
    // How many brackets are open, and whether one was just opened: a `]` there is ordinary.
    let (mut open, mut is_at_start) = (0_usize, false);
    let has_classes = !matches!(delimiter, '[' | ']');
    until(expression, from, delimiter, |character| {
        match character {
            '[' if has_classes => (open, is_at_start) = (open + 1, true),
            '^' if is_at_start => {}
            ']' if !is_at_start => open = open.saturating_sub(1),
            _ => is_at_start = false,
        }
        open > 0
    })
}

/// What stands from `from` on up to the next delimiter that is not escaped and not in a class, as `is_in_class`
/// says after each character but those that are escaped and those before them.
fn until(
    expression: &str,
    from: usize,
    delimiter: char,
    mut is_in_class: impl FnMut(char) -> bool,
) -> Option<(&str, usize)> {
    let (mut is_escaped, mut is_inside) = (false, false);
    for (at, character) in expression.get(from..)?.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if character == delimiter && !is_inside {
            let end = from + at;
            return Some((&expression[from..end], end + delimiter.len_utf8()));
        } else {
            is_escaped = character == '\\';
            is_inside = is_in_class(character);
        }
    }
    None
}

/// The regular expression with its escaped delimiters made the ordinary characters that they are.
fn without_delimiters(pattern: &str, delimiter: char) -> String {
    let ordinary = regex::escape(delimiter.encode_utf8(&mut [0; 4]));
    let mut plain = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some(escaped) if escaped == delimiter => plain.push_str(&ordinary),
            Some(escaped) => plain.extend(['\\', escaped]),
            None => plain.push('\\'),
        }
    }
    plain
}

/// Reads a replacement. An error has its position in it.
fn pieces(
    replacement: &str,
    delimiter: char,
    groups: usize,
) -> Result<Vec<Piece>, (usize, SubstituteErrorKind)> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut characters = replacement.char_indices();
    while let Some((at, character)) = characters.next() {
        let group = match character {
            '&' => 0,
            '\\' => match characters.next() {
                Some((_, escaped)) if escaped == delimiter => {
                    text.push(escaped);
                    continue;
                }
                Some((_, digit @ '1'..='9')) => {
                    let group = digit.to_digit(10).map_or(0, |digit| digit as usize);
                    if group > groups {
                        return Err((at, SubstituteErrorKind::NoGroup { group, groups }));
                    }
                    group
                }
                Some((_, 'n')) => {
                    text.push('\n');
                    continue;
                }
                Some((_, 't')) => {
                    text.push('\t');
                    continue;
                }
                Some((_, escaped)) if escaped.is_alphanumeric() => {
                    return Err((at, SubstituteErrorKind::UnknownEscape(escaped)));
                }
                Some((_, escaped)) => {
                    text.push(escaped);
                    continue;
                }
                None => return Err((at, SubstituteErrorKind::Unterminated)),
            },
            _ => {
                text.push(character);
                continue;
            }
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Group(group));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// An expression that is no substitution.
///
/// `Display` shows it as it was given, not escaped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubstituteError {
    expression: String,
    at: usize,
    kind: SubstituteErrorKind,
}

/// What is wrong with a substitution.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SubstituteErrorKind {
    /// It does not begin with `s` and a delimiter.
    NoSubstitution,
    /// A delimiter is missing.
    Unterminated,
    /// Its regular expression is none, or is over a limit.
    Regex(PatternError),
    /// The regular expression has no such group.
    NoGroup {
        /// The group that the replacement asks for.
        group: usize,
        /// How many there are.
        groups: usize,
    },
    /// A letter or digit after a backslash that means nothing in a replacement.
    UnknownEscape(char),
    /// A flag that means nothing.
    UnknownFlag(char),
}

impl SubstituteError {
    /// The whole expression.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Where in it it goes wrong, as a byte offset; for a regular expression, where that begins.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &SubstituteErrorKind {
        &self.kind
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "rename-syntax"
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match &self.kind {
            SubstituteErrorKind::NoSubstitution => {
                "Write s/REGEX/REPLACEMENT/, with a backslash before each / that is meant as itself."
            }
            SubstituteErrorKind::Unterminated => {
                "Write s/REGEX/REPLACEMENT/, with a backslash before each / or [ that is meant as itself."
            }
            SubstituteErrorKind::Regex(error) => error.help(),
            SubstituteErrorKind::NoGroup { .. } => {
                "Put parentheses around the part of the regular expression that is meant."
            }
            SubstituteErrorKind::UnknownEscape(_) => {
                "In a replacement there are \\1 to \\9, \\n, \\t, and & for all that was found."
            }
            SubstituteErrorKind::UnknownFlag(_) => {
                "The flags are g, for every occurrence, and i, for either case."
            }
        }
    }
}

impl fmt::Display for SubstituteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expression, at, kind } = self;
        if let SubstituteErrorKind::Regex(error) = kind {
            return write!(f, "substitution \"{expression}\": {error}");
        }
        write!(f, "substitution \"{expression}\" at byte {at}: ")?;
        match kind {
            SubstituteErrorKind::NoSubstitution => f.write_str("not s and a delimiter"),
            SubstituteErrorKind::Unterminated | SubstituteErrorKind::Regex(_) => {
                f.write_str("a delimiter is missing")
            }
            SubstituteErrorKind::NoGroup { group, groups } => {
                write!(f, "\\{group}, but the number of groups is {groups}")
            }
            SubstituteErrorKind::UnknownEscape(escaped) => {
                write!(f, "\\{escaped} means nothing in a replacement")
            }
            SubstituteErrorKind::UnknownFlag(flag) => write!(f, "no flag is called {flag}"),
        }
    }
}

impl Error for SubstituteError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutions_do_what_sed_does() {
        for (expression, name, want) in [
            (r"s/^model\.//", "model.model.w", Some("model.w")),
            (r"s/model\.//g", "model.model.w", Some("w")),
            ("s/a/b/", "x", None),
            ("s/a/a/", "a", Some("a")),
            ("s/A/b/gi", "aAa", Some("bbb")),
            ("s/A/b/", "aAa", Some("aba")),
            (r"s/(\d+)\.(\w+)/\2.\1/", "l.12.w", Some("l.w.12")),
            (r"s/(x)?b/[\1]/", "ab", Some("a[]")),
            (r"s/b/<&>\&\\/", "abc", Some("a<b>&\\c")),
            (r"s/b/\n\t\-$1${x}/", "b", Some("\n\t-$1${x}")),
            ("s/a*/x/g", "baaac", Some("xbxcx")),
            ("s/$/.w/", "a", Some("a.w")),
            (r"s|a\|b|x|", "a|b", Some("x")),
            (r"s,a,\,,", "a", Some(",")),
            (r"s/\//\//", "a/b", Some("a/b")),
            (r"s/[\/]/./", "a/b", Some("a.b")),
            ("s/[/]/q/", "a/b", Some("aqb")),
            ("s/[^/]/q/", "a/b", Some("q/b")),
            ("s/[]/]/q/g", "a/b]", Some("aqbq")),
            ("s/[^]/]/q/g", "a/b]", Some("q/q]")),
            (r"s/[\]/]/q/g", r"a/b]\", Some(r"aqbq\")),
            ("s/[[:digit:]/]/q/g", "a/1", Some("aqq")),
            ("s/]/[/", "a]b/", Some("a[b/")),
            (r"s/\[/x/", "a[", Some("ax")),
            ("s[a[b[", "a", Some("b")),
            ("s^[a]^x^", "a", Some("x")),
            ("s.a\\.b.x.", "a.b azb", Some("x azb")),
            ("sébéxé", "b", Some("x")),
            (r"s&a&\&&", "a", Some("&")),
            (r"s1(a)1\11", "a", Some("1")),
            ("s///", "a", Some("a")),
            ("s/é/e/", "éé", Some("eé")),
        ] {
            let substitute = Substitute::parse(expression).unwrap();
            assert_eq!(substitute.apply(name, 100).unwrap().as_deref(), want, "{expression}");
        }
    }

    #[test]
    fn a_name_that_grows_too_long_is_given_up() {
        let substitute = Substitute::parse("s/./&&&&/g").unwrap();
        assert_eq!(substitute.apply("abc", 12), Ok(Some("aaaabbbbcccc".into())));
        assert_eq!(substitute.apply("abc", 11), Err(TooLong));
    }

    #[test]
    fn every_error_says_where() {
        for (expression, at, message) in [
            ("", 0, "substitution \"\" at byte 0: not s and a delimiter"),
            ("s", 0, "substitution \"s\" at byte 0: not s and a delimiter"),
            ("y/a/b/", 0, "substitution \"y/a/b/\" at byte 0: not s and a delimiter"),
            ("s\\a\\b\\", 0, "substitution \"s\\a\\b\\\" at byte 0: not s and a delimiter"),
            ("s/a", 3, "substitution \"s/a\" at byte 3: a delimiter is missing"),
            ("s/[/x/", 6, "substitution \"s/[/x/\" at byte 6: a delimiter is missing"),
            ("s/a/b\\/", 7, "substitution \"s/a/b\\/\" at byte 7: a delimiter is missing"),
            ("s/a/b\\", 6, "substitution \"s/a/b\\\" at byte 6: a delimiter is missing"),
            ("s/a/b/gx", 7, "substitution \"s/a/b/gx\" at byte 7: no flag is called x"),
            ("s/a/b/2", 6, "substitution \"s/a/b/2\" at byte 6: no flag is called 2"),
            (
                "s/(a)/b\\2/",
                7,
                "substitution \"s/(a)/b\\2/\" at byte 7: \\2, but the number of groups is 1",
            ),
            (
                "s/a/\\U/",
                4,
                "substitution \"s/a/\\U/\" at byte 4: \\U means nothing in a replacement",
            ),
            ("s/a(/b/", 2, "substitution \"s/a(/b/\": regex \"a(\" at byte 1: unclosed group"),
        ] {
            let error = Substitute::parse(expression).unwrap_err();
            assert_eq!((error.position(), error.to_string().as_str()), (at, message));
            assert!(!error.help().is_empty());
        }
    }
}
