//! `weigh check`.

use clap::Args;

use crate::args::Paths;
use crate::session::Session;

/// Check the structure of files, strictly.
#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    paths: Paths,
}

pub(crate) fn run(args: &Check, session: &mut Session) -> anyhow::Result<()> {
    session.each_survey(&args.paths.paths, |_session, _survey, _selector| Ok(()))
}
