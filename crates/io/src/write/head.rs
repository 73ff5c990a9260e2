//! The first bytes of a file, replaced where they are, under an undo journal.
//!
//! The journal has the old head. While the new one is being written, the file begins with [`INTERRUPTED`], which
//! no reader takes for anything: it is the old file, or the new one, or of no use until [`mend`] has made it the
//! old one again. Each step is on the disk before the next one begins.
//!
//! One edit at a time: it holds a lock on the file itself, so that other names of the file are covered, and a
//! journal whose file is not locked is that of a process that is no more.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::journal::Journal;
use super::target::Target;
use super::{attributes, place, write_at};
use crate::error::{Change, Misuse, Unmendable};
use crate::file::{file_number, read_at};
use crate::source::to_u64;
use crate::{Error, ErrorKind};

/// What a file begins with while its head is replaced in place.
///
/// As a little-endian number it is over 2^63: for a reader of safetensors, a header longer than any file.
pub const INTERRUPTED: [u8; 8] = *b"midedit\xff";

/// Bytes that a head may have: those of the longest header that readers take, and some.
const MOST_HEAD: u64 = 101_000_000;

/// What [`mend`] did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mended {
    /// Nothing: there was nothing to do.
    Nothing,
    /// It removed the journal of an edit that had not begun, or had ended. The file is as it was.
    JournalRemoved,
    /// It undid an edit that was cut off: the file is what it was before that.
    RolledBack {
        /// Bytes of the head that was written back.
        head: u64,
    },
}

/// Replaces the first bytes of a file by as many others, where they are.
///
/// `expected` is what they are now; they are compared when no other edit can begin. The edit is of the file, not
/// of its name: hard links and whoever has it open see it, and a reader may see it half done, with
/// [`INTERRUPTED`] in front. A process that is killed meanwhile leaves the old file, or the new one, or one that
/// [`mend`] makes the old one. If an earlier edit was cut off, it is undone first.
///
/// # Errors
///
/// [`ErrorKind::Misuse`] if no head can be replaced by that; [`ErrorKind::Locked`] if another edit is under way;
/// [`ErrorKind::Changed`] if the file does not begin with `expected`; [`ErrorKind::Denied`] and
/// [`ErrorKind::ReadOnly`] if the file or its folder may not be written to; [`ErrorKind::InterruptedEdit`] if an
/// earlier edit cannot be undone; what else the system reports. The file is as it was then, if need be after
/// [`mend`].
pub fn rewrite_head(path: &Path, expected: &[u8], new: &[u8]) -> Result<(), Error> {
    let target = Target::find(path)?;
    let (is_long_enough, marked) =
        (expected.len() >= INTERRUPTED.len(), |head: &[u8]| head.starts_with(&INTERRUPTED));
    if !is_long_enough
        || expected.len() != new.len()
        || to_u64(new.len()) > MOST_HEAD
        || marked(expected)
        || marked(new)
    {
        let misuse = Misuse::Head { expected: expected.len(), new: new.len() };
        return Err(Error::new(path, ErrorKind::Misuse(misuse)));
    }
    let edited = Edited::open(&target, true)?;
    edited.recover()?;
    let file_len = edited.length()?;
    let mut found = vec![0; expected.len()];
    edited.read_head(&mut found)?;
    if found != expected {
        return Err(Error::new(path, ErrorKind::Changed(Change::Written)));
    }
    if expected == new {
        return Ok(());
    }
    edited.write_journal(&Journal { file_len, head: expected })?;
    if let Err(error) = edited.replace(new) {
        // The journal stays if this fails as well.
        if edited.replace(expected).is_ok() {
            edited.remove_journal();
        }
        return Err(error);
    }
    edited.remove_journal();
    Ok(())
}

