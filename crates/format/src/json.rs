//! Reads JSON in place: a cursor over the text, no document, no recursion.
//!
//! Grammar: RFC 8259, strict. The cursor hands out spans of the text; strings are unescaped only when
//! they contain an escape. The text must be UTF-8 (it is a `&str`), so only ASCII is looked at.

use alloc::string::String;
use core::ops::Range;

/// Why reading stopped. Offsets count from the start of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stop {
    /// The text is not JSON: the first byte that cannot go on, and what could.
    Syntax { at: usize, expected: &'static str },
    /// A bracket opened more levels than allowed.
    Depth { at: usize },
    /// More tensors than the caller allows.
    Tensors { at: usize },
    /// A name longer than the caller allows.
    Name { at: usize, bytes: usize },
}

/// A string as it stands in the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RawString<'t> {
    /// Offset of the opening quote.
    pub(crate) at: usize,
    /// Between the quotes, escapes and all.
    pub(crate) raw: &'t str,
    pub(crate) escaped: bool,
    /// False only if every byte is printable ASCII and no `..` is in it.
    pub(crate) odd: bool,
}

/// A number as it stands in the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Number {
    /// A plain non-negative integer below 2^64.
    Plain(u64),
    /// Any other JSON number.
    Other,
}

/// What a value begins with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    String,
    Number,
    Array,
    Object,
    /// `true`, `false`.
    Boolean,
    Null,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Array => "an array",
            Self::Object => "an object",
            Self::Boolean => "a boolean",
            Self::Null => "null",
        }
    }
}

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    rest: &'t [u8],
}

type Step<T> = Result<T, Stop>;

/// Levels of nesting that can be kept track of: a bit each in a word.
const MAX_DEPTH: u32 = 64;

