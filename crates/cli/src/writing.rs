//! What the commands that write checkpoints have in common: where to, the plan, the progress, the report.

mod meant;
mod report;

use std::ffi::OsStr;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use weigh::format::encode::{EncodeError, Layout};
use weigh::format::index::IndexError;
use weigh::io::ErrorKind;
use weigh::{Checkpoint, Edit, Error, Output, Shards, Watch, WriteOptions, WritePlan, WriteReport};

use crate::args::Select;
use crate::bar::Bar;
use crate::interrupt;
use crate::output::is_stdout_closed;
use crate::session::{Failure, Outcome, Session};
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

/// Reports why something could not be done: a finding if what the files have is in the way (they are damaged, their
/// names collide, their metadata or their values do not fit), else a failure.
pub(crate) fn report_error(session: &mut Session, error: &Error) {
    report_failure(session, error, error.into());
}

/// The same of what was planned for a path, which errors about what is in a file do not name.
pub(crate) fn report_error_at(session: &mut Session, path: &Path, error: &Error) {
    let failure = Failure::from(error);
    let failure = match error {
        Error::Encode(EncodeError::Alignment(_)) => failure,
        Error::Encode(_) | Error::Index(_) => failure.at(path),
        _ => failure,
    };
    report_failure(session, error, failure);
}

fn report_failure(session: &mut Session, error: &Error, failure: Failure) {
    if is_of_files(error) {
        session.found(failure);
    } else {
        session.failed(failure);
    }
}

/// Whether what the files have is in the way.
fn is_of_files(error: &Error) -> bool {
    match error {
        Error::Refused(_)
        | Error::Twice { .. }
        | Error::MetadataDiffers { .. }
        | Error::Rename(_) => true,
        Error::Encode(error) => !matches!(
            error,
            EncodeError::Alignment(_)
                | EncodeError::HeaderTooLarge { .. }
                | EncodeError::NoRoom { .. }
        ),
        Error::Index(error) => matches!(error, IndexError::DuplicateName(_)),
        Error::Io(error) => matches!(error.kind(), ErrorKind::InterruptedEdit(_)),
        _ => false,
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
        report_error_at(session, &args.output, &error);
        None
    });
    write(session, args, Report { command, plan: plan.as_ref(), repair: None, written: None })
}

/// Carries out a plan, if there is one and it is not only to be told, and reports it.
pub(crate) fn write(session: &mut Session, args: &Writing, report: Report<'_>) -> Result<()> {
    // The exit code says whether the files are there, and whether they are what was asked for.
    session.gives_verdict = true;
    let to_stdout = args.is_stdout() && !args.dry_run;
    let mut written = None;
    if let Some(failure) = to_stdout.then(|| stdout_unfit(session)).flatten() {
        session.failed(failure);
    } else if let Some(plan) = report.plan.filter(|_| !args.dry_run) {
        match carry_out(session, plan, to_stdout) {
            Ok(done) => written = Some(done),
            Err(error) => report_error(session, &error),
        }
    }
    if to_stdout {
        session.output.leave_stdout();
    }
    let report = Report { written: written.as_ref(), ..report };
    report.warn(session);
    if written.iter().flat_map(|it| &it.casts).any(is_loss) {
        session.came_to(Outcome::Finding);
    }
    if args.json {
        report.write_json(session)?;
    } else if written.is_some() || args.dry_run {
        report.write_text(session.output.data())?;
    }
    Ok(())
}

/// Why no checkpoint is written to stdout, if that is so.
fn stdout_unfit(session: &Session) -> Option<Failure> {
    let (code, message) = if session.output.is_terminal {
        ("stdout-terminal", "a checkpoint is not written to a terminal")
    } else if is_stdout_closed() {
        ("stdout-closed", "stdout goes nowhere")
    } else {
        return None;
    };
    Some(Failure {
        path: "-".into(),
        code,
        message: message.into(),
        help: Some("Send it to a file or to another program.".into()),
    })
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
