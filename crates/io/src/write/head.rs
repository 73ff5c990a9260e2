//! The first bytes of a file, replaced where they are, under an undo journal.
//!
//! The journal has the old head and the new one. While that is being written, the file begins with
//! [`INTERRUPTED`], which no reader takes for anything: it is the old file, or the new one, or of no use until
//! [`mend`] has made it one of them again. Each step is on the disk before the next one begins:
//!
//! 1. The journal, complete.
//! 2. The mark, and after it the token of this edit, which the journal has as well: no other journal is believed.
//! 3. The new head from behind these on.
//! 4. What belongs in the place of the token, then what belongs in that of the mark. Whoever finds a whole head
//!    behind the mark knows that the mark alone is out of place.
//!
//! One edit at a time: it holds a lock on the file itself, so that other names of the file are covered, and a
//! journal whose file is not locked is that of a process that is no more.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::journal::{Journal, Left, Token, new_token};
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

/// How long [`mend`] waits for an edit that is under way: it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// It completed an edit that was cut off before its last step: the file is what it was to be.
    Completed {
        /// Bytes of the head.
        head: u64,
    },
}

/// Replaces the first bytes of a file by as many others, where they are.
///
/// `expected` is what they are now; they are compared when no other edit can begin. The edit is of the file, not
/// of its name: hard links and whoever has it open see it, and a reader may see it half done, with
/// [`INTERRUPTED`] in front. A process that is killed meanwhile leaves the old file, or the new one, or one that
/// [`mend`] makes one of them. If an earlier edit was cut off, it is mended first.
///
/// # Errors
///
/// [`ErrorKind::Misuse`] if no head can be replaced by that; [`ErrorKind::Locked`] if another edit is under way;
/// [`ErrorKind::Changed`] if the file does not begin with `expected`; [`ErrorKind::Denied`] and
/// [`ErrorKind::ReadOnly`] if the file or its folder may not be written to; [`ErrorKind::InterruptedEdit`] if an
/// earlier edit cannot be undone, and [`ErrorKind::StaleJournal`] if what it left cannot be removed; what else the
/// system reports. The file is as it was then, if need be after [`mend`].
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
    let edited = Edited::open(&target, true, Duration::ZERO)?;
    edited.recover()?;
    edited.clear_journal()?;
    let file_len = edited.length()?;
    let mut found = vec![0; expected.len()];
    edited.read_head(&mut found)?;
    if found != expected {
        return Err(Error::new(path, ErrorKind::Changed(Change::Written)));
    }
    if expected == new {
        return Ok(());
    }
    let token = new_token();
    edited.write_journal(&Journal { token, file_len, old: expected, new })?;
    if let Err(error) = edited.replace(token, new) {
        // The journal stays if this fails as well.
        if edited.replace(token, expected).is_ok() {
            let _ = edited.remove_journal();
        }
        return Err(error);
    }
    let _ = edited.remove_journal();
    Ok(())
}

/// Undoes an edit in place of this file that was cut off, if there is the journal of one beside it; one that lacked
/// nothing but the last step is completed. An edit that is under way is waited for, up to a second.
///
/// Where there is none, this costs two looks at the folder and one at the first bytes of the file. Nothing is
/// written to a file that does not begin with [`INTERRUPTED`].
///
/// # Untrusted input
///
/// The journal may come from the same stranger as the file. It is a regular file that belongs to the owner of
/// the file, to the administrator or to the user, no link, no longer than twice the file and a frame, whole by its
/// checksum, and for a file of just this length whose head is what that edit may have left: behind the mark all of
/// the head that it had, or all of that which it was to have, or the token of the edit and bytes that are one or
/// the other. Else it is not believed, as that of another file or of an earlier edit. It can make of a file that is
/// of no use what the stranger could have made of it to begin with, and nothing of any other file. A copy of a
/// folder is mended as well.
///
/// # Errors
///
/// [`ErrorKind::Locked`] if the edit is still under way; [`ErrorKind::InterruptedEdit`] if it was cut off and
/// cannot be undone, as when the file may not be written to; what else the system reports.
pub fn mend(path: &Path) -> Result<Mended, Error> {
    let target = Target::find(path)?;
    if target.there.is_none() {
        return Err(Error::new(path, ErrorKind::Missing));
    }
    if !has_journal(&target) && !is_marked(&target)? {
        return Ok(Mended::Nothing);
    }
    let why = match Edited::open(&target, true, PATIENCE) {
        Err(error) => match error.kind() {
            ErrorKind::Denied => Unmendable::Denied,
            ErrorKind::ReadOnly => Unmendable::ReadOnly,
            _ => return Err(error),
        },
        Ok(edited) => return edited.recover(),
    };
    // Somebody who only reads the file need not mind a journal that is not needed.
    if !is_marked(&target)? {
        return Ok(Mended::Nothing);
    }
    // While it is locked no journal comes or goes.
    let edited = Edited::open(&target, false, PATIENCE)?;
    match edited.is_marked()? {
        false => Ok(Mended::Nothing),
        true if has_journal(&target) => Err(unmendable(&target, why)),
        true => Err(unmendable(&target, Unmendable::NoJournal)),
    }
}

