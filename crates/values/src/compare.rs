//! How far the numbers of two tensors of one shape are apart, whatever their dtypes.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::compare::{Comparison, Tolerance};
//!
//! let left: Vec<u8> = [1.0_f32, 2.0].into_iter().flat_map(f32::to_le_bytes).collect();
//! let right = [0x80, 0x3f, 0x20, 0x40];
//! let mut comparison = Comparison::new(Dtype::F32, Dtype::BF16, Tolerance::default());
//! comparison.add(&left, &right)?;
//! assert_eq!(comparison.differing(), 1);
//! assert_eq!(comparison.largest(), Some((0.5, 1)));
//! # Ok::<(), weigh_values::CompareError>(())
//! ```
//!
//! Numbers are compared as F64, which has those of every dtype but 64-bit integers; of two of those the difference is
//! exact. Two NaNs are the same, and so are two infinities of one sign, and −0 and 0; a number that is not finite and
//! any other differ, by infinity. Only pairs of finite numbers are in sums, that is in the relative distance and the
//! cosine. A complex number is two numbers.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]

use std::fmt;

use weigh_format::Dtype;

use crate::decode;
use crate::length::{LengthError, Unit};

/// Numbers of a block, of each side: both and their differences stay in the nearest cache.
const BLOCK: usize = 1024;

/// Accumulators side by side: a vector of AVX2 each, of which there are sixteen.
const LANES: usize = 4;

/// How far apart numbers may be that count as close: `absolute + relative * |right|`, as numpy's `isclose` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "two numbers and nothing more")]
pub struct Tolerance {
    /// A part of the magnitude of the right number.
    pub relative: f64,
    /// A distance.
    pub absolute: f64,
}

/// Two tensors, or a part of them, as far as they were added.
#[derive(Clone, Debug)]
pub struct Comparison {
    left: Dtype,
    right: Dtype,
    tolerance: Tolerance,
    is_identical: bool,
    numbers: u64,
    differing: u64,
    beyond: u64,
    first: Option<u64>,
    largest: Option<(f64, u64)>,
    largest_relative: f64,
    nan: [u64; 3],
    sums: Sums,
}

/// Sums over pairs of finite numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    difference: f64,
    left: f64,
    right: f64,
    both: f64,
}

/// What one look at a block of pairs of finite numbers shows.
#[derive(Clone, Copy, Default)]
struct Look {
    largest: f64,
    relative: f64,
    differing: u64,
    beyond: u64,
}

impl Comparison {
    /// No elements of these dtypes.
    #[must_use]
    pub fn new(left: Dtype, right: Dtype, tolerance: Tolerance) -> Self {
        Self {
            left,
            right,
            tolerance,
            is_identical: left == right,
            numbers: 0,
            differing: 0,
            beyond: 0,
            first: None,
            largest: None,
            largest_relative: 0.0,
            nan: [0; 3],
            sums: Sums::default(),
        }
    }

    /// Whether both have one dtype, and all bytes are equal.
    #[must_use]
    pub const fn is_identical(&self) -> bool {
        self.is_identical
    }

    /// How many pairs of numbers were compared, of a complex element two.
    #[must_use]
    pub const fn numbers(&self) -> u64 {
        self.numbers
    }

    /// How many pairs differ.
    #[must_use]
    pub const fn differing(&self) -> u64 {
        self.differing
    }

