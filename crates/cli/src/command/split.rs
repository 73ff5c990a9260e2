//! `weigh split`.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use weigh::{Checkpoint, Shards};

use crate::session::Session;
use crate::writing::{self, Writing};

/// Split a checkpoint into files of a limited size, with an index.
///
/// Tensors stay whole and in natural order; one that is larger than the limit gets a file of its own. The
/// files are named as hubs name them, `model-00001-of-00003.safetensors`, and the index beside them
/// `model.safetensors.index.json`; where one file is enough, there is no index. A checkpoint of several
/// files is split anew. Every file gets all of the metadata.
#[derive(Args, Debug)]
pub(crate) struct Split {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Bytes of tensors in a file, at most: 5GB is 5 000 000 000 bytes, 5GiB is 5 368 709 120
    #[arg(long, value_name = "BYTES", default_value = "5GB", value_parser = writing::parse_size)]
    max_size: u64,
    /// What the names of the files begin with; by default what the input's do
    #[arg(long, value_name = "NAME", value_parser = writing::parse_stem)]
    name: Option<String>,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &Split, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let input = writing::open_whole(session, &args.path);
    let edit = input.as_ref().and_then(|input| writing::edit(session, &[input]));
    let output = writing.folder(args.name.clone(), Shards::Most(args.max_size));
    let inputs: Vec<&Checkpoint> = input.iter().collect();
    writing::finish(session, "split", writing, &inputs, edit.as_ref().map(|edit| (edit, &output)))
}
