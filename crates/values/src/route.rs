//! The casts between any two dtypes, in two loops, by way of a wider one, block by block.
//!
//! Between the two, values have one of three kinds, whatever the pair is: there they are counted
//! and clamped. So 22 × 22 casts, with or without either, need not be as many loops.

use weigh_format::Dtype;

use crate::complex;
use crate::format::{Integers, has_nan};
use crate::length::Unit;
use crate::pair::{self, Run};
use crate::range::{Limits, Outside, Range, Whole};
use crate::tally::Tally;
use crate::{code, integer};

/// Elements of a block: whole units of every dtype, few enough to stay in the fastest cache.
const BLOCK: usize = 1024;

/// Bytes of the largest kind of value between the loops.
const WIDEST: usize = 8;

/// The way from one dtype to another.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    from: Dtype,
    to: Dtype,
    between: Between,
    /// The loop to what is between; none if the source is that already.
    first: Option<Run>,
    /// The range of the target, for what is between.
    range: Range,
    /// That range for the source, where that is faster.
    halves: Option<Limits<i16>>,
    /// The loop from what is between; none if the target is that.
    second: Option<Run>,
}

/// What values are between the two loops.
#[derive(Clone, Copy)]
enum Between {
    /// F32, rounded to odd where the source has more precision.
    Narrow,
    /// F64.
    Wide,
    /// I64, or U64 where the source is that.
    Whole,
}

impl Between {
    fn of(from: Dtype, to: Dtype) -> Self {
        match (Integers::of(from), Integers::of(to), to) {
            (Some(_), Some(_), _) => Self::Whole,
            (_, None, Dtype::F64) => Self::Wide,
            (_, None, Dtype::F32 | Dtype::C64) if from == Dtype::F64 => Self::Wide,
            (_, Some(_), to) if to != Dtype::BOOL => Self::Wide,
            _ => Self::Narrow,
        }
    }
}

impl Route {
    /// The way from `from` to `to`, and if `saturates`, of numbers beyond the range of the target
    /// to the nearest in it.
    pub(crate) fn new(from: Dtype, to: Dtype, saturates: bool) -> Self {
        let between = Between::of(from, to);
        let (first, range, second): (_, _, Option<Run>) = match between {
            Between::Whole => {
                let range = Range::Whole(Whole::new(from, to, saturates));
                (integer::widen(from), range, integer::narrow(to))
            }
            Between::Wide => {
                let first = if from == Dtype::F64 { None } else { pair::run(from, Dtype::F64) };
                let second = match to {
                    Dtype::F64 => None,
                    Dtype::F32 => pair::run(Dtype::F64, to),
                    Dtype::C64 => Some(complex::of_f64 as Run),
                    _ => Some(integer::nearest(to)),
                };
                (first, Range::wide(to, saturates), second)
            }
            Between::Narrow => {
                let first = match (from, to) {
                    (Dtype::F32, _) | (Dtype::C64, Dtype::C64) => None,
                    (Dtype::C64, Dtype::BOOL) => Some(complex::larger as Run),
                    (_, Dtype::F32 | Dtype::C64) => pair::run(from, Dtype::F32),
                    _ => Some(pair::to_odd_f32(from)),
                };
                let second = match to {
                    Dtype::F32 => None,
                    Dtype::C64 if from == Dtype::C64 => None,
                    Dtype::C64 => Some(complex::of_f32 as Run),
                    Dtype::BOOL => Some(integer::truth as Run),
                    _ => pair::run(Dtype::F32, to).or_else(|| code::run(to)),
                };
                (first, Range::narrow(to, saturates), second)
            }
        };
        Self { from, to, between, first, range, halves: range.of_halves(from), second }
    }

    /// Whether numbers beyond the range are made the nearest in it, in a step of its own.
    pub(crate) fn clamps(&self) -> bool {
        self.range.clamps()
    }

