//! An open file, read at offsets.

use std::fs::{File, OpenOptions};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, ErrorKind};

/// A regular file, open for reading at offsets, from several threads if need be.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
    len: u64,
    bytes_read: AtomicU64,
}

impl FileSource {
    /// Opens a file. On Unix this never blocks, whatever the path names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Missing`], [`Denied`](ErrorKind::Denied), [`IsFolder`](ErrorKind::IsFolder),
    /// [`NotAFile`](ErrorKind::NotAFile), or what else the system reports.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = open_without_blocking(path).map_err(|error| Error::system(path, error))?;
        let metadata = file.metadata().map_err(|error| Error::system(path, error))?;
        if metadata.is_dir() {
            return Err(Error::new(path, ErrorKind::IsFolder));
        }
        if !metadata.is_file() {
            return Err(Error::new(path, ErrorKind::NotAFile));
        }
        Ok(Self { file, path: path.into(), len: metadata.len(), bytes_read: AtomicU64::new(0) })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes, when it was opened.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it had no bytes when it was opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes have been read from it.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Short`] if the file ends before that, or what the system reports.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let wanted = buffer.len();
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(to_u64(filled));
            match read_at(&self.file, rest, at) {
                Ok(0) => {
                    let (wanted, got) = (to_u64(wanted), to_u64(filled));
                    return Err(Error::new(&self.path, ErrorKind::Short { offset, wanted, got }));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::system(&self.path, error)),
            }
        }
        self.bytes_read.fetch_add(to_u64(wanted), Ordering::Relaxed);
        Ok(())
    }

    /// Reads the bytes of `span` into memory of their own.
    ///
    /// The caller has bounded the length: that much is allocated.
    ///
    /// # Errors
    ///
    /// As [`FileSource::read_exact_at`].
    pub fn read_span(&self, span: Range<u64>) -> Result<Vec<u8>, Error> {
        let too_long = || {
            let error = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
            Error::new(&self.path, ErrorKind::System(error))
        };
        let length = span.end.saturating_sub(span.start);
        let length = usize::try_from(length).map_err(|_| too_long())?;
        // Asked for first: what follows would end the process where there is not enough.
        Vec::<u8>::new().try_reserve_exact(length).map_err(|_| too_long())?;
        // Fresh memory from the system is zero already: this costs no pass over it.
        let mut bytes = vec![0; length];
        // Most of the time goes into the kernel's making memory for it, which two threads do sooner than one.
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let part = length.div_ceil(cores.min(THREADS)).max(PART);
        let parts = Mutex::new(bytes.chunks_mut(part).zip((span.start..).step_by(part)));
        let read_some = || {
            while let Some((part, offset)) = parts.lock().ok().and_then(|mut parts| parts.next()) {
                self.read_exact_at(part, offset)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            // Where the system gives no thread, those there are do it all.
            let another = |_| std::thread::Builder::new().spawn_scoped(scope, read_some).ok();
            let helpers: Vec<_> = (1..length.div_ceil(part)).map_while(another).collect();
            let own = read_some();
            helpers.into_iter().fold(own, |result, helper| match helper.join() {
                Ok(other) => result.and(other),
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        Ok(bytes)
    }
}

/// Bytes that are worth a thread.
const PART: usize = 4 << 20;

/// Threads that read one span, at most.
const THREADS: usize = 4;

fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(unix)]
fn open_without_blocking(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a pipe that nobody writes to would wait for a writer; on a regular file the flag does nothing.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open_without_blocking(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ten");
        std::fs::write(&path, b"0123456789").unwrap();
        let source = FileSource::open(&path).unwrap();
        assert_eq!((source.len(), source.bytes_read()), (10, 0));
        assert_eq!(source.read_span(2..5).unwrap(), b"234");
        assert_eq!(source.read_span(10..10).unwrap(), b"");
        assert_eq!(source.bytes_read(), 3);
    }

    #[test]
    fn a_large_span_is_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let content: Vec<u8> = (0..(3_u32 << 20) + 7).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &content).unwrap();
        let source = FileSource::open(&path).unwrap();
        assert!(source.read_span(5..source.len()).unwrap() == content[5..]);
        let past = source.len() + 1;
        assert_eq!(source.read_span(0..past).unwrap_err().code(), "io-short");
    }

    #[test]
    fn a_file_that_ends_early_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ten");
        std::fs::write(&path, b"0123456789").unwrap();
        let source = FileSource::open(&path).unwrap();
        let error = source.read_span(8..12).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Short { offset: 8, wanted: 4, got: 2 }));
    }

    #[test]
    fn what_is_not_a_readable_file_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let code = |path: &Path| FileSource::open(path).unwrap_err().code();
        assert_eq!(code(&folder.path().join("absent")), "io-missing");
        assert_eq!(code(folder.path()), "io-is-folder");
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert_eq!(code(&file.join("below")), "io-missing");
        assert!(FileSource::open(&file).unwrap().is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(FileSource::open(&path).unwrap_err().code(), "io-not-a-file");
    }

    #[cfg(unix)]
    #[test]
    fn every_message_has_its_path_and_words() {
        let kinds = [
            (ErrorKind::Missing, "p: no such file or folder"),
            (ErrorKind::Denied, "p: permission denied"),
            (ErrorKind::IsFolder, "p: is a folder"),
            (ErrorKind::NotAFile, "p: is not a regular file"),
            (
                ErrorKind::Short { offset: 8, wanted: 4, got: 2 },
                "p: the file ended while it was read: wanted 4 bytes at 8, got 2",
            ),
        ];
        for (kind, want) in kinds {
            assert_eq!(Error::new("p", kind).to_string(), want);
        }
    }
}
