//! What of a source is outside the range of a target: counted, and on request clamped.
//!
//! Both look at values before they are rounded. As every target rounds to nearest, what becomes
//! of a number follows from its magnitude alone, which is compared as the bits it has.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]
#![expect(clippy::needless_bitwise_bool, reason = "a branch in a loop would keep it scalar")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of a block, and shifted bits")]

use weigh_format::Dtype;

use crate::bits::Bits;
use crate::float;
use crate::format::{Format, Integers, has_infinity};
use crate::kernel::{each, sum};
use crate::pair::Run;

/// Elements outside of a range.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Outside {
    pub(crate) overflow: u64,
    pub(crate) underflow: u64,
    pub(crate) nan: u64,
}

/// The range of a target, for values that are given as F32, F64, I64 or U64.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    /// For F32.
    Narrow { limits: Limits<i32>, clamp: Option<Clamp<i32>> },
    /// For F64.
    Wide { limits: Limits<i64>, clamp: Option<Clamp<i64>> },
    /// For 64-bit integers.
    Whole(Whole),
}

/// Limits of magnitudes, the bits of floats without their sign.
#[derive(Clone, Copy)]
pub(crate) struct Limits<T> {
    /// Where overflow begins, of positive and of negative numbers.
    high: [T; 2],
    /// Where it ends: infinity, or what is before that.
    last: T,
    /// What is below overflows: 1 if 0 does.
    low: T,
    /// The largest that becomes 0.
    tiny: T,
    infinity: T,
}

/// What magnitudes are brought to.
#[derive(Clone, Copy)]
pub(crate) struct Clamp<T> {
    /// The smallest.
    low: T,
    /// The largest, of positive and of negative numbers.
    high: [T; 2],
    /// What is kept of the sign.
    sign: T,
    infinity: T,
}

const F32_INFINITY: i32 = 0x7f80_0000;
const F64_INFINITY: i64 = 0x7ff0_0000_0000_0000;

impl Range {
    /// The range of `to` for F32: of floats, C64 or BOOL, which has every number.
    pub(crate) fn narrow(to: Dtype, saturate: bool) -> Self {
        let infinity = F32_INFINITY;
        let all = Limits { high: [i32::MAX; 2], last: infinity, low: 0, tiny: 0, infinity };
        let (mut limits, clamp) = if to == Dtype::F8_E8M0 {
            // From 1.5 × 2^127 on, and below half of 2^-127.
            let limits = Limits { high: [0x7f40_0000, 0], low: 1, tiny: 0x001f_ffff, ..all };
            let (lowest, highest) = (0x0040_0000, 0x7f00_0000);
            (limits, Clamp { low: lowest, high: [highest, lowest], sign: 0, infinity })
        } else if let Some(format) = Format::of(to) {
            let (high, largest, tiny) = if format.mantissa < Format::F32.mantissa {
                narrower(format)
            } else {
                (infinity, infinity - 1, 0)
            };
            let clamp = Clamp { low: 0, high: [largest; 2], sign: i32::MIN, infinity };
            (Limits { high: [high; 2], tiny, ..all }, clamp)
        } else {
            return Self::Narrow { limits: all, clamp: None };
        };
        if !saturate && has_infinity(to) {
            limits.last -= 1;
        }
        Self::Narrow { limits, clamp: saturate.then_some(clamp) }
    }

    /// The range of `to` for F64: of F64, F32, C64 or integers.
    pub(crate) fn wide(to: Dtype, saturate: bool) -> Self {
        let infinity = F64_INFINITY;
        let limits = |high, tiny| Limits { high, last: infinity, low: 0, tiny, infinity };
        if let Some(Integers { digits, signed }) = Integers::of(to) {
            // What is half beyond the largest number, which is odd, and what is more than half
            // beyond the smallest, which is even.
            let tie = |from: f64| (from + 0.5).to_bits().cast_signed();
            let power = f64::from_bits(u64::from(1023 + digits) << 52);
            let below = tie(if signed { power } else { 0.0 }) + 1;
            let limits = limits([tie(power - 1.0), below], tie(0.0));
            return Self::Wide { limits, clamp: None };
        }
        let (mut limits, largest) = if to == Dtype::F64 {
            (limits([infinity; 2], 0), infinity - 1)
        } else {
            // Half a step beyond the largest F32, which follows, and half of the smallest above 0.
            let limits = limits([0x47ef_ffff_f000_0000; 2], 0x3690_0000_0000_0000);
            (limits, 0x47ef_ffff_e000_0000)
        };
        limits.last -= i64::from(!saturate);
        let clamp = Clamp { low: 0, high: [largest; 2], sign: i64::MIN, infinity };
        Self::Wide { limits, clamp: saturate.then_some(clamp) }
    }

