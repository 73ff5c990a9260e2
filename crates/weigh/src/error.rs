//! Why a checkpoint could not be opened, read, edited or written.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use weigh_format::encode::EncodeError;
use weigh_format::index::IndexError;
use weigh_format::slice::SliceError;
use weigh_format::text::escaped;
use weigh_format::{Finding, Findings};
use weigh_inventory::rename::RenameError;
use weigh_io::{OutOfMemory, PlanError, ReadError};
use weigh_values::cast::CastError;

/// Why a checkpoint could not be opened, read, edited or written, by whose fault it is: the system, the path, the
/// files, or what was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    Io(weigh_io::Error),
    /// The folder has no safetensors file in it.
    NothingFound {
        /// The folder.
        path: PathBuf,
        /// Torch checkpoints that are there instead.
        torch_files: Vec<String>,
    },
    /// The path stands for several checkpoints.
    Several {
        /// The folder.
        path: PathBuf,
        /// A path for each.
        candidates: Vec<PathBuf>,
    },
    /// The files are not sound.
    Refused(Box<Findings>),
    /// A torch checkpoint cannot be read.
    Torch {
        /// The file.
        path: PathBuf,
        /// Why, and where.
        error: Box<weigh_pickle::Error>,
    },
    /// A torch checkpoint is more than data, or may be.
    TorchRefused {
        /// The file.
        path: PathBuf,
        /// What unpickling it would come to.
        verdict: weigh_pickle::Verdict,
        /// The first of the worst findings.
        finding: Option<Box<Finding>>,
    },
    /// Tensors have no counterpart in what is to be written. Nothing was.
    Unconvertible {
        /// What they are in.
        path: PathBuf,
        /// The tensors, one at least.
        tensors: Vec<crate::torch::Unconverted>,
    },
    /// What was written is not what was to be. It is gone.
    NotSame {
        /// The file.
        path: PathBuf,
        /// The name of the tensor, unescaped; none if it is the header.
        name: Option<String>,
    },
    /// There is no tensor of this name.
    NoTensor {
        /// The name, unescaped.
        name: String,
    },
    /// The tensor has no such slice.
    Slice {
        /// The name of the tensor, unescaped.
        name: String,
        /// What is wrong with the slice.
        error: SliceError,
    },
    /// The tensor cannot be converted to that dtype.
    Cast {
        /// The name of the tensor, unescaped.
        name: String,
        /// What is wrong with the conversion.
        error: CastError,
    },
    /// A slice that ends inside a byte cannot be converted.
    CastInsideByte {
        /// The name of the tensor, unescaped.
        name: String,
    },
    /// The caller's memory has another size than what is read into it.
    Buffer {
        /// Bytes that are read.
        wanted: u64,
        /// Bytes that there are.
        got: u64,
    },
    /// A slice with negative steps is too large for the memory budget.
    Budget {
        /// The name of the tensor, unescaped.
        name: String,
        /// Bytes that the slice takes.
        wanted: u64,
        /// Bytes of the budget.
        budget: u64,
    },
    /// The consumer of a stream holds so much of the budget that nothing fits any more, and waits for more.
    BudgetHeld {
        /// Bytes that it holds.
        held: u64,
    },
    /// The machine has less memory free than a load takes.
    NotEnoughMemory {
        /// Bytes that it takes.
        wanted: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The system gave no memory.
    OutOfMemory {
        /// Bytes that were wanted.
        wanted: u64,
    },
    /// The slices have far too many gaps to be read at once.
    TooManyPieces,
    /// Readers would refuse a file that was to be written. Nothing was.
    Encode {
        /// The file.
        path: PathBuf,
        /// What they would refuse.
        error: EncodeError,
    },
    /// The index of the files that were to be written cannot be.
    Index(IndexError),
    /// Tensors cannot be given these names.
    Rename(RenameError),
    /// A tensor of this name is in two of the files that are written as one set.
    Twice {
        /// The name, unescaped.
        name: String,
        /// The files.
        files: Box<[PathBuf; 2]>,
    },
    /// Files that are written as one have different values for a key of their metadata.
    MetadataDiffers {
        /// The key, unescaped.
        key: String,
        /// The first file that has the key, and one that has another value.
        files: Box<[PathBuf; 2]>,
    },
    /// A header that was to be overwritten has too little room for the new one. Nothing was written.
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Bytes that the new header needs, without the length field.
        needed: u64,
        /// Bytes that the old one has.
        room: u64,
    },
    /// Bytes of a tensor were never written.
    Incomplete {
        /// The name of the tensor, unescaped.
        name: String,
        /// The first bytes that are missing, from the tensor's first.
        missing: Range<u64>,
    },
    /// Bytes were written outside a tensor, or to one that was not declared.
    Outside {
        /// The name of the tensor, unescaped, if there is one.
        name: Option<String>,
        /// Where, from the tensor's first byte.
        span: Range<u64>,
        /// Bytes that the tensor has.
        bytes: u64,
    },
    /// What has a dtype and a shape has not the bytes that they take.
    ViewSize {
        /// Bytes that they take; `None` if that is no whole number, or over 2^64.
        wanted: Option<u64>,
        /// Bytes that there are.
        got: u64,
    },
    /// A file cannot be mended into itself.
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The input was to be written to.
    ReadAndWritten {
        /// The file.
        path: PathBuf,
    },
    /// What takes a file was to take what is none.
    NotAFile {
        /// What it is called.
        path: PathBuf,
    },
    /// Two files that were to be written are one: links lead to it.
    SameTarget {
        /// The paths.
        paths: Box<[PathBuf; 2]>,
    },
    /// Files of no bytes hold no tensor.
    ShardSize,
    /// What takes one file was to take several.
    ManyFiles {
        /// How many there would be.
        files: usize,
    },
    /// Of several files that are changed one after another some have been, then something failed. These stay as
    /// they are now, the others as they were.
    Partly {
        /// How many have been changed.
        done: usize,
        /// How many were to be.
        files: usize,
        /// What failed.
        error: Box<Error>,
    },
    /// The stream that is written to failed.
    Stream(std::io::Error),
    /// It was asked to stop.
    Cancelled,
    /// Something that cannot be: an error of this crate's. Nothing was read or written.
    Internal {
        /// What it was.
        message: String,
    },
}

