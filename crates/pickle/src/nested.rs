//! Pickles in the strings of a pickle: as they are, or written in hexadecimal or base64.
//!
//! Whoever unpickles such a string runs it, so what it names and calls counts as if the outer pickle did. A string is
//! taken for a pickle if it can be run to its `STOP` and names something, or if it can be run up to a foreign call and
//! everything that it names until then could be a name of Python's: that it breaks off later comes too late. Other
//! strings cost little more than a look.

mod spelling;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::{Finding, Severity};

use crate::decode::wide;
use crate::graph::{Graph, Node, NodeId};
use crate::machine::{Failure, GlobalUse, Program, at, full_name, run_alone};
use crate::verdict::Verdict;
use crate::{Limits, foreign, rules};

pub use spelling::Spelling;

/// Levels of pickles in pickles that are followed.
const DEPTH: u32 = 3;
/// Opcodes of all of them together.
const OPCODES: u64 = 4_000_000;
/// Bytes that are copied to look into them.
const COPIED: u64 = 64 << 20;
/// Pickles one after the other in one string.
const PICKLES: usize = 64;
/// Names and calls of one string that are listed.
const LISTED: usize = 100;
/// Bytes of the shortest pickle that names something, about.
const SHORTEST: usize = 8;

/// The number with which torch's stream format begins, in two's complement.
const TORCH_MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// A pickle, or several, in a string of a pickle.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Nested {
    /// The string of the outermost pickle that it is in.
    pub literal: NodeId,
    /// The byte of that string's opcode.
    pub offset: u64,
    /// 1 in the outermost pickle, 2 in a pickle in that.
    pub depth: u32,
    /// How it is written there.
    pub spelling: Spelling,
    /// What unpickling it would come to, but for pickles in its own strings: they are listed apart.
    pub verdict: Verdict,
    /// How many pickles there are one after the other.
    pub pickles: usize,
    /// Whether they are torch's stream format, as `torch.storage._load_from_bytes` wants it.
    pub is_torch: bool,
    /// The names outside the table: a module and a name; the first of them, if they are very many.
    pub globals: Vec<(String, String)>,
    /// What would be called outside the table, `None` for the result of a call; the first, if they are very many.
    pub calls: Vec<Option<(String, String)>>,
    /// How many calls there are.
    pub call_count: u64,
}

/// A string that may be a pickle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal {
    pub(crate) node: NodeId,
    pub(crate) offset: u64,
}

/// Whether it is worth trying to run a string.
#[inline]
pub(crate) fn may_be_pickle(bytes: &[u8]) -> bool {
    if bytes.len() < SHORTEST {
        return false;
    }
    // It names something, and has an end, or calls something before it breaks off.
    let names = |byte: &u8| matches!(byte, b'\n' | 0x82..=0x84 | 0x93);
    let does = |byte: &u8| matches!(byte, b'.' | b'R' | b'i' | b'o' | b'b' | 0x81 | 0x92);
    (bytes.iter().any(does) && bytes.iter().any(names)) || spelling::may_be_spelled(bytes)
}

/// Runs the pickles in these strings, and those in theirs.
pub(crate) fn follow(program: &mut Program<'_>, literals: &[Literal], limits: &Limits) {
    let mut followed = Follower { limits, opcodes: OPCODES, copied: COPIED, over: false };
    let mut found = Vec::new();
    for literal in literals {
        let (bytes, is_text) = contents(&program.graph, literal.node);
        let mut waiting: Vec<Waiting<'_>> =
            alloc::vec![Waiting { bytes: Cow::Borrowed(bytes), is_text, depth: 1 }];
        while let Some(next) = waiting.pop() {
            followed.look(literal, &next, &mut found, &mut waiting);
        }
        if followed.over {
            break;
        }
    }
    for nested in &found {
        report(program, nested);
    }
    program.nested = found;
    if followed.over {
        let message = "pickles in strings go on beyond what is followed";
        program.findings.push(Finding::new(&rules::NESTED_LIMIT, message));
    }
}

