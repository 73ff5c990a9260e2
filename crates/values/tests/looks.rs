//! What is found in values, against a naive look at each of them: every pattern of bits of dtypes of up to 16 bits, and
//! random and adversarial ones of wider dtypes; in one piece and in parts.
#![expect(clippy::float_cmp, reason = "equal is what numbers are to be")]

use weigh_format::Dtype;
use weigh_values::codes::Codes;
use weigh_values::compare::{Comparison, Tolerance};
use weigh_values::decode;
use weigh_values::odd::Odd;
use weigh_values::statistics::{Statistics, Summary};

/// Random bits, the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}

/// Every pattern of a dtype of up to 16 bits, or many of a wider one.
fn patterns(dtype: Dtype) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    match dtype.bits() {
        4 | 8 => (0..=u8::MAX).collect(),
        6 => random.bytes(3 * 4096),
        16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        _ => random.bytes(8 * 5003),
    }
}

/// Sets of elements that a naive sum, a loop of vectors or a block's end might get wrong.
fn samples(dtype: Dtype) -> Vec<Vec<u8>> {
    let all = patterns(dtype);
    let unit = match dtype.bits() {
        4 => 1,
        6 => 3,
        bits => bits as usize / 8,
    };
    let mut samples = vec![Vec::new(), all[..unit].to_vec(), all.clone()];
    samples.push(all[..all.len() / 2 / unit * unit].to_vec());
    samples.push([0].repeat(unit * 3000));
    samples.push(all[all.len() - unit..].repeat(2500));
    let floats: &[f64] = match dtype {
        Dtype::F32 | Dtype::F64 | Dtype::C64 => &[
            1e16,
            1.0,
            -1e16,
            3e-39,
            -0.0,
            0.0,
            1e8,
            1e8 + 8.0,
            f64::NAN,
            f64::INFINITY,
            1e-45,
            f64::NEG_INFINITY,
            -1.5,
        ],
        _ => &[],
    };
    if !floats.is_empty() {
        let bytes = |value: &f64| {
            #[expect(clippy::cast_possible_truncation, reason = "rounded to what the dtype has")]
            let narrow = (*value as f32).to_le_bytes();
            if dtype == Dtype::F64 { value.to_le_bytes().to_vec() } else { narrow.to_vec() }
        };
        let mut sample: Vec<u8> = floats.iter().cycle().take(7000).flat_map(bytes).collect();
        sample.truncate(sample.len() / unit * unit);
        samples.push(sample);
        // Far from 0, and close together.
        let far = (0..5000_i32).map(|step| 16_777_216.0 + 2.0 * f64::from(step % 7));
        samples.push(far.flat_map(|value| bytes(&value)).collect());
    }
    samples
}

fn numbers(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    let mut numbers = vec![0.0; decode::count(dtype, bytes.len()).unwrap()];
    decode::to_f64(dtype, bytes, &mut numbers).unwrap();
    numbers
}

/// Cuts bytes where elements end, at odd places.
fn parts(dtype: Dtype, bytes: &[u8], step: usize) -> Vec<&[u8]> {
    let unit = if dtype.bits() == 6 { 3 } else { 8 };
    bytes.chunks(step * unit).collect()
}

/// A sum as if there were no rounding, near enough.
fn exact_sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut rest) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        rest += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + rest
}

/// The smallest positive float with full precision.
fn least_normal(dtype: Dtype) -> f64 {
    2.0_f64.powi(match dtype {
        Dtype::F64 => -1022,
        Dtype::F32 | Dtype::C64 | Dtype::BF16 => -126,
        Dtype::F16 | Dtype::F8_E5M2 => -14,
        Dtype::F8_E5M2FNUZ => -15,
        Dtype::F8_E4M3 => -6,
        Dtype::F8_E4M3FNUZ => -7,
        Dtype::F6_E3M2 => -2,
        Dtype::F6_E2M3 | Dtype::F4 => 0,
        _ => return 0.0,
    })
}

