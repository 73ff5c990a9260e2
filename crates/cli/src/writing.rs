//! What the commands that write checkpoints have in common: where to, the plan, the progress, the report.

mod meant;
mod report;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use weigh::format::encode::Layout;
use weigh::{Checkpoint, Edit, Error, Output, Shards, Watch, WriteOptions, WritePlan, WriteReport};

use crate::args::Select;
use crate::bar::Bar;
use crate::interrupt;
use crate::session::{Failure, Outcome, Session, is_finding};
use crate::units;
use meant::{MeantTensors, meant};
pub(crate) use report::Report;
use report::is_loss;

/// Where to write, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Writing")]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Writing {
    /// Where to write: a file, or a folder; `-` is stdout
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: PathBuf,
    /// Replace what is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Only say what would be written, and how many bytes would be moved
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// How headers are laid out
    #[arg(long, value_enum, default_value_t = LayoutName::Weigh, value_name = "LAYOUT")]
    layout: LayoutName,
    /// What the data begins on a multiple of, a power of two from 8 on
    #[arg(long, default_value = "8", value_name = "BYTES", value_parser = units::parse_bytes)]
    align: u64,
    /// Room to leave in the header, for edits in place
    #[arg(long, default_value = "0", value_name = "BYTES", value_parser = units::parse_bytes)]
    reserve: u64,
    /// Do not wait until the files are on the disk
    #[arg(long)]
    no_sync: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum LayoutName {
    /// As the documents of the format have it, with the alignment and the room that are asked for
    Weigh,
    /// Byte for byte as the reference implementation writes
    Reference,
}

impl Writing {
    pub(crate) fn options(&self) -> WriteOptions {
        let layout = match self.layout {
            LayoutName::Weigh => {
                Layout { alignment: self.align, reserve: self.reserve, ..Layout::default() }
            }
            LayoutName::Reference => Layout::reference(),
        };
        // Of a stream nothing is replaced.
        let replace = self.force || self.is_stdout();
        WriteOptions { replace, sync: !self.no_sync, layout }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }

    fn is_folder(&self) -> bool {
        is_folder(&self.output)
    }

    /// One file, unless a folder is asked for; several files go to a folder unless a file is asked for.
    pub(crate) fn output(&self, input: &Checkpoint) -> Output {
        let is_file_name = is_file_name(&self.output);
        let are_several = input.shards().len() > 1;
        if self.is_folder() || (are_several && !is_file_name && !self.is_stdout()) {
            self.folder(None, Shards::Keep)
        } else {
            Output::File(self.output.clone())
        }
    }

    /// One file, in the folder if there is one of this path.
    pub(crate) fn file(&self, stem: &str) -> Output {
        let path = if self.is_folder() {
            self.output.join(format!("{stem}.safetensors"))
        } else {
            self.output.clone()
        };
        Output::File(path)
    }

    pub(crate) fn folder(&self, stem: Option<String>, shards: Shards) -> Output {
        Output::Folder { path: self.output.clone(), stem, shards }
    }
}

/// Whether an output is a folder, or is to be one.
pub(crate) fn is_folder(output: &Path) -> bool {
    output.to_string_lossy().ends_with(['/', MAIN_SEPARATOR]) || output.is_dir()
}

/// Whether an output is a file by its name, though it is not there.
pub(crate) fn is_file_name(output: &Path) -> bool {
    output.extension().is_some_and(|it| it == "safetensors")
}

/// Opens a checkpoint for editing, and says what its address selects by; reports what is wrong, and is nothing then.
pub(crate) fn open(
    session: &mut Session,
    argument: &OsStr,
) -> Option<(Checkpoint, Option<String>)> {
    let address = weigh::Address::parse(argument);
    match session.open(&address.path) {
        Ok(checkpoint) => Some((checkpoint, address.selector)),
        Err(error) => {
            report_error(session, &error);
            None
        }
    }
}

