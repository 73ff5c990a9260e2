//! What each opcode does to the stack, the memo and the graph.

use alloc::format;
use alloc::vec::Vec;

use weigh_format::Finding;

use super::{Machine, at, pairs};
use crate::decode::{Argument, Operation};
use crate::graph::{CallKind, Node};
use crate::opcode::Opcode;
use crate::{Error, rules};

impl<'a> Machine<'a, '_> {
    #[inline]
    #[expect(clippy::too_many_lines, reason = "an arm for each opcode")]
    pub(super) fn step(&mut self, operation: Operation<'a>) -> Result<(), Error> {
        let Operation { offset, opcode, argument } = operation;
        match opcode {
            Opcode::Mark => self.mark(),
            Opcode::Stop => self.stop(offset),
            Opcode::Pop => self.pop_or_unmark(),
            Opcode::PopMark => {
                let mark = self.marker()?;
                self.stack.truncate(mark);
                Ok(())
            }
            Opcode::Dup => {
                let top = self.top()?;
                self.reuse(top)
            }
            Opcode::Proto => {
                self.proto(offset, &argument);
                Ok(())
            }
            Opcode::Frame => Ok(()),
            Opcode::None => self.plain(0, Node::None),
            Opcode::NewTrue => self.plain(1, Node::Bool(true)),
            Opcode::NewFalse => self.plain(2, Node::Bool(false)),
            Opcode::EmptyTuple => self.plain(3, Node::Tuple(Vec::new())),
            Opcode::Int
            | Opcode::Long
            | Opcode::BinInt
            | Opcode::BinInt1
            | Opcode::BinInt2
            | Opcode::Long1
            | Opcode::Long4
            | Opcode::Float
            | Opcode::BinFloat => self.number(argument),
            Opcode::String
            | Opcode::BinString
            | Opcode::ShortBinString
            | Opcode::Unicode
            | Opcode::BinUnicode
            | Opcode::ShortBinUnicode
            | Opcode::BinUnicode8
            | Opcode::BinBytes
            | Opcode::ShortBinBytes
            | Opcode::BinBytes8
            | Opcode::ByteArray8 => self.literal(offset, opcode, argument),
            Opcode::EmptyList => self.push(Node::List(Vec::new())),
            Opcode::EmptyDict => self.push(Node::Dict(Vec::new())),
            Opcode::EmptySet => self.push(Node::Set(Vec::new())),
            Opcode::Tuple => {
                let items = self.pop_to_mark()?;
                if items.is_empty() {
                    return self.plain(3, Node::Tuple(Vec::new()));
                }
                self.push(Node::Tuple(items))
            }
            Opcode::Tuple1 => self.tuple(1),
            Opcode::Tuple2 => self.tuple(2),
            Opcode::Tuple3 => self.tuple(3),
            Opcode::List => {
                let items = self.pop_to_mark()?;
                self.push(Node::List(items))
            }
            Opcode::FrozenSet => {
                let items = self.pop_to_mark()?;
                self.push(Node::FrozenSet(items))
            }
            Opcode::Dict => {
                let items = self.pop_to_mark()?;
                let pairs = pairs(&items)?;
                self.push(Node::Dict(pairs))
            }
            Opcode::Append => {
                let first = self.stack.len().saturating_sub(1);
                self.append(offset, first)
            }
            Opcode::Appends => {
                let first = self.marker()?;
                self.append(offset, first)
            }
            Opcode::SetItem => {
                let Some(first) = self.stack.len().checked_sub(2) else {
                    return Err(self.underflow());
                };
                self.set_items(offset, first)
            }
            Opcode::SetItems => {
                let first = self.marker()?;
                self.set_items(offset, first)
            }
            Opcode::AddItems => {
                let first = self.marker()?;
                self.add_items(offset, first)
            }
            Opcode::Put | Opcode::BinPut | Opcode::LongBinPut => {
                let Argument::Number(number) = argument else {
                    return Ok(());
                };
                self.put = true;
                let top = self.top()?;
                self.memoize(number, top)
            }
            Opcode::Memoize => {
                self.memoized = true;
                let top = self.top()?;
                self.memoize(self.memo.len(), top)
            }
            Opcode::Get | Opcode::BinGet | Opcode::LongBinGet => {
                let Argument::Number(number) = argument else {
                    return Ok(());
                };
                let Some(node) = self.memo.get(number) else {
                    let message = format!("memo entry {number} was never set");
                    return Err(Error::new("pickle-memo", message));
                };
                self.reuse(node)
            }
            Opcode::Global => {
                let Argument::Names(module, name) = argument else {
                    return Ok(());
                };
                self.global(offset, opcode, module, name)
            }
            Opcode::StackGlobal => self.stack_global(offset),
            Opcode::Inst => {
                let Argument::Names(module, name) = argument else {
                    return Ok(());
                };
                let mark = self.marker()?;
                let args = self.pop_tuple(mark)?;
                self.global(offset, opcode, module, name)?;
                let callee = self.pop()?;
                self.call(offset, CallKind::Inst, callee, args, None)
            }
            Opcode::Obj => {
                let mark = self.marker()?;
                if mark >= self.stack.len() {
                    return Err(self.underflow());
                }
                let args = self.pop_tuple(mark.saturating_add(1))?;
                let callee = self.pop()?;
                self.call(offset, CallKind::Obj, callee, args, None)
            }
            Opcode::Reduce => {
                let args = self.pop()?;
                let callee = self.pop()?;
                self.call(offset, CallKind::Reduce, callee, args, None)
            }
            Opcode::NewObj => {
                let args = self.pop()?;
                let callee = self.pop()?;
                self.call(offset, CallKind::NewObj, callee, args, None)
            }
            Opcode::NewObjEx => {
                let keywords = self.pop()?;
                let args = self.pop()?;
                let callee = self.pop()?;
                self.call(offset, CallKind::NewObjEx, callee, args, Some(keywords))
            }
            Opcode::Build => {
                let state = self.pop()?;
                let target = self.top()?;
                self.build(offset, target, state)
            }
            Opcode::BinPersId => {
                let id = self.pop()?;
                self.push(Node::Persistent(id))
            }
            Opcode::PersId => {
                let message = "a persistent id is written as text";
                let finding = Finding::new(&rules::PERSISTENT_ID_TEXT, message).at(at(offset));
                self.program.findings.push(finding);
                let Argument::Bytes(id) = argument else {
                    return Ok(());
                };
                let id = self.add(Node::Bytes(id))?;
                self.push(Node::Persistent(id))?;
                Err(Error::new("pickle-persistent-id", message))
            }
            Opcode::Ext1 | Opcode::Ext2 | Opcode::Ext4 => {
                let code = if let Argument::Number(code) = argument { code } else { 0 };
                let message = format!("extension {code} of the registry is used");
                let finding = Finding::new(&rules::EXTENSION_REGISTRY, message.as_str())
                    .at(at(offset))
                    .with("extension", code);
                self.program.findings.push(finding);
                Err(Error::new("pickle-extension", message))
            }
            Opcode::NextBuffer | Opcode::ReadOnlyBuffer => {
                Err(Error::new("pickle-buffer", "a file has no buffers beside it"))
            }
        }
    }
}
