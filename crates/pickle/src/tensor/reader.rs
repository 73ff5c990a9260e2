//! The calls of a graph that are tensors, each read once.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::{self, Args};
use super::{Form, Kind, Tensor, TensorId, dense, no_numbers};
use crate::dtype::TorchDtype;
use crate::graph::{Call, Graph, Node, NodeId};
use crate::known::Known;
use crate::refusal::Refusal;
use crate::storage::{PersistentId, Storages, persistent_id};
use crate::{Error, Limits};

/// What a node is that is a tensor, or looks like one.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "it is a tensor or it is not")]
pub enum Reading {
    /// This tensor.
    Tensor(TensorId),
    /// An array of numpy's whose elements torch has not.
    Other(Refusal),
}

/// A tensor of a tar file, by its keys.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the fields of the file")]
pub struct TarTensor<'t> {
    /// Its key.
    pub key: &'t str,
    /// The key of its storage, which was added before.
    pub storage: &'t str,
    /// Elements of the storage before its first.
    pub offset: u64,
    /// The size of each dimension.
    pub shape: Vec<u64>,
    /// Elements from one place of a dimension to the next.
    pub strides: Vec<u64>,
}

/// Parameters of parameters, and the like, that are looked through.
const WRAPPERS: u32 = 16;

/// Reads tensors, each node once.
#[derive(Debug)]
pub struct TensorReader<'g> {
    pub(super) graph: &'g Graph<'g>,
    limit: u32,
    pub(super) storages: Storages,
    tensors: Vec<Tensor>,
    by_node: BTreeMap<NodeId, TensorId>,
    by_key: BTreeMap<String, TensorId>,
}

