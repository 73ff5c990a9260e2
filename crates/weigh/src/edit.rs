//! Editing: which tensors, under which names, as which dtypes, with which metadata.
//!
//! An [`Edit`] starts as all tensors of one or more checkpoints. It changes nothing by itself: [`Edit::plan`]
//! says what would be written, and a [`WritePlan`](crate::WritePlan) writes it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use weigh_format::index::Extra;
use weigh_format::{Dtype, order};
use weigh_inventory::Item;
use weigh_inventory::rename::Rename;
use weigh_values::cast::{Cast, Overflow};

use crate::{Checkpoint, Error, Shard, Tensor};

pub(crate) mod copy;
pub(crate) mod plan;
pub(crate) mod run;

pub use plan::{PlannedCast, PlannedFile, PlannedIndex, WritePlan};
pub use run::{CastReport, WriteReport};

/// Changes to the tensors and the metadata of checkpoints.
///
/// ```no_run
/// use weigh::format::Dtype;
/// use weigh::inventory::select::Selection;
/// use weigh::{Edit, Output, Watch, WriteOptions};
///
/// let checkpoint = weigh::Checkpoint::open("model")?;
/// let mut edit = Edit::of(&checkpoint)?;
/// edit.select(|tensor| !tensor.name.ends_with(".bias"));
/// let weights = Selection::builder().include("*.weight").build()?;
/// edit.cast(|tensor| weights.matches(tensor), Dtype::BF16, Default::default());
/// let plan = edit.plan(&Output::File("small.safetensors".into()), &WriteOptions::default())?;
/// println!("{} bytes", plan.bytes());
/// plan.write(Watch::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Edit<'c> {
    /// The files of all checkpoints.
    pub(crate) shards: Vec<&'c Shard>,
    pub(crate) tensors: Vec<Edited<'c>>,
    /// The metadata of each file.
    pub(crate) metadata: Vec<BTreeMap<String, String>>,
    /// Whether each had any, if without a pair: a layout may tell that from none.
    has_metadata: Vec<bool>,
    pub(crate) stem: String,
    /// What the index of the first checkpoint says beside totals and the map: in its metadata, and beside it.
    pub(crate) index_extra: [BTreeMap<String, Extra>; 2],
    /// The files of those checkpoints that are sets.
    pub(crate) set_files: Vec<&'c Path>,
}

/// A tensor as it will be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Edited<'c> {
    /// Its name from now on, unescaped.
    pub name: Cow<'c, str>,
    /// What it is made of.
    pub source: Tensor<'c>,
    /// How its elements are converted, if they are.
    pub cast: Option<Cast>,
    /// The place of its file among all.
    pub(crate) file: usize,
}

impl Edited<'_> {
    /// The element type that it will have.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.cast.map_or(self.source.dtype, |cast| cast.to())
    }

    /// Bytes that it will have. Of one that cannot be converted whole, those of the part that can be: its header is
    /// refused.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = self.source.span.end.saturating_sub(self.source.span.start);
        self.cast.map_or(bytes, |cast| converted(cast, bytes))
    }

    /// What selections look at: its present name, and what it is in its file.
    #[must_use]
    pub fn item(&self) -> Item<'_> {
        let Tensor { dtype, shape, span, .. } = &self.source;
        let bytes = span.end.saturating_sub(span.start);
        Item { name: &self.name, dtype: Some(*dtype), shape: Some(shape), bytes }
    }
}

/// Where to write, and how many files.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// All of it to one file.
    File(PathBuf),
    /// To a folder, which is made if need be: one file, or several with an index.
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the files' names begin with, no dot; `None` for what those of the first checkpoint do.
        stem: Option<String>,
        /// Which tensors go together.
        shards: Shards,
    },
}

/// Which tensors go together into one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Shards {
    /// Those that are in one file now.
    Keep,
    /// As many as have at most this many bytes, at least 1, in natural order of their names. A larger one is by
    /// itself.
    Most(u64),
}

impl<'c> Edit<'c> {
    /// All of one checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::Twice`] if two tensors have one name.
    pub fn of(checkpoint: &'c Checkpoint) -> Result<Self, Error> {
        Self::of_all(&[checkpoint])
    }

    /// All of several checkpoints together.
    ///
    /// # Errors
    ///
    /// [`Error::Twice`] if two tensors have one name.
    pub fn of_all(checkpoints: &[&'c Checkpoint]) -> Result<Self, Error> {
        let shards: Vec<&Shard> = checkpoints.iter().flat_map(|it| it.shards()).collect();
        let mut tensors = Vec::with_capacity(checkpoints.iter().map(|it| it.len()).sum());
        for (file, shard) in shards.iter().enumerate() {
            let edited = |source: Tensor<'c>| Edited {
                name: Cow::Borrowed(source.name),
                source,
                cast: None,
                file,
            };
            tensors.extend(shard.tensors().map(edited));
        }
        let mut seen: HashMap<&str, &Shard> = HashMap::with_capacity(tensors.len());
        for tensor in &tensors {
            if let Some(first) = seen.insert(tensor.source.name, tensor.source.shard) {
                let name = tensor.source.name.into();
                let files = [first, tensor.source.shard].map(|shard| shard.path().to_path_buf());
                return Err(Error::Twice { name, files: Box::new(files) });
            }
        }
        let metadata = shards.iter().map(|shard| shard.header().metadata().collect()).collect();
        let has_metadata = shards.iter().map(|shard| shard.header().has_metadata()).collect();
        let first = checkpoints.first();
        let stem = first.map_or("model", |first| first.stem()).into();
        let index = first.and_then(|first| first.index());
        let extra = index.map(|index| [index.extra.clone(), index.beside.clone()]);
        let index_extra = extra.unwrap_or_default();
        let sets = checkpoints.iter().filter(|it| it.shards().len() > 1);
        let set_files = sets.flat_map(|it| it.shards()).map(Shard::path).collect();
        Ok(Self { shards, tensors, metadata, has_metadata, stem, index_extra, set_files })
    }

