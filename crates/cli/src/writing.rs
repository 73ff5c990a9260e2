//! What the commands that write checkpoints have in common: where to, the plan, the progress, the report.

mod meant;
mod report;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use weigh::format::encode::{EncodeError, Layout};
use weigh::format::index::{IndexError, is_plain_file_name};
use weigh::io::{Error as IoError, ErrorKind};
use weigh::{
    Address, Checkpoint, Edit, Error, Output, Shard, Shards, Watch, WriteOptions, WritePlan,
    WriteReport,
};

use crate::args::Select;
use crate::bar::Bar;
use crate::interrupt;
use crate::listing::{Meant, by_flags};
use crate::output::is_stdout_closed;
use crate::session::{Failure, Outcome, Session, is_finding};
use crate::units;
use meant::are_some;
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
    /// What the data begins on a multiple of, a power of two from 8 on [default: 8]
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    align: Option<u64>,
    /// Room to leave in the header, for edits in place [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    reserve: Option<u64>,
    /// Do not wait until the files are on the disk
    #[arg(long)]
    no_sync: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum LayoutName {
    /// As the documents of the format have it, with the alignment and the room that are asked for
    Weigh,
    /// Byte for byte as the reference implementation writes, which knows neither
    Reference,
}

impl Writing {
    /// How to write.
    ///
    /// # Errors
    ///
    /// If the layout does not go with the alignment or the room that are asked for.
    fn options(&self) -> Result<WriteOptions, Failure> {
        let default = Layout::default();
        let layout = match (self.layout, self.align, self.reserve) {
            (LayoutName::Weigh, alignment, reserve) => Layout {
                alignment: alignment.unwrap_or(default.alignment),
                reserve: reserve.unwrap_or(default.reserve),
                ..default
            },
            (LayoutName::Reference, None, None) => Layout::reference(),
            (LayoutName::Reference, ..) => {
                return Err(Failure {
                    path: String::new(),
                    code: "layout-reference",
                    message: "the reference implementation knows no `--align` and no `--reserve`"
                        .into(),
                    help: Some("Leave them out, or `--layout reference`.".into()),
                });
            }
        };
        // Of a stream nothing is replaced.
        let replace = self.force || self.is_stdout();
        Ok(WriteOptions { replace, sync: !self.no_sync, layout })
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }

    /// How to write to this output.
    ///
    /// # Errors
    ///
    /// If the options do not go together, or what is there is of another kind than what would be.
    pub(crate) fn options_for(&self, output: &Output) -> Result<WriteOptions, Failure> {
        if !self.is_stdout() {
            check_kind(output)?;
        }
        self.options()
    }

    /// One file, or a folder of the files that there are.
    pub(crate) fn output(&self, input: &Checkpoint) -> Output {
        if !self.is_stdout() && goes_to_folder(input, &self.output) {
            self.folder(None, Shards::Keep)
        } else {
            Output::File(self.output.clone())
        }
    }

    /// One file, in the folder if there is one of this path, or is to be.
    pub(crate) fn file(&self, stem: &str) -> Output {
        if self.output.is_dir() {
            Output::File(self.output.join(format!("{stem}.safetensors")))
        } else if is_folder(&self.output) {
            self.folder(Some(stem.into()), Shards::Most(u64::MAX))
        } else {
            Output::File(self.output.clone())
        }
    }

    pub(crate) fn folder(&self, stem: Option<String>, shards: Shards) -> Output {
        Output::Folder { path: self.output.clone(), stem, shards }
    }
}

/// Whether what is made of a checkpoint goes to a folder of this path, and not to a file: if it is one, or is to be;
/// and if the checkpoint is of several files or has an index, unless the path is that of a file by its name.
pub(crate) fn goes_to_folder(input: &Checkpoint, output: &Path) -> bool {
    let is_set = input.shards().len() > 1 || input.index_path().is_some();
    is_folder(output) || (is_set && !is_file_name(output))
}

/// A size that has room for something.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    match units::parse_bytes(text)? {
        0 => Err("a file needs room for a byte at least".into()),
        bytes => Ok(bytes),
    }
}

/// What names of files may begin with; number and ending take 60 bytes at most.
pub(crate) fn parse_stem(text: &str) -> Result<String, String> {
    let longest = format!("{text}{}", "x".repeat(60));
    if text.is_empty() || text.starts_with('.') || !is_plain_file_name(&longest) {
        return Err("the files need a plain name, neither hidden nor longer than 195 bytes".into());
    }
    Ok(text.into())
}

/// Whether an output is a folder, or is to be one.
pub(crate) fn is_folder(output: &Path) -> bool {
    output.to_string_lossy().ends_with(['/', MAIN_SEPARATOR]) || output.is_dir()
}

/// Whether an output is a file by its name, though it is not there.
fn is_file_name(output: &Path) -> bool {
    output.extension().is_some_and(|it| it == "safetensors")
}