    /// How many pairs differ by more than the tolerance.
    #[must_use]
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The first element that differs, in the order of the file.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.first.map(|number| self.element(number))
    }

    /// The largest distance of two numbers, and the first element that has it: infinite if one of the two is not
    /// finite. None if nothing differs.
    #[must_use]
    pub fn largest(&self) -> Option<(f64, u64)> {
        self.largest.map(|(distance, number)| (distance, self.element(number)))
    }

    /// The largest distance of two finite numbers as a part of the larger magnitude of the two: from 0 to 2.
    #[must_use]
    pub const fn largest_relative(&self) -> f64 {
        self.largest_relative
    }

    /// How many pairs are NaN on the left alone, on the right alone, and on both sides.
    #[must_use]
    pub const fn nan(&self) -> [u64; 3] {
        self.nan
    }

    /// The root of the sum of squares of the differences, as a part of that of the left numbers: infinite if these are
    /// all 0 and the others are not.
    #[must_use]
    pub fn relative_distance(&self) -> f64 {
        let Sums { difference, left, .. } = self.sums;
        if difference == 0.0 { 0.0 } else { difference.sqrt() / left.sqrt() }
    }

    /// The cosine of the angle between the two: 1 for the same direction. None if one is all 0, or too large.
    #[must_use]
    pub fn cosine(&self) -> Option<f64> {
        let Sums { left, right, both, .. } = self.sums;
        let cosine = both / left.sqrt() / right.sqrt();
        // Rounding may have it a little outside.
        cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0))
    }

    /// The sums of squares of the differences and of the left numbers, for a distance of several tensors together.
    #[must_use]
    pub const fn squares(&self) -> (f64, f64) {
        (self.sums.difference, self.sums.left)
    }

    fn element(&self, number: u64) -> u64 {
        number / numbers_of(self.left)
    }

    /// Compares little-endian elements, at any alignment.
    ///
    /// # Errors
    ///
    /// - [`CompareError::Length`] if one side is not whole elements, or ends inside a group of four 6-bit ones.
    /// - [`CompareError::Counts`] if there are more elements on one side, or only one is complex.
    pub fn add(&mut self, left: &[u8], right: &[u8]) -> Result<(), CompareError> {
        let [left_numbers, right_numbers] =
            [decode::count(self.left, left.len())?, decode::count(self.right, right.len())?];
        if left_numbers != right_numbers || numbers_of(self.left) != numbers_of(self.right) {
            return Err(CompareError::Counts { left: left_numbers, right: right_numbers });
        }
        let [left_bytes, right_bytes] = [self.left, self.right].map(block_bytes);
        let mut buffers = Buffers::default();
        for (left, right) in left.chunks(left_bytes).zip(right.chunks(right_bytes)) {
            self.block(left, right, &mut buffers)?;
        }
        Ok(())
    }

    /// Adds what was found in elements that follow these.
    ///
    /// # Panics
    ///
    /// If the dtypes differ.
    pub fn join(&mut self, later: &Self) {
        assert_eq!((self.left, self.right), (later.left, later.right), "parts have one dtype");
        let before = self.numbers;
        self.is_identical &= later.is_identical;
        self.numbers += later.numbers;
        self.differing += later.differing;
        self.beyond += later.beyond;
        self.first = self.first.or(later.first.map(|number| number + before));
        if let Some((distance, number)) = later.largest {
            self.see(distance, number + before);
        }
        self.largest_relative = self.largest_relative.max(later.largest_relative);
        for (count, more) in self.nan.iter_mut().zip(later.nan) {
            *count += more;
        }
        self.sums.join(later.sums);
    }

    fn block(&mut self, left: &[u8], right: &[u8], to: &mut Buffers) -> Result<(), LengthError> {
        let count = decode::count(self.left, left.len())?;
        let is_same = self.left == self.right && left == right;
        self.is_identical &= is_same;
        let (a, b) = (&mut to.left[..count], &mut to.right[..count]);
        decode::to_f64(self.left, left, a)?;
        if is_same {
            b.copy_from_slice(a);
        } else {
            decode::to_f64(self.right, right, b)?;
        }
        let apart = &mut to.apart[..count];
        let is_whole = |dtype| matches!(dtype, Dtype::I64 | Dtype::U64);
        if is_same && is_whole(self.left) {
            apart.fill(0.0);
        } else if is_whole(self.left) && is_whole(self.right) {
            whole_differences((self.left, left), (self.right, right), apart);
        } else if !subtract(a, b, apart) {
            self.set_aside(a, b, apart);
        }
        self.sums.join(Sums::of(a, b, apart));
        // Most that do not differ are the same.
        let look = if is_same { Look::default() } else { Look::at(a, b, apart, self.tolerance) };
        if look.largest > 0.0 {
            self.differing += look.differing;
            self.beyond += look.beyond;
            self.largest_relative = self.largest_relative.max(look.relative);
            let numbers = self.numbers..;
            let mut pairs = apart.iter().map(|apart| apart.abs()).zip(numbers);
            if self.largest.is_none_or(|(distance, _)| distance < look.largest) {
                let found = pairs.clone().find(|(apart, _)| *apart >= look.largest);
                self.see(look.largest, found.map_or(self.numbers, |(_, number)| number));
            }
            if let Some((_, number)) = pairs.find(|(apart, _)| *apart > 0.0) {
                let first = self.first.unwrap_or(number);
                self.first = Some(first.min(number));
            }
        }
        self.numbers += count as u64;
        Ok(())
    }

    /// Takes pairs out of a block that have a number which is not finite, and counts them.
    fn set_aside(&mut self, left: &mut [f64], right: &mut [f64], apart: &mut [f64]) {
        let pairs = left.iter_mut().zip(right).zip(apart);
        for (((a, b), apart), number) in pairs.zip(self.numbers..) {
            if a.is_finite() && b.is_finite() {
                continue;
            }
            match [a.is_nan(), b.is_nan()] {
                [true, false] => self.nan[0] += 1,
                [false, true] => self.nan[1] += 1,
                [true, true] => self.nan[2] += 1,
                [false, false] => {}
            }
            // At least one of the two is not finite: two that are equal are infinite.
            let is_same = a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits();
            if !is_same {
                self.differing += 1;
                self.beyond += 1;
                self.first = Some(self.first.map_or(number, |first| first.min(number)));
                self.see(f64::INFINITY, number);
            }
            (*a, *b, *apart) = (0.0, 0.0, 0.0);
        }
    }

    /// Keeps the largest distance, and of those that are the same the first.
    fn see(&mut self, distance: f64, number: u64) {
        if self.largest.is_none_or(|(largest, _)| distance > largest) {
            self.largest = Some((distance, number));
        }
    }
}

