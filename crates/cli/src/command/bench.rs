//! `weigh bench`.

mod report;

use std::num::NonZero;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, ValueEnum};
use weigh::format::Dtype;
use weigh::io::arena::Pages;
use weigh::io::policy::{Backend, Choice, Direct, Facts, ReadOptions};
use weigh::io::{Usage, pagecache};
use weigh::{Checkpoint, Error, LoadOptions, LoadReport, Plan, Shard, StreamOptions, Survey, Want};

use crate::args::{Paths, Select};
use crate::bar::Bar;
use crate::listing::{Meant, Tensors, each_meant, meant_rows};
use crate::session::{Failure, Outcome, Session};
use crate::units;

/// Load tensors into memory and measure it.
///
/// Says for each run how long it took, the bytes of the tensors a second, the requests to the system and
/// the bytes that they read, the page faults (those that waited for a disk after the `+`), and the memory
/// that was resident at the end. The first run may pay for what the others find done.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    select: Select,
    /// Say what was picked for these files and this machine, and why
    #[arg(long)]
    explain: bool,
    /// How often to load
    #[arg(long, default_value = "3", value_name = "NUMBER")]
    runs: NonZero<u32>,
    /// Drop the files from the page cache before each run
    #[arg(long)]
    cold: bool,
    /// Stream under a memory budget, dropping each tensor as it comes
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    budget: Option<u64>,
    /// Convert floats while they are read: to F64, F32, F16 or BF16
    #[arg(long, value_name = "DTYPE", value_parser = crate::args::parse_dtype)]
    cast: Option<Dtype>,
    #[command(flatten)]
    read: Read,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// What the policy is not to decide.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Instead of what is picked")]
