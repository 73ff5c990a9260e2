//! What is appended to, set in and added to an object, and the state it is given.

use alloc::boxed::Box;
use alloc::format;

use weigh_format::{Finding, Rule};

use super::{Machine, at, pairs};
use crate::foreign::Foreign;
use crate::graph::{Call, CallKind, Node, NodeId};
use crate::known::Known;
use crate::{Error, rules};

impl Machine<'_, '_> {
    /// Takes the values from place `first` of the stack on, and gives the object below it.
    fn target(&mut self, first: usize) -> Result<Option<NodeId>, Error> {
        if first > self.stack.len() || first <= self.fence {
            return Err(self.underflow());
        }
        let items = self.stack.len().saturating_sub(first);
        if items == 0 {
            return Ok(None);
        }
        self.hold(items.saturating_mul(size_of::<NodeId>()))?;
        Ok(first.checked_sub(1).and_then(|place| self.stack.get(place)).copied())
    }

    pub(super) fn append(&mut self, offset: u64, first: usize) -> Result<(), Error> {
        let Some(target) = self.target(first)? else {
            return Ok(());
        };
        let items = self.stack.get(first..).unwrap_or_default();
        match self.program.graph.nodes.get_mut(place(target)) {
            Some(Node::List(list)) => list.extend_from_slice(items),
            _ => {
                let items = self.stack.split_off(first);
                self.call_target(offset, target, Known::is_list, "appended to")?
                    .items
                    .extend(items);
                return Ok(());
            }
        }
        self.stack.truncate(first);
        Ok(())
    }

    pub(super) fn set_items(&mut self, offset: u64, first: usize) -> Result<(), Error> {
        let Some(target) = self.target(first)? else {
            return Ok(());
        };
        let items = self.stack.get(first..).unwrap_or_default();
        if let (Some(Node::Dict(dict)), (pairs, [])) =
            (self.program.graph.nodes.get_mut(place(target)), items.as_chunks::<2>())
        {
            dict.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            self.stack.truncate(first);
            return Ok(());
        }
        let pairs = pairs(&self.stack.split_off(first))?;
        self.call_target(offset, target, Known::is_mapping, "set in")?.pairs.extend(pairs);
        Ok(())
    }

    pub(super) fn add_items(&mut self, offset: u64, first: usize) -> Result<(), Error> {
        let Some(target) = self.target(first)? else {
            return Ok(());
        };
        let items = self.stack.split_off(first);
        if let Some(Node::Set(set)) = self.program.graph.nodes.get_mut(place(target)) {
            set.extend(items);
            return Ok(());
        }
        self.call_target(offset, target, Known::is_set, "added to")?.items.extend(items);
        Ok(())
    }

    pub(super) fn build(
        &mut self,
        offset: u64,
        target: NodeId,
        state: NodeId,
    ) -> Result<(), Error> {
        match self.program.graph.nodes.get_mut(place(target)) {
            Some(Node::Call(call)) => {
                call.states.push(state);
                Ok(())
            }
            other => {
                let is_global = matches!(other, Some(Node::Global { known: None, .. }));
                let what = other.map_or("nothing", |node| noun(node));
                // Attributes of a module are the functions that everything else calls.
                let state = self.program.graph.node(state);
                if is_global && matches!(state, Node::Dict(_) | Node::Tuple(_) | Node::Call(_)) {
                    let kind = CallKind::Build;
                    self.program.foreign.push(Foreign { kind, callee: target, offset });
                }
                let message = format!("BUILD sets the state of {what}");
                Err(self.wrong(offset, &rules::BUILD_TARGET, "pickle-build-target", message))
            }
        }
    }

    /// The call whose result items go to, if they may.
    fn call_target(
        &mut self,
        offset: u64,
        target: NodeId,
        takes: fn(Known) -> bool,
        how: &str,
    ) -> Result<&mut Box<Call>, Error> {
        let graph = &self.program.graph;
        let known = match graph.node(target) {
            Node::Call(call) => graph.known(call.callee).filter(|known| known.is_callable()),
            node => {
                let message = format!("{} is {how}", noun(node));
                return Err(self.wrong(offset, &rules::ITEM_TARGET, "pickle-item-target", message));
            }
        };
        match known {
            Some(known) if !takes(known) => {
                let message = format!("the result of {} is {how}", self.callee(target));
                return Err(self.wrong(offset, &rules::ITEM_TARGET, "pickle-item-target", message));
            }
            Some(_) => {}
            None => {
                let message = format!("the result of {} is {how}", self.callee(target));
                self.program.findings.report(&rules::FOREIGN_ITEMS, || {
                    Finding::new(&rules::FOREIGN_ITEMS, message).at(at(offset))
                });
            }
        }
        match self.program.graph.nodes.get_mut(place(target)) {
            Some(Node::Call(call)) => Ok(call),
            _ => Err(Error::new("pickle-item-target", "there is no object")),
        }
    }

    fn callee(&self, call: NodeId) -> alloc::string::String {
        match self.program.callee(call) {
            Some((module, name)) => super::full_name(module, name),
            None => "a call".into(),
        }
    }

    fn wrong(
        &mut self,
        offset: u64,
        rule: &'static Rule,
        code: &'static str,
        message: alloc::string::String,
    ) -> Error {
        if !self.failed {
            self.program.findings.push(Finding::new(rule, message.as_str()).at(at(offset)));
        }
        Error::new(code, message)
    }
}

fn place(id: NodeId) -> usize {
    usize::try_from(id.0).unwrap_or(usize::MAX)
}

fn noun(node: &Node<'_>) -> &'static str {
    match node {
        Node::None => "None",
        Node::Bool(_) => "a truth value",
        Node::Int(_) | Node::Long(_) => "an integer",
        Node::Float(_) => "a float",
        Node::Text(_) => "text",
        Node::Bytes(_) => "bytes",
        Node::ByteArray(_) => "a bytearray",
        Node::Tuple(_) => "a tuple",
        Node::List(_) => "a list",
        Node::Dict(_) => "a dictionary",
        Node::Set(_) => "a set",
        Node::FrozenSet(_) => "a frozen set",
        Node::Global { .. } => "an imported name",
        Node::Call(_) => "the result of a call",
        Node::Persistent(_) => "a persistent object",
    }
}