/// Undoes an edit in place of this file that was cut off, if there is the journal of one beside it.
///
/// Where there is none, this costs two looks at the folder and one at the first bytes of the file. Nothing is
/// written to a file that does not begin with [`INTERRUPTED`].
///
/// # Untrusted input
///
/// The journal may come from the same stranger as the file. It is a regular file that belongs to the owner of
/// the file, to the administrator or to the user, no link, no longer than the file and a frame, whole by its
/// checksum, and for a file of just this length; else it is not believed. It can make of a file that is of no
/// use what the stranger could have made of it to begin with, and nothing of any other file. That the file is
/// the one that the journal was written for is not checked beyond that: a copy of a folder has other file
/// numbers, and is mended as well.
///
/// # Errors
///
/// [`ErrorKind::Locked`] if the edit is still under way; [`ErrorKind::InterruptedEdit`] if it was cut off and
/// cannot be undone; [`ErrorKind::Denied`] or [`ErrorKind::ReadOnly`] if it could be and the file may not be
/// written to; what else the system reports.
pub fn mend(path: &Path) -> Result<Mended, Error> {
    let target = Target::find(path)?;
    if target.there.is_none() {
        return Err(Error::new(path, ErrorKind::Missing));
    }
    if !has_journal(&target) && !is_marked(&target)? {
        return Ok(Mended::Nothing);
    }
    match Edited::open(&target, true) {
        // Somebody who only reads the file need not mind a journal that is not needed.
        Err(error) if matches!(error.kind(), ErrorKind::Denied | ErrorKind::ReadOnly) => {
            if !is_marked(&target)? {
                return Ok(Mended::Nothing);
            }
            // While it is locked no journal comes or goes.
            let edited = Edited::open(&target, false)?;
            match edited.is_marked()? {
                false => Ok(Mended::Nothing),
                true if has_journal(&target) => Err(error),
                true => Err(unmendable(&target, Unmendable::NoJournal)),
            }
        }
        edited => edited?.recover(),
    }
}

fn is_marked(target: &Target) -> Result<bool, Error> {
    let file = open(&target.place, false).map_err(|error| Error::system(&target.path, error))?;
    is_file_marked(&file, &target.path)
}

/// Whether there is a journal; if that cannot be told, there may be one.
fn has_journal(target: &Target) -> bool {
    let there = std::fs::symlink_metadata(target.journal());
    !there.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn unmendable(target: &Target, why: Unmendable) -> Error {
    Error::new(&target.path, ErrorKind::InterruptedEdit(why))
}

/// A file whose head is read and written, and which nobody else edits.
struct Edited<'a> {
    target: &'a Target,
    file: File,
}

