//! Both sides of every boundary between neighbours of the narrower dtypes.

use weigh_format::Dtype;
use weigh_values::cast::Overflow;

use crate::{assert_cast, cast, reference};

/// Elements in a chunk of a sweep.
const CHUNK: usize = 1 << 16;

#[test]
fn f32_rounds_to_the_nearest_of_all_neighbours() {
    for to in [Dtype::F16, Dtype::BF16] {
        for chunk in midpoints(to).chunks(CHUNK) {
            let around = chunk.iter().flat_map(|&midpoint| {
                let bits = (midpoint as f32).to_bits();
                assert_eq!(f64::from(f32::from_bits(bits)).to_bits(), midpoint.to_bits());
                [bits - 1, bits, bits + 1].map(u64::from)
            });
            assert_cast(Dtype::F32, &with_negatives(around, 1 << 31), to);
        }
    }
}

#[test]
fn f64_rounds_once_to_the_nearest_of_all_neighbours() {
    for to in [Dtype::F16, Dtype::BF16] {
        for chunk in midpoints(to).chunks(CHUNK) {
            assert_cast(Dtype::F64, &around_in_f64(chunk), to);
        }
    }
}

#[test]
fn f64_rounds_to_the_nearest_f32() {
    let lower = (0..0x7f80_0000).step_by(4093).chain(0x7f7f_ffff - 100..=0x7f7f_ffff).chain(0..100);
    let midpoints: Vec<f64> = lower.map(|bits| midpoint(Dtype::F32, bits)).collect();
    for chunk in midpoints.chunks(CHUNK) {
        assert_cast(Dtype::F64, &around_in_f64(chunk), Dtype::F32);
    }
}

#[test]
fn f32_of_all_kinds_becomes_what_the_reference_says() {
    let patterns: Vec<u64> = (0..=u64::from(u32::MAX)).step_by(1021).collect();
    for to in [Dtype::F64, Dtype::F16, Dtype::BF16] {
        for chunk in patterns.chunks(CHUNK) {
            assert_cast(Dtype::F32, chunk, to);
        }
    }
}

#[test]
fn f64_of_all_kinds_becomes_what_the_reference_says() {
    // The second half has exponents that the narrower dtypes have as well, and some about them.
    let scattered = (0..1_u64 << 20).map(|place| place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let patterns: Vec<u64> = scattered
        .flat_map(|bits| [bits, bits & !(0x7ff << 52) | (1023 - 160 + bits % 300) << 52])
        .collect();
    for to in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        for chunk in patterns.chunks(CHUNK) {
            assert_cast(Dtype::F64, chunk, to);
        }
    }
}