/// Removes the journal of an edit that had not begun or had ended, as far as that can be done. The file is not
/// marked, and nobody else is editing it.
pub(super) fn remove_stale_journal(path: &Path) {
    let target = Target::find(path).ok().filter(has_journal);
    let _ = target.map(|target| std::fs::remove_file(target.journal()));
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
    /// Opens and locks it; an edit that is under way is waited for that long.
    fn open(target: &'a Target, to_write: bool, patience: Duration) -> Result<Self, Error> {
        let failed = |error| Error::system(&target.path, error);
        let file = open(&target.place, to_write).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::new(&target.path, ErrorKind::NotAFile));
        }
        lock(&file, patience).map_err(|error| match error {
            TryLockError::WouldBlock => Error::new(&target.path, ErrorKind::Locked),
            TryLockError::Error(error) => failed(error),
        })?;
        let edited = Self { target, file };
        let there = std::fs::symlink_metadata(&target.place).map_err(failed)?;
        if file_number(&there) != file_number(&edited.metadata()?) {
            return Err(Error::new(&target.path, ErrorKind::Changed(Change::Replaced)));
        }
        Ok(edited)
    }

    /// Mends what an earlier edit left.
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
            let removed = self.remove_journal();
            return Ok(removed.map_or(Mended::Nothing, |()| Mended::JournalRemoved));
        }
        let file_len = self.length()?;
        let bytes = self.read_journal(file_len)?.map_err(unmendable)?;
        let journal = Journal::decode(&bytes)
            .filter(|it| it.old.len() >= INTERRUPTED.len() && !it.old.starts_with(&INTERRUPTED))
            .ok_or_else(|| unmendable(Unmendable::BadJournal))?;
        let Journal { token, file_len: wanted, old, new } = journal;
        if wanted != file_len {
            return Err(unmendable(Unmendable::OtherLength { journal: wanted, file: file_len }));
        }
        if to_u64(old.len()) > file_len {
            return Err(unmendable(Unmendable::BadJournal));
        }
        let mut found = vec![0; old.len()];
        self.read_head(&mut found)?;
        let head = to_u64(old.len());
        let left = journal.left(&found).ok_or_else(|| unmendable(Unmendable::OtherEdit))?;
        let mended = match left {
            Left::New => {
                self.finish(new)?;
                Mended::Completed { head }
            }
            Left::Old => {
                self.finish(old)?;
                Mended::RolledBack { head }
            }
            Left::Mixed => {
                self.replace(token, old)?;
                Mended::RolledBack { head }
            }
        };
        let _ = self.remove_journal();
        Ok(mended)
    }

    /// Replaces the head: first the file is made one that nobody reads and that is known to be of this edit, then
    /// all of the head is written that is behind that, then the rest.
    fn replace(&self, token: Token, head: &[u8]) -> Result<(), Error> {
        let begin = INTERRUPTED.len();
        let from = head.len().min(begin + token.len());
        let token = &token[..from.saturating_sub(begin)];
        self.write(&INTERRUPTED, 0)?;
        self.write(token, begin)?;
        self.sync(from)?;
        let rest = &head[from..];
        if !rest.is_empty() {
            self.write(rest, from)?;
            self.sync(rest.len())?;
        }
        self.finish(head)
    }

    /// Writes the beginning of a head, which is all that it lacks: what is behind the mark first.
    fn finish(&self, head: &[u8]) -> Result<(), Error> {
        let begin = INTERRUPTED.len();
        let to = head.len().min(begin + size_of::<Token>());
        self.write(&head[begin..to], begin)?;
        self.write(&head[..begin], 0)?;
        self.sync(to)
    }

    fn write(&self, bytes: &[u8], offset: usize) -> Result<(), Error> {
        write_at(&self.file, &self.target.path, bytes, to_u64(offset))
    }

    fn sync(&self, length: usize) -> Result<(), Error> {
        let synced = self.file.sync_data();
        synced.map_err(|error| Error::syncing(&self.target.path, to_u64(length), error))
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
            let _ = self.remove_journal();
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
        let most = Journal::len(file_len.min(MOST_HEAD));
        if !metadata.is_file() || metadata.len() > most {
            return Ok(Err(Unmendable::BadJournal));
        }
        let mut bytes = vec![0; usize::try_from(metadata.len()).unwrap_or_default()];
        fill(&file, &path, &mut bytes)?;
        Ok(Ok(bytes))
    }

    /// Removes the journal.
    ///
    /// It is of no use any more, and does no harm if it stays or, as the folder is not synced, comes back: the
    /// file does not begin with the mark, nor will it ever have its token again.
    fn remove_journal(&self) -> io::Result<()> {
        std::fs::remove_file(self.target.journal())
    }

    /// Sees to it that there is no journal. None is needed.
    fn clear_journal(&self) -> Result<(), Error> {
        if !has_journal(self.target) {
            return Ok(());
        }
        let failed = |error| Error::new(self.target.journal(), ErrorKind::StaleJournal(error));
        self.remove_journal().map_err(failed)
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

/// Locks a file; whoever has it is waited for that long.
fn lock(file: &File, patience: Duration) -> Result<(), TryLockError> {
    let (began, mut pause) = (Instant::now(), Duration::from_millis(1));
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < patience => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            locked => return locked,
        }
    }
}

/// Whether a file begins with the mark.
pub(super) fn is_file_marked(file: &File, path: &Path) -> Result<bool, Error> {
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