impl<'a> Edited<'a> {
    fn open(target: &'a Target, to_write: bool) -> Result<Self, Error> {
        let failed = |error| Error::system(&target.path, error);
        let file = open(&target.place, to_write).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::new(&target.path, ErrorKind::NotAFile));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(&target.path, ErrorKind::Locked));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let edited = Self { target, file };
        let there = std::fs::symlink_metadata(&target.place).map_err(failed)?;
        if file_number(&there) != file_number(&edited.metadata()?) {
            return Err(Error::new(&target.path, ErrorKind::Changed(Change::Replaced)));
        }
        Ok(edited)
    }

    /// Undoes what an earlier edit left.
    fn recover(&self) -> Result<Mended, Error> {
        let unmendable = |why| unmendable(self.target, why);
        let is_marked = self.is_marked()?;
        if !has_journal(self.target) {
            return if is_marked {
                Err(unmendable(Unmendable::NoJournal))
            } else {
                Ok(Mended::Nothing)
            };
        }
        if !is_marked {
            return Ok(if self.remove_journal() {
                Mended::JournalRemoved
            } else {
                Mended::Nothing
            });
        }
        let file_len = self.length()?;
        let bytes = self.read_journal(file_len)?.map_err(unmendable)?;
        let Some(Journal { file_len: wanted, head }) = Journal::decode(&bytes)
            .filter(|it| it.head.len() >= INTERRUPTED.len() && !it.head.starts_with(&INTERRUPTED))
        else {
            return Err(unmendable(Unmendable::BadJournal));
        };
        if wanted != file_len {
            return Err(unmendable(Unmendable::OtherLength { journal: wanted, file: file_len }));
        }
        if to_u64(head.len()) > file_len {
            return Err(unmendable(Unmendable::BadJournal));
        }
        self.replace(head)?;
        self.remove_journal();
        Ok(Mended::RolledBack { head: to_u64(head.len()) })
    }

    /// Replaces the head: first the file is made one that nobody reads, then all but its first bytes are
    /// written, then those.
    fn replace(&self, head: &[u8]) -> Result<(), Error> {
        let (first, rest) = head.split_at(INTERRUPTED.len().min(head.len()));
        for (bytes, offset) in [(&INTERRUPTED[..], 0), (rest, to_u64(first.len())), (first, 0)] {
            if bytes.is_empty() {
                continue;
            }
            write_at(&self.file, &self.target.path, bytes, offset)?;
            self.file
                .sync_data()
                .map_err(|error| Error::syncing(&self.target.path, to_u64(bytes.len()), error))?;
        }
        Ok(())
    }

    fn is_marked(&self) -> Result<bool, Error> {
        is_file_marked(&self.file, &self.target.path)
    }

    fn metadata(&self) -> Result<std::fs::Metadata, Error> {
        self.file.metadata().map_err(|error| Error::system(&self.target.path, error))
    }

    fn length(&self) -> Result<u64, Error> {
        Ok(self.metadata()?.len())
    }

    fn read_head(&self, head: &mut [u8]) -> Result<(), Error> {
        fill(&self.file, &self.target.path, head)
    }

    /// Writes a journal, where there is none.
    fn write_journal(&self, journal: &Journal<'_>) -> Result<(), Error> {
        let path = self.target.journal();
        let failed = |error| Error::system(&path, error);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        // Whoever may read the head may read what it was, and nobody else.
        let kept = attributes::keep_access(&file, &self.target.place, &self.metadata()?, 0o666);
        let bytes = journal.encode();
        let written = kept
            .map_err(failed)
            .and_then(|()| write_at(&file, &path, &bytes, 0))
            .and_then(|()| {
                file.sync_all().map_err(|error| Error::syncing(&path, to_u64(bytes.len()), error))
            })
            .and_then(|()| {
                place::sync_folder(&self.target.folder)
                    .map_err(|error| Error::new(&self.target.folder, ErrorKind::SyncFailed(error)))
            });
        if written.is_err() {
            self.remove_journal();
        }
        written
    }

    /// The bytes of the journal, if they are ones that may be believed; else why not.
    fn read_journal(&self, file_len: u64) -> Result<Result<Vec<u8>, Unmendable>, Error> {
        let path = self.target.journal();
        let failed = |error| Error::system(&path, error);
        let there = std::fs::symlink_metadata(&path).map_err(failed)?;
        if !there.is_file() {
            return Ok(Err(Unmendable::BadJournal));
        }
        // Whose it is, is known without the right to read it.
        if let Some(owner) = stranger(&there, &self.metadata()?) {
            return Ok(Err(Unmendable::Untrusted { owner }));
        }
        let file = open(&path, false).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if let Some(owner) = stranger(&metadata, &self.metadata()?) {
            return Ok(Err(Unmendable::Untrusted { owner }));
        }
        let most = Journal::len(0).saturating_add(file_len.min(MOST_HEAD));
        if !metadata.is_file() || metadata.len() > most {
            return Ok(Err(Unmendable::BadJournal));
        }
        let mut bytes = vec![0; usize::try_from(metadata.len()).unwrap_or_default()];
        fill(&file, &path, &mut bytes)?;
        Ok(Ok(bytes))
    }

    /// Removes the journal; whether it is gone.
    ///
    /// It is of no use any more, and does no harm if it stays or, as the folder is not synced, comes back: the
    /// file does not begin with the mark.
    fn remove_journal(&self) -> bool {
        std::fs::remove_file(self.target.journal()).is_ok()
    }
}

impl Drop for Edited<'_> {
    /// A process that is being started just now may have the file open as well, for a moment: the lock does not
    /// wait for that.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Whose a journal is, if it is nobody's who may write to the file.
fn stranger(journal: &std::fs::Metadata, file: &std::fs::Metadata) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let owner = journal.uid();
        let trusted = [file.uid(), 0, rustix::process::geteuid().as_raw()];
        (!trusted.contains(&owner)).then_some(owner)
    }
    #[cfg(not(unix))]
    {
        let _ = (journal, file);
        None
    }
}

/// Opens a file that is there; no link, and without waiting for what is at the other end of a pipe.
pub(super) fn open(path: &Path, to_write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(to_write);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

/// Whether a file begins with the mark.
fn is_file_marked(file: &File, path: &Path) -> Result<bool, Error> {
    let metadata = file.metadata().map_err(|error| Error::system(path, error))?;
    if !metadata.is_file() {
        return Err(Error::new(path, ErrorKind::NotAFile));
    }
    let mut first = [0; INTERRUPTED.len()];
    if metadata.len() < to_u64(first.len()) {
        return Ok(false);
    }
    fill(file, path, &mut first)?;
    Ok(first == INTERRUPTED)
}

/// Fills a buffer with the first bytes of a file.
fn fill(file: &File, path: &Path, buffer: &mut [u8]) -> Result<(), Error> {
    let wanted = to_u64(buffer.len());
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let (offset, got) = (0, to_u64(filled));
        match read_at(file, &mut [io::IoSliceMut::new(rest)], got) {
            Ok(0) => return Err(Error::new(path, ErrorKind::Short { offset, wanted, got })),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Error::new(path, ErrorKind::Failed { offset, wanted, got, error }));
            }
        }
    }
    Ok(())
}
