//! What a checkpoint should not have: NaN, infinities, booleans that are neither 0 nor 1, tensors of one value.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::odd::Odd;
//!
//! let bytes: Vec<u8> = [1.0_f32, f32::NAN, f32::NAN].into_iter().flat_map(f32::to_le_bytes).collect();
//! let mut odd = Odd::new(Dtype::F32);
//! odd.add(&bytes)?;
//! assert_eq!((odd.nan().count, odd.nan().first), (2, Some(1)));
//! # Ok::<(), weigh_values::LengthError>(())
//! ```
//!
//! Most blocks have nothing of the kind, which one look at all of a block's bits shows; only the others are looked at
//! element by element. A NaN is told by its bits, so a signalling one counts.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]

use weigh_format::Dtype;

use crate::bits::Bits;
use crate::format::{Format, Special};
use crate::length::{LengthError, Unit};

/// Bytes of a block: a part of the nearest cache.
const BLOCK_BYTES: usize = 16 << 10;

/// How many elements of a kind there are, and which is the first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// How many.
    pub count: u64,
    /// The first, in the order of the file; the first element is 0. Of a complex number either part counts, and the
    /// index is that of the number.
    pub first: Option<u64>,
}

impl Found {
    fn see(&mut self, element: u64) {
        self.count += 1;
        self.first.get_or_insert(element);
    }

    /// The same elements, of which `before` others come first.
    fn after(self, before: u64) -> Self {
        Self { count: self.count, first: self.first.map(|first| first + before) }
    }

    fn join(&mut self, later: Self) {
        self.count += later.count;
        self.first = self.first.or(later.first);
    }
}

/// What is odd in the elements of a tensor, or of a part of it.
#[derive(Clone, Debug)]
pub struct Odd {
    dtype: Dtype,
    elements: u64,
    nan: Found,
    positive_infinity: Found,
    negative_infinity: Found,
    not_boolean: Found,
    /// The first element's bytes, and whether all others are the same.
    first: Option<([u8; 8], bool)>,
    positions: Positions,
}

/// The first elements that are not finite, up to some number.
#[derive(Clone, Debug, Default)]
struct Positions {
    most: usize,
    kept: Vec<u64>,
}

/// What an element is, where that is odd.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Nan,
    PositiveInfinity,
    NegativeInfinity,
}

impl Odd {
    /// No elements of this dtype.
    #[must_use]
    pub fn new(dtype: Dtype) -> Self {
        Self {
            dtype,
            elements: 0,
            nan: Found::default(),
            positive_infinity: Found::default(),
            negative_infinity: Found::default(),
            not_boolean: Found::default(),
            first: None,
            positions: Positions::default(),
        }
    }

    /// Keeps the indices of the first elements that are not finite, up to `most` of them.
    #[must_use]
    pub fn with_positions(mut self, most: usize) -> Self {
        self.positions.most = most;
        self
    }

