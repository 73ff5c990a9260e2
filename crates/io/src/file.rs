//! An open file, read at offsets.

use std::fs::{File, Metadata, OpenOptions};
use std::io::IoSliceMut;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use crate::error::Change;
use crate::source::{Source, fill, read_span, to_u64};
use crate::{Error, ErrorKind};

/// A regular file, open for reading at offsets, from several threads if need be.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
    len: u64,
    identity: Identity,
    /// The path from the root: the folder that another is counted from may change.
    absolute: PathBuf,
    direct: OnceLock<Option<File>>,
    bytes_read: AtomicU64,
    /// Whether an edit that replaces it is under way.
    is_claimed: AtomicBool,
}

/// What tells one state of one file from another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Identity {
    modified: Option<SystemTime>,
    /// Device and number, where the system has them.
    number: Option<(u64, u64)>,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().ok(), number: file_number(metadata) }
    }
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
        Ok(Self {
            file,
            path: path.into(),
            len: metadata.len(),
            identity: Identity::of(&metadata),
            absolute: std::path::absolute(path).unwrap_or_else(|_| path.into()),
            direct: OnceLock::new(),
            bytes_read: AtomicU64::new(0),
            is_claimed: AtomicBool::new(false),
        })
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

    /// The open file, for what the modules of this crate ask the system about it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Device and number, where the system has them, when it was opened.
    pub(crate) fn number(&self) -> Option<(u64, u64)> {
        self.identity.number
    }

    /// Claims it for one edit; whether none has it.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::Acquire)
    }

    /// Ends the claim.
    pub(crate) fn release(&self) {
        self.is_claimed.store(false, Ordering::Release);
    }

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Short`] if the file ends before that, [`ErrorKind::Failed`] for what the system reports.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        fill(self, &mut [IoSliceMut::new(buffer)], offset)
    }

    /// Reads the bytes of `span` into memory of their own.
    ///
    /// The caller has bounded the length: that much is allocated.
    ///
    /// # Errors
    ///
    /// As [`FileSource::read_exact_at`].
    pub fn read_span(&self, span: Range<u64>) -> Result<Vec<u8>, Error> {
        read_span(self, span)
    }
}

impl Source for FileSource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        let count = read_at(&self.file, buffers, offset)?;
        self.count(to_u64(count));
        Ok(count)
    }

    fn verify(&self) -> Result<(), Error> {
        let changed = |change| Err(Error::new(&self.path, ErrorKind::Changed(change)));
        let now = self.file.metadata().map_err(|error| Error::system(&self.path, error))?;
        if now.len() != self.len {
            return changed(Change::Length { before: self.len, now: now.len() });
        }
        if Identity::of(&now).modified != self.identity.modified {
            return changed(Change::Written);
        }
        // A file that was deleted is still whole for whoever has it open.
        match std::fs::metadata(&self.absolute) {
            Ok(there) if file_number(&there) != self.identity.number => changed(Change::Replaced),
            _ => Ok(()),
        }
    }

    fn count(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    fn plain_file(&self) -> Option<&FileSource> {
        Some(self)
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn direct(&self) -> Option<&File> {
        self.direct.get_or_init(|| open_direct(&self.file)).as_ref()
    }
}

#[cfg(unix)]
fn open_without_blocking(path: &Path) -> std::io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a pipe that nobody writes to would wait for a writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // On a regular file the flag does nothing but make io_uring give up where it would have to wait.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(not(unix))]
fn open_without_blocking(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

/// Opens the same file again, whatever has its path by now.
#[cfg(target_os = "linux")]
fn open_direct(file: &File) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_: &File) -> Option<File> {
    None
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such numbers")]
pub(crate) fn file_number(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn file_number(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(target_os = "linux")]
pub(crate) fn read_at(
    file: &File,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> std::io::Result<usize> {
    Ok(rustix::io::preadv(file, buffers, offset)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_at(
    file: &File,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> std::io::Result<usize> {
    let Some(buffer) = buffers.iter_mut().find(|buffer| !buffer.is_empty()) else { return Ok(0) };
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
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
        use std::io::ErrorKind::Other;

        use crate::Unmendable;
        let kinds = [
            (ErrorKind::Missing, "p: no such file or folder"),
            (ErrorKind::Denied, "p: permission denied"),
            (ErrorKind::IsFolder, "p: is a folder"),
            (ErrorKind::NotAFile, "p: is not a regular file"),
            (ErrorKind::NotAFolder, "p: is a file, and a folder is wanted"),
            (
                ErrorKind::Short { offset: 8, wanted: 4, got: 2 },
                "p: the file ended while it was read: wanted 4 bytes at 8, got 2",
            ),
            (ErrorKind::Exists, "p: exists already"),
            (ErrorKind::NoSpace { wanted: 7 }, "p: the file system has no room for 7 bytes more"),
            (ErrorKind::Quota { wanted: 7 }, "p: the quota has no room for 7 bytes more"),
            (ErrorKind::NoSpace { wanted: 0 }, "p: the file system has no room for another file"),
            (ErrorKind::Quota { wanted: 0 }, "p: the quota has no room for another file"),
            (ErrorKind::TooLarge { wanted: 7 }, "p: a file may not be as long as 7 bytes here"),
            (ErrorKind::ReadOnly, "p: is on a read-only file system"),
            (ErrorKind::Locked, "p: another process is editing it"),
            (
                ErrorKind::WriteFailed { offset: 8, wanted: 4, done: 2, error: Other.into() },
                "p: writing 4 bytes at 8 failed after 2: other error",
            ),
            (
                ErrorKind::SyncFailed(Other.into()),
                "p: what was written may not be on the disk: other error",
            ),
            (
                ErrorKind::InterruptedEdit(Unmendable::NoJournal),
                "p: an edit of it in place was cut off, and there is no journal to undo it with",
            ),
            (
                ErrorKind::InterruptedEdit(Unmendable::BadJournal),
                "p: an edit of it in place was cut off, and the journal to undo it with is not as it was \
                 written",
            ),
            (
                ErrorKind::InterruptedEdit(Unmendable::OtherLength { journal: 7, file: 8 }),
                "p: an edit of it in place was cut off, and the journal to undo it with is for a file of 7 \
                 bytes, not 8",
            ),
            (
                ErrorKind::InterruptedEdit(Unmendable::OtherEdit),
                "p: an edit of it in place was cut off, and the journal to undo it with is that of another \
                 edit or another file, or the file has been written to since",
            ),
            (
                ErrorKind::InterruptedEdit(Unmendable::Denied),
                "p: an edit of it in place was cut off, and the file may not be written to, to undo it",
            ),
            (
                ErrorKind::InterruptedEdit(Unmendable::ReadOnly),
                "p: an edit of it in place was cut off, and cannot be undone on a read-only file system",
            ),
            (
                ErrorKind::StaleJournal(Other.into()),
                "p: the journal of an edit in place that is over is in the way and cannot be removed: other \
                 error",
            ),
        ];
        for (kind, want) in kinds {
            assert_eq!(Error::new("p", kind).to_string(), want);
        }
    }
}
