//! Mean and deviation, accurate whatever the numbers are.
//!
//! Numbers come in blocks that stay in the processor's nearest cache. Of each block the sum is taken in [`LANES`] F64
//! accumulators, and from that its mean; then, in a second look, the distances from that mean and their squares. So there
//! is no difference of large sums of squares, which is where digits are lost, and what the mean was off by is known. The
//! sums of blocks are added with their rounding errors kept in a second F64; squares are joined by the formula of Chan,
//! Golub and `LeVeque` (1979).
//!
//! The error of a sum is below 2^-43 of the sum of magnitudes: no accumulator takes more than 2^10 numbers. The result
//! is the same on every machine: nothing is fused, and the order of additions does not depend on the vectors there are.
#![expect(clippy::inline_always, reason = "a call in a loop would keep it scalar")]

/// Accumulators side by side: two vectors of AVX-512, four of AVX2.
const LANES: usize = 16;

/// How many numbers there are, their sum, and how far they are from their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    sum: f64,
    /// What rounding took from the sum.
    rest: f64,
    /// The sum of the squares of the distances from the mean.
    spread: f64,
}

impl Moments {
    /// The moments of a block of numbers that are finite.
    pub(crate) fn of<T: Into<f64> + Copy>(values: &[T]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as u64;
        let times = float(count);
        let [sum, _] = fold(
            values,
            #[inline(always)]
            |value| [value, 0.0],
        );
        let mean = sum / times;
        let [apart, squares] = fold(
            values,
            #[inline(always)]
            move |value| {
                let apart = value - mean;
                [apart, apart * apart]
            },
        );
        // What the sum was off by shows in the distances, unless their own rounding is as large.
        let off = mean.mul_add(times, -sum) + apart;
        let rounding = 8.0 * f64::EPSILON * (times * squares).sqrt();
        let rest = if off.is_finite() && off.abs() > rounding { off } else { 0.0 };
        let spread = squares - apart * apart / times;
        let spread = if squares.is_finite() { spread.max(0.0) } else { f64::INFINITY };
        Self { count, sum, rest, spread }
    }

    /// The moments of one number that is there so many times.
    pub(crate) fn of_repeated(value: f64, count: u64) -> Self {
        let times = float(count);
        let sum = value * times;
        // What the product lost, exactly; and what the count did.
        let rest = if sum.is_finite() { value.mul_add(times, -sum) } else { 0.0 };
        Self { count, sum, rest, spread: 0.0 }
    }

    /// The moments of both.
    pub fn join(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let [ours, theirs] = [self.count, other.count].map(float);
        let apart = other.mean() - self.mean();
        let between = apart * apart * (ours / (ours + theirs) * theirs);
        let (sum, rest) = two_sum(self.sum, other.sum);
        self.sum = sum;
        self.rest += other.rest + rest;
        self.spread += other.spread + between;
        if !self.sum.is_finite() {
            self.rest = 0.0;
        }
        if !self.spread.is_finite() {
            self.spread = f64::INFINITY;
        }
        self.count = self.count.saturating_add(other.count);
    }

    /// How many numbers these are the moments of.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum; infinite if that is beyond F64.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum + self.rest
    }

    /// The mean; NaN of nothing, infinite if the sum is beyond F64.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum() / float(self.count)
    }

    /// The standard deviation of the population: the root of the mean square of the distances from the mean. NaN of
    /// nothing, infinite if a square is beyond F64.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        (self.spread / float(self.count)).sqrt()
    }

    /// The root of the sum of squares.
    #[must_use]
    pub fn norm(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.spread + mean * mean * float(self.count)).sqrt()
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, and then as near as can be")]
const fn float(count: u64) -> f64 {
    count as f64
}

/// A sum, and exactly what rounding took from it (Knuth).
fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    if !sum.is_finite() {
        return (sum, 0.0);
    }
    let virtual_right = sum - left;
    let virtual_left = sum - virtual_right;
    (sum, (left - virtual_left) + (right - virtual_right))
}

/// Adds up the two numbers that become of each, in an order that is always the same.
#[inline(always)]
fn fold<T: Into<f64> + Copy>(values: &[T], of: impl Fn(f64) -> [f64; 2]) -> [f64; 2] {
    let (groups, rest) = values.as_chunks::<LANES>();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let [mut ones, mut others] = [[0.0; LANES]; 2];
            for group in groups {
                for ((one, other), &value) in ones.iter_mut().zip(&mut others).zip(group) {
                    let [more, and_more] = of(value.into());
                    *one += more;
                    *other += and_more;
                }
            }
            for ((one, other), &value) in ones.iter_mut().zip(&mut others).zip(rest) {
                let [more, and_more] = of(value.into());
                *one += more;
                *other += and_more;
            }
            [ones, others].map(|mut lanes| {
                let mut width = LANES;
                while width > 1 {
                    width /= 2;
                    for lane in 0..width {
                        lanes[lane] += lanes[lane + width];
                    }
                }
                lanes[0]
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(values: &[f64], block: usize) -> Moments {
        let mut all = Moments::default();
        for block in values.chunks(block) {
            all.join(&Moments::of(block));
        }
        all
    }

    #[test]
    fn numbers_far_from_zero_keep_their_deviation() {
        for offset in [0.0, 1e6, 1e9, 1e12] {
            let values: Vec<f64> =
                [4.0, 7.0, 13.0, 16.0].iter().cycle().take(1000).map(|v| v + offset).collect();
            for block in [1, 7, 100, 1000] {
                let moments = joined(&values, block);
                assert!(
                    (moments.mean() - offset - 10.0).abs() <= 1e-3 * (offset * 1e-12).max(1e-9)
                );
                assert!(
                    (moments.deviation() - 22.5_f64.sqrt()).abs() < 1e-6_f64.max(offset * 1e-16),
                    "{offset} {block}"
                );
            }
        }
    }

    #[test]
    fn what_cancels_between_blocks_leaves_the_rest() {
        let mut values = vec![0.0; 3 * 64];
        values[0] = 1e16;
        values[64] = 1.0;
        values[128] = -1e16;
        assert_eq!(joined(&values, 64).sum().to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn of_nothing_there_is_no_mean_and_of_too_much_none_either() {
        assert!(Moments::default().mean().is_nan());
        assert!(Moments::default().deviation().is_nan());
        let large = joined(&[f64::MAX; 8], 2);
        assert_eq!((large.mean(), large.deviation()), (f64::INFINITY, f64::INFINITY));
        let apart = joined(&[f64::MAX, -f64::MAX], 1);
        assert_eq!((apart.mean(), apart.deviation()), (0.0, f64::INFINITY));
    }

    #[test]
    fn a_number_that_is_there_often_counts_as_often() {
        let mut repeated = Moments::of_repeated(0.1, 3);
        repeated.join(&Moments::of_repeated(-2.0, 1));
        let plain = Moments::of(&[0.1, 0.1, 0.1, -2.0]);
        assert!((repeated.mean() - plain.mean()).abs() < 1e-15);
        assert!((repeated.deviation() - plain.deviation()).abs() < 1e-15);
    }
}