#[track_caller]
fn hold(dtype: Dtype, bytes: &[u8], summary: &Summary) {
    let numbers = numbers(dtype, bytes);
    let count = |is_such: &dyn Fn(f64) -> bool| {
        numbers.iter().filter(|number| is_such(**number)).count() as u64
    };
    assert_eq!(summary.numbers, numbers.len() as u64, "{dtype:?}");
    assert_eq!(summary.nan, count(&f64::is_nan), "{dtype:?}");
    assert_eq!(summary.positive_infinity, count(&|number| number == f64::INFINITY), "{dtype:?}");
    assert_eq!(summary.negative_infinity, count(&|number| number == f64::NEG_INFINITY));
    assert_eq!(summary.zeros, count(&|number| number == 0.0), "{dtype:?}");
    let normal = least_normal(dtype);
    assert_eq!(
        summary.subnormals,
        count(&|number| number != 0.0 && number.abs() < normal),
        "{dtype:?}"
    );
    let finite: Vec<f64> = numbers.iter().copied().filter(|number| number.is_finite()).collect();
    let least = finite.iter().copied().reduce(f64::min);
    let largest = finite.iter().copied().reduce(f64::max);
    let bounds = summary.bounds.map(|(least, largest)| (least.to_f64(), largest.to_f64()));
    assert_eq!(bounds, least.zip(largest), "{dtype:?}");
    let moments = summary.moments;
    assert_eq!(moments.count(), finite.len() as u64);
    if finite.is_empty() {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let many = finite.len() as f64;
    let sum = exact_sum(finite.iter().copied());
    let magnitudes = exact_sum(finite.iter().map(|number| number.abs()));
    if magnitudes.is_finite() {
        let apart = (moments.sum() - sum).abs();
        assert!(apart <= magnitudes * 2.0_f64.powi(-43), "{dtype:?}: {} {sum}", moments.sum());
    }
    let mean = sum / many;
    let spread = exact_sum(finite.iter().map(|number| (number - mean) * (number - mean)));
    let deviation = (spread / many).sqrt();
    if deviation.is_finite() {
        let apart = (moments.deviation() - deviation).abs();
        assert!(
            apart <= 1e-9 * deviation + 1e-15 * mean.abs(),
            "{dtype:?}: {}",
            moments.deviation()
        );
    } else {
        assert!(!moments.deviation().is_finite());
    }
}

#[test]
fn statistics_are_those_of_a_naive_look() {
    for dtype in Dtype::ALL {
        for sample in samples(dtype) {
            let mut whole = Statistics::new(dtype);
            whole.add(&sample).unwrap();
            hold(dtype, &sample, &whole.summary());
            for step in [1, 7, 1001] {
                if sample.len() / step > 5000 {
                    continue;
                }
                let mut joined = Statistics::new(dtype);
                for part in parts(dtype, &sample, step) {
                    let mut statistics = Statistics::new(dtype);
                    statistics.add(part).unwrap();
                    joined.join(&statistics);
                }
                hold(dtype, &sample, &joined.summary());
            }
        }
    }
}

#[test]
fn extremes_of_integers_are_exact() {
    let mut statistics = Statistics::new(Dtype::I64);
    let bytes: Vec<u8> =
        [i64::MAX, i64::MAX - 1, i64::MIN].into_iter().flat_map(i64::to_le_bytes).collect();
    statistics.add(&bytes).unwrap();
    let (least, largest) = statistics.summary().bounds.unwrap();
    assert_eq!(
        [least.to_string(), largest.to_string()],
        [i64::MIN.to_string(), i64::MAX.to_string()]
    );
}

#[test]
fn small_dtypes_have_so_many_different_numbers() {
    for (dtype, bytes, want) in [
        (Dtype::F4, vec![0x80, 0x08], 1),
        (Dtype::F4, (0..=u8::MAX).collect(), 15),
        (Dtype::F6_E2M3, patterns(Dtype::F6_E2M3), 63),
        (Dtype::I8, (0..=u8::MAX).collect(), 256),
        (Dtype::BOOL, vec![0, 1, 2, 1], 2),
        (Dtype::F8_E4M3, (0..=u8::MAX).collect(), 254),
        (Dtype::F8_E5M2, (0..=u8::MAX).collect(), 2 + 247 + 1),
        (Dtype::F8_E5M2FNUZ, (0..=u8::MAX).collect(), 256),
        (Dtype::F8_E8M0, vec![0, 0xff, 0xff], 2),
    ] {
        let mut statistics = Statistics::new(dtype);
        statistics.add(&bytes).unwrap();
        assert_eq!(statistics.summary().distinct, Some(want), "{dtype:?}");
    }
}

#[test]
fn what_is_odd_is_what_a_naive_look_finds() {
    for dtype in Dtype::ALL {
        let parts_of = if dtype == Dtype::C64 { 2 } else { 1 };
        for sample in samples(dtype) {
            let numbers = numbers(dtype, &sample);
            let found = |is_such: &dyn Fn(f64) -> bool| {
                let mut all = numbers.iter().enumerate().filter(|(_, number)| is_such(**number));
                let first = all.next().map(|(at, _)| at as u64 / parts_of);
                (all.count() as u64 + u64::from(first.is_some()), first)
            };
            let [mut whole, mut joined] = [0, 1].map(|_| Odd::new(dtype).with_positions(3));
            whole.add(&sample).unwrap();
            for part in parts(dtype, &sample, 1001) {
                let mut odd = Odd::new(dtype).with_positions(3);
                odd.add(part).unwrap();
                joined.join(&odd);
            }
            let mut positions: Vec<u64> = numbers
                .iter()
                .enumerate()
                .filter(|(_, number)| !number.is_finite())
                .map(|(at, _)| at as u64 / parts_of)
                .collect();
            positions.dedup();
            positions.truncate(3);
            for odd in [whole, joined] {
                let see = |found: weigh_values::odd::Found| (found.count, found.first);
                assert_eq!(see(odd.nan()), found(&f64::is_nan), "{dtype:?}");
                let infinite = |infinity: f64| found(&|number| number == infinity);
                assert_eq!(see(odd.positive_infinity()), infinite(f64::INFINITY), "{dtype:?}");
                assert_eq!(see(odd.negative_infinity()), infinite(f64::NEG_INFINITY), "{dtype:?}");
                assert_eq!(odd.elements() * parts_of, numbers.len() as u64);
                assert_eq!(odd.positions(), positions, "{dtype:?}");
                let is_zero = !sample.is_empty() && sample.iter().all(|byte| *byte == 0);
                assert_eq!(odd.is_zero(), is_zero && dtype != Dtype::F8_E8M0, "{dtype:?}");
            }
        }
    }
}

#[test]
fn one_value_is_constant_and_two_are_not() {
    for (dtype, bytes, want) in [
        (Dtype::F32, vec![1, 2, 3, 4, 1, 2, 3, 4], true),
        (Dtype::F32, vec![1, 2, 3, 4, 1, 2, 3, 5], false),
        (Dtype::F32, vec![1, 2, 3, 4], false),
        (Dtype::F4, vec![0x33, 0x33], true),
        (Dtype::F4, vec![0x34, 0x34], false),
        (Dtype::F4, vec![0x33], true),
        (Dtype::F6_E2M3, vec![0x41, 0x10, 0x04], true),
        (Dtype::F6_E2M3, vec![0x41, 0x10, 0x08], false),
        (Dtype::U8, vec![], false),
    ] {
        let mut odd = Odd::new(dtype);
        odd.add(&bytes).unwrap();
        assert_eq!(odd.is_constant(), want, "{dtype:?} {bytes:x?}");
    }
    let mut parts = Odd::new(Dtype::U8);
    for bytes in [&[7, 7][..], &[], &[7, 7], &[7, 8]] {
        let mut odd = Odd::new(Dtype::U8);
        odd.add(bytes).unwrap();
        parts.join(&odd);
        assert_eq!(parts.is_constant(), !bytes.contains(&8));
    }
}

#[test]
fn booleans_are_0_or_1() {
    let mut odd = Odd::new(Dtype::BOOL);
    odd.add(&[0, 1, 1, 2, 255]).unwrap();
    assert_eq!((odd.not_boolean().count, odd.not_boolean().first), (2, Some(3)));
}

#[test]
fn quantiles_are_those_of_the_sorted_numbers() {
    for dtype in Dtype::ALL {
        for sample in samples(dtype) {
            let mut codes = Codes::new(dtype);
            let mut more = Codes::new(dtype);
            let middle = sample.len() / 2 / 24 * 24;
            codes.add(&sample[..middle]).unwrap();
            more.add(&sample[middle..]).unwrap();
            codes.join(&more);
            let distribution = codes.distribution();
            let mut sorted: Vec<f64> = numbers(dtype, &sample)
                .into_iter()
                // Those that BF16 has.
                .filter(|number| number.abs() < 3.396_177_5e38)
                .collect();
            sorted.sort_by(f64::total_cmp);
            if distribution.is_exact() {
                assert_eq!(distribution.count(), sorted.len() as u64);
            }
            for share in [0.0, 0.001, 0.25, 0.5, 0.9, 1.0] {
                let Some(quantile) = distribution.quantile(share) else {
                    assert!(sorted.is_empty());
                    continue;
                };
                #[expect(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small"
                )]
                let want = {
                    let rank = share * (sorted.len() - 1) as f64;
                    let low = sorted[rank.floor() as usize];
                    let high = sorted[rank.ceil() as usize];
                    low * (1.0 - rank.fract()) + high * rank.fract()
                };
                let scale = want.abs().max(1e-38);
                let near = if distribution.is_exact() { 1e-12 } else { 1.0 / 256.0 };
                assert!(
                    (quantile - want).abs() <= near * scale,
                    "{dtype:?} {share} {quantile} {want}"
                );
            }
            let (least, largest) = distribution.bounds().unwrap_or_default();
            let bins = distribution.histogram(7, least, largest);
            assert_eq!(bins.iter().sum::<u64>(), distribution.count());
        }
    }
}

