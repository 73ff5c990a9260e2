//! The program `weigh`, as a library that its `main` and the Python package call.
//!
//! Stdout has the data, stderr everything else. Exit codes: 0 fine; 1 a finding (invalid, differs, no match, a
//! limit met); 2 usage, I/O, or could not finish; 2 wins over 1. Text from a file is escaped wherever it
//! is printed, paths included.
#![forbid(unsafe_code)]

mod args;
mod bar;
mod command;
mod findings;
mod interrupt;
mod json;
mod limits;
mod listing;
mod metadata;
mod output;
mod sarif;
mod session;
mod text;
mod units;
mod writing;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use weigh::format::text::escaped;

use crate::args::{Cli, Command};
use crate::session::Session;

/// Runs the program with these arguments, the first being its own name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(run(arguments))
}

/// The same; the exit code as a number.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = args::with_default_command(arguments.into_iter().collect());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // The message quotes arguments, which may be names of files: it is made again from escaped ones.
            let escaped = arguments.iter().map(|it| escaped(&it.to_string_lossy()).to_string());
            let error = Cli::try_parse_from(escaped).err().unwrap_or(error);
            // Help and version are not failures; clap knows which stream each goes to.
            let failed = error.print().is_err() || error.use_stderr();
            return if failed { 2 } else { 0 };
        }
    };
    let mut session = Session::new(&cli.global);
    let result = match &cli.command {
        Command::Ls(args) => command::ls::run(args, &mut session),
        Command::Tree(args) => command::tree::run(args, &mut session),
        Command::Info(args) => command::info::run(args, &mut session),
        Command::Check(args) => command::check::run(args, &mut session),
        Command::Scan(args) => command::scan::run(args, &mut session),
        Command::Select(args) => command::select::run(args, &mut session),
        Command::Rename(args) => command::rename::run(args, &mut session),
        Command::Cast(args) => command::cast::run(args, &mut session),
        Command::Convert(args) => command::convert::run(args, &mut session),
        Command::Repair(args) => command::repair::run(args, &mut session),
        Command::Split(args) => command::split::run(args, &mut session),
        Command::Join(args) => command::join::run(args, &mut session),
        Command::Meta(args) => command::meta::run(args, &mut session),
        Command::Bench(args) => command::bench::run(args, &mut session),
        Command::Pagecache(args) => command::pagecache::run(args, &mut session),
        Command::Completions(args) => command::generate::completions(args, &mut session),
        Command::Man(args) => command::generate::man(args, &mut session),
    };
    session.finish(result)
}
