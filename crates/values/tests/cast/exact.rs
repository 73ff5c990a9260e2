//! Every element of the dtypes of at most 16 bits.

use weigh_format::Dtype;
use weigh_values::cast::{Cast, Overflow};

use crate::{SMALL, assert_cast, cast, cast_counted, reference};

#[test]
fn every_element_of_8_bits_or_less_becomes_what_the_reference_says() {
    for from in Dtype::ALL.into_iter().filter(|dtype| dtype.bits() <= 8) {
        let codes: Vec<u64> = (0..1 << from.bits()).collect();
        for to in Dtype::ALL {
            assert_cast(from, &codes, to);
        }
    }
}

#[test]
fn every_code_of_every_small_dtype_has_the_value_that_ml_dtypes_gives_it() {
    let mut dtypes = Vec::new();
    for line in include_str!("../small_values.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, values) = line.split_once(' ').unwrap();
        let from = Dtype::from_name(name.as_bytes()).unwrap();
        let codes: Vec<u64> = (0..1 << from.bits()).collect();
        let values: Vec<&str> = values.split(' ').collect();
        assert_eq!(values.len(), codes.len(), "{name}");
        for ((code, got), want) in codes.iter().zip(cast(from, &codes, Dtype::F32)).zip(values) {
            let value = f32::from_bits(got as u32);
            let same = if want == "nan" {
                value.is_nan()
            } else {
                got == u64::from_str_radix(want, 16).unwrap()
            };
            assert!(same, "{name} {code:#x}: {value}, not {want}");
        }
        dtypes.push(from);
    }
    assert_eq!(dtypes, SMALL);
}

#[test]
fn every_element_of_16_bits_becomes_what_the_reference_says() {
    let patterns: Vec<u64> = (0..1 << 16).collect();
    for from in Dtype::ALL.into_iter().filter(|dtype| dtype.bits() == 16) {
        for to in Dtype::ALL {
            assert_cast(from, &patterns, to);
        }
    }
}

#[test]
fn every_pattern_of_16_bits_comes_back_from_32_and_64_with_only_a_nan_made_quiet() {
    let patterns: Vec<u64> = (0..1 << 16).collect();
    for (dtype, quiet) in [(Dtype::F16, 0x0200), (Dtype::BF16, 0x0040)] {
        for wide in [Dtype::F32, Dtype::F64] {
            let back = cast(wide, &cast(dtype, &patterns, wide), dtype);
            for (&pattern, back) in patterns.iter().zip(back) {
                let nan = reference::value(dtype, pattern).is_nan();
                let want = if nan { pattern | quiet } else { pattern };
                assert!(back == want, "{dtype} {pattern:#x} by {wide}: {back:#x}");
            }
        }
    }
}

#[test]
fn a_source_of_the_targets_dtype_is_copied_but_for_infinities_that_saturate() {
    for (dtype, signalling, infinity) in [
        (Dtype::F64, 0x7ff0_0000_0000_0001, 0x7ff0_0000_0000_0000),
        (Dtype::F32, 0x7f80_0001, 0x7f80_0000),
        (Dtype::F16, 0x7c01, 0x7c00),
        (Dtype::BF16, 0x7f81, 0x7f80),
        (Dtype::F8_E5M2, 0x7d, 0x7c),
        (Dtype::C64, 0x7f80_0001_3f80_0000, 0x3f80_0000_7f80_0000),
    ] {
        let elements = [signalling, 1, infinity, infinity | 1 << (dtype.bits() - 1)];
        assert_eq!(cast(dtype, &elements, dtype), elements, "{dtype}");
        let (got, tally) = cast_counted(dtype, &elements, dtype, Overflow::Saturate);
        let lower = infinity - 1;
        assert_eq!(got, [signalling, 1, lower, lower | 1 << (dtype.bits() - 1)], "{dtype}");
        assert_eq!((tally.values, tally.overflow, tally.nan), (4, 2, 1), "{dtype}");
    }
    for bits in 0..=255 {
        assert_eq!(cast(Dtype::BOOL, &[bits], Dtype::BOOL), [bits]);
    }
}

#[test]
fn the_first_of_packed_elements_is_in_the_lowest_bits() {
    for (from, bytes, want) in [
        (Dtype::F4, &[0x21][..], &[0.5, 1.0][..]),
        (Dtype::F4, &[0xf2, 0x07], &[1.0, -6.0, 6.0, 0.0]),
        (Dtype::F6_E2M3, &[0x08, 0, 0], &[1.0, 0.0, 0.0, 0.0]),
        (Dtype::F6_E2M3, &[0, 0x02, 0], &[0.0, 1.0, 0.0, 0.0]),
        (Dtype::F6_E2M3, &[0, 0x80, 0], &[0.0, 0.0, 1.0, 0.0]),
        (Dtype::F6_E2M3, &[0, 0, 0x20], &[0.0, 0.0, 0.0, 1.0]),
        (Dtype::F6_E3M2, &[0x3f, 0, 0x7c], &[-28.0, 0.0, 0.0, 28.0]),
    ] {
        let mut to = vec![0; want.len() * 4];
        Cast::new(from, Dtype::F32, Overflow::Natural).convert(bytes, &mut to).unwrap();
        let got: Vec<f32> =
            to.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert_eq!(got, want, "{from} {bytes:x?}");
        let mut back = vec![0; bytes.len()];
        Cast::new(Dtype::F32, from, Overflow::Natural).convert(&to, &mut back).unwrap();
        assert_eq!(back, bytes, "{from}");
    }
}