fn report(program: &mut Program<'_>, nested: &Nested) {
    program.findings.report(&rules::NESTED_PICKLE, || {
        let name = nested
            .calls
            .iter()
            .flatten()
            .chain(&nested.globals)
            .next()
            .map(|(module, name)| full_name(module, name));
        let pickle = match nested.spelling {
            Spelling::Plain => "a string is a pickle",
            Spelling::Latin1 => "a text is a pickle in Latin-1",
            Spelling::Hex => "a string is a pickle in hexadecimal",
            Spelling::Base64 => "a string is a pickle in base64",
        };
        let (severity, message) = match (nested.calls.is_empty(), &name) {
            (false, Some(name)) => (Severity::Error, format!("{pickle} that calls {name}")),
            (false, None) => (Severity::Error, format!("{pickle} that calls what it made")),
            (true, Some(name)) => (Severity::Deviation, format!("{pickle} that names {name}")),
            (true, None) => (Severity::Note, format!("{pickle} of data")),
        };
        let mut finding = Finding::new(&rules::NESTED_PICKLE, message)
            .severity(severity)
            .at(at(nested.offset))
            .with("depth", u64::from(nested.depth));
        if let Some(name) = name {
            finding = finding.with("name", name);
        }
        finding
    });
}

/// A string to be looked at.
struct Waiting<'b> {
    bytes: Cow<'b, [u8]>,
    is_text: bool,
    depth: u32,
}

/// What following may still cost.
struct Follower<'l> {
    limits: &'l Limits,
    opcodes: u64,
    copied: u64,
    over: bool,
}

impl Follower<'_> {
    fn look(
        &mut self,
        literal: &Literal,
        string: &Waiting<'_>,
        found: &mut Vec<Nested>,
        waiting: &mut Vec<Waiting<'_>>,
    ) {
        for spelling in Spelling::ALL {
            if self.over {
                return;
            }
            let Some(pickle) = self.unspelled(*spelling, string) else {
                continue;
            };
            let (nested, strings) = self.pickles(&pickle, literal, string.depth, *spelling);
            if string.depth > DEPTH && (nested.is_some() || !strings.is_empty()) {
                self.over = true;
                return;
            }
            found.extend(nested);
            waiting.extend(strings);
        }
    }

    /// The bytes that a string spells, if they may be a pickle.
    fn unspelled<'b>(
        &mut self,
        spelling: Spelling,
        string: &'b Waiting<'_>,
    ) -> Option<Cow<'b, [u8]>> {
        if spelling == Spelling::Plain {
            return Some(Cow::Borrowed(&string.bytes));
        }
        // The beginning alone mostly tells that it is none.
        let beginning = spelling.decode(&string.bytes, string.is_text, 256)?;
        let (mut program, _) = run_alone(&beginning, 0, &self.limits_left(), Failure::Ends);
        self.spend(&program);
        if let Some(error) = &program.error
            && error.code != "pickle-truncated"
            && !error.code.starts_with("limit-")
            && (program.protocol.is_none() || program.globals.is_empty())
            && !does_before_it_breaks(&mut program)
        {
            return None;
        }
        match self.copied.checked_sub(wide(string.bytes.len())) {
            Some(left) => self.copied = left,
            None => {
                self.over = true;
                return None;
            }
        }
        spelling.decode(&string.bytes, string.is_text, usize::MAX).map(Cow::Owned)
    }

    fn limits_left(&self) -> Limits {
        Limits { opcodes: self.opcodes.min(self.limits.opcodes), ..*self.limits }
    }

    fn spend(&mut self, program: &Program<'_>) {
        // A little for each, so that there cannot be very many.
        let spent = program.opcodes.saturating_add(1);
        self.opcodes = self.opcodes.saturating_sub(spent);
        if self.opcodes == 0 {
            self.over = true;
        }
    }

    /// The pickles that these bytes are, if they name anything, and the strings in them.
    fn pickles(
        &mut self,
        bytes: &[u8],
        literal: &Literal,
        depth: u32,
        spelling: Spelling,
    ) -> (Option<Nested>, Vec<Waiting<'static>>) {
        let mut nested = Nested {
            literal: literal.node,
            offset: literal.offset,
            depth,
            spelling,
            verdict: Verdict::DataOnly,
            pickles: 0,
            is_torch: false,
            globals: Vec::new(),
            calls: Vec::new(),
            call_count: 0,
        };
        let mut strings = Vec::new();
        let mut names = 0_usize;
        let mut start = 0;
        while start < wide(bytes.len()) && !self.over {
            if nested.pickles >= PICKLES {
                // What is behind them was not looked at.
                self.over = true;
                break;
            }
            let (mut program, literals) =
                run_alone(bytes, start, &self.limits_left(), Failure::Ends);
            self.spend(&program);
            let claims = program.protocol.is_some() || nested.is_torch;
            if !does_before_it_breaks(&mut program) {
                match &program.error {
                    Some(error) if program.globals.is_empty() || !claims => {
                        // Python has no such limits.
                        self.over |= error.code.starts_with("limit-");
                        break;
                    }
                    _ => {}
                }
                let is_name = |global: &GlobalUse| is_name(&program.graph, global.node);
                if !claims && !program.globals.iter().all(is_name) {
                    break;
                }
            }
            if start == 0 {
                nested.is_torch = program.root.is_some_and(|root| {
                    matches!(program.graph.node(root), Node::Long(bytes) if **bytes == TORCH_MAGIC)
                });
            }
            names = names.saturating_add(program.globals.len());
            start = program.end();
            nested.pickles = nested.pickles.saturating_add(1);
            nested.verdict = nested.verdict.with(program.verdict());
            collect(&program, &mut nested);
            for inner in &literals {
                let (bytes, is_text) = contents(&program.graph, inner.node);
                match self.copied.checked_sub(wide(bytes.len())) {
                    Some(left) => self.copied = left,
                    None => self.over = true,
                }
                if !self.over {
                    let bytes = Cow::Owned(bytes.into());
                    strings.push(Waiting { bytes, is_text, depth: depth.saturating_add(1) });
                }
            }
            if program.error.is_some() {
                break;
            }
        }
        // The stream format is five pickles and raw bytes.
        nested.is_torch &= nested.pickles >= 5;
        (Some(nested).filter(|_| names > 0), strings)
    }
}

