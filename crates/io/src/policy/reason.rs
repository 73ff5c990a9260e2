//! Why something was picked, as data and as a sentence.

use std::fmt;

use crate::policy::{Backend, Direct};
use crate::system::LimitedBy;

/// Why something was picked. The sentences of `Display` may change between releases.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The file system lives in memory.
    InMemory {
        /// Its name.
        name: &'static str,
    },
    /// Nearly all is in the page cache.
    Cached {
        /// Per cent of what is wanted.
        percent: u64,
    },
    /// Some of it is in the page cache.
    PartlyCached {
        /// Per cent of what is wanted.
        percent: u64,
    },
    /// It is cold, local, and large.
    LargeCold {
        /// Name of the file system.
        name: &'static str,
    },
    /// It is local and large, and may be cached or not.
    CacheUnknown {
        /// Name of the file system.
        name: &'static str,
    },
    /// It is not cached, local, and small.
    SmallCold {
        /// Name of the file system.
        name: &'static str,
        /// Bytes wanted.
        wanted: u64,
    },
    /// It is cold and local, and the page cache would compete for memory.
    ShortOfMemory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes of memory that can be had.
        available: u64,
        /// What sets this limit.
        limited_by: LimitedBy,
    },
    /// More is wanted than there is memory.
    MoreThanMemory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes of memory that can be had.
        available: u64,
    },
    /// It is on another machine.
    Network {
        /// Name of the file system.
        name: &'static str,
    },
    /// It is behind a program.
    Fuse {
        /// Name of the file system.
        name: &'static str,
    },
    /// Nothing is known of the file system.
    UnknownFileSystem,
    /// The policy leaves it to the first requests whether reads go past the page cache.
    Probe,
    /// The policy has reads go past the page cache.
    Direct,
    /// There is `io_uring`.
    Uring,
    /// `io_uring` would have been taken, and cannot be had.
    NoUring {
        /// What keeps it from being used.
        why: &'static str,
    },
    /// A memory map was asked for, and the file is on FUSE.
    NoMmapOnFuse,
    /// Direct reads were asked for, with a memory map.
    NoDirectMmap,
    /// The caller fixed the backend.
    AskedBackend {
        /// To this.
        asked: Backend,
    },
    /// The caller fixed whether reads go past the page cache.
    AskedDirect {
        /// To this.
        asked: Direct,
    },
    /// The caller fixed a number.
    AskedNumber {
        /// Which.
        setting: Setting,
        /// To this.
        asked: u64,
    },
    /// The caller fixed a number, outside of what can be.
    Bounded {
        /// Which.
        setting: Setting,
        /// To this.
        asked: u64,
        /// What was taken.
        used: u64,
    },
    /// The caller fixed whether huge pages are asked for.
    AskedHugePages {
        /// To this.
        asked: bool,
    },
}

/// A number that a caller may fix.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// Threads that read.
    Threads,
    /// Requests that each thread has under way.
    Depth,
    /// Bytes of the largest request.
    RequestBytes,
    /// Bytes of the largest gap that is read over.
    GapBytes,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "number of threads",
            Self::Depth => "number of requests a thread has under way",
            Self::RequestBytes => "number of bytes a request",
            Self::GapBytes => "number of bytes of a gap that is read over",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InMemory { name } => {
                write!(f, "the files are in memory ({name}): a thread for each core copies them")
            }
            Self::Cached { percent } => write!(
                f,
                "{percent}% of what is wanted is in the page cache: a thread for each core copies it"
            ),
            Self::PartlyCached { percent } => write!(
                f,
                "{percent}% of what is wanted is in the page cache: reads past it would fetch that again"
            ),
            Self::LargeCold { name } => write!(
                f,
                "the files are on a local disk ({name}) and not cached"
            ),
            Self::CacheUnknown { name } => write!(
                f,
                "the files are on a local disk ({name}) and the system does not say whether they are cached"
            ),
            Self::SmallCold { name, wanted } => write!(
                f,
                "the files are on a local disk ({name}) and {wanted} bytes are too few to try reads past the \
                 page cache"
            ),
            Self::ShortOfMemory { wanted, available, limited_by } => {
                let limit = match limited_by {
                    LimitedBy::System => "the machine has left",
                    LimitedBy::Cgroup => "the cgroup has left",
                };
                write!(
                    f,
                    "{wanted} bytes are wanted and {limit} {available}: what the page cache keeps of them \
                     would compete for it"
                )
            }
            Self::MoreThanMemory { wanted, available } => write!(
                f,
                "{wanted} bytes are wanted and only {available} bytes of memory can be had: loading all of it \
                 at once may fail"
            ),
            Self::Network { name } => write!(
                f,
                "the files are on another machine ({name}): large requests through the page cache, few at a \
                 time, as many may stall it"
            ),
            Self::Fuse { name } => write!(
                f,
                "the files are behind a program ({name}): large requests through the page cache, few at a time"
            ),
            Self::UnknownFileSystem => f.write_str(
                "nothing is known of the file system: plain reads through the page cache work on all",
            ),
            Self::Probe => f.write_str(
                "the first requests show whether reads past the page cache are faster than through it",
            ),
            Self::Direct => f.write_str("reads go past the page cache"),
            Self::Uring => f.write_str("io_uring can be had: it keeps many requests under way"),
            Self::NoUring { why } => {
                write!(f, "io_uring cannot be had, {why}: threads with plain reads do it")
            }
            Self::NoMmapOnFuse => f.write_str(
                "backend mmap was asked for and is refused on FUSE, where a page fault can block for good: \
                 plain reads do it",
            ),
            Self::NoDirectMmap => f.write_str(
                "reads past the page cache were asked for and cannot be had of a memory map, which is made of it",
            ),
            Self::AskedBackend { asked } => write!(f, "backend {} was asked for", asked.name()),
            Self::AskedDirect { asked } => f.write_str(match asked {
                Direct::Never => "reads through the page cache were asked for",
                Direct::Always => "reads past the page cache were asked for",
                Direct::Probe => "to try reads past the page cache was asked for",
            }),
            Self::AskedNumber { setting, asked } => {
                write!(f, "the {setting} was asked for: {asked}")
            }
            Self::Bounded { setting, asked, used } => {
                write!(f, "the {setting} was asked to be {asked}, and can only be {used}")
            }
            Self::AskedHugePages { asked: true } => f.write_str("huge pages were asked for"),
            Self::AskedHugePages { asked: false } => f.write_str("no huge pages were asked for"),
        }
    }
}
