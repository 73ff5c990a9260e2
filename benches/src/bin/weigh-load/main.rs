//! Loads files once, in one mode, and prints what that cost as a line of JSON.
//!
//! `cargo xtask bench load` runs this beside the peers, which `benches/load/peer.py` runs the same
//! way and with the same keys. It is Linux's `/proc` that says what a load cost.
#![deny(unsafe_code)]

mod answer;
mod loading;

use std::num::NonZero;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use serde::Serialize;
use weigh_benches::process::{self, Figures, Meter};

use crate::answer::Checksum;
use crate::loading::{Mode, Request};

/// Loads files once and prints what that cost as a line of JSON.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to load, and how it is to be held.
    #[arg(long, value_enum)]
    mode: Mode,
    /// How many threads may load.
    #[arg(long)]
    threads: NonZero<usize>,
    /// Fresh memory to touch and free before the clock starts.
    #[arg(long, default_value_t = 0)]
    warm_up_bytes: usize,
    /// The files, which together are one checkpoint.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Line {
    loader: &'static str,
    version: &'static str,
    mode: Mode,
    threads: usize,
    /// How many were loaded.
    tensors: u64,
    /// Of the tensors, or of the slices of them.
    bytes: u64,
    #[serde(rename = "GBps")]
    gigabytes_per_second: f64,
    #[serde(flatten)]
    figures: Figures,
    #[serde(rename = "first_touch_GBps")]
    first_touch: Option<f64>,
    checksum: String,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let Arguments { mode, threads, ref files, .. } = arguments;
    let request = Request { mode, threads, files };
    let first_touch = process::first_touch(arguments.warm_up_bytes);
    let mut checksum = Checksum::default();
    let meter = Meter::start()?;
    let figures = if mode == Mode::Stream {
        // Nothing is kept, so what reads the tensors is in the time, with the peers as here.
        loading::stream(&request, |name, bytes| checksum.add(name, bytes))?;
        meter.figures()?
    } else {
        let loaded = loading::load(&request)?;
        let figures = meter.figures()?;
        loaded.each(|name, bytes| checksum.add(name, bytes));
        figures
    };
    let line = Line {
        loader: loading::LOADER,
        version: env!("CARGO_PKG_VERSION"),
        mode,
        threads: threads.get(),
        tensors: checksum.tensors,
        bytes: checksum.bytes,
        gigabytes_per_second: process::rate(checksum.bytes, figures.seconds),
        figures,
        first_touch,
        checksum: checksum.to_string(),
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}
