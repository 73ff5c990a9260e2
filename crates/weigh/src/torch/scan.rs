//! What unpickling a file would do, found out without doing it.
//!
//! [`scan`] looks at one file, whatever its name: at every pickle in it, in archives and packed files inside it, in
//! strings of pickles. Its [verdict](ScanReport::verdict) is a statement about the bytes that were read, not a guess
//! at intent: *data-only* means that all of them were, and that no reader could be made to import or call anything
//! outside the table of constructors that checkpoints are made of.

mod beside;
mod engine;
mod folder;
mod kept;
mod keras;
mod members;
mod old;
mod other;
mod seen;
mod trial;
mod unpack;

use std::path::{Path, PathBuf};

use weigh_format::Findings;
use weigh_io::{Cancel, FileSource};
use weigh_pickle::{CallKind, Limits, Verdict};

use crate::Error;

pub use folder::{Skipped, Walk, walk};

/// How far a scan goes.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct ScanOptions<'a> {
    /// Of pickles and archives. The [`ratio`](Limits::ratio) is of all that is packed in a file to the bytes of the
    /// file, beyond 16 MiB; a packed pickle may have opcodes and nodes in proportion.
    pub limits: Limits,
    /// Of headers of safetensors files.
    pub header: weigh_format::Limits,
    /// Archives and packed files in each other that are looked into.
    pub nesting: u32,
    /// Bytes that are unpacked of one file, in all.
    pub unpacked: u64,
    /// What may stop it.
    pub cancel: Option<&'a Cancel>,
}

impl Default for ScanOptions<'_> {
    fn default() -> Self {
        Self {
            limits: Limits { ratio: 32, ..Limits::default() },
            header: weigh_format::Limits::default(),
            nesting: 4,
            unpacked: 1 << 30,
            cancel: None,
        }
    }
}

/// What was found in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScanReport {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// What it begins as, by its bytes: `"zip"`, `"torch-zip"`, `"pickle"`, `"safetensors"`, `"unknown"`.
    pub kind: &'static str,
    /// What unpickling all of it would come to; `None` if nothing in it is a checkpoint, so that nothing is said.
    ///
    /// A safetensors file that [`check`](crate::Survey) takes is `DataOnly`; one with deviations is `Ambiguous`, for
    /// some readers refuse it; one that is invalid is `Error`.
    pub verdict: Option<Verdict>,
    /// Whether all of it was read to the end. If not, the verdict is `Error`, or `Call` if a call was seen.
    pub complete: bool,
    /// The pickles, in the order they were found; the first of them, if they are very many.
    pub pickles: Vec<SeenPickle>,
    /// Names that would be imported, each once for each pickle; the first of them, if they are very many.
    pub globals: Vec<SeenGlobal>,
    /// Calls of anything outside the table; the first of them, if they are very many.
    pub calls: Vec<SeenCall>,
    /// How many of these calls there are.
    pub call_count: u64,
    /// Whether `torch.load(weights_only=True)` takes the file; `None` if torch would not be asked to load it.
    pub weights_only: Option<WeightsOnly>,
    /// Everything found.
    pub findings: Findings,
}

/// A pickle that was run.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SeenPickle {
    /// The member of an archive that it is in.
    pub member: Option<String>,
    /// The byte of the member, or of the file, where it begins.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// The protocol that it claims.
    pub protocol: Option<u8>,
    /// How many opcodes it has.
    pub opcodes: u64,
    /// What unpickling it would come to.
    pub verdict: Verdict,
}

/// A name that would be imported.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SeenGlobal {
    /// The member of an archive that it is in.
    pub member: Option<String>,
    /// The module.
    pub module: String,
    /// The name.
    pub name: String,
    /// The byte where it is first.
    pub offset: u64,
    /// How often it is there.
    pub count: u64,
    /// Whether it is one of those that checkpoints are made of.
    pub known: bool,
    /// The pickles in strings around it.
    pub depth: u32,
}

/// A call of something outside the table.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SeenCall {
    /// The member of an archive that it is in.
    pub member: Option<String>,
    /// What is called: a module and a name. `None` if it is something that the pickle made.
    pub callee: Option<(String, String)>,
    /// How; `None` for one in a pickle in a string.
    pub kind: Option<CallKind>,
    /// The byte where it is; of one in a string, where the string is.
    pub offset: u64,
    /// Whether what is called is known to run code.
    pub gadget: bool,
    /// The pickles in strings around it.
    pub depth: u32,
}

/// What `torch.load(weights_only=True)` of torch 2.15 makes of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "it takes it or it does not")]
pub enum WeightsOnly {
    /// It loads it, as far as the pickles tell: whether the tensors are sound is another matter.
    Taken,
    /// It stops.
    Refused(Box<Refused>),
}

/// Where `torch.load(weights_only=True)` stops.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Refused {
    /// The member of the archive.
    pub member: Option<String>,
    /// The byte of the member, or of the file.
    pub offset: Option<u64>,
    /// The opcode.
    pub opcode: Option<&'static str>,
    /// The name that it does not allow.
    pub name: Option<String>,
    /// Why. Text from the file in it is not escaped.
    pub reason: String,
}

impl ScanReport {
    /// Whether the file was read to its end and holds nothing but data.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.complete && self.verdict == Some(Verdict::DataOnly)
    }
}

/// Scans a file. Nothing in it is imported or called.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, [`Error::Cancelled`]. What is wrong with what is in it is a finding.
pub fn scan(path: impl AsRef<Path>, options: &ScanOptions<'_>) -> Result<ScanReport, Error> {
    scan_opened(&FileSource::open(path)?, options)
}

/// Scans a file that is open.
pub(super) fn scan_opened(
    source: &FileSource,
    options: &ScanOptions<'_>,
) -> Result<ScanReport, Error> {
    engine::scan(source, options).map_err(|fault| fault.of(source))
}

/// Scans the content of a file in memory. `path` is what it is called: programs choose a loader by that.
///
/// # Errors
///
/// [`Error::Cancelled`].
pub fn scan_bytes(
    path: impl AsRef<Path>,
    bytes: Vec<u8>,
    options: &ScanOptions<'_>,
) -> Result<ScanReport, Error> {
    engine::scan_bytes(path.as_ref(), bytes, options).map_err(|fault| match fault {
        crate::torch::reading::Fault::Io(error) => error.into(),
        crate::torch::reading::Fault::Content(error) => Error::torch(path.as_ref(), error),
        crate::torch::reading::Fault::Cancelled => Error::Cancelled,
    })
}
