//! Why a checkpoint could not be opened.

use std::fmt;
use std::path::PathBuf;

use weigh_format::{Finding, Findings};

/// Why a checkpoint could not be opened, by whose fault it is: the system, the path, or the files.
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
        }
    }
}

impl From<weigh_io::Error> for Error {
    fn from(error: weigh_io::Error) -> Self {
        Self::Io(error)
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
