//! Why a load fails.

use std::fmt;

use crate::{Error, OutOfMemory};

/// Why a load came to nothing. What is in its memory is of no use.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// A file could not be read, or changed.
    File(Error),
    /// There is not enough memory.
    OutOfMemory(OutOfMemory),
    /// It was asked to stop.
    Cancelled,
    /// The caller's memory does not fit the plan: another number of parts, or other lengths.
    Destination {
        /// The number of the part.
        part: usize,
        /// Bytes of it.
        wanted: u64,
        /// Bytes of memory for it.
        got: u64,
    },
    /// The plan reads a file that the caller gave no source for.
    NoSource {
        /// The number of the file.
        file: usize,
    },
    /// The plan converts a part, and the caller gave nothing that does.
    NoHook {
        /// The number of the part.
        part: usize,
    },
}

impl ReadError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::OutOfMemory(_) => "out-of-memory",
            Self::Cancelled => "cancelled",
            Self::Destination { .. } => "destination",
            Self::NoSource { .. } => "no-source",
            Self::NoHook { .. } => "no-hook",
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::OutOfMemory(error) => error.fmt(f),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Destination { part, wanted, got } => {
                write!(f, "part {part} has {wanted} bytes, and the memory for it {got}")
            }
            Self::NoSource { file } => write!(f, "there is no source for file {file}"),
            Self::NoHook { part } => write!(f, "there is nothing to convert part {part} with"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::OutOfMemory(error) => Some(error),
            Self::Cancelled
            | Self::Destination { .. }
            | Self::NoSource { .. }
            | Self::NoHook { .. } => None,
        }
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}

impl From<OutOfMemory> for ReadError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}
