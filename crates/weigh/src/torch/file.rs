//! One torch checkpoint: what its tensors are, and where their bytes are.

mod contents;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use weigh_format::{Finding, Findings, Severity};
use weigh_io::FileSource;
use weigh_pickle::container::layout::{self, Contents, Layout};
use weigh_pickle::container::npy::Element;
use weigh_pickle::container::torch::ByteOrder;
use weigh_pickle::container::zip::Entry;
use weigh_pickle::state::{Named, Source, Why};
use weigh_pickle::storage::{Origin, StorageId, Storages};
use weigh_pickle::tensor::{Tensor, TensorId};
use weigh_pickle::values::Value;
use weigh_pickle::{Error as PickleError, Limits, Verdict};

use super::reading::Reading;
use crate::Error;

/// What is wanted of a checkpoint. The default is the tensors of its state dict.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for on its own")]
pub struct TorchOptions {
    /// Where the state dict is: a key of the root, or keys with dots between.
    pub key: Option<String>,
    /// Every tensor of the file, the optimizer's too.
    pub all: bool,
    /// Whether objects that look like modules are looked into, whatever their class is.
    pub modules: bool,
    /// Whether what cannot be read or named is left out, and listed, instead of being an error.
    pub partial: bool,
    /// Whether the values of what is no tensor are kept, for [`LeftOut::values`].
    pub values: bool,
    /// Whether a checksum that does not match is only reported.
    pub ignore_crc: bool,
    /// Spent before memory is.
    pub limits: Limits,
}

/// What a checkpoint is kept in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ContainerKind {
    /// A zip archive: torch since 1.6.
    Zip,
    /// Pickles and storages one after the other: torch up to 1.5.
    Legacy,
    /// A tar archive: torch before 0.1.10.
    Tar,
    /// A pickle alone, whose arrays are in it.
    Pickle,
    /// An array of Python objects of numpy's.
    NpyObjects,
}

impl ContainerKind {
    /// The stable name, in kebab case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zip => "torch-zip",
            Self::Legacy => "torch-legacy",
            Self::Tar => "torch-tar",
            Self::Pickle => "pickle",
            Self::NpyObjects => "npy-objects",
        }
    }
}

/// What was left out of the tensors of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Where it is: a dotted name, from the root of the file on if it is beside the state dict.
    pub name: String,
    /// Why.
    pub why: Why,
    /// What it is, if it has no tensors and [`TorchOptions::values`] is set.
    pub values: Option<Vec<Value>>,
}

/// Where the bytes of a storage are.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Place<'c> {
    /// In the file.
    #[non_exhaustive]
    File {
        /// Its first byte.
        start: u64,
        /// The byte after its last; of those that are deflated, the last deflated one.
        end: u64,
        /// The member of the zip archive that it is. If it is deflated, an
        /// [`Inflater`](weigh_pickle::container::inflate::Inflater) reads it.
        entry: Option<&'c Entry>,
        /// Whether the bytes are deflated.
        deflated: bool,
    },
    /// In memory: it was in the pickle.
    Held(&'c [u8]),
}

/// A torch checkpoint of one file. Its elements are not read.
#[derive(Debug)]
pub struct TorchCheckpoint {
    source: FileSource,
    layout: Layout,
    kind: ContainerKind,
    verdict: Verdict,
    findings: Findings,
    named: Vec<Named>,
    tensors: HashMap<TensorId, Tensor>,
    storages: Storages,
    /// Where the storages of legacy and tar files are, by key.
    spans: BTreeMap<String, Range<u64>>,
    held: HashMap<StorageId, Box<[u8]>>,
    left_out: Vec<LeftOut>,
    left_out_count: u64,
    names_begin: Source,
    candidates: Vec<&'static str>,
    fault: Option<PickleError>,
}

impl TorchCheckpoint {
    /// Opens a file. Reads its directory and its pickles, which are run without calling anything, and no storage.
    ///
    /// A file that would do more than hold data when it is unpickled opens too: see [`verdict`](Self::verdict), and
    /// [`require`](Self::require), which says whether its tensors may be used.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read; [`Error::Torch`] if it is no torch checkpoint, if its container is damaged,
    /// or if the tensors cannot be read although it is nothing but data.
    pub fn open(path: impl AsRef<Path>, options: &TorchOptions) -> Result<Self, Error> {
        let source = FileSource::open(path)?;
        let mut reading = Reading::new(&source, &options.limits);
        let opened = reading.open(&options.limits);
        let layout = opened.map_err(|fault| fault.of(&source))?;
        let kind = kind(&layout).map_err(|error| Error::torch(source.path(), error))?;
        let read = contents::read(&mut reading, &layout, options);
        let read = read.map_err(|fault| fault.of(&source))?;
        let mut checkpoint = Self {
            kind,
            verdict: read.verdict,
            findings: read.findings,
            named: read.named,
            tensors: read.tensors,
            storages: read.storages,
            spans: read.spans,
            held: read.held,
            left_out: read.left_out,
            left_out_count: read.left_out_count,
            names_begin: read.names_begin,
            candidates: read.candidates,
            fault: read.fault,
            source,
            layout,
        };
        checkpoint.check_storages();
        if checkpoint.verdict == Verdict::DataOnly
            && let Some(fault) = checkpoint.fault.take()
        {
            return Err(Error::torch(checkpoint.source.path(), fault));
        }
        Ok(checkpoint)
    }

