//! Numbers from the elements of every dtype.

use weigh_format::Dtype;
use weigh_values::{LengthError, decode};

#[test]
fn every_dtype_decodes() {
    let cases: [(Dtype, &[u8], &[f64]); 22] = [
        (Dtype::BOOL, &[0, 1, 2, 255], &[0.0, 1.0, 1.0, 1.0]),
        (Dtype::F4, &[0x21], &[0.5, 1.0]),
        (Dtype::F6_E2M3, &[0x1f, 0, 0xfc], &[7.5, 0.0, 0.0, -7.5]),
        (Dtype::F6_E3M2, &[0x1f, 0, 0xfc], &[28.0, 0.0, 0.0, -28.0]),
        (Dtype::U8, &[0, 127, 128, 255], &[0.0, 127.0, 128.0, 255.0]),
        (Dtype::I8, &[0, 127, 128, 255], &[0.0, 127.0, -128.0, -1.0]),
        (Dtype::F8_E5M2, &[0x7b, 0x7c, 0x80], &[57344.0, f64::INFINITY, -0.0]),
        (Dtype::F8_E4M3, &[0x7e, 0x01], &[448.0, 0.001_953_125]),
        (Dtype::F8_E8M0, &[127, 120], &[1.0, 0.007_812_5]),
        (Dtype::F8_E4M3FNUZ, &[0x7f, 0xff], &[240.0, -240.0]),
        (Dtype::F8_E5M2FNUZ, &[0x7f, 0xff], &[57344.0, -57344.0]),
        (Dtype::I16, &[0xff, 0x7f, 0, 0x80], &[32767.0, -32768.0]),
        (Dtype::U16, &[0xff, 0x7f, 0, 0x80], &[32767.0, 32768.0]),
        (Dtype::F16, &[0xff, 0x7b, 0, 0xbc], &[65504.0, -1.0]),
        (Dtype::BF16, &[0x80, 0x3f, 0x20, 0xc0], &[1.0, -2.5]),
        (Dtype::I32, &[0, 0, 0, 0x40, 0, 0, 0, 0x80], &[1_073_741_824.0, -2_147_483_648.0]),
        (Dtype::U32, &[0, 0xff, 0xff, 0xff], &[4_294_967_040.0]),
        (Dtype::F32, &[0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xff], &[1.0, f64::NEG_INFINITY]),
        (Dtype::C64, &[0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0], &[1.0, -2.5]),
        (Dtype::F64, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f], &[1.0]),
        (Dtype::I64, &[0xff; 8], &[-1.0]),
        (Dtype::U64, &[0, 0, 0, 0, 0, 1, 0, 0x80], &[9_223_373_136_366_403_584.0]),
    ];
    assert_eq!(cases.map(|(dtype, _, _)| dtype), Dtype::ALL);
    for (dtype, bytes, want) in cases {
        assert_eq!(decode::count(dtype, bytes.len()), Ok(want.len()), "{dtype}");
        let mut numbers = vec![0.0; want.len()];
        decode::to_f64(dtype, bytes, &mut numbers).unwrap();
        assert_eq!(numbers, want, "{dtype}");
        let mut numbers = vec![0.0; want.len()];
        decode::to_f32(dtype, bytes, &mut numbers).unwrap();
        let numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
        assert_eq!(numbers, want, "{dtype}");
    }
}

#[test]
fn every_integer_of_8_and_16_bits_is_itself() {
    for (dtype, first, last) in [
        (Dtype::U8, 0, 255),
        (Dtype::I8, -128, 127),
        (Dtype::U16, 0, 65_535),
        (Dtype::I16, -32_768, 32_767),
    ] {
        let width = dtype.bits() as usize / 8;
        let integers = first..=last;
        let bytes: Vec<u8> = integers
            .clone()
            .flat_map(|integer: i32| integer.to_le_bytes()[..width].to_vec())
            .collect();
        let count = integers.clone().count();
        let (mut wide, mut narrow) = (vec![0.0; count], vec![0.0; count]);
        decode::to_f64(dtype, &bytes, &mut wide).unwrap();
        decode::to_f32(dtype, &bytes, &mut narrow).unwrap();
        for ((integer, wide), narrow) in integers.zip(wide).zip(narrow) {
            assert_eq!((wide, f64::from(narrow)), (integer.into(), integer.into()), "{dtype}");
        }
    }
}

