//! Weigh beside its peers, in one run, with the answers verified.
//!
//! A benchmark here makes its own data, checks that every contender gives the right answer, then
//! times them in turn and prints what came out beside what was aimed at. A timing never fails the
//! run; a wrong answer does. `docs/benchmarks.md` says what is measured and why so.

mod amount;
#[cfg(target_os = "linux")]
mod cache;
mod child;
mod headers;
mod hostile;
mod listing;
#[cfg(target_os = "linux")]
mod load;
mod ls;
mod machine;
mod memory;
mod parse;
#[cfg(target_os = "linux")]
mod peers;
mod programs;
mod report;
#[cfg(target_os = "linux")]
mod scan;
mod timing;
#[cfg(target_os = "linux")]
mod write;

use std::env;
use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: weigh-benches BENCHMARK
       weigh-benches load|scan|write [OPTIONS]

  parse    a header, with every check, beside the crate safetensors
  hostile  a header made to be expensive, beside an honest one of its size
  ls       `weigh ls` beside the peers' programs; installs those on first use
  listing  ls, tree, info and check of a sparse file of 141 GB
  all      all of these
  load     checkpoints, beside the peers' loaders in Python; Linux only; `load --help` says more
  scan     `weigh scan` beside the peers' scanners; Linux only; `scan --help` says more
  write    writing and editing, beside copies and the peers; Linux only; `write --help` says more

WEIGH_BIN names the program to time; without it, `weigh` is built. WEIGH_LOAD_BIN and WEIGH_SAVE_BIN
name those that load and save from within.
TMPDIR says where files go: a few hundred megabytes, for `load` 4.6 GB, for `scan` 2.2 GB, for
`write` 11 GB, removed at the end.";

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> Result<()> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == child::COMMAND => child::measure(rest),
        Some((first, rest)) if ["load", "scan", "write"].iter().any(|name| first == name) => {
            with_options(first, rest)
        }
        Some((first, [])) => benchmark(first.to_str().unwrap_or_default()),
        _ => bail!("one argument is wanted\n\n{USAGE}"),
    }
}

#[cfg(target_os = "linux")]
fn with_options(name: &OsStr, arguments: &[OsString]) -> Result<()> {
    match name.to_str() {
        Some("load") => load::run(arguments),
        Some("scan") => scan::run(arguments),
        _ => write::run(arguments),
    }
}

#[cfg(not(target_os = "linux"))]
fn with_options(name: &OsStr, _: &[OsString]) -> Result<()> {
    bail!(
        "`{}` is for Linux: it needs what the system says of memory and the page cache",
        name.display()
    )
}

fn benchmark(name: &str) -> Result<()> {
    let all = [
        ("parse", parse::run as fn() -> Result<()>),
        ("hostile", hostile::run),
        ("ls", ls::run),
        ("listing", listing::run),
    ];
    let chosen: Vec<_> =
        all.into_iter().filter(|(known, _)| name == "all" || name == *known).collect();
    if chosen.is_empty() {
        bail!("no benchmark `{name}`\n\n{USAGE}");
    }
    machine::describe();
    for (name, run) in chosen {
        println!("\n## {name}\n");
        run()?;
    }
    Ok(())
}
