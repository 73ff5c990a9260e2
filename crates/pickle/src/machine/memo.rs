//! The memo: values by number. Numbers may be huge, and few.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::decode::wide;

/// How far beyond its end the dense part grows at once.
const GAP: usize = 1024;

/// Numbers up to about the count of entries are in a vector, others in a map.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    dense: Vec<Option<T>>,
    sparse: BTreeMap<u64, T>,
    len: usize,
}

impl<T: Copy> Memo<T> {
    pub(crate) fn new() -> Self {
        Self { dense: Vec::new(), sparse: BTreeMap::new(), len: 0 }
    }

    /// How many numbers have a value: the number that `MEMOIZE` takes.
    pub(crate) fn len(&self) -> u64 {
        wide(self.len)
    }

    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<T> {
        let dense = usize::try_from(number).ok().and_then(|place| self.dense.get(place));
        match dense {
            Some(Some(value)) => Some(*value),
            _ => self.sparse.get(&number).copied(),
        }
    }

    #[inline]
    pub(crate) fn put(&mut self, number: u64, value: T) {
        if wide(self.dense.len()) == number && self.sparse.is_empty() {
            self.dense.push(Some(value));
            self.len = self.len.saturating_add(1);
            return;
        }
        self.put_anywhere(number, value);
    }

    fn put_anywhere(&mut self, number: u64, value: T) {
        let before = self.get(number).is_some();
        if !before {
            self.len = self.len.saturating_add(1);
        }
        let reach = self.len.saturating_mul(2).saturating_add(GAP);
        match usize::try_from(number) {
            Ok(place) if place < self.dense.len() || place < reach => {
                if place >= self.dense.len() {
                    self.dense.resize(place.saturating_add(1), None);
                }
                if let Some(old) = self.dense.get_mut(place) {
                    *old = Some(value);
                }
                self.sparse.remove(&number);
            }
            _ => {
                self.sparse.insert(number, value);
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
        let mut memo = Memo::new();
        memo.put(u64::MAX, 1);
        memo.put(1 << 40, 2);
        memo.put(0, 3);
        assert_eq!((memo.len(), memo.dense.len()), (3, 1));
        assert_eq!(memo.get(u64::MAX), Some(1));
        assert_eq!(memo.get(1 << 40), Some(2));
        assert_eq!(memo.get(1), None);
    }

    proptest! {
        #[test]
        fn it_is_a_map(puts in proptest::collection::vec((0..5000_u64, 0..9_u32), 0..500)) {
            let mut memo = Memo::new();
            let mut map = BTreeMap::new();
            for (number, node) in puts {
                memo.put(number, node);
                map.insert(number, node);
                prop_assert_eq!(memo.len(), wide(map.len()));
            }
            for number in 0..5100 {
                prop_assert_eq!(memo.get(number), map.get(&number).copied());
            }
            prop_assert!(memo.dense.len() <= 3 * map.len() + GAP + 1);
        }
    }
}
