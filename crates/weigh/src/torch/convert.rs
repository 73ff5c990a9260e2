//! Checkpoints of torch and numpy converted to safetensors, and any of these to `.npz`.
//!
//! [`ConvertPlan::new`] reads what there is and says what would be written; [`ConvertPlan::write`] writes it, whole or
//! not at all. No element is looked at that need not be: what lies in the file as it is to be written is copied.
//!
//! # Untrusted input
//!
//! Nothing from a file is executed. A file that is more than data is refused, and so is one that two programs read
//! differently. How much is written is known, and limited, before anything is.

mod aliases;
mod compare;
mod index;
pub(super) mod input;
mod layout;
mod load;
mod names;
mod parts;
mod quantized;
mod rules;
mod run;
mod tensors;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_format::Dtype;
use weigh_io::FileSource;
use weigh_pickle::Error as PickleError;

use super::TorchOptions;
use super::gather::Blob;
use crate::targets::Targets;
use crate::{Error, Output, WriteOptions};
pub use input::{Beside, Unconverted};
use input::{Draft, Opened};
pub use layout::output_for;
pub use load::load;
pub use rules::{Complex, Format, NestedRule, QuantizedRule, SparseRule};

/// How a checkpoint is converted.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct ConvertOptions {
    /// Which tensors are meant, and what reading them may cost. What
    /// [`modules`](TorchOptions::modules) and [`values`](TorchOptions::values) say follows from `allow_calls` and
    /// `values`.
    pub torch: TorchOptions,
    /// Whether a file that calls something when it is unpickled is converted, without calling it.
    pub allow_calls: bool,
    /// What is written.
    pub format: Format,
    /// Whether of names of the same elements one is written, and the others are recorded in the metadata.
    pub dedupe: bool,
    /// The names that the model's code ties to others: of names of the same elements these are dropped.
    pub tied: Vec<String>,
    /// What is taken off the front of names: the first of these that a name begins with.
    pub strip: Vec<String>,
    /// What becomes of complex numbers that the output has not.
    pub complex: Complex,
    /// What becomes of integers with scales.
    pub quantized: QuantizedRule,
    /// What becomes of sparse tensors.
    pub sparse: SparseRule,
    /// What becomes of nested tensors.
    pub nested: NestedRule,
    /// Whether bits without a meaning are written as unsigned integers; for `.npz`, all elements that numpy has not.
    pub raw_bits: bool,
    /// Whether what was written is not read back.
    pub skip_verify: bool,
    /// Where what is no tensor goes, as JSON, if it does.
    pub values: Option<PathBuf>,
    /// How files are written.
    pub write: WriteOptions,
}

/// What would be written. Nothing has been; see [`ConvertPlan::write`].
#[derive(Debug)]
pub struct ConvertPlan {
    opened: Vec<Opened>,
    blobs: Vec<Blob>,
    drafts: Vec<Draft>,
    /// For each tensor, what is told of it.
    tensors: Vec<Converted>,
    aliases: BTreeMap<String, String>,
    cost: Cost,
    unconverted: Vec<Unconverted>,
    candidates: Vec<&'static str>,
    beside: Vec<Beside>,
    beside_count: u64,
    files: Vec<layout::File>,
    index: Option<(PathBuf, Vec<u8>)>,
    stale: Vec<PathBuf>,
    folder: Option<PathBuf>,
    values: Option<(PathBuf, Vec<u8>)>,
    options: ConvertOptions,
}

/// A tensor that is written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Converted {
    /// Its name, unescaped.
    pub name: String,
    /// Its elements in the input: `torch.bfloat16`.
    pub from: String,
    /// Its elements as they are written.
    pub dtype: Dtype,
    /// Its shape as it is written.
    pub shape: Vec<u64>,
    /// Bytes that it takes.
    pub bytes: u64,
    /// What is done to its bytes: `copied`, `gathered`, `inflated`, then what is made of them.
    pub how: String,
    /// The first name of the same elements that is written too.
    pub same_as: Option<String>,
    /// The number of the file that it is written to.
    pub file: usize,
}

/// A file that is written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ConvertedFile {
    /// Where.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many tensors it has.
    pub tensors: usize,
    /// Whether something is there already.
    pub replaces: bool,
}

/// Bytes that the tensors take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// In the input, of the storages that they are views of, each once.
    pub storages: u64,
    /// Of every name, as it is written.
    pub every_name: u64,
    /// Of one of the names of the same elements.
    pub once: u64,
}

