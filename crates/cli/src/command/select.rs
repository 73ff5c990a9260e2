//! `weigh select`.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use weigh::{Checkpoint, Edit};

use crate::args::Select;
use crate::session::{Failure, Session};
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
    /// Leave out what is selected, and write the rest; needs a selector
    #[arg(long)]
    drop: bool,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &SelectTensors, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let Some((input, selector)) = writing::open(session, &args.path) else {
        return writing::finish(session, "select", writing, &[], None);
    };
    let edit =
        writing::edit_some(session, &input, &args.select, selector.as_deref(), |edit, meant| {
            edit.select(|item| meant.has(item) != args.drop);
        });
    let edit = edit.filter(|edit| leaves_some(args, session, &input, selector.as_deref(), edit));
    let output = writing.output(&input);
    writing::finish(
        session,
        "select",
        writing,
        &[&input],
        edit.as_ref().map(|edit| (edit, &output)),
    )
}

/// Whether there are tensors left; reported, if not: a checkpoint of none is most often a slip, and may be written
/// over the one that it was made from.
fn leaves_some(
    args: &SelectTensors,
    session: &mut Session,
    input: &Checkpoint,
    selector: Option<&str>,
    edit: &Edit<'_>,
) -> bool {
    let path = input.path().to_string_lossy().into_owned();
    if args.drop && args.select.is_empty() && selector.is_none() {
        session.failed(Failure {
            message: format!("{path}: nothing says which tensors to drop"),
            path,
            code: "drop-what",
            help: Some("Give a selector, as `-i '*.bias'`.".into()),
        });
        return false;
    }
    if !edit.tensors().is_empty() || input.is_empty() {
        return true;
    }
    session.found(Failure {
        message: format!("{path}: no tensor would be left"),
        path,
        code: "no-match",
        help: Some("Give selectors that leave some.".into()),
    });
    false
}
