//! Where the elements of a tensor are in its storage, and the byte runs to gather them by.

use alloc::vec::Vec;
use core::ops::Range;

use crate::storage::StorageId;

/// Elements of a storage, by size and stride. Every element is inside the storage: whoever makes one checks that.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// The storage.
    pub storage: StorageId,
    /// Bytes from the beginning of the storage to the first element. A multiple of `element_bytes`, unless an old
    /// file has a view of a storage of another kind.
    pub first: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The size of each dimension; none is a scalar.
    pub shape: Vec<u64>,
    /// Elements from one place of a dimension to the next. 0 repeats.
    pub strides: Vec<u64>,
}

impl View {
    /// How many elements there are.
    #[must_use]
    pub fn elements(&self) -> u64 {
        // The checks of whoever made it are that the product, and the bytes, can be counted.
        self.shape.iter().fold(1, |product: u64, &size| product.saturating_mul(size))
    }

    /// Bytes of all elements, gathered.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.elements().saturating_mul(self.element_bytes)
    }

    /// Whether the elements are one after the other in C order, so that they are one run of bytes.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut wanted = 1_u64;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size == 0 {
                return true;
            }
            if size > 1 && stride != wanted {
                return self.shape.contains(&0);
            }
            wanted = wanted.saturating_mul(size);
        }
        true
    }

    /// The bytes of the storage from the first that is an element's to the last, those between included.
    #[must_use]
    pub fn span_in_storage(&self) -> Range<u64> {
        self.runs().span()
    }

    /// The byte runs of the elements in C order.
    #[must_use]
    pub fn runs(&self) -> Runs {
        if self.elements() == 0 {
            return Runs { first: self.first, run: 0, dims: Vec::new() };
        }
        let mut dims: Vec<Repeat> = Vec::new();
        for (&count, &stride) in self.shape.iter().zip(&self.strides) {
            if count == 1 {
                continue;
            }
            let stride = stride.saturating_mul(self.element_bytes);
            match dims.last_mut() {
                Some(outer) if count.checked_mul(stride) == Some(outer.stride) => {
                    *outer = Repeat { count: outer.count.saturating_mul(count), stride };
                }
                _ => dims.push(Repeat { count, stride }),
            }
        }
        let mut run = self.element_bytes;
        if let Some(inner) = dims.pop_if(|inner| inner.stride == self.element_bytes) {
            run = run.saturating_mul(inner.count);
        }
        Runs { first: self.first, run, dims }
    }
}

/// Byte runs of a regular pattern: `run` bytes again and again, in the order of the elements, which need not be that
/// of the storage.
///
/// There are as few dimensions as the pattern allows: what is contiguous is one run. No elements have no runs.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct Runs {
    /// Where the first run begins, in bytes from the beginning of the storage.
    pub first: u64,
    /// Bytes of each run.
    pub run: u64,
    /// How runs repeat, outermost first; empty if there is one.
    pub dims: Vec<Repeat>,
}

/// What is inside, `count` times, `stride` apart.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct Repeat {
    /// How many times: at least 2.
    pub count: u64,
    /// From the beginning of one to that of the next, in bytes: 0 is the same again, and it may be less than what is
    /// inside.
    pub stride: u64,
}

impl Runs {
    /// How many runs there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        if self.run == 0 {
            return 0;
        }
        self.dims.iter().fold(1, |count: u64, repeat| count.saturating_mul(repeat.count))
    }

    /// Bytes of all runs together.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.run.saturating_mul(self.count())
    }

    /// The bytes from the first of any run to the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let last = self.dims.iter().fold(self.first, |last, repeat| {
            last.saturating_add(repeat.count.saturating_sub(1).saturating_mul(repeat.stride))
        });
        self.first..last.saturating_add(self.run)
    }

    /// Each run, in bytes from the beginning of the storage.
    #[must_use]
    pub fn iter(&self) -> RunsIter<'_> {
        self.iter_from(0)
    }

    /// Each run from this one on, counted from 0: to gather a large tensor by pieces.
    #[must_use]
    pub fn iter_from(&self, number: u64) -> RunsIter<'_> {
        let count = self.count();
        let mut start = self.first;
        let mut done = alloc::vec![0; self.dims.len()];
        let mut rest = number;
        for (repeat, done) in self.dims.iter().zip(&mut done).rev() {
            *done = rest.checked_rem(repeat.count).unwrap_or(0);
            rest = rest.checked_div(repeat.count).unwrap_or(0);
            start = start.saturating_add(done.saturating_mul(repeat.stride));
        }
        RunsIter { runs: self, start, left: count.saturating_sub(number), done }
    }

    /// Appends the bytes of `runs`, counted from 0, to `gathered`. `None` if one is not inside `storage`.
    #[must_use]
    pub fn gather(&self, storage: &[u8], runs: Range<u64>, gathered: &mut Vec<u8>) -> Option<()> {
        match self.run {
            1 => self.gather_short::<1>(storage, runs, gathered),
            2 => self.gather_short::<2>(storage, runs, gathered),
            4 => self.gather_short::<4>(storage, runs, gathered),
            8 => self.gather_short::<8>(storage, runs, gathered),
            16 => self.gather_short::<16>(storage, runs, gathered),
            _ => {
                let wanted = runs.end.saturating_sub(runs.start);
                for run in self.iter_from(runs.start).take(usize::try_from(wanted).ok()?) {
                    gathered.extend_from_slice(bytes(storage, run)?);
                }
                Some(())
            }
        }
    }

    /// Runs of a length that is known to the compiler.
    fn gather_short<const RUN: usize>(
        &self,
        storage: &[u8],
        runs: Range<u64>,
        gathered: &mut Vec<u8>,
    ) -> Option<()> {
        let wanted = runs.end.saturating_sub(runs.start);
        for run in self.iter_from(runs.start).take(usize::try_from(wanted).ok()?) {
            let start = usize::try_from(run.start).ok()?;
            gathered.extend_from_slice(storage.get(start..)?.first_chunk::<RUN>()?);
        }
        Some(())
    }
}

fn bytes(storage: &[u8], run: Range<u64>) -> Option<&[u8]> {
    storage.get(usize::try_from(run.start).ok()?..usize::try_from(run.end).ok()?)
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

#[cfg(test)]
mod tests;
