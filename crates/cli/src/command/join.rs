//! `weigh join`.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::session::Session;
use crate::writing::{self, Writing};

/// Join the files of a checkpoint, or several checkpoints, into one file.
///
/// No two may have a tensor of one name, nor different values for a key of the metadata.
#[derive(Args, Debug)]
pub(crate) struct Join {
    /// Files, folders or shard indexes
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &Join, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let inputs: Vec<_> =
        args.paths.iter().filter_map(|path| writing::open_whole(session, path)).collect();
    let are_all = inputs.len() == args.paths.len();
    let edit = are_all.then(|| writing::edit(session, &inputs.iter().collect::<Vec<_>>()));
    let edit = edit.flatten();
    let output = writing.file(inputs.first().map_or("model", weigh::Checkpoint::stem));
    writing::finish(session, "join", writing, edit.as_ref().map(|edit| (edit, &output)))
}
