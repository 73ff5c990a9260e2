//! What is counted, and when nothing can be.

use weigh_format::Dtype;
use weigh_values::Tally;
use weigh_values::cast::{Cast, Overflow};

use crate::{OVERFLOWS, cast_counted, reference};

/// Values, overflow, underflow, NaN, NaN lost, imaginary lost.
fn counts(tally: Tally) -> [u64; 6] {
    let Tally { values, overflow, underflow, nan, nan_lost, imaginary_lost, .. } = tally;
    [values, overflow, underflow, nan, nan_lost, imaginary_lost]
}

#[test]
fn each_kind_of_loss_is_counted_once() {
    use Dtype::{BF16, BOOL, C64, F4, F8_E4M3, F8_E8M0, F16, F32, F64, I8, I64, U8, U64};
    let f32s = |values: [f32; 4]| values.map(|value| u64::from(value.to_bits()));
    let complex = |values: [(f32, f32); 4]| {
        values.map(|(re, im)| u64::from(re.to_bits()) | u64::from(im.to_bits()) << 32)
    };
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let odd = [(1.0, 0.0), (0.0, 2.0), (nan, -0.0), (1e9, nan)];
    for (from, elements, to, natural, saturating) in [
        (F32, f32s([1.0, 1e9, 1e-9, nan]), F16, [4, 1, 1, 1, 0, 0], None),
        (F32, f32s([infinity, -infinity, 0.0, -0.0]), F16, [4, 0, 0, 0, 0, 0], Some(2)),
        (F32, f32s([infinity, 464.0, 464.1, nan]), F8_E4M3, [4, 2, 0, 1, 0, 0], None),
        (F32, f32s([infinity, 7.0, 6.9, nan]), F4, [4, 2, 0, 1, 1, 0], None),
        (F32, f32s([0.0, -1.0, 1e-40, nan]), F8_E8M0, [4, 2, 1, 1, 0, 0], None),
        (F32, f32s([0.5, -0.5, -0.6, 256.0]), U8, [4, 2, 2, 0, 0, 0], None),
        (F32, f32s([infinity, 127.5, -128.5, nan]), I8, [4, 2, 0, 1, 1, 0], None),
        (F32, f32s([infinity, 0.1, -0.0, nan]), BOOL, [4, 0, 0, 1, 1, 0], None),
        (F32, f32s([infinity, 1.0, 0.0, nan]), F64, [4, 0, 0, 1, 0, 0], Some(1)),
        (F64, [1e39, 1e-46, 1.0, 0.0].map(f64::to_bits), F32, [4, 1, 1, 0, 0, 0], None),
        (I64, [u64::MAX, 127, 128, 256], I8, [4, 2, 0, 0, 0, 0], None),
        (I64, [u64::MAX, 127, 128, 256], U64, [4, 1, 0, 0, 0, 0], None),
        (U64, [u64::MAX, 1 << 63, 128, 256], I64, [4, 2, 0, 0, 0, 0], None),
        (U64, [u64::MAX, 0, 65520, 65519], F16, [4, 2, 0, 0, 0, 0], None),
        (U64, [u64::MAX, 0, 65520, 65519], BF16, [4, 0, 0, 0, 0, 0], None),
        (U64, [u64::MAX, 0, 1, 2], BOOL, [4, 0, 0, 0, 0, 0], None),
        (C64, complex(odd), F16, [4, 1, 0, 2, 0, 2], None),
        (C64, complex(odd), U8, [4, 1, 0, 2, 1, 2], None),
        (C64, complex(odd), BOOL, [4, 0, 0, 2, 2, 0], None),
        (C64, complex(odd), C64, [4, 0, 0, 2, 0, 0], None),
        (C64, complex([(infinity, infinity); 4]), C64, [4, 0, 0, 0, 0, 0], Some(4)),
        (F32, f32s([1.0, infinity, 0.0, nan]), C64, [4, 0, 0, 1, 0, 0], Some(1)),
    ] {
        let [values, overflow, rest @ ..] = natural;
        let saturated = [values, saturating.unwrap_or(overflow)];
        for (mode, want) in OVERFLOWS.into_iter().zip([[values, overflow], saturated]) {
            let got = counts(cast_counted(from, &elements, to, mode).1);
            assert_eq!(got[..2], want, "{from} {elements:x?} to {to}, {mode:?}");
            assert_eq!(got[2..], rest, "{from} {elements:x?} to {to}, {mode:?}");
        }
    }
}

#[test]
fn tallies_add_up() {
    let elements: Vec<u64> = (0..1 << 16).collect();
    let whole = cast_counted(Dtype::F16, &elements, Dtype::F8_E4M3, Overflow::Natural).1;
    let parts = elements
        .chunks(1000)
        .map(|part| cast_counted(Dtype::F16, part, Dtype::F8_E4M3, Overflow::Natural).1);
    assert_eq!(parts.sum::<Tally>(), whole);

    let cast = Cast::new(Dtype::U8, Dtype::I8, Overflow::Natural);
    let mut tally = Tally::default();
    for _ in 0..3 {
        cast.convert_counted(&[127, 128], &mut [0; 2], &mut tally).unwrap();
    }
    assert_eq!(counts(tally), [6, 3, 0, 0, 0, 0]);
    let mut full = Tally::default();
    full.overflow = u64::MAX;
    assert_eq!((full + tally).overflow, u64::MAX);
}

/// Whether a cast to `to` and back leaves all elements of `from` the numbers that they are.
fn stays(from: Dtype, elements: &[u64], to: Dtype, overflow: Overflow) -> bool {
    let there = cast_counted(from, elements, to, overflow);
    let back = cast_counted(to, &there.0, from, overflow);
    let [_, lost_there @ ..] = counts(there.1);
    let [_, lost_back @ ..] = counts(back.1);
    let is_zero = |bits: u64| reference::is_zero(from, bits);
    let is_nan = |bits: u64| reference::is_nan(from, bits);
    let same = elements.iter().zip(back.0).all(|(&before, after)| {
        before == after
            || is_zero(before) && is_zero(after)
            || is_nan(before) && is_nan(after)
            || from == Dtype::BOOL && before != 0 && after == 1
    });
    // Of what is counted, NaN alone is no loss.
    let kept = |[overflow, underflow, _, nan, imaginary]: [u64; 5]| {
        overflow + underflow + nan + imaginary == 0
    };
    same && kept(lost_there) && kept(lost_back)
}

#[test]
fn a_cast_is_exact_if_nothing_changes() {
    for from in Dtype::ALL {
        // Every element, or of the wider dtypes those that tell them from the others.
        let elements: Vec<u64> = match from {
            _ if from.bits() <= 16 => (0..1 << from.bits()).collect(),
            Dtype::I32 | Dtype::U32 => vec![0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x0100_0001],
            Dtype::I64 | Dtype::U64 => vec![0, u64::MAX, 1 << 63, i64::MAX as u64],
            Dtype::F32 => vec![1, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000],
            Dtype::F64 => vec![1, 0x7ff0 << 48, 0x7ff8 << 48, 0x3ff0 << 48 | 1],
            _ => vec![1 << 32, 0x7f80_0000, 0x7fc0_0000 << 32, 0x3f80_0001],
        };
        for to in Dtype::ALL {
            for overflow in OVERFLOWS {
                let cast = Cast::new(from, to, overflow);
                let want = stays(from, &elements, to, overflow);
                assert_eq!(cast.is_exact(), want, "{cast:?}");
            }
        }
    }
}
