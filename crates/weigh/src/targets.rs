//! Whether files can go where they are to go, as far as that can be told before any work is done.
//!
//! What is found here is what [`NewFile::create`](weigh_io::NewFile::create) would refuse. Nothing is opened, and
//! nothing is changed; things may be otherwise when the time comes, and are looked at again then.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use weigh_io::{Error as IoError, ErrorKind};

use crate::Error;
use crate::work::folder_of;

/// Where the files of a plan go.
#[derive(Debug)]
pub(crate) struct Targets<'p> {
    /// The files, their index with them.
    pub(crate) files: Vec<&'p Path>,
    /// What will be removed for them.
    pub(crate) stale: &'p [PathBuf],
    /// The folder that they are in, which is made if need be.
    pub(crate) folder: Option<&'p Path>,
    /// Whether what is there may be replaced.
    pub(crate) replace: bool,
}

impl Targets<'_> {
    /// # Errors
    ///
    /// [`Error::Io`] for the first target that cannot be written, and [`Error::SameTarget`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(folder) = self.folder
            && !is_folder_or_free(folder)?
        {
            // In a folder that is yet to be made nothing is in the way.
            return Ok(());
        }
        let mut places: BTreeMap<PathBuf, &Path> = BTreeMap::new();
        for path in &self.files {
            if there(path)?.is_none() {
                continue;
            }
            if !self.replace {
                return Err(IoError::new(*path, ErrorKind::Exists).into());
            }
            let place = path.canonicalize().map_err(|error| IoError::system(path, error))?;
            if let Some(other) = places.insert(place, path) {
                let paths = [other, path].map(PathBuf::from);
                return Err(Error::SameTarget { paths: Box::new(paths) });
            }
        }
        match self.stale.first() {
            Some(path) if !self.replace => Err(IoError::new(path, ErrorKind::Exists).into()),
            _ => Ok(()),
        }
    }
}

/// Whether there is a folder, and not a place where one can be made.
fn is_folder_or_free(folder: &Path) -> Result<bool, Error> {
    match metadata(folder)? {
        Some(there) if there.is_dir() => Ok(true),
        Some(_) => Err(IoError::new(folder, ErrorKind::NotAFolder).into()),
        // A link to nothing, which is not followed to make a folder.
        None if fs::symlink_metadata(folder).is_ok() => {
            Err(IoError::new(folder, ErrorKind::Missing).into())
        }
        None => check_folder(folder_of(folder)).map(|()| false),
    }
}

/// The file that is at a path, links followed.
fn there(path: &Path) -> Result<Option<Metadata>, Error> {
    let there = metadata(path)?;
    match &there {
        Some(there) if there.is_dir() => Err(IoError::new(path, ErrorKind::IsFolder).into()),
        Some(there) if !there.is_file() => Err(IoError::new(path, ErrorKind::NotAFile).into()),
        Some(_) => Ok(()),
        None => check_folder(folder_of(&end_of_links(path))),
    }?;
    Ok(there)
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let kind = match metadata(folder)? {
        Some(there) if there.is_dir() => return Ok(()),
        Some(_) => ErrorKind::NotAFolder,
        None => ErrorKind::Missing,
    };
    Err(IoError::new(folder, kind).into())
}

/// What is there; an error for links in a circle and folders that may not be looked into.
fn metadata(path: &Path) -> Result<Option<Metadata>, Error> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::metadata(path) {
        Ok(there) => Ok(Some(there)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => Err(IoError::system(path, error).into()),
    }
}

/// Where links lead that lead to nothing: not in a circle, then.
fn end_of_links(path: &Path) -> PathBuf {
    let mut at = path.to_path_buf();
    while let Ok(link) = fs::read_link(&at) {
        at = folder_of(&at).join(link);
    }
    at
}
