//! From one float dtype to another.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::cast::Cast;
//!
//! let cast = Cast::new(Dtype::F32, Dtype::BF16)?;
//! let mut to = [0; 2];
//! cast.convert(&1.0_f32.to_le_bytes(), &mut to)?;
//! assert_eq!(to, [0x80, 0x3f]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a value becomes
//!
//! - Itself, where the target has it. F64 has every value of the other dtypes, F32 those of all
//!   but F64, and BF16 those of all below 16 bits.
//! - Otherwise the nearest value that the target has, ties to even, rounded once. What is half a
//!   step beyond the largest finite value, or further, becomes infinite.
//! - −0 and the infinities stay what they are.
//! - A NaN stays one, with its sign and as much of the top of its payload as there is room for.
//!   Widening F16, BF16 or F32 keeps all its bits; every other cast makes it quiet.
//! - A source of the target's own dtype is copied.
//!
//! The result is the same on every machine, to the last bit, in the float environment that Rust
//! takes for granted.

use std::fmt;

use weigh_format::Dtype;

use crate::length::{LengthError, Unit};
use crate::pair::{self, Run};

/// A conversion from a float dtype to F64, F32, F16 or BF16.
#[derive(Clone, Copy)]
pub struct Cast {
    from: Dtype,
    to: Dtype,
    run: Run,
}

impl Cast {
    /// The conversion from one dtype to another.
    ///
    /// # Errors
    ///
    /// - [`CastError::NotFloat`] if `from` is an integer, boolean or complex dtype.
    /// - [`CastError::NotTarget`] if `to` is not F64, F32, F16 or BF16.
    pub fn new(from: Dtype, to: Dtype) -> Result<Self, CastError> {
        let Some(select) = pair::target(to) else {
            return Err(CastError::NotTarget { to });
        };
        let Some(run) = select(from) else {
            return Err(CastError::NotFloat { from });
        };
        Ok(Self { from, to, run })
    }

    /// The dtype of the source.
    #[must_use]
    pub fn from(&self) -> Dtype {
        self.from
    }

    /// The dtype of the target.
    #[must_use]
    pub fn to(&self) -> Dtype {
        self.to
    }

    /// The smallest whole number of bytes that converts by itself: one element, but two of F4 and
    /// four of the 6-bit dtypes.
    #[must_use]
    pub fn unit(&self) -> Unit {
        Unit::of(self.from, self.to.bits() as usize / 8)
    }

    /// Converts the elements in `from` to those in `to`, little-endian both, at any alignment.
    ///
    /// The first element of F4 and of the 6-bit dtypes is in the lowest bits of the first byte.
    ///
    /// # Errors
    ///
    /// [`LengthError`] if `from` is not a whole number of [units](Self::unit), or `to` not exactly
    /// as large as these become; `to` is then as it was.
    pub fn convert(&self, from: &[u8], to: &mut [u8]) -> Result<(), LengthError> {
        self.unit().check(from.len(), to.len())?;
        if self.from == self.to {
            to.copy_from_slice(from);
        } else {
            (self.run)(from, to);
        }
        Ok(())
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, .. } = self;
        f.debug_struct("Cast").field("from", from).field("to", to).finish_non_exhaustive()
    }
}

/// Why there is no such conversion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CastError {
    /// The source is not a float.
    NotFloat {
        /// Its dtype.
        from: Dtype,
    },
    /// The target is none of F64, F32, F16 and BF16.
    NotTarget {
        /// Its dtype.
        to: Dtype,
    },
}

impl CastError {
    /// The stable code of what is wrong.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFloat { .. } => "cast-not-float",
            Self::NotTarget { .. } => "cast-not-target",
        }
    }
}

impl fmt::Display for CastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFloat { from } => write!(f, "{from} is not a float dtype"),
            Self::NotTarget { to } => {
                write!(f, "cannot cast to {to}, only to F64, F32, F16 or BF16")
            }
        }
    }
}

impl std::error::Error for CastError {}