#[test]
fn integers_without_a_number_of_their_own_become_the_nearest_ties_to_even() {
    for (dtype, integer, wide, narrow) in [
        (Dtype::I32, 16_777_217, 16_777_217.0, 16_777_216.0),
        (Dtype::I32, 16_777_219, 16_777_219.0, 16_777_220.0),
        (Dtype::U32, 16_777_217, 16_777_217.0, 16_777_216.0),
        (Dtype::U32, i128::from(u32::MAX), 4_294_967_295.0, 4_294_967_296.0),
        (Dtype::I64, (1 << 53) - 1, 9_007_199_254_740_991.0, 9_007_199_254_740_992.0),
        (Dtype::I64, (1 << 53) + 1, 9_007_199_254_740_992.0, 9_007_199_254_740_992.0),
        (Dtype::I64, -(1 << 53) - 3, -9_007_199_254_740_996.0, -9_007_199_254_740_992.0),
        (
            Dtype::I64,
            i128::from(i64::MIN),
            -9_223_372_036_854_775_808.0,
            -9_223_372_036_854_775_808.0,
        ),
        (Dtype::U64, (1 << 53) + 1, 9_007_199_254_740_992.0, 9_007_199_254_740_992.0),
        (Dtype::U64, (1 << 53) + 3, 9_007_199_254_740_996.0, 9_007_199_254_740_992.0),
        (
            Dtype::U64,
            i128::from(u64::MAX),
            18_446_744_073_709_551_616.0,
            18_446_744_073_709_551_616.0,
        ),
        // Just over a tie of F32, which F64 does not have: rounded twice it would be 2^60.
        (
            Dtype::U64,
            (1 << 60) + (1 << 36) + 1,
            1_152_921_573_326_323_712.0,
            1_152_921_642_045_800_448.0,
        ),
        (
            Dtype::I64,
            (1 << 60) + (1 << 36) + 1,
            1_152_921_573_326_323_712.0,
            1_152_921_642_045_800_448.0,
        ),
    ] {
        let bytes = &integer.to_le_bytes()[..dtype.bits() as usize / 8];
        let (mut to_wide, mut to_narrow) = ([0.0], [0.0]);
        decode::to_f64(dtype, bytes, &mut to_wide).unwrap();
        decode::to_f32(dtype, bytes, &mut to_narrow).unwrap();
        assert_eq!((to_wide, to_narrow), ([wide], [narrow]), "{dtype} {integer}");
    }
}

#[test]
fn a_nan_stays_one() {
    for (dtype, bytes) in [
        (Dtype::F8_E4M3, &[0x7f][..]),
        (Dtype::F8_E8M0, &[0xff]),
        (Dtype::F16, &[1, 0x7c]),
        (Dtype::BF16, &[0x81, 0xff]),
        (Dtype::F32, &[1, 0, 0x80, 0x7f]),
        (Dtype::F64, &[1, 0, 0, 0, 0, 0, 0xf0, 0x7f]),
    ] {
        let (mut wide, mut narrow) = ([0.0], [0.0]);
        decode::to_f64(dtype, bytes, &mut wide).unwrap();
        decode::to_f32(dtype, bytes, &mut narrow).unwrap();
        assert!(wide[0].is_nan() && narrow[0].is_nan(), "{dtype}");
    }
}

#[test]
fn lengths_must_fit_or_nothing_is_written() {
    for (dtype, bytes, numbers, want) in [
        (Dtype::U8, 0, 0, Ok(())),
        (Dtype::U8, 2, 2, Ok(())),
        (Dtype::U8, 2, 1, Err("2 bytes become 16, but the room is 8")),
        (Dtype::U8, 2, 3, Err("2 bytes become 16, but the room is 24")),
        (Dtype::I64, 7, 1, Err("7 bytes are not a multiple of 8")),
        (Dtype::I64, 8, 1, Ok(())),
        (Dtype::C64, 8, 2, Ok(())),
        (Dtype::C64, 8, 1, Err("8 bytes become 16, but the room is 8")),
        (Dtype::C64, 4, 1, Err("4 bytes are not a multiple of 8")),
        (Dtype::F4, 1, 2, Ok(())),
        (Dtype::F4, 1, 1, Err("1 bytes become 16, but the room is 8")),
        (Dtype::F6_E3M2, 3, 4, Ok(())),
        (Dtype::F6_E3M2, 2, 2, Err("2 bytes are not a multiple of 3")),
    ] {
        let mut to = vec![5.0; numbers];
        let got = decode::to_f64(dtype, &vec![0; bytes], &mut to);
        assert_eq!(got.map_err(|error| error.to_string()), want.map_err(String::from), "{dtype}");
        assert_eq!(to, vec![if got.is_ok() { 0.0 } else { 5.0 }; numbers], "{dtype}");
        let mut to = vec![5.0; numbers];
        let narrow = decode::to_f32(dtype, &vec![0; bytes], &mut to);
        assert_eq!(narrow.is_ok(), got.is_ok(), "{dtype}");
        assert_eq!(to, vec![if got.is_ok() { 0.0 } else { 5.0 }; numbers], "{dtype}");
    }
}

#[test]
fn counts_of_numbers() {
    for (dtype, bytes, want) in [
        (Dtype::F4, 3, Ok(6)),
        (Dtype::F6_E2M3, 6, Ok(8)),
        (Dtype::F6_E2M3, 4, Err(LengthError::NotUnits { from_bytes: 4, unit_bytes: 3 })),
        (Dtype::BOOL, 3, Ok(3)),
        (Dtype::U16, 3, Err(LengthError::NotUnits { from_bytes: 3, unit_bytes: 2 })),
        (Dtype::C64, 16, Ok(4)),
        (Dtype::F4, usize::MAX, Ok(usize::MAX)),
    ] {
        assert_eq!(decode::count(dtype, bytes), want, "{dtype}");
    }
}
