//! The memo: nodes by number. Numbers may be huge, and few.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::decode::wide;
use crate::graph::NodeId;

/// No node: the graph never has as many.
const NOTHING: NodeId = NodeId(u32::MAX);

/// How far beyond its end the dense part grows at once.
const GAP: usize = 1024;

/// Numbers up to about the count of entries are in a vector, others in a map.
#[derive(Debug, Default)]
pub(super) struct Memo {
    dense: Vec<NodeId>,
    sparse: BTreeMap<u64, NodeId>,
    len: usize,
}

impl Memo {
    /// How many numbers have a node: the number that `MEMOIZE` takes.
    pub(super) fn len(&self) -> u64 {
        wide(self.len)
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<NodeId> {
        let dense = usize::try_from(number).ok().and_then(|place| self.dense.get(place));
        match dense {
            Some(&node) if node != NOTHING => Some(node),
            _ => self.sparse.get(&number).copied(),
        }
    }

    #[inline]
    pub(super) fn put(&mut self, number: u64, node: NodeId) {
        if wide(self.dense.len()) == number && self.sparse.is_empty() {
            self.dense.push(node);
            self.len = self.len.saturating_add(1);
            return;
        }
        self.put_anywhere(number, node);
    }

    fn put_anywhere(&mut self, number: u64, node: NodeId) {
        let before = self.get(number).is_some();
        if !before {
            self.len = self.len.saturating_add(1);
        }
        let reach = self.len.saturating_mul(2).saturating_add(GAP);
        match usize::try_from(number) {
            Ok(place) if place < self.dense.len() || place < reach => {
                if place >= self.dense.len() {
                    self.dense.resize(place.saturating_add(1), NOTHING);
                }
                if let Some(old) = self.dense.get_mut(place) {
                    *old = node;
                }
                self.sparse.remove(&number);
            }
            _ => {
                self.sparse.insert(number, node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_huge_number_costs_no_memory() {
        let mut memo = Memo::default();
        memo.put(u64::MAX, NodeId(1));
        memo.put(1 << 40, NodeId(2));
        memo.put(0, NodeId(3));
        assert_eq!((memo.len(), memo.dense.len()), (3, 1));
        assert_eq!(memo.get(u64::MAX), Some(NodeId(1)));
        assert_eq!(memo.get(1 << 40), Some(NodeId(2)));
        assert_eq!(memo.get(1), None);
    }

    proptest! {
        #[test]
        fn it_is_a_map(puts in proptest::collection::vec((0..5000_u64, 0..9_u32), 0..500)) {
            let mut memo = Memo::default();
            let mut map = BTreeMap::new();
            for (number, node) in puts {
                memo.put(number, NodeId(node));
                map.insert(number, NodeId(node));
                prop_assert_eq!(memo.len(), wide(map.len()));
            }
            for number in 0..5100 {
                prop_assert_eq!(memo.get(number), map.get(&number).copied());
            }
            prop_assert!(memo.dense.len() <= 3 * map.len() + GAP + 1);
        }
    }
}
