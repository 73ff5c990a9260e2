//! How a load is read, decided from facts, and why.
//!
//! [`choose`] is pure: the same [`Facts`] and [`ReadOptions`] give the same [`Choice`], with a reason for each part
//! of it. [`Facts::gather`] does the asking. Nothing here reads what a file holds.
//!
//! The numbers were measured with files of 1.25 GiB on two cores and a virtual disk (ext4, Linux 6.18), other work
//! going on beside; each constant says what it rests on.

mod facts;
mod options;
mod reason;

use std::num::NonZero;

pub use facts::Facts;
pub use options::{Backend, Direct, ReadOptions, UnknownName};
pub use reason::{Reason, Setting};

use crate::plan::Cut;
use crate::system::{FileSystemKind, Uring};

/// What was picked, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The way bytes are read.
    pub backend: Backend,
    /// Whether reads go past the page cache.
    pub direct: Direct,
    /// Threads that read, at least one.
    pub threads: usize,
    /// Requests that each thread has under way, at least one; one for other backends than `io_uring`.
    pub depth: usize,
    /// Bytes of the largest request.
    pub request_bytes: u64,
    /// Bytes of the largest gap between two spans that is read with them, for the sake of one request.
    pub gap_bytes: u64,
    /// Whether the memory that is read into asks for huge pages.
    pub huge_pages: bool,
    /// Why, a sentence each, without a full stop.
    pub reasons: Vec<Reason>,
}

impl Choice {
    /// Calls that wait, by one thread, through the page cache: works everywhere, and needs no facts.
    #[must_use]
    pub fn plain(request_bytes: u64) -> Self {
        Self {
            backend: Backend::Pread,
            direct: Direct::Never,
            threads: 1,
            depth: 1,
            request_bytes,
            gap_bytes: CACHED_GAP,
            huge_pages: false,
            reasons: Vec::new(),
        }
    }

    /// How a plan is cut for it.
    #[must_use]
    pub fn cut(&self) -> Cut {
        // What is taken apart or converted stays in a core's cache, where reading is quick and requests cost
        // little.
        let is_quick = self.direct == Direct::Never && self.request_bytes <= REQUEST;
        let most = if is_quick { SCRATCH } else { self.request_bytes };
        // Each thread may need it twice: for what is read, and for what is picked out of that.
        let threads = u64::try_from(self.threads).unwrap_or(u64::MAX).max(1);
        let share = SCRATCH_BYTES / threads.saturating_mul(2);
        let scratch_bytes = most.min(share).min(self.request_bytes);
        Cut { request_bytes: self.request_bytes, scratch_bytes, gap_bytes: self.gap_bytes }
    }
}