/// The same, of which all tensors are meant.
pub(crate) fn open_whole(session: &mut Session, argument: &OsStr) -> Option<Checkpoint> {
    let (checkpoint, selector) = open(session, argument)?;
    let Some(selector) = selector else { return Some(checkpoint) };
    let path = argument.to_string_lossy().into_owned();
    session.failed(Failure {
        message: format!("{path}: `{selector}` selects tensors, and all of them are meant here"),
        path,
        code: "selector-unwanted",
        help: Some("Take some of them with `weigh select` first.".into()),
    });
    None
}

/// Begins to edit checkpoints, all together; reports why that cannot be.
pub(crate) fn edit<'c>(session: &mut Session, inputs: &[&'c Checkpoint]) -> Option<Edit<'c>> {
    Edit::of_all(inputs).map_err(|error| report_error(session, &error)).ok()
}

/// Begins to edit the tensors of a checkpoint that are meant; nothing, reported, if none are.
pub(crate) fn edit_some<'c>(
    session: &mut Session,
    input: &'c Checkpoint,
    select: &Select,
    selector: Option<&str>,
    change: impl FnOnce(&mut Edit<'c>, &MeantTensors),
) -> Result<Option<Edit<'c>>> {
    let Some(mut edit) = edit(session, &[input]) else { return Ok(None) };
    let meant = meant(session, input, &edit, select, selector)?;
    Ok(meant.map(|meant| {
        change(&mut edit, &meant);
        edit
    }))
}

/// Reports why something could not be done: a finding if the files are at fault, else a failure.
pub(crate) fn report_error(session: &mut Session, error: &Error) {
    match error {
        Error::Refused(_) => session.found(error),
        Error::Io(file) if is_finding(file) => session.found(error),
        error => session.failed(error),
    }
}

/// Writes what an edit has come to, or says what would be written, or why that cannot be.
pub(crate) fn finish(
    session: &mut Session,
    command: &'static str,
    args: &Writing,
    edit: Option<(&Edit<'_>, &Output)>,
) -> Result<()> {
    let options = args.options();
    let plan = edit.map(|(edit, output)| edit.plan(output, &options)).transpose();
    let plan = plan.unwrap_or_else(|error| {
        report_error(session, &error);
        None
    });
    write(session, args, Report { command, plan: plan.as_ref(), repair: None, written: None })
}

/// Carries out a plan, if there is one and it is not only to be told, and reports it.
pub(crate) fn write(session: &mut Session, args: &Writing, report: Report<'_>) -> Result<()> {
    // What is said then goes to stderr.
    let is_stdout_taken = args.is_stdout() && !args.dry_run;
    let mut written = None;
    if is_stdout_taken && session.output.is_terminal {
        session.failed(Failure {
            path: "-".into(),
            code: "stdout-terminal",
            message: "a checkpoint is not written to a terminal".into(),
            help: Some("Send it to a file or to another program.".into()),
        });
    } else if let Some(plan) = report.plan.filter(|_| !args.dry_run) {
        match carry_out(session, plan, is_stdout_taken) {
            Ok(done) => written = Some(done),
            // Nobody reads any more: how that ends is for the session to know.
            Err(Error::Stream(error)) => return Err(error.into()),
            Err(error) => report_error(session, &error),
        }
    }
    let report = Report { written: written.as_ref(), ..report };
    report.warn(session);
    if written.iter().flat_map(|it| &it.casts).any(is_loss) {
        session.came_to(Outcome::Finding);
    }
    let is_told = written.is_some() || args.dry_run;
    if is_stdout_taken && is_told {
        let mut text = Vec::new();
        report.write_text(&mut text)?;
        // Nothing can be done when stderr is closed.
        let _said = std::io::stderr().lock().write_all(&text);
    } else if args.json && !is_stdout_taken {
        report.write_json(session)?;
    } else if is_told {
        report.write_text(session.output.data())?;
    }
    Ok(())
}

fn carry_out(
    session: &mut Session,
    plan: &WritePlan,
    to_stdout: bool,
) -> Result<WriteReport, Error> {
    let bar = Bar::new(plan.bytes_read());
    let progress = bar.follow();
    let watch = Watch { cancel: Some(interrupt::cancel()), progress: Some(&progress) };
    if to_stdout { plan.write_to(session.output.data(), watch) } else { plan.write(watch) }
}