/// Numbers of a block.
struct Buffers {
    left: [f64; BLOCK],
    right: [f64; BLOCK],
    apart: [f64; BLOCK],
}

impl Default for Buffers {
    fn default() -> Self {
        Self { left: [0.0; BLOCK], right: [0.0; BLOCK], apart: [0.0; BLOCK] }
    }
}

/// How many numbers an element is.
fn numbers_of(dtype: Dtype) -> u64 {
    if dtype == Dtype::C64 { 2 } else { 1 }
}

/// Bytes of the elements of a block.
fn block_bytes(dtype: Dtype) -> usize {
    let numbers = if dtype == Dtype::C64 { 2 } else { 1 };
    let unit = Unit::of(dtype, numbers);
    BLOCK / unit.to_bytes * unit.from_bytes
}

/// The differences; whether all of them, and so all numbers, are finite.
#[inline(always)]
fn subtract(left: &[f64], right: &[f64], apart: &mut [f64]) -> bool {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let mut are_finite = true;
            for ((a, b), apart) in left.iter().zip(right).zip(apart) {
                *apart = a - b;
                are_finite &= (a.abs() < f64::INFINITY) & (b.abs() < f64::INFINITY);
            }
            are_finite
        },
    )
}

/// The differences of 64-bit integers, which F64 has not.
fn whole_differences(left: (Dtype, &[u8]), right: (Dtype, &[u8]), apart: &mut [f64]) {
    let of = |dtype, bytes: &[u8; 8]| {
        if dtype == Dtype::U64 {
            i128::from(u64::from_le_bytes(*bytes))
        } else {
            i128::from(i64::from_le_bytes(*bytes))
        }
    };
    let (a, b) = (left.1.as_chunks::<8>().0, right.1.as_chunks::<8>().0);
    for ((a, b), apart) in a.iter().zip(b).zip(apart) {
        #[expect(clippy::cast_precision_loss, reason = "rounded once, and never to 0")]
        let difference = (of(left.0, a) - of(right.0, b)) as f64;
        *apart = difference;
    }
}

