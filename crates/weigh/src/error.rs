//! Why a checkpoint could not be opened or read.

use std::fmt;
use std::path::PathBuf;

use weigh_format::slice::SliceError;
use weigh_format::text::escaped;
use weigh_format::{Finding, Findings};
use weigh_io::{OutOfMemory, PlanError, ReadError};
use weigh_values::cast::CastError;

/// Why a checkpoint could not be opened or read, by whose fault it is: the system, the path, the files, or
/// what was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
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
    /// It was asked to stop.
    Cancelled,
    /// Something that cannot be: an error of this crate's. Nothing was read.
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
            Self::Cancelled => "cancelled",
            Self::Internal { .. } => "internal",
        }
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
            Self::Buffer { .. } | Self::OutOfMemory { .. } | Self::Cancelled => None,
            Self::Internal { .. } => Some("Please report it.".into()),
        }
    }
}

impl From<weigh_io::Error> for Error {
    fn from(error: weigh_io::Error) -> Self {
        Self::Io(error)
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
            Self::NothingFound { path, torch_files } => {
                write!(f, "{}: no safetensors file in this folder", path.display())?;
                match torch_files.as_slice() {
                    [] => Ok(()),
                    [one] => write!(f, ", but a torch checkpoint, {one}"),
                    [first, ..] => {
                        write!(f, ", but {} torch checkpoints, like {first}", torch_files.len())
                    }
                }
            }
            Self::Several { path, candidates } => {
                write!(f, "{}: several checkpoints:", path.display())?;
                for (number, candidate) in candidates.iter().enumerate() {
                    let comma = if number == 0 { " " } else { ", " };
                    write!(f, "{comma}{}", candidate.display())?;
                }
                Ok(())
            }
            Self::Refused(findings) => {
                let Some(finding) = refusing(findings) else {
                    return f.write_str("the files are not sound");
                };
                if let Some(file) = &finding.place.file {
                    write!(f, "{file}: ")?;
                }
                write!(f, "{finding}")
            }
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
            Self::Cancelled => f.write_str("cancelled"),
            Self::Internal { message } => write!(f, "an error of weigh's own: {message}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// The first of the worst findings: what comes after it may only follow from it.
fn refusing(findings: &Findings) -> Option<&Finding> {
    findings.list().iter().find(|finding| Some(finding.severity) == findings.worst())
}
