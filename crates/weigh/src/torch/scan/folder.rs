//! The files of a folder, all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use weigh_format::order;
use weigh_io::Error as IoError;

/// The files that a path stands for.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Walk {
    /// Them, in natural order of their paths.
    pub files: Vec<PathBuf>,
    /// What of it could not be read.
    pub unread: Vec<IoError>,
    /// Links to folders that lead out of it, and what is neither a file nor a folder: not followed, not opened.
    pub skipped: Vec<Skipped>,
}

/// Something in a folder that is not looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// What it is: `"a named pipe"`.
    pub what: &'static str,
}

/// Finds all files in a folder and its folders; a file stands for itself.
///
/// Links to files are followed wherever they lead, as loaders do; links to folders as long as they stay in the folder.
/// No folder is walked twice.
#[must_use]
pub fn walk(path: &Path) -> Walk {
    let mut walk = Walk::default();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            walk.files.push(path.into());
            return walk;
        }
        Err(error) => {
            walk.unread.push(IoError::system(path, error));
            return walk;
        }
    }
    let root = match fs::canonicalize(path) {
        Ok(root) => root,
        Err(error) => {
            walk.unread.push(IoError::system(path, error));
            return walk;
        }
    };
    let mut seen = BTreeSet::from([root.clone()]);
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                walk.unread.push(IoError::system(&folder, error));
                continue;
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => walk.enter(entry.path(), &root, &mut seen, &mut folders),
                Err(error) => walk.unread.push(IoError::system(&folder, error)),
            }
        }
    }
    let natural = |one: &PathBuf, other: &PathBuf| {
        order::compare(&one.to_string_lossy(), &other.to_string_lossy()).then(one.cmp(other))
    };
    walk.files.sort_by(natural);
    walk.skipped.sort_by(|one, other| natural(&one.path, &other.path));
    walk
}

impl Walk {
    fn enter(
        &mut self,
        path: PathBuf,
        root: &Path,
        seen: &mut BTreeSet<PathBuf>,
        folders: &mut Vec<PathBuf>,
    ) {
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => return self.unread.push(IoError::system(&path, error)),
        };
        if metadata.is_file() {
            self.files.push(path);
        } else if metadata.is_dir() {
            match fs::canonicalize(&path) {
                Ok(real) if !real.starts_with(root) => {
                    self.skip(path, "a link to a folder outside of the one that is scanned");
                }
                Ok(real) => {
                    if seen.insert(real) {
                        folders.push(path);
                    }
                }
                Err(error) => self.unread.push(IoError::system(&path, error)),
            }
        } else {
            self.skip(path, kind(metadata.file_type()));
        }
    }

    fn skip(&mut self, path: PathBuf, what: &'static str) {
        self.skipped.push(Skipped { path, what });
    }
}

/// What is neither a file nor a folder.
#[cfg(unix)]
fn kind(kind: fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_block_device() || kind.is_char_device() => "a device",
        _ => OTHER,
    }
}

#[cfg(not(unix))]
fn kind(_: fs::FileType) -> &'static str {
    OTHER
}

const OTHER: &str = "neither a file nor a folder";
