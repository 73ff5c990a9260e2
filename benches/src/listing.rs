//! Looking into a file of 141 GB, which is a header and a hole.

use std::ffi::OsStr;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::child::Child;
use crate::ls::{self, Outcome};
use crate::report::{Table, met};
use crate::timing::ROUNDS;
use crate::{amount, headers, programs};

/// What each command may cost: milliseconds, and bytes.
const MILLISECONDS: f64 = 50.0;
const BYTES: u64 = 20_000_000;

pub(crate) fn run() -> Result<()> {
    let weigh = programs::weigh()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("model.safetensors");
    let tensors = headers::seventy_billion();
    let header = headers::header(&tensors);
    header.write_sparse(&file).context("no sparse file of 141 GB can be had here")?;
    println!(
        "\
Looking into a file of {:.0} GB with {} tensors: wall time of the whole process, processor time and
largest resident set; medians (fastest) of {ROUNDS} runs. Warm cache; output to a file.
",
        amount::ratio(header.file_len(), 1_000_000_000),
        tensors.len()
    );
    let output = folder.path().join("output");
    let mut table = Table::new(["command", "time", "processor", "memory", "target", ""]);
    for command in ["ls", "tree", "info", "check"] {
        let child = Child::new(&weigh, &[OsStr::new(command), file.as_os_str()]);
        child.run(&output)?;
        let text = fs::read_to_string(&output)?;
        match command {
            "ls" => ls::verify(&text, &tensors)?,
            "info" => ensure!(counts(&text, tensors.len()), "`info` does not count the tensors"),
            "tree" => ensure!(text.contains("self_attn"), "`tree` does not name the modules"),
            // Its exit code has been seen.
            _ => {}
        }
        let costs: Result<Vec<_>> = (0..ROUNDS).map(|_| child.run(&output)).collect();
        let outcome = Outcome::new(&costs?);
        let [time, computing, memory] = outcome.shown();
        let fast = outcome.times.median().as_secs_f64() * 1e3 < MILLISECONDS;
        table.row([
            format!("weigh {command}"),
            time,
            computing,
            memory,
            format!("{MILLISECONDS} ms, {}", amount::size(BYTES)),
            met(fast && outcome.memory < BYTES),
        ]);
    }
    table.print();
    Ok(())
}

/// Whether the line `tensors` of what `info` prints begins with this number.
fn counts(text: &str, tensors: usize) -> bool {
    let mut lines = text.lines().map(str::split_whitespace);
    let line = lines.find_map(|mut words| (words.next() == Some("tensors")).then(|| words.next()));
    line.flatten().is_some_and(|count| count == tensors.to_string())
}
