//! Which checkpoints a path stands for (FORMAT.md §6, at its end).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weigh_format::shards::numbering;
use weigh_io::Error as IoError;

use crate::Error;

/// How the files of a checkpoint belong together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Layout {
    /// One file.
    File,
    /// The files that an index names.
    Indexed,
    /// Files numbered as one set, without an index.
    Numbered,
}

impl Layout {
    /// The word for it: `file`, `indexed`, `numbered`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Indexed => "indexed",
            Self::Numbered => "numbered",
        }
    }
}

/// A checkpoint that was found, not opened yet.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// What to call it: the file, the index, or the folder that it is alone in.
    pub path: PathBuf,
    /// How its files belong together.
    pub layout: Layout,
    /// The index, or the files themselves.
    pub files: Vec<PathBuf>,
    /// Other safetensors files in the folder, which this checkpoint may not be made of.
    pub beside: Vec<PathBuf>,
}

/// Finds the checkpoints at `path`, which is a file, a shard index or a folder.
///
/// A folder stands for its one index; else for its one numbered set or its one file; else for each of
/// them; where it has none, for the checkpoints in its folders, one level down. Hidden files are left out.
/// Only folders are read.
///
/// # Errors
///
/// [`Error::Io`] if the path cannot be read, [`Error::NothingFound`] if there is no checkpoint.
pub fn find(path: impl AsRef<Path>) -> Result<Vec<Found>, Error> {
    let path = path.as_ref();
    let metadata = fs::metadata(path).map_err(|error| io_error(path, error))?;
    if !metadata.is_dir() {
        let layout = if is_index(path) { Layout::Indexed } else { Layout::File };
        let files = vec![path.to_path_buf()];
        return Ok(vec![Found { path: path.into(), layout, files, beside: Vec::new() }]);
    }
    let folder = Folder::read(path)?;
    let mut found = folder.checkpoints(path);
    if found.is_empty() {
        for below in &folder.folders {
            match Folder::read(below) {
                Ok(folder) => found.extend(folder.checkpoints(below)),
                // What may be a checkpoint, and cannot be read: opening it says why.
                Err(_) => found.push(alone(below.clone())),
            }
        }
    }
    if found.is_empty() {
        let torch_files = folder.torch_files;
        return Err(Error::NothingFound { path: path.into(), torch_files });
    }
    Ok(found)
}

/// What is in a folder, by name.
#[derive(Default)]
struct Folder {
    indexes: Vec<PathBuf>,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    torch_files: Vec<String>,
}

impl Folder {
    fn read(path: &Path) -> Result<Self, Error> {
        let mut folder = Self::default();
        for entry in fs::read_dir(path).map_err(|error| io_error(path, error))? {
            let entry = entry.map_err(|error| io_error(path, error))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let own = entry.path();
            if own.is_dir() {
                folder.folders.push(own);
            } else if is_index(&own) {
                folder.indexes.push(own);
            } else if name.ends_with(".safetensors") {
                folder.files.push(own);
            } else if [".bin", ".pt", ".pth", ".ckpt"].iter().any(|end| name.ends_with(end)) {
                folder.torch_files.push(name.into_owned());
            }
        }
        folder.indexes.sort();
        folder.files.sort();
        folder.folders.sort();
        folder.torch_files.sort();
        Ok(folder)
    }

    fn checkpoints(&self, path: &Path) -> Vec<Found> {
        let mut found: Vec<Found> = self
            .indexes
            .iter()
            .map(|index| Found {
                path: index.clone(),
                layout: Layout::Indexed,
                files: vec![index.clone()],
                beside: self.files.clone(),
            })
            .collect();
        if found.len() > 1 {
            // The files that no index can claim by its name stand for themselves.
            let claimed: BTreeSet<_> =
                self.indexes.iter().filter_map(|it| index_prefix(it)).collect();
            let free = self.files.iter().filter(|file| {
                let name = file_name(file);
                numbering(&name).is_none_or(|it| !claimed.contains(it.prefix))
            });
            found.extend(sets(free));
        } else if found.is_empty() {
            found = sets(self.files.iter());
        }
        if let [one] = found.as_mut_slice() {
            one.path = path.into();
        }
        found
    }
}

/// Groups files: those numbered as one set together, each other one alone.
fn sets<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Vec<Found> {
    let mut sets: BTreeMap<(String, u64), Vec<PathBuf>> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files {
        let name = file_name(file);
        match numbering(&name) {
            Some(place) => {
                sets.entry((place.prefix.into(), place.total)).or_default().push(file.clone());
            }
            None => found.push(alone(file.clone())),
        }
    }
    for ((_, total), mut files) in sets {
        if files.len() == 1 && total == 1 {
            found.extend(files.pop().map(alone));
            continue;
        }
        let path = files.first().cloned().unwrap_or_default();
        found.push(Found { path, layout: Layout::Numbered, files, beside: Vec::new() });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn alone(file: PathBuf) -> Found {
    Found { path: file.clone(), layout: Layout::File, files: vec![file], beside: Vec::new() }
}

/// What the files of an index begin with: `model` for `model.safetensors.index.json`.
pub(crate) fn index_prefix(index: &Path) -> Option<String> {
    file_name(index).strip_suffix(INDEX_SUFFIX).map(String::from)
}

/// What the names of indexes end with.
pub(crate) const INDEX_SUFFIX: &str = ".safetensors.index.json";

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_index(path: &Path) -> bool {
    file_name(path).ends_with(INDEX_SUFFIX)
}

fn io_error(path: &Path, error: std::io::Error) -> Error {
    Error::Io(IoError::system(path, error))
}
