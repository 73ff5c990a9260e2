//! What casting did to values.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// How many elements a cast went through, and how many it did not leave what they were beyond
/// rounding.
///
/// An element counts as an overflow or as an underflow, never as both.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Tally {
    /// Elements of the source.
    pub values: u64,
    /// Numbers that round to what is beyond the range of the target, and infinities that did not
    /// stay infinite.
    pub overflow: u64,
    /// Numbers other than 0 that became 0, or where the target has no 0 are nearer to 0 than to
    /// what it has.
    pub underflow: u64,
    /// Elements of the source that are NaN, complex ones in either part.
    pub nan: u64,
    /// NaNs that the target could not hold.
    pub nan_lost: u64,
    /// Imaginary parts other than 0 that were dropped.
    pub imaginary_lost: u64,
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            values: self.values.saturating_add(other.values),
            overflow: self.overflow.saturating_add(other.overflow),
            underflow: self.underflow.saturating_add(other.underflow),
            nan: self.nan.saturating_add(other.nan),
            nan_lost: self.nan_lost.saturating_add(other.nan_lost),
            imaginary_lost: self.imaginary_lost.saturating_add(other.imaginary_lost),
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), Add::add)
    }
}
