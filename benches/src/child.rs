//! Timing a program: fork, exec, wait, with its largest resident set.
//!
//! The kernel counts the memory of the process that forks toward its child's, until the child
//! executes a program of its own. So this program does not run the children itself, big as it is
//! with the data of a benchmark: it runs itself again, small, as a launcher that runs one child.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait4::Wait4;

/// The argument that makes this program a launcher.
pub(crate) const COMMAND: &str = "launch-and-measure";

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

/// What one run of a child cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// From before the fork until the exit was collected.
    pub(crate) time: Duration,
    /// Spent computing, by all its threads and the kernel for it: waiting its turn does not count.
    pub(crate) computing: Duration,
    /// Largest resident set, in bytes.
    pub(crate) memory: u64,
}

impl Child {
    pub(crate) fn new(program: &Path, arguments: &[&OsStr]) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    /// Runs the child with its standard output to a fresh file, `output`; it has to exit with 0.
    pub(crate) fn run(&self, output: &Path) -> Result<Cost> {
        match self.run_to_end(output)? {
            (0, cost) => Ok(cost),
            (code, _) => bail!("`{}` failed: exit status: {code}", self.program.display()),
        }
    }

    /// The same, whatever it exits with, which is returned.
    pub(crate) fn run_to_end(&self, output: &Path) -> Result<(u64, Cost)> {
        // Truncating what the last run wrote takes time, and not the child's.
        if output.exists() {
            fs::remove_file(output)?;
        }
        let this = env::current_exe().context("cannot find this program")?;
        let launched = Command::new(this)
            .arg(COMMAND)
            .arg(output)
            .arg(&self.program)
            .args(&self.arguments)
            .stderr(Stdio::inherit())
            .output()?;
        let answer = String::from_utf8_lossy(&launched.stdout);
        let numbers: Vec<u64> =
            answer.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [code, time, computing, memory] if launched.status.success() => {
                let [time, computing] = [time, computing].map(Duration::from_nanos);
                Ok((code, Cost { time, computing, memory }))
            }
            _ => bail!("`{}` failed: {answer}", self.program.display()),
        }
    }
}

/// The launcher: runs a child and prints its exit code and what it cost, in nanoseconds and bytes.
///
/// `arguments` are the file for its output, the program, and the program's arguments.
pub(crate) fn measure(arguments: &[OsString]) -> Result<()> {
    let [output, program, arguments @ ..] = arguments else {
        bail!("an output file and a program are wanted");
    };
    let output = File::create(output)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(output);
    let start = Instant::now();
    let ended = command.spawn()?.wait4()?;
    let time = start.elapsed();
    let Some(code) = ended.status.code() else { bail!("{}", ended.status) };
    let usage = ended.rusage;
    let computing = usage.utime + usage.stime;
    println!("{code} {} {} {}", time.as_nanos(), computing.as_nanos(), usage.maxrss);
    Ok(())
}
