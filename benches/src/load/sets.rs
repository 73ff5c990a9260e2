//! The checkpoints to load, as `load/sets.py` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Deserialize;

use crate::load::case::Mode;
use crate::load::options::Options;
use crate::{amount, peers};

/// Which set.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Name {
    /// Few tensors, of 128 MiB each.
    Big,
    /// Some hundred, of 4 MiB each.
    Mid,
    /// Forty thousand, of 8 KiB each.
    Tiny,
}

/// A set that is on disk.
#[derive(Debug)]
pub(crate) struct Set {
    folder: PathBuf,
    described: PathBuf,
    pub(crate) files: Vec<PathBuf>,
    answers: BTreeMap<String, Answer>,
    /// Whether it was written now.
    pub(crate) is_new: bool,
}

/// What a right load gives.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Answer {
    pub(crate) tensors: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: String,
}

/// What the maker of a set says of it.
#[derive(Debug, Deserialize)]
struct Description {
    files: Vec<String>,
    answers: BTreeMap<String, Answer>,
}

impl Name {
    pub(crate) const ALL: [Self; 3] = [Self::Big, Self::Mid, Self::Tiny];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Big => "big",
            Self::Mid => "mid",
            Self::Tiny => "tiny",
        }
    }
}

/// Writes a set unless it is there.
pub(crate) fn make(options: &Options, parent: &Path, name: Name) -> Result<Set> {
    let name = name.name();
    let described = parent.join(format!("{name}.json"));
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let before = modified(&described);
    let scale = options.scale().to_string();
    let words =
        [parent.as_os_str(), "--set".as_ref(), name.as_ref(), "--scale".as_ref(), scale.as_ref()];
    peers::run(&options.python, "load/sets.py", &words)?;
    let text = fs::read(&described).context("load/sets.py wrote no description")?;
    let description: Description = serde_json::from_slice(&text)?;
    let folder = parent.join(name);
    let files = description.files.iter().map(|file| folder.join(file)).collect();
    let is_new = before != modified(&described);
    Ok(Set { folder, described, files, answers: description.answers, is_new })
}

impl Set {
    /// What a right load of this kind gives.
    pub(crate) fn answer(&self, mode: Mode) -> &Answer {
        self.answers.get(mode.name()).unwrap_or(&self.answers["whole"])
    }

    /// Its size in words.
    pub(crate) fn described(&self) -> String {
        let Answer { tensors, bytes, .. } = self.answer(Mode::Own);
        format!("{tensors} tensors, {}, files: {}", amount::size(*bytes), self.files.len())
    }

    pub(crate) fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.folder)?;
        Ok(fs::remove_file(&self.described)?)
    }
}
