//! What `cargo xtask bench write` is asked to do.

use std::env;
use std::path::PathBuf;

use clap::Parser;

use crate::write::contest::{CONTESTS, Contest};

/// Writes and edits checkpoints with Weigh, beside copies of as many bytes and the peers in Python, and
/// prints what that cost.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// The Python of an environment with safetensors, torch and numpy as in benches/load/requirements.txt.
    #[arg(long, default_value = "python3")]
    pub(crate) python: PathBuf,
    /// A checkpoint of 1/32 and one round: to see that everything works, not to measure.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The size of the checkpoint, as a part of 2.1 GB; 1 unless given.
    #[arg(long)]
    scale: Option<f64>,
    /// How often each contender runs in a contest; 7 unless given.
    #[arg(long)]
    rounds: Option<usize>,
    /// A contest; all of them unless given. May be given several times, as may the next.
    #[arg(long = "contest", value_parser = contest)]
    contests: Vec<Contest>,
    /// Part of the name of a contender; all of them unless given.
    #[arg(long)]
    only: Vec<String>,
    /// A folder on the disk to measure; the system's temporary one unless given.
    #[arg(long)]
    disk: Option<PathBuf>,
    /// A folder on a file system in memory.
    #[arg(long, default_value = "/dev/shm")]
    pub(crate) memory: PathBuf,
}

impl Options {
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 7 }).max(1)
    }

    /// The size of the checkpoint, as a part of the full size.
    pub(crate) fn scale(&self) -> f64 {
        self.scale.unwrap_or(if self.quick { 1.0 / 32.0 } else { 1.0 })
    }

    pub(crate) fn contests(&self) -> Vec<Contest> {
        if self.contests.is_empty() { CONTESTS.into() } else { self.contests.clone() }
    }

    /// Whether a contender of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.disk.clone().unwrap_or_else(env::temp_dir)
    }
}

fn contest(text: &str) -> Result<Contest, String> {
    let names = CONTESTS.map(Contest::name).join(", ");
    let found = CONTESTS.into_iter().find(|contest| contest.name() == text);
    found.ok_or_else(|| format!("the contests are {names}"))
}
