//! `weigh scan`: what loading files would do, without loading them.
//!
//! Every file gets a verdict, or is said to be no checkpoint. What the verdicts mean is in `docs/scan.md`.

mod json;
mod sarif;
mod text;

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};
use weigh::torch::pickle::Limits;
use weigh::torch::scan::{ScanOptions, ScanReport, Skipped, scan, walk};

use crate::interrupt;
use crate::limits::LimitArgs;
use crate::output::Writing;
use crate::session::{Failure, Outcome, Session};
use crate::units;

/// Find out what loading files would run, without running it.
///
/// Every file of a folder is looked at, by its bytes and not by its name: pickles,
/// torch checkpoints, numpy arrays of objects, joblib, archives and packed files
/// and what is in them, safetensors. For each a line with its verdict:
///
///   data-only       read to the end; only tensors and plain values are made
///   unknown-global  something else is named, and not called
///   ambiguous       two programs may read it differently, or never end
///   call            something else would be called
///   error           it could not be read to the end: nothing is promised
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES, verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "flags")]
pub(crate) struct Scan {
    /// Files or folders
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
    /// The same as `--format json`
    #[arg(long, conflicts_with_all = ["format", "sarif"])]
    json: bool,
    /// The same as `--format sarif`
    #[arg(long, conflicts_with = "format")]
    sarif: bool,
    /// Say nothing of files that are clean
    #[arg(long, short)]
    quiet: bool,
    /// Show notes one by one, and the files that are no checkpoints
    #[arg(long)]
    notes: bool,
    /// The largest pickle to read, in bytes, packed or not; 512MiB if not given
    #[arg(long, default_value_t = Limits::default().pickle_bytes, hide_default_value = true,
          value_name = "BYTES", value_parser = units::parse_bytes)]
    max_pickle: u64,
    /// The most opcodes of a pickle to run
    #[arg(long, default_value_t = Limits::default().opcodes, value_name = "COUNT")]
    max_opcodes: u64,
    /// How many bytes a byte of a file may become when it is unpacked, beyond 16 MiB
    #[arg(long, default_value_t = ScanOptions::default().limits.ratio, value_name = "COUNT")]
    max_ratio: u32,
    /// The most bytes of one file to unpack, in all; 1GiB if not given
    #[arg(long, default_value_t = ScanOptions::default().unpacked, hide_default_value = true,
          value_name = "BYTES", value_parser = units::parse_bytes)]
    max_unpacked: u64,
    /// The most archives in each other to look into
    #[arg(long, default_value_t = ScanOptions::default().nesting, value_name = "COUNT")]
    max_nesting: u32,
    #[command(flatten)]
    limits: LimitArgs,
}

const EXIT_CODES: &str = "\
Exit codes: 0 everything was read to the end and is data-only; 1 any other
verdict; 2 usage, something that could not be read or was not looked at, or no
checkpoint there; 2 wins.";

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// One document, `weigh.scan/1`
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// A form that the report can take.
trait Report {
    /// Writes what comes before the first file.
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()>;
    /// Writes what was found in a file.
    fn file(&mut self, session: &mut Session, report: &ScanReport) -> anyhow::Result<()>;
    /// Writes what comes after the last.
    fn end(&mut self, session: &mut Session) -> anyhow::Result<()>;
}

pub(crate) fn run(args: &Scan, session: &mut Session) -> anyhow::Result<()> {
    session.gives_verdict = true;
    let options = ScanOptions {
        limits: args.limits.over(Limits {
            pickle_bytes: args.max_pickle,
            opcodes: args.max_opcodes,
            ratio: args.max_ratio,
            ..Limits::default()
        }),
        header: session.options.limits,
        nesting: args.max_nesting,
        unpacked: args.max_unpacked,
        cancel: Some(interrupt::cancel()),
    };
    let format = match (args.json, args.sarif) {
        (true, _) => Format::Json,
        (_, true) => Format::Sarif,
        _ => args.format,
    };
    if args.notes && format != Format::Text {
        anyhow::bail!("--notes is for text; the other formats have every note");
    }
    let mut report: Box<dyn Report> = match format {
        Format::Text => Box::new(text::Text::new(args.quiet, args.notes)),
        Format::Json => Box::<json::Json>::default(),
        Format::Sarif => Box::<sarif::Sarif>::default(),
    };
    let mut writing = Writing::default();
    writing.keep(report.begin(session))?;
    for argument in &args.paths {
        for address in session.addresses(argument) {
            if let Some(selector) = &address.selector {
                session.failed(not_taken(&address.path, selector));
                continue;
            }
            let found = walk(&address.path);
            session.failed_in(&address.path.to_string_lossy(), &found.unread);
            skipped(session, &address.path, &found.skipped);
            let mut nothing = found.unread.is_empty() && found.skipped.is_empty();
            for file in &found.files {
                session.mend(file);
                match scan(file, &options) {
                    Ok(scanned) => {
                        nothing &= scanned.verdict.is_none();
                        if scanned.verdict.is_some() && !scanned.is_clean() {
                            session.came_to(Outcome::Finding);
                        }
                        let is_told = !args.quiet || !scanned.is_clean();
                        if writing.is_open() && is_told {
                            writing.keep(report.file(session, &scanned))?;
                        }
                    }
                    Err(weigh::Error::Cancelled) => return writing.end(),
                    Err(error) => {
                        nothing = false;
                        session.failed(&error);
                    }
                }
            }
            if nothing {
                session.failed(no_checkpoint(&address.path, found.files.len()));
            }
        }
    }
    if writing.is_open() {
        writing.keep(report.end(session))?;
    }
    writing.end()
}

/// What is skipped of a folder that are named one by one.
const SKIPPED_SHOWN: usize = 5;

/// What was not looked at must not pass for clean.
fn skipped(session: &mut Session, folder: &Path, skipped: &[Skipped]) {
    for (number, Skipped { path, what, .. }) in skipped.iter().enumerate() {
        let path = path.to_string_lossy().into_owned();
        let failure = Failure {
            code: "not-looked-at",
            message: format!("{path}: not looked at: {what}"),
            help: Some("Scan what it leads to, or take it out of the folder.".into()),
            path,
        };
        if number < SKIPPED_SHOWN {
            session.failed(failure);
        } else {
            session.failures.push(failure);
        }
    }
    let more = skipped.len().saturating_sub(SKIPPED_SHOWN) as u64;
    if more > 0 {
        let (folder, more) = (folder.to_string_lossy(), units::exact(more));
        session.output.note(&format!("{folder}: {more} more were not looked at"));
    }
}

/// That nothing was said of a path must not look like a verdict.
fn no_checkpoint(path: &Path, files: usize) -> Failure {
    let path = path.to_string_lossy().into_owned();
    let message = match files {
        0 => format!("{path}: there is no file in it"),
        1 => format!("{path}: not scanned: it is no checkpoint"),
        _ => format!("{path}: not scanned: none of its {files} files is a checkpoint"),
    };
    Failure {
        path,
        code: "nothing-scanned",
        message,
        help: Some("Give checkpoints, or folders with some.".into()),
    }
}

/// A selector is not taken: a verdict on some of the tensors of a file would say nothing of the file.
fn not_taken(path: &Path, selector: &str) -> Failure {
    let path = path.to_string_lossy().into_owned();
    Failure {
        code: "selector-not-taken",
        message: format!("{path}: files are scanned whole, not the tensors `{selector}`"),
        help: Some("Give the path alone.".into()),
        path,
    }
}
