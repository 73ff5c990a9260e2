//! Tensors that are made of others, by their parts or as a whole: sparse and nested ones.

use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::tensor::{Sparse, Tensor, TensorId};

use super::input::Input;
use super::tensors::{Of, Part, Parts, held};
use crate::Error;
use crate::torch::gather::{Blob, Bytes, Gathered, Make, Pattern, Scatter, Scattered, can_add};

impl Of<'_> {
    /// The parts of a sparse tensor, each with a name of its own.
    pub(super) fn sparse_parts(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        sparse: &Sparse,
    ) -> Parts {
        let indices: &[&'static str] = match sparse.layout {
            "sparse_coo" => &["indices"],
            "sparse_csr" | "sparse_bsr" => &["crow_indices", "col_indices"],
            "sparse_csc" | "sparse_bsc" => &["ccol_indices", "row_indices"],
            layout => return Ok(Err(Refusal::Sparse(layout))),
        };
        let named = indices.iter().copied().zip(sparse.indices.iter().copied());
        let named = named.chain([("values", sparse.values)]);
        let mut parts = match self.named_parts(input, named)? {
            Ok(parts) => parts,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let sizes = tensor.shape.iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX));
        let bytes = sizes.flat_map(i64::to_le_bytes).collect();
        parts.push(Part {
            end: Some("size"),
            from: TorchDtype::Int64,
            dtype: TorchDtype::Int64.components(),
            shape: vec![tensor.shape.len() as u64],
            gathered: held(input, bytes),
        });
        Ok(Ok(parts))
    }

    /// Parts that are tensors, each with a name of its own.
    pub(super) fn named_parts(
        &mut self,
        input: &mut Input,
        named: impl Iterator<Item = (&'static str, TensorId)>,
    ) -> Parts {
        let mut parts = Vec::new();
        for (end, id) in named {
            let tensor = self.checkpoint.tensor(id);
            let tensor = tensor.ok_or_else(|| Error::internal("a part that is no tensor"))?;
            match self.alone(input, tensor)? {
                Ok(part) => parts.push(Part { end: Some(end), ..part }),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(parts))
    }

    /// All elements of a sparse tensor, those that are not there as 0.
    pub(super) fn densified(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        sparse: &Sparse,
    ) -> Parts {
        let refused = Ok(Err(Refusal::Sparse(sparse.layout)));
        let mut parts = Vec::new();
        for id in sparse.indices.iter().chain([&sparse.values]) {
            let part = self.checkpoint.tensor(*id);
            let part = part.ok_or_else(|| Error::internal("a part that is no tensor"))?;
            match self.alone(input, part)? {
                Ok(own) => {
                    // Expanded: of few bytes there may be very many.
                    let blob = input.blobs.get(own.gathered.blob).map_or(0, |blob| blob.len);
                    let most = blob.max(self.options.torch.limits.expanded_bytes);
                    if own.gathered.pattern.bytes() > most {
                        return refused;
                    }
                    let (gathered, shape) = (own.gathered, part.shape.clone());
                    parts.push(Scattered { gathered, shape, dtype: part.dtype });
                }
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let dtype = tensor.dtype;
        let Some(values) = parts.pop().filter(|values| can_add(values.dtype)) else {
            return refused;
        };
        let elements = tensor.shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        let Some(len) = elements.and_then(|elements| elements.checked_mul(dtype.bytes())) else {
            return Ok(Err(Refusal::TooLarge));
        };
        let Some(scatter) = Scatter::new(sparse.layout, &tensor.shape, parts, values) else {
            return refused;
        };
        let blob = input.add_blob(Blob {
            name: String::new(),
            len,
            bytes: Bytes::Scattered(Box::new(scatter)),
            crc: None,
            head: Vec::new(),
        });
        let mut shape = tensor.shape.clone();
        if dtype.is_complex() && dtype.safetensors().is_err() {
            shape.push(2);
        }
        let gathered = Gathered { blob, pattern: Pattern::span(0..len), make: Make::Copy };
        let of = dtype.safetensors().unwrap_or_else(|_| dtype.components());
        Ok(Ok(vec![Part { end: None, from: dtype, dtype: of, shape, gathered }]))
    }
}