    /// How many elements were looked at.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.elements
    }

    /// Those that are NaN.
    #[must_use]
    pub const fn nan(&self) -> Found {
        self.nan
    }

    /// Those that are positive infinity.
    #[must_use]
    pub const fn positive_infinity(&self) -> Found {
        self.positive_infinity
    }

    /// Those that are negative infinity.
    #[must_use]
    pub const fn negative_infinity(&self) -> Found {
        self.negative_infinity
    }

    /// Of BOOL, the bytes that are neither 0 nor 1.
    #[must_use]
    pub const fn not_boolean(&self) -> Found {
        self.not_boolean
    }

    /// Whether there are two elements at least, and all have the same bits.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.elements > 1 && self.first.is_some_and(|(_, is_constant)| is_constant)
    }

    /// Whether there are elements, and all bits are 0. Not of `F8_E8M0`, whose zero bits are a number.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.elements > 0 && self.dtype != Dtype::F8_E8M0 && self.first == Some(([0; 8], true))
    }

    /// The indices that [`Self::with_positions`] asked for.
    #[must_use]
    pub fn positions(&self) -> &[u64] {
        &self.positions.kept
    }

    /// Looks at little-endian elements, at any alignment, that follow those looked at before.
    ///
    /// # Errors
    ///
    /// [`LengthError::NotUnits`] if these are not whole elements, or end inside a group of four 6-bit ones.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), LengthError> {
        // Of a unit of the dtype so many elements.
        let elements = Unit::of(self.dtype, 1).target(bytes.len())? as u64;
        self.compare_with_first(bytes);
        match (self.dtype, Format::of(self.dtype)) {
            (Dtype::C64, _) => self.floats::<i32, 4>(bytes, 2),
            (Dtype::F64, _) => self.floats::<i64, 8>(bytes, 1),
            (Dtype::F32, _) => self.floats::<i32, 4>(bytes, 1),
            (Dtype::F16 | Dtype::BF16, _) => self.floats::<i16, 2>(bytes, 1),
            (Dtype::F8_E8M0, _) => self.small(bytes, |byte| byte == 0xff),
            (_, Some(format)) => match format.special {
                Special::None => {}
                Special::AllOnes => self.small(bytes, |byte| byte & 0x7f == 0x7f),
                Special::TopExponent => self.small(bytes, |byte| byte & 0x7f >= 0x7c),
                Special::NegativeZero => self.small(bytes, |byte| byte == 0x80),
            },
            (Dtype::BOOL, _) => self.booleans(bytes),
            _ => {}
        }
        self.elements += elements;
        Ok(())
    }

    /// What is odd in both, these elements being followed by the others.
    ///
    /// # Panics
    ///
    /// If the dtypes differ.
    pub fn join(&mut self, later: &Self) {
        assert_eq!(self.dtype, later.dtype, "parts of a tensor have one dtype");
        let before = self.elements;
        for (ours, theirs) in [
            (&mut self.nan, later.nan),
            (&mut self.positive_infinity, later.positive_infinity),
            (&mut self.negative_infinity, later.negative_infinity),
            (&mut self.not_boolean, later.not_boolean),
        ] {
            ours.join(theirs.after(before));
        }
        self.first = match (self.first, later.first) {
            (Some((ours, is_same)), Some((theirs, are_same))) => {
                Some((ours, is_same && are_same && ours == theirs))
            }
            (ours, theirs) => ours.or(theirs),
        };
        let room = self.positions.most.saturating_sub(self.positions.kept.len());
        let more = later.positions.kept.iter().take(room).map(|position| position + before);
        self.positions.kept.extend(more);
        self.elements += later.elements;
    }

    fn compare_with_first(&mut self, bytes: &[u8]) {
        // Two of four bits, or four of six, are compared as one: constant if all such groups are.
        let width = match self.dtype.bits() {
            4 => 1,
            6 => 3,
            bits => bits as usize / 8,
        };
        let Some(head) = bytes.get(..width) else { return };
        let (first, is_constant) = self.first.get_or_insert_with(|| {
            let mut first = [0; 8];
            first[..width].copy_from_slice(head);
            (first, is_repeated(self.dtype, head))
        });
        if *is_constant {
            // Equal to the first one, and each equal to the one before: no element is taken apart.
            *is_constant =
                first[..width] == *head && bytes[width..] == bytes[..bytes.len() - width];
        }
    }

    fn see(&mut self, element: u64, kind: Kind) {
        match kind {
            Kind::Nan => self.nan.see(element),
            Kind::PositiveInfinity => self.positive_infinity.see(element),
            Kind::NegativeInfinity => self.negative_infinity.see(element),
        }
        let Positions { most, kept } = &mut self.positions;
        if kept.len() < *most && kept.last() != Some(&element) {
            kept.push(element);
        }
    }

    /// Floats of 16 bits or more, of which so many are an element.
    fn floats<T: Bits<BYTES>, const BYTES: usize>(&mut self, bytes: &[u8], parts: u64) {
        let infinity = T::of_le_bytes(infinity(self.dtype));
        let mut number = self.elements * parts;
        for block in bytes.chunks(BLOCK_BYTES) {
            let (floats, _) = block.as_chunks::<BYTES>();
            if largest::<T, BYTES>(floats) >= infinity {
                for (float, number) in floats.iter().zip(number..) {
                    let bits = T::of_le_bytes(*float);
                    let magnitude = bits.magnitude();
                    if magnitude >= infinity {
                        let kind = if magnitude > infinity {
                            Kind::Nan
                        } else if bits < T::default() {
                            Kind::NegativeInfinity
                        } else {
                            Kind::PositiveInfinity
                        };
                        self.see(number / parts, kind);
                    }
                }
            }
            number += floats.len() as u64;
        }
    }

    /// Floats of a byte each.
    #[inline(always)]
    fn small(&mut self, bytes: &[u8], is_special: impl Fn(u8) -> bool + Copy) {
        each_such(bytes, self.elements, is_special, |element, byte| {
            let kind = match (self.dtype, byte) {
                (Dtype::F8_E5M2, 0x7c) => Kind::PositiveInfinity,
                (Dtype::F8_E5M2, 0xfc) => Kind::NegativeInfinity,
                _ => Kind::Nan,
            };
            self.see(element, kind);
        });
    }

    fn booleans(&mut self, bytes: &[u8]) {
        let see = |element, _| self.not_boolean.see(element);
        each_such(bytes, self.elements, |byte| byte > 1, see);
    }
}

/// Hands over the bytes that are such, each with its number; the first of all has the number `element`.
#[inline(always)]
fn each_such(
    bytes: &[u8],
    mut element: u64,
    is_such: impl Fn(u8) -> bool + Copy,
    mut see: impl FnMut(u64, u8),
) {
    for block in bytes.chunks(BLOCK_BYTES) {
        if any(block, is_such) {
            for (&byte, element) in block.iter().zip(element..) {
                if is_such(byte) {
                    see(element, byte);
                }
            }
        }
        element += block.len() as u64;
    }
}

/// Whether the elements of a group are the same.
fn is_repeated(dtype: Dtype, group: &[u8]) -> bool {
    match (dtype.bits(), group) {
        (4, &[pair]) => pair & 15 == pair >> 4,
        (6, &[a, b, c]) => {
            let code = a & 63;
            [code | (code << 6), (code >> 2) | (code << 4), (code >> 4) | (code << 2)] == [a, b, c]
        }
        _ => true,
    }
}

/// The bits of positive infinity of a float dtype of at least 16 bits.
fn infinity<const BYTES: usize>(dtype: Dtype) -> [u8; BYTES] {
    let format = Format::of(dtype).unwrap_or(Format::F64);
    let bits = (format.largest() + 1).to_le_bytes();
    let mut infinity = [0; BYTES];
    infinity.copy_from_slice(&bits[..BYTES]);
    infinity
}

/// The largest magnitude.
#[inline(always)]
fn largest<T: Bits<BYTES>, const BYTES: usize>(floats: &[[u8; BYTES]]) -> T {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let magnitudes = floats.iter().map(|float| T::of_le_bytes(*float).magnitude());
            magnitudes.fold(T::default(), Ord::max)
        },
    )
}

/// Whether there is such a byte.
#[inline(always)]
fn any(bytes: &[u8], is_such: impl Fn(u8) -> bool) -> bool {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || bytes.iter().fold(false, |any, &byte| any | is_such(byte)),
    )
}