#[test]
fn bins_have_their_lower_bound() {
    let mut codes = Codes::new(Dtype::U8);
    codes.add(&[0, 1, 2, 3, 4]).unwrap();
    let distribution = codes.distribution();
    assert_eq!(distribution.histogram(2, 0.0, 4.0), [2, 3]);
    assert_eq!(distribution.histogram(4, 0.0, 4.0), [1, 1, 1, 2]);
    assert_eq!(distribution.histogram(1, 2.0, 2.0), [1]);
    assert_eq!(distribution.histogram(0, 0.0, 4.0), [0; 0]);
}

#[test]
fn comparisons_are_those_of_a_naive_look() {
    let tolerance = Tolerance { relative: 1e-3, absolute: 1e-6 };
    for dtype in Dtype::ALL {
        for sample in samples(dtype) {
            for (step, other) in [(1, dtype), (1001, dtype), (17, Dtype::F64), (5, Dtype::BF16)] {
                if dtype == Dtype::C64 && other != dtype || sample.len() / step > 40_000 {
                    continue;
                }
                let mut right = if other == dtype {
                    sample.clone()
                } else {
                    let cast = weigh_values::cast::Cast::new(
                        dtype,
                        other,
                        weigh_values::cast::Overflow::Natural,
                    );
                    let mut to =
                        vec![0; numbers(dtype, &sample).len() * (other.bits() as usize / 8)];
                    cast.convert(&sample, &mut to).unwrap();
                    to
                };
                for byte in right.iter_mut().skip(3).step_by(step * 61) {
                    *byte ^= 0x11;
                }
                let mut comparison = Comparison::new(dtype, other, tolerance);
                comparison.add(&sample, &right).unwrap();
                hold_comparison(&comparison, (dtype, &sample), (other, &right), tolerance);
            }
        }
    }
}

