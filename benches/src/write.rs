//! Writing and editing checkpoints, beside copies of as many bytes and the peers in Python.
//!
//! `weigh` and copies are timed from outside, as whole processes; `weigh-save` (`src/bin/weigh-save`)
//! and `write/peer.py` say themselves what the writing took, for starting Python and loading what is
//! saved is no part of it. This module has the checkpoint made, runs the contenders in turn, each in an
//! empty folder, and holds what they wrote to the digests that the maker computed. It needs Linux and
//! its `cp`, `dd`, `fincore`, `sha256sum` and `sync`.

mod answer;
mod claims;
mod contenders;
mod contest;
mod options;
mod place;
mod sparse;

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Parser;

use crate::child::Cost;
use crate::ls::Outcome;
use crate::report::Table;
use crate::write::claims::Row;
use crate::write::contenders::{Contender, Ran, Setting};
use crate::write::contest::{Contest, Work};
use crate::write::options::Options;
use crate::write::place::Place;
use crate::{amount, machine, peers, report};

pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let name = OsString::from("weigh-benches write");
    let options = Options::parse_from([name].iter().chain(arguments));
    machine::describe();
    println!("\n## write\n");
    println!("{}", peers::shown(&peers::versions(&options.python, "write/peer.py")?));
    let contests = options.contests();
    let (memory, expected) = Place::in_memory(&options)?;
    let disk = contests.iter().any(|contest| contest.is_on_disk());
    let disk = disk.then(|| Place::on_disk(&options, &memory)).transpose()?;
    println!(
        "{} of tensors. In turn; rounds: {}. Medians (fastest).",
        amount::size(expected.bytes),
        options.rounds()
    );
    let mut faults = Vec::new();
    for contest in contests {
        let place = disk.as_ref().filter(|_| contest.is_on_disk()).unwrap_or(&memory);
        let python = &options.python;
        let setting = Setting { contest, place, memory: &memory, expected: &expected, python };
        let contenders = setting.contenders(&options)?;
        if contenders.is_empty() {
            continue;
        }
        println!("\n### {}\n\n{}\n", contest.name(), contest.described());
        let runs = in_turn(&options, &setting, &contenders)?;
        for (contender, runs) in contenders.iter().zip(&runs) {
            // A peer may fail: that is its own affair.
            let failed = contender.is_ours() && runs.failure.is_some();
            if failed || runs.wrong.is_some() {
                let what = if failed { "failed" } else { "wrote something wrong" };
                faults.push(format!("{} {what} in {}", contender.name, contest.name()));
            }
        }
        print(contest, expected.bytes, &contenders, &runs);
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("; "));
    }
    Ok(())
}

/// The runs of a contender.
#[derive(Debug, Default)]
struct Runs {
    costs: Vec<Cost>,
    first_touches: Vec<f64>,
    /// Why it failed: then the costs are not all that there should be.
    failure: Option<String>,
    /// What was wrong with what it wrote: then the costs mean nothing.
    wrong: Option<String>,
}

/// Runs every contender once a round; one that fails or writes something wrong is not run again.
fn in_turn(
    options: &Options,
    setting: &Setting<'_>,
    contenders: &[Contender],
) -> Result<Vec<Runs>> {
    let folder = tempfile::tempdir_in(&options.memory)?;
    let printed = folder.path().join("printed");
    let mut all: Vec<Runs> = contenders.iter().map(|_| Runs::default()).collect();
    for round in 1..=options.rounds() {
        for (contender, runs) in contenders.iter().zip(&mut all) {
            if runs.failure.is_some() || runs.wrong.is_some() {
                continue;
            }
            setting.prepare(contender)?;
            let how = match contender.run(&printed) {
                Ok(Ran { cost, first_touch }) => {
                    runs.wrong = contender.fault(setting.place)?;
                    runs.costs.push(cost);
                    runs.first_touches.extend(first_touch);
                    runs.wrong.clone().unwrap_or_else(|| amount::time(cost.time))
                }
                Err(error) => {
                    let failure = format!("{error:#}");
                    runs.failure = Some(failure.clone());
                    failure
                }
            };
            // A run takes seconds, and a table many of them.
            let contest = setting.contest.name();
            eprintln!("{contest}, round {round}: {}: {how}", contender.name);
        }
    }
    setting.place.clear()?;
    Ok(all)
}

fn print(contest: Contest, bytes: u64, contenders: &[Contender], runs: &[Runs]) {
    let outcome = |(contender, runs): (&Contender, &Runs)| {
        let is_sound = runs.failure.is_none() && runs.wrong.is_none();
        (contender.name, is_sound.then(|| Outcome::new(&runs.costs)))
    };
    let rows: Vec<Row> = contenders.iter().zip(runs).map(outcome).collect();
    let mut table = Table::new(["", "time", "GB/s", "processor", "memory"]);
    for ((name, outcome), runs) in rows.iter().zip(runs) {
        let Some(outcome) = outcome else {
            table.row([(*name).into(), runs.why(), String::new(), String::new(), String::new()]);
            continue;
        };
        let [time, computing, memory] = outcome.shown();
        // What is set in place moves no bytes worth counting.
        let speed = match contest.work {
            Work::InPlace => String::from("–"),
            _ => format!("{:.2}", amount::speed(bytes, outcome.times.median())),
        };
        table.row([(*name).into(), time, speed, computing, memory]);
    }
    table.print();
    claims::print(contest, &rows);
    println!();
    report::fresh_memory(runs.iter().flat_map(|runs| runs.first_touches.clone()).collect());
}

impl Runs {
    /// Why there is no time.
    fn why(&self) -> String {
        let why = match (&self.failure, &self.wrong) {
            (Some(failure), _) => format!("failed: {failure}"),
            (_, Some(wrong)) => format!("**void**: {wrong}"),
            _ => String::from("did not run"),
        };
        // A bar or a line break would end the cell.
        why.replace('|', "/").replace('\n', " ")
    }
}