/// What was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConvertReport {
    /// Bytes of all files.
    pub bytes: u64,
    /// How long writing took, until everything was in place, without reading it back.
    pub elapsed: Duration,
    /// How long reading it back took, if it was.
    pub verified: Option<Duration>,
}

impl ConvertPlan {
    /// What would be written of the checkpoint at `path`: one of torch (`.pt`, `.pth`, `.bin`, `.ckpt`, or the index of
    /// several, or a folder of them), an `.npz` or `.npy`, or safetensors. What it is is told by its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TorchRefused`] if the file is more than data; [`Error::Torch`] if it cannot be read;
    /// [`Error::Unconvertible`] if there are tensors that cannot be written, unless
    /// [`partial`](TorchOptions::partial) is set; those of [`Edit::plan`](crate::Edit::plan) about the output.
    pub fn new(
        path: impl AsRef<Path>,
        output: &Output,
        options: &ConvertOptions,
    ) -> Result<Self, Error> {
        let (mut plan, stem, metadata) = Self::read(path.as_ref(), options)?;
        if plan.drafts.is_empty() && plan.unconverted.is_empty() && plan.beside_count > 0 {
            let message = "there is no tensor in it, only what is none";
            return Err(Error::torch(path.as_ref(), PickleError::new("no-tensor", message)));
        }
        plan.lay_out(output, &stem, &metadata)?;
        for (number, file) in plan.files.iter().enumerate() {
            for tensor in &file.tensors {
                if let Some(converted) = plan.tensors.get_mut(tensor.draft) {
                    converted.file = number;
                }
            }
        }
        plan.check_targets(path.as_ref())?;
        Ok(plan)
    }

    /// The tensors of a checkpoint, without files that they are written to; what these are to be called, and what
    /// their metadata is.
    fn read(
        path: &Path,
        options: &ConvertOptions,
    ) -> Result<(Self, String, BTreeMap<String, String>), Error> {
        let mut read = input::read(path, options)?;
        if options.format == Format::Npz {
            layout::keep_numpy(&mut read.drafts, &mut read.unconverted, options);
        }
        if !read.unconverted.is_empty() && !options.torch.partial {
            let tensors = read.unconverted;
            return Err(Error::Unconvertible { path: path.into(), tensors });
        }
        names::strip(path, &mut read.drafts, &options.strip)?;
        let groups = aliases::groups(&read.drafts);
        let cost = aliases::cost(&read.drafts, &read.blobs, &groups);
        let mut same: BTreeMap<String, String> = BTreeMap::new();
        let mut dropped: BTreeMap<String, String> = BTreeMap::new();
        for group in &groups {
            let kept = aliases::kept(&read.drafts, group, &options.tied);
            let to = if options.dedupe { &mut dropped } else { &mut same };
            to.extend(group.iter().filter(|name| **name != kept).map(|name| {
                let name_of = |place: usize| read.drafts.get(place).map(|it| it.name.clone());
                (name_of(*name).unwrap_or_default(), name_of(kept).unwrap_or_default())
            }));
        }
        read.drafts.retain(|draft| !dropped.contains_key(&draft.name));
        let written = if options.dedupe { cost.once } else { cost.every_name };
        check_cost(path, &cost, written, options)?;
        let mut metadata = read.metadata;
        for (name, kept) in &dropped {
            if metadata.insert(name.clone(), kept.clone()).is_some() {
                let message = format!("the metadata has a key {name} of its own");
                return Err(Error::torch(path, PickleError::new("alias-metadata", message)));
            }
        }
        let tensors = read.drafts.iter().map(|draft| converted(draft, &read.blobs, &same));
        let tensors: Vec<Converted> = tensors.collect();
        let values = match &options.values {
            Some(to) => Some((to.clone(), values::json(path, &read.beside)?.into_bytes())),
            None => None,
        };
        let plan = Self {
            opened: read.opened,
            blobs: read.blobs,
            drafts: read.drafts,
            tensors,
            aliases: dropped,
            cost,
            unconverted: read.unconverted,
            candidates: read.candidates,
            beside: read.beside,
            beside_count: read.beside_count,
            files: Vec::new(),
            index: None,
            stale: Vec::new(),
            folder: None,
            values,
            options: options.clone(),
        };
        Ok((plan, read.stem, metadata))
    }

    fn check_targets(&self, input: &Path) -> Result<(), Error> {
        self.check_input(input)?;
        self.check_values()?;
        let files = self.files.iter().map(|file| file.path.as_path());
        let others = self.index.iter().chain(&self.values).map(|(path, _)| path.as_path());
        let targets = Targets {
            files: files.chain(others).collect(),
            stale: &self.stale,
            folder: self.folder.as_deref(),
            replace: self.options.write.replace,
        };
        targets.check()
    }