/// Decides how to read. What the caller fixed in `options` wins, if it can be had.
#[must_use]
pub fn choose(facts: &Facts, options: &ReadOptions) -> Choice {
    let (case, why) = Case::of(facts);
    let mut reasons = vec![why];
    if let Some(memory) = facts.memory.filter(|memory| facts.wanted > memory.available) {
        let (wanted, available) = (facts.wanted, memory.available);
        reasons.push(Reason::MoreThanMemory { wanted, available });
    }
    let (backend, direct) = way(case, facts, options, &mut reasons);
    let mut fix = |setting, policy: u64, asked: Option<u64>, least: u64, most: u64| {
        let Some(asked) = asked else {
            return policy;
        };
        let used = asked.clamp(least, most);
        reasons.push(if used == asked {
            Reason::AskedNumber { setting, asked }
        } else {
            Reason::Bounded { setting, asked, used }
        });
        used
    };
    let request = match case {
        Case::LargeCold | Case::ShortOfMemory => COLD_REQUEST,
        Case::Network | Case::Fuse => NETWORK_REQUEST,
        _ => REQUEST,
    };
    // What comes past the page cache waits in scratch memory.
    let most = if direct == Direct::Never { MOST_REQUEST } else { MOST_DIRECT_REQUEST };
    let request = fix(Setting::RequestBytes, request, options.request_bytes, LEAST_REQUEST, most);
    let gap = match case {
        Case::Cached => CACHED_GAP,
        Case::Network | Case::Fuse => NETWORK_GAP,
        Case::UnknownSystem => UNKNOWN_GAP,
        _ => DISK_GAP,
    };
    let gap_bytes = fix(Setting::GapBytes, gap, options.gap_bytes, 0, MOST_REQUEST);
    let (threads, depth) = readers(case, backend, facts, request);
    let mut count = |setting, policy, asked: Option<NonZero<usize>>, most| {
        let as_number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let asked = asked.map(|count| as_number(count.get()));
        usize::try_from(fix(setting, as_number(policy), asked, 1, most)).unwrap_or(policy)
    };
    let threads = count(Setting::Threads, threads, options.threads, MOST_THREADS);
    // What comes past the page cache waits in scratch memory.
    let room = SCRATCH_BYTES / request / u64::try_from(threads).unwrap_or(u64::MAX).max(1);
    let most = if direct == Direct::Never { MOST_DEPTH } else { room.clamp(1, MOST_DEPTH) };
    let depth = depth.min(usize::try_from(most).unwrap_or(usize::MAX));
    let depth = count(Setting::Depth, depth, options.depth, most);
    let huge_pages = match options.huge_pages {
        Some(asked) => {
            reasons.push(Reason::AskedHugePages { asked });
            asked
        }
        // A map of a file is made of the pages of the cache.
        None => facts.wanted >= HUGE_PAGES_FROM && backend != Backend::Mmap,
    };
    let request_bytes = request;
    Choice { backend, direct, threads, depth, request_bytes, gap_bytes, huge_pages, reasons }
}

/// What kind of load it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Case {
    /// In memory, on a file system that lives there or in the page cache.
    Cached,
    /// On a local disk and in part in the page cache.
    PartlyCached,
    /// On a local disk, not known to be cached, and large enough to try both ways of reading.
    LargeCold,
    /// The same, and too small for that.
    SmallCold,
    /// On a local disk, not cached, and much of the memory that there is.
    ShortOfMemory,
    Network,
    Fuse,
    UnknownSystem,
}

impl Case {
    fn of(facts: &Facts) -> (Self, Reason) {
        let name = facts.file_system.name;
        let percent = facts.cached.map(|cached| percent(cached, facts.wanted));
        match (facts.file_system.kind, percent) {
            (FileSystemKind::Memory, _) => (Self::Cached, Reason::InMemory { name }),
            (_, Some(percent)) if percent >= CACHED_FROM => {
                (Self::Cached, Reason::Cached { percent })
            }
            (FileSystemKind::Network, _) => (Self::Network, Reason::Network { name }),
            (FileSystemKind::Fuse, _) => (Self::Fuse, Reason::Fuse { name }),
            (FileSystemKind::Unknown, _) => (Self::UnknownSystem, Reason::UnknownFileSystem),
            (FileSystemKind::Local, Some(percent)) if percent > COLD_TO => {
                (Self::PartlyCached, Reason::PartlyCached { percent })
            }
            (FileSystemKind::Local, percent) => Self::of_cold(facts, percent.is_some()),
        }
    }

    /// Of what is on a local disk and not cached, as far as is `known`.
    fn of_cold(facts: &Facts, known: bool) -> (Self, Reason) {
        let (wanted, name) = (facts.wanted, facts.file_system.name);
        let short = facts.memory.filter(|memory| wanted > memory.available / SHORT_PART);
        let from = if facts.scattered { PROBE_SCATTERED_FROM } else { PROBE_FROM };
        match (known, short) {
            (true, Some(memory)) => {
                let (available, limited_by) = (memory.available, memory.limited_by);
                (Self::ShortOfMemory, Reason::ShortOfMemory { wanted, available, limited_by })
            }
            (false, Some(_)) => (Self::LargeCold, Reason::CacheUnknown { name }),
            (true, None) if wanted >= from => (Self::LargeCold, Reason::LargeCold { name }),
            (false, None) if wanted >= from => (Self::LargeCold, Reason::CacheUnknown { name }),
            _ => (Self::SmallCold, Reason::SmallCold { name, wanted }),
        }
    }

