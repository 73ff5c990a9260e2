//! A number of any dtype, as exactly as it was in the file.

use std::cmp::Ordering;
use std::fmt;

/// A number of a tensor: what F64 has, or an integer of 64 bits, which it has not.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are integers and floats")]
pub enum Number {
    /// Of a float dtype, or a part of a complex number.
    Float(f64),
    /// Of an integer dtype, or a boolean.
    Integer(i128),
}

impl Number {
    /// The nearest F64.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
    pub const fn to_f64(self) -> f64 {
        match self {
            Self::Float(value) => value,
            Self::Integer(value) => value as f64,
        }
    }

    /// The order of the numbers; an F64 that is not whole is between two integers.
    #[must_use]
    pub fn total_cmp(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (left, right) => left.to_f64().total_cmp(&right.to_f64()),
        }
    }

    /// The distance from 0.
    #[must_use]
    pub const fn magnitude(self) -> Self {
        match self {
            Self::Float(value) => Self::Float(value.abs()),
            Self::Integer(value) => Self::Integer(value.abs()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(value) => fmt::Display::fmt(value, f),
            Self::Integer(value) => fmt::Display::fmt(value, f),
        }
    }
}
