//! Bytes that belong together, and what is wrong with numbers of bytes.

use std::fmt;

use weigh_format::Dtype;

/// The smallest whole number of bytes that converts by itself, and what it becomes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "two sizes and nothing more")]
pub struct Unit {
    /// Bytes of the source.
    pub from_bytes: usize,
    /// Bytes of the target that these become.
    pub to_bytes: usize,
}

impl Unit {
    /// The unit of a dtype whose elements become `to_bytes` each.
    pub(crate) fn of(dtype: Dtype, to_bytes: usize) -> Self {
        let (from_bytes, elements) = match dtype.bits() {
            4 => (1, 2),
            6 => (3, 4),
            8 => (1, 1),
            16 => (2, 1),
            32 => (4, 1),
            _ => (8, 1),
        };
        Self { from_bytes, to_bytes: elements * to_bytes }
    }

    /// The unit of a conversion from one dtype to another.
    pub(crate) fn between(from: Dtype, to: Dtype) -> Self {
        let elements = |dtype: Dtype| match dtype.bits() {
            4 => 2,
            6 => 4,
            _ => 1,
        };
        let elements: u32 = elements(from).max(elements(to));
        let bytes = |dtype: Dtype| (elements * dtype.bits() / 8) as usize;
        Self { from_bytes: bytes(from), to_bytes: bytes(to) }
    }

    /// How many bytes `from_bytes` become.
    pub(crate) fn target(self, from_bytes: usize) -> Result<usize, LengthError> {
        let unit_bytes = self.from_bytes;
        if !from_bytes.is_multiple_of(unit_bytes) {
            return Err(LengthError::NotUnits { from_bytes, unit_bytes });
        }
        Ok((from_bytes / unit_bytes).saturating_mul(self.to_bytes))
    }

    /// Whether `from_bytes` are whole units, and `to_bytes` what these become.
    pub(crate) fn check(self, from_bytes: usize, to_bytes: usize) -> Result<(), LengthError> {
        let wanted_bytes = self.target(from_bytes)?;
        if wanted_bytes == to_bytes {
            Ok(())
        } else {
            Err(LengthError::Room { from_bytes, wanted_bytes, to_bytes })
        }
    }
}

/// Why bytes were not converted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LengthError {
    /// The source is not a whole number of units.
    NotUnits {
        /// Bytes of the source.
        from_bytes: usize,
        /// Bytes of a unit of it.
        unit_bytes: usize,
    },
    /// The target has not the size of the converted source.
    Room {
        /// Bytes of the source.
        from_bytes: usize,
        /// Bytes that these become; `usize::MAX` if more.
        wanted_bytes: usize,
        /// Bytes of the target.
        to_bytes: usize,
    },
}

impl LengthError {
    /// The stable code of what is wrong.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotUnits { .. } => "length-not-units",
            Self::Room { .. } => "length-room",
        }
    }
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUnits { from_bytes, unit_bytes } => {
                write!(f, "{from_bytes} bytes are not a multiple of {unit_bytes}")
            }
            Self::Room { from_bytes, wanted_bytes, to_bytes } => {
                write!(f, "{from_bytes} bytes become {wanted_bytes}, but the room is {to_bytes}")
            }
        }
    }
}

impl std::error::Error for LengthError {}
