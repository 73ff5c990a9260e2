//! `weigh meta`: the metadata of a checkpoint, shown and changed.

mod changing;
mod edit;
mod export;
mod get;
mod import;
mod keys;
mod object;
mod report;
mod set;
mod unset;

use std::collections::BTreeMap;
use std::ffi::OsStr;

use anyhow::Result;
use clap::{Args, Subcommand};
use weigh::Checkpoint;
use weigh::format::text::shortened;

use crate::session::{Failure, Session};
use crate::writing::report_error;

/// Show and change metadata: the pairs of text that files carry beside their tensors.
///
/// Tensors stay as they are, byte for byte, whatever is changed. `weigh meta PATH` is `weigh meta get PATH`.
#[derive(Args, Debug)]
pub(crate) struct Meta {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Get(get::Get),
    Set(set::Set),
    Unset(unset::Unset),
    Edit(edit::Edit),
    Import(import::Import),
    Export(export::Export),
}

pub(crate) fn run(args: &Meta, session: &mut Session) -> Result<()> {
    match &args.action {
        Action::Get(args) => get::run(args, session),
        Action::Set(args) => set::run(args, session),
        Action::Unset(args) => unset::run(args, session),
        Action::Edit(args) => edit::run(args, session),
        Action::Import(args) => import::run(args, session),
        Action::Export(args) => export::run(args, session),
    }
}

/// The schema of the documents of all of them.
const SCHEMA: &str = "weigh.meta/1";

/// Opens the checkpoint whose metadata is meant; nothing, reported, if that cannot be.
fn open(session: &mut Session, argument: &OsStr) -> Option<Checkpoint> {
    let address = session.address(argument)?;
    if let Some(selector) = &address.selector {
        session.failed(not_of_tensors(&address.path.to_string_lossy(), selector));
        return None;
    }
    session.open(&address.path).map_err(|error| report_error(session, &error)).ok()
}

fn not_of_tensors(path: &str, selector: &str) -> Failure {
    Failure {
        path: path.into(),
        code: "selector-not-taken",
        message: format!("{path}: metadata is that of files, not of the tensors `{selector}`"),
        help: Some("Give the path alone.".into()),
    }
}

/// The metadata that all files have; nothing, reported as a finding, if they differ.
fn common(session: &mut Session, checkpoint: &Checkpoint) -> Option<BTreeMap<String, String>> {
    let mut files = checkpoint
        .shards()
        .iter()
        .map(|shard| (shard.path(), shard.header().metadata().collect::<BTreeMap<_, _>>()));
    let (first, metadata) = files.next()?;
    let Some((other, differs)) = files.find(|(_, other)| *other != metadata) else {
        return Some(metadata);
    };
    let mut keys = metadata.keys().chain(differs.keys());
    let key = keys.find(|key| metadata.get(*key) != differs.get(*key))?;
    let [first, other] = [first, other].map(std::path::Path::display);
    let (path, key) = (checkpoint.path().to_string_lossy().into_owned(), shortened(key));
    let difference = match (metadata.contains_key(&*key), differs.contains_key(&*key)) {
        (true, false) => format!("`{key}` is in {first} and not in {other}"),
        (false, true) => format!("`{key}` is in {other} and not in {first}"),
        _ => format!("`{key}` has one value in {first} and another in {other}"),
    };
    session.found(Failure {
        message: format!("{path}: the files differ: {difference}"),
        path,
        code: "metadata-not-equal",
        help: Some("Give one of the files; `weigh meta get` shows how they differ.".into()),
    });
    None
}
