//! The nodes of sorted names: where they branch, and where they end.
//!
//! Two neighbours in the order share a module down to some depth; a node is where a name ends, or
//! where two neighbours part. A depth is measured in bytes, as what a name below adds its label
//! at: one past the module's dot, 0 for the root. So the empty name, whose depth is 1, is told from
//! the root, and `a` from `a.`.

use super::{Fold, Node};
use crate::{DtypeSet, Item, Totals};

/// No node: the end of a list.
const NONE: usize = usize::MAX;

/// The nodes of `items`, which are in natural order, each before those below it.
///
/// Totals, dtypes and folds are left to be filled in.
pub(super) fn nodes<'a>(items: &[Item<'a>]) -> Vec<Node<'a>> {
    let mut finder = Finder::new(items.len());
    let mut previous: Option<&str> = None;
    for (number, item) in items.iter().enumerate() {
        finder.branch(previous.map_or(0, |previous| shared_depth(previous, item.name)));
        finder.end(number, end_depth(item.name));
        previous = Some(item.name);
    }
    finder.into_nodes(items)
}

/// A node as it is found, when its place among the others is not known yet.
struct Found {
    depth: usize,
    /// The first item at or below it.
    start: usize,
    own: usize,
    parent: usize,
    /// The next node that starts at the same item, which is below this one.
    next: usize,
}

/// Finds nodes, not in display order: where two names part is known only at the second.
///
/// Of the nodes that start at one item the deepest is found first, then each above it.
struct Finder {
    found: Vec<Found>,
    /// By item: the topmost node found that starts there, but for the root.
    topmost: Vec<usize>,
    /// From the root to the last name, in order of depth. The root is never popped.
    path: Vec<usize>,
}

impl Finder {
    fn new(items: usize) -> Self {
        let root = Found { depth: 0, start: 0, own: 0, parent: NONE, next: NONE };
        Self { found: vec![root], topmost: vec![NONE; items], path: vec![0] }
    }

    /// Leaves the path where it is deeper than `depth`, and makes the node there if there is none.
    fn branch(&mut self, depth: usize) {
        let mut left = None;
        while let Some(node) = self.path.pop_if(|node| self.found[*node].depth > depth) {
            left = Some(node);
        }
        if let Some(left) = left
            && self.found[self.last()].depth < depth
        {
            let node = self.push(depth, self.found[left].start, 0);
            self.found[left].parent = node;
        }
    }

    /// Ends a name at `depth`, which is where the path ends, or below.
    fn end(&mut self, item: usize, depth: usize) {
        let last = self.last();
        if self.found[last].depth == depth {
            self.found[last].own = self.found[last].own.saturating_add(1);
        } else {
            self.push(depth, item, 1);
        }
    }

    /// Makes a node below the end of the path, and goes there.
    fn push(&mut self, depth: usize, start: usize, own: usize) -> usize {
        let node = self.found.len();
        let (parent, next) = (self.last(), self.topmost[start]);
        self.found.push(Found { depth, start, own, parent, next });
        self.topmost[start] = node;
        self.path.push(node);
        node
    }

    fn last(&self) -> usize {
        self.path.last().copied().unwrap_or_default()
    }

    /// The nodes in display order: by where they start, and from the top where they start together.
    fn into_nodes<'a>(self, items: &[Item<'a>]) -> Vec<Node<'a>> {
        let Self { found, topmost, .. } = self;
        let mut place = vec![0; found.len()];
        let mut parents = vec![NONE];
        let mut nodes = Vec::with_capacity(found.len());
        nodes.push(node("", 0, 0));
        for (item, mut number) in items.iter().zip(topmost) {
            while let Some(at) = found.get(number) {
                let above = found.get(at.parent).map_or(0, |parent| parent.depth);
                let label = item.name.get(above..at.depth.saturating_sub(1)).unwrap_or_default();
                place[number] = nodes.len();
                parents.push(place[at.parent]);
                nodes.push(node(label, at.start, at.own));
                number = at.next;
            }
        }
        for number in (1..nodes.len()).rev() {
            let (size, parent) = (nodes[number].size, parents[number]);
            nodes[parent].size = nodes[parent].size.saturating_add(size);
        }
        nodes
    }
}

fn node(label: &str, start: usize, own: usize) -> Node<'_> {
    Node {
        label,
        start,
        own,
        size: 1,
        shown: 0,
        fold: Fold::Single,
        below: Totals::default(),
        dtypes: DtypeSet::EMPTY,
    }
}

/// The depth at which `name` ends.
fn end_depth(name: &str) -> usize {
    name.len().saturating_add(1)
}

/// The depth of the deepest module, or name, that both names are in, or are.
fn shared_depth(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same = weigh_format::order::common_prefix(one, other);
    // A name's end is an end of its last component, as a dot is.
    let ends = |name: &[u8]| name.get(same).is_none_or(|&byte| byte == b'.');
    if ends(one) && ends(other) {
        return same.saturating_add(1);
    }
    let shared = one.get(..same).unwrap_or_default();
    shared.iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_shared_by_whole_components() {
        for (one, other, want) in [
            ("a", "b", 0),
            ("a", "ab", 0),
            ("a", "a", 2),
            ("a", "a.b", 2),
            ("a.b", "a.c", 2),
            ("a.b", "a.bc", 2),
            ("a.b.c", "a.b.d", 4),
            ("", "", 1),
            ("", ".", 1),
            ("", "a", 0),
            (".", "..", 2),
            ("a.", "a", 2),
            ("a..b", "a.b", 2),
            ("é.a", "é.b", 3),
            ("é", "è", 0),
            ("01234567.90123456", "01234567.9012345x", 9),
            ("01234567.9012345", "01234567.9012345.x", 17),
        ] {
            assert_eq!(shared_depth(one, other), want, "{one:?} {other:?}");
            assert_eq!(shared_depth(other, one), want, "{other:?} {one:?}");
        }
    }

    #[test]
    fn nodes_are_where_names_branch_and_end() {
        let names = ["", ".", "a.b.c.d", "a.b.c.e", "a.b.f", "g", "g", "g.h.i"];
        let items = names.map(|name| Item { name, dtype: None, shape: None, bytes: 0 });
        let nodes = nodes(&items);
        let found: Vec<_> = nodes.iter().map(|node| (node.label, node.own, node.size)).collect();
        let want = [
            ("", 1, 2),
            ("", 1, 1),
            ("a.b", 0, 5),
            ("c", 0, 3),
            ("d", 1, 1),
            ("e", 1, 1),
            ("f", 1, 1),
            ("g", 2, 2),
            ("h.i", 1, 1),
        ];
        assert_eq!(found[1..], want);
        assert_eq!(found[0].2, 10);
    }

    #[test]
    fn depth_of_a_name_makes_no_nodes() {
        let name = ".".repeat(50_000);
        let item = Item { name: &name, dtype: None, shape: None, bytes: 0 };
        assert_eq!(nodes(&[item]).len(), 2);
        assert_eq!(nodes(&[]).len(), 1);
    }
}
