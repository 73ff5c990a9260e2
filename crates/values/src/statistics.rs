//! What the elements of a tensor come to: extremes, mean, deviation, and what there is how often.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::statistics::Statistics;
//!
//! let bytes: Vec<u8> = [1.0_f32, -3.0, f32::NAN, 0.0].into_iter().flat_map(f32::to_le_bytes).collect();
//! let mut statistics = Statistics::new(Dtype::F32);
//! statistics.add(&bytes)?;
//! let summary = statistics.summary();
//! assert_eq!((summary.numbers, summary.nan, summary.zeros), (4, 1, 1));
//! assert_eq!(summary.bounds.map(|(least, largest)| (least.to_f64(), largest.to_f64())), Some((-3.0, 1.0)));
//! assert_eq!(summary.moments.mean(), -2.0 / 3.0);
//! # Ok::<(), weigh_values::LengthError>(())
//! ```
//!
//! Numbers that are not finite are counted, and belong to nothing else: extremes, mean and deviation are those of the
//! finite ones. A complex number counts as two, its parts. A boolean is 0 or 1, a byte above 1 too. −0 is a 0.
//!
//! Of a dtype of at most 8 bits everything follows from how often there is each code. How sums are made of wider ones,
//! and how exact they are, [`crate::Moments`] says.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]
#![expect(clippy::needless_bitwise_bool, reason = "a branch in a loop would keep it scalar")]

use weigh_format::Dtype;

use crate::bits::Bits;
use crate::codes::Codes;
use crate::decode;
use crate::format::{Format, Integers};
use crate::kernel::sum;
use crate::length::{LengthError, Unit};
use crate::moments::Moments;
use crate::number::Number;

/// Decodes elements to numbers.
type Decode<F> = fn(Dtype, &[u8], &mut [F]) -> Result<(), LengthError>;

/// Numbers of a block: with what they are decoded to, they stay in the nearest cache.
const BLOCK: usize = 2048;

/// The elements of a tensor, or of a part of it, as far as they were added.
#[derive(Clone, Debug)]
pub struct Statistics {
    dtype: Dtype,
    /// Of dtypes of at most 8 bits, instead of the rest.
    codes: Option<Codes>,
    summary: Summary,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// All numbers, of a complex element two.
    pub numbers: u64,
    /// Those that are NaN.
    pub nan: u64,
    /// Those that are positive infinity.
    pub positive_infinity: u64,
    /// Those that are negative infinity.
    pub negative_infinity: u64,
    /// Those that are 0 or −0.
    pub zeros: u64,
    /// Those that are nearer to 0 than a float of full precision can be, and not 0.
    pub subnormals: u64,
    /// The least and the largest that is finite.
    pub bounds: Option<(Number, Number)>,
    /// How many are finite, their mean and their deviation.
    pub moments: Moments,
    /// How many different numbers there are, one for all NaNs; of dtypes of at most 8 bits, unless several tensors
    /// were joined.
    pub distinct: Option<u64>,
}

impl Summary {
    /// The largest distance from 0 of what is finite.
    #[must_use]
    pub fn largest_magnitude(&self) -> Option<Number> {
        let (least, largest) = self.bounds?;
        let [least, largest] = [least, largest].map(Number::magnitude);
        Some(if least.total_cmp(largest).is_gt() { least } else { largest })
    }

    /// What there is in both.
    pub fn join(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.nan += other.nan;
        self.positive_infinity += other.positive_infinity;
        self.negative_infinity += other.negative_infinity;
        self.zeros += other.zeros;
        self.subnormals += other.subnormals;
        if let Some((least, largest)) = other.bounds {
            self.widen(least, largest);
        }
        self.moments.join(&other.moments);
        self.distinct = None;
    }

    fn widen(&mut self, least: Number, largest: Number) {
        let (old_least, old_largest) = self.bounds.unwrap_or((least, largest));
        let least = if least.total_cmp(old_least).is_lt() { least } else { old_least };
        let largest = if largest.total_cmp(old_largest).is_gt() { largest } else { old_largest };
        self.bounds = Some((least, largest));
    }
}

impl Statistics {
    /// No elements of this dtype.
    #[must_use]
    pub fn new(dtype: Dtype) -> Self {
        let codes = (dtype.bits() <= 8).then(|| Codes::new(dtype));
        Self { dtype, codes, summary: Summary::default() }
    }

