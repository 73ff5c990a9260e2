//! `weigh scan`, beside the peers' scanners.
//!
//! Programs are timed from outside, as whole processes. What they say of the checkpoints of
//! `conformance/checkpoints` comes first: ours has to be the verdict that is written there, that of a peer is
//! shown as it is. Then come honest files, large or of many tensors, and those made to cost more than they should.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, fs, path};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::Value;

use crate::child::Child;
use crate::ls::Outcome;
use crate::report::{Table, met};
use crate::{amount, cache, machine, peers, programs};

/// Scans checkpoints with Weigh and with the peers in Python, and prints what they say and what that cost.
#[derive(Debug, Parser)]
struct Options {
    /// The Python of an environment with the packages of benches/scan/requirements.txt.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The size of the large file, as a part of 2.1 GB.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// How often each scanner runs on a file.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Part of the name of a scanner; all of them unless given. May be given several times.
    #[arg(long)]
    only: Vec<String>,
    /// Where the files go; the system's temporary folder unless given.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// A program that judges a checkpoint, and says so with its exit code: 0 for nothing found, 1 for something.
#[derive(Debug)]
struct Scanner {
    name: &'static str,
    program: PathBuf,
    words: &'static [&'static str],
}

/// A file that is timed, with what is aimed at: milliseconds, and bytes.
#[derive(Debug)]
struct Timed {
    path: PathBuf,
    is_honest: bool,
    milliseconds: f64,
    memory: u64,
}

const OURS: &str = "weigh scan";

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let name = OsString::from("weigh-benches scan");
    let options = Options::parse_from([name].iter().chain(arguments));
    machine::describe();
    println!("\n## scan\n");
    // A virtual environment's Python is a link, and its programs are beside that.
    let python = path::absolute(&options.python)?;
    let scanners = scanners(&options, &python)?;
    let folder = tempfile::Builder::new()
        .prefix("weigh-scan-")
        .tempdir_in(options.folder.clone().unwrap_or_else(env::temp_dir))?;
    // A peer writes its report to wherever it is.
    env::set_current_dir(&folder)?;
    let printed = folder.path().join("printed");
    detection(&scanners, &printed)?;
    let scale = options.scale.to_string();
    let words = [folder.path().as_os_str(), "--scale".as_ref(), scale.as_ref()];
    peers::run(&python, "scan/files.py", &words)?;
    println!(
        "\nWhole processes, in turn; rounds: {}. Medians (fastest), and the largest memory. Warm cache.",
        options.rounds
    );
    for timed in files(folder.path()) {
        time(&timed, &scanners, options.rounds.max(1), &printed)?;
    }
    Ok(())
}

fn scanners(options: &Options, python: &Path) -> Result<Vec<Scanner>> {
    let beside = |name: &str| python.with_file_name(name);
    let mut scanners = vec![
        Scanner {
            name: OURS,
            program: path::absolute(programs::weigh()?)?,
            words: &["scan", "--json"],
        },
        Scanner { name: "picklescan", program: beside("picklescan"), words: &["-p"] },
        Scanner { name: "modelscan", program: beside("modelscan"), words: &["-p"] },
        Scanner { name: "fickling", program: beside("fickling"), words: &["--check-safety"] },
    ];
    scanners.retain(|scanner| {
        options.only.is_empty() || options.only.iter().any(|part| scanner.name.contains(part))
    });
    for scanner in &scanners {
        ensure!(
            scanner.program.exists(),
            "no {}: install benches/scan/requirements.txt into a virtual environment and name its \
             Python with --python",
            scanner.program.display()
        );
    }
    Ok(scanners)
}

impl Scanner {
    fn child(&self, file: &Path) -> Child {
        let words = self.words.iter().map(OsStr::new).chain([file.as_os_str()]);
        Child::new(&self.program, &words.collect::<Vec<_>>())
    }
}