/// Says so if a file is where a folder would be, or a pipe or a device where a file would.
fn check_kind(output: &Output) -> Result<(), Failure> {
    let (path, is_folder) = match output {
        Output::File(path) => (path, false),
        Output::Folder { path, .. } => (path, true),
        _ => return Ok(()),
    };
    let Ok(there) = fs::metadata(path) else { return Ok(()) };
    if is_folder && !there.is_dir() {
        let path = path.to_string_lossy().into_owned();
        return Err(Failure {
            message: format!("{path}: is a file, and what is written needs a folder"),
            path,
            code: "not-a-folder",
            help: Some("Give a folder, or the path of one to be.".into()),
        });
    }
    if !is_folder && !there.is_dir() && !there.is_file() {
        let failure = Failure::from(&IoError::new(path, ErrorKind::NotAFile));
        let help = "Give the path of a regular file; `-o -` writes to stdout.";
        return Err(Failure { help: Some(help.into()), ..failure });
    }
    Ok(())
}

/// Opens a checkpoint for editing, and says what its address selects by; reports what is wrong, and is nothing then.
pub(crate) fn open(
    session: &mut Session,
    argument: &OsStr,
) -> Option<(Checkpoint, Option<String>)> {
    let address = session.address(argument)?;
    open_at(session, address)
}

fn open_at(session: &mut Session, address: Address) -> Option<(Checkpoint, Option<String>)> {
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
    let address = session.address(argument)?;
    open_whole_at(session, address)
}

/// The same, at an address.
pub(crate) fn open_whole_at(session: &mut Session, address: Address) -> Option<Checkpoint> {
    let (checkpoint, selector) = open_at(session, address)?;
    let Some(selector) = selector else { return Some(checkpoint) };
    let path = checkpoint.path().to_string_lossy().into_owned();
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
    change: impl FnOnce(&mut Edit<'c>, &Meant<'_>),
) -> Option<Edit<'c>> {
    let flags = by_flags(select).map_err(|failure| session.failed(failure)).ok()?;
    let meant = Meant::new(&flags, input.path(), selector);
    let meant = meant.map_err(|failure| session.failed(failure)).ok()?;
    let mut edit = edit(session, &[input])?;
    are_some(session, input, &edit, &meant).then(|| {
        change(&mut edit, &meant);
        edit
    })
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
        Error::Index(IndexError::FileName(_)) => {
            let help =
                "Names of files are those of the input, unless `weigh split --name` gives others.";
            Failure { help: Some(help.into()), ..failure.at(path) }
        }
        Error::Index(_) => failure.at(path),
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
        | Error::Torch { .. }
        | Error::TorchRefused { .. }
        | Error::Unconvertible { .. }
        | Error::Twice { .. }
        | Error::MetadataDiffers { .. }
        | Error::Rename(_) => true,
        Error::Encode { error, .. } => !matches!(
            error,
            EncodeError::Alignment(_)
                | EncodeError::HeaderTooLarge { .. }
                | EncodeError::NoRoom { .. }
                | EncodeError::ReserveTooLarge { .. }
        ),
        Error::Index(error) => matches!(error, IndexError::DuplicateName(_)),
        Error::Io(error) => is_finding(error),
        Error::Partly { error, .. } => is_of_files(error),
        _ => false,
    }
}

/// Writes what an edit of the inputs has come to, or says what would be written, or why that cannot be.
pub(crate) fn finish(
    session: &mut Session,
    command: &'static str,
    args: &Writing,
    inputs: &[&Checkpoint],
    edit: Option<(&Edit<'_>, &Output)>,
) -> Result<()> {
    let plan = edit.and_then(|(edit, output)| plan(session, args, inputs, edit, output));
    write(session, args, Report { plan: plan.as_ref(), ..Report::of(command) })
}

/// What would be written; nothing, reported, if that cannot be.
fn plan(
    session: &mut Session,
    args: &Writing,
    inputs: &[&Checkpoint],
    edit: &Edit<'_>,
    output: &Output,
) -> Option<WritePlan> {
    let options = args.options_for(output).map_err(|failure| session.failed(failure)).ok()?;
    let plan = edit.plan(output, &options);
    let plan = plan.map_err(|error| report_error_at(session, &args.output, &error)).ok()?;
    let mixed = inputs.iter().find_map(|input| mixed(input, &plan));
    match mixed {
        None => Some(plan),
        Some(failure) => {
            session.failed(failure);
            None
        }
    }
}

/// Why a plan would leave a set of old and new files, if it would: it replaces some files of one that is read.
fn mixed(input: &Checkpoint, plan: &WritePlan) -> Option<Failure> {
    let shards = input.shards();
    let replaced: HashSet<PathBuf> = plan
        .files()
        .iter()
        .filter(|file| file.replaces)
        .map(|file| &file.path)
        .chain(plan.removed())
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let is_replaced =
        |shard: &&Shard| fs::canonicalize(shard.path()).is_ok_and(|path| replaced.contains(&path));
    let mut gone = shards.iter().filter(is_replaced);
    let first = gone.next()?;
    let gone = gone.count() + 1;
    if gone == shards.len() {
        return None;
    }
    let path = first.path().to_string_lossy().into_owned();
    let (left, set) = (units::plural((shards.len() - gone) as u64, "file"), input.path().display());
    Some(Failure {
        message: format!("{path}: is part of {set}, of which {left} would stay as they are"),
        path,
        code: "part-of-set",
        help: Some("Write elsewhere, or replace the set: give its folder.".into()),
    })
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
