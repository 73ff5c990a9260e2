//! Where the checkpoint is that is written again, and where to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::TempDir;

use crate::peers;
use crate::write::options::Options;

/// What `statfs` calls a file system in memory.
const IN_MEMORY: i64 = 0x0102_1994;

/// The index of a checkpoint of several files.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// A folder with the checkpoint, as one file and as several, which is removed in the end.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
}

/// What the maker of the checkpoint says of it: sizes in bytes, and the digests of files.
#[derive(Debug, Deserialize)]
pub(crate) struct Expected {
    /// Of all tensors.
    pub(crate) bytes: u64,
    /// Of the tensors of a shard.
    pub(crate) shard_bytes: u64,
    /// The one file.
    pub(crate) source: String,
    /// The several, by name.
    pub(crate) shards: BTreeMap<String, String>,
    /// The one file with other names.
    pub(crate) renamed: String,
    /// The one file with a pair of metadata.
    pub(crate) noted: String,
    /// The one file as BF16.
    pub(crate) cast: String,
    /// The checkpoint of torch, converted.
    pub(crate) converted: String,
    /// That of many tensors that are small.
    pub(crate) small_converted: String,
    /// Of those tensors, in bytes.
    pub(crate) small_bytes: u64,
}

impl Place {
    /// A place on a file system in memory, with a new checkpoint.
    pub(crate) fn in_memory(options: &Options) -> Result<(Self, Expected)> {
        let parent = &options.memory;
        ensure!(
            is_in_memory(parent)?,
            "{} is not in memory: name a folder that is, with --memory",
            parent.display()
        );
        let place = Self::new(parent)?;
        let scale = options.scale().to_string();
        let words = [place.folder.path().as_os_str(), "--scale".as_ref(), scale.as_ref()];
        peers::run(&options.python, "write/source.py", &words)?;
        let text = fs::read(place.folder.path().join("source.json"));
        let expected = serde_json::from_slice(&text.context("source.py wrote no description")?)?;
        Ok((place, expected))
    }

    /// A place on a disk, with a copy of the checkpoint at another.
    pub(crate) fn on_disk(options: &Options, original: &Self) -> Result<Self> {
        let parent = options.disk();
        ensure!(
            !is_in_memory(&parent)?,
            "{} is in memory: name a folder on a disk, with --disk",
            parent.display()
        );
        let place = Self::new(&parent)?;
        fs::copy(original.source(), place.source())?;
        fs::copy(original.torch(), place.torch())?;
        fs::copy(original.torch_small(), place.torch_small())?;
        fs::create_dir(place.shards())?;
        for shard in fs::read_dir(original.shards())? {
            let shard = shard?;
            fs::copy(shard.path(), place.shards().join(shard.file_name()))?;
        }
        place.settle()?;
        Ok(place)
    }

    fn new(parent: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("weigh-write-").tempdir_in(parent);
        let folder = folder.with_context(|| format!("no folder in {}", parent.display()))?;
        Ok(Self { folder })
    }

    /// The checkpoint as one file.
    pub(crate) fn source(&self) -> PathBuf {
        self.folder.path().join("model.safetensors")
    }

    /// The checkpoint as torch writes it.
    pub(crate) fn torch(&self) -> PathBuf {
        self.folder.path().join("model.pt")
    }

    /// One of many tensors that are small, as torch writes it.
    pub(crate) fn torch_small(&self) -> PathBuf {
        self.folder.path().join("small.pt")
    }

    /// The folder of the checkpoint as several files.
    pub(crate) fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    /// The folder to write to.
    pub(crate) fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    /// Empties the folder to write to.
    pub(crate) fn clear(&self) -> Result<()> {
        let output = self.output();
        if output.exists() {
            fs::remove_dir_all(&output)?;
        }
        Ok(fs::create_dir(output)?)
    }

    /// Waits until everything is on the disk, what others wrote to it too: nobody pays for what came before.
    pub(crate) fn settle(&self) -> Result<()> {
        let mut command = Command::new("sync");
        let status = command.arg("--file-system").arg(self.folder.path()).status()?;
        ensure!(status.success(), "sync failed: {status}");
        Ok(())
    }
}

fn is_in_memory(folder: &Path) -> Result<bool> {
    let found =
        rustix::fs::statfs(folder).with_context(|| format!("no folder {}", folder.display()))?;
    Ok(found.f_type == IN_MEMORY)
}
