//! How a pickle is written in a string.

use alloc::vec::Vec;

/// Characters of the shortest pickle in base64, about.
const SHORTEST: usize = 12;

/// How a pickle is written in a string.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Spelling {
    /// As it is.
    Plain,
    /// Text whose characters are the bytes: bytes in protocol 2 are such text, which `_codecs.encode` encodes.
    Latin1,
    /// Two hexadecimal digits for each byte.
    Hex,
    /// Base64, of either alphabet.
    Base64,
}

impl Spelling {
    pub(super) const ALL: &'static [Self] = &[Self::Plain, Self::Latin1, Self::Hex, Self::Base64];

    /// The bytes that a string spells, if it is so written: the first `most` of them, or a few more.
    pub(super) fn decode(self, string: &[u8], is_text: bool, most: usize) -> Option<Vec<u8>> {
        match self {
            Self::Plain => None,
            Self::Latin1 if !is_text || string.is_ascii() => None,
            Self::Latin1 => core::str::from_utf8(string)
                .ok()?
                .chars()
                .take(most)
                .map(|character| u8::try_from(character).ok())
                .collect(),
            Self::Hex => hex(string, most),
            Self::Base64 => base64(string, most),
        }
    }
}

/// Whether a string has nothing but what hexadecimal and base64 have.
#[inline]
pub(super) fn may_be_spelled(string: &[u8]) -> bool {
    string.len() >= SHORTEST
        && string.iter().all(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\n' | b'\r')
        })
}

fn hex(string: &[u8], most: usize) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = string.trim_ascii().as_chunks::<2>() else {
        return None;
    };
    pairs.iter().take(most).map(|[high, low]| Some((digit(*high)? << 4) | digit(*low)?)).collect()
}

fn base64(string: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in string {
        let value = match byte {
            b'A'..=b'Z' => byte.wrapping_sub(b'A'),
            b'a'..=b'z' => byte.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => byte.wrapping_sub(b'0').wrapping_add(52),
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' => continue,
            b'=' => break,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count = count.wrapping_add(6);
        if count >= 8 {
            count = count.wrapping_sub(8);
            let [low, ..] = (bits >> count).to_le_bytes();
            bytes.push(low);
        }
        if bytes.len() >= most {
            break;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_alphabets_and_line_breaks_are_base64() {
        for (text, bytes) in [
            ("Y29zCmdldHBpZAopUi4=", &b"cos\ngetpid\n)R."[..]),
            ("Y29zCmdldH\nBpZAopUi4", b"cos\ngetpid\n)R."),
            ("gASV-_8=", b"\x80\x04\x95\xfb\xff"),
            ("gASV+/8=", b"\x80\x04\x95\xfb\xff"),
        ] {
            assert_eq!(Spelling::Base64.decode(text.as_bytes(), true, 99).unwrap(), bytes);
        }
        assert_eq!(Spelling::Base64.decode(b"a.b", true, 99), None);
    }

    #[test]
    fn digits_of_either_case_are_hexadecimal_and_odd_ones_are_not() {
        assert_eq!(Spelling::Hex.decode(b"80049F9f\n", true, 99).unwrap(), [0x80, 4, 0x9f, 0x9f]);
        assert_eq!(Spelling::Hex.decode(b"80049f9", true, 99), None);
        assert_eq!(Spelling::Hex.decode(b"80049f9f", true, 2).unwrap(), [0x80, 4]);
    }

    #[test]
    fn characters_to_255_are_latin_1() {
        assert_eq!(
            Spelling::Latin1.decode("\u{80}\u{4}ÿ".as_bytes(), true, 99).unwrap(),
            [0x80, 4, 0xff]
        );
        assert_eq!(Spelling::Latin1.decode("ā".as_bytes(), true, 99), None);
        assert_eq!(Spelling::Latin1.decode(b"ascii", true, 99), None);
    }
}