impl Error {
    /// The stable code: of the first finding that refuses, where it is the files.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(error) => error.code(),
            Self::NothingFound { .. } => "nothing-found",
            Self::Several { .. } => "several-checkpoints",
            Self::Refused(findings) => refusing(findings).map_or("refused", Finding::code),
            Self::Torch { error, .. } => error.code,
            Self::TorchRefused { .. } => "torch-refused",
            Self::Unconvertible { tensors, .. } => {
                tensors.first().map_or("unconvertible", |tensor| tensor.code)
            }
            Self::NotSame { .. } => "not-same",
            Self::NoTensor { .. } => "no-tensor",
            Self::Slice { error, .. } => error.code(),
            Self::Cast { error, .. } => error.code(),
            Self::CastInsideByte { .. } => "cast-inside-byte",
            Self::Buffer { .. } => "buffer",
            Self::Budget { .. } => "budget",
            Self::BudgetHeld { .. } => "budget-held",
            Self::NotEnoughMemory { .. } => "not-enough-memory",
            Self::OutOfMemory { .. } => "out-of-memory",
            Self::TooManyPieces => "too-many-pieces",
            Self::Encode { error, .. } => error.code(),
            Self::Index(error) => error.code(),
            Self::Rename(error) => error.code(),
            Self::Twice { .. } => "tensor-twice",
            Self::MetadataDiffers { .. } => "metadata-differs",
            Self::NoRoom { .. } => "no-room",
            Self::Incomplete { .. } => "incomplete",
            Self::Outside { .. } => "outside-tensor",
            Self::ViewSize { .. } => "view-size",
            Self::SameFile { .. } => "same-file",
            Self::ReadAndWritten { .. } => "read-and-written",
            Self::NotAFile { .. } => "not-a-file",
            Self::SameTarget { .. } => "same-target",
            Self::ShardSize => "shard-size",
            Self::ManyFiles { .. } => "many-files",
            Self::Partly { error, .. } => error.code(),
            Self::Stream(_) => "stream",
            Self::Cancelled => "cancelled",
            Self::Internal { .. } => "internal",
        }
    }

    /// The file or folder that it is about; of two, the first.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io(error) => Some(error.path()),
            Self::NothingFound { path, .. }
            | Self::Several { path, .. }
            | Self::Torch { path, .. }
            | Self::TorchRefused { path, .. }
            | Self::Unconvertible { path, .. }
            | Self::NotSame { path, .. }
            | Self::Encode { path, .. }
            | Self::NoRoom { path, .. }
            | Self::ReadAndWritten { path }
            | Self::SameFile { path } => Some(path),
            Self::Twice { files, .. } | Self::MetadataDiffers { files, .. } => {
                files.first().map(PathBuf::as_path)
            }
            Self::SameTarget { paths } => paths.first().map(PathBuf::as_path),
            Self::Partly { error, .. } => error.path(),
            _ => None,
        }
    }

    /// That a torch checkpoint cannot be read.
    pub(crate) fn torch(path: &Path, error: weigh_pickle::Error) -> Self {
        Self::Torch { path: path.into(), error: Box::new(error) }
    }

    /// That readers would refuse this file.
    pub(crate) fn encode(path: &Path) -> impl FnOnce(EncodeError) -> Self {
        move |error| Self::Encode { path: path.into(), error }
    }

    /// Something that cannot be.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::Internal { message: message.into() }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io(error) => error.help().map(String::from),
            Self::NothingFound { torch_files, .. } if torch_files.is_empty() => {
                Some("Give a .safetensors file, a folder with some, or a shard index.".into())
            }
            Self::NothingFound { .. } => Some(
                "Torch checkpoints are pickles and have to be converted; loading one with torch runs code from it."
                    .into(),
            ),
            Self::Several { .. } => Some("Give one of them.".into()),
            Self::Refused(findings) => {
                refusing(findings).map(|finding| finding.help.to_string())
            }
            Self::Torch { error, .. } if error.code.starts_with("limit-") => {
                Some("If the file is honest, raise the limit.".into())
            }
            Self::TorchRefused { finding, .. } => {
                let help = finding.as_ref().map(|finding| finding.help.to_string());
                help.or_else(|| Some("See what it is with `weigh scan`.".into()))
            }
            Self::Unconvertible { tensors, .. } => {
                tensors.first().map(|tensor| tensor.help.into())
            }
            Self::NotSame { .. } => {
                Some("Something is wrong with the memory or the disk: do not trust them.".into())
            }
            Self::NoTensor { .. } => Some("List the names with `weigh ls`.".into()),
            Self::Slice { error, .. } => error.help().map(String::from),
            Self::Cast { .. } => Some("Floats can be converted to F64, F32, F16 and BF16.".into()),
            Self::CastInsideByte { .. } => Some("Take an even number of elements.".into()),
            Self::Budget { .. } => Some("Raise the budget, or take positive steps.".into()),
            Self::BudgetHeld { .. } => {
                Some("Drop tensors before asking for the next one, or raise the budget.".into())
            }
            Self::NotEnoughMemory { .. } => {
                Some("Stream the tensors under a memory budget, or load fewer of them.".into())
            }
            Self::TooManyPieces => {
                Some("Read fewer of them at once, or read over larger gaps.".into())
            }
            Self::Encode { error, .. } => Some(error.help().into()),
            Self::Index(error) => Some(error.help().into()),
            Self::Rename(error) => error.faults().first().map(|fault| fault.help().into()),
            Self::Twice { .. } => Some("Rename or leave out one of them first.".into()),
            Self::MetadataDiffers { .. } => {
                Some("Set the key to one value in all of them, or remove it: see `weigh meta`.".into())
            }
            Self::NoRoom { .. } => {
                Some("Write the file anew, with room to spare for the next time.".into())
            }
            Self::Incomplete { .. } => Some("Write all bytes of every tensor, then finish.".into()),
            Self::SameFile { .. } => Some("The damaged file is kept: give another path.".into()),
            Self::ReadAndWritten { .. } => Some("Give the path of another file.".into()),
            Self::NotAFile { .. } => Some("Save it to a file first.".into()),
            Self::SameTarget { .. } => Some("Remove one of the links, or write elsewhere.".into()),
            Self::ShardSize => Some("Let a file have a byte at least.".into()),
            Self::ManyFiles { .. } => Some("Write them to a folder.".into()),
            Self::Partly { error, .. } => {
                let again = "Run it again: files that have the change already are left alone.";
                Some(error.help().map_or(again.into(), |help| format!("{help} {again}")))
            }
            Self::Torch { .. }
            | Self::Buffer { .. }
            | Self::OutOfMemory { .. }
            | Self::Outside { .. }
            | Self::ViewSize { .. }
            | Self::Stream(_)
            | Self::Cancelled => None,
            Self::Internal { .. } => Some("Please report it.".into()),
        }
    }
}