/// The files of the corpus, and which scanners see them for what they are.
fn detection(scanners: &[Scanner], printed: &Path) -> Result<()> {
    let corpus = peers::script("../conformance/checkpoints");
    let listed = fs::read_to_string(corpus.join("expected.tsv"))?;
    let mut judged = vec![(Vec::new(), Vec::new()); scanners.len()];
    let [mut honest, mut hostile] = [0, 0];
    for line in listed.lines().skip(1) {
        let mut cells = line.split('\t');
        let (Some(file), Some(expected)) = (cells.next(), cells.next()) else { continue };
        // Of the rest any verdict is right.
        if expected == "any" {
            continue;
        }
        let is_honest = expected == "data-only";
        *(if is_honest { &mut honest } else { &mut hostile }) += 1;
        for (scanner, (missed, alarmed)) in scanners.iter().zip(&mut judged) {
            let (code, _) = scanner.child(&corpus.join(file)).run_to_end(printed)?;
            if scanner.name == OURS {
                let verdict = verdict(printed)?;
                ensure!(verdict == expected, "{OURS} says {verdict} of {file}, not {expected}");
            }
            match (is_honest, code) {
                (true, 0) | (false, 1) => {}
                (true, code) => alarmed.push(said(file, code)),
                (false, code) => missed.push(said(file, code)),
            }
        }
    }
    println!("{honest} honest files and {hostile} that are not, of conformance/checkpoints.\n");
    let mut table = Table::new(["", "not found", "which", "honest, but not passed"]);
    for (scanner, (missed, alarmed)) in scanners.iter().zip(judged) {
        let count = missed.len().to_string();
        table.row([scanner.name.into(), count, missed.join(", "), alarmed.join(", ")]);
    }
    table.print();
    Ok(())
}

/// A file, and the exit code if that is neither of the two that say something.
fn said(file: &str, code: u64) -> String {
    if code > 1 { format!("{file} (exit code {code})") } else { file.into() }
}

/// What we said of a file.
fn verdict(printed: &Path) -> Result<String> {
    let output: Value = serde_json::from_slice(&fs::read(printed)?)?;
    let verdict = output["files"][0]["verdict"].as_str();
    Ok(verdict.context("no verdict in the output")?.to_owned())
}

/// Names, what is aimed at, and whether they are honest.
fn files(folder: &Path) -> Vec<Timed> {
    let corpus = peers::script("../conformance/checkpoints");
    let honest = [("large.pt", 20.0, 30), ("many.pt", 60.0, 64), ("many-legacy.pt", 60.0, 64)];
    let honest = honest.map(|(name, milliseconds, megabytes)| Timed {
        path: folder.join(name),
        is_honest: true,
        milliseconds,
        memory: megabytes * 1_000_000,
    });
    let hostile = ["zipbomb.pt", "deep.pt", "bomb.pkl", "hugestr.pkl"].map(|name| Timed {
        path: corpus.join(name),
        is_honest: false,
        milliseconds: 100.0,
        memory: 64_000_000,
    });
    honest.into_iter().chain(hostile).collect()
}

fn time(timed: &Timed, scanners: &[Scanner], rounds: usize, printed: &Path) -> Result<()> {
    let name = timed.path.file_name().unwrap_or_default().to_string_lossy();
    let mut costs = vec![Vec::new(); scanners.len()];
    let mut codes = vec![0; scanners.len()];
    for _ in 0..rounds {
        cache::warm(std::slice::from_ref(&timed.path))?;
        for ((scanner, costs), last) in scanners.iter().zip(&mut costs).zip(&mut codes) {
            let (code, cost) = scanner.child(&timed.path).run_to_end(printed)?;
            if scanner.name == OURS && timed.is_honest {
                let verdict = verdict(printed)?;
                ensure!(verdict == "data-only", "{OURS} says {verdict} of {name}");
            }
            costs.push(cost);
            *last = code;
        }
    }
    println!();
    let title = format!("{name}, {}", amount::size(timed.path.metadata()?.len()));
    let mut table = Table::new([&*title, "time", "processor", "memory", "exit code", ""]);
    for ((scanner, costs), code) in scanners.iter().zip(&costs).zip(codes) {
        let outcome = Outcome::new(costs);
        let milliseconds = outcome.times.median().as_secs_f64() * 1e3;
        let is_met = milliseconds < timed.milliseconds && outcome.memory < timed.memory;
        let target = format!("{} ms, {}", timed.milliseconds, amount::size(timed.memory));
        let judged = (scanner.name == OURS).then(|| format!("{target}: {}", met(is_met)));
        let [time, computing, memory] = outcome.shown();
        let judged = judged.unwrap_or_default();
        table.row([scanner.name.into(), time, computing, memory, code.to_string(), judged]);
    }
    table.print();
    Ok(())
}