impl Sums {
    fn join(&mut self, other: Self) {
        self.difference += other.difference;
        self.left += other.left;
        self.right += other.right;
        self.both += other.both;
    }
}

impl Sums {
    #[inline(always)]
    fn of(left: &[f64], right: &[f64], apart: &[f64]) -> Self {
        let (a, rest_a) = left.as_chunks::<LANES>();
        let (b, rest_b) = right.as_chunks::<LANES>();
        let (d, rest_d) = apart.as_chunks::<LANES>();
        // Pairs of zeros add nothing.
        let last = [rest_a, rest_b, rest_d].map(|rest| {
            let mut lanes = [0.0; LANES];
            lanes[..rest.len()].copy_from_slice(rest);
            lanes
        });
        pulp::Arch::new().dispatch(
            #[inline(always)]
            move || {
                let mut sums = [[0.0; LANES]; 4];
                for ((a, b), d) in a.iter().zip(b).zip(d) {
                    add_products(&mut sums, a, b, d);
                }
                add_products(&mut sums, &last[0], &last[1], &last[2]);
                let [difference, left, right, both] =
                    sums.map(|lanes| lanes.iter().fold(0.0, |sum, lane| sum + lane));
                Self { difference, left, right, both }
            },
        )
    }
}

#[inline(always)]
fn add_products(
    [difference, left, right, both]: &mut [[f64; LANES]; 4],
    a: &[f64; LANES],
    b: &[f64; LANES],
    d: &[f64; LANES],
) {
    for lane in 0..LANES {
        difference[lane] += d[lane] * d[lane];
        left[lane] += a[lane] * a[lane];
        right[lane] += b[lane] * b[lane];
        both[lane] += a[lane] * b[lane];
    }
}

impl Look {
    /// Largest distances are found as bits, in the order of which floats without a sign are: integers may be compared
    /// in any order, floats may not.
    #[inline(always)]
    fn at(left: &[f64], right: &[f64], apart: &[f64], tolerance: Tolerance) -> Self {
        let Tolerance { relative, absolute } = tolerance;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            move || {
                let [mut largest, mut largest_part] = [0_i64; 2];
                let [mut differing, mut beyond] = [0_u64; 2];
                for ((a, b), d) in left.iter().zip(right).zip(apart) {
                    let (a, b, distance) = (a.abs(), b.abs(), d.abs());
                    let scale = if a > b { a } else { b };
                    // Not 0 / 0, which is NaN.
                    let part = distance / (scale + f64::MIN_POSITIVE);
                    largest = largest.max(distance.to_bits().cast_signed());
                    largest_part = largest_part.max(part.to_bits().cast_signed());
                    differing += u64::from(distance > 0.0);
                    beyond += u64::from(distance > absolute + relative * b);
                }
                let [largest, relative] =
                    [largest, largest_part].map(|bits| f64::from_bits(bits.cast_unsigned()));
                Self { largest, relative, differing, beyond }
            },
        )
    }
}

/// Why elements were not compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CompareError {
    /// A side is not whole elements.
    Length(LengthError),
    /// There are not as many numbers on both sides.
    Counts {
        /// Numbers on the left.
        left: usize,
        /// Numbers on the right.
        right: usize,
    },
}

impl From<LengthError> for CompareError {
    fn from(error: LengthError) -> Self {
        Self::Length(error)
    }
}

impl CompareError {
    /// The stable code of what is wrong.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Length(error) => error.code(),
            Self::Counts { .. } => "compare-counts",
        }
    }
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(error) => error.fmt(f),
            Self::Counts { left, right } => {
                write!(f, "{left} numbers cannot be compared with {right}")
            }
        }
    }
}

impl std::error::Error for CompareError {}
