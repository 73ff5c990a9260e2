//! Loading whole checkpoints and slices of them, beside the peers' loaders in Python.
//!
//! Every figure is of a process of its own that loads once: `weigh-load` (`src/bin/weigh-load`) for
//! us, `load/peer.py` for the peers and the yardsticks. This module makes the sets, brings the page
//! cache into the state that a case is about and proves it, runs the contenders in turn, holds each
//! to the checksum that the sets' maker computed, and prints a table. It needs Linux and its `dd`,
//! `fincore`, `taskset` and `timeout`.

mod case;
mod contenders;
mod measurement;
mod options;
mod sets;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

use crate::load::case::Case;
use crate::load::contenders::{Contender, Programs, Role};
use crate::load::measurement::Outcome;
use crate::load::options::Options;
use crate::load::sets::Set;
use crate::{cache, machine, peers};

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let name = OsString::from("weigh-benches load");
    let options = Options::parse_from([name].iter().chain(arguments));
    machine::describe();
    println!("\n## load\n");
    let versions = peers::versions(&options.python, "load/peer.py")?;
    let programs = Programs::find(&options)?;
    let temporary = tempfile::tempdir()?;
    let folder = options.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    println!("{}", peers::shown(&versions));
    println!(
        "A process for each figure, in turn, on the cores {}; rounds: {}. Medians (fastest to slowest).",
        options.cores,
        options.rounds()
    );
    let mut faults = Vec::new();
    for name in options.sets() {
        let set = sets::make(&options, &folder, name)?;
        println!("\n### {}\n\n{}", name.name(), set.described());
        for case in options.cases() {
            let contenders = programs.contenders(case, &set, &options);
            if contenders.is_empty() {
                continue;
            }
            println!("\n#### {}, {}\n\n{}\n", name.name(), case.name(), case.described());
            let outcomes = in_turn(&options, case, &set, &contenders)?;
            table::print(&contenders, &outcomes);
            for (contender, outcome) in contenders.iter().zip(&outcomes) {
                // A peer may fail: that is its own affair.
                let failed = contender.role == Role::Ours && outcome.failure.is_some();
                if failed || outcome.wrong.is_some() {
                    let what = if failed { "failed" } else { "gave a wrong answer" };
                    let who = &contender.name;
                    faults.push(format!("{who} {what} in {}, {}", name.name(), case.name()));
                }
            }
        }
        if !options.keep && set.is_new {
            set.remove()?;
        }
    }
    if options.keep && options.folder.is_none() {
        println!("\nThe sets are in {}", temporary.keep().display());
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("; "));
    }
    Ok(())
}

/// Runs every contender once a round; one that fails or answers wrongly is not run again.
fn in_turn(
    options: &Options,
    case: Case,
    set: &Set,
    contenders: &[Contender],
) -> Result<Vec<Outcome>> {
    let answer = set.answer(case.mode);
    let files: &[PathBuf] = &set.files;
    let mut outcomes: Vec<Outcome> = contenders.iter().map(|_| Outcome::default()).collect();
    for round in 1..=options.rounds() {
        for (contender, outcome) in contenders.iter().zip(&mut outcomes) {
            if outcome.is_over() {
                continue;
            }
            if case.is_cold {
                cache::evict(files)?;
            } else {
                cache::warm(files)?;
            }
            outcome.add(contender.run(), answer);
            // A run takes seconds, and a table hundreds of them.
            let how = outcome.last_shown();
            eprintln!("{}, round {round}: {}: {how}", case.name(), contender.name);
        }
    }
    Ok(outcomes)
}
