//! The fuzz targets of `fuzz/`, built with coverage and run for a while each.
//!
//! Without a sanitizer: the crates that they try have no unsafe code, and what is looked for is a panic, an assertion
//! that fails, and memory or time beyond bounds. So the compiler in use will do, and a C++ compiler for libFuzzer.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{files, steps};

/// Each target, and the seeds that it begins with: a folder, and the ends of the names of files in it.
const TARGETS: &[(&str, &str, &[&str])] = &[
    ("pickle", "conformance/checkpoints", &["pkl"]),
    ("container", "conformance/checkpoints", &["pt", "ckpt", "pkl", "npy", "joblib"]),
    ("zip", "conformance/checkpoints", &["pt", "ckpt"]),
    ("tar", "conformance/checkpoints", &["pt"]),
    ("legacy", "conformance/checkpoints", &["pt"]),
    ("npy", "conformance/checkpoints", &["npy"]),
    ("scan", "conformance/checkpoints", &["pt", "ckpt", "pkl", "npy", "npz", "joblib", "7z"]),
    ("wrappers", "conformance/checkpoints", &["joblib", "7z"]),
    ("header", "conformance/format/cases", &["safetensors"]),
];

/// What makes the compiler count edges for libFuzzer.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// The largest seed, in bytes: larger ones are slow to mutate.
const SEED: u64 = 64 << 10;

/// Runs the targets, all or one, for so many seconds each.
///
/// # Errors
///
/// When there is no such target, or one finds something; the input is in `target/fuzz/artifacts`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (seconds, names): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let seconds = seconds.first().map_or("60", |seconds| seconds.as_str());
    if let Some(name) =
        names.iter().find(|name| !TARGETS.iter().any(|(target, ..)| target == *name))
    {
        bail!("there is no fuzz target `{name}`");
    }
    for (target, folder, endings) in TARGETS {
        if names.is_empty() || names.iter().any(|name| name == target) {
            try_one(workspace, target, (folder, endings), seconds)?;
        }
    }
    Ok(())
}

fn try_one(
    workspace: &Workspace,
    target: &str,
    (folder, endings): (&str, &[&str]),
    seconds: &str,
) -> Result<()> {
    let place = workspace.target.join("fuzz");
    let (corpus, artifacts) = (place.join("corpus").join(target), place.join("artifacts"));
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for ending in endings {
        for seed in files::with_extension(&workspace.root.join(folder), ending)? {
            if fs::metadata(&seed)?.len() <= SEED {
                fs::copy(&seed, corpus.join(seed.file_name().unwrap_or_default()))?;
            }
        }
    }
    let mut command: Command = workspace.cargo(["run", "--release", "--manifest-path"]);
    command
        .arg(workspace.root.join("fuzz/Cargo.toml"))
        .args(["--target-dir".as_ref(), place.as_os_str()])
        // For a named target: else build scripts would be built with coverage too, and nothing to count it.
        .args(["--target", &host()?])
        .args(["--bin", target, "--"])
        .arg(corpus)
        .arg(format!("-artifact_prefix={}/{target}-", artifacts.display()))
        .args([&format!("-max_total_time={seconds}"), "-rss_limit_mb=1024", "-timeout=10"])
        .args(["-max_len=65536", "-print_final_stats=1", "-verbosity=0"])
        .env("RUSTFLAGS", COVERAGE);
    steps::run(command)
}

/// The target that the compiler builds for when none is named.
fn host() -> Result<String> {
    let mut command = Command::new("rustc");
    command.args(["--print", "host-tuple"]);
    Ok(String::from_utf8(steps::output(command)?)?.trim().into())
}
