//! The system calls of Linux that no safe crate offers: what the page cache holds, and whether there is `io_uring`.
//!
//! Every function takes a borrowed descriptor and numbers and gives numbers back: no pointer and no mapping
//! leaves this module. Nothing here reads or changes what a file holds.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_long, c_void};

/// How many pages of a span are in the page cache.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CachedPages {
    pub(crate) cached: u64,
    /// Changed and not written back yet; some of them may be on their way.
    pub(crate) dirty: u64,
}

/// `cachestat(2)` has one number on all architectures but those left out here.
#[cfg(not(any(
    target_arch = "mips",
    target_arch = "mips32r6",
    target_arch = "mips64",
    target_arch = "mips64r6"
)))]
const SYS_CACHESTAT: Option<c_long> = Some(451);
#[cfg(any(
    target_arch = "mips",
    target_arch = "mips32r6",
    target_arch = "mips64",
    target_arch = "mips64r6"
))]
const SYS_CACHESTAT: Option<c_long> = None;

/// Asks `cachestat(2)` about a span, which must not be empty: the kernel takes a length of zero for "to the end".
///
/// # Errors
///
/// `ENOSYS` before Linux 6.5, `EPERM` for a file that the caller neither owns nor may write, `EOPNOTSUPP`
/// where a file system has no page cache, and what a filter of system calls returns.
pub(crate) fn cachestat(file: BorrowedFd<'_>, span: &Range<u64>) -> io::Result<CachedPages> {
    /// `struct cachestat_range` of `linux/mman.h`.
    #[repr(C)]
    struct Wanted {
        offset: u64,
        length: u64,
    }
    /// `struct cachestat` of `linux/mman.h`.
    #[repr(C)]
    #[derive(Default)]
    struct Counted {
        cached: u64,
        dirty: u64,
        written_back: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let Some(number) = SYS_CACHESTAT else {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    };
    let wanted = Wanted { offset: span.start, length: span.end.saturating_sub(span.start) };
    let mut counted = Counted::default();
    let descriptor = c_long::from(file.as_raw_fd());
    // SAFETY: The call reads one `cachestat_range` at its second argument and writes one `cachestat` at its third
    // (https://man7.org/linux/man-pages/man2/cachestat.2.html, "long cachestat(unsigned int fd, struct
    // cachestat_range *cstat_range, struct cachestat *cstat, unsigned int flags)"). Both point to locals of these
    // layouts that live longer than the call, the second borrowed mutably and by nobody else. Every bit pattern is
    // a `Counted`.
    let status = unsafe {
        libc::syscall(number, descriptor, &raw const wanted, &raw mut counted, c_long::from(0))
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let dirty = counted.dirty.saturating_add(counted.written_back);
    Ok(CachedPages { cached: counted.cached, dirty })
}

/// Pages that `mincore(2)` is asked about at a time: a byte of memory each.
const PAGES_AT_A_TIME: usize = 1 << 16;

/// Asks `mincore(2)` how many pages of a span are in the page cache.
///
/// For a file that the caller neither owns nor may write, the kernel says that all are.
///
/// # Errors
///
/// `ENODEV` where a file system has no memory maps, and whatever else keeps the file from being mapped.
pub(crate) fn mincore(file: BorrowedFd<'_>, span: &Range<u64>, page: u64) -> io::Result<u64> {
    let too_far = || io::Error::from(io::ErrorKind::InvalidInput);
    let step = page.checked_mul(PAGES_AT_A_TIME as u64).ok_or_else(too_far)?;
    let mut flags = Vec::new();
    let mut resident = 0_u64;
    let mut start = if span.is_empty() { span.end } else { span.start - span.start % page };
    while start < span.end {
        let length = step.min(span.end - start);
        let map = Unreadable::new(file, start, usize::try_from(length).map_err(|_| too_far())?)?;
        let pages = usize::try_from(length.div_ceil(page)).map_err(|_| too_far())?;
        flags.resize(pages, 0);
        // SAFETY: `mincore` writes one byte for each page of the range that it is given
        // (https://man7.org/linux/man-pages/man2/mincore.2.html, "The vec argument must point to an array containing
        // at least (length+PAGE_SIZE-1) / PAGE_SIZE bytes"): `flags` has `length.div_ceil(page)`. The range is the
        // map that `map` holds until after the call; it is not read.
        let status = unsafe { libc::mincore(map.start, map.length, flags.as_mut_ptr()) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        // "The least significant bit of each byte will be set if the corresponding page is currently resident".
        resident += flags.iter().map(|flag| u64::from(flag & 1)).sum::<u64>();
        start += length;
    }
    Ok(resident)
}

/// A map of a part of a file that nobody may read: there to be asked about, and undone when dropped.
struct Unreadable {
    start: *mut c_void,
    length: usize,
}

impl Unreadable {
    fn new(file: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (access, kind) = (libc::PROT_NONE, libc::MAP_PRIVATE);
        let (none, file) = (ptr::null_mut(), file.as_raw_fd());
        // SAFETY: With a null address and without `MAP_FIXED` the kernel chooses a free range, so that no memory of
        // this process is replaced (https://man7.org/linux/man-pages/man2/mmap.2.html, "If addr is NULL, then the
        // kernel chooses the (page-aligned) address at which to create the mapping"). Pages of `PROT_NONE` cannot be
        // read, so that no `&[u8]` of a file that changes can come of it.
        let start = unsafe { libc::mmap(none, length, access, kind, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, length })
    }
}

impl Drop for Unreadable {
    fn drop(&mut self) {
        // SAFETY: The range is what `mmap` returned for this length in `new`, the only place that makes an
        // `Unreadable`; it is not copied, nothing points into it, and it is unmapped once, here.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Writes the changed pages of a file back and waits for that; does not make them durable, and says nothing of
/// failures, which are the writer's to hear of.
pub(crate) fn write_back(file: BorrowedFd<'_>) {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: The call takes a descriptor, which is open as long as it is borrowed, and numbers; it touches no
    // memory of this process. A length of zero is "to the end"
    // (https://man7.org/linux/man-pages/man2/sync_file_range.2.html).
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) };
}

/// Makes a ring of `io_uring`, has it do nothing once, and gives it back; whether it has plain reads.
///
/// # Errors
///
/// `ENOSYS` where the kernel has none, `EPERM` where it is forbidden to make one or to use it, `ENOMEM` where no
/// memory may be locked.
pub(crate) fn try_io_uring() -> io::Result<bool> {
    let mut ring = io_uring::IoUring::new(1)?;
    let nothing = io_uring::opcode::Nop::new().build();
    // SAFETY: the entry has no addresses: "Do not perform any I/O"
    // (https://man7.org/linux/man-pages/man2/io_uring_enter.2.html, IORING_OP_NOP).
    let pushed = unsafe { ring.submission().push(&nothing) };
    pushed.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    // Plain reads came with this feature, in Linux 5.6.
    Ok(ring.params().is_feature_rw_cur_pos())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_ways_to_ask_agree() {
        let page = rustix::param::page_size() as u64;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 10 * rustix::param::page_size() + 1]).unwrap();
        for (start, end, pages) in [
            (0, 10 * page + 1, 11),
            (0, 10 * page, 10),
            (page, 2 * page, 1),
            (page - 1, 2 * page, 2),
            (page - 1, 2 * page + 1, 3),
            (10 * page, 10 * page + 1, 1),
        ] {
            let resident = mincore(file.as_fd(), &(start..end), page).unwrap();
            assert_eq!(resident, pages, "{start}..{end}");
            // A kernel before 6.5 has only the one.
            if let Ok(counted) = cachestat(file.as_fd(), &(start..end)) {
                assert_eq!(counted.cached, pages, "{start}..{end}");
            }
        }
        assert_eq!(mincore(file.as_fd(), &(5..5), page).unwrap(), 0);
    }

    #[test]
    fn more_pages_than_are_asked_about_at_a_time() {
        let page = rustix::param::page_size() as u64;
        let file = tempfile::tempfile().unwrap();
        let length = page * (PAGES_AT_A_TIME as u64 + 3);
        file.set_len(length).unwrap();
        let mut byte = [0];
        let last = length - 1;
        std::os::unix::fs::FileExt::read_at(&file, &mut byte, last).unwrap();
        assert!(mincore(file.as_fd(), &(0..length), page).unwrap() >= 1);
        assert_eq!(mincore(file.as_fd(), &(last..length), page).unwrap(), 1);
    }

    #[test]
    fn what_is_written_back_is_not_dirty() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 100]).unwrap();
        write_back(file.as_fd());
        if let Ok(counted) = cachestat(file.as_fd(), &(0..100)) {
            assert_eq!(counted, CachedPages { cached: 1, dirty: 0 });
        }
    }

    #[test]
    fn a_ring_is_given_back() {
        // Where it is forbidden there is none to count.
        for _ in 0..2000 {
            if try_io_uring().is_err() {
                return;
            }
        }
    }
}