fn hold_comparison(
    comparison: &Comparison,
    (left_dtype, left): (Dtype, &[u8]),
    (right_dtype, right): (Dtype, &[u8]),
    tolerance: Tolerance,
) {
    let is_whole = |dtype| matches!(dtype, Dtype::I64 | Dtype::U64);
    if is_whole(left_dtype) && is_whole(right_dtype) {
        // Naive in another test, for F64 has not these numbers.
        return;
    }
    let [a, b] = [numbers(left_dtype, left), numbers(right_dtype, right)];
    let parts = if left_dtype == Dtype::C64 { 2 } else { 1 };
    let distances: Vec<f64> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| match () {
            () if a.is_nan() && b.is_nan() || a == b => 0.0,
            () if a.is_finite() && b.is_finite() => (a - b).abs(),
            () => f64::INFINITY,
        })
        .collect();
    let differing = distances.iter().filter(|distance| **distance > 0.0).count();
    assert_eq!(comparison.differing(), differing as u64, "{left_dtype:?} {right_dtype:?}");
    let beyond = distances
        .iter()
        .zip(&b)
        .filter(|(distance, b)| {
            **distance == f64::INFINITY
                || **distance > tolerance.absolute + tolerance.relative * b.abs()
        })
        .count();
    assert_eq!(comparison.beyond(), beyond as u64, "{left_dtype:?} {right_dtype:?}");
    let first = distances.iter().position(|distance| *distance > 0.0);
    assert_eq!(comparison.first(), first.map(|at| at as u64 / parts));
    let largest = distances.iter().copied().fold(0.0, f64::max);
    let at = distances.iter().position(|distance| *distance == largest && largest > 0.0);
    assert_eq!(comparison.largest(), at.map(|at| (largest, at as u64 / parts)), "{left_dtype:?}");
    assert_eq!(comparison.is_identical(), left_dtype == right_dtype && left == right);
    let finite = || a.iter().zip(&b).filter(|(a, b)| a.is_finite() && b.is_finite());
    let apart = exact_sum(finite().map(|(a, b)| (a - b) * (a - b)));
    let whole = exact_sum(finite().map(|(a, _)| a * a));
    if apart.is_finite() && whole.is_finite() && whole > 0.0 {
        let want = (apart / whole).sqrt();
        let near = (comparison.relative_distance() - want).abs();
        assert!(near <= 1e-9 * want, "{left_dtype:?} {want} {}", comparison.relative_distance());
    }
}

