//! From one dtype to another.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::Tally;
//! use weigh_values::cast::{Cast, Overflow};
//!
//! let cast = Cast::new(Dtype::F32, Dtype::F8_E4M3, Overflow::Saturate);
//! let from: Vec<u8> = [1.0_f32, 500.0, 0.0001].into_iter().flat_map(f32::to_le_bytes).collect();
//! let (mut to, mut tally) = ([0; 3], Tally::default());
//! cast.convert_counted(&from, &mut to, &mut tally)?;
//! assert_eq!(to, [0x38, 0x7e, 0]);
//! assert_eq!((tally.values, tally.overflow, tally.underflow), (3, 1, 1));
//! # Ok::<(), weigh_values::LengthError>(())
//! ```
//!
//! # What a value becomes
//!
//! - Itself, where the target has it. F64 has every value of the floats, F32 those of all but F64,
//!   and BF16 those of all below 16 bits.
//! - Otherwise the nearest value that the target has, ties to even, rounded once.
//! - −0 and the infinities stay what they are where the target has them. Without −0 it becomes 0.
//! - A NaN stays one, with its sign and as much of the top of its payload as there is room for.
//!   Widening F16, BF16 or F32 keeps all its bits; every other cast makes it quiet. Where the
//!   target has no NaN it becomes 0.
//! - A source of the target's own dtype is copied, but for infinities that saturate.
//!
//! # What does not fit
//!
//! [`Overflow`] says what becomes of numbers that round to what is beyond the largest finite value
//! of the target, and of infinities that it does not have:
//!
//! | target                                    | [`Overflow::Natural`] | [`Overflow::Saturate`] |
//! |-------------------------------------------|-----------------------|------------------------|
//! | F64, F32, F16, BF16, C64, `F8_E5M2`       | infinity              | largest finite         |
//! | `F8_E4M3`, `F8_E4M3FNUZ`, `F8_E5M2FNUZ`   | NaN                   | largest finite         |
//! | `F8_E8M0`                                 | NaN                   | nearest that there is  |
//! | `F6_E2M3`, `F6_E3M2`, F4                  | largest finite        | largest finite         |
//! | integers, from floats                     | nearest that there is | nearest that there is  |
//! | integers, from integers                   | low bits: they wrap   | nearest that there is  |
//!
//! Saturating, infinities of the source become the largest finite value of their sign as well,
//! even where the target has infinities.
//!
//! # The dtypes that are not like the others
//!
//! - `F8_E8M0` has the powers of two from 2^-127 to 2^127 and NaN: no 0, no sign. Of two that are
//!   as near, the larger counts as the nearest. 0 and negative numbers are outside of its range:
//!   they overflow, and become NaN, or saturating 2^-127. Numbers above 0 become 2^-127 at least;
//!   those nearer to 0 than to that count as underflows.
//! - BOOL is 0 or 1 as a source: any byte but 0 is 1. As a target it is 1 for all but 0, NaN too;
//!   nothing overflows or underflows.
//! - C64 becomes its real part, and as BOOL 1 unless both parts are 0. As a target it gets an
//!   imaginary part of 0. Saturating, it counts as one overflow if either part is infinite.
//!
//! The result is the same on every machine, to the last bit, in the float environment that Rust
//! takes for granted.

use std::fmt;

use weigh_format::Dtype;

use crate::format;
use crate::length::{LengthError, Unit};
use crate::pair::{self, Run};
use crate::range;
use crate::route::Route;
use crate::tally::Tally;

/// A conversion from one dtype to another.
#[derive(Clone, Copy)]
pub struct Cast {
    from: Dtype,
    to: Dtype,
    overflow: Overflow,
    /// The one loop that does it all, where there is one.
    direct: Option<Run>,
    route: Route,
}

/// What numbers become that are beyond the range of a target; the [module](self) has a table.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// What the target has for them: infinity, else NaN, else its largest. Integers wrap.
    #[default]
    Natural,
    /// The largest or smallest finite value of the target, infinities too.
    Saturate,
}

impl Cast {
    /// The conversion from any dtype to any other.
    #[must_use]
    pub fn new(from: Dtype, to: Dtype, overflow: Overflow) -> Self {
        let natural = Route::new(from, to, false);
        let mut cast = Self { from, to, overflow, direct: None, route: natural };
        if overflow == Overflow::Saturate && !cast.is_exact() {
            cast.route = Route::new(from, to, true);
        }
        cast.direct = match (from == to, cast.route.clamps()) {
            (true, false) => Some(copy),
            (true, true) => Some(range::without_infinities(to)),
            (false, false) => pair::run(from, to),
            (false, true) => None,
        };
        cast
    }

    /// The conversion from a float dtype to F64, F32, F16 or BF16, with [`Overflow::Natural`]: for
    /// callers who compute with the result.
    ///
    /// # Errors
    ///
    /// - [`CastError::NotFloat`] if `from` is an integer, boolean or complex dtype.
    /// - [`CastError::NotTarget`] if `to` is not F64, F32, F16 or BF16.
    pub fn between_floats(from: Dtype, to: Dtype) -> Result<Self, CastError> {
        if !matches!(to, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(CastError::NotTarget { to });
        }
        if !format::is_float(from) {
            return Err(CastError::NotFloat { from });
        }
        Ok(Self::new(from, to, Overflow::Natural))
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

    /// What numbers become that are beyond the range of the target.
    #[must_use]
    pub fn overflow(&self) -> Overflow {
        self.overflow
    }

    /// Whether every element of the source stays the number, infinity or NaN that it is; −0 may
    /// become 0. A [`Tally`] of it then counts nothing but [`values`](Tally::values) and
    /// [`nan`](Tally::nan).
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let saturates = self.overflow == Overflow::Saturate && format::has_infinity(self.from);
        !saturates && format::has_all_of(self.to, self.from)
    }

    /// The smallest whole number of bytes that converts to whole bytes: one element, but two where
    /// F4 is the source or the target, and four where a 6-bit dtype is.
    #[must_use]
    pub fn unit(&self) -> Unit {
        Unit::between(self.from, self.to)
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
        match self.direct {
            Some(run) => run(from, to),
            None => self.route.convert(from, to),
        }
        Ok(())
    }

    /// [Converts](Self::convert), and adds what happened to the elements to a tally.
    ///
    /// # Errors
    ///
    /// Those of [`convert`](Self::convert); the tally is then as it was.
    pub fn convert_counted(
        &self,
        from: &[u8],
        to: &mut [u8],
        tally: &mut Tally,
    ) -> Result<(), LengthError> {
        self.unit().check(from.len(), to.len())?;
        *tally += self.route.convert_counted(from, to, self.direct);
        Ok(())
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, overflow, .. } = self;
        let mut text = f.debug_struct("Cast");
        text.field("from", from).field("to", to).field("overflow", overflow).finish_non_exhaustive()
    }
}

/// Why there is no such conversion [between floats](Cast::between_floats).
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
