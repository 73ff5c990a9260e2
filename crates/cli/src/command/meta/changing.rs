//! What the commands that change metadata have in common: where to, how, the plan, the progress, the report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use weigh::{Checkpoint, Error, MetadataOptions, MetadataOutput, MetadataPlan, Watch};

use super::report::Report;
use crate::bar::Bar;
use crate::interrupt;
use crate::session::{Failure, Session};
use crate::units;
use crate::writing::{goes_to_folder, report_error};

/// Where to write, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Writing")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct Changing {
    /// Write elsewhere: a file, or for a checkpoint of several a folder, which gets the index too. By default
    /// each file is written anew and takes its own place
    #[arg(long, short, value_name = "PATH", conflicts_with = "in_place")]
    output: Option<PathBuf>,
    /// Replace what is there, if written elsewhere
    #[arg(long)]
    force: bool,
    /// Overwrite the header where it is, under an undo journal, if it has room for the new one
    #[arg(long)]
    in_place: bool,
    /// Room to leave in the header, for edits in place, as 4096 or 64K. By default it keeps what it
    /// has; 0 gives that up
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    #[arg(conflicts_with = "in_place")]
    reserve: Option<u64>,
    /// Only say what would change, and how many bytes would be moved
    #[arg(long)]
    dry_run: bool,
    /// Print one document, `weigh.meta/1`
    #[arg(long)]
    json: bool,
    /// Do not wait until the files are on the disk
    #[arg(long, conflicts_with = "in_place")]
    no_sync: bool,
}

impl Changing {
    /// Plans to change the metadata of every file; nothing, reported, if that cannot be.
    pub(super) fn plan<'c>(
        &self,
        session: &mut Session,
        checkpoint: &'c Checkpoint,
        edit: impl FnMut(&mut BTreeMap<String, String>),
    ) -> Option<MetadataPlan<'c>> {
        let output = self.output(checkpoint).map_err(|failure| session.failed(failure)).ok()?;
        let options = MetadataOptions {
            in_place: self.in_place,
            reserve: self.reserve,
            replace: self.force,
            sync: !self.no_sync,
        };
        let plan = checkpoint.plan_metadata(edit, &output, &options);
        plan.map_err(|error| report(session, &error)).ok()
    }

    /// Where the files of a checkpoint go.
    fn output(&self, checkpoint: &Checkpoint) -> Result<MetadataOutput, Failure> {
        let Some(path) = &self.output else { return Ok(MetadataOutput::Same) };
        let text = path.to_string_lossy();
        let refused = |code, message: String, help: &str| {
            let path = text.clone().into_owned();
            Err(Failure { path, code, message, help: Some(help.into()) })
        };
        if path.as_os_str() == "-" {
            let message = "metadata is not changed on the way to stdout".into();
            return refused("stdout-not-taken", message, "Give a file or a folder.");
        }
        if goes_to_folder(checkpoint, path) {
            return Ok(MetadataOutput::Folder(path.clone()));
        }
        let files = checkpoint.shards().len();
        if files > 1 {
            let message = format!("{text}: {files} files cannot be written as one");
            let help = "Give a folder, or join them with `weigh join` first.";
            return refused("many-files", message, help);
        }
        Ok(MetadataOutput::File(path.clone()))
    }
}

/// Reports why no plan can be made, with the file that it is about.
fn report(session: &mut Session, error: &Error) {
    if let Error::NoRoom { .. } = error {
        let help = "Run it without `--in-place`; with `--reserve 64K` there is room the next time.";
        session.failed(Failure { help: Some(help.into()), ..Failure::from(error) });
    } else {
        report_error(session, error);
    }
}

/// Does what is planned, unless it is only to be said, and says what that is.
pub(super) fn finish(
    session: &mut Session,
    action: &'static str,
    args: &Changing,
    plan: Option<&MetadataPlan<'_>>,
) -> Result<()> {
    // The exit code says whether the files are changed.
    session.gives_verdict = true;
    let began = Instant::now();
    let (mut written, mut files_written) = (None, 0);
    if let Some(plan) = plan.filter(|plan| !args.dry_run && plan.changes()) {
        match carry_out(plan) {
            Ok(()) => {
                written = Some(began.elapsed());
                files_written = plan.files().iter().filter(|file| file.changes()).count();
            }
            Err(error) => {
                if let Error::Partly { done, .. } = &error {
                    files_written = *done;
                }
                report_error(session, &error);
            }
        }
    }
    let report = Report { action, plan, written, is_dry: args.dry_run, files_written };
    if args.json {
        report.write_json(session)?;
    } else {
        report.write_text(&mut session.output)?;
    }
    Ok(())
}

fn carry_out(plan: &MetadataPlan<'_>) -> Result<(), Error> {
    let bar = Bar::new(plan.bytes_copied());
    let progress = bar.follow();
    let watch = Watch { cancel: Some(interrupt::cancel()), progress: Some(&progress) };
    plan.write(watch).map(|_| ())
}
