//! Text from a file, made safe for a terminal, a log or a page.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::{self, Write};

/// Shows `text` with every character of the Unicode categories Cc, Cf, Zl and Zp escaped.
///
/// Escapes are JSON's: `\n`, `\u001b`, a surrogate pair above U+FFFF. A backslash stays itself, so that
/// ordinary text is unchanged.
///
/// ```
/// use weigh_format::text::escaped;
///
/// assert_eq!(escaped("a\u{1b}[31m\nb\u{202e}c").to_string(), "a\\u001b[31m\\nb\\u202ec");
/// ```
#[must_use]
pub fn escaped(text: &str) -> Escaped<'_> {
    Escaped(text)
}

/// Text that displays with its control and format characters escaped. See [`escaped`].
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain(self.0) {
            return f.write_str(self.0);
        }
        for character in self.0.chars() {
            if is_unsafe_to_print(character) {
                write_escape(f, character)?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a text from a file that a finding or a report carries.
pub const SHORT_BYTES: usize = 200;

/// `text`, cut at about [`SHORT_BYTES`]: a thousand findings must not hold a thousand huge names.
#[must_use]
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= SHORT_BYTES {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(SHORT_BYTES);
    let mut short = String::from(text.get(..end).unwrap_or_default());
    short.push('…');
    Cow::Owned(short)
}

/// Whether every byte of `text` is printable ASCII, so that nothing needs escaping.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    // A whole chunk is looked at before anything is decided, so that the compiler can use wide registers.
    text.as_bytes()
        .chunks(32)
        .all(|chunk| chunk.iter().fold(true, |plain, byte| plain & matches!(byte, 0x20..=0x7e)))
}

/// Writes `character` as JSON does: `\n` and its like, or `\u` and four digits for each UTF-16 unit.
///
/// # Errors
///
/// Those of `out`.
pub fn write_escape(out: &mut impl Write, character: char) -> fmt::Result {
    match character {
        '\n' => return out.write_str("\\n"),
        '\r' => return out.write_str("\\r"),
        '\t' => return out.write_str("\\t"),
        _ => {}
    }
    for unit in character.encode_utf16(&mut [0; 2]) {
        write!(out, "\\u{unit:04x}")?;
    }
    Ok(())
}

/// Whether `character` is of category Cc, Cf, Zl or Zp: it could move the cursor, reorder or hide text.
#[must_use]
pub fn is_unsafe_to_print(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    let position = UNSAFE.partition_point(|&(_, last)| last < character);
    UNSAFE.get(position).is_some_and(|&(first, _)| first <= character)
}

/// Whether `character` is one of the bidirectional controls of Unicode (`Bidi_Control`).
#[must_use]
pub fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Categories Cc, Cf, Zl and Zp outside ASCII, as inclusive ranges in order (Unicode 16).
const UNSAFE: &[(char, char)] = &[
    ('\u{80}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{2066}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in ["", "model.layers.0.weight", "C:\\weights", "ключ 鍵 é"] {
            assert_eq!(escaped(text).to_string(), text);
        }
    }

    #[test]
    fn what_moves_reorders_or_hides_is_escaped() {
        for (text, want) in [
            ("\u{0}\u{7f}\u{9b}", "\\u0000\\u007f\\u009b"),
            ("a\r\n\tb", "a\\r\\n\\tb"),
            ("\u{200b}\u{2028}\u{2029}\u{feff}\u{ad}", "\\u200b\\u2028\\u2029\\ufeff\\u00ad"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(escaped(text).to_string(), want);
        }
    }

    #[test]
    fn the_table_is_the_unicode_categories() {
        use unicode_general_category::{GeneralCategory as Category, get_general_category};
        for character in '\0'..=char::MAX {
            let listed = matches!(
                get_general_category(character),
                Category::Control
                    | Category::Format
                    | Category::LineSeparator
                    | Category::ParagraphSeparator
            );
            assert_eq!(is_unsafe_to_print(character), listed, "U+{:04X}", u32::from(character));
        }
    }
}