    /// Limits of 16-bit floats of a dtype that take the place of those of their F32.
    pub(crate) fn of_halves(&self, from: Dtype) -> Option<Limits<i16>> {
        let Self::Narrow { limits, .. } = self else { return None };
        let value: fn(u16) -> u32 = match from {
            Dtype::F16 => float::f32_of_f16,
            Dtype::BF16 => float::f32_of_bf16,
            _ => return None,
        };
        // The first that is at least as large, by halving 2^15 magnitudes.
        let first = |limit: i32| {
            let is_below = |half: i16| value(half.cast_unsigned()).cast_signed() < limit;
            (0..15).rev().map(|bit| 1 << bit).fold(0, |first: i16, step| {
                if is_below(first + (step - 1)) { first + step } else { first }
            })
        };
        let before_next = |limit: i32| first(limit.saturating_add(1)).saturating_sub(1);
        Some(Limits {
            high: limits.high.map(first),
            last: before_next(limits.last),
            low: first(limits.low),
            tiny: before_next(limits.tiny),
            infinity: first(limits.infinity),
        })
    }

    /// How many of the values given by their bytes are outside.
    pub(crate) fn count(&self, bytes: &[u8]) -> Outside {
        match *self {
            Self::Narrow { limits, .. } => limits.count(bytes),
            Self::Wide { limits, .. } => limits.count(bytes),
            Self::Whole(whole) => {
                let [overflow, ..] =
                    sum(bytes, move |bytes| [u64::from(whole.is_outside(bytes)), 0, 0]);
                Outside { overflow, underflow: 0, nan: 0 }
            }
        }
    }

    /// Whether values outside are clamped before they are converted.
    pub(crate) fn clamps(&self) -> bool {
        match self {
            Self::Narrow { clamp, .. } => clamp.is_some(),
            Self::Wide { clamp, .. } => clamp.is_some(),
            Self::Whole(whole) => whole.clamps,
        }
    }

    /// Copies values, and makes those outside the nearest inside. A NaN stays as it is.
    pub(crate) fn clamp(&self, from: &[u8], to: &mut [u8]) {
        match *self {
            Self::Narrow { clamp: Some(clamp), .. } => clamp.apply(from, to),
            Self::Wide { clamp: Some(clamp), .. } => clamp.apply(from, to),
            Self::Whole(whole) => each(from, to, move |bytes| whole.nearest(bytes)),
            Self::Narrow { clamp: None, .. } | Self::Wide { clamp: None, .. } => {
                to.copy_from_slice(from);
            }
        }
    }
}

/// The loop that copies floats of a dtype, infinities as the largest finite number of their sign.
pub(crate) fn without_infinities(dtype: Dtype) -> Run {
    match dtype {
        Dtype::F8_E5M2 => |from, to| {
            each(from, to, |[bits]: [u8; 1]| [bits - u8::from(bits & 0x7f == 0x7c)]);
        },
        Dtype::F16 => |from, to| {
            each(from, to, |bytes| {
                let bits = u16::from_le_bytes(bytes);
                (bits - u16::from(bits & 0x7fff == 0x7c00)).to_le_bytes()
            });
        },
        Dtype::BF16 => |from, to| {
            each(from, to, |bytes| {
                let bits = u16::from_le_bytes(bytes);
                (bits - u16::from(bits & 0x7fff == 0x7f80)).to_le_bytes()
            });
        },
        Dtype::F64 => |from, to| {
            each(from, to, |bytes| {
                let bits = i64::from_le_bytes(bytes);
                (bits - i64::from(bits & i64::MAX == F64_INFINITY)).to_le_bytes()
            });
        },
        // F32, or the parts of C64: no other has infinities.
        _ => |from, to| {
            each(from, to, |bytes| {
                let bits = i32::from_le_bytes(bytes);
                (bits - i32::from(bits & i32::MAX == F32_INFINITY)).to_le_bytes()
            });
        },
    }
}

