//! The float dtypes from the definitions of their formats: slow, and nothing like the crate.

use weigh_format::Dtype;

/// A format with a sign, an exponent and a mantissa.
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

/// What of a format is not finite.
enum Special {
    None,
    /// The top exponent, as IEEE 754 has it.
    TopExponent,
    /// Exponent and mantissa all ones.
    AllOnes,
    /// The sign alone.
    NegativeZero,
}

fn format(dtype: Dtype) -> Format {
    use Special::{AllOnes, NegativeZero, None, TopExponent};
    let (exponent_bits, mantissa_bits, bias, special) = match dtype {
        Dtype::F4 => (2, 1, 1, None),
        Dtype::F6_E2M3 => (2, 3, 1, None),
        Dtype::F6_E3M2 => (3, 2, 3, None),
        Dtype::F8_E4M3 => (4, 3, 7, AllOnes),
        Dtype::F8_E5M2 => (5, 2, 15, TopExponent),
        Dtype::F8_E4M3FNUZ => (4, 3, 8, NegativeZero),
        Dtype::F8_E5M2FNUZ => (5, 2, 16, NegativeZero),
        Dtype::F16 => (5, 10, 15, TopExponent),
        Dtype::BF16 => (8, 7, 127, TopExponent),
        Dtype::F32 => (8, 23, 127, TopExponent),
        Dtype::F64 => (11, 52, 1023, TopExponent),
        other => panic!("{other} has no such format"),
    };
    Format { exponent_bits, mantissa_bits, bias, special }
}

/// The value of an element, by its bits.
pub(crate) fn value(dtype: Dtype, bits: u64) -> f64 {
    match dtype {
        Dtype::F8_E8M0 if bits == 0xff => return f64::NAN,
        Dtype::F8_E8M0 => return power_of_two(i32::try_from(bits).unwrap() - 127),
        Dtype::F64 => return f64::from_bits(bits),
        _ => {}
    }
    let (format, Parts { negative, exponent, mantissa }) = (format(dtype), parts(dtype, bits));
    let top_exponent = (1 << format.exponent_bits) - 1;
    let all_ones = exponent == top_exponent && mantissa == (1 << format.mantissa_bits) - 1;
    let magnitude = match format.special {
        Special::TopExponent if exponent == top_exponent && mantissa == 0 => f64::INFINITY,
        Special::TopExponent if exponent == top_exponent => f64::NAN,
        Special::AllOnes if all_ones => f64::NAN,
        Special::NegativeZero if negative && exponent == 0 && mantissa == 0 => f64::NAN,
        _ => {
            let one = if exponent == 0 { 0 } else { 1 << format.mantissa_bits };
            let scale = exponent.max(1) - format.bias - format.mantissa_bits.cast_signed();
            float(one + mantissa) * power_of_two(scale)
        }
    };
    if negative { -magnitude } else { magnitude }
}

/// The bits of the element nearest to a value that is a number, ties to even.
pub(crate) fn nearest(dtype: Dtype, value: f64) -> u64 {
    let Format { exponent_bits, mantissa_bits, bias, special } = format(dtype);
    assert!(matches!(special, Special::TopExponent) && !value.is_nan());
    let sign = u64::from(value.is_sign_negative()) << (exponent_bits + mantissa_bits);
    let infinity = ((1_u64 << exponent_bits) - 1) << mantissa_bits;
    let magnitude = value.abs();
    if magnitude >= power_of_two(bias + 1) {
        return sign | infinity;
    }

    let mut exponent = 1 - bias;
    if magnitude >= power_of_two(exponent) {
        exponent = magnitude.log2() as i32 - 1;
        while magnitude >= power_of_two(exponent + 1) {
            exponent += 1;
        }
    }
    let step = power_of_two(exponent - mantissa_bits.cast_signed());
    let steps = (magnitude / step).round_ties_even() as u64;
    let one = 1 << mantissa_bits;
    sign | if steps < one {
        steps
    } else if steps < 2 * one {
        ((exponent + bias) as u64) << mantissa_bits | (steps - one)
    } else {
        // Rounded up to the next power of two; if that is past the last, this is infinity.
        ((exponent + 1 + bias) as u64) << mantissa_bits
    }
}

/// The bits of the NaN that a NaN becomes.
pub(crate) fn nan(from: Dtype, bits: u64, to: Dtype) -> u64 {
    let (mantissa_bits, Parts { negative, mantissa, .. }) = match from {
        Dtype::F8_E8M0 => (0, Parts { negative: false, exponent: 0, mantissa: 0 }),
        _ => (format(from).mantissa_bits, parts(from, bits)),
    };
    let target = format(to);
    let quiet = 1 << (target.mantissa_bits - 1);
    let payload = if target.mantissa_bits >= mantissa_bits {
        mantissa << (target.mantissa_bits - mantissa_bits)
    } else {
        mantissa >> (mantissa_bits - target.mantissa_bits)
    };
    let keeps_all = matches!(
        (from, to),
        (Dtype::F16 | Dtype::BF16, Dtype::F32 | Dtype::F64) | (Dtype::F32, Dtype::F64)
    );
    let sign = u64::from(negative) << (target.exponent_bits + target.mantissa_bits);
    let top_exponent = ((1_u64 << target.exponent_bits) - 1) << target.mantissa_bits;
    sign | top_exponent | payload | if keeps_all { 0 } else { quiet }
}

/// What a cast makes of an element.
pub(crate) fn cast(from: Dtype, bits: u64, to: Dtype) -> u64 {
    match value(from, bits) {
        value if value.is_nan() => nan(from, bits, to),
        value if to == Dtype::F64 => value.to_bits(),
        value => nearest(to, value),
    }
}

/// Writes elements one after the other, the first in the lowest bits.
pub(crate) fn pack(dtype: Dtype, elements: &[u64]) -> Vec<u8> {
    let width = dtype.bits() as usize;
    let mut bytes = vec![0; elements.len() * width / 8];
    for (place, element) in elements.iter().enumerate() {
        for bit in 0..width {
            let at = place * width + bit;
            bytes[at / 8] |= ((element >> bit & 1) as u8) << (at % 8);
        }
    }
    bytes
}

/// Reads what [`pack`] wrote, of whole bytes.
pub(crate) fn unpack(dtype: Dtype, bytes: &[u8]) -> Vec<u64> {
    let element =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |element, byte| element << 8 | u64::from(*byte));
    bytes.chunks(dtype.bits() as usize / 8).map(element).collect()
}

struct Parts {
    negative: bool,
    exponent: i32,
    mantissa: u64,
}

fn parts(dtype: Dtype, bits: u64) -> Parts {
    let Format { exponent_bits, mantissa_bits, .. } = format(dtype);
    Parts {
        negative: bits >> (exponent_bits + mantissa_bits) & 1 == 1,
        exponent: (bits >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32,
        mantissa: bits & ((1 << mantissa_bits) - 1),
    }
}

/// 2^`exponent`, which F64 has among its normal values.
fn power_of_two(exponent: i32) -> f64 {
    assert!((-1022..=1023).contains(&exponent));
    f64::from_bits(u64::from((exponent + 1023).cast_unsigned()) << 52)
}

fn float(integer: u64) -> f64 {
    assert!(integer <= 1 << 53);
    integer as f64
}
