//! What becomes of what the output has not, as the caller chooses.

use std::path::Path;

/// What is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an argument")]
pub enum Format {
    /// safetensors.
    #[default]
    Safetensors,
    /// An archive of numpy's arrays.
    Npz,
}

impl Format {
    /// What a file of this name is to be.
    #[must_use]
    pub fn of_name(path: &Path) -> Self {
        if path.extension().is_some_and(|end| end == "npz") { Self::Npz } else { Self::Safetensors }
    }
}

/// What becomes of complex numbers that the output has not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an argument")]
pub enum Complex {
    /// They are refused.
    #[default]
    Refuse,
    /// A last dimension of two has the real and the imaginary part, as `torch.view_as_real` does it.
    ViewReal,
}

/// What becomes of integers with scales.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an argument")]
pub enum QuantizedRule {
    /// They are refused.
    #[default]
    Refuse,
    /// The integers are written as they are, one for each element, of the dtype I8, U8 or I32, and beside them
    /// `NAME.scale` and `NAME.zero_point`: of one number each, or, for scales by channel, of one for each channel, with
    /// `NAME.axis`, the number of the dimension.
    Integers,
    /// The floats that they stand for are written, as F32: what torch's `dequantize()` gives.
    Dequantize,
}

/// What becomes of sparse tensors.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an argument")]
pub enum SparseRule {
    /// They are refused.
    #[default]
    Refuse,
    /// All elements are written, those that are not there as 0: what torch's `to_dense()` gives.
    Dense,
    /// Their parts are written: `NAME.values`, `NAME.size`, and `NAME.indices` for COO, `NAME.crow_indices` and
    /// `NAME.col_indices` for CSR and BSR, `NAME.ccol_indices` and `NAME.row_indices` for CSC and BSC.
    Parts,
}

/// What becomes of nested tensors.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an argument")]
pub enum NestedRule {
    /// They are refused.
    #[default]
    Refuse,
    /// Their parts are written: `NAME.values`, the elements of all rows, and `NAME.sizes`, `NAME.strides` and
    /// `NAME.offsets`, those of each row, in elements.
    Parts,
}