impl Stop {
    /// Where reading stopped.
    pub(crate) fn at(self) -> usize {
        match self {
            Self::Syntax { at, .. }
            | Self::Depth { at }
            | Self::Tensors { at }
            | Self::Name { at, .. } => at,
        }
    }
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, rest: text.as_bytes() }
    }

    /// Bytes read so far.
    pub(crate) fn at(&self) -> usize {
        self.text.len().wrapping_sub(self.rest.len())
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'t [u8] {
        self.rest
    }

    /// Goes on after `count` more bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// Takes a bracket that opens `level`, and the white space after it.
    pub(crate) fn open(&mut self, level: u32, depth: u32) -> Step<()> {
        if level > depth.min(MAX_DEPTH) {
            return Err(Stop::Depth { at: self.at() });
        }
        self.advance(1);
        self.skip_whitespace();
        Ok(())
    }

    pub(crate) fn fail<T>(&self, expected: &'static str) -> Step<T> {
        Err(Stop::Syntax { at: self.at(), expected })
    }

    #[inline]
    pub(crate) fn skip_whitespace(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', tail @ ..] = self.rest {
            self.rest = tail;
        }
    }

    /// Takes `literal` if the text goes on with it.
    #[inline]
    pub(crate) fn eat(&mut self, literal: &[u8]) -> bool {
        match self.rest.strip_prefix(literal) {
            Some(tail) => {
                self.rest = tail;
                true
            }
            None => false,
        }
    }

    /// Takes one byte, with white space around it.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Step<()> {
        self.skip_whitespace();
        if !self.eat(&[byte]) {
            return self.fail(expected);
        }
        self.skip_whitespace();
        Ok(())
    }

    /// After an item of an array or object: true if another follows, false at `close`, which is taken.
    #[inline]
    pub(crate) fn another(&mut self, close: u8) -> Step<bool> {
        self.skip_whitespace();
        match self.rest {
            [b',', tail @ ..] => {
                self.rest = tail;
                self.skip_whitespace();
                Ok(true)
            }
            [byte, tail @ ..] if *byte == close => {
                self.rest = tail;
                Ok(false)
            }
            _ => self.fail(if close == b'}' { "',' or '}'" } else { "',' or ']'" }),
        }
    }

    /// What the value here begins as. Takes nothing.
    pub(crate) fn kind(&self) -> Step<Kind> {
        Ok(match self.rest.first() {
            Some(b'"') => Kind::String,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b'[') => Kind::Array,
            Some(b'{') => Kind::Object,
            Some(b't') if self.rest.starts_with(b"true") => Kind::Boolean,
            Some(b'f') if self.rest.starts_with(b"false") => Kind::Boolean,
            Some(b'n') if self.rest.starts_with(b"null") => Kind::Null,
            _ => return self.fail("a value"),
        })
    }

    /// Takes a string.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a twentieth of the time that a header takes")]
    pub(crate) fn string(&mut self, expected: &'static str) -> Step<RawString<'t>> {
        let at = self.at();
        let [b'"', tail @ ..] = self.rest else {
            return self.fail(expected);
        };
        self.rest = tail;
        let (mut escaped, mut odd) = (false, false);
        loop {
            odd |= self.skip_string_bytes();
            match self.rest {
                [b'"', tail @ ..] => {
                    let from = at.wrapping_add(1);
                    let raw = self.text.get(from..self.at()).unwrap_or_default();
                    self.rest = tail;
                    return Ok(RawString { at, raw, escaped, odd });
                }
                [b'\\', ..] => {
                    escaped = true;
                    odd = true;
                    match take_escape(&mut self.rest) {
                        Ok(_) => {}
                        Err(Some(expected)) => return self.fail(expected),
                        // Cut off by the end of the text: that is where the fault is.
                        Err(None) => self.rest = &[],
                    }
                }
                [] => return self.fail("'\"'"),
                _ => return self.fail("no raw control character in a string"),
            }
        }
    }

    /// Skips to the next quote, backslash or control byte; true if a byte on the way was not printable
    /// ASCII or there were two dots in a row (it may also be true otherwise, rarely).
    #[inline]
    fn skip_string_bytes(&mut self) -> bool {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080_8080;
        // The highest bits of these are those of the bytes that are 0: up to the lowest such byte.
        let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
        let (mut odd, mut last_dot) = (0_u64, 0_u64);
        while let Some((chunk, tail)) = self.rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*chunk);
            let controls = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word;
            let quotes = zero_bytes(word ^ ONES.wrapping_mul(u64::from(b'"')));
            let backslashes = zero_bytes(word ^ ONES.wrapping_mul(u64::from(b'\\')));
            let dots = zero_bytes(word ^ ONES.wrapping_mul(u64::from(b'.'))) & HIGHS;
            let stops = (controls | quotes | backslashes) & HIGHS;
            let unprintable = (word | word.wrapping_add(ONES)) & HIGHS;
            let odd_here = unprintable | (dots & ((dots << 8) | last_dot));
            if stops != 0 {
                // Bytes from the first stop on are not ours.
                let ours = (stops & stops.wrapping_neg()).wrapping_sub(1);
                let count = usize::try_from(stops.trailing_zeros() / 8).unwrap_or_default();
                self.advance(count);
                return (odd | (odd_here & ours)) != 0;
            }
            odd |= odd_here;
            last_dot = dots >> 56;
            self.rest = tail;
        }
        let mut dot = last_dot != 0;
        let mut tail_odd = odd != 0;
        while let [byte @ (0x20..=0x21 | 0x23..=0x5b | 0x5d..), tail @ ..] = self.rest {
            tail_odd |= *byte >= 0x7f || (dot && *byte == b'.');
            dot = *byte == b'.';
            self.rest = tail;
        }
        tail_odd
    }

    /// Takes a number.
    #[inline]
    pub(crate) fn number(&mut self) -> Step<Number> {
        if let Some(plain) = self.plain_number() {
            return Ok(Number::Plain(plain));
        }
        self.any_number()
    }

    /// Takes a plain non-negative integer below 2^64, or nothing.
    #[inline]
    pub(crate) fn plain_number(&mut self) -> Option<u64> {
        let [first @ b'0'..=b'9', tail @ ..] = self.rest else {
            return None;
        };
        let mut rest = tail;
        let mut value = u64::from(first.wrapping_sub(b'0'));
        if *first != b'0' {
            while let [digit @ b'0'..=b'9', tail @ ..] = rest {
                let digit = u64::from(digit.wrapping_sub(b'0'));
                value = value.checked_mul(10)?.checked_add(digit)?;
                rest = tail;
            }
        }
        if let [b'.' | b'e' | b'E', ..] = rest {
            return None;
        }
        self.rest = rest;
        Some(value)
    }

    fn any_number(&mut self) -> Step<Number> {
        self.eat(b"-");
        match self.rest {
            [b'0', tail @ ..] => self.rest = tail,
            _ => self.digits()?,
        }
        if self.eat(b".") {
            self.digits()?;
        }
        if self.eat(b"e") || self.eat(b"E") {
            if !self.eat(b"+") {
                self.eat(b"-");
            }
            self.digits()?;
        }
        Ok(Number::Other)
    }

    fn digits(&mut self) -> Step<()> {
        let mut any = false;
        while let [b'0'..=b'9', tail @ ..] = self.rest {
            self.rest = tail;
            any = true;
        }
        if any { Ok(()) } else { self.fail("a digit") }
    }

    /// Takes any value whose first bracket would open level `level` (the outer object is level 1).
    pub(crate) fn skip_value(&mut self, level: u32, depth: u32) -> Step<()> {
        // One bit a level: 1 for an object, 0 for an array.
        let mut objects = 0_u64;
        let mut open = 0_u32;
        loop {
            match self.kind()? {
                Kind::String => {
                    self.string("a value")?;
                }
                Kind::Number => {
                    if open > 0 && objects & 1 == 0 {
                        self.skip_integers();
                    }
                    self.number()?;
                }
                Kind::Boolean => {
                    let _ = self.eat(b"true") || self.eat(b"false");
                }
                Kind::Null => {
                    self.eat(b"null");
                }
                kind @ (Kind::Array | Kind::Object) => {
                    self.open(level.saturating_add(open), depth)?;
                    let object = kind == Kind::Object;
                    objects = (objects << 1) | u64::from(object);
                    open = open.saturating_add(1);
                    if !self.eat(if object { b"}" } else { b"]" }) {
                        if object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                    objects >>= 1;
                    open = open.saturating_sub(1);
                }
            }
            // A value has ended: go on in what is open, closing what closes.
            loop {
                if open == 0 {
                    return Ok(());
                }
                let object = objects & 1 == 1;
                if self.another(if object { b'}' } else { b']' })? {
                    if object {
                        self.skip_key()?;
                    }
                    break;
                }
                objects >>= 1;
                open = open.saturating_sub(1);
            }
        }
    }

    /// In an array, skips integers that a comma and another follow: long arrays go by fast.
    fn skip_integers(&mut self) {
        let mut rest = self.rest;
        loop {
            rest = match rest {
                [b'0', tail @ ..] => tail,
                [b'1'..=b'9', tail @ ..] => {
                    let digits = tail.iter().take_while(|byte| byte.is_ascii_digit());
                    tail.get(digits.count()..).unwrap_or_default()
                }
                _ => return,
            };
            let Some(tail @ [b'0'..=b'9', ..]) = rest.strip_prefix(b",") else {
                return;
            };
            (rest, self.rest) = (tail, tail);
        }
    }

    fn skip_key(&mut self) -> Step<()> {
        self.string("a string")?;
        self.expect(b':', "':'")
    }
}

