//! What of a file is in the system's page cache, and how to get it in or out.
//!
//! [`residency`] asks, [`warm`] reads a file into the cache, [`drop_cache`] takes it out of it. None of them
//! changes what a file holds. Linux answers all of it; on other systems `warm` works, and nothing is known.
//!
//! On a file system that lives in memory, as tmpfs, the cache is the file: all that was written is cached, and
//! nothing can be dropped.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::system::{FileSystemKind, file_system};
use crate::{Error, FileSource};

/// How much of a span is in the page cache, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Residency {
    /// In the page cache. Whole pages are counted, then cut to `total`.
    pub cached: u64,
    /// Of these, changed and not written to the disk yet; `None` where the system does not tell.
    pub dirty: Option<u64>,
    /// Bytes of the span that the file has.
    pub total: u64,
}

impl Residency {
    /// Whether all of it is in the page cache.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.cached == self.total
    }
}

/// How much of a span of a file is in the page cache; `None` where the system does not tell.
///
/// By `cachestat(2)` from Linux 6.5 on, by `mincore(2)` before. Linux tells it only to those who own a file or
/// may write it. The time it takes grows with what is cached: ten milliseconds a GiB and more.
///
/// # Errors
///
/// What else the system reports.
///
/// # Examples
///
/// ```no_run
/// use weigh_io::{FileSource, pagecache};
///
/// let source = FileSource::open("model.safetensors")?;
/// if let Some(residency) = pagecache::residency(&source, 0..source.len())? {
///     println!("{} of {} bytes are cached", residency.cached, residency.total);
/// }
/// # Ok::<(), weigh_io::Error>(())
/// ```
pub fn residency(source: &FileSource, span: Range<u64>) -> Result<Option<Residency>, Error> {
    let end = span.end.min(source.len());
    let span = span.start.min(end)..end;
    let total = span.end - span.start;
    if total == 0 {
        return Ok(Some(Residency { cached: 0, dirty: Some(0), total }));
    }
    let counted =
        kernel::cached(source, &span).map_err(|error| Error::system(source.path(), error))?;
    Ok(counted.map(|(cached, dirty)| {
        let cached = cached.min(total);
        Residency { cached, dirty: dirty.map(|dirty| dirty.min(cached)), total }
    }))
}

/// Bytes that are read at a time: each reader has memory for so many, which stays in its processor's cache.
///
/// To have the kernel read ahead without copying was tried and does less: it takes a request of any length and
/// reads the first 8 MiB of it, or fewer, as the disk's settings are.
const PART: u64 = 1 << 20;

/// Threads that read: from the fourth on a local disk gave no more.
const READERS: usize = 4;

/// Threads that read from a network file system, where many at once may stall the mount.
const NETWORK_READERS: usize = 2;

