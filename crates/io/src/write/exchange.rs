//! A set that takes the place of another, and gives it back if it cannot.
//!
//! What the old set has is renamed, `.NAME.weigh-XXXXXXXX.old`, and removed only when the new set is whole: until
//! then the files of the old one are all there, under one name or the other.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::target::{Target, Token};
use super::{NewFile, place};
use crate::{Error, ErrorKind};

/// What has been done so far.
#[derive(Debug)]
pub(super) struct Exchange {
    token: Token,
    /// Folders that are synced after each step.
    folders: BTreeSet<PathBuf>,
    seal: Option<Change>,
    /// The first of the members that replace one.
    first: Option<Change>,
    others: Vec<Change>,
    stale: Vec<Change>,
}

/// What has been done at one place.
#[derive(Debug)]
struct Change {
    place: PathBuf,
    /// Where what was there is.
    aside: Option<PathBuf>,
    /// Whether the new file is there.
    is_placed: bool,
}

impl Exchange {
    pub(super) fn new(folders: BTreeSet<PathBuf>) -> Self {
        let token = Token::new();
        Self { token, folders, seal: None, first: None, others: Vec::new(), stale: Vec::new() }
    }

    /// Puts the new set in place, step by step. What is wrong with a stale file is no reason to stop: it is the
    /// inner error.
    pub(super) fn carry_out(
        &mut self,
        mut members: Vec<NewFile>,
        mut seal: Option<NewFile>,
        stale: &[Target],
    ) -> Result<Result<(), Error>, Error> {
        if let Some(seal) = &seal {
            let cleared = self.clear(seal)?;
            let was_there = cleared.aside.is_some();
            self.seal = Some(cleared);
            if was_there {
                self.sync()?;
            }
        }
        members.sort_by(|a, b| a.target.name.cmp(&b.target.name));
        // One that is alone takes its place at once: nothing can fail after that.
        let is_alone = members.len() == 1 && seal.is_none();
        let mut first = None;
        if members.len() > 1
            && let Some(at) = members.iter().position(|member| member.target.is_there())
        {
            let member = first.insert(members.remove(at));
            self.first = Some(self.clear(member)?);
            self.sync()?;
        }
        for member in &mut members {
            if is_alone {
                member.place()?;
            } else {
                let change = self.clear(member)?;
                self.others.push(change);
                put(member, self.others.last_mut())?;
            }
        }
        if let Some(member) = &mut first {
            put(member, self.first.as_mut())?;
        }
        self.sync()?;

        let removed = stale.iter().try_for_each(|stale| {
            let aside = self.set_aside(stale)?;
            self.stale.push(Change { place: stale.place.clone(), aside, is_placed: false });
            Ok(())
        });
        if !stale.is_empty() {
            self.sync()?;
        }
        if let Some(seal) = &mut seal {
            put(seal, self.seal.as_mut())?;
            self.sync()?;
        }
        Ok(removed)
    }

    /// Puts everything back as it was; at no moment does what is there look whole that is not.
    ///
    /// If that fails, it stops: what was set aside stays where it is.
    pub(super) fn undo(self) {
        let _ = self.put_back();
    }

    fn put_back(self) -> io::Result<()> {
        let ends = || self.seal.iter().chain(&self.first);
        // Without these it is no set.
        ends().filter(|change| change.is_placed).try_for_each(|change| remove(&change.place))?;
        let _ = self.sync();
        self.others.iter().chain(&self.stale).try_for_each(Change::put_back)?;
        for change in self.first.iter().chain(&self.seal) {
            let _ = self.sync();
            change.put_back()?;
        }
        let _ = self.sync();
        Ok(())
    }

    /// Removes what was set aside: the new set is whole.
    ///
    /// # Errors
    ///
    /// What the system reports of the first that cannot be removed.
    pub(super) fn finish(self) -> Result<(), Error> {
        // The last are those by which the next one finds the others, if this one is killed.
        let changes = self.stale.iter().chain(&self.others).chain(&self.first).chain(&self.seal);
        changes
            .filter_map(|change| change.aside.as_ref())
            .map(|aside| remove(aside).map_err(|error| Error::system(aside, error)))
            .fold(Ok(()), Result::and)
    }

    /// Sets aside what a new file replaces, if it may.
    fn clear(&self, file: &NewFile) -> Result<Change, Error> {
        let aside = if file.options.replace { self.set_aside(&file.target)? } else { None };
        Ok(Change { place: file.target.place.clone(), aside, is_placed: false })
    }

    /// Renames what is at a place, and says what it is called then. Nothing if there is nothing.
    fn set_aside(&self, target: &Target) -> Result<Option<PathBuf>, Error> {
        let failed = |error| Error::system(&target.path, error);
        match fs::symlink_metadata(&target.place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
            Ok(there) if there.is_dir() => {
                return Err(Error::new(&target.path, ErrorKind::IsFolder));
            }
            Ok(there) if !there.is_file() && !there.is_symlink() => {
                return Err(Error::new(&target.path, ErrorKind::NotAFile));
            }
            Ok(_) => {}
        }
        let aside = target.aside(&self.token);
        place::set_aside(&target.place, &aside).map_err(failed)?;
        Ok(Some(aside))
    }

    fn sync(&self) -> Result<(), Error> {
        sync(&self.folders)
    }
}

impl Change {
    fn put_back(&self) -> io::Result<()> {
        match &self.aside {
            Some(aside) => fs::rename(aside, &self.place),
            None if self.is_placed => remove(&self.place),
            None => Ok(()),
        }
    }
}

fn put(file: &mut NewFile, change: Option<&mut Change>) -> Result<(), Error> {
    file.place()?;
    if let Some(change) = change {
        change.is_placed = true;
    }
    Ok(())
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Brings the names in these folders to the disk.
pub(super) fn sync(folders: &BTreeSet<PathBuf>) -> Result<(), Error> {
    folders.iter().try_for_each(|folder| {
        place::sync_folder(folder).map_err(|error| Error::new(folder, ErrorKind::SyncFailed(error)))
    })
}
