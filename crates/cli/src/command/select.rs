//! `weigh select`.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::args::Select;
use crate::session::Session;
use crate::writing::{self, Writing};

/// Write some of the tensors of a checkpoint.
///
/// Metadata is kept. Of a checkpoint of several files, tensors stay in the files that they are in, unless one
/// file is asked for; files that have none left are not written.
#[derive(Args, Debug)]
pub(crate) struct SelectTensors {
    /// A file, a folder or a shard index; `PATH:GLOB` means the tensors that the glob matches
    #[arg(value_name = "PATH[:GLOB]")]
    path: OsString,
    #[command(flatten)]
    select: Select,
    /// Leave out what is selected, and write the rest
    #[arg(long)]
    drop: bool,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &SelectTensors, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let Some((input, selector)) = writing::open(session, &args.path) else {
        return writing::finish(session, "select", writing, None);
    };
    let edit =
        writing::edit_some(session, &input, &args.select, selector.as_deref(), |edit, meant| {
            edit.select(|item| meant.has(item) != args.drop);
        })?;
    let output = writing.output(&input);
    writing::finish(session, "select", writing, edit.as_ref().map(|edit| (edit, &output)))
}
