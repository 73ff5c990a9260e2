//! The codes of the float dtypes of at most 8 bits: of each F32, the nearest.
//!
//! The source is an F32 rounded to odd ([`crate::float`]), so that no value is rounded twice.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]
#![expect(clippy::cast_possible_truncation, reason = "a code is in the low 8 bits")]

use weigh_format::Dtype;

use crate::format::{Format, Special};
use crate::kernel::{BLOCK, each_packed};
use crate::pair::Run;

/// The loop from F32 to a float dtype of at most 8 bits.
pub(crate) fn run(to: Dtype) -> Option<Run> {
    let run: Run = match to {
        Dtype::F4 => |from, to| codes(from, to, |bits| Format::F4.code(bits), fours),
        Dtype::F6_E2M3 => |from, to| codes(from, to, |bits| Format::F6_E2M3.code(bits), sixes),
        Dtype::F6_E3M2 => |from, to| codes(from, to, |bits| Format::F6_E3M2.code(bits), sixes),
        Dtype::F8_E4M3 => |from, to| codes(from, to, |bits| Format::F8_E4M3.code(bits), eights),
        Dtype::F8_E5M2 => |from, to| codes(from, to, |bits| Format::F8_E5M2.code(bits), eights),
        Dtype::F8_E8M0 => |from, to| codes(from, to, f8_e8m0, eights),
        Dtype::F8_E4M3FNUZ => {
            |from, to| codes(from, to, |bits| Format::F8_E4M3FNUZ.code(bits), eights)
        }
        Dtype::F8_E5M2FNUZ => {
            |from, to| codes(from, to, |bits| Format::F8_E5M2FNUZ.code(bits), eights)
        }
        _ => return None,
    };
    Some(run)
}

/// Converts F32 to codes, and packs these.
#[inline(always)]
fn codes<const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    code: impl Fn(u32) -> u32,
    pack: impl Fn(&[u8; BLOCK]) -> [u8; TO],
) {
    each_packed(
        from,
        to,
        #[inline(always)]
        |from: &[u8; BLOCK * 4]| {
            let mut codes = [0; BLOCK];
            for (bytes, to) in from.as_chunks().0.iter().zip(&mut codes) {
                *to = code(u32::from_le_bytes(*bytes)) as u8;
            }
            pack(&codes)
        },
    );
}

#[inline(always)]
fn eights(codes: &[u8; BLOCK]) -> [u8; BLOCK] {
    *codes
}

#[inline(always)]
fn sixes(codes: &[u8; BLOCK]) -> [u8; BLOCK / 4 * 3] {
    let mut bytes = [0; BLOCK / 4 * 3];
    for (&[a, b, c, d], bytes) in codes.as_chunks().0.iter().zip(bytes.as_chunks_mut().0) {
        *bytes = [a | (b << 6), (b >> 2) | (c << 4), (c >> 4) | (d << 2)];
    }
    bytes
}

#[inline(always)]
fn fours(codes: &[u8; BLOCK]) -> [u8; BLOCK / 2] {
    let mut bytes = [0; BLOCK / 2];
    for (&[low, high], byte) in codes.as_chunks().0.iter().zip(&mut bytes) {
        *byte = low | (high << 4);
    }
    bytes
}

const F32_SIGN: u32 = 0x8000_0000;
const F32_INFINITY: u32 = 0x7f80_0000;
const F32_MANTISSA: u32 = 23;
const F32_BIAS: u32 = 127;

impl Format {
    /// The code nearest to an F32, ties to even.
    ///
    /// Beyond the largest finite code is infinity, else NaN, else that code; a NaN is 0 where
    /// there is none.
    #[inline(always)]
    fn code(self, bits: u32) -> u32 {
        let mantissa = u32::from(self.mantissa);
        let width = u32::from(self.exponent) + mantissa;
        let beyond = F32_MANTISSA - mantissa;
        let lower = F32_BIAS - u32::from(self.bias);
        let rebias = lower << F32_MANTISSA;
        // From here on there is full precision.
        let full = rebias + (1 << F32_MANTISSA);
        // Its last bit is worth as much as the smallest code above 0.
        let ruler = f32::from_bits((lower + 1 + beyond) << F32_MANTISSA);

        let sign = (bits >> 31) << width;
        let magnitude = bits & !F32_SIGN;
        let odd = (magnitude >> beyond) & 1;
        let half = (1 << (beyond - 1)) - 1;
        let normal = magnitude.wrapping_add(half + odd).wrapping_sub(rebias) >> beyond;
        let subnormal = (f32::from_bits(magnitude) + ruler).to_bits().wrapping_sub(ruler.to_bits());
        let finite = if magnitude < full { subnormal } else { normal };

        let largest = self.largest() as u32;
        let (infinite, nan) = match self.special {
            Special::None => (largest, 0),
            Special::AllOnes => (largest + 1, largest + 1),
            Special::TopExponent => {
                let quiet = 1 << (mantissa - 1);
                let payload = (magnitude >> beyond) & (quiet - 1);
                (largest + 1, (largest + 1) | quiet | payload)
            }
            Special::NegativeZero => (1 << width, 1 << width),
        };
        let value = if finite > largest { infinite } else { finite };
        let code = if magnitude > F32_INFINITY { nan } else { value };
        match self.special {
            // No zero has a sign, and NaN has but one.
            Special::NegativeZero if code == 0 => 0,
            Special::None if magnitude > F32_INFINITY => 0,
            _ => sign | code,
        }
    }
}

/// The power of two nearest to an F32, the larger of two as near; NaN of what is beyond the
/// largest, and of all that is not above 0.
#[inline(always)]
fn f8_e8m0(bits: u32) -> u32 {
    /// Subnormal, as 2^-127 is: half between it and 2^-126.
    const LOWEST_TIE: u32 = 0x0060_0000;
    const NAN: u32 = 0xff;

    let normal = bits.wrapping_add(1 << (F32_MANTISSA - 1)) >> F32_MANTISSA;
    let subnormal = u32::from(bits >= LOWEST_TIE);
    let code = if bits < 1 << F32_MANTISSA { subnormal } else { normal };
    let is_positive = bits.wrapping_sub(1) < F32_SIGN - 1;
    if is_positive { code.min(NAN) } else { NAN }
}
