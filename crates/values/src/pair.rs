//! The pairs of dtypes that can be cast, and the loop for each.
//!
//! A source gives the bits of an F64, F32 or BF16, whichever is the smallest that has all its
//! values; a target takes any of the three.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]

use weigh_format::Dtype;

use crate::float;
use crate::kernel::{BLOCK, each, each_block};
use crate::small;

/// Converts whole units of one dtype to another.
pub(crate) type Run = fn(from: &[u8], to: &mut [u8]);

/// What finds the loop from a source, by its dtype, to the target `to`, if that is a target.
pub(crate) fn target(to: Dtype) -> Option<fn(Dtype) -> Option<Run>> {
    Some(match to {
        Dtype::F64 => source::<F64, 8>,
        Dtype::F32 => source::<F32, 4>,
        Dtype::F16 => source::<F16, 2>,
        Dtype::BF16 => source::<BF16, 2>,
        _ => return None,
    })
}

/// The loop from the dtype `from` to a target, if `from` is a float.
fn source<T: Target<BYTES>, const BYTES: usize>(from: Dtype) -> Option<Run> {
    use small::{eights, fours, sixes};

    let run: Run = match from {
        Dtype::F64 => |from, to| each(from, to, |bytes| T::of_f64(u64::from_le_bytes(bytes))),
        Dtype::F32 => |from, to| each(from, to, |bytes| T::of_f32(u32::from_le_bytes(bytes))),
        Dtype::F16 => |from, to| {
            each(from, to, |bytes| T::of_f32(float::f32_of_f16(u16::from_le_bytes(bytes))));
        },
        Dtype::BF16 => |from, to| each(from, to, |bytes| T::of_bf16(u16::from_le_bytes(bytes))),
        Dtype::F8_E4M3 => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e4m3),
        Dtype::F8_E5M2 => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e5m2),
        Dtype::F8_E8M0 => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e8m0),
        Dtype::F8_E4M3FNUZ => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e4m3fnuz),
        Dtype::F8_E5M2FNUZ => |from, to| codes::<T, _, _>(from, to, eights, small::f8_e5m2fnuz),
        Dtype::F6_E2M3 => |from, to| codes::<T, _, _>(from, to, sixes, small::f6_e2m3),
        Dtype::F6_E3M2 => |from, to| codes::<T, _, _>(from, to, sixes, small::f6_e3m2),
        Dtype::F4 => |from, to| codes::<T, _, _>(from, to, fours, small::f4),
        _ => return None,
    };
    Some(run)
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
}

struct F64;
struct F32;
struct F16;
struct BF16;

impl Target<8> for F64 {
    #[inline(always)]
    fn of_f32(bits: u32) -> [u8; 8] {
        float::f64_of_f32(bits).to_le_bytes()
    }

    #[inline(always)]
    fn of_f64(bits: u64) -> [u8; 8] {
        bits.to_le_bytes()
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
