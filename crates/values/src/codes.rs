//! How often there is each value: of a dtype of at most 16 bits exactly, of a wider one by the BF16 next to it.
//!
//! From that follow quantiles and histograms. Of a dtype of at most 16 bits they are exact. Of a wider one a value is
//! known to within half a step of BF16, that is to within 1/256 of itself, and 2^-134 near 0; what is beyond BF16 counts
//! as infinite. Integers up to 256 are exact there too.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::codes::Codes;
//!
//! let mut codes = Codes::new(Dtype::I8);
//! codes.add(&[1, 2, 3, 4])?;
//! assert_eq!(codes.distribution().quantile(0.5), Some(2.5));
//! # Ok::<(), weigh_values::LengthError>(())
//! ```

use weigh_format::Dtype;

use crate::cast::{Cast, Overflow};
use crate::decode;
use crate::kernel::BLOCK;
use crate::length::{LengthError, Unit};
use crate::small;

/// Tables side by side: elements that follow each other are often the same, and would wait for each other.
const TABLES: usize = 8;

/// Elements that are cast to BF16 at a time.
const CAST: usize = 4096;

/// How often there is each code of a dtype; a code is the bits of an element.
#[derive(Clone, Debug)]
pub struct Codes {
    dtype: Dtype,
    /// What a code is of: the dtype itself, or BF16.
    coded: Dtype,
    counts: Vec<u64>,
    /// Counts of 16-bit codes that were not yet added: half as large, so that more of them stay near.
    recent: Vec<u32>,
    /// How many numbers are in those.
    pending: u32,
}

impl Codes {
    /// No elements of this dtype.
    #[must_use]
    pub fn new(dtype: Dtype) -> Self {
        let coded = if dtype.bits() <= 16 { dtype } else { Dtype::BF16 };
        let count = 1 << coded.bits();
        let recent = if coded.bits() == 16 { vec![0; count] } else { Vec::new() };
        Self { dtype, coded, counts: vec![0; count], recent, pending: 0 }
    }

    /// The dtype of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Whether a code says all of an element.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.dtype == self.coded
    }

    /// Counts little-endian elements, at any alignment; of a complex number both parts.
    ///
    /// # Errors
    ///
    /// [`LengthError::NotUnits`] if these are not whole elements, or end inside a group of four 6-bit ones.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), LengthError> {
        Unit::of(self.dtype, 1).target(bytes.len())?;
        if self.is_exact() {
            self.count(bytes);
            return Ok(());
        }
        let part = if self.dtype == Dtype::C64 { Dtype::F32 } else { self.dtype };
        let cast = Cast::new(part, Dtype::BF16, Overflow::Natural);
        let width = if part.bits() == 32 { 4 } else { 8 };
        let mut cut = [0; 2 * CAST];
        for block in bytes.chunks(CAST * width) {
            let to = &mut cut[..block.len() / width * 2];
            cast.convert(block, to)?;
            self.count(to);
        }
        Ok(())
    }

    fn count(&mut self, bytes: &[u8]) {
        match self.coded.bits() {
            16 => self.count_halves(bytes),
            8 => count_bytes(bytes, &mut self.counts, |code| [code]),
            4 => count_bytes(bytes, &mut self.counts, |pair| [pair & 15, pair >> 4]),
            _ => {
                let (blocks, rest) = bytes.as_chunks::<{ BLOCK / 4 * 3 }>();
                for block in blocks {
                    self.count_sixes(block, BLOCK);
                }
                let mut last = [0; BLOCK / 4 * 3];
                last[..rest.len()].copy_from_slice(rest);
                self.count_sixes(&last, rest.len() / 3 * 4);
            }
        }
    }

    fn count_sixes(&mut self, block: &[u8; BLOCK / 4 * 3], elements: usize) {
        for code in &small::sixes(block)[..elements] {
            self.counts[usize::from(code & 63)] += 1;
        }
    }

    fn count_halves(&mut self, bytes: &[u8]) {
        let (halves, _) = bytes.as_chunks::<2>();
        for halves in halves.chunks(1 << 20) {
            let more = u32::try_from(halves.len()).unwrap_or(u32::MAX);
            self.pending = self.pending.checked_add(more).unwrap_or_else(|| {
                settle(&mut self.counts, &mut self.recent);
                more
            });
            for half in halves {
                self.recent[usize::from(u16::from_le_bytes(*half))] += 1;
            }
        }
    }

    /// Adds the counts of other elements of the same dtype.
    ///
    /// # Panics
    ///
    /// If the dtypes differ.
    pub fn join(&mut self, other: &Self) {
        assert_eq!(self.dtype, other.dtype, "codes of two dtypes cannot be joined");
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        for (count, more) in self.counts.iter_mut().zip(&other.recent) {
            *count += u64::from(*more);
        }
    }

    /// Each code that there is, with its number and how often; the numbers are as [`decode`] has them.
    pub(crate) fn present(&self) -> impl Iterator<Item = (u16, f64, u64)> {
        let values = values(self.coded);
        let recent = self.recent.iter().copied().chain(std::iter::repeat(0));
        let counts =
            self.counts.iter().zip(recent).map(|(count, recent)| count + u64::from(recent));
        let codes = (0..=u16::MAX).zip(values).zip(counts);
        codes.filter(|(_, count)| *count > 0).map(|((code, value), count)| (code, value, count))
    }

    /// The numbers that are finite, in their order.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        let mut values: Vec<(f64, u64)> = self
            .present()
            .filter(|(_, value, _)| value.is_finite())
            // What is equal is one: −0 and 0.
            .map(|(_, value, count)| (value + 0.0, count))
            .collect();
        values.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        values.dedup_by(|(next, more), (value, count)| {
            let is_same = next.to_bits() == value.to_bits();
            if is_same {
                *count += *more;
            }
            is_same
        });
        let count = values.iter().map(|(_, count)| count).sum();
        Distribution { values, count, is_exact: self.is_exact() }
    }
}

