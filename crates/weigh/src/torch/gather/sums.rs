//! CRC-32s of things whose parts are seen in any order.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crc32fast::Hasher;

use crate::work;

/// The checksums of the parts of several things, by number, that were seen.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    parts: Vec<Mutex<BTreeMap<u64, (u64, Hasher)>>>,
}

impl Sums {
    /// Of so many things.
    pub(crate) fn new(count: usize) -> Self {
        Self { parts: (0..count).map(|_| Mutex::default()).collect() }
    }

    /// Takes a part.
    pub(crate) fn add(&self, number: usize, offset: u64, bytes: &[u8]) {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        if let Some(parts) = self.parts.get(number) {
            work::lock(parts).insert(offset, (work::length(bytes), hasher));
        }
    }

    /// The checksum of all of it, if the parts are all of `len` bytes, one after the other.
    pub(crate) fn whole(&self, number: usize, len: u64) -> Option<u32> {
        let parts = work::lock(self.parts.get(number)?);
        let mut whole = Hasher::new();
        let mut end = 0;
        for (offset, (bytes, hasher)) in parts.iter() {
            if *offset != end {
                return None;
            }
            whole.combine(hasher);
            end = end.saturating_add(*bytes);
        }
        (end == len).then(|| whole.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_a_whole_if_none_is_missing_or_overlaps() {
        let bytes = b"0123456789";
        for (parts, is_whole) in [
            (&[][..], false),
            (&[(0, 10)], true),
            (&[(4, 10), (0, 4)], true),
            (&[(0, 4), (4, 10), (0, 4)], true),
            (&[(0, 4), (5, 10)], false),
            (&[(0, 5), (4, 10)], false),
            (&[(0, 4), (4, 9)], false),
        ] {
            let sums = Sums::new(1);
            for (start, end) in parts {
                sums.add(0, *start as u64, &bytes[*start..*end]);
            }
            let want = is_whole.then(|| crc32fast::hash(bytes));
            assert_eq!(sums.whole(0, 10), want, "{parts:?}");
        }
        assert_eq!((Sums::new(1).whole(0, 0), Sums::new(1).whole(1, 0)), (Some(0), None));
    }
}
