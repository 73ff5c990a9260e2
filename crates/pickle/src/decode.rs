//! Bytes of a pickle, as opcodes with their arguments. What they do is the [`machine`](crate::machine)'s business.
//!
//! Arguments are borrowed wherever the pickle has them as they are. A length is compared with what remains before
//! anything is done with it, so that a lie about it costs nothing. Text arguments are read as the C unpickler of
//! `CPython` reads them, which is not quite as `pickle.py` does.

mod text;

use alloc::borrow::Cow;
use alloc::format;

use crate::opcode::{ArgumentKind, LAST_PROTOCOL, Opcode};
use crate::{Error, Limits};

/// An opcode of a pickle, and what follows it.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "what an opcode is")]
pub struct Operation<'a> {
    /// Where the opcode is, in bytes.
    pub offset: u64,
    /// The opcode.
    pub opcode: Opcode,
    /// Its argument.
    pub argument: Argument<'a>,
}

/// What follows an opcode, decoded.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "pickle has no others, and protocol 5 is its last")]
pub enum Argument<'a> {
    /// Nothing, or nothing that counts.
    None,
    /// A memo index, a protocol, an extension code or the length of a frame.
    Number(u64),
    /// A truth value, as `INT` spells it.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that needs more than 64 bits, in two's complement, the lowest byte first.
    Long(Cow<'a, [u8]>),
    /// A float.
    Float(f64),
    /// Bytes, or a string of Python 2.
    Bytes(Cow<'a, [u8]>),
    /// Text in UTF-8, in which surrogates are written as if they were characters.
    Text(Cow<'a, [u8]>),
    /// A module and a name.
    Names(&'a str, &'a str),
}

/// How the opcodes keep to their frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the ways there are to leave a frame")]
pub enum FrameFault {
    /// An opcode or its argument goes beyond the end of its frame.
    Straddled,
    /// A frame begins before the last one ended.
    Nested,
}

/// Reads opcodes one after the other.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    position: usize,
    frame_end: usize,
    string_bytes: u64,
    integer_bytes: u32,
    frame_fault: Option<(u64, FrameFault)>,
    wanted: u64,
}

impl<'a> Decoder<'a> {
    /// At the start of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8], limits: &Limits) -> Self {
        Self::starting_at(bytes, 0, limits)
    }

    /// At a byte of these bytes.
    #[must_use]
    pub fn starting_at(bytes: &'a [u8], start: u64, limits: &Limits) -> Self {
        Self {
            bytes,
            position: usize::try_from(start).unwrap_or(usize::MAX),
            frame_end: 0,
            string_bytes: limits.string_bytes,
            integer_bytes: limits.integer_bytes,
            frame_fault: None,
            wanted: 0,
        }
    }

    /// How many bytes were read.
    #[must_use]
    pub fn position(&self) -> u64 {
        wide(self.position)
    }

    /// After `pickle-truncated`: how many bytes there would have to be for the string or frame that is cut off, if it
    /// is one.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Bytes of the last frame that were not read yet.
    #[must_use]
    pub fn left_of_frame(&self) -> u64 {
        wide(self.frame_end.saturating_sub(self.position))
    }

    /// The first opcode that did not keep to its frame, and how. `CPython`'s C unpickler reads on, other readers stop.
    #[must_use]
    pub fn frame_fault(&self) -> Option<(u64, FrameFault)> {
        self.frame_fault
    }

    /// Reads the next opcode. Not to be called after `STOP`: what follows is no part of the pickle.
    ///
    /// # Errors
    ///
    /// `pickle-truncated` if the bytes end, `pickle-opcode` for a byte that is none, `pickle-argument` for an argument
    /// that the opcode cannot have, and `limit-string` and `limit-integer`. The offset is the opcode's.
    #[inline]
    pub fn next_operation(&mut self) -> Result<Operation<'a>, Error> {
        let start = self.position;
        let Some(&byte) = self.bytes.get(start) else {
            return Err(self.no_stop());
        };
        let Some(opcode) = Opcode::from_byte(byte) else {
            return Err(unknown(start, byte));
        };
        self.position = start.saturating_add(1);
        let argument = match opcode.argument() {
            ArgumentKind::None => Ok(Argument::None),
            _ => self.argument(opcode),
        };
        let argument = match argument {
            Ok(argument) => argument,
            Err(error) => return Err(error.at(wide(start)).opcode(opcode.name())),
        };
        if self.position > self.frame_end && start < self.frame_end {
            self.frame_fault.get_or_insert((wide(start), FrameFault::Straddled));
        }
        Ok(Operation { offset: wide(start), opcode, argument })
    }

    #[inline]
    fn argument(&mut self, opcode: Opcode) -> Result<Argument<'a>, Error> {
        Ok(match opcode.argument() {
            ArgumentKind::None => Argument::None,
            ArgumentKind::Byte => {
                let [byte] = self.array()?;
                match opcode {
                    Opcode::BinInt1 => Argument::Int(i64::from(byte)),
                    Opcode::Proto if byte > LAST_PROTOCOL => {
                        return Err(argument(format!("protocol {byte} is not one of 0 to 5")));
                    }
                    _ => Argument::Number(u64::from(byte)),
                }
            }
            ArgumentKind::Half => {
                let half = u16::from_le_bytes(self.array()?);
                match opcode {
                    Opcode::BinInt2 => Argument::Int(i64::from(half)),
                    _ => Argument::Number(u64::from(half)),
                }
            }
            ArgumentKind::Word => Argument::Number(u64::from(u32::from_le_bytes(self.array()?))),
            ArgumentKind::SignedWord => {
                let number = i64::from(i32::from_le_bytes(self.array()?));
                match opcode {
                    Opcode::BinInt => Argument::Int(number),
                    _ => {
                        Argument::Number(u64::try_from(number).map_err(|_| {
                            argument(format!("{number} is no code of an extension"))
                        })?)
                    }
                }
            }
            ArgumentKind::Float => Argument::Float(f64::from_be_bytes(self.array()?)),
            ArgumentKind::Frame => self.frame()?,
            ArgumentKind::Counted1 => {
                let [len] = self.array()?;
                self.counted(opcode, u64::from(len))?
            }
            ArgumentKind::Counted4 => {
                let len = u32::from_le_bytes(self.array()?);
                self.counted(opcode, u64::from(len))?
            }
            ArgumentKind::CountedSigned4 => {
                let len = i32::from_le_bytes(self.array()?);
                let len = u64::try_from(len)
                    .map_err(|_| argument(format!("the length is negative: {len}")))?;
                self.counted(opcode, len)?
            }
            ArgumentKind::Counted8 => {
                let len = u64::from_le_bytes(self.array()?);
                self.counted(opcode, len)?
            }
            ArgumentKind::Line => self.line_argument(opcode)?,
            ArgumentKind::TwoLines => {
                let module = self.name("module")?;
                let name = self.name("name")?;
                if opcode == Opcode::Inst && !(module.is_ascii() && name.is_ascii()) {
                    return Err(argument("the module and the name are not ASCII"));
                }
                Argument::Names(module, name)
            }
        })
    }

    fn frame(&mut self) -> Result<Argument<'a>, Error> {
        let opcode_at = self.position.saturating_sub(1);
        let len = u64::from_le_bytes(self.array()?);
        let end = usize::try_from(len).ok().and_then(|len| self.position.checked_add(len));
        let Some(end) = end.filter(|end| *end <= self.bytes.len()) else {
            return Err(self.truncated("a frame", len));
        };
        if self.position < self.frame_end {
            self.frame_fault.get_or_insert((wide(opcode_at), FrameFault::Nested));
        }
        self.frame_end = end;
        Ok(Argument::Number(len))
    }

    #[inline]
    fn counted(&mut self, opcode: Opcode, len: u64) -> Result<Argument<'a>, Error> {
        let what = match opcode {
            Opcode::Long1 | Opcode::Long4 => "an integer",
            _ => "a string",
        };
        let bytes = self.take(what, len)?;
        Ok(match opcode {
            Opcode::Long1 | Opcode::Long4 => {
                if len > u64::from(self.integer_bytes) {
                    return Err(self.over_integer_limit());
                }
                text::integer(bytes)
            }
            _ => {
                if len > self.string_bytes {
                    return Err(self.over_string_limit(len));
                }
                match opcode {
                    Opcode::BinUnicode | Opcode::ShortBinUnicode | Opcode::BinUnicode8 => {
                        if !text::is_text(bytes) {
                            return Err(argument("the text is not UTF-8"));
                        }
                        Argument::Text(Cow::Borrowed(bytes))
                    }
                    _ => Argument::Bytes(Cow::Borrowed(bytes)),
                }
            }
        })
    }

    fn line_argument(&mut self, opcode: Opcode) -> Result<Argument<'a>, Error> {
        let line = self.line()?;
        if wide(line.len()) > self.string_bytes {
            return Err(self.over_string_limit(wide(line.len())));
        }
        match opcode {
            Opcode::Int => text::int_line(line, self.integer_bytes),
            Opcode::Long => text::long_line(line, self.integer_bytes),
            Opcode::Float => text::float_line(line),
            Opcode::String => text::string_line(line),
            Opcode::Unicode => text::unicode_line(line),
            Opcode::Put | Opcode::Get => text::index_line(line),
            _ => Ok(Argument::Bytes(Cow::Borrowed(line))),
        }
    }

    /// A line that is a module or a name, without its newline.
    fn name(&mut self, what: &str) -> Result<&'a str, Error> {
        let line = self.line()?;
        if line.is_empty() {
            return Err(argument(format!("the {what} is empty")));
        }
        core::str::from_utf8(line).map_err(|_| argument(format!("the {what} is not UTF-8")))
    }

    fn line(&mut self) -> Result<&'a [u8], Error> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let Some(len) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(Error::new("pickle-truncated", "the pickle ends in a line of text"));
        };
        self.position = self.position.saturating_add(len).saturating_add(1);
        Ok(rest.get(..len).unwrap_or_default())
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.bytes.get(self.position..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(array) => {
                self.position = self.position.saturating_add(N);
                Ok(*array)
            }
            None => Err(Error::new("pickle-truncated", "the pickle ends in the argument")),
        }
    }

    #[inline]
    fn take(&mut self, what: &str, len: u64) -> Result<&'a [u8], Error> {
        let end = usize::try_from(len).ok().and_then(|len| self.position.checked_add(len));
        match end.and_then(|end| Some((end, self.bytes.get(self.position..end)?))) {
            Some((end, bytes)) => {
                self.position = end;
                Ok(bytes)
            }
            None => Err(self.truncated(what, len)),
        }
    }

    #[cold]
    fn truncated(&mut self, what: &str, len: u64) -> Error {
        self.wanted = wide(self.position).saturating_add(len);
        let left = self.bytes.len().saturating_sub(self.position);
        Error::new(
            "pickle-truncated",
            format!("{what} of {len} bytes is claimed where {left} are left"),
        )
    }

    #[cold]
    fn no_stop(&self) -> Error {
        Error::new("pickle-truncated", "the pickle ends without STOP").at(self.position())
    }

    #[cold]
    fn over_string_limit(&self, len: u64) -> Error {
        Error::new(
            "limit-string",
            format!("a string has {len} bytes, over the limit of {}", self.string_bytes),
        )
    }

    #[cold]
    fn over_integer_limit(&self) -> Error {
        text::over_integer_limit(self.integer_bytes)
    }
}

/// An argument that the opcode cannot have.
#[cold]
fn argument(message: impl Into<alloc::string::String>) -> Error {
    Error::new("pickle-argument", message)
}

#[cold]
fn unknown(start: usize, byte: u8) -> Error {
    Error::new("pickle-opcode", format!("byte {byte:#04x} is no opcode")).at(wide(start))
}

pub(crate) fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