impl From<weigh_io::Error> for Error {
    fn from(error: weigh_io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        Self::Index(error)
    }
}

impl From<RenameError> for Error {
    fn from(error: RenameError) -> Self {
        Self::Rename(error)
    }
}

impl From<OutOfMemory> for Error {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory { wanted: error.wanted }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::TooManyPieces { .. } => Self::TooManyPieces,
            other => Self::Internal { message: other.to_string() },
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::File(error) => Self::Io(error),
            ReadError::OutOfMemory(error) => error.into(),
            ReadError::Destination { wanted, got, .. } => Self::Buffer { wanted, got },
            ReadError::Cancelled => Self::Cancelled,
            other => Self::Internal { message: other.to_string() },
        }
    }
}

/// Paths are shown as the system has them: escape the text before it reaches a terminal.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NothingFound { path, torch_files } => show_nothing_found(f, path, torch_files),
            Self::Several { path, candidates } => show_several(f, path, candidates),
            Self::Refused(findings) => {
                let Some(finding) = refusing(findings) else {
                    return f.write_str("the files are not sound");
                };
                if let Some(file) = &finding.place.file {
                    write!(f, "{file}: ")?;
                }
                write!(f, "{finding}")
            }
            Self::Torch { path, error } => write!(f, "{}: {error}", path.display()),
            Self::TorchRefused { path, verdict, finding } => {
                write!(f, "{}: not data alone, but {verdict}", path.display())?;
                finding.as_ref().map_or(Ok(()), |finding| write!(f, ": {finding}"))
            }
            Self::Unconvertible { path, tensors } => show_unconvertible(f, path, tensors),
            Self::NotSame { path, name } => show_not_same(f, path, name.as_deref()),
            Self::NoTensor { name } => write!(f, "there is no tensor {}", escaped(name)),
            Self::Slice { name, error } => write!(f, "{}: {error}", escaped(name)),
            Self::Cast { name, error } => write!(f, "{}: {error}", escaped(name)),
            Self::CastInsideByte { name } => {
                write!(f, "{}: a slice that ends inside a byte cannot be converted", escaped(name))
            }
            Self::Buffer { wanted, got } => {
                write!(f, "{wanted} bytes are read, and the memory for them has {got}")
            }
            Self::Budget { name, wanted, budget } => write!(
                f,
                "{}: a slice with negative steps comes whole, and its {wanted} bytes are over the \
                 budget of {budget}",
                escaped(name)
            ),
            Self::BudgetHeld { held } => {
                write!(
                    f,
                    "tensors that were not dropped hold {held} bytes, which leaves too little of the \
                     budget for the next"
                )
            }
            Self::NotEnoughMemory { wanted, available } => {
                write!(f, "this takes {wanted} bytes of memory, and {available} are free")
            }
            Self::OutOfMemory { wanted } => write!(f, "the system has no {wanted} bytes of memory"),
            Self::TooManyPieces => {
                f.write_str("the slices are of too many pieces to be read at once")
            }
            Self::Encode { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Index(error) => error.fmt(f),
            Self::Rename(error) => error.fmt(f),
            Self::Twice { name, files } => {
                let [one, other] = files.each_ref().map(|file| file.display());
                write!(f, "tensor {} is in {one} and in {other}", escaped(name))
            }
            Self::MetadataDiffers { key, files } => {
                let [one, other] = files.each_ref().map(|file| file.display());
                let key = escaped(key);
                write!(f, "metadata {key} has one value in {one} and another in {other}")
            }
            Self::NoRoom { path, needed, room } => write!(
                f,
                "{}: the new header needs {needed} bytes and there is room for {room}: {} are missing",
                path.display(),
                needed.saturating_sub(*room)
            ),
            Self::Incomplete { name, missing: Range { start, end } } => {
                write!(f, "{}: bytes {start} to {end} were never written", escaped(name))
            }
            Self::Outside { name: Some(name), span: Range { start, end }, bytes } => {
                let name = escaped(name);
                write!(f, "{name}: bytes {start} to {end} are outside a tensor of {bytes} bytes")
            }
            Self::Outside { name: None, .. } => f.write_str("no such tensor was declared"),
            Self::ViewSize { wanted: Some(wanted), got } => {
                write!(f, "this dtype and shape take {wanted} bytes, and there are {got}")
            }
            Self::ViewSize { wanted: None, .. } => {
                f.write_str("this dtype and shape take no whole number of bytes below 2^64")
            }
            Self::SameFile { path } => {
                write!(f, "{}: cannot be mended into itself", path.display())
            }
            Self::ReadAndWritten { path } => write!(f, "{}: is the input too", path.display()),
            Self::NotAFile { path } => write!(f, "{}: is not a file", path.display()),
            Self::SameTarget { paths } => {
                let [one, other] = paths.each_ref().map(|path| path.display());
                write!(f, "{one} and {other} are one file, and two would be written")
            }
            Self::ShardSize => f.write_str("files of at most 0 bytes hold no tensor"),
            Self::ManyFiles { files } => write!(f, "{files} files cannot be written as one"),
            Self::Partly { done, files, error } => {
                write!(f, "{error} ({done} of {files} files have been changed)")
            }
            Self::Stream(error) => write!(f, "writing failed: {error}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Internal { message } => write!(f, "an error of weigh's own: {message}"),
        }
    }
}

