//! Saves the tensors of a file, which are in memory by then, once, and prints what that cost as a line of JSON.
//!
//! `cargo xtask bench write` runs this beside the reference, which `benches/write/peer.py` runs the
//! same way and with the same keys.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use serde::Serialize;
use weigh::inventory::select::Selection;
use weigh::{Checkpoint, LoadOptions, WriteOptions};
use weigh_benches::process::{self, Figures, Meter};

/// Saves the tensors of a file once and prints what that cost as a line of JSON.
#[derive(Debug, Parser)]
struct Arguments {
    /// Wait until it is on the disk.
    #[arg(long)]
    sync: bool,
    /// Fresh memory to touch and free before the clock starts.
    #[arg(long, default_value_t = 0)]
    warm_up_bytes: usize,
    /// The file to load before the clock starts.
    source: PathBuf,
    /// Where to save, where nothing is yet.
    target: PathBuf,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    figures: Figures,
    #[serde(rename = "first_touch_GBps")]
    first_touch: Option<f64>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let checkpoint = Checkpoint::open(&arguments.source)?;
    let loaded = checkpoint.plan_selected(&Selection::all()).load(&LoadOptions::default())?;
    let options = WriteOptions { sync: arguments.sync, ..WriteOptions::default() };
    let first_touch = process::first_touch(arguments.warm_up_bytes);
    let meter = Meter::start()?;
    let tensors = loaded.iter().map(|(name, array)| (name, array.view()));
    weigh::save(&arguments.target, tensors, &BTreeMap::new(), &options)?;
    let line = Line { figures: meter.figures()?, first_touch };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}
