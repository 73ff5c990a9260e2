//! The stack with its marks, and the values that are pushed.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use weigh_format::Finding;

use super::{Machine, at};
use crate::decode::{Argument, wide};
use crate::graph::{Call, Node, NodeId};
use crate::nested::{self, Literal};
use crate::opcode::Opcode;
use crate::{Error, rules};

impl<'a> Machine<'a, '_> {
    #[inline]
    pub(super) fn add(&mut self, node: Node<'a>) -> Result<NodeId, Error> {
        let count = u32::try_from(self.program.graph.nodes.len()).unwrap_or(u32::MAX);
        // The last number is that of no node.
        if count >= self.limits.nodes || count == u32::MAX {
            return Err(Self::over("limit-nodes", "nodes", self.limits.nodes));
        }
        let held = match &node {
            Node::Call(_) => size_of::<Call>(),
            Node::Tuple(items) | Node::List(items) | Node::FrozenSet(items) => {
                items.len().saturating_mul(size_of::<NodeId>())
            }
            Node::Dict(pairs) => pairs.len().saturating_mul(size_of::<(NodeId, NodeId)>()),
            Node::Text(Cow::Owned(bytes)) | Node::Bytes(Cow::Owned(bytes)) => bytes.len(),
            _ => 0,
        };
        self.hold(held.saturating_add(size_of::<Node<'_>>()))?;
        self.program.graph.nodes.push(node);
        Ok(NodeId(count))
    }

    /// Counts bytes of the graph.
    #[inline]
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        self.held = self.held.saturating_add(wide(bytes));
        if self.held > self.limits.graph_bytes {
            let message =
                format!("what the pickle makes takes more than {} bytes", self.limits.graph_bytes);
            return Err(Error::new("limit-graph", message));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn push(&mut self, node: Node<'a>) -> Result<(), Error> {
        let id = self.add(node)?;
        self.push_id(id)
    }

    #[inline]
    pub(super) fn push_id(&mut self, id: NodeId) -> Result<(), Error> {
        if wide(self.stack.len()) >= u64::from(self.limits.stack) {
            return Err(Self::over("limit-stack", "values on the stack", self.limits.stack));
        }
        self.stack.push(id);
        Ok(())
    }

    /// Pushes a node that has been pushed before.
    #[inline]
    pub(super) fn reuse(&mut self, id: NodeId) -> Result<(), Error> {
        if !self.shared {
            self.shared = match self.program.graph.node(id) {
                Node::Tuple(items) => !items.is_empty(),
                Node::List(_)
                | Node::Dict(_)
                | Node::Set(_)
                | Node::FrozenSet(_)
                | Node::Call(_)
                | Node::Persistent(_) => true,
                _ => false,
            };
        }
        self.push_id(id)
    }

    /// Pushes a value that is the same wherever it is.
    #[inline]
    pub(super) fn plain(&mut self, place: usize, node: Node<'a>) -> Result<(), Error> {
        if let Some(Some(id)) = self.plain.get(place) {
            return self.push_id(*id);
        }
        let id = self.add(node)?;
        if let Some(plain) = self.plain.get_mut(place) {
            *plain = Some(id);
        }
        self.push_id(id)
    }

    #[inline]
    pub(super) fn number(&mut self, argument: Argument<'a>) -> Result<(), Error> {
        match argument {
            Argument::Int(number) => {
                let Ok(small @ 0..256) = usize::try_from(number) else {
                    return self.push(Node::Int(number));
                };
                if self.small.is_empty() {
                    self.small.resize(256, None);
                }
                if let Some(Some(id)) = self.small.get(small) {
                    return self.push_id(*id);
                }
                let id = self.add(Node::Int(number))?;
                if let Some(place) = self.small.get_mut(small) {
                    *place = Some(id);
                }
                self.push_id(id)
            }
            Argument::Bool(true) => self.plain(1, Node::Bool(true)),
            Argument::Bool(false) => self.plain(2, Node::Bool(false)),
            Argument::Long(bytes) => self.push(Node::Long(bytes)),
            Argument::Float(number) => self.push(Node::Float(number)),
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn literal(
        &mut self,
        offset: u64,
        opcode: Opcode,
        argument: Argument<'a>,
    ) -> Result<(), Error> {
        let (bytes, is_unicode) = match argument {
            Argument::Text(bytes) => (bytes, true),
            Argument::Bytes(bytes) => (bytes, false),
            _ => return Ok(()),
        };
        let candidate = nested::may_be_pickle(&bytes);
        if is_unicode && !bytes.is_ascii() && core::str::from_utf8(&bytes).is_err() {
            let finding = Finding::new(&rules::TEXT_SURROGATES, "text has surrogates");
            self.program.findings.report(&rules::TEXT_SURROGATES, || finding.at(at(offset)));
        }
        let id = self.add(match opcode {
            _ if is_unicode => Node::Text(bytes),
            Opcode::ByteArray8 => Node::ByteArray(bytes),
            _ => Node::Bytes(bytes),
        })?;
        if matches!(opcode, Opcode::String | Opcode::BinString | Opcode::ShortBinString) {
            self.strings.push(id);
        }
        if candidate {
            self.literals.push(Literal { node: id, offset });
        }
        self.push_id(id)
    }

    pub(super) fn mark(&mut self) -> Result<(), Error> {
        if wide(self.marks.len()) >= u64::from(self.limits.stack) {
            return Err(Self::over("limit-stack", "marks", self.limits.stack));
        }
        self.marks.push(self.stack.len());
        self.fence = self.stack.len();
        Ok(())
    }

    #[inline]
    pub(super) fn marker(&mut self) -> Result<usize, Error> {
        let Some(mark) = self.marks.pop() else {
            return Err(Error::new("pickle-mark", "there is no mark"));
        };
        self.fence = self.marks.last().copied().unwrap_or(0);
        Ok(mark)
    }

    #[inline]
    pub(super) fn top(&self) -> Result<NodeId, Error> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.fence => Ok(*top),
            _ => Err(self.underflow()),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Result<NodeId, Error> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    #[inline]
    pub(super) fn pop_to_mark(&mut self) -> Result<Vec<NodeId>, Error> {
        let mark = self.marker()?;
        Ok(self.pop_from(mark))
    }

    #[inline]
    pub(super) fn pop_from(&mut self, first: usize) -> Vec<NodeId> {
        let items = self.stack.get(first..).map(Vec::from).unwrap_or_default();
        self.stack.truncate(first);
        items
    }

    pub(super) fn pop_tuple(&mut self, first: usize) -> Result<NodeId, Error> {
        let items = self.pop_from(first);
        self.add(Node::Tuple(items))
    }

    #[inline]
    pub(super) fn tuple(&mut self, len: usize) -> Result<(), Error> {
        match self.stack.len().checked_sub(len) {
            Some(first) if first >= self.fence => {
                let items = self.pop_from(first);
                self.push(Node::Tuple(items))
            }
            _ => Err(self.underflow()),
        }
    }

    pub(super) fn pop_or_unmark(&mut self) -> Result<(), Error> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marker()?;
            return Ok(());
        }
        self.pop()?;
        Ok(())
    }

    pub(super) fn stop(&mut self, offset: u64) -> Result<(), Error> {
        let root = self.pop()?;
        self.program.root = Some(root);
        let left = self.stack.len();
        if left > 0 || !self.marks.is_empty() {
            let message =
                format!("{left} values and {} marks are left on the stack", self.marks.len());
            let finding = Finding::new(&rules::STACK_NOT_EMPTY, message)
                .at(at(offset))
                .with("values", wide(left));
            self.program.findings.push(finding);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn underflow(&self) -> Error {
        let message = if self.marks.is_empty() {
            "the stack is empty"
        } else {
            "there is a mark where a value should be"
        };
        Error::new("pickle-stack", message)
    }

    #[cold]
    pub(super) fn over(code: &'static str, what: &str, limit: u32) -> Error {
        Error::new(code, format!("the pickle has more {what} than the limit of {limit}"))
    }
}