fn show_unconvertible(
    f: &mut fmt::Formatter<'_>,
    path: &Path,
    tensors: &[crate::torch::Unconverted],
) -> fmt::Result {
    let path = path.display();
    match tensors {
        [] => write!(f, "{path}: cannot be converted"),
        [one] => write!(f, "{path}: {}: {}", escaped(&one.name), one.why),
        [first, more @ ..] => {
            let (name, why, count) = (escaped(&first.name), &first.why, more.len());
            write!(f, "{path}: {name}: {why}; and {count} more that cannot be converted")
        }
    }
}

fn show_nothing_found(f: &mut fmt::Formatter<'_>, path: &Path, torch: &[String]) -> fmt::Result {
    write!(f, "{}: no safetensors file in this folder", path.display())?;
    match torch {
        [] => Ok(()),
        [one] => write!(f, ", but a torch checkpoint, {one}"),
        [first, ..] => write!(f, ", but {} torch checkpoints, like {first}", torch.len()),
    }
}

fn show_not_same(f: &mut fmt::Formatter<'_>, path: &Path, name: Option<&str>) -> fmt::Result {
    let name = name.map_or("the header".into(), |it| escaped(it).to_string());
    write!(f, "{}: {name} was read back otherwise than it was written", path.display())
}

fn show_several(f: &mut fmt::Formatter<'_>, path: &Path, candidates: &[PathBuf]) -> fmt::Result {
    write!(f, "{}: several checkpoints:", path.display())?;
    for (number, candidate) in candidates.iter().enumerate() {
        let comma = if number == 0 { " " } else { ", " };
        write!(f, "{comma}{}", candidate.display())?;
    }
    Ok(())
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Stream(error) => Some(error),
            Self::Torch { error, .. } => Some(error),
            Self::Encode { error, .. } => Some(error),
            Self::Index(error) => Some(error),
            Self::Rename(error) => Some(error),
            Self::Slice { error, .. } => Some(error),
            Self::Cast { error, .. } => Some(error),
            Self::Partly { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The first of the worst findings: what comes after it may only follow from it.
fn refusing(findings: &Findings) -> Option<&Finding> {
    findings.list().iter().find(|finding| Some(finding.severity) == findings.worst())
}
