//! `cargo xtask`: everything a developer types, in one place.
//!
//! `cargo xtask ci` is what continuous integration runs; each of the checks it
//! is made of can be run alone. A check that cannot run is an error, never
//! skipped in silence.
//!
//! Needs Rust with rustfmt and clippy, and Python 3.11 or newer with `venv` for
//! the Python side of `test`. `systems` and `sanitize`, which are part of `ci`
//! alone, need the source of the standard library as well, and say how to have it.

#![forbid(unsafe_code)]

mod arrows;
mod files;
mod fuzz;
mod generated;
mod links;
mod no_std;
mod package;
mod python;
mod sanitize;
mod sources;
mod steps;
mod systems;
mod toolchain;
mod workspace;

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci        format check, clippy, documentation, test, systems, sanitize
  test      cargo test, the checks below, and the Python side
  arrows    dependencies between our crates point one way; size and unsafe rules
  links     relative links and anchors of every Markdown file
  no-std    the crates that promise it build without std
  python    the Python side of test: tests/python and conformance
  package   the Python package: a wheel of it, and tests/python_package against that;
            `package torch slices` runs the files with one of these words in their names
  wheel     a wheel to be released, in target/wheels
  systems   type check for Windows and macOS
  sanitize  the tests of crates with unsafe code, under sanitizers
  fuzz      the fuzz targets, a minute each; `fuzz zip 600` runs one for as many seconds
  gen       writes the generated files again
  bench     weigh beside its peers; further arguments go to the benchmark. `bench python`
            measures the Python package
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((command, rest)) = arguments.split_first() else {
        bail!("no command\n\n{USAGE}");
    };
    if matches!(command.as_str(), "help" | "-h" | "--help") {
        print!("{USAGE}");
        return Ok(());
    }
    if !matches!(command.as_str(), "bench" | "package" | "fuzz") && !rest.is_empty() {
        bail!("`{command}` takes no arguments\n\n{USAGE}");
    }
    let workspace = Workspace::load()?;
    match command.as_str() {
        "ci" => ci(&workspace),
        "test" => test(&workspace),
        "arrows" => check_arrows(&workspace),
        "links" => check_links(&workspace),
        "no-std" => check_no_std(&workspace),
        "python" => python::test(&workspace),
        "package" => package::test(&workspace, rest),
        "wheel" => package::wheel(&workspace),
        "systems" => systems::check(&workspace),
        "sanitize" => sanitize::test(&workspace),
        "fuzz" => fuzz::run(&workspace, rest),
        "gen" => generated::write(&workspace),
        "bench" => bench(&workspace, rest),
        other => bail!("no command `{other}`\n\n{USAGE}"),
    }
}

fn ci(workspace: &Workspace) -> Result<()> {
    steps::run(workspace.cargo(["fmt", "--all", "--", "--check"]))?;
    steps::run(workspace.cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "--deny",
        "warnings",
    ]))?;
    let mut documentation = workspace.cargo(["doc", "--workspace", "--no-deps"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    steps::run(documentation)?;
    test(workspace)?;
    systems::check(workspace)?;
    sanitize::test(workspace)
}

fn test(workspace: &Workspace) -> Result<()> {
    steps::run(workspace.cargo(["test", "--workspace", "--all-features"]))?;
    check_arrows(workspace)?;
    check_no_std(workspace)?;
    check_links(workspace)?;
    python::test(workspace)?;
    package::test(workspace, &[])
}

fn check_arrows(workspace: &Workspace) -> Result<()> {
    let mut faults = arrows::check(&workspace.packages);
    faults.extend(sources::check(&workspace.packages)?);
    steps::report("arrows", &faults)
}

fn check_links(workspace: &Workspace) -> Result<()> {
    steps::report("links", &links::check(&workspace.root)?)
}

fn check_no_std(workspace: &Workspace) -> Result<()> {
    steps::report("no-std", &no_std::check(workspace)?)
}

fn bench(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(("python", rest)) = arguments.split_first().map(|(first, rest)| (&**first, rest)) {
        return package::bench(workspace, rest);
    }
    let mut command: Command =
        workspace.cargo(["run", "--release", "--package", "weigh-benches", "--"]);
    command.args(arguments);
    steps::run(command)
}
