//! What can go wrong with a file.

use std::fmt;
use std::path::{Path, PathBuf};

/// A failure to read a file, with its path.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    kind: ErrorKind,
}

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file.
    Missing,
    /// The file may not be read.
    Denied,
    /// It is a folder, where a file was wanted.
    IsFolder,
    /// It is a pipe, a socket or a device, where a file was wanted.
    NotAFile,
    /// The file ended before the bytes that were wanted: it was cut off while it was read.
    Short {
        /// Where reading began, in bytes.
        offset: u64,
        /// How many bytes were wanted.
        wanted: u64,
        /// How many there were.
        got: u64,
    },
    /// Reading failed.
    Failed {
        /// Where reading began, in bytes.
        offset: u64,
        /// How many bytes were wanted.
        wanted: u64,
        /// How many had been read.
        got: u64,
        /// What the system reported.
        error: std::io::Error,
    },
    /// The file is not what it was when it was opened: what was read of it may belong to two versions.
    Changed(Change),
    /// Anything else that the system reports.
    System(std::io::Error),
}

/// How a file changed while it was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// It has another length.
    Length {
        /// Bytes when it was opened.
        before: u64,
        /// Bytes now.
        now: u64,
    },
    /// Something wrote to it.
    Written,
    /// Another file has its path.
    Replaced,
}

impl Error {
    /// A failure with this file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, kind: ErrorKind) -> Self {
        Self { path: path.into(), kind }
    }

    /// What the system reported about this file, told apart.
    #[must_use]
    pub fn system(path: &Path, error: std::io::Error) -> Self {
        use std::io::ErrorKind as System;
        let kind = match error.kind() {
            System::NotFound | System::NotADirectory => ErrorKind::Missing,
            System::PermissionDenied => ErrorKind::Denied,
            System::IsADirectory => ErrorKind::IsFolder,
            _ => ErrorKind::System(error),
        };
        Self::new(path, kind)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The stable code of what went wrong.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::Missing => "io-missing",
            ErrorKind::Denied => "io-denied",
            ErrorKind::IsFolder => "io-is-folder",
            ErrorKind::NotAFile => "io-not-a-file",
            ErrorKind::Short { .. } => "io-short",
            ErrorKind::Failed { .. } => "io-failed",
            ErrorKind::Changed(_) => "io-changed",
            ErrorKind::System(_) => "io-system",
        }
    }

    /// What to do about it, where that can be said.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        Some(match self.kind {
            ErrorKind::Missing => "Check the spelling of the path.",
            ErrorKind::Denied => {
                "Check the file's mode: some writers leave it readable by its owner only."
            }
            ErrorKind::IsFolder => "Give a file in it.",
            ErrorKind::NotAFile => "Write its content to a file first.",
            ErrorKind::Short { .. } | ErrorKind::Changed(_) => {
                "Something is writing to the file: wait for it to end."
            }
            ErrorKind::Failed { .. } => "The disk or the connection to it may be failing.",
            ErrorKind::System(_) => return None,
        })
    }
}

/// The path is shown as the system has it: escape it before it reaches a terminal.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            ErrorKind::Missing => f.write_str("no such file or folder"),
            ErrorKind::Denied => f.write_str("permission denied"),
            ErrorKind::IsFolder => f.write_str("is a folder"),
            ErrorKind::NotAFile => f.write_str("is not a regular file"),
            ErrorKind::Short { offset, wanted, got } => write!(
                f,
                "the file ended while it was read: wanted {wanted} bytes at {offset}, got {got}"
            ),
            ErrorKind::Failed { offset, wanted, got, error } => {
                write!(f, "reading {wanted} bytes at {offset} failed after {got}: {error}")
            }
            ErrorKind::Changed(Change::Length { before, now }) => {
                let change = if now < before { "shrank" } else { "grew" };
                write!(f, "the file {change} after it was opened: {before} bytes became {now}")
            }
            ErrorKind::Changed(Change::Written) => {
                f.write_str("the file was written to after it was opened")
            }
            ErrorKind::Changed(Change::Replaced) => {
                f.write_str("the file was replaced by another after it was opened")
            }
            ErrorKind::System(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::System(error) | ErrorKind::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}
