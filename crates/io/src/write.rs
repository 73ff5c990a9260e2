//! Writing files so that nobody ever finds half of one.
//!
//! A [`NewFile`] is written beside its target, without a name where the file system has such files, and takes
//! its place when it is complete and on the disk. Whatever happens before, the target is what it was. Several
//! that belong together are put in place by [`commit_set`], and the head of a file is edited where it is by
//! [`rewrite_head`].
//!
//! What is promised holds for a process that is killed at any moment: tests kill one at each of its system
//! calls. For a machine that loses power it holds as far as its disks and file systems keep the order that
//! [`sync_all`](File::sync_all) asks them to keep: no test here can show that.

#[cfg(target_os = "linux")]
mod access;
mod attributes;
mod claim;
mod copy;
mod exchange;
mod head;
mod journal;
mod leftover;
mod lock;
mod place;
mod set;
mod target;

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::path::{Path, PathBuf};

use crate::file::read_at;
use crate::source::to_u64;
use crate::system::{FileSystem, FileSystemKind, file_system_of};
use crate::{Error, ErrorKind, Misuse};
use lock::Held;
use target::Target;

pub use claim::Claims;
pub use head::{INTERRUPTED, Mended, mend, rewrite_head};
pub use set::commit_set;

/// How a file is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "built by literal")]
pub struct WriteOptions {
    /// Whether a file that is there may be replaced.
    pub replace: bool,
    /// Whether it is brought to the disk before it takes its place. If not, a machine that loses power soon
    /// after may have neither the old file nor the new one, and a failure that a network file system reports
    /// late is not seen.
    pub sync: bool,
}

impl Default for WriteOptions {
    /// Replaces nothing, and syncs.
    fn default() -> Self {
        Self { replace: false, sync: true }
    }
}

/// A file that is written beside its target and takes its place when it is complete.
///
/// Dropped before that, it leaves nothing behind. It is written at offsets, from several threads if need be;
/// what is not written within its length is zeros.
///
/// - A link is followed to its end, which need not exist: the link stays, and what it points to is written.
/// - A file that is replaced gives the new one its mode, as far as they may be given its owner, group, access
///   list and `user.` attributes; a new file has what the umask and the folder leave it.
/// - Whoever has the replaced file open, or mapped, keeps the old one; so do its other names (hard links).
///
/// # Examples
///
/// ```
/// use weigh_io::{NewFile, WriteOptions};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("greeting");
/// let file = NewFile::create(&path, &WriteOptions::default())?;
/// file.reserve(5)?;
/// file.write_at(b"lo", 3)?;
/// file.write_at(b"hel", 0)?;
/// let mut written = [0; 5];
/// file.read_exact_at(&mut written, 0)?;
/// assert_eq!(&written, b"hello");
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NewFile {
    target: Target,
    options: WriteOptions,
    /// Until it is complete.
    file: Option<File>,
    /// When it is complete, for its lock.
    held: Option<Held>,
    /// The name that it has beside its target, to be removed if it goes no further.
    temporary: Option<PathBuf>,
    /// The length that this process may give a file.
    longest: u64,
    /// What it is on.
    file_system: FileSystem,
}

impl NewFile {
    /// Begins a file. The target is never opened, and nothing is done to it.
    ///
    /// What earlier writers of this target left that were killed, `.NAME.weigh-XXXXXXXX.tmp`, is removed: files of
    /// the user, or of the owner of the target, that nobody has locked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`] if there is a file and it is not to be replaced; [`ErrorKind::IsFolder`];
    /// [`ErrorKind::NotAFile`] for pipes, sockets and devices; [`ErrorKind::Missing`] if the folder is not
    /// there, [`ErrorKind::Denied`] or [`ErrorKind::ReadOnly`] if it may not be written to, and what else the
    /// system reports.
    pub fn create(target: impl AsRef<Path>, options: &WriteOptions) -> Result<Self, Error> {
        let target = Target::find(target.as_ref())?;
        if target.there.is_some() && !options.replace {
            return Err(Error::new(&target.path, ErrorKind::Exists));
        }
        let failed = |error| Error::system(&target.path, error);
        if !place::may_replace(&target).map_err(failed)? {
            return Err(Error::new(&target.path, ErrorKind::Denied));
        }
        if options.sync {
            // What cannot be done at the end is better known at the beginning.
            place::open_folder(&target.folder).map_err(failed)?;
        }
        leftover::remove_new(&target);
        let (file, temporary) = place::open_new(&target).map_err(failed)?;
        let (longest, file_system) = (longest_file(), file_system_of(&file));
        Ok(Self {
            target,
            options: *options,
            file: Some(file),
            held: None,
            temporary,
            longest,
            file_system,
        })
    }

