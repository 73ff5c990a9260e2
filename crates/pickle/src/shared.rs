//! Names that share bytes: which are one tensor, which overlap, which one of several is kept, and what it costs to
//! write every name.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::dtype::TorchDtype;
use crate::state::Named;
use crate::storage::StorageId;
use crate::tensor::{Tensor, TensorReader};
use crate::transform::Transforms;
use crate::view::Runs;
use crate::{Error, Limits};

/// What the tensors of a checkpoint share. Numbers are places in the list of names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Shared {
    /// Names of the same elements, in the order of the first of each.
    pub aliases: Vec<Aliases>,
    /// Names whose elements may overlap without being the same, each once, in the order of the file.
    pub overlaps: Vec<Vec<usize>>,
    /// What writing costs.
    pub cost: Cost,
}

/// Names of the same elements: of one storage, in the same places, of one dtype and shape.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Aliases {
    /// The name that is kept where only one is written.
    pub kept: usize,
    /// The others, in the order of the file.
    pub dropped: Vec<usize>,
}

/// Bytes of the tensors of a checkpoint.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Of the storages that they are views of, each once.
    pub storages: u64,
    /// Of every name.
    pub every_name: u64,
    /// Of one name of each of [`Shared::aliases`], and every other.
    pub once: u64,
}

impl Cost {
    /// Whether a number of bytes, one of the two costs of writing, may be written.
    ///
    /// # Errors
    ///
    /// `limit-expansion` if it is more than [`Limits::expansion`] times the bytes of the storages, and more than
    /// [`Limits::expanded_bytes`].
    pub fn check(&self, bytes: u64, limits: &Limits) -> Result<(), Error> {
        let most = self.storages.saturating_mul(u64::from(limits.expansion));
        let most = most.max(limits.expanded_bytes);
        if bytes <= most {
            return Ok(());
        }
        Err(Error::new(
            "limit-expansion",
            format!(
                "the tensors are {bytes} bytes, of storages of {}: over the limit of {most}",
                self.storages
            ),
        ))
    }
}

impl Shared {
    /// What these names share.
    ///
    /// `is_tied` says which names the model's code ties to another; where another is there, they are not kept. Of
    /// the rest the first in the order of bytes is, as the converter of the Hugging Face Hub does it.
    #[must_use]
    pub fn of(names: &[Named], reader: &TensorReader<'_>, is_tied: impl Fn(&str) -> bool) -> Self {
        let mut groups: BTreeMap<Same<'_>, Vec<usize>> = BTreeMap::new();
        let mut places: BTreeMap<StorageId, Vec<Place>> = BTreeMap::new();
        let mut cost = Cost::default();
        for (number, named) in names.iter().enumerate() {
            let Some(tensor) = reader.get(named.tensor) else {
                continue;
            };
            cost.every_name = cost.every_name.saturating_add(tensor.byte_len());
            let Some(same) = Same::of(tensor) else {
                continue;
            };
            let (storage, span) = (same.storage, same.runs.span());
            let group = groups.entry(same).or_default();
            if group.is_empty() {
                cost.once = cost.once.saturating_add(tensor.byte_len());
                places.entry(storage).or_default().push(Place { span, number });
            }
            group.push(number);
        }
        let bytes = |id: &StorageId| reader.storages().get(*id).map_or(0, |storage| storage.bytes);
        cost.storages = places.keys().fold(0, |sum: u64, id| sum.saturating_add(bytes(id)));
        let mut aliases: Vec<Aliases> = groups
            .values()
            .filter(|group| group.len() > 1)
            .filter_map(|group| {
                let kept = preferred(names, group, &is_tied)?;
                let dropped = group.iter().copied().filter(|number| *number != kept).collect();
                Some(Aliases { kept, dropped })
            })
            .collect();
        aliases.sort_by_key(|aliases| aliases.dropped.first().copied().min(Some(aliases.kept)));
        let mut overlaps: Vec<Vec<usize>> = places.into_values().flat_map(overlapping).collect();
        overlaps.sort();
        Self { aliases, overlaps, cost }
    }
}

/// What is the same of two names of the same elements.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Same<'t> {
    storage: StorageId,
    runs: Runs,
    dtype: TorchDtype,
    shape: &'t [u64],
    transforms: Transforms,
}

impl<'t> Same<'t> {
    /// `None` if there are no elements in a storage.
    fn of(tensor: &'t Tensor) -> Option<Self> {
        let dense = tensor.dense()?;
        let runs = dense.view.runs();
        (runs.run > 0).then_some(Self {
            storage: dense.view.storage,
            runs,
            dtype: tensor.dtype,
            shape: &tensor.shape,
            transforms: dense.transforms,
        })
    }
}

fn preferred(names: &[Named], group: &[usize], is_tied: &impl Fn(&str) -> bool) -> Option<usize> {
    let name = |number: &usize| names.get(*number).map_or("", |named| named.name.as_str());
    group.iter().copied().min_by_key(|number| (is_tied(name(number)), name(number)))
}

/// The bytes of a storage that a name's elements are in.
struct Place {
    span: Range<u64>,
    number: usize,
}

/// Groups of places whose spans touch one another.
fn overlapping(mut places: Vec<Place>) -> Vec<Vec<usize>> {
    places.sort_by_key(|place| (place.span.start, place.number));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group: Vec<usize> = Vec::new();
    let mut end = 0;
    for place in places {
        if place.span.start >= end {
            groups.push(core::mem::take(&mut group));
        }
        end = end.max(place.span.end);
        group.push(place.number);
    }
    groups.push(group);
    groups.retain(|group| group.len() > 1);
    for group in &mut groups {
        group.sort_unstable();
    }
    groups
}