    /// Adds little-endian elements, at any alignment.
    ///
    /// # Errors
    ///
    /// [`LengthError::NotUnits`] if these are not whole elements, or end inside a group of four 6-bit ones.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), LengthError> {
        if let Some(codes) = &mut self.codes {
            return codes.add(bytes);
        }
        Unit::of(self.dtype, 1).target(bytes.len())?;
        match self.dtype {
            Dtype::F16 | Dtype::BF16 => self.floats::<i16, 2, f32>(bytes, decode::to_f32),
            Dtype::F64 => self.floats::<i64, 8, f64>(bytes, decode::to_f64),
            Dtype::I16 => self.integers(bytes, i16::from_le_bytes),
            Dtype::U16 => self.integers(bytes, u16::from_le_bytes),
            Dtype::I32 => self.integers(bytes, i32::from_le_bytes),
            Dtype::U32 => self.integers(bytes, u32::from_le_bytes),
            Dtype::I64 => self.integers(bytes, i64::from_le_bytes),
            Dtype::U64 => self.integers(bytes, u64::from_le_bytes),
            // F32, and the parts of C64.
            _ => self.floats::<i32, 4, f32>(bytes, decode::to_f32),
        }
        Ok(())
    }

    /// Adds the elements of another part of the tensor. In which order parts are joined tells in the last digits of the
    /// mean and the deviation, and nowhere else.
    ///
    /// # Panics
    ///
    /// If the dtypes differ.
    pub fn join(&mut self, other: &Self) {
        assert_eq!(self.dtype, other.dtype, "parts of a tensor have one dtype");
        match (&mut self.codes, &other.codes) {
            (Some(codes), Some(more)) => codes.join(more),
            _ => self.summary.join(&other.summary),
        }
    }

    /// What there is so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.codes.as_ref().map_or_else(|| self.summary.clone(), of_codes)
    }

    fn floats<T: Bits<BYTES>, const BYTES: usize, F: Copy + Default + Into<f64>>(
        &mut self,
        bytes: &[u8],
        decode: Decode<F>,
    ) {
        let part = if self.dtype == Dtype::C64 { Dtype::F32 } else { self.dtype };
        let format = Format::of(part).unwrap_or(Format::F64);
        let of_bits = |bits: u64| {
            let mut element = [0; BYTES];
            element.copy_from_slice(&bits.to_le_bytes()[..BYTES]);
            T::of_le_bytes(element)
        };
        let infinity = of_bits(format.largest() + 1);
        let normal = of_bits(1 << format.mantissa);
        let mut decoded = [F::default(); BLOCK];
        let value = |bits: T| {
            let mut value = [0.0];
            // One element, and room for one.
            let _ = decode::to_f64(part, &bits.to_le_bytes(), &mut value);
            Number::Float(value[0] + 0.0)
        };
        for block in bytes.chunks(BLOCK * BYTES) {
            let (floats, _) = block.as_chunks::<BYTES>();
            let numbers = &mut decoded[..floats.len()];
            // As many numbers as there is room for.
            let _ = decode(part, block, numbers);
            let mut look = Look::at(floats, |_: T| true);
            let mut finite = floats.len();
            if look.largest >= infinity {
                let [above, negative, nan] = not_finite::<T, BYTES>(block, infinity);
                self.summary.nan += nan;
                self.summary.positive_infinity += above;
                self.summary.negative_infinity += negative;
                look = Look::at(floats, |magnitude| magnitude < infinity);
                finite = keep(numbers, |number| number.into().is_finite());
            }
            if finite > 0 {
                if look.smallest < normal {
                    let [zeros, subnormals] = below::<T, BYTES>(block, normal);
                    self.summary.zeros += zeros;
                    self.summary.subnormals += subnormals;
                }
                self.summary.widen(value(look.low.key()), value(look.high.key()));
                self.summary.moments.join(&Moments::of(&numbers[..finite]));
            }
            self.summary.numbers += floats.len() as u64;
        }
    }

    fn integers<const BYTES: usize, T: Copy + Ord + Default + Into<i128> + Send + Sync>(
        &mut self,
        bytes: &[u8],
        of: impl Fn([u8; BYTES]) -> T + Copy,
    ) {
        let mut decoded = [0.0; BLOCK];
        for block in bytes.chunks(BLOCK * BYTES) {
            let (integers, _) = block.as_chunks::<BYTES>();
            let Some(first) = integers.first() else { continue };
            let numbers = &mut decoded[..integers.len()];
            // As many numbers as there is room for.
            let _ = decode::to_f64(self.dtype, block, numbers);
            let [least, largest] = extremes(integers, of(*first), of);
            let [zeros, ..] = sum(
                block,
                #[inline(always)]
                move |bytes| [u32::from(of(bytes) == T::default()), 0, 0],
            );
            self.summary.zeros += u64::from(zeros);
            self.summary.widen(Number::Integer(least.into()), Number::Integer(largest.into()));
            self.summary.moments.join(&Moments::of(numbers));
            self.summary.numbers += integers.len() as u64;
        }
    }
}

/// The extremes of a block of floats, as bits.
#[derive(Clone, Copy)]
struct Look<T> {
    /// Keys, in the order of the floats.
    low: T,
    high: T,
    /// Magnitudes.
    smallest: T,
    largest: T,
}