impl<'t> RawString<'t> {
    /// Where the string is in the text, quotes included.
    pub(crate) fn span(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.raw.len()).saturating_add(2)
    }

    /// Appends the string with its escapes resolved.
    pub(crate) fn unescape_onto(&self, out: &mut String) {
        if !self.escaped {
            out.push_str(self.raw);
            return;
        }
        let mut rest = self.raw;
        while let Some((plain, _)) = rest.split_once('\\') {
            out.push_str(plain);
            let mut escape = rest.as_bytes().get(plain.len()..).unwrap_or_default();
            // The cursor has accepted every escape of this string.
            let Ok(character) = take_escape(&mut escape) else {
                return;
            };
            out.push(character);
            let from = rest.len().wrapping_sub(escape.len());
            rest = rest.get(from..).unwrap_or_default();
        }
        out.push_str(rest);
    }

    /// The string, using `scratch` if it has escapes.
    pub(crate) fn text<'s>(&self, scratch: &'s mut String) -> &'s str
    where
        't: 's,
    {
        if !self.escaped {
            return self.raw;
        }
        scratch.clear();
        self.unescape_onto(scratch);
        scratch
    }
}

/// Takes one escape sequence; on failure nothing, and says what was expected, or `None` if it is cut off.
fn take_escape(rest: &mut &[u8]) -> Result<char, Option<&'static str>> {
    let [b'\\', letter, tail @ ..] = *rest else {
        return Err(None);
    };
    let (character, tail) = match letter {
        b'"' => ('"', tail),
        b'\\' => ('\\', tail),
        b'/' => ('/', tail),
        b'b' => ('\u{8}', tail),
        b'f' => ('\u{c}', tail),
        b'n' => ('\n', tail),
        b'r' => ('\r', tail),
        b't' => ('\t', tail),
        b'u' => take_unicode_escape(tail)?,
        _ => return Err(Some("an escape sequence")),
    };
    *rest = tail;
    Ok(character)
}

