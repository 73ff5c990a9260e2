//! Tensors whose elements are in a storage, or would be.

use alloc::format;
use alloc::vec::Vec;

use super::args::{Args, wrong};
use super::{Dense, Form, Kind, Tensor, TensorReader};
use crate::Error;
use crate::dtype::TorchDtype;
use crate::graph::{Call, Graph, Node, NodeId};
use crate::known::Known;
use crate::storage::Window;
use crate::transform::Transforms;
use crate::view::View;

impl<'g> TensorReader<'g> {
    /// The tensor that one of the constructors of dense tensors makes.
    pub(super) fn dense(
        &mut self,
        callee: Known,
        arguments: NodeId,
        call: Option<&Call>,
    ) -> Result<Tensor, Error> {
        let graph = self.graph;
        match callee {
            Known::RebuildTensor => {
                let args = Args::new(graph, "_rebuild_tensor", arguments, 4..=4)?;
                self.strided(&args, None, Transforms::default(), false)
            }
            Known::RebuildTensorV2 => {
                let args = Args::new(graph, "_rebuild_tensor_v2", arguments, 6..=7)?;
                let transforms = transforms(graph, args.present(6))?;
                self.strided(&args, None, transforms, args.flag(4)?)
            }
            Known::RebuildTensorV3 => {
                let args = Args::new(graph, "_rebuild_tensor_v3", arguments, 7..=8)?;
                let transforms = transforms(graph, args.present(7))?;
                self.strided(&args, Some(args.dtype(6)?), transforms, args.flag(4)?)
            }
            Known::LegacyTensor(name) => {
                Args::new(graph, "a tensor class", arguments, 0..=0)?;
                let state = call.and_then(|call| call.states.last().copied());
                let state =
                    state.ok_or_else(|| wrong("a tensor class makes no tensor by itself"))?;
                let args = Args::new(graph, "the state of a tensor", state, 4..=4)?;
                let tensor = self.strided(&args, None, Transforms::default(), false)?;
                if tensor.dtype.name() == name {
                    Ok(tensor)
                } else {
                    Err(wrong(format!("a tensor of {name} has a storage of {}", tensor.dtype)))
                }
            }
            _ => {
                let name = "_rebuild_meta_tensor_no_storage";
                let args = Args::new(graph, name, arguments, 4..=4)?;
                let shape = args.counts(1)?;
                if args.counts(2)?.len() != shape.len() {
                    return Err(uneven());
                }
                elements(&shape, args.dtype(0)?)?;
                Ok(tensor(args.dtype(0)?, shape, Kind::Meta, args.flag(3)?))
            }
        }
    }

    /// A storage, an offset, a size and strides.
    fn strided(
        &mut self,
        args: &Args<'g>,
        dtype: Option<TorchDtype>,
        transforms: Transforms,
        requires_grad: bool,
    ) -> Result<Tensor, Error> {
        let window = self.storages.resolve(self.graph, args.get(0)?)?;
        // A typed storage is taken as the bytes that it is.
        let dtype = dtype.or(window.dtype).ok_or_else(|| args.no(0, "a storage with a dtype"))?;
        if transforms.conjugate && !dtype.is_complex() {
            return Err(wrong(format!("elements of {dtype} have no conjugates")));
        }
        let (shape, strides) = (args.counts(2)?, args.counts(3)?);
        if self.storages.get(window.storage).is_some_and(crate::storage::Storage::is_meta) {
            elements(&shape, dtype)?;
            return Ok(tensor(dtype, shape, Kind::Meta, requires_grad));
        }
        let view = view(window, dtype, args.count(1)?, shape.clone(), strides)?;
        Ok(tensor(dtype, shape, Kind::Dense(Dense { view, transforms }), requires_grad))
    }
}

/// A tensor that nothing is around.
pub(super) fn tensor(
    dtype: TorchDtype,
    shape: Vec<u64>,
    kind: Kind,
    requires_grad: bool,
) -> Tensor {
    Tensor {
        node: None,
        dtype,
        shape,
        kind,
        form: Form::Tensor,
        requires_grad,
        attributes: None,
        cast: None,
    }
}

/// The data of a dense tensor in a window.
pub(super) fn in_window(
    window: Window,
    dtype: TorchDtype,
    offset: u64,
    shape: &[u64],
    strides: Vec<u64>,
) -> Result<Kind, Error> {
    let view = view(window, dtype, offset, shape.to_vec(), strides)?;
    Ok(Kind::Dense(Dense { view, transforms: Transforms::default() }))
}

/// A view, every element of which is in the window.
pub(super) fn view(
    window: Window,
    dtype: TorchDtype,
    offset: u64,
    shape: Vec<u64>,
    strides: Vec<u64>,
) -> Result<View, Error> {
    if dtype.is_packed() {
        return Err(wrong(format!("elements of {dtype} are not addressed one by one")));
    }
    if shape.len() != strides.len() {
        return Err(uneven());
    }
    let element_bytes = dtype.bytes();
    let has_elements = elements(&shape, dtype)? > 0;
    let mut first = window.first;
    if has_elements {
        let last = last(offset, &shape, &strides);
        let end = last.and_then(|last| last.checked_add(1)?.checked_mul(u128::from(element_bytes)));
        if end.is_none_or(|end| end > u128::from(window.bytes)) {
            let last = last.map_or_else(|| "too large a number".into(), |last| format!("{last}"));
            return Err(Error::new(
                "tensor-bounds",
                format!(
                    "the last element is number {last}, of a storage of {} bytes of {dtype}",
                    window.bytes
                ),
            ));
        }
        let before = offset.checked_mul(element_bytes).and_then(|at| at.checked_add(window.first));
        first = before.ok_or_else(|| Error::new("tensor-bounds", "an offset is too large"))?;
    }
    Ok(View { storage: window.storage, first, element_bytes, shape, strides })
}

/// The number of the last element that a view reaches, if that can be counted.
fn last(offset: u64, shape: &[u64], strides: &[u64]) -> Option<u128> {
    shape.iter().zip(strides).try_fold(u128::from(offset), |last, (&size, &stride)| {
        let steps = u128::from(size).checked_sub(1)?;
        last.checked_add(steps.checked_mul(u128::from(stride))?)
    })
}

/// How many elements a shape has, if these and their bytes can be counted.
pub(super) fn elements(shape: &[u64], dtype: TorchDtype) -> Result<u64, Error> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let elements = shape.iter().try_fold(1_u64, |elements, &size| elements.checked_mul(size));
    elements
        .filter(|elements| elements.checked_mul(dtype.bytes()).is_some())
        .ok_or_else(|| Error::new("tensor-shape", "more elements than can be counted"))
}

fn uneven() -> Error {
    Error::new("tensor-shape", "a size and strides of different lengths")
}

/// What the metadata of a tensor asks for.
fn transforms(graph: &Graph<'_>, metadata: Option<NodeId>) -> Result<Transforms, Error> {
    let mut transforms = Transforms::default();
    let Some(metadata) = metadata else {
        return Ok(transforms);
    };
    let Node::Dict(pairs) = graph.node(metadata) else {
        return Err(wrong("the metadata of a tensor is no dictionary"));
    };
    for (key, value) in pairs {
        let (Some(key), Node::Bool(set)) = (graph.text(*key), graph.node(*value)) else {
            return Err(wrong("the metadata of a tensor has what is no flag"));
        };
        match key {
            "conj" => transforms.conjugate = *set,
            "neg" => transforms.negate = *set,
            _ if !set => {}
            _ => return Err(wrong(format!("the metadata of a tensor has a flag {key}"))),
        }
    }
    Ok(transforms)
}
