//! What can go wrong with a file.

use std::fmt;
use std::path::{Path, PathBuf};

/// A failure to read or to write a file, with its path.
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
    /// The file may not be read, or its folder not be written to.
    Denied,
    /// It is a folder, where a file was wanted.
    IsFolder,
    /// It is a pipe, a socket or a device, where a file was wanted.
    NotAFile,
    /// It is a file, where a folder was wanted.
    NotAFolder,
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
    /// There is a file already, and it was not to be replaced.
    Exists,
    /// The file system is full.
    NoSpace {
        /// How many bytes more were wanted; none for a file of no length.
        wanted: u64,
    },
    /// The user, the group or the project may not have that much.
    Quota {
        /// How many bytes more were wanted; none for a file of no length.
        wanted: u64,
    },
    /// The file would be longer than the file system or a limit of this process (`ulimit -f`) lets it be.
    TooLarge {
        /// How long it would be, in bytes.
        wanted: u64,
    },
    /// It is on a file system that is not written to.
    ReadOnly,
    /// Another process, or another part of this one, is editing it in place; or, if it is a folder, is putting a
    /// set of files in place in it.
    Locked,
    /// Writing failed.
    WriteFailed {
        /// Where writing began, in bytes.
        offset: u64,
        /// How many bytes were to be written.
        wanted: u64,
        /// How many had been written.
        done: u64,
        /// What the system reported.
        error: std::io::Error,
    },
    /// What was written may not be on the disk.
    SyncFailed(std::io::Error),
    /// An edit of it in place was cut off, and cannot be undone: the file is of no use as it is.
    InterruptedEdit(Unmendable),
    /// The journal of an edit in place that is over, or what is at its path, is in the way of the next one and cannot
    /// be removed: what the system reported.
    StaleJournal(std::io::Error),
    /// It was asked for what cannot be done, whatever the file is: a mistake of the program's.
    Misuse(Misuse),
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

/// Why an edit in place that was cut off cannot be undone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unmendable {
    /// There is no journal beside the file.
    NoJournal,
    /// The journal is cut off, changed, or no file.
    BadJournal,
    /// The journal is somebody's who may not be able to write to the file: neither its owner's, nor the
    /// administrator's, nor the user's.
    Untrusted {
        /// The number of the user whose journal it is.
        owner: u32,
    },
    /// The journal is that of a file of another length.
    OtherLength {
        /// Bytes of the file that it is for.
        journal: u64,
        /// Bytes of this one.
        file: u64,
    },
    /// The journal is that of another edit, of this file or of one of the same length; or the file has been written
    /// to since.
    OtherEdit,
    /// There is a journal, and the file may not be written to.
    Denied,
    /// There is a journal, and the file is on a file system that is not written to.
    ReadOnly,
}

