//! The dictionary literal of a `.npy` header: text, truth values, tuples of integers, and lists that are skipped.

use alloc::vec::Vec;

/// A value.
#[derive(Debug)]
pub(super) enum Value {
    Text(Vec<u8>),
    Bool(bool),
    Tuple(Vec<u64>),
    /// A structured type: what is in it is not kept.
    List,
}

/// What is left of a literal.
#[derive(Debug)]
pub(super) struct Literal<'a> {
    rest: &'a [u8],
}

type Fault = &'static str;

impl<'a> Literal<'a> {
    /// The entries of a dictionary that is all of this text, but for the padding.
    pub(super) fn dictionary(text: &'a [u8]) -> Result<Vec<(Vec<u8>, Value)>, Fault> {
        let mut literal = Self { rest: text };
        let mut entries = Vec::new();
        literal.expect(b'{')?;
        while !literal.take(b'}') {
            let key = literal.text()?;
            literal.expect(b':')?;
            entries.push((key, literal.value()?));
            if entries.len() > 3 {
                return Err("there are more than three keys");
            }
            if !literal.take(b',') {
                literal.expect(b'}')?;
                break;
            }
        }
        literal.skip_space();
        if literal.rest.iter().all(|byte| *byte == 0) {
            Ok(entries)
        } else {
            Err("something follows the dictionary")
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes this byte, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.take(byte) { Ok(()) } else { Err("the dictionary is malformed") }
    }

    fn word(&mut self, word: &[u8]) -> bool {
        self.skip_space();
        self.rest.strip_prefix(word).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn text(&mut self) -> Result<Vec<u8>, Fault> {
        self.skip_space();
        let (quote, rest) = self.rest.split_first().ok_or("the dictionary ends early")?;
        if !matches!(quote, b'\'' | b'"') {
            return Err("a text has no quote");
        }
        let end = rest.iter().position(|byte| byte == quote).ok_or("a text has no end")?;
        let (text, rest) = rest.split_at_checked(end).ok_or("a text has no end")?;
        if text.contains(&b'\\') {
            return Err("a text has an escape");
        }
        self.rest = rest.split_first().map_or(&[][..], |(_, rest)| rest);
        Ok(text.to_vec())
    }

    fn value(&mut self) -> Result<Value, Fault> {
        self.skip_space();
        match self.rest.first() {
            Some(b'\'' | b'"') => self.text().map(Value::Text),
            Some(b'(') => self.tuple().map(Value::Tuple),
            Some(b'[') => self.list().map(|()| Value::List),
            _ if self.word(b"True") => Ok(Value::Bool(true)),
            _ if self.word(b"False") => Ok(Value::Bool(false)),
            _ => Err("a value is neither text, nor a truth value, nor a tuple or a list"),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, Fault> {
        let mut numbers = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            if numbers.len() >= 64 {
                return Err("there are more than 64 dimensions");
            }
            numbers.push(self.number()?);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<u64, Fault> {
        self.skip_space();
        let end = self.rest.iter().position(|byte| !byte.is_ascii_digit());
        let end = end.unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at_checked(end).ok_or("a dimension is no number")?;
        let number = core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        // Python 2 wrote long integers with a letter.
        self.rest = rest.strip_prefix(b"L").unwrap_or(rest);
        number.ok_or("a dimension is no number below 2^64")
    }

    /// Goes past a list, whatever is in it, without recursion.
    fn list(&mut self) -> Result<(), Fault> {
        let mut depth = 0_u32;
        loop {
            self.skip_space();
            match self.rest.split_first() {
                Some((b'[' | b'(' | b'{', rest)) => {
                    depth = depth.saturating_add(1);
                    self.rest = rest;
                }
                Some((b']' | b')' | b'}', rest)) => {
                    depth = depth.saturating_sub(1);
                    self.rest = rest;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Some((b'\'' | b'"', _)) => {
                    self.text()?;
                }
                Some((_, rest)) => self.rest = rest,
                None => return Err("a list has no end"),
            }
        }
    }
}
