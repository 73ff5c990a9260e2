//! Files that are read and then replaced: nobody else edits them meanwhile.

use std::collections::BTreeSet;
use std::fs::{self, TryLockError};
use std::path::Path;

use super::head;
use crate::error::Change;
use crate::file::file_number;
use crate::{Error, ErrorKind, FileSource, Source};

/// Holds the files that an edit reads and replaces, so that of two edits at once none is lost.
///
/// It is the lock of edits in place: whoever asks for it, for one or the other, is refused until this is dropped.
/// It is advisory, and some file systems have none: who does not ask is not kept out, and [`Claims::verify`] tells
/// of it afterwards. On systems other than Unix nothing is locked.
///
/// ```
/// use weigh_io::{Claims, FileSource, NewFile, WriteOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("m");
/// # std::fs::write(&path, "old")?;
/// let source = FileSource::open(&path)?;
/// let claims = Claims::of_replaced([&source], [path.as_path()])?;
/// let file = NewFile::create(&path, &WriteOptions { replace: true, sync: true })?;
/// file.copy_at(&source, 1..3, 0, None, &|_| ())?;
/// claims.verify()?;
/// file.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Claims<'s>(Vec<&'s FileSource>);

impl<'s> Claims<'s> {
    /// Claims those of the sources that are at one of these paths, links followed. What an edit in place that is
    /// over left beside them is removed, as far as it can be.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if somebody else has one or is editing it in place; [`ErrorKind::Changed`] if it is
    /// not what it was when it was opened.
    pub fn of_replaced<'t>(
        sources: impl IntoIterator<Item = &'s FileSource>,
        targets: impl IntoIterator<Item = &'t Path>,
    ) -> Result<Self, Error> {
        let there = |target: &Path| file_number(&fs::metadata(target).ok()?);
        let targets: BTreeSet<(u64, u64)> = targets.into_iter().filter_map(there).collect();
        let mut claims = Self::default();
        for source in sources {
            if source.number().is_some_and(|number| targets.contains(&number)) {
                claims.add(source)?;
            }
        }
        Ok(claims)
    }

    /// Says whether all are still what they were when they were opened.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Changed`] for the first that is not.
    pub fn verify(&self) -> Result<(), Error> {
        self.0.iter().try_for_each(|source| source.verify())
    }

    fn add(&mut self, source: &'s FileSource) -> Result<(), Error> {
        let locked = || Error::new(source.path(), ErrorKind::Locked);
        // A process may lock its own file over again.
        if !source.claim() {
            return Err(locked());
        }
        let has_lock = match source.file().try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => {
                source.release();
                return Err(locked());
            }
            Err(TryLockError::Error(_)) => false,
        };
        self.0.push(source);
        source.verify()?;
        if has_lock {
            if head::is_file_marked(source.file(), source.path())? {
                return Err(Error::new(source.path(), ErrorKind::Changed(Change::Written)));
            }
            head::remove_stale_journal(source.path());
        }
        Ok(())
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        for source in &self.0 {
            let _ = source.file().unlock();
            source.release();
        }
    }
}
