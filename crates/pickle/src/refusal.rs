//! Why a tensor has no plain conversion, by stable codes.

use alloc::string::String;
use core::fmt;

use weigh_format::text::{escaped, shortened};

use crate::dtype::TorchDtype;

/// Why a tensor is not written to safetensors as it is. Its descriptor still says all that the file does, so that a
/// rule which the user chose can convert some of these.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// A complex dtype that safetensors has not.
    Complex(TorchDtype),
    /// Bits without a meaning, or integers of less than a byte each in one.
    Bits(TorchDtype),
    /// Integers with a scale beside them.
    Quantized(TorchDtype),
    /// No data: a tensor of the device `meta`.
    Meta,
    /// A sparse tensor of this layout.
    Sparse(&'static str),
    /// A nested tensor: rows of different lengths.
    Nested,
    /// A subclass that keeps its data elsewhere, under attributes of its own.
    Wrapper(String),
    /// Loading it would convert the elements.
    Cast {
        /// The elements that the file has.
        from: TorchDtype,
        /// What they become.
        to: TorchDtype,
    },
    /// A negation that is still to be done, of elements that have none.
    Negated(TorchDtype),
    /// An array of Python objects.
    Objects,
    /// An array of elements that numpy calls this, which safetensors has not.
    Numpy(String),
    /// Two elements in one, and no last dimension to double.
    PackedScalar,
    /// More elements than a shape can count.
    TooLarge,
}

impl Refusal {
    /// The stable kebab-case code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Complex(_) => "complex",
            Self::Bits(_) => "bits",
            Self::Quantized(_) => "quantized",
            Self::Meta => "meta",
            Self::Sparse(_) => "sparse",
            Self::Nested => "nested",
            Self::Wrapper(_) => "wrapper-subclass",
            Self::Cast { .. } => "cast",
            Self::Negated(_) => "negated",
            Self::Objects => "numpy-objects",
            Self::Numpy(_) => "numpy-dtype",
            Self::PackedScalar => "packed-scalar",
            Self::TooLarge => "too-large",
        }
    }

    /// What can be done about it.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Complex(_) => {
                "Write the real and the imaginary part as a last dimension of two, if readers know."
            }
            Self::Bits(_) => "Write the bytes as unsigned integers, if readers know their meaning.",
            Self::Quantized(_) => {
                "Dequantize, or write the integers with their scales and zero points beside them."
            }
            Self::Meta => "Save the model with its weights: there are none in this file.",
            Self::Sparse(_) => "Write the indices and the values, or save a dense tensor.",
            Self::Nested => "Write the buffer, the sizes, the strides and the offsets.",
            Self::Wrapper(_) => "Save the parts of the tensor as plain tensors.",
            Self::Cast { .. } => "Save the tensor on the CPU, in the dtype it is to have.",
            Self::Negated(_) => "Save the tensor with its negation done.",
            Self::Objects => "Save an array of numbers.",
            Self::Numpy(_) => "Save an array of a dtype that safetensors has.",
            Self::PackedScalar => "Save it with one dimension.",
            Self::TooLarge => "No tensor is that large: the file is damaged, or made to look so.",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complex(dtype) | Self::Bits(dtype) => {
                write!(f, "safetensors has no type for torch.{dtype}")
            }
            Self::Quantized(dtype) => {
                write!(f, "quantized (torch.{dtype}), with a scale beside it")
            }
            Self::Meta => f.write_str("on the device meta: it has no data"),
            Self::Sparse(layout) => {
                write!(f, "sparse ({layout}): indices and values, not elements")
            }
            Self::Nested => f.write_str("nested: its rows have different lengths"),
            Self::Wrapper(class) => {
                write!(f, "a {} that keeps its data elsewhere", escaped(&shortened(class)))
            }
            Self::Cast { from, to } => {
                write!(f, "kept as torch.{from}, to be converted to torch.{to} when it is loaded")
            }
            Self::Negated(dtype) => write!(f, "to be negated, which torch.{dtype} cannot be"),
            Self::Objects => f.write_str("an array of Python objects"),
            Self::Numpy(dtype) => {
                write!(
                    f,
                    "safetensors has no type for the numpy dtype {}",
                    escaped(&shortened(dtype))
                )
            }
            Self::PackedScalar => f.write_str("two elements of four bits, and no dimension"),
            Self::TooLarge => f.write_str("more elements than can be counted"),
        }
    }
}

impl core::error::Error for Refusal {}
