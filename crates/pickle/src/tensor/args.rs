//! The arguments of a constructor, by place, each as what it should be.

use alloc::format;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::Error;
use crate::dtype::TorchDtype;
use crate::graph::{Graph, Node, NodeId};
use crate::known::Known;

/// Dimensions that torch has at most.
const DIMENSIONS: usize = 64;

/// The arguments of a call.
pub(super) struct Args<'g> {
    graph: &'g Graph<'g>,
    function: &'static str,
    items: &'g [NodeId],
}

impl<'g> Args<'g> {
    /// Those of a function that takes this many.
    pub(super) fn new(
        graph: &'g Graph<'g>,
        function: &'static str,
        node: NodeId,
        counts: RangeInclusive<usize>,
    ) -> Result<Self, Error> {
        let Some(items) = graph.sequence(node) else {
            return Err(wrong(format!("the arguments of {function} are no tuple")));
        };
        let args = Self { graph, function, items };
        if counts.contains(&items.len()) {
            return Ok(args);
        }
        let takes = if counts.start() == counts.end() {
            format!("{}", counts.start())
        } else {
            format!("{} to {}", counts.start(), counts.end())
        };
        Err(wrong(format!("{function} has {} arguments, and takes {takes}", items.len())))
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, place: usize) -> Result<NodeId, Error> {
        self.items.get(place).copied().ok_or_else(|| self.no(place, "there"))
    }

    /// An argument that is there and is not `None`.
    pub(super) fn present(&self, place: usize) -> Option<NodeId> {
        let node = self.items.get(place).copied()?;
        (*self.graph.node(node) != Node::None).then_some(node)
    }

    pub(super) fn flag(&self, place: usize) -> Result<bool, Error> {
        match self.graph.node(self.get(place)?) {
            Node::Bool(flag) => Ok(*flag),
            Node::Int(number @ (0 | 1)) => Ok(*number == 1),
            _ => Err(self.no(place, "a boolean")),
        }
    }

    pub(super) fn flag_or(&self, place: usize, default: bool) -> Result<bool, Error> {
        if place < self.items.len() { self.flag(place) } else { Ok(default) }
    }

    pub(super) fn dtype(&self, place: usize) -> Result<TorchDtype, Error> {
        match self.graph.known(self.get(place)?) {
            Some(Known::Dtype(name)) => TorchDtype::from_name(name),
            _ => None,
        }
        .ok_or_else(|| self.no(place, "a dtype"))
    }

    pub(super) fn count(&self, place: usize) -> Result<u64, Error> {
        count(self.graph, self.get(place)?).ok_or_else(|| self.no(place, "an integer from 0"))
    }

    pub(super) fn integer(&self, place: usize) -> Result<i64, Error> {
        self.graph.integer(self.get(place)?).ok_or_else(|| self.no(place, "an integer"))
    }

    pub(super) fn float(&self, place: usize) -> Result<f64, Error> {
        float(self.graph, self.get(place)?).ok_or_else(|| self.no(place, "a number"))
    }

    /// A tuple, a list or a `torch.Size` of integers from 0.
    pub(super) fn counts(&self, place: usize) -> Result<Vec<u64>, Error> {
        let items = sizes(self.graph, self.get(place)?);
        let items = items.ok_or_else(|| self.no(place, "a tuple"))?;
        if items.len() > DIMENSIONS {
            return Err(Error::new(
                "tensor-shape",
                format!("{} dimensions, and there are at most {DIMENSIONS}", items.len()),
            ));
        }
        let counts: Option<Vec<u64>> = items.iter().map(|item| count(self.graph, *item)).collect();
        counts.ok_or_else(|| {
            Error::new(
                "tensor-shape",
                format!("argument {place} of {} has what is no integer from 0", self.function),
            )
        })
    }

    pub(super) fn no(&self, place: usize, what: &str) -> Error {
        wrong(format!("argument {place} of {} is not {what}", self.function))
    }
}

/// An integer from 0 that is no boolean.
fn count(graph: &Graph<'_>, node: NodeId) -> Option<u64> {
    u64::try_from(graph.integer(node)?).ok()
}

pub(super) fn float(graph: &Graph<'_>, node: NodeId) -> Option<f64> {
    match graph.node(node) {
        Node::Float(number) => Some(*number),
        // Scales and zero points are small: of larger numbers nothing is made.
        Node::Int(number) => i32::try_from(*number).ok().map(f64::from),
        _ => None,
    }
}

/// The items of a shape.
fn sizes<'g>(graph: &'g Graph<'_>, node: NodeId) -> Option<&'g [NodeId]> {
    if let Some(items) = graph.sequence(node) {
        return Some(items);
    }
    let call = graph.call(node)?;
    if graph.known(call.callee) != Some(Known::Size) {
        return None;
    }
    match graph.sequence(call.args)? {
        [] => Some(&[]),
        [items] => graph.sequence(*items),
        _ => None,
    }
}

/// The data and the flag of the state that old releases of torch gave a variable.
pub(super) fn variable_state(graph: &Graph<'_>, state: NodeId) -> Result<(NodeId, bool), Error> {
    match graph.sequence(state) {
        Some([data, _, _, grad, _]) => Ok((*data, *graph.node(*grad) == Node::Bool(true))),
        _ => Err(wrong("the state of a variable is no tuple of five")),
    }
}

pub(super) fn wrong(message: impl Into<alloc::string::String>) -> Error {
    Error::new("tensor-args", message)
}