/// Reads a span of a file into the page cache; how many bytes of it were gone through.
///
/// `progress` is called with that number from time to time, on the thread of the caller, and may end the work
/// by breaking. What is cached already is not read again. Uses at most 4 MiB of memory. That all of it was read
/// does not mean that it is still there: ask [`residency`].
///
/// # Errors
///
/// [`ErrorKind::Short`](crate::ErrorKind::Short) if the file ended early, or what the system reports.
///
/// # Examples
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use weigh_io::{FileSource, pagecache};
///
/// let source = FileSource::open("model.safetensors")?;
/// let progress = |done| {
///     println!("{done} bytes");
///     ControlFlow::Continue(())
/// };
/// pagecache::warm(&source, 0..source.len(), progress)?;
/// # Ok::<(), weigh_io::Error>(())
/// ```
pub fn warm(
    source: &FileSource,
    span: Range<u64>,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<u64, Error> {
    let end = span.end.min(source.len());
    let start = span.start.min(end);
    let readers = match file_system(source).kind {
        FileSystemKind::Network => NETWORK_READERS,
        _ => READERS,
    };
    let parts = usize::try_from((end - start).div_ceil(PART)).unwrap_or(usize::MAX);
    let work = Work::new(source, start..end);
    std::thread::scope(|scope| {
        // Where the system gives no thread, those there are do it all.
        let another =
            |_| std::thread::Builder::new().spawn_scoped(scope, || work.read(|_| {})).ok();
        let helpers: Vec<_> = (1..readers.min(parts)).map_while(another).collect();
        let own = work.read(|done| {
            if progress(done).is_break() {
                work.stop.store(true, Ordering::Relaxed);
            }
        });
        helpers.into_iter().fold(own, |result, helper| match helper.join() {
            Ok(other) => result.and(other),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(work.done.into_inner())
}

/// The parts of a file that are still to be read.
struct Work<'s> {
    source: &'s FileSource,
    next: AtomicU64,
    end: u64,
    /// Bytes gone through.
    done: AtomicU64,
    stop: AtomicBool,
}

impl<'s> Work<'s> {
    fn new(source: &'s FileSource, span: Range<u64>) -> Self {
        let [next, done] = [span.start, 0].map(AtomicU64::new);
        Self { source, next, end: span.end, done, stop: AtomicBool::new(false) }
    }

    /// Reads parts until there are none, saying after each how many bytes all readers have gone through.
    fn read(&self, mut after: impl FnMut(u64)) -> Result<(), Error> {
        let mut buffer = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let start = self.next.fetch_add(PART, Ordering::Relaxed);
            if start >= self.end {
                break;
            }
            let end = self.end.min(start.saturating_add(PART));
            if let Err(error) = self.read_part(start..end, &mut buffer) {
                self.stop.store(true, Ordering::Relaxed);
                return Err(error);
            }
            let length = end - start;
            after(self.done.fetch_add(length, Ordering::Relaxed).saturating_add(length));
        }
        Ok(())
    }

    fn read_part(&self, part: Range<u64>, buffer: &mut Vec<u8>) -> Result<(), Error> {
        // To ask costs a tenth of what it costs to copy from the cache, or less.
        let known = residency(self.source, part.clone())?;
        if known.is_some_and(|residency| residency.is_whole()) {
            return Ok(());
        }
        buffer.resize(usize::try_from(part.end - part.start).unwrap_or(0), 0);
        self.source.read_exact_at(buffer, part.start)
    }
}

/// Takes a file out of the page cache; what stayed in it, or `None` where the system does not tell.
///
/// Changed pages are written to the disk first, as they cannot be dropped; they are not made durable, as
/// `fsync` would. Pages stay that a program has mapped or is just reading, and all of them on a file system
/// that lives in memory.
///
/// # Errors
///
/// What the system reports.
pub fn drop_cache(source: &FileSource) -> Result<Option<Residency>, Error> {
    kernel::drop_cache(source).map_err(|error| Error::system(source.path(), error))?;
    residency(source, 0..source.len())
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::ops::Range;
    use std::os::fd::AsFd;

    use rustix::fs::{Access, Advice, AtFlags, CWD, accessat, fadvise, fstat};
    use rustix::process::geteuid;

    use crate::FileSource;
    use crate::sys::{cachestat, mincore, write_back};

    /// Bytes of a span, not empty, that are cached and dirty, in whole pages.
    pub(super) fn cached(
        source: &FileSource,
        span: &Range<u64>,
    ) -> io::Result<Option<(u64, Option<u64>)>> {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
        let file = source.file().as_fd();
        match cachestat(file, span) {
            Ok(pages) => {
                let [cached, dirty] =
                    [pages.cached, pages.dirty].map(|pages| pages.saturating_mul(page));
                return Ok(Some((cached, Some(dirty))));
            }
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
            // An old kernel, a filter of system calls, or a file that one may not write.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {}
            Err(error) => return Err(error),
        }
        if !may_know(source) {
            return Ok(None);
        }
        match mincore(file, span, page) {
            Ok(resident) => Ok(Some((resident.saturating_mul(page), None))),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether `mincore` tells the truth: of files of others that one may not write, it says that all is cached.
    fn may_know(source: &FileSource) -> bool {
        let owned = fstat(source.file()).is_ok_and(|stat| stat.st_uid == geteuid().as_raw());
        owned || accessat(CWD, source.path(), Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    }

    pub(super) fn drop_cache(source: &FileSource) -> io::Result<()> {
        write_back(source.file().as_fd());
        Ok(fadvise(source.file(), 0, None, Advice::DontNeed)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;
    use std::ops::Range;

    use crate::FileSource;

    pub(super) fn cached(
        _source: &FileSource,
        _span: &Range<u64>,
    ) -> io::Result<Option<(u64, Option<u64>)>> {
        Ok(None)
    }

    pub(super) fn drop_cache(_source: &FileSource) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file of so many bytes on a disk, if the build is on one, with nothing left to write back.
    fn file(folder: &tempfile::TempDir, length: usize) -> FileSource {
        let path = folder.path().join("file");
        fs::write(&path, vec![7; length]).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        FileSource::open(path).unwrap()
    }

    /// A folder beside the build, which is on a disk more often than the system's own for such.
    fn folder() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        tempfile::tempdir_in(program.parent().unwrap()).unwrap()
    }

    fn go_on(_: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn a_span_is_cut_to_the_file() {
        let folder = folder();
        let source = file(&folder, 10_000);
        for (span, total) in [
            (0..10_000, 10_000),
            (0..u64::MAX, 10_000),
            (9_999..10_001, 1),
            (10_000..10_001, 0),
            (u64::MAX..u64::MAX, 0),
            (5..5, 0),
            #[expect(clippy::reversed_empty_ranges, reason = "a caller may give one")]
            (7..5, 0),
        ] {
            let Some(residency) = residency(&source, span.clone()).unwrap() else {
                return;
            };
            assert_eq!(
                residency,
                Residency { cached: total, dirty: Some(0), total },
                "what was just written is cached, {span:?}"
            );
        }
    }

    #[test]
    fn what_is_dropped_is_gone_and_what_is_warmed_is_there() {
        let folder = folder();
        let source = file(&folder, (3 << 20) + 5);
        let in_memory = file_system(&source).kind == FileSystemKind::Memory;
        let Some(stayed) = drop_cache(&source).unwrap() else {
            return;
        };
        assert_eq!((stayed.total, stayed.cached == 0), (source.len(), !in_memory));
        assert_eq!(warm(&source, 0..source.len(), go_on).unwrap(), source.len());
        let residency = residency(&source, 0..source.len()).unwrap().unwrap();
        assert!(residency.is_whole());
        // What is there already is not read again.
        let read = source.bytes_read();
        warm(&source, 0..source.len(), go_on).unwrap();
        assert_eq!(source.bytes_read(), read);
    }

    #[test]
    fn a_dirty_file_is_written_back_and_dropped() {
        let folder = folder();
        let path = folder.path().join("file");
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        let source = FileSource::open(path).unwrap();
        if file_system(&source).kind != FileSystemKind::Memory
            && let Some(stayed) = drop_cache(&source).unwrap()
        {
            assert_eq!(stayed, Residency { cached: 0, dirty: Some(0), total: 1 << 20 });
        }
    }

    #[test]
    fn a_part_can_be_warmed_and_progress_adds_up() {
        let folder = folder();
        let source = file(&folder, 5 << 20);
        drop_cache(&source).unwrap();
        let mut last = 0;
        let warmed = warm(&source, 100..(3 << 20) + 100, |done| {
            assert!(done > last && done <= 3 << 20);
            last = done;
            ControlFlow::Continue(())
        });
        assert_eq!(warmed.unwrap(), 3 << 20);
        assert_eq!(warm(&source, 7..7, go_on).unwrap(), 0);
        assert_eq!(warm(&source, u64::MAX..u64::MAX, go_on).unwrap(), 0);
    }

    #[test]
    fn warming_ends_when_it_is_told_to() {
        let folder = folder();
        let source = file(&folder, 5 << 20);
        let mut calls = 0;
        let progress = |_| {
            calls += 1;
            ControlFlow::Break(())
        };
        warm(&source, 0..source.len(), progress).unwrap();
        assert!(calls <= 1, "{calls}: the other readers may have been quicker");
        let work = Work::new(&source, 0..source.len());
        work.read(|_| work.stop.store(true, Ordering::Relaxed)).unwrap();
        assert_eq!(work.done.into_inner(), PART);
    }

    #[test]
    fn a_file_that_was_cut_off_is_an_error() {
        let folder = folder();
        let source = file(&folder, 3 << 20);
        let writer = fs::OpenOptions::new().write(true).open(source.path()).unwrap();
        writer.set_len(1 << 20).unwrap();
        let error = warm(&source, 0..source.len(), go_on).unwrap_err();
        assert_eq!(error.code(), "io-short");
        // Pages past the end are not cached.
        if let Some(residency) = residency(&source, 0..source.len()).unwrap() {
            assert_eq!(residency.total, 3 << 20);
            assert!(residency.cached <= 1 << 20);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn in_memory_all_that_was_written_is_cached() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        let source = file(&folder, 10_000);
        if file_system(&source).kind == FileSystemKind::Memory
            && let Some(stayed) = drop_cache(&source).unwrap()
        {
            assert_eq!(stayed, Residency { cached: 10_000, dirty: Some(0), total: 10_000 });
        }
    }
}