/// Settles a program, and says whether unpickling it would call something foreign, or change what it imported, before
/// it fails, if it does: everything that it names until then could be a name of Python's, which by accident it is not.
fn does_before_it_breaks(program: &mut Program<'_>) -> bool {
    foreign::settle(program);
    let graph = &program.graph;
    let named = program.foreign.iter().filter(|foreign| is_name(graph, foreign.callee));
    let Some(offset) = named.map(|foreign| foreign.offset).min() else {
        return false;
    };
    let mut until = program.globals.iter().take_while(|global| global.offset <= offset);
    until.all(|global| is_name(graph, global.node))
}

fn collect(program: &Program<'_>, nested: &mut Nested) {
    let owned = |(module, name): (&str, &str)| (short(module), short(name));
    for global in &program.globals {
        if program.graph.known(global.node).is_none() && nested.globals.len() < LISTED {
            nested.globals.extend(program.graph.global(global.node).map(owned));
        }
    }
    nested.call_count = nested.call_count.saturating_add(wide(program.foreign.len()));
    let calls = program.foreign.iter().map(|call| program.graph.global(call.callee).map(owned));
    nested.calls.extend(calls.take(LISTED.saturating_sub(nested.calls.len())));
}

fn short(text: &str) -> String {
    weigh_format::text::shortened(text).into_owned()
}

/// The bytes of a string.
fn contents<'g>(graph: &'g Graph<'_>, id: NodeId) -> (&'g [u8], bool) {
    match graph.node(id) {
        Node::Text(text) => (text, true),
        Node::Bytes(bytes) | Node::ByteArray(bytes) => (bytes, false),
        _ => (&[], false),
    }
}

/// Whether the module and the name of a global could be those of Python, and no accident.
fn is_name(graph: &Graph<'_>, global: NodeId) -> bool {
    graph.global(global).is_some_and(|(module, name)| {
        [module, name].iter().all(|text| {
            text.split('.').all(|part| {
                part.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_')
                    && part.chars().all(|next| next.is_alphanumeric() || next == '_')
            })
        })
    })
}
