//! `weigh info`.

use clap::Args;

use crate::args::Paths;
use crate::session::Session;

/// Show on one screen what a checkpoint is.
#[derive(Args, Debug)]
pub(crate) struct Info {
    #[command(flatten)]
    paths: Paths,
}

pub(crate) fn run(args: &Info, session: &mut Session) -> anyhow::Result<()> {
    session.each_survey(&args.paths.paths, |_session, _survey, _selector| Ok(()))
}