    /// Whether its reads should go past the page cache.
    const fn direct(self) -> Direct {
        match self {
            Self::LargeCold => Direct::Probe,
            Self::ShortOfMemory => Direct::Always,
            _ => Direct::Never,
        }
    }
}

/// Backend and direct reads: as asked for where that can be had.
fn way(
    case: Case,
    facts: &Facts,
    options: &ReadOptions,
    reasons: &mut Vec<Reason>,
) -> (Backend, Direct) {
    let direct = options.direct.unwrap_or(case.direct());
    let may_ring = facts.uring == Uring::Available;
    // Through the page cache a ring is slow: what has to be fetched is handed to the kernel's own threads.
    let wants_ring = case.direct() != Direct::Never && direct != Direct::Never;
    let backend = match options.backend {
        Some(Backend::Mmap) if facts.file_system.kind == FileSystemKind::Fuse => {
            reasons.push(Reason::NoMmapOnFuse);
            Backend::Pread
        }
        Some(Backend::Uring) if !may_ring => {
            reasons.push(Reason::NoUring { why: facts.uring.why_not() });
            Backend::Pread
        }
        Some(asked) => {
            reasons.push(Reason::AskedBackend { asked });
            asked
        }
        None if wants_ring && may_ring => {
            reasons.push(Reason::Uring);
            Backend::Uring
        }
        None => {
            if wants_ring {
                reasons.push(Reason::NoUring { why: facts.uring.why_not() });
            }
            Backend::Pread
        }
    };
    match (options.direct, direct) {
        (asked, _) if backend == Backend::Mmap => {
            if asked.is_some_and(|asked| asked != Direct::Never) {
                reasons.push(Reason::NoDirectMmap);
            }
            return (backend, Direct::Never);
        }
        (Some(asked), _) => reasons.push(Reason::AskedDirect { asked }),
        (None, Direct::Probe) => reasons.push(Reason::Probe),
        (None, Direct::Always) => reasons.push(Reason::Direct),
        (None, Direct::Never) => {}
    }
    (backend, direct)
}

/// Threads, and requests that each has under way.
fn readers(case: Case, backend: Backend, facts: &Facts, request: u64) -> (usize, usize) {
    let cores = facts.cores.max(1);
    let (threads, depth) = match (case, backend) {
        (Case::Network, Backend::Uring) => (1, NETWORK_THREADS),
        (Case::Fuse, Backend::Uring) => (1, FUSE_THREADS),
        (_, Backend::Uring) => (cores.min(RINGS), RING_DEPTH),
        (Case::Cached, _) => (cores.min(COPYING_THREADS), 1),
        (Case::LargeCold | Case::ShortOfMemory, _) => (DIRECT_THREADS, 1),
        (Case::PartlyCached | Case::SmallCold | Case::UnknownSystem, _) => (DISK_THREADS, 1),
        (Case::Network, _) => (NETWORK_THREADS, 1),
        (Case::Fuse, _) => (FUSE_THREADS, 1),
    };
    if facts.scattered {
        return (threads, depth);
    }
    // Whole tensors lie side by side: there are no more requests than this.
    let requests = usize::try_from(facts.wanted.div_ceil(request)).unwrap_or(usize::MAX);
    (threads.min(requests.max(facts.files)).max(1), depth)
}

/// Per cent, rounded down; all of nothing is 100.
fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    if whole == 0 { 100 } else { u64::try_from(percent).unwrap_or(100).min(100) }
}

/// Per cent in the page cache from which a load is bound by copying: the rest takes no longer than that does.
const CACHED_FROM: u64 = 90;

/// Per cent in the page cache to which a load is cold: a header that was read, and what the kernel read ahead then.
const COLD_TO: u64 = 10;

/// Bytes from which both ways of reading are tried on a cold file.
///
/// To try costs some requests the slower way, an eighth of the load and 64 MiB at most. To go past the cache takes half the processor time
/// (0.17 s a GB, not 0.31) and is quicker by a tenth to a quarter; and it leaves nothing in the cache for the next
/// load. Below this a load takes a quarter of a second either way.
const PROBE_FROM: u64 = 256 << 20;

