//! The machine that runs a pickle without doing anything: opcodes in, a [`Graph`] out.
//!
//! It keeps the stack, the marks and the memo exactly as `CPython`'s C unpickler does, and has no way to import or to
//! call: a name becomes a node that holds the name, a call becomes a node that holds what would be called with what.
//! What such a call means is decided elsewhere, by a fixed table ([`known`](crate::known)).
//!
//! # Untrusted input
//!
//! Every byte may be an attacker's. Nothing here recurses, the work is proportional to the bytes read, and so is the
//! memory, up to the [`Limits`]. A run that fails keeps what it saw: the globals, the calls and the findings.

mod memo;
mod target;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::text::shortened;
use weigh_format::{Finding, Findings, Severity};

use crate::decode::{Argument, Decoder, FrameFault, Operation, wide};
use crate::graph::{Call, CallKind, Graph, Node, NodeId};
use crate::known;
use crate::nested::{self, Literal, Nested};
use crate::opcode::Opcode;
use crate::verdict::Verdict;
use crate::{Error, Limits, expansion, foreign, gadget, python2, rules};

use memo::Memo;

/// What a pickle says.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Program<'a> {
    /// Everything it makes.
    pub graph: Graph<'a>,
    /// What it is a pickle of. There is none if reading failed before `STOP`.
    pub root: Option<NodeId>,
    /// The protocol that it claims, if it does: that of the first `PROTO`.
    pub protocol: Option<u8>,
    /// How many opcodes were run.
    pub opcodes: u64,
    /// Where it begins, in bytes.
    pub start: u64,
    /// Its bytes, up to and with `STOP`, or up to where reading failed.
    pub len: u64,
    /// Every name that unpickling would import, each time that the pickle has it.
    pub globals: Vec<GlobalUse>,
    /// Every call that unpickling would make, in order, whether something uses the result or not.
    pub calls: Vec<NodeId>,
    /// Those of `calls` that are of nothing in the table, or for which the table has no meaning.
    pub foreign: Vec<NodeId>,
    /// Pickles in strings of this one, and in theirs.
    pub nested: Vec<Nested>,
    /// What was found on the way.
    pub findings: Findings,
    /// Why it could not be read to its end, or what readers disagree on so that it should not be. The first of these.
    pub error: Option<Error>,
}

/// A name that unpickling would import.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "where a name is")]
pub struct GlobalUse {
    /// The node: [`Graph::global`] has the module and the name, [`Graph::known`] its meaning.
    pub node: NodeId,
    /// The byte of the opcode.
    pub offset: u64,
    /// `GLOBAL`, `STACK_GLOBAL` or `INST`.
    pub opcode: Opcode,
}

impl Program<'_> {
    /// What unpickling it would come to. A foreign call that was seen counts more than an error after it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let nested = || self.nested.iter().map(|nested| nested.verdict);
        if !self.foreign.is_empty() || nested().any(|verdict| verdict == Verdict::Call) {
            return Verdict::Call;
        }
        if self.error.is_some() || self.root.is_none() {
            return Verdict::Error;
        }
        if self.findings.counts().iter().any(|(rule, _)| rules::is_ambiguous(rule.code)) {
            return Verdict::Ambiguous;
        }
        let unknown = self.globals.iter().any(|global| self.graph.known(global.node).is_none());
        nested()
            .fold(if unknown { Verdict::UnknownGlobal } else { Verdict::DataOnly }, Verdict::max)
    }

    /// The byte after it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// What a call is of: a module and a name, or `None` if it is of something that the pickle made.
    #[must_use]
    pub fn callee(&self, call: NodeId) -> Option<(&str, &str)> {
        self.graph.global(self.graph.call(call)?.callee)
    }
}

/// Runs the pickle that begins with the first of `bytes`. What follows `STOP` is not looked at.
#[must_use]
pub fn run<'a>(bytes: &'a [u8], limits: &Limits) -> Program<'a> {
    run_from(bytes, 0, limits)
}

