//! Files that belong together, put in place together.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::target::Target;
use super::{NewFile, place};
use crate::{Error, ErrorKind};

/// Puts several files in place that are only whole with one another.
///
/// The seal, if there is one, is the file without which the set is not one: a checkpoint's index. A process
/// that is killed at any moment leaves the old set whole, or the new one, or one without its seal: then what
/// is there under the names of the members is all old, or all new, or lacks one. In this order:
///
/// 1. All that is new is completed, synced and named beside its target. Until here nothing has happened to
///    what was there.
/// 2. The old seal is removed.
/// 3. If there are several members, the file with the smallest name of those that are replaced is removed.
/// 4. The members take their places, the one for that file last.
/// 5. The stale files, those of the old set that the new one has nothing in place of, are removed in the order
///    given: an old seal is best the first. One that is not there, or is a target of the new set, is passed
///    over. If one cannot be removed, that is the error in the end.
/// 6. The seal takes its place.
///
/// After each step the folders are synced, if any file is to be.
///
/// # Errors
///
/// As [`NewFile::prepare`] and [`NewFile::commit`], before anything has happened; then what the system reports.
/// Two files with one target are [`ErrorKind::Exists`]. Where an error cuts off the fourth step, the members
/// that took a place where nothing was are removed again; after it, all members are there and stay.
pub fn commit_set(
    mut members: Vec<NewFile>,
    mut seal: Option<NewFile>,
    stale: &[PathBuf],
) -> Result<(), Error> {
    let files = || members.iter().chain(&seal);
    let targets = distinct(files())?;
    let folders: BTreeSet<PathBuf> =
        files().filter(|file| file.options.sync).map(|file| file.target.folder.clone()).collect();
    files().try_for_each(may_be_placed)?;
    for file in members.iter_mut().chain(&mut seal) {
        file.prepare()?;
    }
    sync(&folders)?;
    members.iter().chain(&seal).try_for_each(may_be_placed)?;

    if let Some(seal) = &seal
        && is_there(&seal.target)
    {
        remove(&seal.target.place)?;
        sync(&folders)?;
    }
    members.sort_by(|a, b| a.target.name.cmp(&b.target.name));
    if members.len() > 1
        && let Some(first) = members.iter().position(|member| is_there(&member.target))
    {
        let first = members.remove(first);
        remove(&first.target.place)?;
        sync(&folders)?;
        members.push(first);
    }

    let mut placed = Placed::default();
    for member in &mut members {
        placed.place(member)?;
    }
    placed.keep();
    sync(&folders)?;

    let is_target = |path: &PathBuf| Target::find(path).is_ok_and(|it| targets.contains(&it.place));
    let mut stale = stale.iter().filter(|path| !is_target(path));
    // What cannot be removed does not keep the new set from being whole.
    let removed = stale.clone().try_for_each(|path| remove(path));
    if stale.next().is_some() {
        sync(&folders)?;
    }
    if let Some(seal) = &mut seal {
        seal.place()?;
        sync(&folders)?;
    }
    removed
}

/// The paths of the targets, each of them once.
fn distinct<'a>(files: impl Iterator<Item = &'a NewFile>) -> Result<BTreeSet<PathBuf>, Error> {
    let mut targets = BTreeSet::new();
    for file in files {
        if !targets.insert(file.target.place.clone()) {
            return Err(Error::new(file.target(), ErrorKind::Exists));
        }
    }
    Ok(targets)
}

fn may_be_placed(file: &NewFile) -> Result<(), Error> {
    if !file.options.replace && is_there(&file.target) {
        return Err(Error::new(file.target(), ErrorKind::Exists));
    }
    Ok(())
}

fn is_there(target: &Target) -> bool {
    std::fs::symlink_metadata(&target.place).is_ok()
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::system(path, error)),
        _ => Ok(()),
    }
}

fn sync(folders: &BTreeSet<PathBuf>) -> Result<(), Error> {
    folders.iter().try_for_each(|folder| {
        place::sync_folder(folder).map_err(|error| Error::new(folder, ErrorKind::SyncFailed(error)))
    })
}

/// The files of a set that is not whole yet, which took a place where nothing was.
///
/// Dropped, it removes them again.
#[derive(Default)]
struct Placed(Vec<PathBuf>);

impl Placed {
    fn place(&mut self, file: &mut NewFile) -> Result<(), Error> {
        let is_new = !is_there(&file.target);
        file.place()?;
        if is_new {
            self.0.push(file.target.place.clone());
        }
        Ok(())
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}
