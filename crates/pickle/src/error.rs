//! Why a file could not be read to its end.

use alloc::string::String;
use core::fmt;
use core::ops::Range;

use weigh_format::text::escaped;

/// Why reading stopped, and where.
///
/// `Display` gives one line, with text from the file escaped.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Error {
    /// The stable kebab-case code of what is wrong, as `"pickle-truncated"`.
    pub code: &'static str,
    /// What is wrong, with the numbers. Text from the file in it is not escaped.
    pub message: String,
    /// The byte where it is: of the file, or of the member that `member` names.
    pub offset: Option<u64>,
    /// The name of the opcode there.
    pub opcode: Option<&'static str>,
    /// The member of an archive.
    pub member: Option<String>,
}

impl Error {
    /// An error of this code.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), offset: None, opcode: None, member: None }
    }

    /// The same, at this byte.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The same, at this opcode.
    #[must_use]
    pub fn opcode(mut self, name: &'static str) -> Self {
        self.opcode = Some(name);
        self
    }

    /// The same, in this member of an archive.
    #[must_use]
    pub fn member(mut self, name: &str) -> Self {
        self.member = Some(name.into());
        self
    }

    pub(crate) fn past_end(span: Range<u64>, len: u64) -> Self {
        let Range { start, end } = span;
        Self::new(
            "past-end",
            alloc::format!("bytes {start} to {end} are wanted, and the file has {len}"),
        )
        .at(start)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(member) = &self.member {
            write!(f, "{}: ", escaped(member))?;
        }
        match (self.offset, self.opcode) {
            (Some(offset), Some(opcode)) => write!(f, "byte {offset}, {opcode}: ")?,
            (Some(offset), None) => write!(f, "byte {offset}: ")?,
            (None, _) => {}
        }
        write!(f, "{}", escaped(&self.message))
    }
}

impl core::error::Error for Error {}