/// What cannot be asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Misuse {
    /// More was to be written to a new file that had been said to be complete.
    Complete,
    /// These are no head and what can take its place: of different lengths, shorter than the mark of an edit or
    /// beginning with it, or longer than any head.
    Head {
        /// Bytes of the head that was to be replaced.
        expected: usize,
        /// Bytes that were to take its place.
        new: usize,
    },
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
            System::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            System::StorageFull => ErrorKind::NoSpace { wanted: 0 },
            System::QuotaExceeded => ErrorKind::Quota { wanted: 0 },
            _ => ErrorKind::System(error),
        };
        Self::new(path, kind)
    }

    /// What the system reported when `wanted` bytes were to be written at `offset` and `done` of them had been.
    pub(crate) fn writing(
        path: &Path,
        offset: u64,
        wanted: u64,
        done: u64,
        error: std::io::Error,
    ) -> Self {
        use std::io::ErrorKind as System;
        let more = wanted.saturating_sub(done);
        let kind = match error.kind() {
            System::StorageFull => ErrorKind::NoSpace { wanted: more },
            System::QuotaExceeded => ErrorKind::Quota { wanted: more },
            System::FileTooLarge => ErrorKind::TooLarge { wanted: offset.saturating_add(wanted) },
            System::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            _ => ErrorKind::WriteFailed { offset, wanted, done, error },
        };
        Self::new(path, kind)
    }

    /// What the system reported when `length` bytes that had been written were to be synced.
    pub(crate) fn syncing(path: &Path, length: u64, error: std::io::Error) -> Self {
        use std::io::ErrorKind as System;
        let kind = match error.kind() {
            System::StorageFull => ErrorKind::NoSpace { wanted: length },
            System::QuotaExceeded => ErrorKind::Quota { wanted: length },
            _ => ErrorKind::SyncFailed(error),
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
            ErrorKind::NotAFolder => "io-not-a-folder",
            ErrorKind::Short { .. } => "io-short",
            ErrorKind::Failed { .. } => "io-failed",
            ErrorKind::Changed(_) => "io-changed",
            ErrorKind::Exists => "io-exists",
            ErrorKind::NoSpace { .. } => "io-no-space",
            ErrorKind::Quota { .. } => "io-quota",
            ErrorKind::TooLarge { .. } => "io-too-large",
            ErrorKind::ReadOnly => "io-read-only",
            ErrorKind::Locked => "io-locked",
            ErrorKind::WriteFailed { .. } => "io-write-failed",
            ErrorKind::SyncFailed(_) => "io-sync-failed",
            ErrorKind::InterruptedEdit(_) => "io-interrupted-edit",
            ErrorKind::StaleJournal(_) => "io-stale-journal",
            ErrorKind::Misuse(_) => "io-misuse",
            ErrorKind::System(_) => "io-system",
        }
    }

    /// What to do about it, where that can be said.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        Some(match self.kind {
            ErrorKind::Missing => "Check the spelling of the path.",
            ErrorKind::Denied => {
                "Check the mode of the file and of its folder: some writers leave a file readable by its \
                 owner only."
            }
            ErrorKind::IsFolder => "Give a file in it.",
            ErrorKind::NotAFile => "Give the path of a regular file.",
            ErrorKind::NotAFolder => "Give a folder, or a path where one can be made.",
            ErrorKind::Short { .. } | ErrorKind::Changed(_) => {
                "Something is writing to the file: wait for it to end."
            }
            ErrorKind::Failed { .. } | ErrorKind::WriteFailed { .. } | ErrorKind::SyncFailed(_) => {
                "The disk or the connection to it may be failing."
            }
            ErrorKind::Exists => {
                "Choose another name, or say that it is to be replaced (`--force`)."
            }
            ErrorKind::NoSpace { .. } => "Make room, or write to another disk.",
            ErrorKind::Quota { .. } => "Make room, write elsewhere, or have the quota raised.",
            ErrorKind::TooLarge { .. } => {
                "Write several smaller files, write to another file system, or raise `ulimit -f`."
            }
            ErrorKind::ReadOnly => "Write to another file system.",
            ErrorKind::Locked => "Wait for it to end.",
            ErrorKind::InterruptedEdit(Unmendable::Untrusted { .. }) => {
                "The user whose journal it is can undo the edit; or the administrator, by giving the journal, \
                 `.NAME.weigh-journal`, to the file's owner first (`chown`), if that user is known to have \
                 made the edit."
            }
            ErrorKind::InterruptedEdit(Unmendable::Denied) => {
                "Run `weigh check` on it as a user who may write to it: its journal, `.NAME.weigh-journal`, is beside it."
            }
            ErrorKind::InterruptedEdit(Unmendable::ReadOnly) => {
                "Run `weigh check` where it may be written, or on a copy of it and of its journal, \
                 `.NAME.weigh-journal`, in one folder."
            }
            ErrorKind::InterruptedEdit(_) => {
                "If the file was moved or renamed, do the same to its journal, `.NAME.weigh-journal`; if it has other \
                 names (hard links), run `weigh check` on the one that was edited; else restore the file from a copy."
            }
            ErrorKind::StaleJournal(_) => {
                "Remove it, or have its folder made one that you may write to: nothing needs it."
            }
            ErrorKind::Misuse(_) | ErrorKind::System(_) => return None,
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
            ErrorKind::NotAFolder => f.write_str("is a file, and a folder is wanted"),
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
            ErrorKind::Exists => f.write_str("exists already"),
            ErrorKind::NoSpace { wanted: 0 } => {
                f.write_str("the file system has no room for another file")
            }
            ErrorKind::Quota { wanted: 0 } => f.write_str("the quota has no room for another file"),
            ErrorKind::NoSpace { wanted } => {
                write!(f, "the file system has no room for {wanted} bytes more")
            }
            ErrorKind::Quota { wanted } => {
                write!(f, "the quota has no room for {wanted} bytes more")
            }
            ErrorKind::TooLarge { wanted } => {
                write!(f, "a file may not be as long as {wanted} bytes here")
            }
            ErrorKind::ReadOnly => f.write_str("is on a read-only file system"),
            ErrorKind::Locked => f.write_str("another process is editing it"),
            ErrorKind::WriteFailed { offset, wanted, done, error } => {
                write!(f, "writing {wanted} bytes at {offset} failed after {done}: {error}")
            }
            ErrorKind::SyncFailed(error) => {
                write!(f, "what was written may not be on the disk: {error}")
            }
            ErrorKind::InterruptedEdit(why) => {
                f.write_str("an edit of it in place was cut off, and ")?;
                match why {
                    Unmendable::NoJournal => f.write_str("there is no journal to undo it with"),
                    Unmendable::BadJournal => {
                        f.write_str("the journal to undo it with is not as it was written")
                    }
                    Unmendable::Untrusted { owner } => {
                        write!(f, "the journal to undo it with is of another user, number {owner}")
                    }
                    Unmendable::OtherLength { journal, file } => write!(
                        f,
                        "the journal to undo it with is for a file of {journal} bytes, not {file}"
                    ),
                    Unmendable::OtherEdit => f.write_str(
                        "the journal to undo it with is that of another edit or another file, or the file has \
                         been written to since",
                    ),
                    Unmendable::Denied => f.write_str("the file may not be written to, to undo it"),
                    Unmendable::ReadOnly => {
                        f.write_str("cannot be undone on a read-only file system")
                    }
                }
            }
            ErrorKind::StaleJournal(error) => write!(
                f,
                "the journal of an edit in place that is over is in the way and cannot be removed: {error}"
            ),
            ErrorKind::Misuse(Misuse::Complete) => {
                f.write_str("it was to be written to after it had been completed")
            }
            ErrorKind::Misuse(Misuse::Head { expected, new }) => write!(
                f,
                "a head of {expected} bytes cannot be replaced by {new}: it takes as many of each, at least 8, \
                 at most 101000000, and none that mark an edit"
            ),
            ErrorKind::System(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::System(error)
            | ErrorKind::StaleJournal(error)
            | ErrorKind::Failed { error, .. }
            | ErrorKind::WriteFailed { error, .. }
            | ErrorKind::SyncFailed(error) => Some(error),
            _ => None,
        }
    }
}
