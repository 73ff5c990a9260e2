//! Integers with scales: written as the floats that they stand for, or as integers with the scales beside them.

use weigh_format::Dtype;
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::tensor::{Quantized, Scales, Scheme, Tensor};

use super::input::Input;
use super::tensors::{Of, Part, Parts, bytes_of, held};
use crate::Error;
use crate::torch::gather::{Dequantize, Gathered, Integer, Integers, Make, Steps};

/// Bytes of scales, at most.
const MOST_SCALES: u64 = 64 << 20;

impl Of<'_> {
    /// The floats that integers stand for.
    pub(super) fn dequantized(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        quantized: &Quantized,
    ) -> Parts {
        let refused = Ok(Err(Refusal::Quantized(tensor.dtype)));
        let Some((gathered, integers)) = self.integers_of(input, tensor, quantized)? else {
            return refused;
        };
        let Some((steps, inner, blobs)) = self.steps(input, tensor, quantized)? else {
            return refused;
        };
        let make = Make::Dequantize(Dequantize { integers, steps, inner, blobs });
        let (from, shape) = (tensor.dtype, tensor.shape.clone());
        let gathered = Gathered { make, ..gathered };
        Ok(Ok(vec![Part { end: None, from, dtype: Dtype::F32, shape, gathered }]))
    }

    /// The integers, one for each element, and their scales.
    pub(super) fn integers(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        quantized: &Quantized,
    ) -> Parts {
        let Some((gathered, integers)) = self.integers_of(input, tensor, quantized)? else {
            return Ok(Err(Refusal::Quantized(tensor.dtype)));
        };
        let make =
            if integers.integer.is_packed() { Make::Unpack(integers) } else { gathered.make };
        let mut parts = vec![Part {
            end: None,
            from: tensor.dtype,
            dtype: tensor.dtype.components(),
            shape: tensor.shape.clone(),
            gathered: Gathered { make, ..gathered },
        }];
        let mut number = |input: &mut Input, end, from, dtype, shape, bytes| {
            let gathered = held(input, bytes);
            parts.push(Part { end: Some(end), from, dtype, shape, gathered });
        };
        let float = (TorchDtype::Float64, Dtype::F64);
        let integer = (TorchDtype::Int64, Dtype::I64);
        match &quantized.scheme {
            Scheme::PerTensor { scale, zero_point } => {
                let (scale, zero) = (scale.to_le_bytes(), zero_point.to_le_bytes());
                number(input, "scale", float.0, float.1, vec![], scale.to_vec());
                number(input, "zero_point", integer.0, integer.1, vec![], zero.to_vec());
            }
            Scheme::PerChannel { scales, zero_points, axis, .. } => {
                let axis = i64::try_from(*axis).unwrap_or(i64::MAX).to_le_bytes();
                number(input, "axis", integer.0, integer.1, vec![], axis.to_vec());
                for (end, scales) in [("scale", scales), ("zero_point", zero_points)] {
                    match self.scales(input, end, scales)? {
                        Ok(part) => parts.push(part),
                        Err(refusal) => return Ok(Err(refusal)),
                    }
                }
            }
            _ => return Ok(Err(Refusal::Quantized(tensor.dtype))),
        }
        Ok(Ok(parts))
    }

    /// Scales or zero points as a tensor beside the integers.
    fn scales(
        &mut self,
        input: &mut Input,
        end: &'static str,
        scales: &Scales,
    ) -> Result<Result<Part, Refusal>, Error> {
        match scales {
            Scales::Tensor(id) => {
                let tensor = self.checkpoint.tensor(*id);
                let tensor = tensor.ok_or_else(|| Error::internal("scales that are no tensor"))?;
                let part = self.alone(input, tensor)?;
                Ok(part.map(|part| Part { end: Some(end), ..part }))
            }
            Scales::Numbers(numbers) => {
                let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                Ok(Ok(Part {
                    end: Some(end),
                    from: TorchDtype::Float64,
                    dtype: Dtype::F64,
                    shape: vec![numbers.len() as u64],
                    gathered: held(input, bytes),
                }))
            }
        }
    }

    /// Where the integers are, and what they are.
    fn integers_of(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        quantized: &Quantized,
    ) -> Result<Option<(Gathered, Integers)>, Error> {
        let Some(integer) = Integer::of(tensor.dtype) else { return Ok(None) };
        let Ok(gathered) = self.gathered(input, tensor.dtype, &quantized.integers)? else {
            return Ok(None);
        };
        let swap = match &gathered.make {
            Make::Copy => false,
            Make::Elements { transforms, .. } if !transforms.negate && !transforms.conjugate => {
                transforms.swap
            }
            _ => return Ok(None),
        };
        let elements =
            tensor.shape.iter().fold(1_u64, |product, size| product.saturating_mul(*size));
        Ok(Some((gathered, Integers { integer, elements, swap })))
    }

    /// The scales, the elements of a channel that are next to each other, and the blobs that scales are in; nothing if
    /// they do not go with the tensor.
    fn steps(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        quantized: &Quantized,
    ) -> Result<Option<(Steps, u64, Vec<usize>)>, Error> {
        #[expect(clippy::cast_possible_truncation, reason = "torch computes in 32 bits")]
        let narrow = |number: f64| number as f32;
        let (scales, zeros, axis, floats) = match &quantized.scheme {
            Scheme::PerTensor { scale, zero_point } => {
                let all = Steps::All { scale: narrow(*scale), zero: *zero_point };
                return Ok(Some((all, u64::MAX, Vec::new())));
            }
            Scheme::PerChannel { scales, zero_points, axis, floats } => {
                // torch writes either scheme as that of integers, and tells them by what zero points are.
                let floats = *floats || self.is_of_floats(zero_points);
                (scales, zero_points, *axis, floats)
            }
            _ => return Ok(None),
        };
        let axis = usize::try_from(axis).unwrap_or(usize::MAX);
        let Some(count) = tensor.shape.get(axis) else { return Ok(None) };
        let inner = tensor.shape.iter().skip(axis + 1);
        let inner = inner.fold(1_u64, |product, size| product.saturating_mul(*size));
        let mut blobs = Vec::new();
        let scales = self.numbers(input, scales, &mut blobs)?;
        let zeros = self.numbers(input, zeros, &mut blobs)?;
        let (Some(scales), Some(zeros)) = (scales, zeros) else { return Ok(None) };
        if [&scales, &zeros].iter().any(|numbers| numbers.len() as u64 != *count) {
            return Ok(None);
        }
        let pairs = scales.into_iter().zip(zeros);
        let steps = if floats {
            Steps::Floats(pairs.map(|(scale, zero)| (narrow(scale), narrow(zero))).collect())
        } else {
            Steps::Channels(pairs.map(|(scale, zero)| (scale, narrow(zero.trunc()))).collect())
        };
        Ok(Some((steps, inner, blobs)))
    }

    fn is_of_floats(&self, scales: &Scales) -> bool {
        let Scales::Tensor(id) = scales else { return false };
        let dtype = self.checkpoint.tensor(*id).map(|tensor| tensor.dtype);
        matches!(dtype, Some(TorchDtype::Float32 | TorchDtype::Float64))
    }

    /// The numbers of scales or zero points; nothing for such that torch would not take.
    fn numbers(
        &mut self,
        input: &mut Input,
        scales: &Scales,
        blobs: &mut Vec<usize>,
    ) -> Result<Option<Vec<f64>>, Error> {
        let id = match scales {
            Scales::Numbers(numbers) => return Ok(Some(numbers.clone())),
            Scales::Tensor(id) => *id,
        };
        let Some(tensor) = self.checkpoint.tensor(id) else { return Ok(None) };
        let Some(dense) = tensor.dense() else { return Ok(None) };
        if dense.view.byte_len() > MOST_SCALES {
            return Ok(None);
        }
        let Ok(gathered) = self.gathered(input, tensor.dtype, dense)? else { return Ok(None) };
        blobs.push(gathered.blob);
        let source = self.checkpoint.source();
        // The files before this one are not looked at.
        let sources = vec![source; self.file + 1];
        let bytes = bytes_of(&gathered, &sources, &input.blobs)?;
        let chunks4 = || bytes.as_chunks::<4>().0.iter().copied();
        let chunks8 = || bytes.as_chunks::<8>().0.iter().copied();
        #[expect(clippy::cast_precision_loss, reason = "zero points are small")]
        let numbers = match tensor.dtype {
            TorchDtype::Float64 => chunks8().map(f64::from_le_bytes).collect(),
            TorchDtype::Float32 => chunks4().map(|it| f32::from_le_bytes(it).into()).collect(),
            TorchDtype::Int64 => chunks8().map(|it| i64::from_le_bytes(it) as f64).collect(),
            TorchDtype::Int32 => chunks4().map(|it| i32::from_le_bytes(it).into()).collect(),
            _ => return Ok(None),
        };
        Ok(Some(numbers))
    }
}
