//! `weigh ls`, beside the peers' programs.
//!
//! Files have a header and a hole for data. They are in the page cache, as they have just been
//! written and read. Every program writes to a fresh file in the same folder.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::amount;
use crate::child::{Child, Cost};
use crate::headers::{self, Order, Tensor};
use crate::programs::{self, PEERS};
use crate::report::{Table, met};
use crate::timing::{ROUNDS, Samples};

/// How often faster than the best peer `weigh ls` is to be.
const FASTER: f64 = 4.0;

/// What 900 000 tensors may cost: seconds, and bytes.
const MANY_SECONDS: f64 = 0.4;
const MANY_BYTES: u64 = 250_000_000;

pub(crate) fn run() -> Result<()> {
    let weigh = programs::weigh()?;
    let folder = tempfile::tempdir()?;
    println!(
        "\
Wall time of the whole process, processor time of its threads, and its largest resident set: medians
(fastest) of {ROUNDS} runs in turn, and the largest of all for memory. Warm cache; output to a file.
Each output was searched for every name, its dtype and its shape first.
"
    );
    beside_peers(&weigh, &folder)?;
    println!();
    many(&weigh, &folder)
}

fn beside_peers(weigh: &Path, folder: &TempDir) -> Result<()> {
    let mut tensors = headers::experts(100_000);
    Order::Lexical.apply(&mut tensors);
    let file = folder.path().join("100k.safetensors");
    headers::header(&tensors).write_sparse(&file)?;
    let mut names = vec![String::from("weigh ls")];
    let mut children = vec![ls(weigh, &file)];
    for peer in &PEERS {
        names.push(peer.name());
        children.push(Child::new(&peer.program()?, &peer.arguments(&file)));
    }
    let outcomes = in_turn(&children, folder, &tensors)?;
    let ours = outcomes[0].times.median();
    let best = outcomes[1..].iter().map(|peer| peer.times.median()).min();
    let faster = best.unwrap_or_default().div_duration_f64(ours);
    let mut table = Table::new(["100 000 tensors", "time", "processor", "memory", "beside weigh"]);
    for (name, outcome) in names.into_iter().zip(&outcomes) {
        let ratio = outcome.times.median().div_duration_f64(ours);
        let [time, computing, memory] = outcome.shown();
        table.row([name, time, computing, memory, format!("{ratio:.1} ×")]);
    }
    table.print();
    println!(
        "\nweigh is {faster:.1} times as fast as the best peer; target {FASTER}: {}",
        met(faster >= FASTER)
    );
    Ok(())
}

fn many(weigh: &Path, folder: &TempDir) -> Result<()> {
    let mut table = Table::new([
        "900 000 tensors, order",
        "header",
        "time",
        "processor",
        "memory",
        "target",
        "",
    ]);
    for order in [Order::Natural, Order::Lexical, Order::Random] {
        let mut tensors = headers::many_experts(900_000);
        order.apply(&mut tensors);
        let header = headers::header(&tensors);
        let file = folder.path().join("900k.safetensors");
        header.write_sparse(&file)?;
        let size = amount::size(headers::count(header.json().len()));
        let outcomes = in_turn(&[ls(weigh, &file)], folder, &tensors)?;
        let outcome = &outcomes[0];
        let [time, computing, memory] = outcome.shown();
        let fast = outcome.times.median().as_secs_f64() < MANY_SECONDS;
        table.row([
            order.name().to_owned(),
            size,
            time,
            computing,
            memory,
            format!("{MANY_SECONDS} s, {}", amount::size(MANY_BYTES)),
            met(fast && outcome.memory < MANY_BYTES),
        ]);
    }
    table.print();
    Ok(())
}

fn ls(weigh: &Path, file: &Path) -> Child {
    Child::new(weigh, &[OsStr::new("ls"), file.as_os_str()])
}

/// What the runs of one child cost.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) times: Samples,
    computing: Samples,
    /// The largest of all runs.
    pub(crate) memory: u64,
}

impl Outcome {
    pub(crate) fn new(costs: &[Cost]) -> Self {
        Self {
            times: Samples::new(costs.iter().map(|cost| cost.time).collect()),
            computing: Samples::new(costs.iter().map(|cost| cost.computing).collect()),
            memory: costs.iter().map(|cost| cost.memory).max().unwrap_or_default(),
        }
    }

    /// Wall time, processor time and memory, for a table.
    pub(crate) fn shown(&self) -> [String; 3] {
        [self.times.shown(), self.computing.shown(), amount::size(self.memory)]
    }
}

/// Checks what each child lists, then times them in turn.
fn in_turn(children: &[Child], folder: &TempDir, tensors: &[Tensor]) -> Result<Vec<Outcome>> {
    let output = folder.path().join("output");
    for child in children {
        child.run(&output)?;
        let text = fs::read_to_string(&output)?;
        verify(&text, tensors).with_context(|| format!("`{}`", child.program.display()))?;
    }
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); children.len()];
    for _ in 0..ROUNDS {
        for (child, costs) in children.iter().zip(&mut costs) {
            costs.push(child.run(&output)?);
        }
    }
    Ok(costs.iter().map(|costs| Outcome::new(costs)).collect())
}

/// Checks that `text` lists all tensors once, each name followed by its dtype and shape.
pub(crate) fn verify(text: &str, tensors: &[Tensor]) -> Result<()> {
    let expected: HashMap<&str, &Tensor> =
        tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let mut seen = HashSet::with_capacity(tensors.len());
    let mut last: Option<(&Tensor, usize)> = None;
    for word in text.split_whitespace() {
        let Some(&tensor) = expected.get(word) else {
            continue;
        };
        ensure!(seen.insert(word), "`{word}` is listed twice");
        // A word is a part of the text: where it begins is the difference of the two.
        let at = word.as_ptr().addr() - text.as_ptr().addr();
        if let Some((tensor, from)) = last.replace((tensor, at + word.len())) {
            verify_row(&text[from..at], tensor)?;
        }
    }
    if let Some((tensor, from)) = last {
        verify_row(&text[from..], tensor)?;
    }
    let missing = expected.keys().find(|name| !seen.contains(*name));
    ensure!(missing.is_none(), "`{}` is not listed", missing.unwrap_or(&""));
    Ok(())
}

/// Checks that the text after a name has the dtype and, one after the other, the dimensions.
fn verify_row(row: &str, tensor: &Tensor) -> Result<()> {
    let numbers: Vec<u64> = row
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let shape = &tensor.shape;
    ensure!(
        row.contains(tensor.dtype.name()) && numbers.windows(shape.len()).any(|some| some == shape),
        "`{}` is listed as {row:?}",
        tensor.name
    );
    Ok(())
}
