//! Boxes of a strided tensor: cut so that what is read and what is written are both runs of some length, and gathered
//! in memory.
//!
//! A transposed matrix is far apart either in the file or in the tensor. A box that is as wide in one direction as in
//! the other has runs of a few KiB in both.

use super::Pattern;

/// Bytes of a box, gathered, about.
const BOX: u64 = 4 << 20;

/// A part of a strided tensor: in each dimension some places.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Tile {
    /// The first place in each dimension.
    pub(crate) origin: Vec<u64>,
    /// How many places.
    pub(crate) counts: Vec<u64>,
}

/// The dimension along which elements are nearest to each other in the storage; the last of several.
pub(crate) fn nearest(dims: &[(u64, u64)]) -> Option<usize> {
    let strided = dims.iter().enumerate().rev().filter(|(_, (_, stride))| *stride > 0);
    strided.min_by_key(|(_, (_, stride))| *stride).map(|(place, _)| place)
}

/// Cuts a strided tensor into boxes, in the order of the tensor.
pub(crate) fn tiles(pattern: &Pattern) -> Vec<Tile> {
    let counts = extents(pattern);
    let dims = &pattern.dims;
    let mut tiles = Vec::new();
    let mut origin = vec![0; dims.len()];
    loop {
        let left = |(place, (count, _)): (&u64, &(u64, u64))| count.saturating_sub(*place);
        let left = origin.iter().zip(dims).map(left);
        let own = counts.iter().zip(left).map(|(count, left)| left.min(*count)).collect();
        tiles.push(Tile { origin: origin.clone(), counts: own });
        // The next box, the last dimension first.
        let mut is_next = false;
        for ((place, count), (all, _)) in origin.iter_mut().zip(&counts).zip(dims).rev() {
            *place = place.saturating_add(*count);
            if *place < *all {
                is_next = true;
                break;
            }
            *place = 0;
        }
        if !is_next {
            return tiles;
        }
    }
}

/// How many places a box has in each dimension, at most.
fn extents(pattern: &Pattern) -> Vec<u64> {
    let dims = &pattern.dims;
    let mut counts = vec![1_u64; dims.len()];
    let mut left = (BOX / pattern.run.max(1)).max(1);
    let mut take = |counts: &mut Vec<u64>, place: usize, most: u64| {
        if let (Some(count), Some((all, _))) = (counts.get_mut(place), dims.get(place)) {
            *count = (*all).min(most.min(left)).max(1);
            left = (left / *count).max(1);
            return *count == *all;
        }
        false
    };
    let Some(last) = dims.len().checked_sub(1) else { return counts };
    match nearest(dims) {
        Some(near) if near != last => {
            let side = (BOX / pattern.run.max(1)).max(1).isqrt();
            let count = |place: usize| dims.get(place).map_or(1, |(count, _)| *count);
            // What one direction does not take the other may.
            let most = side.max((side * side) / count(last).min(side).max(1));
            take(&mut counts, near, most);
            take(&mut counts, last, u64::MAX);
            for place in (0..last).rev().filter(|place| *place != near) {
                take(&mut counts, place, u64::MAX);
            }
        }
        _ => {
            for place in (0..dims.len()).rev() {
                if !take(&mut counts, place, u64::MAX) {
                    break;
                }
            }
        }
    }
    counts
}

impl Tile {
    /// The first byte of the storage, and the bytes from there to the end of the last run.
    pub(crate) fn span(&self, pattern: &Pattern) -> (u64, u64) {
        let mut first = pattern.first;
        let mut bytes = pattern.run;
        for (((_, stride), origin), count) in
            pattern.dims.iter().zip(&self.origin).zip(&self.counts)
        {
            first = first.saturating_add(origin.saturating_mul(*stride));
            let more = count.saturating_sub(1).saturating_mul(*stride);
            bytes = bytes.saturating_add(more);
        }
        (first, bytes)
    }

    /// Bytes of it, gathered.
    pub(crate) fn bytes(&self, run: u64) -> u64 {
        self.counts.iter().fold(run, |bytes, count| bytes.saturating_mul(*count))
    }