    /// What it is on. Known on Linux only.
    #[must_use]
    pub fn file_system(&self) -> FileSystem {
        self.file_system
    }

    /// The file that it becomes: the path as it was given, links followed.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target.path
    }

    /// Gives it a length in bytes and, where the file system can do that, room on the disk for all of it.
    ///
    /// On ext4 writing is a fifth faster then. On tmpfs it would be slower: there it is only looked whether there
    /// is room.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSpace`], [`ErrorKind::Quota`] or [`ErrorKind::TooLarge`] if there is none for that much,
    /// and what else the system reports.
    pub fn reserve(&self, length: u64) -> Result<(), Error> {
        let file = self.open_file(length)?;
        let failed = |error| Error::writing(&self.target.path, 0, length, 0, error);
        // Asked first: what tries to take more than there is takes all of it for a moment.
        if matches!(self.file_system.kind, FileSystemKind::Memory | FileSystemKind::Local)
            && place::free(file).is_some_and(|free| free < length)
        {
            return Err(failed(io::ErrorKind::StorageFull.into()));
        }
        if self.file_system.kind != FileSystemKind::Memory
            && length > 0
            && place::allocate(file, length).map_err(failed)?
        {
            return Ok(());
        }
        file.set_len(length).map_err(failed)
    }

    /// Writes bytes at an offset.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSpace`], [`ErrorKind::Quota`] and [`ErrorKind::TooLarge`];
    /// [`ErrorKind::WriteFailed`] for what else the system reports.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        let file = self.open_file(offset.saturating_add(to_u64(bytes.len())))?;
        write_at(file, &self.target.path, bytes, offset)
    }

    /// Fills `buffer` with the bytes at an offset, as they were written.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Short`] if it has no such bytes, [`ErrorKind::Failed`] for what the system reports.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let wanted = to_u64(buffer.len());
        let file = self.open_file(offset.saturating_add(wanted))?;
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let got = to_u64(filled);
            let failed = |kind| Error::new(&self.target.path, kind);
            match read_at(file, &mut [IoSliceMut::new(rest)], offset.saturating_add(got)) {
                Ok(0) => return Err(failed(ErrorKind::Short { offset, wanted, got })),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(failed(ErrorKind::Failed { offset, wanted, got, error }));
                }
            }
        }
        Ok(())
    }

    /// Says that it is complete: brings it to the disk, if asked for, with what it keeps of the file that it
    /// replaces, and gives it a name beside its target. Nothing can be written after that: it is a
    /// [`Misuse`](ErrorKind::Misuse).
    ///
    /// [`NewFile::commit`] does this if it has not been done; done before, it spreads the work where several
    /// files are written one after another. A process that is killed then leaves the name behind,
    /// `.NAME.weigh-XXXXXXXX.tmp`, and the next [`NewFile::create`] of this target removes it. What tells it from
    /// one in use is a lock, for which the file stays open; but no more than a quarter of the files that the
    /// process may open (`ulimit -n`): beyond that another writer of the same target may remove it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SyncFailed`], [`ErrorKind::NoSpace`] and [`ErrorKind::Quota`], and what else the system
    /// reports.
    pub fn prepare(&mut self) -> Result<(), Error> {
        self.finish()?;
        if let Some(file) = &self.file
            && self.temporary.is_none()
        {
            let named = place::name_beside(file, &self.target);
            self.temporary = Some(named.map_err(|error| self.failed(error))?);
        }
        self.held = self.file.take().and_then(Held::new);
        Ok(())
    }

    /// Puts it in its place, complete, and brings its name to the disk.
    ///
    /// At every moment the target is the old file, or nothing if there was none, or the new one.
    ///
    /// # Errors
    ///
    /// As [`NewFile::prepare`]; [`ErrorKind::Exists`] if a file has come up meanwhile and is not to be
    /// replaced. The target is what it was then. Only if the folder cannot be synced, the last step, it is the
    /// new file already: [`ErrorKind::SyncFailed`].
    pub fn commit(mut self) -> Result<(), Error> {
        self.finish()?;
        self.place()?;
        self.sync_folder()
    }

    /// Gives it what it keeps of the file that is there, and brings it to the disk.
    fn finish(&self) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(before) = &self.target.there {
            // As it is by now, if it still is.
            let now = std::fs::symlink_metadata(&self.target.place)
                .ok()
                .filter(std::fs::Metadata::is_file);
            attributes::keep(file, &self.target.place, now.as_ref().unwrap_or(before))
                .map_err(|error| self.failed(error))?;
        }
        if self.options.sync {
            file.sync_all().map_err(|error| {
                let length = file.metadata().map_or(0, |metadata| metadata.len());
                Error::syncing(&self.target.path, length, error)
            })?;
        }
        Ok(())
    }

    /// Puts it in its place. It has been finished.
    fn place(&mut self) -> Result<(), Error> {
        if let (Some(file), None) = (&self.file, &self.temporary) {
            if self.target.there.is_none() && self.name_as_target(file)? {
                return Ok(());
            }
            let named = place::name_beside(file, &self.target);
            self.temporary = Some(named.map_err(|error| self.failed(error))?);
        }
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let placed = if self.options.replace {
            place::replace(temporary, &self.target)
        } else {
            place::keep(temporary, &self.target)
        };
        placed.map_err(|error| self.not_placed(error))?;
        self.temporary = None;
        self.held = None;
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
        Ok(())
    }

    /// Gives a file without a name that of its target; whether that was free, or need not be.
    fn name_as_target(&self, file: &File) -> Result<bool, Error> {
        match place::name_as_target(file, &self.target) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.options.replace => {
                Ok(false)
            }
            Err(error) => Err(self.not_placed(error)),
        }
    }

    fn not_placed(&self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::AlreadyExists && !self.options.replace {
            return Error::new(&self.target.path, ErrorKind::Exists);
        }
        self.failed(error)
    }

    fn sync_folder(&self) -> Result<(), Error> {
        if !self.options.sync {
            return Ok(());
        }
        place::sync_folder(&self.target.folder)
            .map_err(|error| Error::new(&self.target.folder, ErrorKind::SyncFailed(error)))
    }

    /// The file, if it may still be written to, up to that byte.
    fn open_file(&self, end: u64) -> Result<&File, Error> {
        if end > self.longest {
            // The system would end the process.
            return Err(Error::new(&self.target.path, ErrorKind::TooLarge { wanted: end }));
        }
        let misuse = || Error::new(&self.target.path, ErrorKind::Misuse(Misuse::Complete));
        self.file.as_ref().ok_or_else(misuse)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::system(&self.target.path, error)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Makes a folder, unless it is there; says whether it has. With `sync`, its name is brought to the disk.
///
/// # Errors
///
/// [`ErrorKind::Missing`] if the folder that it is to be in is not there, [`ErrorKind::NotAFolder`] if something
/// else is, and what else the system reports.
pub fn make_folder(path: &Path, sync: bool) -> Result<bool, Error> {
    match std::fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_folder = path.is_dir();
            return if is_folder {
                Ok(false)
            } else {
                Err(Error::new(path, ErrorKind::NotAFolder))
            };
        }
        Err(error) => return Err(Error::system(path, error)),
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if sync {
        place::sync_folder(parent)
            .map_err(|error| Error::new(parent, ErrorKind::SyncFailed(error)))?;
    }
    Ok(true)
}

/// Writes all of the bytes at an offset of a file that is called `path`.
fn write_at(file: &File, path: &Path, bytes: &[u8], offset: u64) -> Result<(), Error> {
    let wanted = to_u64(bytes.len());
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        let done = to_u64(written);
        match write_some(file, rest, offset.saturating_add(done)) {
            Ok(0) => {
                let error = io::ErrorKind::WriteZero.into();
                return Err(Error::writing(path, offset, wanted, done, error));
            }
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::writing(path, offset, wanted, done, error)),
        }
    }
    Ok(())
}

fn write_some(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_write(file, bytes, offset);
}

/// The length that a file may have: beyond it, the system sends a signal that ends the process.
fn longest_file() -> u64 {
    // Offsets are signed.
    let most = i64::MAX.unsigned_abs();
    #[cfg(unix)]
    let most = rustix::process::getrlimit(rustix::process::Resource::Fsize)
        .current
        .map_or(most, |limit| limit.min(most));
    most
}
