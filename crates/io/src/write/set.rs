//! Files that belong together, put in place together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::exchange::{Exchange, sync};
use super::lock::Folders;
use super::target::Target;
use super::{NewFile, leftover};
use crate::{Error, ErrorKind};

/// Puts several files in place that are only whole with one another.
///
/// The seal, if there is one, is the file without which the set is not one: a checkpoint's index. A process
/// that is killed at any moment leaves the old set whole, or the new one, or one without its seal: then what
/// is there under the names of the members is all old, or all new, or lacks one. In this order:
///
/// 1. All that is new is completed, synced and named beside its target. Until here nothing has happened to
///    what was there.
/// 2. The old seal is set aside: renamed to `.NAME.weigh-XXXXXXXX.old`, the same eight digits for all files.
/// 3. If there are several members, the file with the smallest name of those that are replaced is set aside.
/// 4. The members take their places, the one for that file last; what each replaces is set aside before.
/// 5. The stale files, those of the old set that the new one has nothing in place of, are set aside in the order
///    given: an old seal is best the first. One that is not there, or is a target of the new set, is passed
///    over. If one cannot be set aside, the rest of them stay, and that is the error in the end.
/// 6. The seal takes its place.
/// 7. What was set aside is removed; and where every file may replace one, also what an earlier call that was
///    killed had set aside, if that was one of these files.
///
/// After each step but the last the folders are synced, if any file is to be. One member without a seal replaces
/// what is there at once, and nothing is set aside for it.
///
/// So until the new set is whole, all the files of the old one are there, under one name or the other: after a
/// kill they are had back by renaming them.
///
/// # One at a time
///
/// The folders of the files are locked meanwhile, where the file system has locks, so that no two calls mix their
/// files. The lock is advisory: nobody else is kept from anything. One member, without a seal or stale files, is no
/// set, and takes no lock.
///
/// # Errors
///
/// [`ErrorKind::Locked`] if another set is being put in place in one of the folders; as [`NewFile::prepare`] and
/// [`NewFile::commit`]; what the system reports. Two files with one target are [`ErrorKind::Exists`]. Everything is
/// as it was then, and nothing of the new set is left. But one member without a seal is in place if only syncing
/// failed; and if a stale file could not be set aside, or in the end not be removed, the new set is whole.
/// Should the system fail to put something back as well, the old files stay where they are, set aside.
pub fn commit_set(
    mut members: Vec<NewFile>,
    mut seal: Option<NewFile>,
    stale: &[PathBuf],
) -> Result<(), Error> {
    if seal.is_none() && stale.is_empty() && members.len() <= 1 {
        // No set: nothing can be mixed up, and others may write to the folder.
        return members.pop().map_or(Ok(()), NewFile::commit);
    }
    let files = || members.iter().chain(&seal);
    let targets = distinct(files())?;
    let stale = outside(stale, &targets);
    let mut replaced: Vec<Target> = files().map(|file| file.target.clone()).collect();
    replaced.extend_from_slice(&stale);
    let locked = Folders::lock(&replaced.iter().map(|it| it.folder.clone()).collect())?;
    let folders: BTreeSet<PathBuf> =
        files().filter(|file| file.options.sync).map(|file| file.target.folder.clone()).collect();
    let may_replace = files().all(|file| file.options.replace);
    files().try_for_each(may_be_placed)?;
    for file in members.iter_mut().chain(&mut seal) {
        file.prepare()?;
    }
    sync(&folders)?;
    members.iter().chain(&seal).try_for_each(may_be_placed)?;

    let mut exchange = Exchange::new(folders);
    match exchange.carry_out(members, seal, &stale) {
        Ok(removed) => {
            let finished = exchange.finish();
            let swept =
                if may_replace { leftover::remove_old(locked.paths(), &replaced) } else { Ok(()) };
            removed.and(finished).and(swept)
        }
        Err(error) => {
            exchange.undo();
            Err(error)
        }
    }
}

/// The places of the stale files, without those of the new set.
fn outside(stale: &[PathBuf], targets: &BTreeSet<PathBuf>) -> Vec<Target> {
    let is_target =
        |path: &Path| Target::find(path).is_ok_and(|target| targets.contains(&target.place));
    let stale = stale.iter().filter(|path| !is_target(path));
    stale.filter_map(|path| Target::at(path.clone()).ok()).collect()
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
    if !file.options.replace && file.target.is_there() {
        return Err(Error::new(file.target(), ErrorKind::Exists));
    }
    Ok(())
}
