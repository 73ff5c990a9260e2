//! Locks that tell what somebody is at from what somebody who is no more left.
//!
//! They are advisory: who asks for them is kept out, and they end with the process, however that ends. A file
//! system may have none: then nothing is kept out, and nothing that is left is taken for left.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::place;
use crate::file::file_number;
use crate::{Error, ErrorKind};

/// Folders in which nobody else puts a set in place.
#[derive(Debug, Default)]
pub(super) struct Folders(Vec<(PathBuf, File)>);

impl Folders {
    /// Locks those that are there and can be locked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if somebody else has one.
    pub(super) fn lock(folders: &BTreeSet<PathBuf>) -> Result<Self, Error> {
        let (mut locked, mut seen) = (Self::default(), Vec::new());
        for path in folders {
            let Ok(Some(folder)) = place::open_folder(path) else { continue };
            // One that has two paths is locked once.
            let number = folder.metadata().ok().and_then(|there| file_number(&there));
            if seen.contains(&number) {
                continue;
            }
            match folder.try_lock() {
                Ok(()) => locked.0.push((path.clone(), folder)),
                Err(TryLockError::WouldBlock) => return Err(Error::new(path, ErrorKind::Locked)),
                Err(TryLockError::Error(_)) => {}
            }
            seen.push(number);
        }
        Ok(locked)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| path.as_path())
    }
}

impl Drop for Folders {
    /// A process that is being started just now may have them open as well, for a moment: the lock does not wait
    /// for that.
    fn drop(&mut self) {
        for (_, folder) in &self.0 {
            let _ = folder.unlock();
        }
    }
}

/// Locks a new file that has just been given this name, before anybody takes it for left. If somebody has, it has
/// to have another.
pub(super) fn claim(file: &File, path: &Path) -> io::Result<()> {
    let is_ours = match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        _ => is_called(file, path),
    };
    if is_ours { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}

/// Whether a path is that of an open file.
pub(super) fn is_called(file: &File, path: &Path) -> bool {
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => file_number(&there) == file_number(&here),
        _ => false,
    }
}

/// A file that is complete and open for its lock alone.
#[derive(Debug)]
pub(super) struct Held(File);

/// How many there are in this process.
static HELD: AtomicU64 = AtomicU64::new(0);

impl Held {
    /// Keeps it open, unless so many are that the process might run out of files.
    pub(super) fn new(file: File) -> Option<Self> {
        let held = Self(file);
        (HELD.fetch_add(1, Ordering::Relaxed) < most_held()).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
        let _ = self.0.unlock();
    }
}

/// A quarter of the files that the process may have open.
fn most_held() -> u64 {
    const USUAL: u64 = 1024;
    #[cfg(unix)]
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let most = None;
    most.unwrap_or(USUAL) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once_whatever_its_paths() {
        let folder = tempfile::tempdir().unwrap();
        let paths = BTreeSet::from([
            folder.path().to_path_buf(),
            folder.path().join("."),
            folder.path().join("absent"),
        ]);
        let locked = Folders::lock(&paths).unwrap();
        if cfg!(unix) {
            assert_eq!(locked.paths().count(), 1);
            assert_eq!(Folders::lock(&paths).unwrap_err().code(), "io-locked");
        }
        drop(locked);
        Folders::lock(&paths).unwrap();
    }

    #[test]
    fn a_new_file_that_somebody_has_or_has_removed_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let file = File::create(&path).unwrap();
        claim(&file, &path).unwrap();
        let other = File::open(&path).unwrap();
        assert_eq!(claim(&other, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(&path).unwrap();
        assert_eq!(claim(&file, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
