//! `PATH` or `PATH:SELECTOR`: where a checkpoint is, and which of its tensors are meant.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A path, and a glob on tensor names if one was given.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Address {
    /// Where the checkpoint is.
    pub path: PathBuf,
    /// Which tensors are meant; `None` for all.
    pub selector: Option<String>,
}

impl Address {
    /// Splits an argument: the path is the longest part up to a colon that exists, the rest the selector.
    ///
    /// Where nothing exists, the whole is the path. The file system is asked whether paths exist.
    #[must_use]
    pub fn parse(argument: &OsStr) -> Self {
        if !exists(Path::new(argument)) {
            let text = argument.as_encoded_bytes();
            for colon in (0..text.len()).rev().filter(|&at| text.get(at) == Some(&b':')) {
                let Some((path, selector)) = split(argument, colon) else {
                    continue;
                };
                if !path.is_empty() && !selector.is_empty() && exists(Path::new(&path)) {
                    return Self { path: path.into(), selector: Some(selector) };
                }
            }
        }
        Self { path: argument.into(), selector: None }
    }
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Splits at a colon, if what follows is text.
#[cfg(unix)]
fn split(argument: &OsStr, colon: usize) -> Option<(OsString, String)> {
    use std::os::unix::ffi::OsStrExt;
    let (path, rest) = argument.as_bytes().split_at_checked(colon)?;
    let selector = std::str::from_utf8(rest.get(1..)?).ok()?;
    Some((OsStr::from_bytes(path).into(), selector.into()))
}

/// Splits at a colon, if the whole is text.
#[cfg(not(unix))]
fn split(argument: &OsStr, colon: usize) -> Option<(OsString, String)> {
    let (path, rest) = argument.to_str()?.split_at_checked(colon)?;
    Some((path.into(), rest.get(1..)?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_that_exists_wins() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("model"), b"").unwrap();
        std::fs::write(at("model:layers"), b"").unwrap();
        for (argument, path, selector) in [
            ("model", "model", None),
            ("model:*.weight", "model", Some("*.weight")),
            ("model:layers", "model:layers", None),
            ("model:layers:a:b", "model:layers", Some("a:b")),
            ("model:other:a", "model", Some("other:a")),
            ("absent:a", "absent:a", None),
            ("model:", "model:", None),
        ] {
            let address = Address::parse(at(argument).as_os_str());
            let selector = selector.map(String::from);
            assert_eq!(address, Address { path: at(path), selector }, "{argument}");
        }
    }
}
