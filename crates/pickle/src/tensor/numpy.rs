//! Arrays of numpy: their bytes are in the pickle.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::{Args, wrong};
use super::dense::{elements, tensor, view};
use super::{Dense, Kind, Tensor, TensorReader};
use crate::Error;
use crate::dtype::TorchDtype;
use crate::graph::{Call, Graph, Node, NodeId};
use crate::known::Known;
use crate::refusal::Refusal;
use crate::transform::Transforms;

impl TensorReader<'_> {
    /// The array that a call makes. Inside, why torch has no such tensor.
    pub(super) fn array(
        &mut self,
        callee: Known,
        arguments: NodeId,
        call: Option<&Call>,
    ) -> Result<Result<Tensor, Refusal>, Error> {
        let graph = self.graph;
        if callee == Known::NumpyFromBuffer {
            let args = Args::new(graph, "_frombuffer", arguments, 4..=5)?;
            let order = graph.text(args.get(3)?);
            let shape = args.counts(2)?;
            let (shape, strides) = match (order, args.present(4)) {
                (Some("F"), _) => (shape.clone(), column_major(&shape)),
                (Some("K"), Some(_)) => transposed(&shape, &args.counts(4)?)?,
                (Some("C" | "K"), _) => (shape.clone(), row_major(&shape)),
                _ => return Err(args.no(3, "an order of numpy")),
            };
            return self.elements_in(args.get(0)?, args.get(1)?, shape, strides);
        }
        let args = Args::new(graph, "_reconstruct", arguments, 3..=3)?;
        if graph.known(args.get(0)?) != Some(Known::NdArray) {
            return Err(args.no(0, "numpy.ndarray"));
        }
        let state = call.and_then(|call| call.states.last().copied());
        let state = state.ok_or_else(|| wrong("an array without a state"))?;
        let state = Args::new(graph, "the state of an array", state, 4..=5)?;
        // The version, which is 1, was left out at first.
        let from = state.len().saturating_sub(4);
        let at = |place: usize| from.saturating_add(place);
        let shape = state.counts(at(0))?;
        let strides = if state.flag(at(2))? { column_major(&shape) } else { row_major(&shape) };
        self.elements_in(state.get(at(3))?, state.get(at(1))?, shape, strides)
    }

    fn elements_in(
        &mut self,
        bytes: NodeId,
        dtype: NodeId,
        shape: Vec<u64>,
        strides: Vec<u64>,
    ) -> Result<Result<Tensor, Refusal>, Error> {
        let (dtype, swap) = match numpy_dtype(self.graph, dtype)? {
            Ok(dtype) => dtype,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let window = self.storages.inline(self.graph, bytes)?;
        let wanted = elements(&shape, dtype)?.checked_mul(dtype.bytes());
        if wanted != Some(window.bytes) {
            return Err(Error::new(
                "tensor-bounds",
                format!(
                    "an array of {} bytes has {} bytes",
                    wanted.unwrap_or(u64::MAX),
                    window.bytes
                ),
            ));
        }
        let view = view(window, dtype, 0, shape.clone(), strides)?;
        let transforms = Transforms { swap, ..Transforms::default() };
        Ok(Ok(tensor(dtype, shape, Kind::Array(Dense { view, transforms }), false)))
    }
}

