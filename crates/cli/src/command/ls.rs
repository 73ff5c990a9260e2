//! `weigh ls`.

use clap::Args;

use crate::args::Paths;
use crate::session::Session;

/// List the tensors, one a line.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    #[command(flatten)]
    paths: Paths,
}

pub(crate) fn run(args: &Ls, session: &mut Session) -> anyhow::Result<()> {
    session.each_survey(&args.paths.paths, |_session, _survey, _selector| Ok(()))
}
