//! `weigh join`.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use weigh::{Address, Checkpoint};

use crate::session::Session;
use crate::writing::{self, Writing};

/// Join the files of a checkpoint, or several checkpoints, into one file.
///
/// No two may have a tensor of one name, nor different values for a key of the metadata.
#[derive(Args, Debug)]
pub(crate) struct Join {
    /// Files, folders, shard indexes or quoted globs
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &Join, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let addresses: Vec<Address> =
        args.paths.iter().flat_map(|path| session.addresses(path)).collect();
    let inputs: Vec<Checkpoint> = addresses
        .into_iter()
        .filter_map(|address| writing::open_whole_at(session, address))
        .collect();
    let inputs: Vec<&Checkpoint> = inputs.iter().collect();
    let are_all = session.exit_code() == 0;
    let edit = are_all.then(|| writing::edit(session, &inputs)).flatten();
    let output = writing.file(inputs.first().map_or("model", |first| first.stem()));
    writing::finish(session, "join", writing, &inputs, edit.as_ref().map(|edit| (edit, &output)))
}
