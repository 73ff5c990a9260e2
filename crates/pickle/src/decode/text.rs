//! Arguments that are lines of text, as `CPython`'s C unpickler reads them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use super::{Argument, argument};
use crate::Error;

/// The line of `INT`: an integer as C's `strtol` reads it with base 0, else as Python's `int` does; and `00` and `01`
/// (any two characters that come to 0 or 1) are truth values.
pub(super) fn int_line(line: &[u8], limit: u32) -> Result<Argument<'_>, Error> {
    if line.is_empty() {
        return Err(argument("the line is empty"));
    }
    match c_integer(line) {
        Some(number @ (0 | 1)) if line.len() == 2 => Ok(Argument::Bool(number == 1)),
        Some(number) => Ok(Argument::Int(number)),
        None => python_integer(line, None, limit),
    }
}

/// The line of `LONG`: an integer as Python's `int` reads it with base 0, and an `L` that may follow it.
pub(super) fn long_line(line: &[u8], limit: u32) -> Result<Argument<'_>, Error> {
    if line.is_empty() {
        return Err(argument("the line is empty"));
    }
    python_integer(line.strip_suffix(b"L").unwrap_or(line), None, limit)
}

/// The line of `PUT` and `GET`: a decimal number as Python's `int` reads it.
pub(super) fn index_line(line: &[u8]) -> Result<Argument<'static>, Error> {
    match python_integer(line, Some(10), 16)? {
        Argument::Int(number) => match u64::try_from(number) {
            Ok(index) => Ok(Argument::Number(index)),
            Err(_) => Err(argument(format!("the memo index is negative: {number}"))),
        },
        _ => Err(argument("the memo index has more than 64 bits")),
    }
}

/// The line of `FLOAT`, to its end or to a NUL: no white space, no overflow.
pub(super) fn float_line(line: &[u8]) -> Result<Argument<'static>, Error> {
    let line = before_nul(line);
    let number: Option<f64> = core::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
    let says_infinite = || line.iter().any(|byte| matches!(byte, b'i' | b'I'));
    match number {
        Some(number) if number.is_infinite() && !says_infinite() => {
            Err(argument("the float is too large"))
        }
        Some(number) => Ok(Argument::Float(number)),
        None => Err(argument("the line is no float")),
    }
}

/// The line of `STRING`: quoted, with the escapes of a bytes literal.
pub(super) fn string_line(line: &[u8]) -> Result<Argument<'_>, Error> {
    let ([b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"']) = line else {
        return Err(argument("the string is not quoted"));
    };
    if !inner.contains(&b'\\') {
        return Ok(Argument::Bytes(Cow::Borrowed(inner)));
    }
    let mut decoded = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            decoded.push(byte);
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else {
            return Err(argument("the string ends in a backslash"));
        };
        rest = after;
        match escape {
            b'\\' | b'\'' | b'"' => decoded.push(escape),
            b'a' => decoded.push(7),
            b'b' => decoded.push(8),
            b't' => decoded.push(b'\t'),
            b'n' => decoded.push(b'\n'),
            b'v' => decoded.push(11),
            b'f' => decoded.push(12),
            b'r' => decoded.push(b'\r'),
            b'x' => {
                let (value, after) = digits(rest, 2, 16);
                let Some(value) = value else {
                    return Err(argument("the string has an invalid \\x escape"));
                };
                decoded.push(low_byte(value));
                rest = after;
            }
            b'0'..=b'7' => {
                let mut value = digit(escape).unwrap_or(0);
                for _ in 0..2 {
                    match rest.split_first() {
                        Some((&next @ b'0'..=b'7', after)) => {
                            value = value.wrapping_mul(8).wrapping_add(digit(next).unwrap_or(0));
                            rest = after;
                        }
                        _ => break,
                    }
                }
                decoded.push(low_byte(value));
            }
            _ => decoded.extend([b'\\', escape]),
        }
    }
    Ok(Argument::Bytes(Cow::Owned(decoded)))
}

/// The line of `UNICODE`: Latin-1, with the escapes `\uXXXX` and `\UXXXXXXXX` and no others.
pub(super) fn unicode_line(line: &[u8]) -> Result<Argument<'_>, Error> {
    if line.is_ascii() && !line.contains(&b'\\') {
        return Ok(Argument::Text(Cow::Borrowed(line)));
    }
    let mut text = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            push_code(&mut text, u32::from(byte));
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else {
            text.push(b'\\');
            break;
        };
        rest = after;
        let wanted = match escape {
            b'u' => 4,
            b'U' => 8,
            _ => {
                text.push(b'\\');
                push_code(&mut text, u32::from(escape));
                continue;
            }
        };
        let (value, after) = digits(rest, wanted, 16);
        let Some(value) = value.filter(|value| *value <= 0x10_ffff) else {
            return Err(argument("the text has an invalid \\u escape"));
        };
        push_code(&mut text, value);
        rest = after;
    }
    Ok(Argument::Text(Cow::Owned(text)))
}

/// Whether bytes are UTF-8, but that surrogates are characters too.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        let Err(error) = core::str::from_utf8(rest) else {
            return true;
        };
        let Some([0xed, 0xa0..=0xbf, 0x80..=0xbf, after @ ..]) = rest.get(error.valid_up_to()..)
        else {
            return false;
        };
        rest = after;
    }
}