/// Of a format with less precision than F32, in its bits: where overflow begins, the largest finite
/// number, and the largest that becomes 0.
fn narrower(format: Format) -> (i32, i32, i32) {
    let beyond = Format::F32.mantissa - format.mantissa;
    let rebias = u64::from(Format::F32.bias - format.bias) << Format::F32.mantissa;
    let largest = ((format.largest() << beyond) + rebias) as i32;
    // Half a step on is a tie, which goes to the even one.
    let is_even = format.largest() & 1 == 0;
    let high = largest + (1 << (beyond - 1)) + i32::from(is_even);
    // Half of the smallest number above 0; of BF16, that is subnormal.
    let exponent = i32::from(Format::F32.bias) - i32::from(format.bias + format.mantissa);
    let tiny = if exponent > 0 {
        exponent << Format::F32.mantissa
    } else {
        1 << (i32::from(Format::F32.mantissa) - 1 + exponent)
    };
    (high, largest, tiny)
}

impl<T> Limits<T> {
    /// How many of the values given by their bytes, of a block, are outside.
    pub(crate) fn count<const BYTES: usize>(self, bytes: &[u8]) -> Outside
    where
        T: Bits<BYTES>,
    {
        let zero = T::default();
        let [overflow, underflow, nan] = if self.high[0] == self.high[1] && self.low == zero {
            sum(
                bytes,
                #[inline(always)]
                move |bytes| {
                    let magnitude = T::of_le_bytes(bytes).magnitude();
                    let overflow = (magnitude >= self.high[0]) & (magnitude <= self.last);
                    let underflow = (magnitude <= self.tiny) & (magnitude != zero);
                    [overflow, underflow, magnitude > self.infinity].map(T::Count::from)
                },
            )
        } else {
            sum(
                bytes,
                #[inline(always)]
                move |bytes| {
                    let bits = T::of_le_bytes(bytes);
                    let magnitude = bits.magnitude();
                    let high = if bits < zero { self.high[1] } else { self.high[0] };
                    let above = (magnitude >= high) & (magnitude <= self.last);
                    let overflow = above | (magnitude < self.low);
                    let underflow = (magnitude <= self.tiny) & (magnitude != zero) & !overflow;
                    [overflow, underflow, magnitude > self.infinity].map(T::Count::from)
                },
            )
        };
        Outside { overflow: overflow.into(), underflow: underflow.into(), nan: nan.into() }
    }
}

impl<T> Clamp<T> {
    /// Copies values, those outside as the nearest inside, NaN as it is.
    fn apply<const BYTES: usize>(self, from: &[u8], to: &mut [u8])
    where
        T: Bits<BYTES>,
    {
        each(
            from,
            to,
            #[inline(always)]
            move |bytes| {
                let bits = T::of_le_bytes(bytes);
                let magnitude = bits.magnitude();
                let high = if bits < T::default() { self.high[1] } else { self.high[0] };
                let inside = magnitude.max(self.low).min(high) | (bits & self.sign);
                T::to_le_bytes(if magnitude > self.infinity { bits } else { inside })
            },
        );
    }
}

/// The range of an integer dtype for 64-bit integers.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    /// What makes an element of the source an I64 of the same order.
    flip: i64,
    /// The smallest and the largest number of the target, flipped, as far as the source goes.
    low: i64,
    high: i64,
    clamps: bool,
}

impl Whole {
    /// The range of `to` for the 64-bit integers that elements of `from` have become.
    pub(crate) fn new(from: Dtype, to: Dtype, saturate: bool) -> Self {
        let flip = if from == Dtype::U64 { i64::MIN } else { 0 };
        let all = Self { flip, low: i64::MIN, high: i64::MAX, clamps: false };
        match Integers::of(to) {
            _ if to == Dtype::BOOL => all,
            None => all,
            Some(Integers { digits, signed }) => {
                let bound = |number: i128| {
                    let number = if flip == 0 { number } else { number + i128::from(flip) };
                    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
                };
                let power = 1_i128 << digits;
                let low = bound(if signed { -power } else { 0 });
                Self { flip, low, high: bound(power - 1), clamps: saturate }
            }
        }
    }

    #[inline(always)]
    fn is_outside(self, bytes: [u8; 8]) -> bool {
        let number = i64::from_le_bytes(bytes) ^ self.flip;
        (number < self.low) | (number > self.high)
    }

    #[inline(always)]
    fn nearest(self, bytes: [u8; 8]) -> [u8; 8] {
        let number = i64::from_le_bytes(bytes) ^ self.flip;
        (number.max(self.low).min(self.high) ^ self.flip).to_le_bytes()
    }
}
