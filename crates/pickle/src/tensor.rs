//! The tensors that a graph describes: what they are of, where their elements are, and why some are not written as
//! they are.
//!
//! Nothing here has or makes elements. A descriptor is made of a call of one of torch's or numpy's constructors with
//! the arguments that these take, and of nothing else: a wrong number of arguments, or a wrong kind, is an error that
//! says which.

mod args;
mod dense;
mod numpy;
mod parts;
mod reader;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::Dtype;

use crate::dtype::TorchDtype;
use crate::graph::NodeId;
use crate::refusal::Refusal;
use crate::transform::{Transforms, can_negate};
use crate::view::View;

pub(crate) use numpy::no_numbers;
pub use reader::{Reading, TarTensor, TensorReader};

/// A tensor of a [`TensorReader`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TensorId(pub(crate) u32);

/// A tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tensor {
    /// The node that it is; that of its data, for a tensor of a tar file.
    pub node: Option<NodeId>,
    /// Its elements, as they are in the file.
    pub dtype: TorchDtype,
    /// Its shape, as torch counts it.
    pub shape: Vec<u64>,
    /// Where its data is.
    pub kind: Kind,
    /// What it is a tensor as.
    pub form: Form,
    /// Whether it is to be trained.
    pub requires_grad: bool,
    /// Attributes that Python code gave it, which are no part of a tensor.
    pub attributes: Option<NodeId>,
    /// The dtype that loading it converts it to, if that is another.
    pub cast: Option<TorchDtype>,
}

/// Where the data of a tensor is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// In a storage.
    Dense(Dense),
    /// The same, of numpy.
    Array(Dense),
    /// Nowhere: the device is `meta`.
    Meta,
    /// In other tensors: indices and values.
    Sparse(Box<Sparse>),
    /// In a storage, as integers with a scale.
    Quantized(Box<Quantized>),
    /// In other tensors, row after row.
    Nested {
        /// The elements of all rows.
        buffer: TensorId,
        /// The sizes, strides and offsets of the rows.
        rows: [TensorId; 3],
    },
    /// Wherever the class of this name keeps it.
    Wrapper(String),
}

/// Elements in a storage.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Dense {
    /// Where they are.
    pub view: View,
    /// What is to be done to them.
    pub transforms: Transforms,
}

/// The parts of a sparse tensor.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sparse {
    /// `"sparse_coo"`, `"sparse_csr"`, `"sparse_csc"`, `"sparse_bsr"` or `"sparse_bsc"`.
    pub layout: &'static str,
    /// The indices of COO; of the others the compressed ones, and then the plain ones.
    pub indices: Vec<TensorId>,
    /// The values.
    pub values: TensorId,
    /// Whether indices are in order and unique, where a COO tensor says so.
    pub coalesced: Option<bool>,
}

/// Integers, and what they stand for: `(integer − zero point) × scale`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quantized {
    /// The integers. Those of less than a byte are bytes here, in a view of one dimension.
    pub integers: Dense,
    /// The scales.
    pub scheme: Scheme,
}

/// The scales of a quantized tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scheme {
    /// One for all elements.
    PerTensor {
        /// The scale.
        scale: f64,
        /// The zero point.
        zero_point: i64,
    },
    /// One for each place of a dimension.
    PerChannel {
        /// The scales: a tensor of one dimension.
        scales: Scales,
        /// The zero points: a tensor of one dimension.
        zero_points: Scales,
        /// The dimension.
        axis: u64,
        /// Whether the zero points are floats, and all is computed in 32 bits.
        floats: bool,
    },
}

/// Scales or zero points.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the two that torch takes")]
pub enum Scales {
    /// As a tensor.
    Tensor(TensorId),
    /// As numbers.
    Numbers(Vec<f64>),
}

/// What a tensor is a tensor as.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Form {
    /// As itself.
    #[default]
    Tensor,
    /// As a parameter.
    Parameter,
    /// As a buffer.
    Buffer,
    /// As an instance of a class of this name, which is not known here.
    Subclass(String),
}

/// A tensor that safetensors has as it is, once gathered.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Plain<'t> {
    /// The elements.
    pub dtype: Dtype,
    /// The shape, as safetensors counts it.
    pub shape: Vec<u64>,
    /// Where they are, and what is to be done to them.
    pub dense: &'t Dense,
}

impl Tensor {
    /// The elements in a storage, if they are there: also where they have no plain conversion.
    #[must_use]
    pub fn dense(&self) -> Option<&Dense> {
        match &self.kind {
            Kind::Dense(dense) | Kind::Array(dense) => Some(dense),
            Kind::Quantized(quantized) => Some(&quantized.integers),
            _ => None,
        }
    }

    /// Bytes of its elements, gathered; 0 if they are not in a storage.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.dense().map_or(0, |dense| dense.view.byte_len())
    }

    /// How it is written to safetensors as it is.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn plain(&self) -> Result<Plain<'_>, Refusal> {
        let dense = match &self.kind {
            Kind::Dense(dense) | Kind::Array(dense) => dense,
            Kind::Meta => return Err(Refusal::Meta),
            Kind::Sparse(sparse) => return Err(Refusal::Sparse(sparse.layout)),
            Kind::Quantized(_) => return Err(Refusal::Quantized(self.dtype)),
            Kind::Nested { .. } => return Err(Refusal::Nested),
            Kind::Wrapper(class) => return Err(Refusal::Wrapper(class.clone())),
        };
        if let Some(to) = self.cast {
            return Err(Refusal::Cast { from: self.dtype, to });
        }
        if dense.transforms.negate && !can_negate(self.dtype) {
            return Err(Refusal::Negated(self.dtype));
        }
        let dtype = self.dtype.safetensors()?;
        Ok(Plain { dtype, shape: self.dtype.safetensors_shape(&self.shape)?, dense })
    }
}
