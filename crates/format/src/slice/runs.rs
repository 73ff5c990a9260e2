//! Byte runs of a regular pattern, and how the dimensions of a slice make one.

use alloc::vec::Vec;
use core::ops::Range;

use super::SliceError;
use super::index::Taken;
use crate::Dtype;
use crate::shape::bit_len;

/// Byte runs: `run` bytes again and again.
///
/// Each of `dims` repeats what is inside it, the outermost first. Of a slice, each stride is at least the extent of what
/// is inside, so runs come in the order of the file and do not overlap; of a view of a storage, as torch has them,
/// strides are as they are. There are as few dimensions as the
/// pattern allows: what is contiguous is one run. Still, the last run of one repetition may touch the first
/// of the next.
///
/// An empty slice has no runs: all is 0.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Runs {
    /// Where the first run begins, in bytes from the first byte of the tensor.
    pub first: u64,
    /// Bytes of each run.
    pub run: u64,
    /// How runs repeat, outermost first; empty if there is one.
    pub dims: Vec<Repeat>,
}

/// What is inside, `count` times, `stride` apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Repeat {
    /// How many times: at least 2.
    pub count: u64,
    /// From the beginning of one to that of the next, in bytes.
    pub stride: u64,
}

impl Repeat {
    /// `count` times, `stride` bytes apart.
    #[must_use]
    pub const fn new(count: u64, stride: u64) -> Self {
        Self { count, stride }
    }
}

impl Runs {
    /// Runs of `run` bytes from byte `first` on, repeated by `dims`, the outermost first.
    #[must_use]
    pub const fn new(first: u64, run: u64, dims: Vec<Repeat>) -> Self {
        Self { first, run, dims }
    }

    /// Number of runs.
    #[must_use]
    pub fn count(&self) -> u64 {
        if self.run == 0 {
            return 0;
        }
        self.dims.iter().fold(1, |count, repeat| count.saturating_mul(repeat.count))
    }

    /// Bytes of all runs together.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.run.saturating_mul(self.count())
    }

    /// The bytes from the beginning of the first run to the end of the last, those between runs included.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        if self.count() == 0 {
            return self.first..self.first;
        }
        let last = self.dims.iter().fold(self.first, |last, repeat| {
            last.saturating_add(repeat.count.saturating_sub(1).saturating_mul(repeat.stride))
        });
        self.first..last.saturating_add(self.run)
    }

    /// Each run, in bytes from the first byte of the tensor, in the order of the file.
    #[must_use]
    pub fn iter(&self) -> RunsIter<'_> {
        RunsIter {
            runs: self,
            start: self.first,
            left: self.count(),
            done: alloc::vec![0; self.dims.len()],
        }
    }
}

impl<'a> IntoIterator for &'a Runs {
    type Item = Range<u64>;
    type IntoIter = RunsIter<'a>;

    fn into_iter(self) -> RunsIter<'a> {
        self.iter()
    }
}

/// The runs of a [`Runs`], one after the other.
#[derive(Clone, Debug)]
pub struct RunsIter<'a> {
    runs: &'a Runs,
    /// Where the next run begins.
    start: u64,
    left: u64,
    /// For each dimension, the repetitions before the one at hand.
    done: Vec<u64>,
}

impl Iterator for RunsIter<'_> {
    type Item = Range<u64>;

    #[inline]
    fn next(&mut self) -> Option<Range<u64>> {
        self.left = self.left.checked_sub(1)?;
        let run = self.start..self.start.saturating_add(self.runs.run);
        for (repeat, done) in self.runs.dims.iter().zip(&mut self.done).rev() {
            let next = done.saturating_add(1);
            if next < repeat.count {
                *done = next;
                self.start = self.start.saturating_add(repeat.stride);
                break;
            }
            // Back to its first, and one further in the dimension outside.
            self.start = self.start.saturating_sub(done.saturating_mul(repeat.stride));
            *done = 0;
        }
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// The pattern of a slice while its dimensions are added, counted in elements.
#[derive(Default)]
pub(super) struct Pattern {
    first: u64,
    repeats: Vec<Repeat>,
    /// The innermost dimension so far, which the next may be merged with. Held back, so that what is
    /// contiguous needs no memory.
    innermost: Option<Repeat>,
}

impl Pattern {
    /// Adds a dimension inside those before, one place of which is `unit` elements.
    ///
    /// `None` if the numbers are too large, which they are not if the tensor's size is checked.
    pub(super) fn take(&mut self, taken: &Taken, unit: u64) -> Option<()> {
        self.first = self.first.checked_add(taken.low.checked_mul(unit)?)?;
        if taken.count < 2 {
            return Some(());
        }
        let stride = taken.step.checked_mul(unit)?;
        let mut count = taken.count;
        if let Some(outer) = self.innermost {
            if taken.count.checked_mul(stride) == Some(outer.stride) {
                count = count.checked_mul(outer.count)?;
            } else {
                self.repeats.push(outer);
            }
        }
        self.innermost = Some(Repeat { count, stride });
        Some(())
    }

    /// The pattern in bytes, and the spare bits of its last byte.
    pub(super) fn runs(self, dtype: Dtype) -> Result<(Runs, u32), SliceError> {
        let Self { first, repeats: mut dims, innermost } = self;
        let mut run = 1;
        match innermost {
            Some(Repeat { count, stride: 1 }) => run = count,
            innermost => dims.extend(innermost),
        }
        if let Some((element, in_slice)) = inside_a_byte(first, run, &dims, dtype) {
            return Err(SliceError::InsideByte { dtype, element, in_slice });
        }
        let bytes = |elements| {
            let bytes = bit_len(dtype, elements).div_ceil(8);
            u64::try_from(bytes).map_err(|_| SliceError::TooLarge)
        };
        for repeat in &mut dims {
            repeat.stride = bytes(repeat.stride)?;
        }
        let over = u32::try_from(bit_len(dtype, run) & 7).unwrap_or(0);
        let spare_bits = 8_u32.saturating_sub(over) & 7;
        Ok((Runs { first: bytes(first)?, run: bytes(run)?, dims }, spare_bits))
    }
}

/// The first element of a run that begins inside a byte, if one does, and whether that is a byte of the
/// slice rather than of the tensor.
fn inside_a_byte(first: u64, run: u64, dims: &[Repeat], dtype: Dtype) -> Option<(u64, bool)> {
    let is_inside = |elements| !bit_len(dtype, elements).is_multiple_of(8);
    if is_inside(first) {
        return Some((first, false));
    }
    // The other runs begin at sums of strides, the second at the innermost one.
    let second = dims.last()?;
    if let Some(repeat) = dims.iter().rev().find(|repeat| is_inside(repeat.stride)) {
        return Some((first.saturating_add(repeat.stride), false));
    }
    is_inside(run).then(|| (first.saturating_add(second.stride), true))
}