    /// Whether a file that is read would be replaced: what was left out of it would be lost.
    fn check_input(&self, input: &Path) -> Result<(), Error> {
        let inputs = self.opened.iter().filter_map(|opened| opened.file().ok());
        let mut inputs = std::iter::once(input).chain(inputs.map(FileSource::path));
        let files = self.files.iter().map(|file| &file.path);
        let outputs = files.chain(self.index.iter().chain(&self.values).map(|(path, _)| path));
        // What is read is there: an output that is not there yet is none of it.
        let places: BTreeSet<PathBuf> =
            outputs.filter_map(|output| output.canonicalize().ok()).collect();
        let is_output =
            |input: &&Path| input.canonicalize().is_ok_and(|place| places.contains(&place));
        match inputs.find(is_output) {
            Some(path) => Err(Error::ReadAndWritten { path: path.into() }),
            None => Ok(()),
        }
    }

    /// Whether what is no tensor goes to a file of its own.
    fn check_values(&self) -> Result<(), Error> {
        let Some((values, _)) = &self.values else { return Ok(()) };
        let files = self.files.iter().map(|file| &file.path);
        let outputs = files.chain(self.index.iter().map(|(path, _)| path));
        match outputs.into_iter().find(|path| is_same(path, values)) {
            Some(path) => {
                Err(Error::SameTarget { paths: Box::new([path.clone(), values.clone()]) })
            }
            None => Ok(()),
        }
    }

    /// The tensors that are written, in the order of the input.
    #[must_use]
    pub fn tensors(&self) -> &[Converted] {
        &self.tensors
    }

    /// The names that are not written because another of the same elements is, each with that one.
    #[must_use]
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// The tensors that are not written because they cannot be: see [`TorchOptions::partial`].
    #[must_use]
    pub fn unconverted(&self) -> &[Unconverted] {
        &self.unconverted
    }

    /// The keys of the root where state dicts are, if there are several, so that names begin at the root.
    #[must_use]
    pub fn candidates(&self) -> &[&'static str] {
        &self.candidates
    }

    /// What is no tensor of the state dict; the first of it, if it is very much.
    #[must_use]
    pub fn beside(&self) -> &[Beside] {
        &self.beside
    }

    /// How much is no tensor of the state dict.
    #[must_use]
    pub fn beside_count(&self) -> u64 {
        self.beside_count
    }

    /// Bytes of the tensors.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The files that are written, without the index.
    pub fn files(&self) -> impl Iterator<Item = ConvertedFile> {
        self.files.iter().map(|file| ConvertedFile {
            path: file.path.clone(),
            bytes: file.bytes,
            tensors: file.tensors.len(),
            replaces: file.path.exists(),
        })
    }

    /// The index that is written after them.
    #[must_use]
    pub fn index(&self) -> Option<&Path> {
        self.index.as_ref().map(|(path, _)| path.as_path())
    }

    /// Files of a checkpoint that is replaced, which will be removed.
    #[must_use]
    pub fn removed(&self) -> &[PathBuf] {
        &self.stale
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Bytes that progress is told of.
    #[must_use]
    pub fn work(&self) -> u64 {
        let tensors = self.tensors.iter().fold(0, |sum: u64, it| sum.saturating_add(it.bytes));
        if self.options.skip_verify { tensors } else { tensors.saturating_mul(2) }
    }
}

/// Whether two paths lead to one file, there already or yet to be.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let folder = crate::work::folder_of(path).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        })
    };
    one == other || place(one).is_some_and(|one| Some(one) == place(other))
}

fn check_cost(
    path: &Path,
    cost: &Cost,
    written: u64,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let limits = &options.torch.limits;
    let most = cost.storages.saturating_mul(limits.expansion.into()).max(limits.expanded_bytes);
    if written <= most {
        return Ok(());
    }
    let message = format!(
        "the tensors are {written} bytes, of storages of {}: over the limit of {most}",
        cost.storages
    );
    Err(Error::torch(path, PickleError::new("limit-expansion", message)))
}

fn converted(draft: &Draft, blobs: &[Blob], same: &BTreeMap<String, String>) -> Converted {
    Converted {
        name: draft.name.clone(),
        from: draft.from.clone(),
        dtype: draft.dtype,
        shape: draft.shape.clone(),
        bytes: draft.gathered.bytes(),
        how: draft.gathered.how(blobs),
        same_as: same.get(&draft.name).cloned(),
        file: 0,
    }
}
