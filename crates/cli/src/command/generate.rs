//! `weigh completions` and `weigh man`: made from the command line's own definition.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::session::{Failure, Session};

/// Print completions for a shell.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write man pages, one a command, into a folder.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// The folder, which must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn completions(args: &Completions, session: &mut Session) -> anyhow::Result<()> {
    // Into memory first: the generator does not survive a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weigh", &mut script);
    session.output.data().write_all(&script)?;
    Ok(())
}

pub(crate) fn man(args: &Man, _session: &mut Session) -> anyhow::Result<()> {
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), &args.folder)
        .map_err(|error| Failure::from(&weigh::io::Error::system(&args.folder, error)).into())
}
