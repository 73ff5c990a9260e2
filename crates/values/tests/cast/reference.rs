//! Every dtype and cast from the definitions of the formats: slow, and nothing like the crate.

use weigh_format::Dtype;
use weigh_values::Tally;
use weigh_values::cast::Overflow;

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

/// A number that is not rounded yet.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Integer(i128),
    /// A number or infinity.
    Float(f64),
}

/// The bits of the element that a number becomes, and whether it overflowed.
pub(crate) fn element(to: Dtype, number: Number, overflow: Overflow) -> (u64, bool) {
    if to == Dtype::BOOL {
        let is_zero = matches!(number, Number::Integer(0) | Number::Float(0.0));
        return (u64::from(!is_zero), false);
    }
    if let Some((low, high)) = integers(to) {
        let mask = u64::MAX >> (64 - to.bits());
        let (nearest, wraps) = match number {
            Number::Integer(integer) => (integer, overflow == Overflow::Natural),
            // Clamps what is beyond 128 bits, and so beyond the target.
            Number::Float(value) => (value.round_ties_even() as i128, false),
        };
        let clamped = if wraps { nearest } else { nearest.clamp(low, high) };
        return (clamped as u64 & mask, !(low..=high).contains(&nearest));
    }
    if to == Dtype::F8_E8M0 {
        return scale(number, overflow);
    }

    let largest = largest(to);
    let rounded = match number {
        Number::Integer(integer) => rounded_integer(to, integer),
        Number::Float(value) => rounded(to, value),
    };
    let has_infinity = matches!(format(to).special, Special::TopExponent);
    let is_infinite = matches!(number, Number::Float(value) if value.is_infinite());
    if overflow == Overflow::Natural && has_infinity && is_infinite {
        return (infinity(to, rounded), false);
    }
    if rounded.abs() <= largest {
        return (bits(to, rounded), false);
    }
    let becomes = match (overflow, format(to).special) {
        (Overflow::Natural, Special::TopExponent) => infinity(to, rounded),
        (Overflow::Natural, Special::AllOnes | Special::NegativeZero) => {
            nan(to, rounded.is_sign_negative(), 0)
        }
        _ => bits(to, largest.copysign(rounded)),
    };
    (becomes, true)
}