/// The number of each code of a dtype of at most 16 bits.
fn values(dtype: Dtype) -> Vec<f64> {
    let codes = 1_u32 << dtype.bits();
    // A byte of its own for each, and what is smaller is packed.
    let bytes: Vec<u8> = match dtype.bits() {
        16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        8 => (0..=u8::MAX).collect(),
        4 => (0..8).map(|pair| (2 * pair) | ((2 * pair + 1) << 4)).collect(),
        _ => (0..16_u32)
            .flat_map(|four| {
                let codes = [0, 1, 2, 3].map(|place| (4 * four + place) << (6 * place));
                let [a, b, c, _] = codes.iter().sum::<u32>().to_le_bytes();
                [a, b, c]
            })
            .collect(),
    };
    let mut values = vec![0.0; codes as usize];
    // These are whole elements, and as many as there is room for.
    let _ = decode::to_f64(dtype, &bytes, &mut values);
    values
}

/// Adds what was counted recently.
fn settle(counts: &mut [u64], recent: &mut [u32]) {
    for (count, recent) in counts.iter_mut().zip(recent) {
        *count += u64::from(std::mem::take(recent));
    }
}

/// Counts bytes, and then the codes that each byte has.
fn count_bytes<const CODES: usize>(
    bytes: &[u8],
    counts: &mut [u64],
    codes: impl Fn(u8) -> [u8; CODES],
) {
    for bytes in bytes.chunks(1 << 30) {
        let mut tables = [[0_u32; 256]; TABLES];
        let (words, rest) = bytes.as_chunks::<TABLES>();
        for word in words {
            for (table, byte) in tables.iter_mut().zip(word) {
                table[usize::from(*byte)] += 1;
            }
        }
        for byte in rest {
            tables[0][usize::from(*byte)] += 1;
        }
        for byte in 0..=u8::MAX {
            let count = tables.iter().map(|table| u64::from(table[usize::from(byte)])).sum::<u64>();
            for code in codes(byte) {
                counts[usize::from(code)] += count;
            }
        }
    }
}

/// Numbers in their order, with how often there is each.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    values: Vec<(f64, u64)>,
    count: u64,
    is_exact: bool,
}

impl Distribution {
    /// How many numbers these are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether the numbers are those of the tensor, and not those of BF16 next to them.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The number that a share of all is not above, from 0 for the least to 1 for the largest; between two of them on
    /// the line from one to the other, as numpy's `quantile` has it unless told otherwise. None of no numbers.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is as exact as F64 can be"
    )]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        let rank = share.clamp(0.0, 1.0) * last as f64;
        let (below, between) = (rank.floor(), rank.fract());
        let [low, high] = [below as u64, (below as u64).saturating_add(1).min(last)]
            .map(|rank| self.at(rank).unwrap_or_default());
        // Not the difference times the part, which may be beyond F64.
        Some(if between == 0.0 { low } else { low * (1.0 - between) + high * between })
    }

    /// The number at a rank, from 0.
    fn at(&self, rank: u64) -> Option<f64> {
        let mut seen = 0;
        let mut values = self.values.iter();
        let found = values.find(|(_, count)| {
            seen += count;
            seen > rank
        });
        found.or(self.values.last()).map(|(value, _)| *value)
    }

    /// How many numbers are in each of so many bins of equal width between two bounds, both of which belong to a bin.
    /// Numbers outside are not counted.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a bin's number is small"
    )]
    pub fn histogram(&self, bins: usize, least: f64, largest: f64) -> Vec<u64> {
        let mut counts = vec![0; bins];
        // Halves: the whole width may be beyond F64.
        let width = largest / 2.0 - least / 2.0;
        for &(value, count) in &self.values {
            if value < least || value > largest || bins == 0 {
                continue;
            }
            let part = if width > 0.0 { (value / 2.0 - least / 2.0) / width } else { 0.0 };
            let bin = (part * bins as f64) as usize;
            counts[bin.min(bins - 1)] += count;
        }
        counts
    }

    /// The least and the largest number.
    #[must_use]
    pub fn bounds(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.values.first()?, self.values.last()?);
        Some((first.0, last.0))
    }
}
