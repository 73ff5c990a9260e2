//! Which bytes of something have been written.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of bytes, merged where they touch.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// The end of each range, by its start.
    ranges: BTreeMap<u64, u64>,
}

impl Coverage {
    /// Adds a range; it may overlap others.
    pub(super) fn add(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        // Those that begin no later than this one ends, from the last on, as long as they touch it.
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(&other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.ranges.insert(start, end);
    }

    /// The first bytes of `0..len` that are in no range.
    pub(super) fn first_missing(&self, len: u64) -> Option<Range<u64>> {
        let mut ranges = self.ranges.iter();
        let Some((&start, &end)) = ranges.next() else {
            return (len > 0).then_some(0..len);
        };
        if start > 0 {
            return Some(0..start);
        }
        let next = ranges.next().map_or(len, |(&next, _)| next);
        (end < len).then_some(end..next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_found() {
        #[expect(clippy::single_range_in_vec_init, reason = "ranges are what it takes")]
        for (ranges, len, missing) in [
            (&[][..], 0, None),
            (&[], 5, Some(0..5)),
            (&[0..5], 5, None),
            (&[0..4], 5, Some(4..5)),
            (&[1..5], 5, Some(0..1)),
            (&[0..2, 3..5], 5, Some(2..3)),
            (&[3..5, 0..2], 5, Some(2..3)),
            (&[3..5, 0..3], 5, None),
            (&[0..1, 2..3, 4..5, 1..4], 5, None),
            (&[0..3, 1..2], 5, Some(3..5)),
            (&[1..2, 0..3], 5, Some(3..5)),
            (&[0..3, 2..5, 2..2], 5, None),
            (&[4..4], 5, Some(0..5)),
        ] {
            let mut coverage = Coverage::default();
            ranges.iter().cloned().for_each(|range| coverage.add(range));
            assert_eq!(coverage.first_missing(len), missing, "{ranges:?} of {len}");
        }
    }
}
