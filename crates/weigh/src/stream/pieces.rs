//! What is streamed, cut so that it fits.

use std::ops::Range;

use weigh_format::Dtype;
use weigh_io::{Block, Runs, Unit, arena};
use weigh_values::cast::Cast;

use crate::load::finish;
use crate::plan::Planned;
use crate::stream::Streamed;
use crate::{Array, Error};

/// A tensor or slice that waits to be read, whole or from somewhere on.
#[derive(Debug)]
pub(super) struct Waiting {
    name: String,
    /// In memory.
    dtype: Dtype,
    shape: Vec<u64>,
    file: usize,
    runs: Runs,
    unit: Unit,
    cast: Option<Cast>,
    reversed: Vec<usize>,
    spare_bits: u32,
    /// Bytes that it has in memory.
    bytes: u64,
    /// Bytes of the file that pieces have been cut off of, and their elements.
    cut: u64,
    cut_elements: u64,
}

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

impl Waiting {
    /// # Errors
    ///
    /// [`Error::Budget`] if it is larger than `limit` and has to come whole.
    pub(super) fn new(part: &Planned<'_>, limit: u64) -> Result<Self, Error> {
        let waiting = Self {
            name: part.name.into(),
            dtype: part.dtype,
            shape: part.shape.clone(),
            file: part.file,
            runs: part.runs.clone(),
            unit: part.unit(),
            cast: part.cast,
            reversed: part.reversed.clone(),
            spare_bits: part.spare_bits,
            bytes: part.bytes,
            cut: 0,
            cut_elements: 0,
        };
        if waiting.memory() > limit && !part.reversed.is_empty() {
            let (name, wanted) = (part.name.into(), part.bytes);
            return Err(Error::Budget { name, wanted, budget: limit });
        }
        Ok(waiting)
    }

    /// Bytes of an arena that all of it takes.
    pub(super) fn memory(&self) -> u64 {
        arena::most_bytes(self.bytes)
    }

    /// Cuts off the next piece, of about `share` bytes in memory; whether that was the last.
    pub(super) fn cut(&mut self, share: u64) -> (Piece, bool) {
        let grain = Grain::of(self);
        let step = (share / grain.to.max(1)).max(1).saturating_mul(grain.from);
        self.take(self.cut.saturating_add(step), &grain)
    }

    /// All of it.
    pub(super) fn whole(mut self) -> Piece {
        let grain = Grain::of(&self);
        self.take(u64::MAX, &grain).0
    }

    /// What has not been cut off yet, up to byte `end` of the file's.
    fn take(&mut self, end: u64, grain: &Grain) -> (Piece, bool) {
        let total = self.runs.bytes();
        let end = end.min(total);
        let is_last = end == total;
        let count = self.shape.iter().copied().fold(1, u64::saturating_mul);
        let elements = if is_last { count } else { end / grain.from * grain.elements };
        let is_whole = is_last && self.cut == 0;
        let piece = Piece {
            name: self.name.clone(),
            dtype: self.dtype,
            shape: self.shape.clone(),
            elements: self.cut_elements..elements,
            is_last,
            file: self.file,
            runs: if is_whole { vec![self.runs.clone()] } else { self.runs.take(self.cut..end) },
            unit: self.unit,
            cast: self.cast,
            reversed: self.reversed.clone(),
            spare_bits: if is_last { self.spare_bits } else { 0 },
            bytes: self.unit.apply(end - self.cut).unwrap_or(u64::MAX),
        };
        (self.cut, self.cut_elements) = (end, elements);
        (piece, is_last)
    }
}

/// The fewest bytes that hold whole elements, in the file and in memory.
struct Grain {
    from: u64,
    to: u64,
    elements: u64,
}

impl Grain {
    fn of(waiting: &Waiting) -> Self {
        let in_file = waiting.cast.map_or(waiting.dtype, |cast| cast.from());
        let (from, elements) = match in_file.bits() {
            4 => (1, 2),
            6 => (3, 4),
            bits => (u64::from(bits / 8), 1),
        };
        Self { from, to: waiting.unit.apply(from).unwrap_or(from), elements }
    }
}

impl Piece {
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
