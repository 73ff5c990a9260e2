//! Work spread over threads, counted, and stopped when asked to.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weigh_io::{Cancel, Error as IoError, ErrorKind, NewFile, Progress, WriteOptions};
use weigh_io::{make_folder, system};

use crate::{Error, Watch};

/// How many bytes these are.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Locks; what a thread that panicked left is as good as any, as the panic ends the work anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work that writes to a folder, which is made if need be; if the work fails, a new folder is removed.
pub(crate) fn in_folder<T>(
    folder: Option<&Path>,
    sync: bool,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let Some(folder) = folder else { return work() };
    let is_new = make_folder(folder, sync)?;
    let done = work();
    if done.is_err() && is_new {
        // It is empty again; if something else came in meanwhile it stays.
        let _removed = std::fs::remove_dir(folder);
    }
    done
}

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The same from the root and without links, if it is there.
pub(crate) fn real_folder(file: &Path) -> PathBuf {
    let folder = folder_of(file);
    folder.canonicalize().unwrap_or_else(|_| folder.into())
}

/// Says so if a folder has no room for all files that are to be written to it, each with its bytes: they are
/// there together before the first takes its place, and each takes its own room only when its turn comes.
pub(crate) fn check_room<'p>(
    files: impl Iterator<Item = (&'p Path, u64)>,
    options: WriteOptions,
) -> Result<(), Error> {
    let mut folders: BTreeMap<PathBuf, (&Path, u64, usize)> = BTreeMap::new();
    for (path, bytes) in files {
        // A link may lead to another disk.
        let place = path.canonicalize();
        let folder = real_folder(place.as_deref().unwrap_or(path));
        let (_, sum, count) = folders.entry(folder).or_insert((path, 0, 0));
        *sum = sum.saturating_add(bytes);
        *count += 1;
    }
    for (path, sum, _) in folders.into_values().filter(|(_, _, count)| *count > 1) {
        // What takes the room is gone at once, and so is the room.
        let Err(error) = NewFile::create(path, &options)?.reserve(sum) else { continue };
        let kind = match error.kind() {
            ErrorKind::NoSpace { .. } => ErrorKind::NoSpace { wanted: sum },
            ErrorKind::Quota { .. } => ErrorKind::Quota { wanted: sum },
            // One file of so many bytes may be more than there can be.
            ErrorKind::TooLarge { .. } => continue,
            _ => return Err(error.into()),
        };
        return Err(IoError::new(folder_of(path), kind).into());
    }
    Ok(())
}

/// Counts what has been done, tells of it, and says when to stop.
pub(crate) struct Meter<'a> {
    watch: Watch<'a>,
    total: u64,
    done: Mutex<u64>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(total: u64, watch: Watch<'a>) -> Self {
        Self { watch, total, done: Mutex::new(0) }
    }

    pub(crate) fn cancel(&self) -> Option<&'a Cancel> {
        self.watch.cancel
    }

    /// # Errors
    ///
    /// [`Error::Cancelled`] if the work is to stop.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.watch.cancel.is_some_and(Cancel::is_cancelled) {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Adds bytes that have been done.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if whoever is told of it wants to stop.
    pub(crate) fn add(&self, bytes: u64) -> Result<(), Error> {
        let mut done = lock(&self.done);
        *done = done.saturating_add(bytes);
        let progress = Progress::new(*done, self.total);
        match self.watch.progress.map(|tell| tell(progress)) {
            Some(ControlFlow::Break(())) => Err(Error::Cancelled),
            _ => self.check(),
        }
    }
}

/// Threads that share the work, at most: the system's locks let no more of them write to one file.
const THREADS: usize = 4;

/// Does each piece, in order but several at a time; stops at the first error. Each thread has an `S` of its own.
pub(crate) fn spread<T: Sync, S: Default>(
    pieces: &[T],
    work: impl Fn(&T, &mut S) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let threads = system::cores().min(THREADS).min(pieces.len());
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let take = || {
        let mut own = S::default();
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(piece, &mut own) {
                // The others find nothing more to take.
                next.store(pieces.len(), Ordering::Relaxed);
                lock(&failed).get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Where there is no thread to be had, those there are do it all.
            let _started = std::thread::Builder::new().spawn_scoped(scope, take);
        }
        take();
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), Err)
}
