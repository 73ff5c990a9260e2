//! What `cargo xtask bench load` is asked to do.

use std::path::PathBuf;

use clap::Parser;

use crate::load::case::{CASES, Case};
use crate::load::sets::Name;

/// Loads checkpoints with Weigh and with its peers in Python, and prints what that cost.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// The Python of an environment in which benches/load/requirements.txt is installed.
    #[arg(long, default_value = "python3")]
    pub(crate) python: PathBuf,
    /// Sets of 1/32 and one round: to see that everything works, not to measure.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The size of the sets, as a part of the full size; 1 unless given.
    #[arg(long)]
    scale: Option<f64>,
    /// How often each contender loads in a case; 7 unless given.
    #[arg(long)]
    rounds: Option<usize>,
    /// A set to load; all of them unless given. May be given several times, as may the next two.
    #[arg(long = "set", value_enum)]
    sets: Vec<Name>,
    /// A case: what is loaded, and how; all of them unless given.
    #[arg(long = "case", value_parser = case)]
    cases: Vec<Case>,
    /// Part of the name of a contender; all of them unless given.
    #[arg(long)]
    pub(crate) only: Vec<String>,
    /// Where sets are found, or written if they are not there; a temporary folder unless given.
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Leaves the sets that were written: 4.6 GB.
    #[arg(long)]
    pub(crate) keep: bool,
    /// The cores to load on, as `taskset` reads them.
    #[arg(long, default_value = "0,1")]
    pub(crate) cores: String,
}

impl Options {
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 7 }).max(1)
    }

    /// The size of the sets, as a part of the full size.
    pub(crate) fn scale(&self) -> f64 {
        self.scale.unwrap_or(if self.quick { 1.0 / 32.0 } else { 1.0 })
    }

    pub(crate) fn sets(&self) -> Vec<Name> {
        if self.sets.is_empty() { Name::ALL.into() } else { self.sets.clone() }
    }

    pub(crate) fn cases(&self) -> Vec<Case> {
        if self.cases.is_empty() { CASES.into() } else { self.cases.clone() }
    }

    /// Whether a contender of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }
}

fn case(text: &str) -> Result<Case, String> {
    let names = CASES.map(Case::name).join(", ");
    CASES.into_iter().find(|case| case.name() == text).ok_or(format!("the cases are {names}"))
}
