//! `weigh meta import`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::changing::{self, Changing};
use super::{object, open};
use crate::session::Session;
use crate::text;

/// Set the keys of a JSON object, in every file of a checkpoint.
///
/// Its values have to be strings. Keys that it does not have stay, unless it replaces them all.
#[derive(Args, Debug)]
pub(super) struct Import {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// The JSON, as `weigh meta export` writes it; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Remove the keys that the object does not have
    #[arg(long)]
    replace: bool,
    /// Take numbers, booleans, arrays, objects and null too, as their JSON
    #[arg(long)]
    stringify: bool,
    #[command(flatten)]
    changing: Changing,
}

pub(super) fn run(args: &Import, session: &mut Session) -> Result<()> {
    let pairs = text::read(&args.file).and_then(|text| {
        object::parse(&text, args.stringify)
            .map_err(|fault| fault.failure(&args.file.to_string_lossy()))
    });
    let pairs = pairs.map_err(|failure| session.failed(failure)).ok();
    let checkpoint = pairs.as_ref().and_then(|_| open(session, &args.path));
    let plan = checkpoint.as_ref().zip(pairs).and_then(|(checkpoint, pairs)| {
        args.changing.plan(session, checkpoint, |metadata| {
            if args.replace {
                metadata.clear();
            }
            metadata.extend(pairs.clone());
        })
    });
    changing::finish(session, "import", &args.changing, plan.as_ref())
}
