//! The machine that runs a pickle without doing anything: opcodes in, a [`Graph`] out.
//!
//! It keeps the stack, the marks and the memo exactly as `CPython`'s C unpickler does, and has no way to import or to
//! call: a name becomes a node that holds the name, a call becomes a node that holds what would be called with what.
//! What such a call means is decided elsewhere, by a fixed table ([`known`](crate::known)).
//!
//! # Untrusted input
//!
//! Every byte may be an attacker's. Nothing here recurses, the work is proportional to the bytes read, and so is the
//! memory, up to the [`Limits`]. A run that fails keeps what it saw: the globals, the calls and the findings; and it
//! goes on as long as there are opcodes, to see what a reader would do that does not fail there.

pub(crate) mod memo;
mod name;
mod stack;
mod step;
mod target;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::text::shortened;
use weigh_format::{Finding, Findings};

use crate::decode::{Argument, Decoder, FrameFault, wide};
use crate::foreign::Foreign;
use crate::graph::{Graph, NodeId};
use crate::nested::{self, Literal, Nested};
use crate::opcode::Opcode;
use crate::verdict::Verdict;
use crate::{Error, Limits, allocation, expansion, foreign, rules};

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
    /// Calls of nothing in the table, or for which the table has no meaning, and attributes that may be called.
    pub foreign: Vec<Foreign>,
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
        if self.findings.counts().iter().any(|(rule, _)| rule.is_ambiguous) {
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
    run_with(bytes, start, limits, Failure::GoesOn)
}

pub(crate) fn run_with<'a>(
    bytes: &'a [u8],
    start: u64,
    limits: &Limits,
    failure: Failure,
) -> Program<'a> {
    let (mut program, literals) = run_alone(bytes, start, limits, failure);
    nested::follow(&mut program, &literals, limits);
    foreign::settle(&mut program);
    program
}

/// What a failure does to a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Failure {
    /// It ends it, unless Python itself may go on.
    Ends,
    /// What fails is left out and the run goes on, as long as there are opcodes: another reader may not fail there,
    /// and then does what comes after.
    GoesOn,
}

/// The same, without looking for pickles in its strings: those that may be some are returned.
pub(crate) fn run_alone<'a>(
    bytes: &'a [u8],
    start: u64,
    limits: &Limits,
    failure: Failure,
) -> (Program<'a>, Vec<Literal>) {
    let mut machine = Machine::new(bytes, start, limits);
    let mut error = machine.run(failure).err();
    machine.close(&mut error, wide(bytes.len()));
    machine.program.error = error;
    (machine.program, machine.literals)
}

#[expect(clippy::struct_excessive_bools, reason = "what was seen on the way")]
struct Machine<'a, 'l> {
    decoder: Decoder<'a>,
    limits: &'l Limits,
    program: Program<'a>,
    stack: Vec<NodeId>,
    /// Where the stack was at each `MARK`.
    marks: Vec<usize>,
    /// The last of `marks`: nothing is popped beyond it.
    fence: usize,
    memo: Memo<NodeId>,
    /// The protocol, by the last `PROTO`.
    protocol: u8,
    /// The protocol up to which opcodes are expected.
    ceiling: u8,
    /// Whether something failed, and the run went on.
    failed: bool,
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
    /// Calls of what is not in the table.
    foreign: u32,
    /// Bytes of the graph, about.
    held: u64,
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
            memo: Memo::new(),
            protocol: 0,
            ceiling: 1,
            failed: false,
            put: false,
            memoized: false,
            shared: false,
            strings: Vec::new(),
            plain: [None; 4],
            small: Vec::new(),
            literals: Vec::new(),
            foreign: 0,
            held: 0,
        }
    }

    fn run(&mut self, failure: Failure) -> Result<(), Error> {
        let mut first = Ok(());
        loop {
            if self.program.opcodes >= self.limits.opcodes {
                let message = format!("the pickle has more opcodes than {}", self.limits.opcodes);
                return first
                    .and(Err(Error::new("limit-opcodes", message).at(self.decoder.position())));
            }
            let operation = match self.decoder.next_operation() {
                Ok(operation) => operation,
                Err(error) => return first.and(Err(error)),
            };
            self.program.opcodes = self.program.opcodes.wrapping_add(1);
            let (offset, opcode) = (operation.offset, operation.opcode);
            if opcode.protocol() > self.ceiling && opcode != Opcode::Proto {
                self.above_protocol(offset, opcode);
            }
            if let Err(error) = self.step(operation) {
                let ends = match failure {
                    Failure::Ends => !python_may_go_on(error.code),
                    Failure::GoesOn => error.code.starts_with("limit-"),
                };
                first = first.and(Err(error.at(offset).opcode(opcode.name())));
                self.failed = true;
                if ends {
                    return first;
                }
            }
            if opcode == Opcode::Stop {
                if self.failed {
                    self.program.root = None;
                }
                return first;
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
            if error.as_ref().is_none_or(|error| error.offset.is_none_or(|other| offset <= other)) {
                *error = Some(Error::new("pickle-frame", message).at(offset));
            }
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
        allocation::check(&mut self.program, self.limits);
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
            return Err(Self::over("limit-memo", "entries of the memo", self.limits.memo));
        }
        self.memo.put(number, node);
        Ok(())
    }
}

/// Whether there are programs in which Python does not fail: where items are set in a list, an imported module gets a
/// state, or whoever unpickles knows what an id stands for.
fn python_may_go_on(code: &str) -> bool {
    matches!(
        code,
        "pickle-item-target"
            | "pickle-build-target"
            | "pickle-extension"
            | "pickle-persistent-id"
            | "pickle-buffer"
    )
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
