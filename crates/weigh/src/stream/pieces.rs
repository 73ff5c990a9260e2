//! What is streamed, cut so that it fits.

use std::collections::VecDeque;
use std::ops::Range;

use weigh_format::Dtype;
use weigh_io::{Block, Runs, Unit, arena};
use weigh_values::cast::Cast;

use crate::load::finish;
use crate::plan::Planned;
use crate::stream::Streamed;
use crate::{Array, Error};

/// A tensor or slice, or some of its elements.
#[derive(Debug)]
pub(super) struct Piece {
    name: String,
    dtype: Dtype,
    /// Of all of it.
    shape: Vec<u64>,
    elements: Range<u64>,
    is_last: bool,
    pub(super) file: usize,
    /// One after another.
    pub(super) runs: Vec<Runs>,
    pub(super) unit: Unit,
    pub(super) cast: Option<Cast>,
    reversed: Vec<usize>,
    spare_bits: u32,
    /// In memory.
    pub(super) bytes: u64,
}

/// Cuts a part into pieces of at most `share` bytes, if it is larger than `limit`; else it is one.
pub(super) fn cut(
    part: &Planned<'_>,
    share: u64,
    limit: u64,
    pieces: &mut VecDeque<Piece>,
) -> Result<(), Error> {
    let piece = |elements: Range<u64>, runs, bytes, is_last| Piece {
        name: part.name.into(),
        dtype: part.dtype,
        shape: part.shape.clone(),
        elements,
        is_last,
        file: part.file,
        runs,
        unit: part.unit(),
        cast: part.cast,
        reversed: part.reversed.clone(),
        spare_bits: if is_last { part.spare_bits } else { 0 },
        bytes,
    };
    let count = part.shape.iter().copied().fold(1, u64::saturating_mul);
    if arena::allocation_bytes(&[part.bytes]).is_some_and(|bytes| bytes <= limit) {
        pieces.push_back(piece(0..count, vec![part.runs.clone()], part.bytes, true));
        return Ok(());
    }
    if !part.reversed.is_empty() {
        return Err(Error::Budget { name: part.name.into(), wanted: part.bytes, budget: limit });
    }
    let grain = Grain::of(part);
    let step = (share / grain.to).max(1).saturating_mul(grain.from);
    let total = part.runs.bytes();
    let (mut at, mut element) = (0, 0);
    while at < total {
        let end = total.min(at.saturating_add(step));
        let runs = part.runs.take(at..end);
        let is_last = end == total;
        let elements = if is_last { count } else { end / grain.from * grain.elements };
        let bytes = part.unit().apply(end - at).unwrap_or(u64::MAX);
        pieces.push_back(piece(element..elements, runs, bytes, is_last));
        (at, element) = (end, elements);
    }
    Ok(())
}

/// The fewest bytes that hold whole elements, in the file and in memory.
struct Grain {
    from: u64,
    to: u64,
    elements: u64,
}

impl Grain {
    fn of(part: &Planned<'_>) -> Self {
        let in_file = part.cast.map_or(part.dtype, |cast| cast.from());
        let (from, elements) = match in_file.bits() {
            4 => (1, 2),
            6 => (3, 4),
            bits => (u64::from(bits / 8), 1),
        };
        Self { from, to: part.unit().apply(from).unwrap_or(from), elements }
    }
}

impl Piece {
    /// Bytes of memory that it takes by itself.
    pub(super) fn memory(&self) -> u64 {
        arena::allocation_bytes(&[self.bytes]).unwrap_or(u64::MAX)
    }

    /// Does what is left to do when its bytes are there.
    pub(super) fn finish(&self, bytes: &mut [u8]) {
        finish(bytes, self.dtype, &self.shape, &self.reversed, self.spare_bits);
    }

    pub(super) fn streamed(self, block: Block) -> Streamed {
        let is_whole = self.elements.start == 0 && self.is_last;
        let own = vec![self.elements.end - self.elements.start];
        let shape = if is_whole { self.shape.clone() } else { own };
        let bytes_read = self.runs.iter().map(Runs::bytes).sum();
        Streamed {
            name: self.name,
            array: Array { dtype: self.dtype, shape, block, bytes_read },
            shape: self.shape,
            elements: self.elements,
            is_last: self.is_last,
        }
    }
}