#[test]
fn integers_that_f64_does_not_tell_apart_differ() {
    for (left, right, distance) in [
        (i64::MAX, i64::MAX - 1, 1.0),
        (i64::MIN, i64::MAX, 18_446_744_073_709_551_615.0),
        (1 << 60, (1 << 60) + 3, 3.0),
    ] {
        let mut comparison = Comparison::new(Dtype::I64, Dtype::I64, Tolerance::default());
        comparison.add(&left.to_le_bytes(), &right.to_le_bytes()).unwrap();
        assert_eq!(comparison.largest(), Some((distance, 0)));
    }
    let mut mixed = Comparison::new(Dtype::U64, Dtype::I64, Tolerance::default());
    mixed.add(&u64::MAX.to_le_bytes(), &(-1_i64).to_le_bytes()).unwrap();
    assert_eq!(mixed.differing(), 1);
}

#[test]
fn parts_join_to_the_whole() {
    let left = patterns(Dtype::F32);
    let mut right = left.clone();
    right[4 * 700] ^= 1;
    right[4 * 3000 + 3] ^= 0x80;
    let mut whole = Comparison::new(Dtype::F32, Dtype::F32, Tolerance::default());
    whole.add(&left, &right).unwrap();
    let mut joined = Comparison::new(Dtype::F32, Dtype::F32, Tolerance::default());
    for (left, right) in left.chunks(4 * 501).zip(right.chunks(4 * 501)) {
        let mut part = Comparison::new(Dtype::F32, Dtype::F32, Tolerance::default());
        part.add(left, right).unwrap();
        joined.join(&part);
    }
    for comparison in [&whole, &joined] {
        hold_comparison(
            comparison,
            (Dtype::F32, &left),
            (Dtype::F32, &right),
            Tolerance::default(),
        );
    }
}

#[test]
fn sides_of_other_lengths_are_refused() {
    let mut comparison = Comparison::new(Dtype::F32, Dtype::F16, Tolerance::default());
    assert_eq!(comparison.add(&[0; 8], &[0; 2]).unwrap_err().code(), "compare-counts");
    assert_eq!(comparison.add(&[0; 7], &[0; 2]).unwrap_err().code(), "length-not-units");
    let mut complex = Comparison::new(Dtype::C64, Dtype::F32, Tolerance::default());
    assert_eq!(complex.add(&[0; 8], &[0; 8]).unwrap_err().code(), "compare-counts");
    assert!(Odd::new(Dtype::F6_E2M3).add(&[0; 4]).is_err());
    assert!(Statistics::new(Dtype::I16).add(&[0; 3]).is_err());
    assert!(Codes::new(Dtype::F64).add(&[0; 12]).is_err());
}