/// The smallest and the largest number of an integer dtype.
fn integers(dtype: Dtype) -> Option<(i128, i128)> {
    Some(match dtype {
        Dtype::U8 => (0, u8::MAX.into()),
        Dtype::I8 => (i8::MIN.into(), i8::MAX.into()),
        Dtype::U16 => (0, u16::MAX.into()),
        Dtype::I16 => (i16::MIN.into(), i16::MAX.into()),
        Dtype::U32 => (0, u32::MAX.into()),
        Dtype::I32 => (i32::MIN.into(), i32::MAX.into()),
        Dtype::U64 => (0, u64::MAX.into()),
        Dtype::I64 => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

/// The power of two that a number becomes.
fn scale(number: Number, overflow: Overflow) -> (u64, bool) {
    let value = match number {
        Number::Integer(integer) => {
            // What is cut from more than 53 bits is below every tie: those have two.
            let digits = 128 - integer.unsigned_abs().leading_zeros();
            let cut = digits.saturating_sub(53);
            let kept =
                float((integer.unsigned_abs() >> cut) as u64) * power_of_two(cut.cast_signed());
            if integer < 0 { -kept } else { kept }
        }
        Number::Float(value) => value,
    };
    let code = (0..255_u64).find(|code| {
        let power = power_of_two(i32::try_from(*code).unwrap() - 127);
        value < 1.5 * power
    });
    match (code, overflow) {
        (Some(code), _) if value > 0.0 => (code, false),
        (_, Overflow::Natural) => (0xff, true),
        (Some(_), _) => (0, true),
        (None, _) => (254, true),
    }
}

/// The bits of the element nearest to a value that is a number, as IEEE 754 has it.
pub(crate) fn nearest(dtype: Dtype, value: f64) -> u64 {
    element(dtype, Number::Float(value), Overflow::Natural).0
}

/// The largest finite value.
fn largest(dtype: Dtype) -> f64 {
    let format = format(dtype);
    let codes = 1_u64 << (format.exponent_bits + format.mantissa_bits);
    // The last code, or the one before, or that before infinity.
    let code = match format.special {
        Special::None | Special::NegativeZero => codes - 1,
        Special::AllOnes => codes - 2,
        Special::TopExponent => codes - (1 << format.mantissa_bits) - 1,
    };
    value(dtype, code)
}

fn infinity(dtype: Dtype, signed: f64) -> u64 {
    let Format { exponent_bits, mantissa_bits, .. } = format(dtype);
    let sign = u64::from(signed.is_sign_negative()) << (exponent_bits + mantissa_bits);
    sign | ((1_u64 << exponent_bits) - 1) << mantissa_bits
}

/// A value rounded as if there were no largest one.
fn rounded(dtype: Dtype, value: f64) -> f64 {
    let Format { mantissa_bits, bias, .. } = format(dtype);
    let magnitude = value.abs();
    if dtype == Dtype::F64 || value.is_infinite() {
        return value;
    }
    let step = power_of_two(power_below(magnitude, 1 - bias) - mantissa_bits.cast_signed());
    ((magnitude / step).round_ties_even() * step).copysign(value)
}

/// The exponent of the largest power of two that a finite magnitude reaches, but no less than
/// `lowest`.
fn power_below(magnitude: f64, lowest: i32) -> i32 {
    if magnitude < power_of_two(lowest) {
        return lowest;
    }
    let mut exponent = magnitude.log2() as i32 - 1;
    while exponent < 1023 && magnitude >= power_of_two(exponent + 1) {
        exponent += 1;
    }
    exponent.max(lowest)
}

/// An integer rounded as if there were no largest one.
fn rounded_integer(dtype: Dtype, integer: i128) -> f64 {
    let magnitude = integer.unsigned_abs();
    let digits = 128 - magnitude.leading_zeros();
    let cut = digits.saturating_sub(format(dtype).mantissa_bits + 1);
    let (kept, rest) = (magnitude >> cut, magnitude & ((1 << cut) - 1));
    let half = (1 << cut) >> 1;
    let up = cut > 0 && (rest > half || rest == half && kept % 2 == 1);
    let rounded = float((kept + u128::from(up)) as u64) * power_of_two(cut.cast_signed());
    if integer < 0 { -rounded } else { rounded }
}

/// The bits of a value that the dtype has.
fn bits(dtype: Dtype, value: f64) -> u64 {
    let Format { exponent_bits, mantissa_bits, bias, special } = format(dtype);
    if dtype == Dtype::F64 {
        return value.to_bits();
    }
    let magnitude = value.abs();
    let exponent = power_below(magnitude, 1 - bias);
    let steps = (magnitude / power_of_two(exponent - mantissa_bits.cast_signed())) as u64;
    // The leading one counts up the exponent, if there is one.
    let code = (((exponent + bias - 1) as u64) << mantissa_bits) + steps;
    let is_zero = matches!(special, Special::NegativeZero) && code == 0;
    let negative = value.is_sign_negative() && !is_zero;
    u64::from(negative) << (exponent_bits + mantissa_bits) | code
}

/// The bits of a NaN of a sign, with the top of a payload of 52 bits, and quiet; of 0 where there
/// is none.
fn nan(to: Dtype, negative: bool, payload: u64) -> u64 {
    if integers(to).is_some() {
        return 0;
    }
    match to {
        Dtype::BOOL => return 1,
        Dtype::F8_E8M0 => return 0xff,
        _ => {}
    }
    let Format { exponent_bits, mantissa_bits, special, .. } = format(to);
    let sign = u64::from(negative) << (exponent_bits + mantissa_bits);
    let all_ones = (1_u64 << (exponent_bits + mantissa_bits)) - 1;
    match special {
        Special::None => 0,
        Special::NegativeZero => all_ones + 1,
        Special::AllOnes => sign | all_ones,
        Special::TopExponent => {
            let quiet = 1 << (mantissa_bits - 1);
            infinity(to, 0.0) | sign | quiet | payload >> (52 - mantissa_bits)
        }
    }
}

/// The bits of the NaN that a NaN becomes.
fn nan_of(from: Dtype, bits: u64, to: Dtype) -> u64 {
    let (mantissa_bits, Parts { negative, mantissa, .. }) = match from {
        Dtype::F8_E8M0 => (0, Parts { negative: false, exponent: 0, mantissa: 0 }),
        _ => (format(from).mantissa_bits, parts(from, bits)),
    };
    let payload = mantissa << (52 - mantissa_bits);
    let keeps_all = matches!(
        (from, to),
        (Dtype::F16 | Dtype::BF16, Dtype::F32 | Dtype::F64) | (Dtype::F32, Dtype::F64)
    );
    let quiet = nan(to, negative, payload);
    if keeps_all && payload >> 51 == 0 {
        quiet & !(1 << (format(to).mantissa_bits - 1))
    } else {
        quiet
    }
}

/// What a cast makes of an element, and the tally of that.
pub(crate) fn cast(from: Dtype, bits: u64, to: Dtype, overflow: Overflow) -> (u64, Tally) {
    if from == Dtype::C64 || to == Dtype::C64 {
        return complex(from, bits, to, overflow);
    }
    let mut tally = Tally::default();
    tally.values = 1;
    let number = if let Some((low, _)) = integers(from) {
        let cut = 64 - from.bits();
        Number::Integer(if low < 0 {
            i128::from((bits << cut).cast_signed() >> cut)
        } else {
            i128::from(bits)
        })
    } else if from == Dtype::BOOL {
        Number::Integer(i128::from(bits != 0))
    } else {
        Number::Float(value(from, bits))
    };
    let is_nan = matches!(number, Number::Float(value) if value.is_nan());
    let is_infinite = matches!(number, Number::Float(value) if value.is_infinite());
    if is_nan {
        tally.nan = 1;
        let holds = to == Dtype::F8_E8M0 || has_format(to) && nan(to, false, 0) != 0;
        tally.nan_lost = u64::from(!holds);
    }
    if from == to && !(is_infinite && overflow == Overflow::Saturate) {
        return (bits, tally);
    }
    if is_nan {
        return (nan_of(from, bits, to), tally);
    }
    let (got, overflowed) = element(to, number, overflow);
    tally.overflow = u64::from(overflowed);
    let is_zero = matches!(number, Number::Integer(0) | Number::Float(0.0));
    let vanished = match (to, number) {
        // Half of the smallest.
        (Dtype::F8_E8M0, Number::Float(value)) => value < power_of_two(-128),
        (Dtype::F8_E8M0, Number::Integer(_)) => false,
        (to, _) if has_format(to) => value(to, got) == 0.0,
        (_, _) => got == 0,
    };
    tally.underflow = u64::from(vanished && !is_zero && !overflowed);
    (got, tally)
}

/// What a cast from or to complex numbers makes of an element, and the tally of that.
fn complex(from: Dtype, bits: u64, to: Dtype, overflow: Overflow) -> (u64, Tally) {
    if from != Dtype::C64 {
        return cast(from, bits, Dtype::F32, overflow);
    }
    let (real, imaginary) = (bits & 0xffff_ffff, bits >> 32);
    let values = [real, imaginary].map(|part| value(Dtype::F32, part));
    let is_nan = values.iter().any(|value| value.is_nan());
    let (got, mut tally) = match to {
        Dtype::C64 => {
            let ([real, imaginary], tallies): ([u64; 2], Vec<Tally>) = {
                let parts = [real, imaginary].map(|it| cast(Dtype::F32, it, Dtype::F32, overflow));
                (parts.map(|(bits, _)| bits), parts.map(|(_, tally)| tally).to_vec())
            };
            let mut tally: Tally = tallies.into_iter().sum();
            tally.overflow = tally.overflow.min(1);
            (imaginary << 32 | real, tally)
        }
        Dtype::BOOL => {
            let mut tally = Tally::default();
            tally.nan_lost = u64::from(is_nan);
            (u64::from(values.iter().any(|value| *value != 0.0)), tally)
        }
        _ => {
            let (got, mut tally) = cast(Dtype::F32, real, to, overflow);
            tally.imaginary_lost = u64::from(values[1] != 0.0);
            (got, tally)
        }
    };
    tally.values = 1;
    tally.nan = u64::from(is_nan);
    (got, tally)
}

/// Whether the dtype has a format of a sign, an exponent and a mantissa.
fn has_format(dtype: Dtype) -> bool {
    dtype.name().starts_with(['F', 'B']) && !matches!(dtype, Dtype::BOOL | Dtype::F8_E8M0)
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
    let width = dtype.bits() as usize;
    let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
    let element = |place| (0..width).fold(0, |bits, at| bits | bit(place * width + at) << at);
    (0..bytes.len() * 8 / width).map(element).collect()
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

/// Whether an element is 0, or −0.
pub(crate) fn is_zero(dtype: Dtype, bits: u64) -> bool {
    bits == 0 && dtype != Dtype::F8_E8M0 || has_format(dtype) && value(dtype, bits) == 0.0
}

/// Whether an element is NaN, or a part of it.
pub(crate) fn is_nan(dtype: Dtype, bits: u64) -> bool {
    if dtype == Dtype::C64 {
        return is_nan(Dtype::F32, bits & 0xffff_ffff) || is_nan(Dtype::F32, bits >> 32);
    }
    (dtype == Dtype::F8_E8M0 || has_format(dtype)) && value(dtype, bits).is_nan()
}
