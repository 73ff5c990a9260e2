//! Tensors that are made of others, or of more than elements: sparse, quantized, nested, wrapped.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::{Args, float, wrong};
use super::dense::{elements, tensor, view};
use super::{Dense, Kind, Quantized, Scales, Scheme, Sparse, Tensor, TensorReader};
use crate::Error;
use crate::dtype::TorchDtype;
use crate::graph::{Graph, Node, NodeId};
use crate::known::Known;
use crate::storage::Window;
use crate::transform::Transforms;
use crate::view::View;

impl TensorReader<'_> {
    pub(super) fn sparse(&mut self, arguments: NodeId) -> Result<Tensor, Error> {
        let graph = self.graph;
        let args = Args::new(graph, "_rebuild_sparse_tensor", arguments, 2..=2)?;
        let layout = layout(graph, args.get(0)?).ok_or_else(|| args.no(0, "a sparse layout"))?;
        let is_coo = layout == "sparse_coo";
        let counts = if is_coo { 3..=4 } else { 4..=4 };
        let data = Args::new(graph, "the data of a sparse tensor", args.get(1)?, counts)?;
        let mut indices = Vec::new();
        indices.push(self.part(data.get(0)?, "indices")?);
        if !is_coo {
            indices.push(self.part(data.get(1)?, "indices")?);
        }
        let (values, size) = if is_coo { (1, 2) } else { (2, 3) };
        let values = self.part(data.get(values)?, "values")?;
        let coalesced = match data.present(3) {
            Some(_) if is_coo => Some(data.flag(3)?),
            _ => None,
        };
        let dtype = self.get(values).map_or(TorchDtype::UInt8, |values| values.dtype);
        let shape = data.counts(size)?;
        let sparse = Sparse { layout, indices, values, coalesced };
        Ok(tensor(dtype, shape, Kind::Sparse(Box::new(sparse)), false))
    }

    pub(super) fn nested(&mut self, arguments: NodeId) -> Result<Tensor, Error> {
        let args = Args::new(self.graph, "_rebuild_nested_tensor", arguments, 4..=4)?;
        let buffer = self.part(args.get(0)?, "elements")?;
        let rows = [
            self.part(args.get(1)?, "sizes")?,
            self.part(args.get(2)?, "strides")?,
            self.part(args.get(3)?, "offsets")?,
        ];
        let of = self.get(buffer);
        let dtype = of.map_or(TorchDtype::UInt8, |buffer| buffer.dtype);
        let shape = of.map_or_else(Vec::new, |buffer| buffer.shape.clone());
        Ok(tensor(dtype, shape, Kind::Nested { buffer, rows }, false))
    }

    pub(super) fn wrapper(&mut self, arguments: NodeId) -> Result<Tensor, Error> {
        let args = Args::new(self.graph, "_rebuild_wrapper_subclass", arguments, 8..=8)?;
        let class =
            self.graph.global(args.get(0)?).map(|(module, name)| format!("{module}.{name}"));
        let class: String = class.ok_or_else(|| args.no(0, "a class"))?;
        let (dtype, shape) = (args.dtype(1)?, args.counts(2)?);
        elements(&shape, dtype)?;
        Ok(tensor(dtype, shape, Kind::Wrapper(class), args.flag(7)?))
    }

    pub(super) fn quantized(&mut self, arguments: NodeId) -> Result<Tensor, Error> {
        let args = Args::new(self.graph, "_rebuild_qtensor", arguments, 7..=7)?;
        let window = self.storages.resolve(self.graph, args.get(0)?)?;
        let dtype = window.dtype.filter(|dtype| dtype.is_quantized());
        let dtype = dtype.ok_or_else(|| args.no(0, "a storage of a quantized dtype"))?;
        let (offset, shape, strides) = (args.count(1)?, args.counts(2)?, args.counts(3)?);
        let view = if dtype.is_packed() {
            packed(window, dtype, offset, &shape, strides)?
        } else {
            view(window, dtype, offset, shape.clone(), strides)?
        };
        let scheme = self.scheme(args.get(4)?, &shape)?;
        let integers = Dense { view, transforms: Transforms::default() };
        let kind = Kind::Quantized(Box::new(Quantized { integers, scheme }));
        Ok(tensor(dtype, shape, kind, args.flag(5)?))
    }

    fn scheme(&mut self, node: NodeId, shape: &[u64]) -> Result<Scheme, Error> {
        let graph = self.graph;
        let args = Args::new(graph, "the scales of a quantized tensor", node, 3..=4)?;
        match (graph.known(args.get(0)?), args.len()) {
            (Some(Known::QScheme("per_tensor_affine")), 3) => {
                Ok(Scheme::PerTensor { scale: args.float(1)?, zero_point: args.integer(2)? })
            }
            (
                Some(Known::QScheme(
                    scheme @ ("per_channel_affine" | "per_channel_affine_float_qparams"),
                )),
                4,
            ) => {
                let axis = args.count(3)?;
                let size = usize::try_from(axis).ok().and_then(|axis| shape.get(axis)).copied();
                let size = size.ok_or_else(|| args.no(3, "a dimension"))?;
                let scales = self.scales(args.get(1)?, size, "scales")?;
                let zero_points = self.scales(args.get(2)?, size, "zero points")?;
                let floats = scheme == "per_channel_affine_float_qparams";
                Ok(Scheme::PerChannel { scales, zero_points, axis, floats })
            }
            _ => Err(args.no(0, "a scheme that torch writes")),
        }
    }

    /// One number for each place of the dimension.
    fn scales(&mut self, node: NodeId, size: u64, what: &str) -> Result<Scales, Error> {
        let (scales, count) = match self.graph.node(node) {
            Node::List(items) => {
                let numbers: Option<Vec<f64>> =
                    items.iter().map(|item| float(self.graph, *item)).collect();
                let numbers =
                    numbers.ok_or_else(|| wrong(format!("{what} that are no numbers")))?;
                let count = u64::try_from(numbers.len()).unwrap_or(u64::MAX);
                (Scales::Numbers(numbers), Some(count))
            }
            _ => {
                let id = self.part(node, what)?;
                let count =
                    self.get(id).and_then(|tensor| elements(&tensor.shape, tensor.dtype).ok());
                (Scales::Tensor(id), count)
            }
        };
        if count == Some(size) {
            return Ok(scales);
        }
        let count = count.unwrap_or_default();
        Err(wrong(format!("{count} {what} for a dimension of {size}")))
    }
}

