//! Bytes of another file, copied by the file system where it can do that.
//!
//! On file systems that share blocks (btrfs, XFS) nothing is copied at all: both files have the same ones until
//! one is changed; servers (NFS, SMB) copy where they are. On others `copy_file_range` is a loop in the kernel.
//! Measured on ext4 and tmpfs it takes 1.5 times as long as reading and writing a MiB at a time from two threads,
//! as tensors lie at other distances from a page in the new file than in the old one: there the program copies.

use std::ops::Range;

use super::NewFile;
use crate::source::to_u64;
use crate::system::FileSystem;
use crate::{Cancel, FileSource, ReadError};

impl NewFile {
    /// Writes the bytes of a span of another file at an offset.
    ///
    /// `progress` is told of every piece, with the number of its bytes. Several threads may copy at once. That
    /// the source is still what it was when it was opened is for the caller to [`verify`](crate::Source::verify),
    /// when all is copied and before the new file takes the source's place, if it does.
    ///
    /// Blocks can be shared only if the span begins as many bytes after a multiple of 4096 as `offset` does.
    ///
    /// # Errors
    ///
    /// [`ReadError::File`] if either file fails, the source's [`Short`](crate::ErrorKind::Short) if it ends
    /// before the span; [`ReadError::Cancelled`].
    pub fn copy_at(
        &self,
        from: &FileSource,
        span: Range<u64>,
        offset: u64,
        cancel: Option<&Cancel>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ReadError> {
        let length = span.end.saturating_sub(span.start);
        self.open_file(offset.saturating_add(length))?;
        self.copy_by(&mut Kernel::new(self.file_system()), from, span, offset, cancel, progress)
    }

    fn copy_by(
        &self,
        kernel: &mut Kernel,
        from: &FileSource,
        span: Range<u64>,
        offset: u64,
        cancel: Option<&Cancel>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ReadError> {
        let mut buffer = Vec::new();
        let mut at = span.start;
        while at < span.end {
            if cancel.is_some_and(Cancel::is_cancelled) {
                return Err(ReadError::Cancelled);
            }
            let to = offset.saturating_add(at - span.start);
            let piece = at..piece_end(at, to, span.end);
            let mut copied = kernel.copy(self, from, piece.clone(), to)?;
            if copied == 0 {
                if buffer.is_empty() {
                    buffer = vec![0; buffer_len(span.end - at)];
                }
                copied = self.copy_through(&mut buffer, from, piece, to)?;
            }
            progress(copied);
            at = at.saturating_add(copied);
        }
        Ok(())
    }

    /// Copies as much as the buffer holds.
    fn copy_through(
        &self,
        buffer: &mut [u8],
        from: &FileSource,
        span: Range<u64>,
        to: u64,
    ) -> Result<u64, ReadError> {
        // Up to where a page of the target ends, so that none is written in two goes.
        let room = to_u64(BUFFER);
        let length = (span.end - span.start).min(room - to % room);
        let length = usize::try_from(length).unwrap_or(buffer.len()).min(buffer.len());
        let bytes = buffer.get_mut(..length).unwrap_or_default();
        from.read_exact_at(bytes, span.start)?;
        self.write_at(bytes, to)?;
        Ok(to_u64(length))
    }
}

/// Bytes that pass through the program at once.
const BUFFER: usize = 1 << 20;

/// Bytes of the buffer for a span: no more than it has, as there may be millions of short ones.
fn buffer_len(span: u64) -> usize {
    usize::try_from(span).unwrap_or(BUFFER).min(BUFFER)
}

/// Bytes that the kernel is asked for at once: it does not stop before.
const PIECE: u64 = 64 << 20;

/// The unit of blocks that can be shared.
const BLOCK: u64 = 4096;

/// Where the piece that begins at `at` ends.
///
/// What is not a whole block at the beginning or at the end is a piece of its own, for the sake of those
/// between: the kernel shares a piece as a whole.
fn piece_end(at: u64, to: u64, end: u64) -> u64 {
    if at % BLOCK != to % BLOCK {
        return end.min(at.saturating_add(PIECE));
    }
    if !at.is_multiple_of(BLOCK) {
        return end.min(at.next_multiple_of(BLOCK));
    }
    let whole = end - end % BLOCK;
    if whole > at { whole.min(at.saturating_add(PIECE)) } else { end }
}

#[cfg(target_os = "linux")]
use system::Kernel;

#[cfg(target_os = "linux")]
mod system {
    use std::ops::Range;

    use rustix::fs::copy_file_range;
    use rustix::io::{Errno, retry_on_intr};

    use super::{FileSystem, NewFile};
    use crate::source::{Source, to_u64};
    use crate::{Error, FileSource};

    /// Whether the kernel copies between these files.
    pub(super) struct Kernel {
        pub(super) is_able: bool,
    }

    impl Kernel {
        /// Nobody has tried yet: by what the target is on.
        pub(super) fn new(target: FileSystem) -> Self {
            Self { is_able: target.copies() }
        }

        /// Copies some of a span, or nothing where it has to pass through the program: then whichever file it
        /// is that fails will say so.
        pub(super) fn copy(
            &mut self,
            file: &NewFile,
            from: &FileSource,
            span: Range<u64>,
            to: u64,
        ) -> Result<u64, Error> {
            if !self.is_able {
                return Ok(0);
            }
            let length = span.end - span.start;
            let wanted = usize::try_from(length).unwrap_or(usize::MAX);
            let target = file.open_file(to.saturating_add(length))?;
            let copied = retry_on_intr(|| {
                let (mut at, mut to) = (span.start, to);
                copy_file_range(from.file(), Some(&mut at), target, Some(&mut to), wanted)
            });
            match copied {
                Ok(0) => Ok(0),
                Ok(count) => {
                    from.count(to_u64(count));
                    Ok(to_u64(count).min(length))
                }
                Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                    Err(Error::writing(file.target(), to, length, 0, error.into()))
                }
                Err(_) => {
                    self.is_able = false;
                    Ok(0)
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
struct Kernel;

#[cfg(not(target_os = "linux"))]
impl Kernel {
    fn new(_target: FileSystem) -> Self {
        Self
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as on Linux")]
    fn copy(
        &mut self,
        _file: &NewFile,
        _from: &FileSource,
        _span: Range<u64>,
        _to: u64,
    ) -> Result<u64, crate::Error> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_short_span_has_a_short_buffer() {
        for (span, want) in [
            (1, 1),
            (4, 4),
            (to_u64(BUFFER) - 1, BUFFER - 1),
            (to_u64(BUFFER), BUFFER),
            (to_u64(BUFFER) + 1, BUFFER),
            (u64::MAX, BUFFER),
        ] {
            assert_eq!(buffer_len(span), want, "{span}");
        }
    }

    #[test]
    fn pieces_leave_whole_blocks_between_them() {
        for (at, to, end, want) in [
            // The same distance from a block: head, middle, tail.
            (0, 4096, 1, 1),
            (0, 4096, 4096, 4096),
            (0, 4096, 4097, 4096),
            (4096, 8192, 4097, 4097),
            (10, 4106, 4095, 4095),
            (10, 4106, 4096, 4096),
            (10, 4106, 9000, 4096),
            (4096, 8192, 9000, 8192),
            (0, 0, PIECE + 1, PIECE),
            (0, 0, 2 * PIECE, PIECE),
            // Another: nothing can be shared.
            (10, 11, 9000, 9000),
            (10, 11, 2 * PIECE, PIECE + 10),
        ] {
            assert_eq!(piece_end(at, to, end), want, "{at} {to} {end}");
        }
    }
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_copies_on_one_file_system_and_between_two_the_program_may_have_to() {
        let here = tempfile::tempdir().unwrap();
        if !copied_by_kernel(here.path(), here.path()) {
            eprintln!("skipped: the kernel copies no files here");
        }
        let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
            eprintln!("skipped: there is no /dev/shm");
            return;
        };
        copied_by_kernel(memory.path(), memory.path());
        // Kernels before 5.19 do it; later ones say EXDEV.
        copied_by_kernel(here.path(), memory.path());
        copied_by_kernel(memory.path(), here.path());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_kernel_copies_ends_where_the_source_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("from");
        std::fs::write(&path, "0123").unwrap();
        let source = FileSource::open(&path).unwrap();
        let file = NewFile::create(folder.path().join("to"), &crate::WriteOptions::default());
        let mut kernel = Kernel { is_able: true };
        let file = file.unwrap();
        let result = file.copy_by(&mut kernel, &source, 2..6, 0, None, &|_| {});
        let Err(ReadError::File(error)) = result else { panic!("{result:?}") };
        assert_eq!((error.code(), error.path()), ("io-short", &*path));
    }

    /// Copies spans from one folder to another, and checks every byte. Whether the kernel copied all of it.
    #[cfg(target_os = "linux")]
    fn copied_by_kernel(from: &std::path::Path, to: &std::path::Path) -> bool {
        let length = 3 * BUFFER + 5;
        let content: Vec<u8> = (0..251).cycle().take(length).collect();
        std::fs::write(from.join("from"), &content).unwrap();
        let source = FileSource::open(from.join("from")).unwrap();
        let options = crate::WriteOptions { replace: true, sync: false };
        let mut is_able = true;
        for span in [0..0, 0..1, 0..4096, 4095..4097, 1..length, 0..length] {
            for offset in [0, 1, 4096, 5000] {
                let file = NewFile::create(to.join("to"), &options).unwrap();
                file.reserve(to_u64(offset + span.len())).unwrap();
                let (told, read) = (AtomicU64::new(0), source.bytes_read());
                let tell = |bytes| {
                    told.fetch_add(bytes, Ordering::Relaxed);
                };
                let mut kernel = Kernel { is_able: true };
                let bytes = to_u64(span.start)..to_u64(span.end);
                file.copy_by(&mut kernel, &source, bytes, to_u64(offset), None, &tell).unwrap();
                file.commit().unwrap();
                let copied = std::fs::read(to.join("to")).unwrap();
                assert!(copied[..offset].iter().all(|byte| *byte == 0), "{span:?} {offset}");
                assert!(copied[offset..] == content[span.clone()], "{span:?} {offset}");
                assert_eq!(told.into_inner(), to_u64(span.len()));
                assert_eq!(source.bytes_read() - read, to_u64(span.len()));
                is_able &= kernel.is_able;
            }
        }
        is_able
    }
}