/// Runs the pickle that begins at byte `start` of `bytes`, from which all offsets count.
#[must_use]
pub fn run_from<'a>(bytes: &'a [u8], start: u64, limits: &Limits) -> Program<'a> {
    let (mut program, literals) = run_alone(bytes, start, limits);
    nested::follow(&mut program, &literals, limits);
    foreign::settle(&mut program);
    program
}

/// The same, without looking for pickles in its strings: those that may be some are returned.
pub(crate) fn run_alone<'a>(
    bytes: &'a [u8],
    start: u64,
    limits: &Limits,
) -> (Program<'a>, Vec<Literal>) {
    let mut machine = Machine::new(bytes, start, limits);
    let mut error = machine.run().err();
    machine.close(&mut error, wide(bytes.len()));
    machine.program.error = error;
    (machine.program, machine.literals)
}

struct Machine<'a, 'l> {
    decoder: Decoder<'a>,
    limits: &'l Limits,
    program: Program<'a>,
    stack: Vec<NodeId>,
    /// Where the stack was at each `MARK`.
    marks: Vec<usize>,
    /// The last of `marks`: nothing is popped beyond it.
    fence: usize,
    memo: Memo,
    /// The protocol, by the last `PROTO`.
    protocol: u8,
    /// The protocol up to which opcodes are expected.
    ceiling: u8,
    put: bool,
    memoized: bool,
    /// Whether some container or call was taken from the memo, or duplicated.
    shared: bool,
    /// Strings of Python 2, in order.
    strings: Vec<NodeId>,
    /// Nodes of values that have no identity.
    plain: [Option<NodeId>; 4],
    small: Vec<Option<NodeId>>,
    literals: Vec<Literal>,
}