/// A dtype of numpy's, and whether its numbers have the highest byte first. Inside, why torch has none such.
fn numpy_dtype(
    graph: &Graph<'_>,
    node: NodeId,
) -> Result<Result<(TorchDtype, bool), Refusal>, Error> {
    let no_dtype = || wrong("what should be a dtype of numpy is none");
    let call = graph.call(node).ok_or_else(no_dtype)?;
    if graph.known(call.callee) != Some(Known::NumpyDtype) {
        return Err(no_dtype());
    }
    let args = graph.sequence(call.args).ok_or_else(no_dtype)?;
    let name = args.first().and_then(|name| graph.text(*name)).ok_or_else(no_dtype)?;
    let mut big = name.starts_with('>');
    let plain = name.trim_start_matches(['<', '>', '=', '|']);
    if let Some(state) = call.states.last() {
        let state = graph.sequence(*state).ok_or_else(no_dtype)?;
        match state.get(1).and_then(|order| graph.text(*order)) {
            Some(">") => big = true,
            // The state says it, whatever the name does.
            Some("<" | "=" | "|") => big = false,
            _ => return Err(no_dtype()),
        }
        // A dtype of parts, or of parts of an element.
        let has_parts =
            |place| state.get(place).is_some_and(|part: &NodeId| *graph.node(*part) != Node::None);
        if has_parts(2) || has_parts(3) || has_parts(4) {
            return Ok(Err(Refusal::Numpy(name.to_owned())));
        }
    }
    if matches!(plain, "O" | "O4" | "O8") {
        return Ok(Err(Refusal::Objects));
    }
    let dtype = match plain {
        "b1" | "?" => TorchDtype::Bool,
        "i1" => TorchDtype::Int8,
        "u1" => TorchDtype::UInt8,
        "i2" => TorchDtype::Int16,
        "u2" => TorchDtype::UInt16,
        "i4" => TorchDtype::Int32,
        "u4" => TorchDtype::UInt32,
        "i8" => TorchDtype::Int64,
        "u8" => TorchDtype::UInt64,
        "f2" => TorchDtype::Float16,
        "f4" => TorchDtype::Float32,
        "f8" => TorchDtype::Float64,
        "c8" => TorchDtype::Complex64,
        "c16" => TorchDtype::Complex128,
        _ => return Ok(Err(Refusal::Numpy(String::from(name)))),
    };
    Ok(Ok((dtype, big && dtype.swap_unit() > 1)))
}

/// What an array is of, if it is of no numbers: in words, and why torch has no such tensor.
pub(crate) fn no_numbers(graph: &Graph<'_>, node: NodeId) -> Option<(&'static str, Refusal)> {
    let call = graph.call(node)?;
    let dtype = match graph.known(call.callee)? {
        Known::NumpyReconstruct => {
            let state = graph.sequence(*call.states.last()?)?;
            *state.get(state.len().checked_sub(3)?)?
        }
        Known::NumpyFromBuffer => *graph.sequence(call.args)?.get(1)?,
        _ => return None,
    };
    let refusal = numpy_dtype(graph, dtype).ok()?.err()?;
    let what = match &refusal {
        Refusal::Objects => "an array of Python objects",
        Refusal::Numpy(name) => {
            match name.trim_start_matches(['<', '>', '=', '|']).chars().next() {
                Some('U' | 'S' | 'a' | 'T') => "an array of text",
                Some('M' | 'm') => "an array of dates or times",
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((what, refusal))
}

fn row_major(shape: &[u64]) -> Vec<u64> {
    let mut strides = column_major(&shape.iter().rev().copied().collect::<Vec<u64>>());
    strides.reverse();
    strides
}

fn column_major(shape: &[u64]) -> Vec<u64> {
    let mut next = 1_u64;
    let stride = |size: &u64| {
        let stride = next;
        next = next.saturating_mul(*size);
        stride
    };
    shape.iter().map(stride).collect()
}

/// A shape and strides whose dimensions are those of a row-major array in another order.
fn transposed(shape: &[u64], order: &[u64]) -> Result<(Vec<u64>, Vec<u64>), Error> {
    let strides = row_major(shape);
    let mut seen = alloc::vec![false; shape.len()];
    let mut moved = (Vec::new(), Vec::new());
    for axis in order {
        let place = usize::try_from(*axis).unwrap_or(usize::MAX);
        match (seen.get_mut(place), shape.get(place), strides.get(place)) {
            (Some(seen @ false), Some(&size), Some(&stride)) => {
                *seen = true;
                moved.0.push(size);
                moved.1.push(stride);
            }
            _ => return Err(wrong("the order of the axes of an array is none")),
        }
    }
    if seen.contains(&false) {
        return Err(wrong("the order of the axes of an array is none"));
    }
    Ok(moved)
}
