//! `weigh meta export`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use weigh::io::{NewFile, WriteOptions};

use super::{common, object, open};
use crate::session::{Failure, Session};

/// Write metadata as a JSON object of strings, its keys sorted.
///
/// The files of a checkpoint have to agree on it: else give one of them.
#[derive(Args, Debug)]
pub(super) struct Export {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Where to write, instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace what is there
    #[arg(long, requires = "output")]
    force: bool,
}

pub(super) fn run(args: &Export, session: &mut Session) -> Result<()> {
    let checkpoint = open(session, &args.path);
    let metadata = checkpoint.as_ref().and_then(|checkpoint| common(session, checkpoint));
    let Some(metadata) = metadata else { return Ok(()) };
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        None => object::write(session.output.data(), &metadata)?,
        Some(path) => {
            let mut text = Vec::new();
            object::write(&mut text, &metadata)?;
            let options = WriteOptions { replace: args.force, sync: true };
            let file = NewFile::create(path, &options).and_then(|file| {
                file.write_at(&text, 0)?;
                file.commit()
            });
            file.map_err(|error| Failure::from(&error))?;
        }
    }
    Ok(())
}
