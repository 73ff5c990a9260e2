//! Names of the same elements.

use std::collections::{BTreeSet, HashMap};

use weigh_format::Dtype;

use super::Cost;
use super::input::Draft;
use crate::torch::gather::{Blob, Pattern};

/// What is the same of two names of the same elements.
#[derive(Eq, Hash, PartialEq)]
struct Same<'d> {
    blob: usize,
    pattern: &'d Pattern,
    dtype: Dtype,
    shape: &'d [u64],
    /// What is made of the bytes.
    make: String,
}

/// The places of names of the same elements, those of one group in the order of the input.
pub(super) fn groups(drafts: &[Draft]) -> Vec<Vec<usize>> {
    let mut groups: HashMap<Same<'_>, Vec<usize>> = HashMap::with_capacity(drafts.len());
    for (place, draft) in drafts.iter().enumerate() {
        let gathered = &draft.gathered;
        if gathered.bytes() == 0 {
            continue;
        }
        let same = Same {
            blob: gathered.blob,
            pattern: &gathered.pattern,
            dtype: draft.dtype,
            shape: &draft.shape,
            make: gathered.make.key(),
        };
        groups.entry(same).or_default().push(place);
    }
    let mut groups: Vec<Vec<usize>> =
        groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort();
    groups
}

/// The name that is kept of a group: one that the model's code does not tie to another, if there is one; of these the
/// first in the order of their bytes, as the converter of the Hugging Face Hub does it.
pub(super) fn kept(drafts: &[Draft], group: &[usize], tied: &[String]) -> usize {
    let name = |place: &usize| drafts.get(*place).map_or("", |draft| draft.name.as_str());
    let is_tied = |name: &str| tied.iter().any(|tied| tied == name);
    let least = group.iter().min_by_key(|place| (is_tied(name(place)), name(place)));
    least.copied().unwrap_or_default()
}

/// What the tensors take.
pub(super) fn cost(drafts: &[Draft], blobs: &[Blob], groups: &[Vec<usize>]) -> Cost {
    let bytes = |place: usize| drafts.get(place).map_or(0, |draft| draft.gathered.bytes());
    let used: BTreeSet<usize> = drafts
        .iter()
        .flat_map(|draft| {
            let blob = draft.gathered.blob;
            let parts = blobs.get(blob).map(Blob::parts).unwrap_or_default();
            if parts.is_empty() { vec![blob] } else { parts }
        })
        .collect();
    let storages = used.iter().filter_map(|blob| Some(blobs.get(*blob)?.len));
    let every_name = (0..drafts.len()).map(bytes).fold(0, u64::saturating_add);
    let again = groups.iter().flat_map(|group| group.iter().skip(1)).map(|place| bytes(*place));
    Cost {
        storages: storages.fold(0, u64::saturating_add),
        every_name,
        once: every_name.saturating_sub(again.fold(0, u64::saturating_add)),
    }
}
