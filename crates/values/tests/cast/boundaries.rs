//! Both sides of every boundary of the narrow dtypes, and of every range.

use weigh_format::Dtype;
use weigh_values::cast::Overflow;

use crate::{OVERFLOWS, SMALL, assert_cast, cast_counted, reference};

/// Elements in a chunk of a sweep: whole units of every dtype.
const CHUNK: usize = 1 << 16;

const INTEGERS: [Dtype; 8] =
    [Dtype::U8, Dtype::I8, Dtype::U16, Dtype::I16, Dtype::U32, Dtype::I32, Dtype::U64, Dtype::I64];

/// What [`assert_cast`] does, for any number of elements.
fn assert_casts(from: Dtype, mut elements: Vec<u64>, to: Dtype) {
    elements.resize(elements.len().next_multiple_of(4), 0);
    for chunk in elements.chunks(CHUNK) {
        assert_cast(from, chunk, to);
    }
}

/// Each value as an F32 and as an F64, what these have before and after it, and all negative.
fn around(values: &[f64]) -> [(Dtype, Vec<u64>); 2] {
    let mut narrow = Vec::new();
    let mut wide = Vec::new();
    for value in values.iter().filter(|value| **value >= 0.0) {
        let bits = (*value as f32).to_bits();
        for bits in [bits.saturating_sub(1), bits, bits + 1].map(u64::from) {
            narrow.extend([bits, bits | 1 << 31]);
        }
        let bits = value.to_bits();
        for bits in [bits.saturating_sub(1), bits, bits + 1] {
            wide.extend([bits, bits | 1 << 63]);
        }
    }
    [(Dtype::F32, narrow), (Dtype::F64, wide)]
}

