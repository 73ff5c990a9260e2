//! Complex numbers: two F32, the real part first.

#![expect(clippy::needless_bitwise_bool, reason = "a branch in a loop would keep it scalar")]

use crate::float;
use crate::kernel::{each, sum};

const F32_INFINITY: u32 = 0x7f80_0000;

/// Elements of C64 of which a part is something.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Parts {
    /// The imaginary part is not 0.
    pub(crate) imaginary: u64,
    /// Either is infinite.
    pub(crate) infinite: u64,
    /// Either is NaN.
    pub(crate) nan: u64,
}

/// How many elements of C64 there are of which a part is something.
pub(crate) fn count(bytes: &[u8]) -> Parts {
    let [imaginary, infinite, nan] = sum(bytes, |bytes| {
        let [real, imaginary] = magnitudes(bytes);
        let is_infinite = (real == F32_INFINITY) | (imaginary == F32_INFINITY);
        let is_nan = (real > F32_INFINITY) | (imaginary > F32_INFINITY);
        [imaginary != 0, is_infinite, is_nan].map(u64::from)
    });
    Parts { imaginary, infinite, nan }
}

/// Converts F32 to complex numbers without an imaginary part.
pub(crate) fn of_f32(from: &[u8], to: &mut [u8]) {
    each(from, to, |[a, b, c, d]| [a, b, c, d, 0, 0, 0, 0]);
}

/// Converts F64 to complex numbers without an imaginary part.
pub(crate) fn of_f64(from: &[u8], to: &mut [u8]) {
    each(from, to, |bytes| u64::from(float::f32_of_f64(u64::from_le_bytes(bytes))).to_le_bytes());
}

/// Converts complex numbers to the F32 of the larger magnitude of the two parts, of which NaN is
/// the largest: 0 only if both are.
pub(crate) fn larger(from: &[u8], to: &mut [u8]) {
    each(from, to, |bytes| {
        let [real, imaginary] = magnitudes(bytes);
        real.max(imaginary).to_le_bytes()
    });
}

/// The bits of both parts, without their signs.
#[expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]
#[expect(clippy::cast_possible_truncation, reason = "one half is the low 32 bits")]
#[inline(always)]
fn magnitudes(bytes: [u8; 8]) -> [u32; 2] {
    let bits = u64::from_le_bytes(bytes);
    [bits as u32, (bits >> 32) as u32].map(|bits| bits & (u32::MAX >> 1))
}
