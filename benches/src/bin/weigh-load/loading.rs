//! The load that is measured.
//!
//! A stand-in: it reads each file whole with `std::fs::read`, whatever the mode and the threads, so
//! that the benchmark can be run from end to end. [`LOADER`] says so in every table.

use std::fs;
use std::num::NonZero;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use weigh::Checkpoint;

use crate::answer::middle_eighth;

/// What the tables call this.
pub(crate) const LOADER: &str = "std::fs::read";

/// What is loaded, and how it is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Every tensor in private, writable memory; the files are in the page cache.
    Own,
    /// The same; the files are not in the page cache.
    Cold,
    /// Every tensor at hand, as lazily as can be; the files are in the page cache.
    Hold,
    /// Every tensor handed over once and not kept.
    Stream,
    /// The middle eighth of every tensor's first dimension, in private, writable memory.
    SliceFirst,
    /// The same of the last dimension.
    SliceLast,
}

/// What to load.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) mode: Mode,
    #[expect(dead_code, reason = "the stand-in has one")]
    pub(crate) threads: NonZero<usize>,
    pub(crate) files: &'a [PathBuf],
}

/// Tensors, or slices of them, that have been loaded and are held.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    buffers: Vec<Vec<u8>>,
    tensors: Vec<Placed>,
}

/// Where a tensor is.
#[derive(Debug)]
struct Placed {
    name: String,
    buffer: usize,
    span: Range<usize>,
}

impl Loaded {
    /// Shows each tensor's name and bytes, in any order.
    pub(crate) fn each(&self, mut visit: impl FnMut(&str, &[u8])) {
        for Placed { name, buffer, span } in &self.tensors {
            visit(name, &self.buffers[*buffer][span.clone()]);
        }
    }
}

/// Loads, in any mode but [`Mode::Stream`].
pub(crate) fn load(request: &Request<'_>) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    for path in request.files {
        let checkpoint = Checkpoint::open(path)?;
        let bytes = fs::read(path)?;
        for tensor in checkpoint.tensors() {
            let span = position(tensor.span.start)?..position(tensor.span.end)?;
            let whole = bytes.get(span.clone()).context("the file is shorter than it was")?;
            let part = match request.mode {
                Mode::SliceFirst | Mode::SliceLast => {
                    let [rows, columns] = *tensor.shape else {
                        anyhow::bail!("`{}` is not a matrix", tensor.name);
                    };
                    let size = position(rows)? * position(columns)?;
                    ensure!(size > 0, "`{}` is empty", tensor.name);
                    Some(cut(whole, position(rows)?, whole.len() / size, request.mode))
                }
                _ => None,
            };
            let buffer = loaded.buffers.len();
            let name = tensor.name.to_owned();
            match part {
                Some(part) => {
                    loaded.tensors.push(Placed { name, buffer, span: 0..part.len() });
                    loaded.buffers.push(part);
                }
                None => loaded.tensors.push(Placed { name, buffer, span }),
            }
        }
        if !matches!(request.mode, Mode::SliceFirst | Mode::SliceLast) {
            loaded.buffers.push(bytes);
        }
    }
    Ok(loaded)
}

/// Hands each tensor's name and bytes over once, in any order, and keeps none: [`Mode::Stream`].
pub(crate) fn stream(request: &Request<'_>, mut visit: impl FnMut(&str, &[u8])) -> Result<()> {
    for file in request.files {
        load(&Request { files: std::slice::from_ref(file), ..*request })?.each(&mut visit);
    }
    Ok(())
}

/// The middle eighth of a matrix, of its rows or of each of them.
fn cut(bytes: &[u8], rows: usize, element: usize, mode: Mode) -> Vec<u8> {
    let row = bytes.len() / rows;
    if mode == Mode::SliceFirst {
        let taken = middle_eighth(rows);
        return bytes[taken.start * row..taken.end * row].to_vec();
    }
    let taken = middle_eighth(row / element);
    let taken = taken.start * element..taken.end * element;
    bytes.chunks_exact(row).flat_map(|row| &row[taken.clone()]).copied().collect()
}

fn position(number: u64) -> Result<usize> {
    usize::try_from(number).context("too large for this machine")
}
