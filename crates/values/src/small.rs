//! The float dtypes of at most 8 bits: their codes, and each code as the BF16 of the same value.
//!
//! BF16 has every value of these dtypes. A NaN keeps its sign and payload, and becomes quiet. The
//! way back is in [`crate::code`].
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]

use crate::format::{Format, Special};
use crate::kernel::BLOCK;

#[inline(always)]
pub(crate) fn f4(code: u8) -> u16 {
    Format::F4.bf16(code)
}

#[inline(always)]
pub(crate) fn f6_e2m3(code: u8) -> u16 {
    Format::F6_E2M3.bf16(code)
}

#[inline(always)]
pub(crate) fn f6_e3m2(code: u8) -> u16 {
    Format::F6_E3M2.bf16(code)
}

#[inline(always)]
pub(crate) fn f8_e4m3(code: u8) -> u16 {
    Format::F8_E4M3.bf16(code)
}

#[inline(always)]
pub(crate) fn f8_e5m2(code: u8) -> u16 {
    Format::F8_E5M2.bf16(code)
}

#[inline(always)]
pub(crate) fn f8_e4m3fnuz(code: u8) -> u16 {
    Format::F8_E4M3FNUZ.bf16(code)
}

#[inline(always)]
pub(crate) fn f8_e5m2fnuz(code: u8) -> u16 {
    Format::F8_E5M2FNUZ.bf16(code)
}

/// 2^(code − 127); the last code is NaN.
#[inline(always)]
pub(crate) fn f8_e8m0(code: u8) -> u16 {
    // 2^-127 is subnormal, half of BF16's smallest normal value.
    let half = if code == 0 || code == u8::MAX { 0x0040 } else { 0 };
    (u16::from(code) << BF16_MANTISSA) | half
}

/// The codes of 8 bits in bytes: themselves.
#[inline(always)]
pub(crate) fn eights(bytes: &[u8; BLOCK]) -> [u8; BLOCK] {
    *bytes
}

/// The codes of 6 bits in bytes, four in every three, the first in the lowest bits.
#[inline(always)]
pub(crate) fn sixes(bytes: &[u8; BLOCK / 4 * 3]) -> [u8; BLOCK] {
    let mut codes = [0; BLOCK];
    for (&[a, b, c], codes) in bytes.as_chunks().0.iter().zip(codes.as_chunks_mut().0) {
        *codes = [a, (a >> 6) | (b << 2), (b >> 4) | (c << 4), c >> 2];
    }
    codes
}

/// The codes of 4 bits in bytes, the first of two in the lower bits.
#[inline(always)]
pub(crate) fn fours(bytes: &[u8; BLOCK / 2]) -> [u8; BLOCK] {
    let mut codes = [0; BLOCK];
    for (&byte, codes) in bytes.iter().zip(codes.as_chunks_mut().0) {
        *codes = [byte, byte >> 4];
    }
    codes
}

const BF16_MANTISSA: u16 = 7;
const BF16_BIAS: u16 = 127;
const BF16_INFINITY: u16 = 0x7f80;
const BF16_NAN: u16 = 0x7fc0;

impl Format {
    /// The BF16 of a code. Bits of `code` above the format's sign mean nothing.
    #[inline(always)]
    fn bf16(self, code: u8) -> u16 {
        let width = self.exponent + self.mantissa;
        let magnitude = u16::from(code) & ((1 << width) - 1);
        let sign = ((u16::from(code) >> width) & 1) << 15;

        // The bits of a positive BF16, drawn over the codes, follow a straight line from each
        // power of two to the next, half as steep as the line before, until the codes have an
        // exponent of their own; from there on it is one line, as the bits of both are laid out
        // alike. Such a bend is the lowest of its lines. The line to 0 is as steep as can be.
        let mut finite = 0_u16.wrapping_sub(magnitude);
        // An inclusive range would not be unrolled.
        let powers = self.mantissa + 1;
        for power in 0..powers {
            let exponent = BF16_BIAS - self.bias - self.mantissa + power;
            let line = (exponent << BF16_MANTISSA) + (magnitude << (BF16_MANTISSA - power));
            finite = finite.min(line);
        }

        let top = ((1 << self.exponent) - 1) << self.mantissa;
        let special = match self.special {
            Special::AllOnes if magnitude == (1 << width) - 1 => BF16_NAN,
            Special::TopExponent if magnitude > top => BF16_NAN,
            Special::TopExponent if magnitude == top => BF16_INFINITY,
            Special::NegativeZero if sign | magnitude == 1 << 15 => BF16_NAN,
            _ => 0,
        };
        sign | finite | special
    }
}
