//! `weigh tree`.

use clap::Args;

use crate::args::Paths;
use crate::session::Session;

/// Show the modules as a tree, repeated blocks collapsed.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    #[command(flatten)]
    paths: Paths,
}

pub(crate) fn run(args: &Tree, session: &mut Session) -> anyhow::Result<()> {
    session.each_survey(&args.paths.paths, |_session, _survey, _selector| Ok(()))
}
