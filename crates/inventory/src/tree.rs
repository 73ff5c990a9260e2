//! The module tree that dotted names spell, with equal numbered siblings folded into one.
//!
//! `model.layers.0.mlp.weight` is the tensor `weight` in `mlp` in `0` in `layers` in `model`. A
//! module that holds nothing but one module is shown joined with it, and so is one that holds
//! nothing but one tensor: `mlp.weight` is one row. Siblings are in natural order.
//!
//! # Folding
//!
//! Siblings whose labels are plain numbers and which hold exactly the same, by labels, dtypes,
//! shapes and bytes all the way down, are folded: `layers.[0..31]`, counted 32 times. Equal
//! siblings need not be neighbours: `[0, 2, 5..7]`. A number is plain if it fits 64 bits and has no
//! leading zero; others are labels like any text.
//!
//! # Odd names
//!
//! A name may be a module and a tensor at once (`a` and `a.b`): it gets a row as each, and the
//! tensor is not counted in the module. Components may be empty: `a..b` is `b` in a module with an
//! empty label in `a`. A name listed twice, in a damaged file, has two rows.
//!
//! # Untrusted input
//!
//! The tree has at most two nodes a tensor, however many dots its name has, because modules that
//! do not branch are not nodes. Nothing recurses, so depth costs no stack.

mod fold;
mod label;
mod rows;
mod trie;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use weigh_format::HashKey;
use weigh_format::order::natural;

use crate::{DtypeSet, Item, Totals};
pub use label::{Guides, Indices, Label, Part};
pub use rows::{Row, RowKind, Rows};

/// The modules and tensors of a checkpoint.
///
/// ```
/// use weigh_inventory::Item;
/// use weigh_inventory::tree::Tree;
///
/// let names = ["layers.0.attn.w", "layers.0.mlp.w", "layers.1.attn.w", "layers.1.mlp.w", "norm.w"];
/// let tree = Tree::build(names.map(|name| Item { name, dtype: None, shape: Some(&[8]), bytes: 32 }));
/// let rows: Vec<String> = tree
///     .rows(None)
///     .map(|row| format!("{:depth$}{} ×{}", "", row.label, row.count, depth = row.depth))
///     .collect();
/// assert_eq!(rows, ["layers.[0..1] ×2", " attn.w ×1", " mlp.w ×1", "norm.w ×1"]);
/// assert_eq!(tree.totals().elements, 40);
/// ```
#[derive(Clone, Debug)]
pub struct Tree<'a> {
    /// In natural order of names.
    items: Vec<Item<'a>>,
    /// In display order, each before those it holds. The first is the root.
    nodes: Vec<Node<'a>>,
    folds: Vec<Indices>,
}

/// A module that branches, or a tensor, or both.
#[derive(Clone, Debug)]
struct Node<'a> {
    /// What the name adds to the parent's: one or more components, with the dots between them.
    label: &'a str,
    /// The first item at or below this node.
    start: usize,
    /// Items that have exactly this name: 0 for a module, more than 1 in a damaged file.
    own: usize,
    /// Nodes from this one to the last below it: the next sibling is so many on.
    size: usize,
    /// Nodes directly below that are shown, folded ones being one.
    shown: usize,
    fold: Fold,
    /// What is below, without the items of exactly this name; every copy counted as itself.
    below: Totals,
    dtypes: DtypeSet,
}

/// How a node stands to its siblings.
#[derive(Clone, Copy, Debug)]
enum Fold {
    /// For itself.
    Single,
    /// For the equal siblings of this entry of [`Tree::folds`] too.
    First(usize),
    /// It is equal to an earlier sibling, which stands for it.
    Hidden,
}

impl<'a> Tree<'a> {
    /// Builds the tree of `items`, and folds it.
    #[must_use]
    pub fn build(items: impl IntoIterator<Item = Item<'a>>) -> Self {
        let mut tree = Self::unfolded(items);
        tree.fold();
        tree
    }

    /// Builds the tree of `items` with every sibling shown for itself.
    #[must_use]
    pub fn unfolded(items: impl IntoIterator<Item = Item<'a>>) -> Self {
        let items = sorted(&items.into_iter().collect::<Vec<_>>());
        let nodes = trie::nodes(&items);
        let mut tree = Self { items, nodes, folds: Vec::new() };
        tree.add_up();
        tree
    }

    /// What the whole checkpoint holds.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.nodes.first().map(|root| root.below).unwrap_or_default()
    }

    /// The dtypes of the whole checkpoint.
    #[must_use]
    pub fn dtypes(&self) -> DtypeSet {
        self.nodes.first().map(|root| root.dtypes).unwrap_or_default()
    }

    /// The rows to show, in display order, down to `depth` levels of indentation; `None` is all.
    ///
    /// `Some(1)` shows the top level alone. The root itself has no row.
    #[must_use]
    pub fn rows(&self, depth: Option<usize>) -> Rows<'_> {
        Rows::new(self, depth)
    }

    /// Adds up what is below each node. Children come after their parents, so from the last on.
    fn add_up(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let (mut below, mut dtypes) = (Totals::default(), DtypeSet::EMPTY);
            let mut shown = 0_usize;
            for child in self.children(index) {
                shown = shown.saturating_add(1);
                let Some(node) = self.nodes.get(child) else {
                    continue;
                };
                below = below.and(node.below);
                dtypes = dtypes.union(node.dtypes);
                for item in self.own(node) {
                    below.add(item);
                    if let Some(dtype) = item.dtype {
                        dtypes.insert(dtype);
                    }
                }
            }
            if let Some(node) = self.nodes.get_mut(index) {
                (node.below, node.dtypes, node.shown) = (below, dtypes, shown);
            }
        }
    }

    /// The items whose name is exactly this node's.
    fn own(&self, node: &Node<'a>) -> &[Item<'a>] {
        self.items.get(node.start..node.start.saturating_add(node.own)).unwrap_or_default()
    }

    /// The numbers of the nodes directly below node `index`, hidden ones too.
    fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        let size = self.nodes.get(index).map_or(1, |node| node.size);
        let end = index.saturating_add(size);
        let mut next = index.saturating_add(1);
        std::iter::from_fn(move || {
            let child = Some(next).filter(|&child| child < end)?;
            next = child.saturating_add(self.nodes.get(child)?.size.max(1));
            Some(child)
        })
    }
}

/// `items` in natural order of their names.
fn sorted<'a>(items: &[Item<'a>]) -> Vec<Item<'a>> {
    let random = RandomState::new();
    let key = HashKey::new(random.hash_one(0_u8), random.hash_one(1_u8));
    let names: Vec<&str> = items.iter().map(|item| item.name).collect();
    let order = natural(&names, key);
    let ordered = order.into_iter().filter_map(|number| usize::try_from(number).ok());
    ordered.filter_map(|number| items.get(number).copied()).collect()
}

#[cfg(test)]
mod tests;
