//! Byte runs: the bytes of one part, as a rule rather than a list.
//!
//! A slice of a tensor is the same run of bytes again and again, at distances that repeat. Here that is
//! one run length and, for each level of repetition, a count and a stride. Nothing here reads.

use std::ops::Range;

/// The bytes of one part of a file, in the order of the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Runs {
    first: u64,
    run: u64,
    levels: Vec<Repeat>,
}

/// What is inside, `count` times, `stride` bytes apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Repeat {
    /// How often.
    pub count: u64,
    /// Bytes from the start of one to the start of the next.
    pub stride: u64,
}

impl Runs {
    /// All the bytes of a span.
    #[must_use]
    pub fn span(span: Range<u64>) -> Self {
        let run = span.end.saturating_sub(span.start);
        Self { first: span.start, run, levels: Vec::new() }
    }

    /// `run` bytes from `first`, repeated by the levels, outermost first.
    ///
    /// Levels that repeat once are left out, and those that leave no gap become one longer run. `None` if
    /// runs would overlap or come out of order, or an offset is over 2⁶⁴: each stride must be at least the
    /// extent of what it repeats.
    #[must_use]
    pub fn strided(first: u64, run: u64, levels: &[Repeat]) -> Option<Self> {
        if run == 0 || levels.iter().any(|level| level.count == 0) {
            return Some(Self { first, run: 0, levels: Vec::new() });
        }
        let mut runs = Self { first, run, levels: Vec::new() };
        let mut extent = run;
        for level in levels.iter().rev().filter(|level| level.count > 1) {
            if level.stride < extent {
                return None;
            }
            extent = (level.count - 1).checked_mul(level.stride)?.checked_add(extent)?;
            if runs.levels.is_empty() && level.stride == runs.run {
                runs.run = extent;
            } else {
                runs.levels.push(*level);
            }
        }
        runs.levels.reverse();
        first.checked_add(extent)?;
        Some(runs)
    }