struct Read {
    /// How to read
    #[arg(long, value_enum, value_name = "BACKEND")]
    backend: Option<BackendName>,
    /// Whether to read past the page cache
    #[arg(long, value_enum, value_name = "WHEN")]
    direct: Option<DirectName>,
    /// Threads that read
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZero<usize>>,
    /// Requests that each thread keeps under way, with `io_uring`
    #[arg(long, value_name = "NUMBER")]
    depth: Option<NonZero<usize>>,
    /// The longest request
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    request: Option<u64>,
    /// The longest gap that is read over
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    gap: Option<u64>,
    /// Whether to ask for huge pages
    #[arg(long, value_name = "BOOL")]
    huge_pages: Option<bool>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum BackendName {
    /// Calls that wait
    Pread,
    /// Many requests under way, where the system has it
    Uring,
    /// Copies out of mapped files; a file that is cut off meanwhile may end the program
    Mmap,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum DirectName {
    Never,
    Always,
    /// Try both ways, go on with the faster
    Probe,
}

impl Read {
    fn options(self) -> ReadOptions {
        ReadOptions {
            backend: self.backend.map(|name| match name {
                BackendName::Pread => Backend::Pread,
                BackendName::Uring => Backend::Uring,
                BackendName::Mmap => Backend::Mmap,
            }),
            direct: self.direct.map(|name| match name {
                DirectName::Never => Direct::Never,
                DirectName::Always => Direct::Always,
                DirectName::Probe => Direct::Probe,
            }),
            threads: self.threads,
            depth: self.depth,
            request_bytes: self.request,
            gap_bytes: self.gap,
            huge_pages: self.huge_pages,
        }
    }
}

/// What was loaded, and how it went.
struct Measured {
    tensors: u64,
    files: u64,
    bytes: u64,
    runs: Vec<Run>,
}

/// One load.
struct Run {
    /// What was known before, and what was picked.
    facts: Facts,
    choice: Choice,
    elapsed: Duration,
    requests: u64,
    bytes_read: u64,
    minor_faults: Option<u64>,
    major_faults: Option<u64>,
    resident: Option<u64>,
    /// What was found out on the way.
    notes: Vec<String>,
}

pub(crate) fn run(args: &Bench, session: &mut Session) -> Result<()> {
    let schema = args.json.then_some("weigh.bench/1");
    each_meant(session, &args.paths, &args.select, schema, |session, document, survey, meant| {
        if survey.failures().next().is_some() {
            // They are reported with the survey.
            return Ok(false);
        }
        let measured = match measure(args, session, survey, meant) {
            Ok(Some(measured)) => measured,
            Ok(None) => return Ok(true),
            Err(error @ Error::Refused(_)) => {
                // What is wrong is said with the survey.
                session.failures.push(of_checkpoint(survey, &error));
                session.came_to(Outcome::Finding);
                return Ok(false);
            }
            Err(error) => {
                session.failed(of_checkpoint(survey, &error));
                return Ok(false);
            }
        };
        if let Some(document) = document {
            document.checkpoint(&mut session.output, survey, |json| {
                report::write_json(json, &measured)
            })?;
        } else {
            report::write_text(session, survey, &measured, args.explain)?;
        }
        Ok(false)
    })
}

/// An error, with the checkpoint where it names no file.
fn of_checkpoint(survey: &Survey, error: &Error) -> Failure {
    let failure = Failure::from(error);
    if !failure.path.is_empty() {
        return failure;
    }
    let path = survey.path().to_string_lossy().into_owned();
    Failure { message: format!("{path}: {}", failure.message), path, ..failure }
}

/// Loads what is meant, as often as was asked for; `None` if that is nothing.
fn measure(
    args: &Bench,
    session: &Session,
    survey: &Survey,
    meant: &Meant<'_>,
) -> Result<Option<Measured>, Error> {
    let checkpoint = Checkpoint::open_surveyed(survey, &session.options)?;
    let all = Tensors::of(survey);
    let wants: Vec<Want<'_>> = meant_rows(&all, meant).map(|row| Want::new(row.name)).collect();
    if wants.is_empty() && !meant.is_all() {
        return Ok(None);
    }
    let mut plan = checkpoint.plan(&wants)?;
    if let Some(to) = args.cast {
        plan = plan.cast_floats(to)?;
    }
    let read = args.read.options();
    let mut measured = Measured {
        tensors: plan.parts().len() as u64,
        files: checkpoint.shards().len() as u64,
        bytes: plan.bytes(),
        runs: Vec::new(),
    };
    for _ in 0..args.runs.get() {
        let is_warm = args.cold && !drop_all(&checkpoint)?;
        let mut run = one_run(&plan, read, args.budget)?;
        if is_warm {
            run.notes.push("not all of the files could be dropped from the page cache".into());
        }
        measured.runs.push(run);
    }
    Ok(Some(measured))
}

/// Drops the files from the page cache; whether nothing of them stayed.
fn drop_all(checkpoint: &Checkpoint) -> Result<bool, Error> {
    let mut is_cold = true;
    for file in checkpoint.shards().iter().filter_map(Shard::file) {
        let stayed = pagecache::drop_cache(file)?;
        is_cold &= stayed.is_some_and(|stayed| stayed.cached == 0);
    }
    Ok(is_cold)
}

/// What is worth a word about the memory.
fn note(pages: Pages) -> Option<&'static str> {
    match pages {
        Pages::Huge | Pages::Small => None,
        Pages::NoHuge => Some("huge pages cannot be had here"),
        Pages::SlowHuge => Some("huge pages came slowly: most pages are small ones"),
    }
}

fn one_run(plan: &Plan<'_>, read: ReadOptions, budget: Option<u64>) -> Result<Run, Error> {
    let bar = Bar::new(plan.bytes_in_files());
    let before = Usage::now();
    let began = Instant::now();
    let (facts, choice, requests, bytes_read, notes, loaded) = match budget {
        Some(budget) => {
            let options = StreamOptions { budget, read, ..StreamOptions::default() };
            let mut stream = plan.stream(&options)?;
            let mut done = 0_u64;
            for item in stream.by_ref() {
                done = done.saturating_add(item?.array.bytes_read());
                bar.set(done);
            }
            let (facts, choice) = (stream.facts().clone(), stream.choice().clone());
            (facts, choice, stream.requests(), stream.bytes_read(), stream.notes(), None)
        }
        None => {
            let progress = bar.follow();
            let options = LoadOptions { read, progress: Some(&progress), ..LoadOptions::default() };
            let loaded = plan.load(&options)?;
            let LoadReport { read, pages, facts, choice, .. } = loaded.report();
            let requests = u64::try_from(read.requests).unwrap_or(u64::MAX);
            let mut notes = read.notes.clone();
            notes.extend(pages.and_then(note).map(String::from));
            let (facts, choice) = (facts.clone(), choice.clone());
            (facts, choice, requests, read.bytes_read, notes, Some(loaded))
        }
    };
    let elapsed = began.elapsed();
    let after = Usage::now();
    drop(loaded);
    let between = |count: fn(&Usage) -> u64| Some(count(&after?).saturating_sub(count(&before?)));
    Ok(Run {
        facts,
        choice,
        elapsed,
        requests,
        bytes_read,
        minor_faults: between(|usage| usage.minor_faults),
        major_faults: between(|usage| usage.major_faults),
        resident: after.map(|usage| usage.resident),
        notes,
    })
}
