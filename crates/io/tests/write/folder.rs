//! A folder of its own for each test, and what is in it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weigh_io::{Error, NewFile, WriteOptions};

/// Options of those who mean it.
pub(crate) const REPLACE: WriteOptions = WriteOptions { replace: true, sync: true };

pub(crate) const KEEP: WriteOptions = WriteOptions { replace: false, sync: true };

/// A folder that is removed when the test ends.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One that has these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self::new();
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap()
    }

    /// The names of all that is in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.path())
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Begins a file and writes all of it.
pub(crate) fn written(
    path: impl AsRef<Path>,
    content: &str,
    options: WriteOptions,
) -> Result<NewFile, Error> {
    let file = NewFile::create(path, &options)?;
    file.reserve(content.len() as u64)?;
    file.write_at(content.as_bytes(), 0)?;
    Ok(file)
}

/// Writes a file as it should be written.
pub(crate) fn write(
    path: impl AsRef<Path>,
    content: &str,
    options: WriteOptions,
) -> Result<(), Error> {
    written(path, content, options)?.commit()
}