fn take_unicode_escape(rest: &[u8]) -> Result<(char, &[u8]), Option<&'static str>> {
    const LONE: Option<&str> = Some("a pair of surrogates");
    let (unit, rest) = take_hex(rest)?;
    match unit {
        0xd800..=0xdbff => {
            let tail = match rest {
                [b'\\', b'u', tail @ ..] => tail,
                [] | [b'\\'] => return Err(None),
                _ => return Err(LONE),
            };
            let (low, tail) = take_hex(tail).map_err(|expected| expected.and(LONE))?;
            let pair = char::decode_utf16([unit, low]).next().and_then(Result::ok).ok_or(LONE)?;
            Ok((pair, tail))
        }
        _ => char::from_u32(u32::from(unit)).map(|character| (character, rest)).ok_or(LONE),
    }
}

fn take_hex(rest: &[u8]) -> Result<(u16, &[u8]), Option<&'static str>> {
    let mut unit = 0_u16;
    for place in 0..4 {
        let digit = char::from(*rest.get(place).ok_or(None)?);
        let digit = digit.to_digit(16).ok_or(Some("four hexadecimal digits"))?;
        unit = (unit << 4) | u16::try_from(digit).unwrap_or_default();
    }
    Ok((unit, rest.get(4..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn skip(text: &str) -> Result<usize, Stop> {
        let mut cursor = Cursor::new(text);
        cursor.skip_value(1, 8).map(|()| cursor.at())
    }

    #[test]
    fn values_end_where_they_end() {
        for text in [
            "0",
            "-0",
            "10",
            "1.5",
            "1e9",
            "1E+9",
            "-1.25e-3",
            "true",
            "false",
            "null",
            "\"\"",
            "\"a\\n\\u0041\\ud83d\\ude00\"",
            "[]",
            "{}",
            "[1,[2,{\"a\":[]}],\"]\"]",
            "{ \"a\" : 1 , \"b\" : { } }",
            "[ 1 , 2 ]",
            "[10,0,200,3.5,4,-1,7e2,88,[1,2],9]",
        ] {
            assert_eq!(skip(text), Ok(text.len()), "{text}");
            assert_eq!(skip(&format!("{text},1")), Ok(text.len()), "{text},1");
            assert_eq!(skip(&format!("{text},")), Ok(text.len()), "{text},");
        }
    }

    #[test]
    fn a_syntax_error_is_at_the_first_byte_that_cannot_go_on() {
        for (text, want) in [
            ("", 0),
            ("-", 1),
            ("1.", 2),
            ("1.]", 2),
            ("1e", 2),
            ("1e+", 3),
            ("+1", 0),
            ("NaN", 0),
            ("nul", 0),
            ("True", 0),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("[01]", 2),
            ("[1,2,03]", 6),
            ("[1,2,]", 5),
            ("[1,,2]", 3),
            ("[1,23", 5),
            ("{\"a\":1,2}", 7),
            ("[0x1]", 2),
            ("{\"a\" 1}", 5),
            ("{a:1}", 1),
            ("[1 2]", 3),
            ("[1}", 2),
            ("{\"a\":1]", 6),
            ("\"a", 2),
            ("\"\u{1}\"", 1),
            ("\"ab\\x\"", 3),
            ("\"\\u12G4\"", 1),
            ("\"\\ud800\"", 1),
            ("\"\\ud800\\u0041\"", 1),
            ("\"\\udc00\"", 1),
            ("[", 1),
            ("{", 1),
            ("[.5]", 1),
            ("['a']", 1),
            ("[/*c*/1]", 1),
        ] {
            match skip(text) {
                Err(Stop::Syntax { at, .. }) => assert_eq!(at, want, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn depth_is_counted_from_the_level_given() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(skip(&nested(8)), Ok(16));
        assert_eq!(skip(&nested(9)), Err(Stop::Depth { at: 8 }));
        assert_eq!(skip(&"[{\"a\":".repeat(100)), Err(Stop::Depth { at: 24 }));
        let mut cursor = Cursor::new("[[]]");
        assert_eq!(cursor.skip_value(8, 8), Err(Stop::Depth { at: 1 }));
    }

    #[test]
    fn numbers_are_plain_below_two_to_the_64() {
        for (text, want) in [
            ("0", Number::Plain(0)),
            ("18446744073709551615", Number::Plain(u64::MAX)),
            ("18446744073709551616", Number::Other),
            ("99999999999999999999999", Number::Other),
            ("-1", Number::Other),
            ("-0", Number::Other),
            ("1.0", Number::Other),
            ("1e0", Number::Other),
        ] {
            let mut cursor = Cursor::new(text);
            assert_eq!(cursor.number(), Ok(want), "{text}");
            assert_eq!(cursor.at(), text.len(), "{text}");
        }
    }

    #[test]
    fn strings_of_every_length_end_at_their_quote_and_odd_ones_are_told() {
        for length in 0..40 {
            let plain = "ab.c".chars().cycle().take(length).collect::<String>();
            let quoted = format!("\"{plain}\",\"..");
            let mut cursor = Cursor::new(&quoted);
            let string = cursor.string("a string").unwrap();
            assert_eq!((string.raw, string.escaped, string.odd), (plain.as_str(), false, false));
            for (insert, odd) in
                [("..", true), ("é", true), ("\u{7f}", true), ("\\n", true), ("./", false)]
            {
                for position in 0..=length {
                    let (head, tail) = plain.split_at(position);
                    let name = format!("{head}{insert}{tail}");
                    let quoted = format!("\"{name}\"");
                    let string = Cursor::new(&quoted).string("a string").unwrap();
                    let really_odd = odd || name.contains("..");
                    assert!(string.odd || !really_odd, "{name}");
                    assert_eq!(string.raw, name);
                }
            }
        }
    }

    #[test]
    fn escapes_resolve() {
        let quoted = r#""a\"\\\/\b\f\n\r\t\u0041\ud83d\ude00z""#;
        let string = Cursor::new(quoted).string("a string").unwrap();
        let mut scratch = String::new();
        assert_eq!(string.text(&mut scratch), "a\"\\/\u{8}\u{c}\n\r\tA\u{1f600}z");
        let all: Vec<String> = ["\"\"", "\"x\""]
            .iter()
            .map(|text| Cursor::new(text).string("").unwrap().text(&mut scratch).to_string())
            .collect();
        assert_eq!(all, ["", "x"]);
    }
}