#[test]
fn floats_round_once_to_the_nearest_of_all_neighbours_of_small_dtypes() {
    for to in SMALL {
        let codes = 0..1_u64 << to.bits();
        let values = codes.map(|code| reference::value(to, code));
        let mut values: Vec<f64> =
            values.filter(|value| *value >= 0.0 && value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let largest = *values.last().unwrap();
        let step = largest - values[values.len() - 2];
        let ties = values.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        let beyond = [largest + step / 2.0, largest + step, largest * 4.0, values[1] / 4.0];
        // 2^-128, where underflow begins in powers of two.
        let more = [0.0, 2_f64.powi(-128), 1.5 * 2_f64.powi(127), f64::INFINITY];
        let all: Vec<f64> = ties.chain(values.clone()).chain(beyond).chain(more).collect();
        for (from, elements) in around(&all) {
            assert_casts(from, elements, to);
        }
    }
}

#[test]
fn floats_round_to_the_nearest_integer_and_stop_at_the_last() {
    for to in INTEGERS {
        let digits = to.bits().cast_signed();
        let powers = [digits - 1, digits].map(|power| 2_f64.powi(power));
        let ends = powers
            .iter()
            .flat_map(|power| [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0].map(|offset| power + offset));
        let halves = (0..600).chain(65_000..66_000).map(|half| f64::from(half) / 2.0);
        let far = [1e10, 1e19, 1e38, 1e300, f64::INFINITY];
        let all: Vec<f64> = ends.chain(halves).chain(far).collect();
        for (from, elements) in around(&all) {
            assert_casts(from, elements, to);
        }
    }
}

#[test]
fn integers_round_once_or_wrap_at_both_sides_of_every_power_of_two() {
    let mut elements = vec![0];
    for high in 0..64 {
        for low in 0..=high {
            let sum = (1_u64 << high) | (1 << low);
            let near = [sum - 1, sum, sum + 1, (1 << high) + (3 << low) / 2];
            elements.extend(near.iter().flat_map(|it| [*it, it.wrapping_neg()]));
        }
    }
    for from in INTEGERS {
        let mask = u64::MAX >> (64 - from.bits());
        let elements: Vec<u64> = elements.iter().map(|element| element & mask).collect();
        for to in Dtype::ALL {
            assert_casts(from, elements.clone(), to);
        }
    }
}

#[test]
fn random_elements_of_the_wider_dtypes_become_what_the_reference_says() {
    let scattered = (1..1_u64 << 15).map(|place| place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let scattered: Vec<u64> = scattered.map(|bits| bits ^ bits >> 29).collect();
    for from in Dtype::ALL.into_iter().filter(|dtype| dtype.bits() > 16) {
        let mask = u64::MAX >> (64 - from.bits());
        // The second half has exponents that the small dtypes have as well, and some about them.
        let near = |bits: u64| match from {
            Dtype::F32 => bits & !(0xff << 23) | (127 - 20 + bits % 40) << 23,
            Dtype::C64 => bits & !(0xff << 55 | 0xff << 23) | (127 - 20 + bits % 40) << 23,
            Dtype::F64 => bits & !(0x7ff << 52) | (1023 - 20 + bits % 40) << 52,
            _ => bits >> (bits % u64::from(from.bits())),
        };
        let elements: Vec<u64> =
            scattered.iter().flat_map(|bits| [bits & mask, near(bits & mask)]).collect();
        for to in Dtype::ALL {
            assert_casts(from, elements.clone(), to);
        }
    }
}

#[test]
fn both_sides_of_every_range() {
    use Dtype::{BF16, BOOL, F4, F6_E2M3, F6_E3M2, F8_E4M3, F8_E4M3FNUZ, F8_E5M2, F8_E5M2FNUZ};
    use Dtype::{F8_E8M0, F16, I8, I32, I64, U8, U64};
    let tiny = 2_f64.powi(-127);
    for (value, to, natural, saturating) in [
        // Where the largest is odd a tie is beyond it, where it is even it is not.
        (464.0, F8_E4M3, 0x7e, 0x7e),
        (464.1, F8_E4M3, 0x7f, 0x7e),
        (-464.1, F8_E4M3, 0xff, 0xfe),
        (f64::INFINITY, F8_E4M3, 0x7f, 0x7e),
        (61439.9, F8_E5M2, 0x7b, 0x7b),
        (61440.0, F8_E5M2, 0x7c, 0x7b),
        (f64::NEG_INFINITY, F8_E5M2, 0xfc, 0xfb),
        (247.9, F8_E4M3FNUZ, 0x7f, 0x7f),
        (248.0, F8_E4M3FNUZ, 0x80, 0x7f),
        (-248.0, F8_E4M3FNUZ, 0x80, 0xff),
        (61440.0, F8_E5M2FNUZ, 0x80, 0x7f),
        (7.75, F6_E2M3, 0x1f, 0x1f),
        (-1e30, F6_E2M3, 0x3f, 0x3f),
        (30.0, F6_E3M2, 0x1f, 0x1f),
        (7.0, F4, 7, 7),
        (f64::NEG_INFINITY, F4, 0xf, 0xf),
        (65519.9, F16, 0x7bff, 0x7bff),
        (65520.0, F16, 0x7c00, 0x7bff),
        (f64::INFINITY, BF16, 0x7f80, 0x7f7f),
        // No −0.
        (-0.0, F8_E4M3FNUZ, 0, 0),
        (-1e-9, F8_E5M2FNUZ, 0, 0),
        (-0.0, F8_E4M3, 0x80, 0x80),
        (-0.2, F4, 8, 8),
        // Powers of two: of two as near, the larger.
        (1.49, F8_E8M0, 127, 127),
        (1.5, F8_E8M0, 128, 128),
        (3.0, F8_E8M0, 129, 129),
        (1.49 * 2_f64.powi(127), F8_E8M0, 254, 254),
        (1.5 * 2_f64.powi(127), F8_E8M0, 255, 254),
        (f64::INFINITY, F8_E8M0, 255, 254),
        (1.49 * tiny, F8_E8M0, 0, 0),
        (1.5 * tiny, F8_E8M0, 1, 1),
        (1e-300, F8_E8M0, 0, 0),
        (0.0, F8_E8M0, 255, 0),
        (-0.0, F8_E8M0, 255, 0),
        (-1.0, F8_E8M0, 255, 0),
        (f64::NEG_INFINITY, F8_E8M0, 255, 0),
        // Integers: nearest, ties to even, then the ends.
        (0.5, U8, 0, 0),
        (1.5, U8, 2, 2),
        (-0.6, U8, 0, 0),
        (255.5, U8, 255, 255),
        (-128.5, I8, 0x80, 0x80),
        (1e300, I32, 0x7fff_ffff, 0x7fff_ffff),
        (f64::NEG_INFINITY, I64, 1 << 63, 1 << 63),
        (2_f64.powi(63), I64, u64::MAX >> 1, u64::MAX >> 1),
        (2_f64.powi(64), U64, u64::MAX, u64::MAX),
        // NaN, where there is none.
        (f64::NAN, F4, 0, 0),
        (-f64::NAN, F6_E3M2, 0, 0),
        (f64::NAN, U64, 0, 0),
        (f64::NAN, BOOL, 1, 1),
        (f64::NAN, F8_E8M0, 255, 255),
        (-f64::NAN, F8_E4M3, 0xff, 0xff),
        (f64::NAN, F8_E5M2FNUZ, 0x80, 0x80),
        (1e-300, BOOL, 1, 1),
        (-0.0, BOOL, 0, 0),
    ] {
        for (overflow, want) in OVERFLOWS.into_iter().zip([natural, saturating]) {
            let elements = [value.to_bits(); 4];
            let got = cast_counted(Dtype::F64, &elements, to, overflow).0;
            assert_eq!(got, [want; 4], "{value:e} to {to}, {overflow:?}");
            let reference = reference::cast(Dtype::F64, value.to_bits(), to, overflow).0;
            assert_eq!(reference, want, "the reference, of {value:e} to {to}, {overflow:?}");
        }
    }
}

#[test]
fn integers_wrap_or_saturate() {
    use Dtype::{BOOL, F8_E8M0, I8, I64, U8, U32, U64};
    for (from, element, to, natural, saturating) in [
        (I64, 255, U8, 255, 255),
        (I64, 256, U8, 0, 255),
        (I64, (-1_i64).cast_unsigned(), U8, 255, 0),
        (I64, (-129_i64).cast_unsigned(), I8, 127, 0x80),
        (I64, (-1_i64).cast_unsigned(), U64, u64::MAX, 0),
        (U64, 1 << 63, I64, 1 << 63, u64::MAX >> 1),
        (U64, u64::MAX, I8, 255, 127),
        (I8, 0xff, U32, 0xffff_ffff, 0),
        (U8, 0xff, I8, 0xff, 127),
        (U64, 1 << 40, BOOL, 1, 1),
        (BOOL, 7, U8, 1, 1),
        (BOOL, 0, F8_E8M0, 255, 0),
    ] {
        for (overflow, want) in OVERFLOWS.into_iter().zip([natural, saturating]) {
            let got = cast_counted(from, &[element], to, overflow).0;
            assert_eq!(got, [want], "{from} {element:#x} to {to}, {overflow:?}");
        }
    }
}

#[test]
fn no_f64_is_rounded_twice() {
    // By way of F32 each would be a tie, and go to the even neighbour.
    for (value, to, want) in [
        (1.0 + 2_f64.powi(-4) + 2_f64.powi(-40), Dtype::F8_E4M3, 0x39),
        (1.0 + 2_f64.powi(-4), Dtype::F8_E4M3, 0x38),
        (1.25 + 2_f64.powi(-40), Dtype::F4, 3),
        (1.25, Dtype::F4, 2),
        (1.5 - 2_f64.powi(-40), Dtype::F8_E8M0, 127),
        (2_f64.powi(-10) + 2_f64.powi(-50), Dtype::F8_E4M3, 1),
        (464.0 + 2_f64.powi(-40), Dtype::F8_E4M3, 0x7f),
    ] {
        let got = cast_counted(Dtype::F64, &[value.to_bits(); 4], to, Overflow::Natural).0;
        assert_eq!(got, [want; 4], "{value:?} to {to}");
    }
}
