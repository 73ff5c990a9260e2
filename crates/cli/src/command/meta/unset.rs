//! `weigh meta unset`.

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use weigh::Checkpoint;

use super::changing::{self, Changing};
use super::keys::Keys;
use super::open;
use crate::session::Session;

/// Remove keys, from every file of a checkpoint.
///
/// If one of them is in no file, nothing is changed.
#[derive(Args, Debug)]
pub(super) struct Unset {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// What to remove; `*` and the like are globs
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    changing: Changing,
}

pub(super) fn run(args: &Unset, session: &mut Session) -> Result<()> {
    let keys = Keys::new(&args.keys);
    let checkpoint = open(session, &args.path);
    let plan = checkpoint.as_ref().and_then(|checkpoint| {
        let path = checkpoint.path().to_string_lossy();
        let there = all_keys(checkpoint);
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        let are_there = keys.report_missing(session, &path, &there);
        let meant = keys.among(&there);
        let remove = |metadata: &mut std::collections::BTreeMap<String, String>| {
            metadata.retain(|key, _| !meant.contains(key.as_str()));
        };
        are_there.then(|| args.changing.plan(session, checkpoint, remove)).flatten()
    });
    changing::finish(session, "unset", &args.changing, plan.as_ref())
}

fn all_keys(checkpoint: &Checkpoint) -> BTreeSet<String> {
    let pairs = checkpoint.shards().iter().flat_map(|shard| shard.header().metadata());
    pairs.map(|(key, _)| key).collect()
}
