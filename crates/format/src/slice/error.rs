//! Why a tensor cannot be sliced like that.

use core::fmt;

use crate::Dtype;

/// Why a tensor cannot be sliced like that. Dimensions are counted from 0, outermost first.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SliceError {
    /// There are more indices than dimensions, an ellipsis not counted.
    TooManyIndices {
        /// The indices that were given.
        given: usize,
        /// The dimensions that the tensor has.
        rank: usize,
    },
    /// There is more than one ellipsis.
    TwoEllipses,
    /// The dimension has no such place.
    OutOfRange {
        /// The dimension of the tensor.
        axis: usize,
        /// The place that was asked for.
        index: i64,
        /// The places that the dimension has.
        size: u64,
    },
    /// The step of a range is 0.
    StepZero {
        /// The dimension of the tensor.
        axis: usize,
    },
    /// The tensor is over 2^64 − 1 elements or bytes.
    TooLarge,
    /// A run begins inside a byte: its bits would have to be shifted.
    InsideByte {
        /// The element type, of under 8 bits.
        dtype: Dtype,
        /// The element of the tensor that the run begins with, in the order of the file.
        element: u64,
        /// Whether that is inside a byte of the slice, rather than of the tensor.
        in_slice: bool,
    },
    /// What a negative step turns around is not made of whole bytes.
    ReversedInsideByte {
        /// The dimension of the slice.
        axis: usize,
        /// The element type, of under 8 bits.
        dtype: Dtype,
    },
}

impl SliceError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooManyIndices { .. } => "slice-too-many-indices",
            Self::TwoEllipses => "slice-two-ellipses",
            Self::OutOfRange { .. } => "slice-out-of-range",
            Self::StepZero { .. } => "slice-step-zero",
            Self::TooLarge => "size-overflow",
            Self::InsideByte { .. } => "slice-inside-byte",
            Self::ReversedInsideByte { .. } => "slice-reversed-inside-byte",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::TwoEllipses => Some("Write `:` for each whole dimension instead."),
            Self::OutOfRange { size: 0, .. } => Some("Take a range: the dimension is empty."),
            Self::StepZero { .. } => Some("Give one place alone to take it: `3`, not `3:4:0`."),
            Self::InsideByte { dtype, .. } if dtype.bits() == 4 => {
                Some("Two elements share a byte: begin and end ranges at even places.")
            }
            Self::InsideByte { .. } => {
                Some("Four elements share three bytes: begin and end ranges at multiples of 4.")
            }
            Self::ReversedInsideByte { .. } => {
                Some("Take the range with a positive step, and reverse it after decoding.")
            }
            Self::TooManyIndices { .. } | Self::OutOfRange { .. } | Self::TooLarge => None,
        }
    }
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyIndices { given, rank } => {
                write!(f, "too many indices: {given} for a tensor of {rank} dimensions")
            }
            Self::TwoEllipses => f.write_str("an index can have only one `...`"),
            Self::OutOfRange { axis, index, size } => {
                write!(f, "index {index} is out of range for dimension {axis} of size {size}")
            }
            Self::StepZero { axis } => write!(f, "the step of dimension {axis} is 0"),
            Self::TooLarge => f.write_str("the tensor is over 2^64 - 1 elements or bytes"),
            Self::InsideByte { dtype, element, in_slice } => {
                let whole = if *in_slice { "slice" } else { "tensor" };
                write!(
                    f,
                    "element {element} would begin a run inside a byte of the {whole}: {dtype} has {} bits",
                    dtype.bits()
                )
            }
            Self::ReversedInsideByte { axis, dtype } => write!(
                f,
                "dimension {axis} of the slice cannot be reversed inside bytes: {dtype} has {} bits",
                dtype.bits()
            ),
        }
    }
}

impl core::error::Error for SliceError {}