    /// Bytes in all the runs.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.run.saturating_mul(self.count())
    }

    /// How many runs there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.levels.iter().fold(1, |count, level| count.saturating_mul(level.count))
    }

    /// Bytes in one run.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// From the first byte of the first run to the last byte of the last.
    #[must_use]
    pub fn cover(&self) -> Range<u64> {
        let last = |level: &Repeat| level.count.saturating_sub(1).saturating_mul(level.stride);
        let extent = self.levels.iter().map(last).fold(self.run, u64::saturating_add);
        self.first..self.first.saturating_add(extent)
    }

    /// The runs that hold bytes `range` of these, one after another.
    ///
    /// What is past the end is left out. There are few, however many runs there are: at most two for each
    /// level and one more.
    #[must_use]
    pub fn take(&self, range: Range<u64>) -> Vec<Self> {
        let mut taken = Vec::new();
        self.take_into(range.start..range.end.min(self.bytes()), &mut taken);
        taken
    }

    fn take_into(&self, range: Range<u64>, taken: &mut Vec<Self>) {
        if range.is_empty() {
            return;
        }
        let Some((outermost, inner)) = self.levels.split_first() else {
            taken.push(Self::span(self.first + range.start..self.first + range.end));
            return;
        };
        let inside = |number: u64| {
            let first = self.first + number * outermost.stride;
            Self { first, run: self.run, levels: inner.to_vec() }
        };
        let bytes = inside(0).bytes();
        let (mut from, to) = (range.start / bytes, range.end / bytes);
        if from == to {
            let skipped = from * bytes;
            return inside(from).take_into(range.start - skipped..range.end - skipped, taken);
        }
        if !range.start.is_multiple_of(bytes) {
            inside(from).take_into(range.start % bytes..bytes, taken);
            from += 1;
        }
        if from < to {
            let levels = [&[Repeat { count: to - from, ..*outermost }], inner].concat();
            let first = self.first + from * outermost.stride;
            taken.extend(Self::strided(first, self.run, &levels));
        }
        if !range.end.is_multiple_of(bytes) {
            inside(to).take_into(0..range.end % bytes, taken);
        }
    }

    /// Where run number `number` begins in the file.
    pub(crate) fn start(&self, number: u64) -> u64 {
        let (mut rest, mut at) = (number, self.first);
        for level in self.levels.iter().rev() {
            at = at.saturating_add((rest % level.count).saturating_mul(level.stride));
            rest /= level.count;
        }
        at
    }

    /// How many runs from the start of one block belong together: those whose gaps are all at most `gap`.
    pub(crate) fn together(&self, gap: u64) -> u64 {
        let (mut runs, mut extent) = (1_u64, self.run);
        for level in self.levels.iter().rev() {
            if level.stride.saturating_sub(extent) > gap {
                break;
            }
            extent = (level.count - 1).saturating_mul(level.stride).saturating_add(extent);
            runs = runs.saturating_mul(level.count);
        }
        runs
    }

    /// The innermost level of repetition, of runs that have one.
    pub(crate) fn innermost(&self) -> Option<Repeat> {
        self.levels.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(count: u64, stride: u64) -> Repeat {
        Repeat { count, stride }
    }

    #[test]
    fn runs_that_leave_no_gap_are_one() {
        let whole = Runs::strided(8, 4, &[level(3, 20), level(5, 4)]).unwrap();
        assert_eq!(whole, Runs::span(8..68));
        let rows = Runs::strided(8, 4, &[level(3, 40), level(1, 7), level(5, 4)]).unwrap();
        assert_eq!((rows.run(), rows.count(), rows.bytes()), (20, 3, 60));
        assert_eq!(rows.cover(), 8..108);
        assert_eq!([0, 1, 2].map(|number| rows.start(number)), [8, 48, 88]);
    }

    #[test]
    fn runs_that_overlap_or_overflow_are_refused() {
        for (first, run, levels, fine) in [
            (0, 4, vec![level(2, 4)], true),
            (0, 4, vec![level(2, 3)], false),
            (0, 4, vec![level(2, 11), level(2, 8)], false),
            (0, 4, vec![level(2, 12), level(2, 8)], true),
            (u64::MAX - 4, 4, vec![], true),
            (u64::MAX - 3, 4, vec![], false),
            (0, 4, vec![level(3, u64::MAX / 2)], false),
            (0, 4, vec![level(u64::MAX, u64::MAX)], false),
            (u64::MAX, 0, vec![level(9, 1)], true),
        ] {
            let got = Runs::strided(first, run, &levels);
            assert_eq!(got.is_some(), fine, "{first} {run} {levels:?}");
        }
    }

    #[test]
    fn runs_belong_together_up_to_a_gap() {
        let runs = Runs::strided(0, 2, &[level(3, 1000), level(4, 10)]).unwrap();
        for (gap, want) in [(0, 1), (7, 1), (8, 4), (967, 4), (968, 12)] {
            assert_eq!(runs.together(gap), want, "gap {gap}");
        }
    }

    #[test]
    fn any_range_of_the_bytes_can_be_taken() {
        let runs = Runs::strided(100, 3, &[level(2, 500), level(3, 100), level(4, 10)]).unwrap();
        let bytes_of = |runs: &Runs| -> Vec<u64> {
            let starts = (0..runs.count()).map(|number| runs.start(number));
            starts.flat_map(|start| start..start + runs.run()).collect()
        };
        let all = bytes_of(&runs);
        for start in 0..=all.len() {
            for end in start..=all.len() {
                let taken = runs.take(start as u64..end as u64);
                assert!(taken.len() <= 7, "{taken:?}");
                let got: Vec<u64> = taken.iter().flat_map(bytes_of).collect();
                assert_eq!(got, all[start..end], "{start}..{end}");
            }
        }
        assert_eq!(runs.take(0..u64::MAX), std::slice::from_ref(&runs));
        assert_eq!(runs.take(72..u64::MAX), []);
    }

    #[test]
    fn nothing_is_nothing() {
        let none = Runs::strided(5, 2, &[level(0, 1)]).unwrap();
        assert_eq!((none.bytes(), none.cover()), (0, 5..5));
    }
}