impl<T> Look<T> {
    /// Those of the floats whose magnitude is meant.
    #[inline(always)]
    fn at<const BYTES: usize>(floats: &[[u8; BYTES]], is_meant: impl Fn(T) -> bool) -> Self
    where
        T: Bits<BYTES>,
    {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            move || {
                let mut look = Self::none();
                for float in floats {
                    let bits = T::of_le_bytes(*float);
                    let is_meant = is_meant(bits.magnitude());
                    let or = |value, other| if is_meant { value } else { other };
                    look.low = look.low.min(or(bits.key(), T::MOST));
                    look.high = look.high.max(or(bits.key(), T::LEAST));
                    look.smallest = look.smallest.min(or(bits.magnitude(), T::MOST));
                    look.largest = look.largest.max(or(bits.magnitude(), T::default()));
                }
                look
            },
        )
    }

    fn none<const BYTES: usize>() -> Self
    where
        T: Bits<BYTES>,
    {
        Self { low: T::MOST, high: T::LEAST, smallest: T::MOST, largest: T::default() }
    }
}

/// How many floats of a block are positive infinity, negative infinity and NaN.
fn not_finite<T: Bits<BYTES>, const BYTES: usize>(block: &[u8], infinity: T) -> [u64; 3] {
    let counts = sum(
        block,
        #[inline(always)]
        move |bytes| {
            let bits = T::of_le_bytes(bytes);
            let (magnitude, is_negative) = (bits.magnitude(), bits < T::default());
            let is_infinite = magnitude == infinity;
            [is_infinite & !is_negative, is_infinite & is_negative, magnitude > infinity]
                .map(T::Count::from)
        },
    );
    counts.map(Into::into)
}

/// How many floats of a block are 0, and how many are smaller than the smallest normal one otherwise.
fn below<T: Bits<BYTES>, const BYTES: usize>(block: &[u8], normal: T) -> [u64; 2] {
    let [zeros, subnormals, _] = sum(
        block,
        #[inline(always)]
        move |bytes| {
            let magnitude = T::of_le_bytes(bytes).magnitude();
            let is_zero = magnitude == T::default();
            [is_zero, (magnitude < normal) & !is_zero, false].map(T::Count::from)
        },
    );
    [zeros.into(), subnormals.into()]
}

/// Moves those that are kept to the front, and says how many there are.
fn keep<T: Copy>(numbers: &mut [T], is_kept: impl Fn(T) -> bool) -> usize {
    let mut kept = 0;
    for at in 0..numbers.len() {
        let number = numbers[at];
        // Written in any case: a branch would be mispredicted.
        numbers[kept] = number;
        kept += usize::from(is_kept(number));
    }
    kept
}

#[inline(always)]
fn extremes<const BYTES: usize, T: Copy + Ord + Send + Sync>(
    integers: &[[u8; BYTES]],
    first: T,
    of: impl Fn([u8; BYTES]) -> T,
) -> [T; 2] {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let [mut least, mut largest] = [first; 2];
            for integer in integers {
                least = least.min(of(*integer));
                largest = largest.max(of(*integer));
            }
            [least, largest]
        },
    )
}

/// What there is, from how often there is each code.
fn of_codes(codes: &Codes) -> Summary {
    let mut summary = Summary::default();
    let dtype = codes.dtype();
    let (format, are_integers) = (Format::of(dtype), Integers::of(dtype).is_some());
    let mut numbers: Vec<f64> = Vec::new();
    for (code, value, count) in codes.present() {
        summary.numbers += count;
        numbers.push(if value.is_nan() { f64::NAN } else { value + 0.0 });
        if value.is_nan() {
            summary.nan += count;
        } else if value == f64::INFINITY {
            summary.positive_infinity += count;
        } else if value == f64::NEG_INFINITY {
            summary.negative_infinity += count;
        } else {
            let number = if are_integers { integer(value) } else { Number::Float(value + 0.0) };
            summary.widen(number, number);
            summary.moments.join(&Moments::of_repeated(value, count));
        }
        if value == 0.0 {
            summary.zeros += count;
        } else if let Some(format) = format {
            let magnitude = code & ((1 << (format.exponent + format.mantissa)) - 1);
            // What would be −0 is NaN in some.
            if magnitude < 1 << format.mantissa && !value.is_nan() {
                summary.subnormals += count;
            }
        }
    }
    numbers.sort_by(f64::total_cmp);
    numbers.dedup_by(|next, number| next.to_bits() == number.to_bits());
    summary.distinct = Some(numbers.len() as u64);
    summary
}

/// A number of an integer dtype of at most 8 bits.
#[expect(clippy::cast_possible_truncation, reason = "of at most 8 bits")]
fn integer(value: f64) -> Number {
    Number::Integer(i128::from(value as i64))
}