/// The same where spans lie apart: reading ahead fetches what is not wanted (pieces of 64 KiB, 256 KiB apart, took
/// 200 ms past the cache and 620 ms through it).
const PROBE_SCATTERED_FROM: u64 = 32 << 20;

/// A load is short of memory if it wants more than one part in so many of what is available: what is read would
/// have to be there twice, in the cache and where it goes.
const SHORT_PART: u64 = 2;

/// Bytes of a request that is copied from the page cache, or fetched through it: from 256 KiB to 16 MiB all are
/// equal, so it is large enough to make a call cheap and small enough to share the work.
const REQUEST: u64 = 4 << 20;

/// Bytes of a request whose bytes pass through scratch memory, from the page cache: half of a core's cache.
const SCRATCH: u64 = 1 << 20;

/// Memory that requests under way may take, of those that are read elsewhere first. With what the allocator
/// and threads take it stays below the 64 MiB that a load may use beside its own memory.
pub(crate) const SCRATCH_BYTES: u64 = 40 << 20;

/// Bytes of a request past the page cache: 2 MiB did best with a ring, and no worse than 4 MiB with threads.
const COLD_REQUEST: u64 = 2 << 20;

/// Bytes of a request to another machine: each is a round trip at least, and servers read ahead for large ones.
const NETWORK_REQUEST: u64 = 16 << 20;

/// Bytes of a gap in the page cache: a call costs 0.6 to 0.9 µs more than to copy on, which is 2 to 8 KiB.
const CACHED_GAP: u64 = 8 << 10;

/// Bytes of a gap on a disk: one request more costs as much as 32 to 64 KiB (some 20 000 requests and 1.3 GB a second).
/// Disks of the cloud have about the same ratio, by their specified limits of both.
const DISK_GAP: u64 = 64 << 10;

/// Bytes of a gap on what may be a disk, or may be not.
const UNKNOWN_GAP: u64 = 256 << 10;

/// Bytes of a gap on another machine: about what a link of 10 to 40 Gbit/s carries during a round trip of a millisecond.
const NETWORK_GAP: u64 = 4 << 20;

/// Threads that copy from the page cache, if there are as many cores: memory is no quicker for more.
const COPYING_THREADS: usize = 8;

/// Threads that read a disk through the page cache; the kernel reads ahead for each. Eight did no better.
const DISK_THREADS: usize = 4;

/// Threads that read a disk past the page cache, whatever the cores: they wait most of the time.
const DIRECT_THREADS: usize = 8;

/// Threads for a network file system: sixteen a process, and a process for each accelerator, is known to stall NFS.
const NETWORK_THREADS: usize = 2;

/// Threads for FUSE: its program may have few of its own.
const FUSE_THREADS: usize = 4;

/// Rings, each with its thread, if there are as many cores: a core hands in some 6 GB a second, and what waits in
/// scratch memory is shared among them.
const RINGS: usize = 2;

/// Requests under way in a ring: 16 did better than 8, and 32 no better.
const RING_DEPTH: usize = 16;

/// Bytes from which huge pages are asked for: a load takes two of 2 MiB at least, and spares a thousand faults.
const HUGE_PAGES_FROM: u64 = 4 << 20;

/// Bytes of the least request that can be asked for: a page, which direct reads need.
const LEAST_REQUEST: u64 = 4 << 10;

/// Bytes of the largest request and gap that can be asked for: what one call of Linux reads is below 2 GiB.
const MOST_REQUEST: u64 = 1 << 30;

/// The same past the page cache: two of them fit the scratch memory.
const MOST_DIRECT_REQUEST: u64 = 16 << 20;

/// The most threads that can be asked for.
pub(crate) const MOST_THREADS: u64 = 256;

/// The most requests under way in a ring that can be asked for.
pub(crate) const MOST_DEPTH: u64 = 256;

#[cfg(test)]
mod tests;