    /// Compares the storages of a zip file with its members.
    fn check_storages(&mut self) {
        if self.kind != ContainerKind::Zip {
            return;
        }
        for storage in self.storages.list() {
            if storage.origin != Origin::Key || storage.is_meta() {
                continue;
            }
            let wrong = |code, message| PickleError::new(code, message).member(&storage.key);
            match self.layout.storage(&storage.key).map(|stored| stored.size) {
                None => {
                    let message = "the archive has no storage of this key that can be read";
                    self.fault.get_or_insert(wrong("storage-missing", message.into()));
                }
                Some(size) if size < storage.bytes => {
                    let wanted = storage.bytes;
                    let message = format!("the storage has {size} bytes, the pickle says {wanted}");
                    self.fault.get_or_insert(wrong("storage-short", message));
                }
                Some(size) if size > storage.bytes => {
                    self.findings.report(&super::rules::STORAGE_LONG, || {
                        let (key, said) = (&storage.key, storage.bytes);
                        let message =
                            format!("storage {key} has {size} bytes, the pickle says {said}");
                        Finding::new(&super::rules::STORAGE_LONG, message)
                    });
                }
                Some(_) => {}
            }
        }
    }

    /// Whether its tensors may be used: it is nothing but data, or `allow_calls` and it could be read in one way only.
    /// Foreign names and calls mean nothing either way: what they would make is opaque.
    ///
    /// # Errors
    ///
    /// [`Error::TorchRefused`] because of its verdict; [`Error::Torch`] if its tensors cannot be read.
    pub fn require(&self, allow_calls: bool) -> Result<(), Error> {
        let fine = match self.verdict {
            Verdict::DataOnly => true,
            Verdict::UnknownGlobal | Verdict::Call => allow_calls && !self.is_ambiguous(),
            Verdict::Ambiguous | Verdict::Error => false,
        };
        // A larger limit may read it.
        if let (false, Some(fault)) = (fine, &self.fault)
            && self.verdict == Verdict::Error
            && fault.code.starts_with("limit-")
        {
            return Err(Error::torch(self.source.path(), fault.clone()));
        }
        if !fine {
            let worst = self.findings.worst().unwrap_or(Severity::Note);
            let mut findings = self.findings.list().iter();
            let finding = findings.find(|finding| finding.severity == worst).cloned();
            return Err(Error::TorchRefused {
                path: self.source.path().into(),
                verdict: self.verdict,
                finding: finding.map(Box::new),
            });
        }
        match &self.fault {
            Some(fault) => Err(Error::torch(self.source.path(), fault.clone())),
            None => Ok(()),
        }
    }

    /// Whether two programs may read the container or a pickle differently, whatever else the verdict says.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.findings.counts().iter().any(|(rule, _)| rule.is_ambiguous)
    }

    /// The file.
    #[must_use]
    pub fn source(&self) -> &FileSource {
        &self.source
    }

    /// What it is kept in.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// The container.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What unpickling it would come to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// What was found in the container and in the pickles.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Why the tensors could not be read, or not all.
    #[must_use]
    pub fn fault(&self) -> Option<&PickleError> {
        self.fault.as_ref()
    }

    /// The names, each with its tensor, in the order of the file. Names are unique; two may have one tensor.
    #[must_use]
    pub fn names(&self) -> &[Named] {
        &self.named
    }

    /// A tensor: one that has a name, or a part of such a one.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<&Tensor> {
        self.tensors.get(&id)
    }

    /// The storages of the tensors.
    #[must_use]
    pub fn storages(&self) -> &Storages {
        &self.storages
    }

    /// Where the bytes of a storage are. `None` if there are none: one of the device `meta`.
    #[must_use]
    pub fn stored(&self, id: StorageId) -> Option<Place<'_>> {
        let storage = self.storages.get(id)?;
        if storage.origin != Origin::Key {
            return self.held.get(&id).map(|bytes| Place::Held(bytes));
        }
        if storage.is_meta() {
            return None;
        }
        if let Contents::TorchZip { archive, root } = &self.layout.contents {
            let entry = root.storage(archive, &storage.key)?;
            let stored = layout::Stored::of(entry)?;
            let Range { start, end } = stored.span;
            return Some(Place::File { start, end, entry: Some(entry), deflated: stored.deflated });
        }
        let Range { start, end } = self.spans.get(&storage.key)?.clone();
        Some(Place::File { start, end, entry: None, deflated: false })
    }

    /// The order of the bytes of every number in the storages.
    #[must_use]
    pub fn byte_order(&self) -> ByteOrder {
        self.layout.byte_order()
    }

    /// What was left out, in the order of the file; the first of it, if it is very much.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// How much was left out.
    #[must_use]
    pub fn left_out_count(&self) -> u64 {
        self.left_out_count
    }

    /// Where the names begin.
    #[must_use]
    pub fn names_begin(&self) -> &Source {
        &self.names_begin
    }

    /// The keys of the root where a state dict with tensors is.
    #[must_use]
    pub fn candidates(&self) -> &[&'static str] {
        &self.candidates
    }
}

/// What a file is, if it is a checkpoint.
fn kind(layout: &Layout) -> Result<ContainerKind, PickleError> {
    Ok(match &layout.contents {
        Contents::TorchZip { .. } => ContainerKind::Zip,
        Contents::Legacy(_) => ContainerKind::Legacy,
        Contents::TorchTar(_) => ContainerKind::Tar,
        Contents::Pickle => ContainerKind::Pickle,
        Contents::Npy(array) if array.header.element == Element::Object => {
            ContainerKind::NpyObjects
        }
        Contents::Wrapper(wrapper) => {
            let message = format!("the file is packed as {}: unpack it first", wrapper.name());
            return Err(PickleError::new("not-torch", message));
        }
        _ => {
            let name = layout.kind.name();
            let message = format!("the file is no torch checkpoint; it begins as {name}");
            return Err(PickleError::new("not-torch", message));
        }
    })
}