#[test]
fn both_sides_of_every_special_boundary() {
    const F16: Dtype = Dtype::F16;
    const BF16: Dtype = Dtype::BF16;
    const F32: Dtype = Dtype::F32;
    const F64: Dtype = Dtype::F64;
    for (from, bits, to, want) in [
        // Overflow: half a step beyond the largest finite value.
        (F32, 0x477f_e000, F16, 0x7bff),
        (F32, 0x477f_efff, F16, 0x7bff),
        (F32, 0x477f_f000, F16, 0x7c00),
        (F32, 0xc77f_f000, F16, 0xfc00),
        (F32, 0x7f7f_7fff, BF16, 0x7f7f),
        (F32, 0x7f7f_8000, BF16, 0x7f80),
        (F32, 0xff7f_ffff, BF16, 0xff80),
        (F64, 0x47ef_ffff_efff_ffff, F32, 0x7f7f_ffff),
        (F64, 0x47ef_ffff_f000_0000, F32, 0x7f80_0000),
        (F64, 0x7fef_ffff_ffff_ffff, BF16, 0x7f80),
        (BF16, 0x477f, F16, 0x7bf8),
        (BF16, 0x4780, F16, 0x7c00),
        // Underflow: half of the smallest subnormal value is a tie, and goes to 0.
        (F32, 0x3300_0000, F16, 0),
        (F32, 0x3300_0001, F16, 1),
        (F32, 0xb300_0000, F16, 0x8000),
        (F32, 0x0000_8000, BF16, 0),
        (F32, 0x0000_8001, BF16, 1),
        (F32, 0x8000_0001, BF16, 0x8000),
        (F64, 0x3690_0000_0000_0000, F32, 0),
        (F64, 0x3690_0000_0000_0001, F32, 1),
        (F64, 0x8000_0000_0000_0001, F32, 0x8000_0000),
        (F64, 0x0000_0000_0000_0001, F16, 0),
        (F64, 0x0000_0000_0000_0001, BF16, 0),
        // From subnormal to normal.
        (F32, 0x387f_dfff, F16, 0x03ff),
        (F32, 0x387f_e000, F16, 0x0400),
        (F32, 0x007f_7fff, BF16, 0x007f),
        (F32, 0x007f_8000, BF16, 0x0080),
        // By way of F32, a tie: rounded twice, these would go to the even neighbour.
        (F64, 0x3ff0_0200_0000_0001, F16, 0x3c01),
        (F64, 0x3ff0_05ff_ffff_ffff, F16, 0x3c01),
        (F64, 0x3ff0_1000_0000_0001, BF16, 0x3f81),
        (F64, 0x3ff0_2fff_ffff_ffff, BF16, 0x3f81),
        (F64, 0xbff0_1000_0000_0001, BF16, 0xbf81),
        (F64, 0x3e60_0000_0000_0001, F16, 1),
        // Zeros and infinities.
        (F32, 0x8000_0000, F16, 0x8000),
        (F32, 0x8000_0000, BF16, 0x8000),
        (F64, 0x8000_0000_0000_0000, F32, 0x8000_0000),
        (F32, 0x7f80_0000, F16, 0x7c00),
        (F32, 0xff80_0000, BF16, 0xff80),
        (F64, 0xfff0_0000_0000_0000, F16, 0xfc00),
        (F64, 0x7ff0_0000_0000_0000, BF16, 0x7f80),
        // NaN: with its sign and the top of its payload, and quiet if narrower.
        (F32, 0x7f80_0001, F16, 0x7e00),
        (F32, 0xffbf_ffff, F16, 0xffff),
        (F32, 0x7fc0_0000, F16, 0x7e00),
        (F32, 0x7f80_2000, F16, 0x7e01),
        (F32, 0x7f80_0001, BF16, 0x7fc0),
        (F32, 0x7fff_ffff, BF16, 0x7fff),
        (F32, 0xffff_ffff, BF16, 0xffff),
        (F32, 0xff81_0000, BF16, 0xffc1),
        (F64, 0x7ff0_0000_0000_0001, F32, 0x7fc0_0000),
        (F64, 0xfff0_0000_2000_0000, F32, 0xffc0_0001),
        (F64, 0x7ff0_0000_0000_0001, F16, 0x7e00),
        (F64, 0xfff0_0000_0000_0001, BF16, 0xffc0),
        (F32, 0x7f80_0001, F64, 0x7ff0_0000_2000_0000),
        (F16, 0x7c01, F32, 0x7f80_2000),
        (F16, 0xfe00, BF16, 0xffc0),
        (BF16, 0xff81, F32, 0xff81_0000),
        (BF16, 0xff81, F16, 0xfe08),
    ] {
        assert_eq!(cast(from, &[bits], to), [want], "{from} {bits:#x} to {to}");
        let reference = reference::cast(from, bits, to, Overflow::Natural).0;
        assert_eq!(reference, want, "the reference, of {from} {bits:#x}");
    }
}

/// The middle of every two neighbours that are not negative, up to where infinity begins.
fn midpoints(dtype: Dtype) -> Vec<f64> {
    let infinity = reference::nearest(dtype, f64::INFINITY);
    (0..infinity).map(|lower| midpoint(dtype, lower)).collect()
}

/// The middle between an element and the next, which F64 has exactly.
fn midpoint(dtype: Dtype, lower: u64) -> f64 {
    let value = reference::value(dtype, lower);
    let upper = reference::value(dtype, lower + 1);
    if upper.is_finite() {
        f64::midpoint(value, upper)
    } else {
        // As far from the last finite value as the midpoint before it was.
        value + (value - reference::value(dtype, lower - 1)) / 2.0
    }
}

/// Each value, what F64 has before and after it, and all of them negative.
fn around_in_f64(values: &[f64]) -> Vec<u64> {
    let around = values.iter().flat_map(|value| {
        let bits = value.to_bits();
        [bits - 1, bits, bits + 1]
    });
    with_negatives(around, 1 << 63)
}

fn with_negatives(elements: impl Iterator<Item = u64>, sign: u64) -> Vec<u64> {
    elements.flat_map(|element| [element, element | sign]).collect()
}
