//! What a caller may fix, and the words for it.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// The way bytes are read.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Backend {
    /// Plain reads at offsets, by several threads.
    Pread,
    /// Linux's `io_uring`: many requests under way with few threads.
    Uring,
    /// A memory map of the file, copied from.
    Mmap,
}

impl Backend {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pread, Self::Uring, Self::Mmap];

    /// The word for it: `pread`, `uring`, `mmap`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pread => "pread",
            Self::Uring => "uring",
            Self::Mmap => "mmap",
        }
    }
}

/// Whether reads go past the page cache (`O_DIRECT`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Direct {
    /// Through the page cache.
    Never,
    /// Past it, where the file system can.
    Always,
    /// The first requests of a load are timed both ways, and the faster one goes on.
    Probe,
}

impl Direct {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Never, Self::Always, Self::Probe];

    /// The word for it: `never`, `always`, `probe`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::Probe => "probe",
        }
    }
}

/// What the caller fixes; `None` leaves it to the policy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct ReadOptions {
    /// The way bytes are read.
    pub backend: Option<Backend>,
    /// Whether reads go past the page cache.
    pub direct: Option<Direct>,
    /// Threads that read.
    pub threads: Option<NonZero<usize>>,
    /// Requests that each thread has under way, where the backend can have several.
    pub depth: Option<NonZero<usize>>,
    /// Bytes of the largest request.
    pub request_bytes: Option<u64>,
    /// Bytes of the largest gap between two spans that is read with them.
    pub gap_bytes: Option<u64>,
    /// Whether the memory that is read into asks for huge pages.
    pub huge_pages: Option<bool>,
}

/// A word that names no [`Backend`] or no [`Direct`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownName {
    known: [&'static str; 3],
}

/// Names what would have been one; not the word itself, which may hold anything.
impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, third] = self.known;
        write!(f, "must be {first}, {second} or {third}")
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Backend {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let known = Self::ALL.into_iter().find(|it| it.name() == name);
        known.ok_or(UnknownName { known: Self::ALL.map(Self::name) })
    }
}

impl FromStr for Direct {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let known = Self::ALL.into_iter().find(|it| it.name() == name);
        known.ok_or(UnknownName { known: Self::ALL.map(Self::name) })
    }
}