/// An integer in two's complement, the lowest byte first.
#[inline]
pub(super) fn integer(bytes: &[u8]) -> Argument<'_> {
    let mut bytes = bytes;
    // Bytes that only repeat the sign say nothing.
    while bytes.len() > 8 {
        match bytes {
            [shorter @ .., last, 0x00] if *last < 0x80 => bytes = with_last(bytes, shorter),
            [shorter @ .., last, 0xff] if *last >= 0x80 => bytes = with_last(bytes, shorter),
            _ => return Argument::Long(Cow::Borrowed(bytes)),
        }
    }
    let negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
    let mut all = [if negative { 0xff } else { 0 }; 8];
    for (to, from) in all.iter_mut().zip(bytes) {
        *to = *from;
    }
    Argument::Int(i64::from_le_bytes(all))
}

/// `bytes` without its last byte, `shorter` being without two.
fn with_last<'a>(bytes: &'a [u8], shorter: &[u8]) -> &'a [u8] {
    bytes.get(..shorter.len().saturating_add(1)).unwrap_or_default()
}

#[cold]
pub(super) fn over_integer_limit(limit: u32) -> Error {
    Error::new("limit-integer", format!("an integer has more bytes than the limit of {limit}"))
}

/// The whole line as C's `strtol` reads it with base 0, if it fits.
fn c_integer(line: &[u8]) -> Option<i64> {
    let (negative, rest) = sign(skip_space(line));
    let (base, rest) = match rest {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', ..] => (8, rest),
        _ => (10, rest),
    };
    if rest.is_empty() {
        return None;
    }
    let mut number: i64 = 0;
    for byte in rest {
        let digit = i64::from(digit(*byte).filter(|digit| *digit < base)?);
        number = number.checked_mul(i64::from(base))?;
        number = if negative { number.checked_sub(digit)? } else { number.checked_add(digit)? };
    }
    Some(number)
}

/// The line as Python's `int` reads it, to its end or to a NUL.
fn python_integer(line: &[u8], base: Option<u32>, limit: u32) -> Result<Argument<'static>, Error> {
    let (negative, rest) = sign(trim_space(before_nul(line)));
    let (base, rest, decimal) = match (base, rest) {
        (Some(base), rest) => (base, rest, false),
        (None, [b'0', b'x' | b'X', rest @ ..]) => {
            (16, rest.strip_prefix(b"_").unwrap_or(rest), false)
        }
        (None, [b'0', b'o' | b'O', rest @ ..]) => {
            (8, rest.strip_prefix(b"_").unwrap_or(rest), false)
        }
        (None, [b'0', b'b' | b'B', rest @ ..]) => {
            (2, rest.strip_prefix(b"_").unwrap_or(rest), false)
        }
        (None, [b'0', ..]) => (10, rest, true),
        (None, rest) => (10, rest, false),
    };
    let wrong = || argument("the line is no integer");
    let limit_bytes = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut magnitude: Vec<u8> = Vec::new();
    let mut after_digit = false;
    for byte in rest {
        if *byte == b'_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = digit(*byte).filter(|digit| *digit < base).ok_or_else(wrong)?;
        after_digit = true;
        let mut carry = digit;
        for part in &mut magnitude {
            carry = u32::from(*part).wrapping_mul(base).wrapping_add(carry);
            *part = low_byte(carry);
            carry >>= 8;
        }
        if carry > 0 {
            magnitude.push(low_byte(carry));
        }
        if magnitude.len() > limit_bytes {
            return Err(over_integer_limit(limit));
        }
    }
    // A decimal number does not begin with a zero, unless it is zero.
    if !after_digit || (decimal && !magnitude.is_empty()) {
        return Err(wrong());
    }
    magnitude.push(0);
    if negative {
        let mut carry = true;
        for part in &mut magnitude {
            let (value, overflow) = (!*part).overflowing_add(u8::from(carry));
            *part = value;
            carry = overflow;
        }
    }
    let len = match integer(&magnitude) {
        Argument::Int(number) => return Ok(Argument::Int(number)),
        Argument::Long(bytes) => bytes.len(),
        _ => 0,
    };
    magnitude.truncate(len);
    Ok(Argument::Long(Cow::Owned(magnitude)))
}

/// A line as C has it.
fn before_nul(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

fn skip_space(text: &[u8]) -> &[u8] {
    let first = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    text.get(first..).unwrap_or_default()
}

fn trim_space(text: &[u8]) -> &[u8] {
    let text = skip_space(text);
    let end =
        text.iter().rposition(|byte| !is_space(*byte)).map_or(0, |last| last.saturating_add(1));
    text.get(..end).unwrap_or_default()
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(36)
}

/// The number that `wanted` digits say, if they are there, and what follows them.
fn digits(text: &[u8], wanted: usize, base: u32) -> (Option<u32>, &[u8]) {
    let Some((head, rest)) = text.split_at_checked(wanted) else {
        return (None, text);
    };
    let mut value: u32 = 0;
    for byte in head {
        let Some(digit) = digit(*byte).filter(|digit| *digit < base) else {
            return (None, text);
        };
        value = value.wrapping_mul(base).wrapping_add(digit);
    }
    (Some(value), rest)
}

fn low_byte(value: u32) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low
}

/// Writes a code point in UTF-8, a surrogate as if it were a character.
fn push_code(text: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let part = |shift: u32, mask: u32, mark: u8| low_byte((code >> shift) & mask) | mark;
        text.extend([part(12, 0x0f, 0xe0), part(6, 0x3f, 0x80), part(0, 0x3f, 0x80)]);
    }
}