    /// Converts whole units.
    pub(crate) fn convert(&self, from: &[u8], to: &mut [u8]) {
        let mut room = Room::new();
        for (from, to) in self.blocks(from, to) {
            let values = self.start(from, &mut room.between);
            self.finish(values, to, &mut room.clamped);
        }
    }

    /// Converts whole units, and counts what happens to them.
    ///
    /// `direct` is the one loop that converts them, where there is one.
    pub(crate) fn convert_counted(&self, from: &[u8], to: &mut [u8], direct: Option<Run>) -> Tally {
        let mut room = Room::new();
        let mut tally = Tally::default();
        for (from, to) in self.blocks(from, to) {
            match (direct, self.halves) {
                (Some(run), Some(limits)) => {
                    tally += self.tally(from, limits.count(from));
                    run(from, to);
                }
                _ => {
                    let values = self.start(from, &mut room.between);
                    tally += self.tally(from, self.count(from, values));
                    match direct {
                        Some(run) if self.from == self.to => run(from, to),
                        _ => self.finish(values, to, &mut room.clamped),
                    }
                }
            }
        }
        tally
    }

    /// Blocks of the source, each with its target.
    fn blocks<'a>(
        &self,
        from: &'a [u8],
        to: &'a mut [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a mut [u8])> {
        let bytes = |dtype: Dtype| BLOCK * dtype.bits() as usize / 8;
        from.chunks(bytes(self.from)).zip(to.chunks_mut(bytes(self.to)))
    }

    /// From the source to what is between.
    fn start<'a>(&self, from: &'a [u8], between: &'a mut [u8]) -> &'a [u8] {
        let Some(run) = self.first else { return from };
        let values = &mut between[..self.bytes_between(from.len())];
        run(from, values);
        values
    }

    /// Bytes that whole units of the source, of one block at most, are in between.
    fn bytes_between(&self, from_bytes: usize) -> usize {
        let value_bytes = match self.between {
            Between::Narrow => 4,
            Between::Wide | Between::Whole => 8,
        };
        Unit::of(self.from, value_bytes).target(from_bytes).map_or(0, |it| it.min(BLOCK * WIDEST))
    }

    /// From what is between to the target.
    fn finish(&self, values: &[u8], to: &mut [u8], clamped: &mut [u8]) {
        let values = if self.range.clamps() {
            let clamped = &mut clamped[..values.len()];
            self.range.clamp(values, clamped);
            clamped
        } else {
            values
        };
        match self.second {
            Some(run) => run(values, to),
            None => to.copy_from_slice(values),
        }
    }

    /// Counts what of a block is outside of the range.
    fn count(&self, from: &[u8], values: &[u8]) -> Outside {
        match self.halves {
            Some(limits) => limits.count(from),
            None => self.range.count(values),
        }
    }

    /// What happens to a block of which so much is outside of the range.
    fn tally(&self, from: &[u8], outside: Outside) -> Tally {
        let Outside { overflow, underflow, nan } = outside;
        let values = Unit::of(self.from, 1).target(from.len()).map_or(0, |it| it as u64);
        let nan_lost = if has_nan(self.to) { 0 } else { nan };
        let tally = Tally { values, overflow, underflow, nan, nan_lost, imaginary_lost: 0 };
        if self.from != Dtype::C64 {
            return tally;
        }
        let parts = complex::count(from);
        match self.to {
            Dtype::C64 => {
                let overflow = if self.range.clamps() { parts.infinite } else { 0 };
                Tally { overflow, nan: parts.nan, ..tally }
            }
            Dtype::BOOL => tally,
            _ => Tally { nan: parts.nan, imaginary_lost: parts.imaginary, ..tally },
        }
    }
}

/// Memory for the values of a block.
struct Room {
    between: [u8; BLOCK * WIDEST],
    clamped: [u8; BLOCK * WIDEST],
}

impl Room {
    fn new() -> Self {
        Self { between: [0; BLOCK * WIDEST], clamped: [0; BLOCK * WIDEST] }
    }
}
