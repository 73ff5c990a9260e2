//! What has to be there after a run, and whether it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::write::place::INDEX;
use crate::write::sparse;

/// What a contender makes.
#[derive(Debug)]
pub(crate) enum Answer {
    /// These files, by name with their digests, and no others; with an index if there is one to compare it with.
    Files { digests: BTreeMap<String, String>, index: Option<PathBuf> },
    /// One file of so many bytes, whatever they are.
    Bytes(u64),
    /// A pair of the metadata in a sparse file, which has so many bytes of data.
    Note { file: PathBuf, bytes: u64, note: &'static str },
    /// Nothing that is looked at.
    Nothing,
}

impl Answer {
    /// One file of a digest.
    pub(crate) fn file(name: &str, digest: &str) -> Self {
        Self::Files { digests: BTreeMap::from([(name.into(), digest.into())]), index: None }
    }

    /// What is wrong with what was made, if something is.
    pub(crate) fn fault(&self, output: &Path) -> Result<Option<String>> {
        match self {
            Self::Files { digests, index } => files_fault(output, digests, index.as_deref()),
            Self::Bytes(bytes) => {
                let mut found = 0;
                for entry in fs::read_dir(output)? {
                    found += entry?.metadata()?.len();
                }
                Ok((found != *bytes).then(|| format!("{found} bytes for {bytes}")))
            }
            Self::Note { file, bytes, note } => sparse::fault(file, *bytes, note),
            Self::Nothing => Ok(None),
        }
    }
}

fn files_fault(
    output: &Path,
    digests: &BTreeMap<String, String>,
    index: Option<&Path>,
) -> Result<Option<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(output)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut want: Vec<&str> = digests.keys().map(String::as_str).collect();
    want.extend(index.map(|_| INDEX));
    want.sort_unstable();
    if names != want {
        return Ok(Some(format!("the files are {}", names.join(", "))));
    }
    for (name, want) in digests {
        let found = digest(&output.join(name))?;
        if found != *want {
            return Ok(Some(format!("{name} has the digest {found} for {want}")));
        }
    }
    let Some(index) = index else { return Ok(None) };
    let [found, want] = [weight_map(&output.join(INDEX))?, weight_map(index)?];
    Ok((found != want).then(|| String::from("the index places tensors elsewhere")))
}

/// The SHA-256 of a file, by a program that is not ours.
fn digest(path: &Path) -> Result<String> {
    let output = Command::new("sha256sum").arg(path).output().context("cannot start sha256sum")?;
    ensure!(output.status.success(), "sha256sum cannot read {}", path.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let digest = text.split_whitespace().next().unwrap_or_default();
    Ok(digest.trim_start_matches('\\').to_owned())
}

/// Which file an index has each tensor in.
fn weight_map(index: &Path) -> Result<Value> {
    let mut whole: Value = serde_json::from_slice(&fs::read(index)?)?;
    Ok(whole["weight_map"].take())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_files_are_those_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("output");
        let index = folder.path().join("index.json");
        fs::write(&index, r#"{"weight_map": {"a": "b"}}"#).unwrap();
        let file = || Answer::file("a", EMPTY);
        let with_index = || {
            let Answer::Files { digests, .. } = file() else { unreachable!() };
            Answer::Files { digests, index: Some(index.clone()) }
        };
        for (present, answer, want) in [
            (&[("a", "")][..], file(), None),
            (&[], file(), Some("the files are ")),
            (&[("a", ""), ("b", "")], file(), Some("the files are a, b")),
            (&[("a", "a")], file(), Some("a has the digest ca978112")),
            (&[("a", "")], with_index(), Some("the files are a")),
            (
                &[("a", ""), (INDEX, r#"{"metadata": 1, "weight_map": {"a": "b"}}"#)],
                with_index(),
                None,
            ),
            (
                &[("a", ""), (INDEX, r#"{"weight_map": {"a": "c"}}"#)],
                with_index(),
                Some("the index"),
            ),
            (&[("a", "12")], Answer::Bytes(2), None),
            (&[("a", "12")], Answer::Bytes(3), Some("2 bytes for 3")),
            (&[("a", "12")], Answer::Nothing, None),
        ] {
            fs::create_dir(&output).unwrap();
            for (name, text) in present {
                fs::write(output.join(name), text).unwrap();
            }
            let fault = answer.fault(&output).unwrap();
            let is_as_said = match (&fault, want) {
                (Some(fault), Some(want)) => fault.starts_with(want),
                (fault, want) => fault.is_none() && want.is_none(),
            };
            assert!(is_as_said, "{present:?}: {fault:?}, not {want:?}");
            fs::remove_dir_all(&output).unwrap();
        }
    }
}
