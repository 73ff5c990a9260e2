//! The casts in one loop: from every dtype to F64, F32, F16 and BF16.
//!
//! A source gives the bits of an F64, F32 or BF16, whichever is the smallest that has all its
//! values, or a 64-bit integer; a target takes any of them.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]

use weigh_format::Dtype;

use crate::float;
use crate::kernel::{BLOCK, each, each_block};
use crate::small;

/// Converts whole units of one dtype to another.
pub(crate) type Run = fn(from: &[u8], to: &mut [u8]);

/// The loop from one dtype to another, if that is a target of this module.
pub(crate) fn run(from: Dtype, to: Dtype) -> Option<Run> {
    Some(match to {
        Dtype::F64 => source::<F64, 8>(from),
        Dtype::F32 => source::<F32, 4>(from),
        Dtype::F16 => source::<F16, 2>(from),
        Dtype::BF16 => source::<BF16, 2>(from),
        _ => return None,
    })
}

/// The loop from a dtype to F32 rounded to odd ([`float::odd_f32_of_f64`]).
pub(crate) fn to_odd_f32(from: Dtype) -> Run {
    source::<OddF32, 4>(from)
}

/// The loop from a dtype to a target. Of a complex number it takes the real part.
fn source<T: Target<BYTES>, const BYTES: usize>(from: Dtype) -> Run {
    use small::{eights, fours, sixes};

    match from {
        Dtype::BOOL => |from, to| each(from, to, |[byte]| T::of_i64(i64::from(byte != 0))),
        Dtype::U8 => |from, to| each(from, to, |[byte]| T::of_i64(byte.into())),
        Dtype::I8 => |from, to| each(from, to, |b| T::of_i64(i8::from_le_bytes(b).into())),
        Dtype::U16 => |from, to| each(from, to, |b| T::of_i64(u16::from_le_bytes(b).into())),
        Dtype::I16 => |from, to| each(from, to, |b| T::of_i64(i16::from_le_bytes(b).into())),
        Dtype::U32 => |from, to| each(from, to, |b| T::of_i64(u32::from_le_bytes(b).into())),
        Dtype::I32 => |from, to| each(from, to, |b| T::of_i64(i32::from_le_bytes(b).into())),
        Dtype::I64 => |from, to| each(from, to, |b| T::of_i64(i64::from_le_bytes(b))),
        Dtype::F64 => |from, to| each(from, to, |b| T::of_f64(u64::from_le_bytes(b))),
        Dtype::F32 => |from, to| each(from, to, |b| T::of_f32(u32::from_le_bytes(b))),
        Dtype::C64 => |from, to| {
            each(from, to, |[a, b, c, d, ..]: [u8; 8]| T::of_f32(u32::from_le_bytes([a, b, c, d])));
        },
        Dtype::F16 => {
            |from, to| each(from, to, |b| T::of_f32(float::f32_of_f16(u16::from_le_bytes(b))))
        }
        Dtype::BF16 => |from, to| each(from, to, |b| T::of_bf16(u16::from_le_bytes(b))),
        Dtype::F8_E4M3 => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e4m3),
        Dtype::F8_E5M2 => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e5m2),
        Dtype::F8_E8M0 => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e8m0),
        Dtype::F8_E4M3FNUZ => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e4m3fnuz),
        Dtype::F8_E5M2FNUZ => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e5m2fnuz),
        Dtype::F6_E2M3 => |from, to| codes::<T, _, _>(from, to, sixes, small::f6_e2m3),
        Dtype::F6_E3M2 => |from, to| codes::<T, _, _>(from, to, sixes, small::f6_e3m2),
        Dtype::F4 => |from, to| codes::<T, _, _>(from, to, fours, small::f4),
        // U64, the last dtype of today. A test goes through them all.
        _ => |from, to| each(from, to, |b| T::of_u64(u64::from_le_bytes(b))),
    }
}

/// Converts codes of at most 8 bits: `unpack` gives each a byte, `bf16` its value.
#[inline(always)]
fn codes<T: Target<BYTES>, const BYTES: usize, const FROM: usize>(
    from: &[u8],
    to: &mut [u8],
    unpack: impl Fn(&[u8; FROM]) -> [u8; BLOCK],
    bf16: impl Fn(u8) -> u16,
) {
    each_block(
        from,
        to,
        #[inline(always)]
        |from, to| {
            let mut values = [0; BLOCK];
            for (code, value) in unpack(from).into_iter().zip(&mut values) {
                *value = bf16(code);
            }
            for (value, to) in values.into_iter().zip(to) {
                *to = T::of_bf16(value);
            }
        },
    );
}

/// A dtype to cast to, of `BYTES` bytes, from the bits of a value.
trait Target<const BYTES: usize> {
    fn of_f32(bits: u32) -> [u8; BYTES];

    #[inline(always)]
    fn of_f64(bits: u64) -> [u8; BYTES] {
        Self::of_f32(float::odd_f32_of_f64(bits))
    }

    #[inline(always)]
    fn of_bf16(bits: u16) -> [u8; BYTES] {
        Self::of_f32(float::f32_of_bf16(bits))
    }

    #[inline(always)]
    fn of_i64(integer: i64) -> [u8; BYTES] {
        Self::of_f64(float::odd_f64_of_i64(integer))
    }

    #[inline(always)]
    fn of_u64(integer: u64) -> [u8; BYTES] {
        Self::of_f64(float::odd_f64_of_u64(integer))
    }
}

struct F64;
struct F32;
struct F16;
struct BF16;
struct OddF32;

impl Target<8> for F64 {
    #[inline(always)]
    fn of_f32(bits: u32) -> [u8; 8] {
        float::f64_of_f32(bits).to_le_bytes()
    }

    #[inline(always)]
    fn of_f64(bits: u64) -> [u8; 8] {
        bits.to_le_bytes()
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "this cast rounds to nearest")]
    fn of_i64(integer: i64) -> [u8; 8] {
        (integer as f64).to_le_bytes()
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "this cast rounds to nearest")]
    fn of_u64(integer: u64) -> [u8; 8] {
        (integer as f64).to_le_bytes()
    }
}

impl Target<4> for F32 {
    #[inline(always)]
    fn of_f32(bits: u32) -> [u8; 4] {
        bits.to_le_bytes()
    }

    #[inline(always)]
    fn of_f64(bits: u64) -> [u8; 4] {
        float::f32_of_f64(bits).to_le_bytes()
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "this cast rounds to nearest")]
    fn of_i64(integer: i64) -> [u8; 4] {
        (integer as f32).to_le_bytes()
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "this cast rounds to nearest")]
    fn of_u64(integer: u64) -> [u8; 4] {
        (integer as f32).to_le_bytes()
    }
}

impl Target<2> for F16 {
    #[inline(always)]
    fn of_f32(bits: u32) -> [u8; 2] {
        float::f16_of_f32(bits).to_le_bytes()
    }
}

impl Target<2> for BF16 {
    #[inline(always)]
    fn of_f32(bits: u32) -> [u8; 2] {
        float::bf16_of_f32(bits).to_le_bytes()
    }

    #[inline(always)]
    fn of_bf16(bits: u16) -> [u8; 2] {
        bits.to_le_bytes()
    }
}

impl Target<4> for OddF32 {
    #[inline(always)]
    fn of_f32(bits: u32) -> [u8; 4] {
        bits.to_le_bytes()
    }
}
