//! The load that is measured.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use weigh::format::slice::Index;
use weigh::inventory::select::Selection;
use weigh::io::map::Unchanging;
use weigh::io::policy::ReadOptions;
use weigh::{Checkpoint, LoadOptions, Mapped, StreamOptions, Tensor, View, Want};

use crate::answer::middle_eighth;

/// What the tables call this.
pub(crate) const LOADER: &str = "weigh";

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
    pub(crate) threads: NonZero<usize>,
    pub(crate) files: &'a [PathBuf],
}

impl Request<'_> {
    fn read(&self) -> ReadOptions {
        ReadOptions { threads: Some(self.threads), ..ReadOptions::default() }
    }

    /// The file, or the folder of the files.
    fn path(&self) -> Result<&Path> {
        match self.files {
            [file] => Ok(file),
            [first, ..] => first.parent().context("a file without a folder"),
            [] => anyhow::bail!("no files"),
        }
    }
}

/// Tensors, or slices of them, that have been loaded and are held.
#[derive(Debug)]
pub(crate) enum Loaded {
    Owned(Box<weigh::Loaded>),
    Mapped { names: Vec<String>, files: Mapped<'static> },
}

impl Loaded {
    /// Shows each tensor's name and bytes, in any order.
    pub(crate) fn each(&self, mut visit: impl FnMut(&str, &[u8])) {
        match self {
            Self::Owned(loaded) => {
                loaded.iter().for_each(|(name, array)| visit(name, array.bytes()));
            }
            Self::Mapped { names, files } => {
                for name in names {
                    visit(name, files.get(name).as_ref().map_or(&[], View::bytes));
                }
            }
        }
    }
}

/// Loads, in any mode but [`Mode::Stream`].
pub(crate) fn load(request: &Request<'_>) -> Result<Loaded> {
    let checkpoint = Checkpoint::open(request.path()?)?;
    if request.mode == Mode::Hold {
        return hold(checkpoint);
    }
    let options = LoadOptions { read: request.read(), ..LoadOptions::default() };
    let plan = match request.mode {
        Mode::SliceFirst | Mode::SliceLast => {
            let tensors = checkpoint.tensors();
            let wants: Vec<Want<'_>> =
                tensors.iter().map(|tensor| slice(tensor, request.mode)).collect::<Result<_>>()?;
            return Ok(Loaded::Owned(Box::new(checkpoint.plan(&wants)?.load(&options)?)));
        }
        _ => checkpoint.plan_selected(&Selection::all()),
    };
    Ok(Loaded::Owned(Box::new(plan.load(&options)?)))
}

/// Tensors at hand, none read: each is looked up, as the peer's are.
fn hold(checkpoint: Checkpoint) -> Result<Loaded> {
    // It lives as long as the process, which is about to end.
    let checkpoint: &'static Checkpoint = Box::leak(Box::new(checkpoint));
    #[expect(unsafe_code, reason = "maps want a promise")]
    // SAFETY: the files are the benchmark's own, and it does not write while a loader runs.
    let promise = unsafe { Unchanging::promise() };
    let files = checkpoint.map(promise)?;
    let shards = checkpoint.shards().iter();
    let names: Vec<String> =
        shards.flat_map(|shard| shard.tensors().map(|tensor| tensor.name.to_owned())).collect();
    for name in &names {
        std::hint::black_box(files.get(name));
    }
    Ok(Loaded::Mapped { names, files })
}

/// Hands each tensor's name and bytes over once, in any order, and keeps none: [`Mode::Stream`].
pub(crate) fn stream(request: &Request<'_>, mut visit: impl FnMut(&str, &[u8])) -> Result<()> {
    let checkpoint = Checkpoint::open(request.path()?)?;
    let plan = checkpoint.plan_selected(&Selection::all());
    for item in plan.stream(&StreamOptions { read: request.read(), ..StreamOptions::default() })? {
        let item = item?;
        visit(&item.name, item.array.bytes());
    }
    Ok(())
}

/// The middle eighth of a matrix, of its rows or of each of them.
fn slice<'c>(tensor: &Tensor<'c>, mode: Mode) -> Result<Want<'c>> {
    let [rows, columns] = *tensor.shape else {
        anyhow::bail!("`{}` is not a matrix", tensor.name);
    };
    let eighth = |length: u64| -> Result<Index> {
        let taken = middle_eighth(usize::try_from(length)?);
        Ok(Index::from(i64::try_from(taken.start)?..i64::try_from(taken.end)?))
    };
    Ok(match mode {
        Mode::SliceFirst => Want::new(tensor.name).slice([eighth(rows)?]),
        _ => Want::new(tensor.name).slice([Index::ALL, eighth(columns)?]),
    })
}