    /// The tensors as they will be written, in the order of the files.
    #[must_use]
    pub fn tensors(&self) -> &[Edited<'c>] {
        &self.tensors
    }

    /// Keeps those that are meant, by their present names and what they are in the files.
    pub fn select(&mut self, is_meant: impl Fn(&Item<'_>) -> bool) {
        self.tensors.retain(|tensor| is_meant(&tensor.item()));
    }

    /// Gives tensors other names. Says how many have one now.
    ///
    /// # Errors
    ///
    /// [`Error::Rename`] if two would have one name, or one a name that is not possible.
    pub fn rename(&mut self, rules: &Rename) -> Result<usize, Error> {
        let names = rules.apply(self.tensors.iter().map(|tensor| &*tensor.name))?;
        let names: Vec<Option<String>> = names
            .into_iter()
            .zip(&self.tensors)
            .map(|(new, tensor)| (new != tensor.name).then(|| new.into_owned()))
            .collect();
        let renamed = names.iter().flatten().count();
        for (tensor, name) in self.tensors.iter_mut().zip(names) {
            if let Some(name) = name {
                tensor.name = name.into();
            }
        }
        Ok(renamed)
    }

    /// Converts the tensors that are meant to another dtype. Says how many change.
    ///
    /// What has been converted already is converted from what is in the file, once.
    pub fn cast(
        &mut self,
        is_meant: impl Fn(&Item<'_>) -> bool,
        to: Dtype,
        overflow: Overflow,
    ) -> usize {
        let mut changed = 0;
        for tensor in self.tensors.iter_mut().filter(|tensor| is_meant(&tensor.item())) {
            let from = tensor.source.dtype;
            tensor.cast = (from != to).then(|| Cast::new(from, to, overflow));
            changed += usize::from(tensor.cast.is_some());
        }
        changed
    }

    /// Changes the metadata of every file.
    pub fn edit_metadata(&mut self, edit: impl FnMut(&mut BTreeMap<String, String>)) {
        self.metadata.iter_mut().for_each(edit);
    }

    /// The metadata of all files together.
    ///
    /// # Errors
    ///
    /// [`Error::MetadataDiffers`] if files have different values for a key.
    pub fn metadata(&self) -> Result<BTreeMap<String, String>, Error> {
        let mut merged: BTreeMap<String, String> = BTreeMap::new();
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        for (file, metadata) in self.metadata.iter().enumerate() {
            for (key, value) in metadata {
                let first = *owners.entry(key).or_insert(file);
                if merged.get(key).is_some_and(|other| other != value) {
                    let path = |file: usize| self.shards.get(file).map(|it| it.path().into());
                    let files = [first, file].map(|file| path(file).unwrap_or_default());
                    return Err(Error::MetadataDiffers {
                        key: key.clone(),
                        files: Box::new(files),
                    });
                }
                merged.insert(key.clone(), value.clone());
            }
        }
        Ok(merged)
    }

    /// The metadata of one file, if it has any.
    pub(crate) fn metadata_of(&self, file: usize) -> Option<&BTreeMap<String, String>> {
        let metadata = self.metadata.get(file)?;
        let had = self.has_metadata.get(file).is_some_and(|it| *it);
        (had || !metadata.is_empty()).then_some(metadata)
    }

    /// The metadata of all files together, if one has any.
    pub(crate) fn merged_metadata(&self) -> Result<Option<BTreeMap<String, String>>, Error> {
        let merged = self.metadata()?;
        Ok((self.has_metadata.contains(&true) || !merged.is_empty()).then_some(merged))
    }

    /// The places of the tensors, in natural order of their names.
    pub(crate) fn natural_order(&self) -> Vec<usize> {
        let names: Vec<&str> = self.tensors.iter().map(|tensor| &*tensor.name).collect();
        let order = order::natural(&names, crate::survey::random_key()).into_iter();
        order.filter_map(|place| usize::try_from(place).ok()).collect()
    }
}

/// What so many bytes become.
pub(crate) fn converted(cast: Cast, bytes: u64) -> u64 {
    let [from, to] = unit_bytes(cast);
    (bytes / from).saturating_mul(to)
}

/// Bytes of the smallest run of elements that converts by itself, and of what it becomes.
pub(crate) fn unit_bytes(cast: Cast) -> [u64; 2] {
    let unit = cast.unit();
    [unit.from_bytes, unit.to_bytes].map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX).max(1))
}