/// The bytes of packed elements, which are only known to be in order when they are contiguous from the first on.
fn packed(
    window: Window,
    dtype: TorchDtype,
    offset: u64,
    shape: &[u64],
    strides: Vec<u64>,
) -> Result<View, Error> {
    let bits = elements(shape, dtype)?.checked_mul(dtype.bits());
    let bytes = bits.map_or(u64::MAX, |bits| bits.div_ceil(8));
    let in_order = View {
        storage: window.storage,
        first: 0,
        element_bytes: 1,
        shape: shape.to_vec(),
        strides,
    };
    if offset > 0 || in_order.strides.len() != shape.len() || !in_order.is_contiguous() {
        return Err(Error::new(
            "tensor-shape",
            format!("elements of {dtype} that are not in order"),
        ));
    }
    if bytes > window.bytes {
        return Err(Error::new(
            "tensor-bounds",
            format!("{bytes} bytes of {dtype}, of a storage of {} bytes", window.bytes),
        ));
    }
    Ok(View { first: window.first, shape: alloc::vec![bytes], strides: alloc::vec![1], ..in_order })
}

/// The layout that a call of torch's `_get_layout` names.
fn layout(graph: &Graph<'_>, node: NodeId) -> Option<&'static str> {
    let call = graph.call(node)?;
    if graph.known(call.callee) != Some(Known::GetLayout) {
        return None;
    }
    let [name] = graph.sequence(call.args)? else {
        return None;
    };
    let name = graph.text(*name)?.strip_prefix("torch.")?;
    ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
        .into_iter()
        .find(|layout| *layout == name)
}
