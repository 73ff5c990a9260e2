//! Conversions between F16, BF16, F32, F64 and from 64-bit integers, one value at a time, on their bits.
//!
//! Widening is exact, and keeps every bit of a NaN. Narrowing rounds to nearest, ties to even;
//! what is beyond the largest finite value by half a step or more becomes infinite; a NaN keeps
//! its sign and the top of its payload, and becomes quiet, so that it stays a NaN. A NaN is made
//! from bits: what float arithmetic makes of one differs between machines.
//!
//! The functions have no branches and no tables, so that the loops of [`crate::kernel`] become
//! vector code.
#![expect(clippy::inline_always, reason = "a call in a kernel's loop would keep it scalar")]

/// F32's bits below those that a BF16 keeps.
const F32_OVER_BF16: u32 = 16;

/// Bits of F32's mantissa beyond F16's.
const F32_OVER_F16: u32 = 13;

/// Bits of F64's mantissa beyond F32's.
const F64_OVER_F32: u32 = 29;

/// How much more F32's exponents are biased than F16's, where F32 has them.
const F16_REBIAS: u32 = (127 - 15) << 23;

const F32_SIGN: u32 = 0x8000_0000;
const F32_INFINITY: u32 = 0x7f80_0000;
const F32_QUIET: u32 = 0x0040_0000;

/// The F32 of a BF16.
#[inline(always)]
pub(crate) fn f32_of_bf16(bits: u16) -> u32 {
    u32::from(bits) << F32_OVER_BF16
}

/// The F32 of an F16.
#[inline(always)]
pub(crate) fn f32_of_f16(bits: u16) -> u32 {
    let top = u32::from(bits) << 16;
    let sign = top & F32_SIGN;
    let magnitude = (top & !F32_SIGN) >> (16 - F32_OVER_F16);
    // Right but for F16's subnormals: their exponent means 2^-14 like the one above it, without
    // the leading one. For them, and only for them, the second value is the smaller one. Neither
    // is subnormal itself, which some processors are slow to work with.
    let with_one = f32::from_bits(magnitude + F16_REBIAS);
    let without_one = with_one + with_one - f32::from_bits(F16_REBIAS + (1 << 23));
    let finite = if without_one < with_one { without_one } else { with_one };
    let special = if magnitude >= 0x7c00 << F32_OVER_F16 { F32_INFINITY } else { 0 };
    sign | finite.to_bits() | special
}

/// The F64 of an F32.
#[inline(always)]
pub(crate) fn f64_of_f32(bits: u32) -> u64 {
    let value = f32::from_bits(bits);
    let sign = u64::from(bits & F32_SIGN) << 32;
    let nan = sign | 0x7ff0_0000_0000_0000 | (u64::from(bits & 0x007f_ffff) << F64_OVER_F32);
    if value.is_nan() { nan } else { f64::from(value).to_bits() }
}

/// The BF16 nearest to an F32.
#[inline(always)]
pub(crate) fn bf16_of_f32(bits: u32) -> u16 {
    let odd = (bits >> F32_OVER_BF16) & 1;
    let rounded = bits.wrapping_add(0x7fff + odd);
    let is_nan = bits & !F32_SIGN > F32_INFINITY;
    ((if is_nan { bits | F32_QUIET } else { rounded }) >> F32_OVER_BF16) as u16
}

/// The F16 nearest to an F32.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "all that is set is in the low 16 bits")]
pub(crate) fn f16_of_f32(bits: u32) -> u16 {
    /// The F32 from which F16 has full precision, 2^-14.
    const NORMAL: u32 = F16_REBIAS + (1 << 23);
    /// The F32 from which F16 has none, 2^16; rounding up carries to infinity before.
    const OVERFLOW: u32 = F16_REBIAS + (31 << 23);
    /// Its last bit is worth as much as that of an F16 subnormal, 2^-24.
    const RULER: f32 = 0.5;

    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & !F32_SIGN;
    let odd = (magnitude >> F32_OVER_F16) & 1;
    let normal = magnitude.wrapping_add(0x0fff + odd).wrapping_sub(F16_REBIAS) >> F32_OVER_F16;
    let subnormal = (f32::from_bits(magnitude) + RULER).to_bits().wrapping_sub(RULER.to_bits());
    let nan = 0x7e00 | ((magnitude >> F32_OVER_F16) & 0x01ff);
    let finite = if magnitude < NORMAL { subnormal } else { normal };
    let value = if magnitude < OVERFLOW { finite } else { 0x7c00 };
    (sign | if magnitude > F32_INFINITY { nan } else { value }) as u16
}

/// The F32 nearest to an F64.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "this cast rounds to nearest")]
pub(crate) fn f32_of_f64(bits: u64) -> u32 {
    let value = f64::from_bits(bits);
    if value.is_nan() { nan_of_f64(bits) } else { (value as f32).to_bits() }
}

/// An F64 as an F32 rounded to odd: exact, or the neighbour whose last bit is set.
///
/// Narrowing the result to F16 or BF16 rounds as narrowing the F64 itself would: the set bit
/// keeps what is not a tie from looking like one.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "this cast rounds to nearest")]
#[expect(clippy::float_cmp, reason = "whether the cast was exact is the question")]
pub(crate) fn odd_f32_of_f64(bits: u64) -> u32 {
    let exact = f64::from_bits(bits);
    let nearest = exact as f32;
    let (got, wanted) = (f64::from(nearest).abs(), exact.abs());
    let cut = nearest.to_bits().wrapping_sub(u32::from(got > wanted));
    let odd = cut | u32::from(got != wanted);
    if exact.is_nan() { nan_of_f64(bits) } else { odd }
}

/// An integer as an F64: exact, or between the same neighbours among numbers of 42 bits, the last
/// of them set.
///
/// Rounding the result to odd again, or to nearest in fewer bits, is rounding the integer itself.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "the bits beyond those of F64 are cut")]
pub(crate) fn odd_f64_of_u64(integer: u64) -> u64 {
    /// What F64 has not of the largest integers.
    const CUT: u64 = (1 << 11) - 1;

    let odd = (integer & !CUT) | (u64::from(integer & CUT != 0) << 11);
    (if integer < 1 << 53 { integer } else { odd } as f64).to_bits()
}

/// [`odd_f64_of_u64`] of a magnitude, with its sign.
#[inline(always)]
pub(crate) fn odd_f64_of_i64(integer: i64) -> u64 {
    odd_f64_of_u64(integer.unsigned_abs()) | (u64::from(integer < 0) << 63)
}

/// The F32 NaN of an F64 NaN.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the top of the payload is kept")]
fn nan_of_f64(bits: u64) -> u32 {
    let sign = (bits >> 32) as u32 & F32_SIGN;
    let payload = (bits >> F64_OVER_F32) as u32 & 0x003f_ffff;
    sign | F32_INFINITY | F32_QUIET | payload
}
