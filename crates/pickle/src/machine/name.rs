//! Names and calls: recorded, and that is all.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use weigh_format::{Finding, Severity};

use super::{GlobalUse, Machine, Program, at, full_name};
use crate::graph::{Call, CallKind, Node, NodeId};
use crate::opcode::Opcode;
use crate::{Error, gadget, known, python2, rules};

impl<'a> Machine<'a, '_> {
    pub(super) fn global(
        &mut self,
        offset: u64,
        opcode: Opcode,
        module: &'a str,
        name: &'a str,
    ) -> Result<(), Error> {
        let (module, name) =
            if self.protocol < 3 { python2::renamed(module, name) } else { (module, name) };
        let row = known::find(module, name);
        let module = self.add(Node::Text(Cow::Borrowed(module.as_bytes())))?;
        let name = self.add(Node::Text(Cow::Borrowed(name.as_bytes())))?;
        self.name(offset, opcode, Node::Global { module, name, known: row })
    }

    pub(super) fn stack_global(&mut self, offset: u64) -> Result<(), Error> {
        let mut name = self.pop()?;
        let mut module = self.pop()?;
        for id in [module, name] {
            let is_text = match self.program.graph.node(id) {
                Node::Text(text) => core::str::from_utf8(text).is_ok(),
                Node::Bytes(bytes) => bytes.is_ascii() && self.strings.binary_search(&id).is_ok(),
                _ => false,
            };
            if !is_text {
                return Err(Error::new(
                    "pickle-global",
                    "the module and the name of STACK_GLOBAL are not both text",
                ));
            }
        }
        let graph = &self.program.graph;
        let (old_module, old_name) = (graph.text(module), graph.text(name));
        let (old_module, old_name) = (old_module.unwrap_or_default(), old_name.unwrap_or_default());
        let mut row = known::find(old_module, old_name);
        if self.protocol < 3 {
            let (new_module, new_name) = python2::renamed(old_module, old_name);
            if (new_module, new_name) != (old_module, old_name) {
                row = known::find(new_module, new_name);
                // What is new is a short text of the table.
                let changed = [
                    (new_module != old_module).then(|| Vec::from(new_module)),
                    (new_name != old_name).then(|| Vec::from(new_name)),
                ];
                for (id, text) in [&mut module, &mut name].into_iter().zip(changed) {
                    if let Some(text) = text {
                        *id = self.add(Node::Text(Cow::Owned(text)))?;
                    }
                }
            }
        }
        self.name(offset, Opcode::StackGlobal, Node::Global { module, name, known: row })
    }

    fn name(&mut self, offset: u64, opcode: Opcode, node: Node<'a>) -> Result<(), Error> {
        let id = self.add(node)?;
        self.program.globals.push(GlobalUse { node: id, offset, opcode });
        if self.program.graph.known(id).is_none() {
            self.unknown_global(offset, id);
        }
        self.push_id(id)
    }

    fn unknown_global(&mut self, offset: u64, id: NodeId) {
        let Program { graph, findings, .. } = &mut self.program;
        let (module, name) = graph.global(id).unwrap_or_default();
        findings.report(&rules::UNKNOWN_GLOBAL, || {
            let is_gadget = gadget::is_gadget(module, name);
            let full = full_name(module, name);
            let why = if is_gadget { "is known to run code" } else { "is not in the table" };
            let message = format!("{full} would be imported, which {why}");
            Finding::new(&rules::UNKNOWN_GLOBAL, message)
                .severity(if is_gadget { Severity::Error } else { Severity::Deviation })
                .at(at(offset))
                .with("global", full)
        });
        if name.contains('.') {
            findings.report(&rules::DOTTED_NAME, || {
                let full = full_name(module, name);
                let message = format!("{full} walks from attribute to attribute");
                Finding::new(&rules::DOTTED_NAME, message).at(at(offset)).with("global", full)
            });
        }
    }

    pub(super) fn call(
        &mut self,
        offset: u64,
        kind: CallKind,
        callee: NodeId,
        args: NodeId,
        keywords: Option<NodeId>,
    ) -> Result<(), Error> {
        let graph = &self.program.graph;
        if graph.known(callee).is_none() {
            self.foreign = self.foreign.saturating_add(1);
            if self.foreign > self.limits.foreign {
                return Err(Self::over("limit-calls", "calls", self.limits.foreign));
            }
        }
        let taken = graph.tuple(args).last().map_or(0, |last| match graph.node(*last) {
            Node::List(items) => items.len(),
            Node::Dict(pairs) => pairs.len(),
            _ => 0,
        });
        let call = Call {
            kind,
            callee,
            args,
            keywords,
            states: Vec::new(),
            items: Vec::new(),
            pairs: Vec::new(),
            taken: u32::try_from(taken).unwrap_or(u32::MAX),
            offset,
        };
        let id = self.add(Node::Call(Box::new(call)))?;
        self.program.calls.push(id);
        let graph = &self.program.graph;
        // A tuple, or what a call made, which may be one: `torch.Size` is.
        if !matches!(graph.node(args), Node::Tuple(_) | Node::Call(_)) {
            return Err(Error::new("pickle-arguments", "the arguments of a call are no tuple"));
        }
        if let Some(keywords) = keywords
            && !matches!(graph.node(keywords), Node::Dict(_) | Node::Call(_))
        {
            return Err(Error::new("pickle-arguments", "the keyword arguments are no dictionary"));
        }
        self.push_id(id)
    }
}
