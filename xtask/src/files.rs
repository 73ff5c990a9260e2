//! The files of the repository that the checks look at.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The files with an extension in a folder and the folders in it, sorted.
///
/// Left out are hidden folders (but `.github`), build output, virtual
/// environments, installed packages and symbolic links.
///
/// # Errors
///
/// When a folder cannot be listed.
pub(crate) fn with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let listing = fs::read_dir(folder);
    for entry in listing.with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if !is_left_out(&path) {
                files.extend(with_extension(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The whole text of a file.
///
/// # Errors
///
/// When it cannot be read, or is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file unless it holds just that, so that cargo sees no change.
///
/// # Errors
///
/// When it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn is_left_out(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    (name.starts_with('.') && name != ".github")
        || name == "target"
        || name == "node_modules"
        || ["CACHEDIR.TAG", "pyvenv.cfg"].iter().any(|mark| folder.join(mark).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_or_hidden_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "b.md",
            "a.md",
            "a.rs",
            "docs/c.md",
            ".github/d.md",
            ".cache/e.md",
            "target/f.md",
            "node_modules/g/h.md",
            "environment/pyvenv.cfg",
            "environment/i.md",
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let want = [".github/d.md", "a.md", "b.md", "docs/c.md"];
        assert_eq!(
            with_extension(folder.path(), "md").unwrap(),
            want.map(|path| folder.path().join(path))
        );
    }
}
