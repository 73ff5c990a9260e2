//! `weigh pagecache`: what of a checkpoint's files is in the page cache; into it, out of it.
//!
//! The files are not looked into: any file may be given, and of an index only the names of its shards are read.

mod report;

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use weigh::format::order;
use weigh::io::pagecache;
use weigh::io::system::{FileSystem, FileSystemKind, file_system, memory};
use weigh::io::{Error, FileSource};

use crate::bar::Bar;
use crate::session::{Failure, Outcome, Session};
use crate::units;
use report::Report;

/// See what of files is in the system's page cache, read them into it, drop them from it.
///
/// What is in the page cache loads as fast as memory can be copied. For each file a line says how much of it is
/// there. A folder or a shard index stands for its shards; any other file for itself.
#[derive(Args, Debug)]
pub(crate) struct Pagecache {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show how much of each file is in the page cache
    #[command(after_help = "Exit codes: 0 shown; 2 usage, or something not read or not known.")]
    Status(Files),
    /// Read files into the page cache, so that loading them needs no disk
    ///
    /// What is there already is not read again. Where memory is short, what is read last pushes out what was
    /// read first.
    #[command(after_help = "\
Exit codes: 0 all of it is there, as far as the system tells; 1 not all of it stayed; \
2 usage, or something not read; 2 wins over 1.")]
    Warm(Files),
    /// Drop files from the page cache, to give memory back or to measure a cold start
    ///
    /// Changes that are not on the disk yet are written to it first. The files stay as they are.
    #[command(after_help = "\
Exit codes: 0 nothing of it is there; 1 some of it stayed; \
2 usage, or something not done or not known; 2 wins over 1.")]
    Drop(Files),
}

#[derive(Args, Debug)]
struct Files {
    /// Files, folders or shard indexes
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    /// Print one document, `weigh.pagecache/1`
    #[arg(long)]
    json: bool,
}

impl Action {
    fn files(&self) -> &Files {
        match self {
            Self::Status(files) | Self::Warm(files) | Self::Drop(files) => files,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Status(_) => "status",
            Self::Warm(_) => "warm",
            Self::Drop(_) => "drop",
        }
    }
}

/// A file, and what of it is in the page cache: bytes, or `None` where the system does not tell.
struct Row {
    /// Not escaped.
    path: String,
    file_system: FileSystem,
    /// Length of the file.
    bytes: u64,
    /// Cached before anything was done, if anything was.
    before: Option<u64>,
    /// Cached now.
    cached: Option<u64>,
    /// Of these, not on the disk yet.
    dirty: Option<u64>,
}

pub(crate) fn run(args: &Pagecache, session: &mut Session) -> anyhow::Result<()> {
    let action = &args.action;
    let mut report = Report::begin(session, action)?;
    let paths = shard_paths(session, &action.files().paths);
    if matches!(action, Action::Warm(_)) {
        note_short_memory(session, &paths);
    }
    for path in &paths {
        match act(action, path) {
            Ok(row) => {
                report.row(session, action, &row)?;
                judge(session, action, &row);
            }
            Err(error) => session.failed(&error),
        }
    }
    report.end(session)
}

/// The files that the arguments stand for; what cannot be found is reported.
fn shard_paths(session: &mut Session, arguments: &[OsString]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (found, selector) in session.find(arguments) {
        if let Some(selector) = selector {
            session.failed(not_taken(&found.path, &selector));
            continue;
        }
        match found.shard_paths(&session.options) {
            Ok(mut shards) => {
                let text = |path: &Path| path.to_string_lossy().into_owned();
                shards.sort_by(|one, other| order::compare(&text(one), &text(other)));
                paths.extend(shards);
            }
            Err(error) => session.failed(&error),
        }
    }
    paths
}

fn note_short_memory(session: &mut Session, paths: &[PathBuf]) {
    let lengths = paths.iter().filter_map(|path| Some(path.metadata().ok()?.len()));
    let bytes = lengths.fold(0, u64::saturating_add);
    if let Some(memory) = memory().filter(|memory| memory.available < bytes) {
        let [bytes, available] = [bytes, memory.available].map(units::bytes);
        session.output.note(&format!("the files have {bytes}, and {available} of memory are left"));
    }
}

fn act(action: &Action, path: &Path) -> Result<Row, Error> {
    let source = FileSource::open(path)?;
    let residency = || pagecache::residency(&source, 0..source.len());
    let (before, after) = match action {
        Action::Status(_) => (None, residency()?),
        Action::Warm(_) => {
            let before = residency()?;
            let bar = Bar::new(source.len());
            pagecache::warm(&source, 0..source.len(), |done| {
                bar.set(done);
                ControlFlow::Continue(())
            })?;
            (before, residency()?)
        }
        Action::Drop(_) => (residency()?, pagecache::drop_cache(&source)?),
    };
    Ok(Row {
        path: path.to_string_lossy().into_owned(),
        file_system: file_system(&source),
        bytes: source.len(),
        before: before.map(|it| it.cached),
        cached: after.map(|it| it.cached),
        dirty: after.and_then(|it| it.dirty),
    })
}

/// Says on stderr where what was asked for did not come about, and sets the outcome.
fn judge(session: &mut Session, action: &Action, row: &Row) {
    let path = &row.path;
    let missed = match (action, row.cached) {
        (Action::Warm(_), None) => {
            session
                .output
                .note(&format!("{path}: read; the system does not say whether it stayed"));
            return;
        }
        (Action::Status(_) | Action::Drop(_), None) => {
            session.failed(unknown(path));
            return;
        }
        (Action::Status(_), Some(_)) => return,
        (Action::Warm(_), Some(cached)) => row.bytes.saturating_sub(cached),
        (Action::Drop(_), Some(cached)) => cached,
    };
    if missed == 0 {
        return;
    }
    let missed = units::bytes(missed);
    session.output.note(&match action {
        Action::Drop(_) if row.file_system.kind == FileSystemKind::Memory => {
            let name = row.file_system.name;
            format!("{path}: {missed} stayed: a file on {name} is in memory and nowhere else")
        }
        Action::Drop(_) => {
            format!("{path}: {missed} stayed: a program has mapped them or is reading them")
        }
        _ => format!("{path}: {missed} did not stay in the page cache"),
    });
    session.came_to(Outcome::Finding);
}

fn unknown(path: &str) -> Failure {
    Failure {
        path: path.into(),
        code: "pagecache-unknown",
        message: format!("{path}: the system does not say what of it is in the page cache"),
        help: Some("Linux says it to those who own the file or may write it.".into()),
    }
}

/// A selector is not taken: tensors share pages with their neighbours.
fn not_taken(path: &Path, selector: &str) -> Failure {
    let path = path.to_string_lossy().into_owned();
    Failure {
        code: "selector-not-taken",
        message: format!("{path}: whole files are cached, not the tensors `{selector}`"),
        help: Some("Give the path alone.".into()),
        path,
    }
}
