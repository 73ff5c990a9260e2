//! Folding equal numbered siblings into one.
//!
//! What a node holds is hashed with a secret key, over the hashes of its children. Siblings of one
//! hash are then compared, so that a chance collision folds nothing that is unlike. Equal siblings
//! have their nodes and items in the same order, so they are compared in one loop; and since a node
//! is in at most log₂ n folds, one inside the other, that costs n log n in all.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

use super::{Fold, Indices, Tree};
use crate::Item;
use crate::item::plain_number;

impl Tree<'_> {
    /// Folds equal numbered siblings, at every level. Needs the totals, which it does not change.
    pub(super) fn fold(&mut self) {
        let random = RandomState::new();
        let mut hashes = vec![0_u64; self.nodes.len()];
        let mut numbered: Vec<Numbered> = Vec::new();
        // Children come after their parents, so from the last on.
        for parent in (0..self.nodes.len()).rev() {
            numbered.clear();
            let Some(node) = self.nodes.get(parent) else {
                continue;
            };
            let mut holds = random.build_hasher();
            // The first component is the parent's to hash: a number may differ.
            first_component(node.label).1.hash(&mut holds);
            for item in self.own(node) {
                content(item).hash(&mut holds);
            }
            for child in self.children(parent) {
                let (Some(node), Some(&hash)) = (self.nodes.get(child), hashes.get(child)) else {
                    continue;
                };
                let (first, _) = first_component(node.label);
                (first, hash).hash(&mut holds);
                if let Some(index) = plain_number(first) {
                    numbered.push(Numbered { hash, index, node: child });
                }
            }
            if let Some(hash) = hashes.get_mut(parent) {
                *hash = holds.finish();
            }
            self.fold_siblings(parent, &mut numbered);
        }
    }

    /// Folds those of `numbered`, children of `parent`, that are equal.
    fn fold_siblings(&mut self, parent: usize, numbered: &mut [Numbered]) {
        numbered.sort_unstable();
        for alike in numbered.chunk_by(|one, other| one.hash == other.hash) {
            let Some((first, others)) = alike.split_first() else {
                continue;
            };
            let mut indices = vec![first.index];
            for other in others {
                if self.is_equal(first.node, other.node) {
                    indices.push(other.index);
                    self.mark(other.node, Fold::Hidden);
                }
            }
            let hidden = indices.len().saturating_sub(1);
            if hidden > 0 {
                self.mark(first.node, Fold::First(self.folds.len()));
                self.folds.push(Indices::new(indices));
                if let Some(node) = self.nodes.get_mut(parent) {
                    node.shown = node.shown.saturating_sub(hidden);
                }
            }
        }
    }

    fn mark(&mut self, node: usize, fold: Fold) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.fold = fold;
        }
    }

    /// Whether two nodes hold the same, but for the first component of their labels.
    fn is_equal(&self, one: usize, other: usize) -> bool {
        let [ones, others] = [one, other].map(|start| {
            let size = self.nodes.get(start).map_or(0, |node| node.size);
            self.nodes.get(start..start.saturating_add(size)).unwrap_or_default()
        });
        ones.len() == others.len()
            && ones.iter().zip(others).enumerate().all(|(place, (one, other))| {
                let labels = if place == 0 {
                    [one, other].map(|node| first_component(node.label).1)
                } else {
                    [one, other].map(|node| Some(node.label))
                };
                labels[0] == labels[1]
                    && one.size == other.size
                    && self.own(one).iter().map(content).eq(self.own(other).iter().map(content))
            })
    }
}

/// A child whose label begins with a plain number. Sorts those of one hash together, by number.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Numbered {
    hash: u64,
    index: u64,
    node: usize,
}

/// What must be the same of two tensors for them to be folded.
fn content<'a>(item: &Item<'a>) -> impl Eq + Hash + use<'a> {
    (item.dtype, item.shape, item.bytes)
}

/// A label's first component, and what follows it, if anything does.
pub(super) fn first_component(label: &str) -> (&str, Option<&str>) {
    match label.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (label, None),
    }
}