impl<'g> TensorReader<'g> {
    /// Of this graph.
    #[must_use]
    pub fn new(graph: &'g Graph<'g>, limits: &Limits) -> Self {
        Self {
            graph,
            limit: limits.tensors,
            storages: Storages::default(),
            tensors: Vec::new(),
            by_node: BTreeMap::new(),
            by_key: BTreeMap::new(),
        }
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &'g Graph<'g> {
        self.graph
    }

    /// The storages of the tensors that were read.
    #[must_use]
    pub fn storages(&self) -> &Storages {
        &self.storages
    }

    /// The storages, to add those of a tar file.
    pub fn storages_mut(&mut self) -> &mut Storages {
        &mut self.storages
    }

    /// The tensors that were read, and the parts of them that are tensors.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// A tensor. `None` for an id of another reader.
    #[must_use]
    pub fn get(&self, id: TensorId) -> Option<&Tensor> {
        self.tensors.get(usize::try_from(id.0).ok()?)
    }

    /// Whether a node is a tensor, if it is sound.
    #[must_use]
    pub fn is_tensor(&self, node: NodeId) -> bool {
        match self.graph.node(node) {
            Node::Call(call) => {
                is_constructor(self.graph, call) && no_numbers(self.graph, node).is_none()
            }
            Node::Persistent(id) => match persistent_id(self.graph, *id) {
                Ok(PersistentId::Key(key)) => self.by_key.contains_key(&*key),
                _ => false,
            },
            _ => false,
        }
    }

    /// Adds a tensor of a tar file.
    ///
    /// # Errors
    ///
    /// `storage-id` if there is no such storage; `tensor-shape` and `tensor-bounds`; `limit-tensors`.
    pub fn add_tar_tensor(&mut self, tensor: TarTensor<'_>) -> Result<TensorId, Error> {
        let TarTensor { key, storage, offset, shape, strides } = tensor;
        let window = self.storages.window(storage).ok_or_else(|| {
            Error::new(
                "storage-id",
                format!("tensor {key} is of storage {storage}, which is not there"),
            )
        })?;
        let dtype = window.dtype.unwrap_or(TorchDtype::UInt8);
        let kind = dense::in_window(window, dtype, offset, &shape, strides)?;
        let id = self.push(Tensor {
            node: None,
            dtype,
            shape,
            kind,
            form: Form::Tensor,
            requires_grad: false,
            attributes: None,
            cast: None,
        })?;
        self.by_key.insert(key.to_owned(), id);
        Ok(id)
    }

    /// The tensor that a node is.
    ///
    /// # Errors
    ///
    /// `tensor-args` if its arguments are not those that its constructor takes; `tensor-shape`, `tensor-bounds` if
    /// they are, and say what cannot be; `storage-…` of its storage; `limit-tensors`.
    pub fn read(&mut self, node: NodeId) -> Result<Reading, Error> {
        if let Some(&id) = self.by_node.get(&node) {
            return Ok(Reading::Tensor(id));
        }
        let reading = self.unwrapped(node).map_err(|error| self.at_call(error, node))?;
        if let Reading::Tensor(id) = reading {
            self.by_node.insert(node, id);
        }
        Ok(reading)
    }

    /// A part of another tensor, which is dense itself.
    pub(super) fn part(&mut self, node: NodeId, what: &str) -> Result<TensorId, Error> {
        if let Some(&id) = self.by_node.get(&node) {
            return match self.get(id).map(|tensor| &tensor.kind) {
                Some(Kind::Dense(_) | Kind::Meta) => Ok(id),
                _ => Err(not_dense(what)),
            };
        }
        let callee = self.graph.call(node).and_then(|call| known_callee(self.graph, call.callee));
        let is_dense = matches!(
            callee,
            Some(
                Known::RebuildTensor
                    | Known::RebuildTensorV2
                    | Known::RebuildTensorV3
                    | Known::RebuildMetaTensorNoStorage
                    | Known::LegacyTensor(_)
            )
        );
        // A part has no parts, so that this is no recursion.
        let tensor = match (is_dense, callee, self.graph.call(node)) {
            (true, Some(callee), Some(call)) => self.dense(callee, call.args, Some(call))?,
            _ => return Err(not_dense(what)),
        };
        let id = self.push(Tensor { node: Some(node), ..tensor })?;
        self.by_node.insert(node, id);
        Ok(id)
    }

    /// A tensor without what is around it.
    fn unwrapped(&mut self, node: NodeId) -> Result<Reading, Error> {
        let graph = self.graph;
        let mut form = Form::Tensor;
        let mut requires_grad = None;
        let mut attributes = None;
        let mut cast = None;
        let mut data = node;
        for _ in 0..WRAPPERS {
            let Some(call) = graph.call(data) else {
                let id = self.tar_tensor(data)?;
                let tensor = self.get(id).cloned();
                return match (tensor, &form) {
                    (Some(tensor), Form::Parameter | Form::Buffer | Form::Subclass(_)) => {
                        let requires_grad = requires_grad.unwrap_or(false);
                        self.push(Tensor { form, requires_grad, attributes, ..tensor })
                            .map(Reading::Tensor)
                    }
                    _ => Ok(Reading::Tensor(id)),
                };
            };
            let (mut callee, mut arguments, mut of) =
                (known_callee(graph, call.callee), call.args, Some(call));
            refuse_changes(callee, call)?;
            if callee == Some(Known::RebuildFromTypeV2) {
                let args = Args::new(graph, "_rebuild_from_type_v2", call.args, 4..=4)?;
                let class = args.get(1)?;
                form = form_of(graph, class, form);
                attributes = attributes.or(args.present(3));
                callee = graph.known(args.get(0)?);
                arguments = args.get(2)?;
                of = None;
            }
            match callee {
                Some(Known::RebuildParameter) => {
                    let args = Args::new(graph, "_rebuild_parameter", arguments, 3..=3)?;
                    data = args.get(0)?;
                    requires_grad = requires_grad.or(Some(args.flag(1)?));
                    form = strongest(form, Form::Parameter);
                }
                Some(Known::RebuildParameterWithState) => {
                    let args = Args::new(graph, "_rebuild_parameter_with_state", arguments, 4..=4)?;
                    data = args.get(0)?;
                    requires_grad = requires_grad.or(Some(args.flag(1)?));
                    attributes = attributes.or(args.present(3));
                    form = strongest(form, Form::Parameter);
                }
                Some(known @ (Known::Parameter | Known::Buffer)) => {
                    let (name, kind) = match known {
                        Known::Parameter => ("Parameter", Form::Parameter),
                        _ => ("Buffer", Form::Buffer),
                    };
                    let args = Args::new(graph, name, arguments, 0..=2)?;
                    let state = of.and_then(|call| call.states.last().copied());
                    let (inner, grad) = match state {
                        Some(state) => args::variable_state(graph, state)?,
                        None if known == Known::Parameter => (args.get(0)?, args.flag_or(1, true)?),
                        None => (args.get(0)?, false),
                    };
                    data = inner;
                    requires_grad = requires_grad.or(Some(grad));
                    form = strongest(form, kind);
                }
                Some(Known::RebuildDeviceTensorFromCpuTensor) => {
                    let name = "_rebuild_device_tensor_from_cpu_tensor";
                    let args = Args::new(graph, name, arguments, 4..=4)?;
                    data = args.get(0)?;
                    cast = cast.or(Some(args.dtype(1)?));
                    requires_grad = requires_grad.or(Some(args.flag(3)?));
                }
                Some(Known::RebuildDeviceTensorFromNumpy) => {
                    let name = "_rebuild_device_tensor_from_numpy";
                    let args = Args::new(graph, name, arguments, 4..=4)?;
                    data = args.get(0)?;
                    cast = cast.or(Some(args.dtype(1)?));
                    requires_grad = requires_grad.or(Some(args.flag(3)?));
                }
                callee => {
                    let tensor = match self.bare(callee, arguments, of)? {
                        Ok(tensor) => tensor,
                        Err(refusal) => return Ok(Reading::Other(refusal)),
                    };
                    let cast = cast.filter(|to| *to != tensor.dtype);
                    let id = self.push(Tensor {
                        node: Some(node),
                        form,
                        requires_grad: requires_grad.unwrap_or(tensor.requires_grad),
                        attributes,
                        cast,
                        ..tensor
                    })?;
                    return Ok(Reading::Tensor(id));
                }
            }
        }
        Err(Error::new("tensor-args", format!("a tensor is wrapped more than {WRAPPERS} times")))
    }

    /// A tensor that wraps no other. Inside, why it is none.
    fn bare(
        &mut self,
        callee: Option<Known>,
        arguments: NodeId,
        call: Option<&Call>,
    ) -> Result<Result<Tensor, Refusal>, Error> {
        match callee {
            Some(
                known @ (Known::RebuildTensor
                | Known::RebuildTensorV2
                | Known::RebuildTensorV3
                | Known::RebuildMetaTensorNoStorage
                | Known::LegacyTensor(_)),
            ) => self.dense(known, arguments, call).map(Ok),
            Some(Known::RebuildSparseTensor) => self.sparse(arguments).map(Ok),
            Some(Known::RebuildQTensor) => self.quantized(arguments).map(Ok),
            Some(Known::RebuildNestedTensor) => self.nested(arguments).map(Ok),
            Some(Known::RebuildWrapperSubclass) => self.wrapper(arguments).map(Ok),
            Some(known @ (Known::NumpyReconstruct | Known::NumpyFromBuffer)) => {
                self.array(known, arguments, call)
            }
            _ => Err(Error::new("tensor-args", "what should be a tensor is none")),
        }
    }

    fn tar_tensor(&self, node: NodeId) -> Result<TensorId, Error> {
        if let Node::Persistent(id) = self.graph.node(node)
            && let PersistentId::Key(key) = persistent_id(self.graph, *id)?
            && let Some(&id) = self.by_key.get(&*key)
        {
            return Ok(id);
        }
        Err(Error::new("tensor-args", "what should be a tensor is none"))
    }

    fn push(&mut self, tensor: Tensor) -> Result<TensorId, Error> {
        let id = u32::try_from(self.tensors.len()).unwrap_or(u32::MAX);
        if id >= self.limit {
            return Err(Error::new("limit-tensors", format!("more than {} tensors", self.limit)));
        }
        if let Some(dense) = tensor.dense() {
            let storage = dense.view.storage;
            self.storages.used(storage);
        }
        self.tensors.push(tensor);
        Ok(TensorId(id))
    }

    fn at_call(&self, error: Error, node: NodeId) -> Error {
        let Some(call) = self.graph.call(node) else {
            return error;
        };
        if error.offset.is_some() {
            error
        } else {
            error.at(call.offset).opcode(call.kind.opcode())
        }
    }
}

/// What is called, through a class that an old file has the source of.
pub(crate) fn known_callee(graph: &Graph<'_>, callee: NodeId) -> Option<Known> {
    graph.known(class_node(graph, callee))
}

/// The class that a node names, through a persistent id that has its source.
pub(crate) fn class_node(graph: &Graph<'_>, node: NodeId) -> NodeId {
    match graph.node(node) {
        Node::Persistent(id) => match persistent_id(graph, *id) {
            Ok(PersistentId::Class(class)) => class,
            _ => node,
        },
        _ => node,
    }
}

/// Whether a call makes a tensor.
fn is_constructor(graph: &Graph<'_>, call: &Call) -> bool {
    known_callee(graph, call.callee).is_some_and(|known| {
        known.rebuilds()
            || matches!(
                known,
                Known::Parameter
                    | Known::Buffer
                    | Known::LegacyTensor(_)
                    | Known::NumpyReconstruct
                    | Known::NumpyFromBuffer
            )
    })
}

/// What a class makes of a tensor.
fn form_of(graph: &Graph<'_>, class: NodeId, form: Form) -> Form {
    match graph.known(class) {
        Some(Known::Parameter) => strongest(form, Form::Parameter),
        Some(Known::Buffer) => strongest(form, Form::Buffer),
        Some(Known::Tensor | Known::LegacyTensor(_)) => form,
        _ => {
            let name = graph.global(class).map(|(module, name)| format!("{module}.{name}"));
            strongest(form, Form::Subclass(name.unwrap_or_default()))
        }
    }
}

/// The outermost that is not a plain tensor.
fn strongest(outer: Form, inner: Form) -> Form {
    if outer == Form::Tensor { inner } else { outer }
}

fn not_dense(what: &str) -> Error {
    Error::new("tensor-args", format!("the {what} of a tensor are no dense tensor"))
}

/// Refuses what a pickle does to a tensor after it is made: `BUILD` would give it another storage in torch, and nothing
/// that torch writes does that.
fn refuse_changes(callee: Option<Known>, call: &Call) -> Result<(), Error> {
    let has_state = matches!(
        callee,
        None | Some(
            Known::Parameter
                | Known::Buffer
                | Known::LegacyTensor(_)
                | Known::Tensor
                | Known::NumpyReconstruct
                | Known::NumpyDtype
        )
    );
    let is_changed = !call.states.is_empty() || !call.items.is_empty() || !call.pairs.is_empty();
    if has_state || (!is_changed && call.keywords.is_none()) {
        return Ok(());
    }
    let message = "a tensor is changed after it was made, which torch never writes";
    Err(Error::new("tensor-args", message).at(call.offset))
}