impl<'a, 'l> Machine<'a, 'l> {
    fn new(bytes: &'a [u8], start: u64, limits: &'l Limits) -> Self {
        let allowed = start.saturating_add(limits.pickle_bytes);
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX).min(bytes.len());
        Self {
            decoder: Decoder::starting_at(bytes.get(..allowed).unwrap_or_default(), start, limits),
            limits,
            program: Program { start, ..Program::default() },
            stack: Vec::new(),
            marks: Vec::new(),
            fence: 0,
            memo: Memo::default(),
            protocol: 0,
            ceiling: 1,
            put: false,
            memoized: false,
            shared: false,
            strings: Vec::new(),
            plain: [None; 4],
            small: Vec::new(),
            literals: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Error> {
        loop {
            if self.program.opcodes >= self.limits.opcodes {
                let message = format!("the pickle has more opcodes than {}", self.limits.opcodes);
                return Err(Error::new("limit-opcodes", message).at(self.decoder.position()));
            }
            let operation = self.decoder.next_operation()?;
            self.program.opcodes = self.program.opcodes.wrapping_add(1);
            let (offset, opcode) = (operation.offset, operation.opcode);
            if opcode.protocol() > self.ceiling && opcode != Opcode::Proto {
                self.above_protocol(offset, opcode);
            }
            if let Err(error) = self.step(operation) {
                return Err(error.at(offset).opcode(opcode.name()));
            }
            if opcode == Opcode::Stop {
                return Ok(());
            }
        }
    }

    /// What is known only when the run is over, however it ended.
    fn close(&mut self, error: &mut Option<Error>, bytes: u64) {
        self.program.len = self.decoder.position().saturating_sub(self.program.start);
        let limit = self.limits.pickle_bytes;
        if bytes.saturating_sub(self.program.start) > limit
            && let Some(truncated) = error.take_if(|error| error.code == "pickle-truncated")
        {
            let message = format!("the pickle has more bytes than the limit of {limit}");
            let offset = truncated.offset.unwrap_or(0);
            *error = Some(Error::new("limit-pickle", message).at(offset));
        }
        if let Some((offset, fault)) = self.decoder.frame_fault() {
            let (rule, message) = match fault {
                FrameFault::Straddled => {
                    (&rules::FRAME_STRADDLED, "an opcode goes beyond the end of its frame")
                }
                FrameFault::Nested => (&rules::FRAME_NESTED, "a frame begins within a frame"),
            };
            self.program.findings.push(Finding::new(rule, message).at(at(offset)));
            // The C unpickler reads on, and so did the machine, to see what it would do. Others stop here.
            *error = Some(Error::new("pickle-frame", message).at(offset));
        }
        if self.program.root.is_some() {
            let left = self.decoder.left_of_frame();
            if left > 0 {
                let message = format!("{left} bytes of the last frame are behind STOP");
                let finding = Finding::new(&rules::FRAME_PAST_STOP, message);
                self.program.findings.push(finding.at(at(self.decoder.position())));
            }
        }
        if self.put && self.memoized {
            let finding = Finding::new(&rules::MEMO_MIXED, "both PUT and MEMOIZE are used");
            self.program.findings.push(finding);
        }
        if let (Some(root), true) = (self.program.root, self.shared) {
            expansion::check(&mut self.program, root, self.limits);
        }
    }

    #[inline]
    fn step(&mut self, operation: Operation<'a>) -> Result<(), Error> {
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
            Opcode::Global => self.global(offset, opcode, argument),
            Opcode::StackGlobal => self.stack_global(offset),
            Opcode::Inst => {
                let mark = self.marker()?;
                let args = self.pop_tuple(mark)?;
                self.global(offset, opcode, argument)?;
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

    #[inline]
    fn add(&mut self, node: Node<'a>) -> Result<NodeId, Error> {
        let count = u32::try_from(self.program.graph.nodes.len()).unwrap_or(u32::MAX);
        // The last number is that of no node.
        if count >= self.limits.nodes || count == u32::MAX {
            return Err(self.over("limit-nodes", "nodes", self.limits.nodes));
        }
        self.program.graph.nodes.push(node);
        Ok(NodeId(count))
    }

    #[inline]
    fn push(&mut self, node: Node<'a>) -> Result<(), Error> {
        let id = self.add(node)?;
        self.push_id(id)
    }

    #[inline]
    fn push_id(&mut self, id: NodeId) -> Result<(), Error> {
        if wide(self.stack.len()) >= u64::from(self.limits.stack) {
            return Err(self.over("limit-stack", "values on the stack", self.limits.stack));
        }
        self.stack.push(id);
        Ok(())
    }

    /// Pushes a node that has been pushed before.
    #[inline]
    fn reuse(&mut self, id: NodeId) -> Result<(), Error> {
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
    fn plain(&mut self, place: usize, node: Node<'a>) -> Result<(), Error> {
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
    fn number(&mut self, argument: Argument<'a>) -> Result<(), Error> {
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
    fn literal(
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

    fn mark(&mut self) -> Result<(), Error> {
        if wide(self.marks.len()) >= u64::from(self.limits.stack) {
            return Err(self.over("limit-stack", "marks", self.limits.stack));
        }
        self.marks.push(self.stack.len());
        self.fence = self.stack.len();
        Ok(())
    }

    #[inline]
    fn marker(&mut self) -> Result<usize, Error> {
        let Some(mark) = self.marks.pop() else {
            return Err(Error::new("pickle-mark", "there is no mark"));
        };
        self.fence = self.marks.last().copied().unwrap_or(0);
        Ok(mark)
    }

    #[inline]
    fn top(&self) -> Result<NodeId, Error> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.fence => Ok(*top),
            _ => Err(self.underflow()),
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<NodeId, Error> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    #[inline]
    fn pop_to_mark(&mut self) -> Result<Vec<NodeId>, Error> {
        let mark = self.marker()?;
        Ok(self.pop_from(mark))
    }

    #[inline]
    fn pop_from(&mut self, first: usize) -> Vec<NodeId> {
        let items = self.stack.get(first..).map(Vec::from).unwrap_or_default();
        self.stack.truncate(first);
        items
    }

    fn pop_tuple(&mut self, first: usize) -> Result<NodeId, Error> {
        let items = self.pop_from(first);
        self.add(Node::Tuple(items))
    }

    #[inline]
    fn tuple(&mut self, len: usize) -> Result<(), Error> {
        match self.stack.len().checked_sub(len) {
            Some(first) if first >= self.fence => {
                let items = self.pop_from(first);
                self.push(Node::Tuple(items))
            }
            _ => Err(self.underflow()),
        }
    }

    fn pop_or_unmark(&mut self) -> Result<(), Error> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marker()?;
            return Ok(());
        }
        self.pop()?;
        Ok(())
    }

    fn stop(&mut self, offset: u64) -> Result<(), Error> {
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

    fn proto(&mut self, offset: u64, argument: &Argument<'_>) {
        let Argument::Number(protocol) = argument else {
            return;
        };
        let protocol = u8::try_from(*protocol).unwrap_or(0);
        self.protocol = protocol;
        self.ceiling = self.ceiling.max(protocol);
        self.program.protocol.get_or_insert(protocol);
        if offset != self.program.start {
            self.program.findings.report(&rules::PROTO_NOT_FIRST, || {
                let message = format!("PROTO {protocol} is not the first opcode");
                Finding::new(&rules::PROTO_NOT_FIRST, message).at(at(offset))
            });
        }
    }

    #[cold]
    fn above_protocol(&mut self, offset: u64, opcode: Opcode) {
        let message = match self.program.protocol {
            Some(claimed) => format!(
                "{} is of protocol {}, and the pickle claims {claimed}",
                opcode.name(),
                opcode.protocol()
            ),
            None => format!(
                "{} is of protocol {}, and the pickle claims none",
                opcode.name(),
                opcode.protocol()
            ),
        };
        self.program.findings.push(Finding::new(&rules::ABOVE_PROTOCOL, message).at(at(offset)));
        // Once is enough.
        self.ceiling = u8::MAX;
    }

    fn memoize(&mut self, number: u64, node: NodeId) -> Result<(), Error> {
        if self.memo.len() >= u64::from(self.limits.memo) {
            return Err(self.over("limit-memo", "entries of the memo", self.limits.memo));
        }
        self.memo.put(number, node);
        Ok(())
    }

    fn global(&mut self, offset: u64, opcode: Opcode, argument: Argument<'a>) -> Result<(), Error> {
        let Argument::Names(module, name) = argument else {
            return Ok(());
        };
        let (module, name) =
            if self.protocol < 3 { python2::renamed(module, name) } else { (module, name) };
        let row = known::find(module, name);
        let module = self.add(Node::Text(Cow::Borrowed(module.as_bytes())))?;
        let name = self.add(Node::Text(Cow::Borrowed(name.as_bytes())))?;
        self.name(offset, opcode, Node::Global { module, name, known: row })
    }

    fn stack_global(&mut self, offset: u64) -> Result<(), Error> {
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
            let message = match is_gadget {
                true => format!("{full} would be imported, which is known to run code"),
                false => format!("{full} would be imported, which is not in the table"),
            };
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

    fn call(
        &mut self,
        offset: u64,
        kind: CallKind,
        callee: NodeId,
        args: NodeId,
        keywords: Option<NodeId>,
    ) -> Result<(), Error> {
        let call = Call {
            kind,
            callee,
            args,
            keywords,
            states: Vec::new(),
            items: Vec::new(),
            pairs: Vec::new(),
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

    #[cold]
    fn underflow(&self) -> Error {
        match self.marks.is_empty() {
            true => Error::new("pickle-stack", "the stack is empty"),
            false => Error::new("pickle-stack", "there is a mark where a value should be"),
        }
    }

    #[cold]
    fn over(&self, code: &'static str, what: &str, limit: u32) -> Error {
        Error::new(code, format!("the pickle has more {what} than the limit of {limit}"))
    }
}

/// Items as pairs of a key and a value.
fn pairs(items: &[NodeId]) -> Result<Vec<(NodeId, NodeId)>, Error> {
    let (pairs, []) = items.as_chunks::<2>() else {
        return Err(Error::new("pickle-items", "there is a key without a value"));
    };
    Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
}

/// The span of one byte.
pub(crate) fn at(offset: u64) -> core::ops::Range<u64> {
    offset..offset.saturating_add(1)
}

/// A module and a name as one, cut if they are long.
pub(crate) fn full_name(module: &str, name: &str) -> String {
    format!("{}.{}", shortened(module), shortened(name))
}