    /// Its bytes that are next to each other in the gathered tensor: how many, and where each such part begins.
    pub(crate) fn parts(&self, pattern: &Pattern) -> (u64, Vec<u64>) {
        // Bytes of the tensor from one place to the next, dimension by dimension.
        let mut strides = vec![0_u64; pattern.dims.len()];
        let mut stride = pattern.run;
        for (own, (count, _)) in strides.iter_mut().zip(&pattern.dims).rev() {
            *own = stride;
            stride = stride.saturating_mul(*count);
        }
        let mut length = pattern.run;
        let mut split = pattern.dims.len();
        while let Some(place) = split.checked_sub(1) {
            let (Some(count), Some((all, _))) = (self.counts.get(place), pattern.dims.get(place))
            else {
                break;
            };
            length = length.saturating_mul(*count);
            split = place;
            if count != all {
                break;
            }
        }
        let zip = || self.origin.iter().zip(&strides).map(|(place, stride)| place * stride);
        let mut begins = vec![zip().fold(0, u64::saturating_add)];
        for (count, stride) in self.counts.iter().zip(&strides).take(split) {
            let step = |begin: &u64| {
                let (begin, stride) = (*begin, *stride);
                (0..*count).map(move |place| begin.saturating_add(place * stride))
            };
            begins = begins.iter().flat_map(step).collect();
        }
        (length, begins)
    }
}

/// What is gathered in memory: runs of `run` bytes, `dims` being how many there are in each dimension and how many
/// bytes of the source apart.
#[derive(Debug)]
pub(crate) struct Strided {
    pub(crate) run: usize,
    pub(crate) dims: Vec<(usize, usize)>,
}

/// Places of a block that is gathered at once: what it reads and what it writes stay in a core's cache.
const BLOCK: usize = 32;

impl Strided {
    /// Gathers from a source, whose first byte is that of the first run. `None` if a run is outside.
    pub(crate) fn gather(&self, source: &[u8], gathered: &mut [u8]) -> Option<()> {
        match self.run {
            1 => self.gather_by(source, gathered, copy::<1>),
            2 => self.gather_by(source, gathered, copy::<2>),
            4 => self.gather_by(source, gathered, copy::<4>),
            8 => self.gather_by(source, gathered, copy::<8>),
            16 => self.gather_by(source, gathered, copy::<16>),
            _ => self.gather_by(source, gathered, |from, to, run| {
                to.get_mut(..run)?.copy_from_slice(from.get(..run)?);
                Some(())
            }),
        }
    }

    fn gather_by(
        &self,
        source: &[u8],
        gathered: &mut [u8],
        copy: impl Fn(&[u8], &mut [u8], usize) -> Option<()>,
    ) -> Option<()> {
        // Where each dimension's next place is in what is gathered.
        let mut strides = vec![0_usize; self.dims.len()];
        let mut stride = self.run;
        for (own, (count, _)) in strides.iter_mut().zip(&self.dims).rev() {
            *own = stride;
            stride = stride.checked_mul(*count)?;
        }
        let dims: Vec<[usize; 3]> =
            self.dims.iter().zip(&strides).map(|(&(count, from), &to)| [count, from, to]).collect();
        // Two dimensions at a time: the last, and the one that is nearest in the source.
        let last = dims.len().checked_sub(1);
        let near = dims.iter().enumerate().rev().filter(|(_, dim)| dim[1] > 0);
        let near = near.min_by_key(|(_, dim)| dim[1]).map(|(place, _)| place);
        let inner = last.and_then(|last| dims.get(last).copied()).unwrap_or([1, 0, 0]);
        let near = near.filter(|near| Some(*near) != last);
        let outer = near.and_then(|near| dims.get(near).copied()).unwrap_or([1, 0, 0]);
        let is_other = |place: &usize| Some(*place) != last && Some(*place) != near;
        let others: Vec<[usize; 3]> =
            (0..dims.len()).filter(is_other).filter_map(|it| dims.get(it).copied()).collect();
        let mut places = vec![0_usize; others.len()];
        loop {
            let base = |which: usize| {
                let sum = places.iter().zip(&others).map(|(place, dim)| place * dim[which]);
                sum.sum::<usize>()
            };
            let (from, to) = (base(1), base(2));
            for rows in (0..outer[0]).step_by(BLOCK) {
                for columns in (0..inner[0]).step_by(BLOCK) {
                    for row in rows..outer[0].min(rows + BLOCK) {
                        for column in columns..inner[0].min(columns + BLOCK) {
                            let from = from + row * outer[1] + column * inner[1];
                            let to = to + row * outer[2] + column * inner[2];
                            copy(source.get(from..)?, gathered.get_mut(to..)?, self.run)?;
                        }
                    }
                }
            }
            let mut is_next = false;
            for (place, dim) in places.iter_mut().zip(&others).rev() {
                *place += 1;
                if *place < dim[0] {
                    is_next = true;
                    break;
                }
                *place = 0;
            }
            if !is_next {
                return Some(());
            }
        }
    }
}

/// Copies a run whose length the compiler knows.
#[inline]
fn copy<const RUN: usize>(from: &[u8], to: &mut [u8], _: usize) -> Option<()> {
    *to.first_chunk_mut::<RUN>()? = *from.first_chunk::<RUN>()?;
    Some(())
}
