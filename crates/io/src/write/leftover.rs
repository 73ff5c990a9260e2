//! What processes that were killed left beside a target, removed by the next ones.
//!
//! Two kinds: new files that had not got their places, `.NAME.weigh-XXXXXXXX.tmp`, which are of no use; and files
//! of an old set that were set aside, `.NAME.weigh-XXXXXXXX.old`, of which there may be no others: they go when
//! another set is whole, not before.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use super::target::{Target, Token};
use super::{head, lock};
use crate::Error;

/// Removes the new files that writers of this target left: those that have its temporary names, are files, the
/// user's or that of the target's owner, and are locked by nobody.
///
/// As far as it can be done: they are in nobody's way.
pub(super) fn remove_new(target: &Target) {
    for name in names(&target.folder).filter(|name| target.is_temporary(name)) {
        let _ = remove_unlocked(&target.folder.join(name), target.there.as_ref());
    }
}

fn remove_unlocked(path: &Path, there: Option<&Metadata>) -> io::Result<()> {
    let is_left = |it: &Metadata| it.is_file() && is_of(it, there);
    if !is_left(&fs::symlink_metadata(path)?) {
        return Ok(());
    }
    // Some file systems lock only what may be written to.
    let file = head::open(path, true).or_else(|_| head::open(path, false))?;
    if is_left(&file.metadata()?) && file.try_lock().is_ok() {
        if lock::is_called(&file, path) {
            fs::remove_file(path)?;
        }
        file.unlock()?;
    }
    Ok(())
}

/// Removes what a run that was killed set aside in these folders, if it had set aside one of these files, which
/// are replaced by now. Nobody else puts a set in place there.
///
/// # Errors
///
/// What the system reports of the first that cannot be removed.
pub(super) fn remove_old<'a>(
    folders: impl Iterator<Item = &'a Path>,
    replaced: &[Target],
) -> Result<(), Error> {
    folders.map(|folder| remove_old_in(folder, replaced)).fold(Ok(()), Result::and)
}

fn remove_old_in(folder: &Path, replaced: &[Target]) -> Result<(), Error> {
    let set_aside = |name: OsString| Some((Token::of_aside(&name)?, name));
    let all: Vec<(Token, OsString)> =
        names(folder).filter_map(set_aside).filter(|(_, name)| may_remove(folder, name)).collect();
    let is_replaced = |name: &OsStr, token: &Token| {
        replaced.iter().any(|it| it.aside(token) == folder.join(name))
    };
    let (last, first): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(token, name)| is_replaced(name, token));
    let tokens: BTreeSet<&Token> = last.iter().map(|(token, _)| token).collect();
    // Those by which the others are found are the last.
    let same_run = first.iter().filter(|(token, _)| tokens.contains(token));
    let remove = |(_, name): &(Token, OsString)| {
        let path = folder.join(name);
        fs::remove_file(&path).map_err(|error| Error::system(&path, error))
    };
    same_run.chain(&last).map(remove).fold(Ok(()), Result::and)
}

/// Whether it is a file or a link, and, in a folder where everybody may write, the user's own.
fn may_remove(folder: &Path, name: &OsStr) -> bool {
    let Ok(there) = fs::symlink_metadata(folder.join(name)) else { return false };
    let is_ones_own = || is_of(&there, None);
    (there.is_file() || there.is_symlink()) && (!is_sticky(folder) || is_ones_own())
}

#[cfg(unix)]
fn is_sticky(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    fs::metadata(folder).is_ok_and(|folder| folder.mode() & STICKY != 0)
}

/// Whether a file is the user's or that of the owner of another.
#[cfg(unix)]
fn is_of(file: &Metadata, there: Option<&Metadata>) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = file.uid();
    owner == rustix::process::geteuid().as_raw() || there.is_some_and(|it| it.uid() == owner)
}

#[cfg(not(unix))]
fn is_sticky(_folder: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn is_of(_file: &Metadata, _there: Option<&Metadata>) -> bool {
    true
}

fn names(folder: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name())
}
