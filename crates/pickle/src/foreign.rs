//! Which calls are foreign: of something outside the table, or of something in it that would call further; and what
//! would be an attribute, which Python looks up on the object and calls.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use weigh_format::{Finding, Rule};

use crate::graph::{Call, CallKind, Graph, Node, NodeId};
use crate::known::Known;
use crate::machine::{Program, at, full_name};
use crate::nested::Nested;
use crate::verdict::Verdict;
use crate::{gadget, numpy_dtype, rules};

/// A call of something outside the table, or one for which the table has no meaning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "what a call is known by")]
pub struct Foreign {
    /// How it is called. [`CallKind::Build`] is an attribute, which Python may call, or an imported module, class or
    /// function that gets attributes.
    pub kind: CallKind,
    /// What is called or changed.
    pub callee: NodeId,
    /// The byte where that happens; of an attribute, where the object is made.
    pub offset: u64,
}

/// Finds the foreign calls of a program, beside those that the machine found, and reports them.
pub(crate) fn settle(program: &mut Program<'_>) {
    let mut foreign = core::mem::take(&mut program.foreign);
    let mut states = BTreeSet::new();
    let mut called = Vec::new();
    for number in 0..program.calls.len() {
        let id = program.calls.get(number).copied();
        let Some(call) = id.and_then(|id| program.graph.call(id)) else {
            continue;
        };
        let Call { kind, callee, offset, .. } = *call;
        if is_foreign(&program.graph, call, &program.nested) {
            foreign.push(Foreign { kind, callee, offset });
            let rule = contradiction(&program.graph, call);
            report(program, rule.unwrap_or(&rules::FOREIGN_CALL), callee, offset);
            continue;
        }
        attributes(&program.graph, call, &mut states, &mut called);
        for callee in called.drain(..) {
            foreign.push(Foreign { kind: CallKind::Build, callee, offset });
            report(program, &rules::FOREIGN_ATTRIBUTE, callee, offset);
        }
    }
    program.foreign = foreign;
}

fn report(program: &mut Program<'_>, rule: &'static Rule, callee: NodeId, offset: u64) {
    let callee = program.graph.global(callee);
    program.findings.report(rule, || {
        let Some((module, name)) = callee else {
            let finding = Finding::new(rule, "the result of a call would be called");
            return finding.at(at(offset));
        };
        let full = full_name(module, name);
        let what = match rule.code {
            "foreign-attribute" => "would be an attribute, which Python may call",
            "numpy-state" => "gets a state that contradicts its name, or itself",
            _ => "would be called",
        };
        let is_gadget = gadget::is_gadget(module, name);
        let why = if is_gadget { ", which is known to run code" } else { "" };
        Finding::new(rule, format!("{full} {what}{why}")).with("callee", full).at(at(offset))
    });
}

/// The rule that a call breaks which is foreign for what its object is made to be.
fn contradiction(graph: &Graph<'_>, call: &Call) -> Option<&'static Rule> {
    (graph.known(call.callee) == Some(Known::NumpyDtype)).then_some(&rules::NUMPY_STATE)
}

/// Whether the table has no meaning for a call.
fn is_foreign(graph: &Graph<'_>, call: &Call, nested: &[Nested]) -> bool {
    let Some(known) = graph.known(call.callee) else {
        return true;
    };
    match known {
        Known::LoadFromBytes => !loads_data(graph, call.args, nested),
        _ if !known.is_callable() => true,
        Known::CodecsEncode => !encodes_bytes(graph, call.args),
        Known::NumpyDtype => !numpy_dtype::is_sound(graph, call),
        _ => calls_further(graph, known, call.args),
    }
}

/// Collects what becomes an attribute of the object that a call makes, and is a function or a class that the table
/// does not have, or a function that it has: Python looks methods up on the object, as `__setstate__` and `append`,
/// and `keys`, and finds these. `seen` are the states and their parts that were looked at.
fn attributes(
    graph: &Graph<'_>,
    call: &Call,
    seen: &mut BTreeSet<NodeId>,
    called: &mut Vec<NodeId>,
) {
    // A part may be that of many states, and one state have it often.
    let mut state = |node: NodeId| {
        for part in parts(graph, node).filter(|part| seen.insert(*part)) {
            values(graph, part, called);
        }
    };
    for node in &call.states {
        state(*node);
    }
    let args = graph.tuple(call.args);
    match graph.known(call.callee) {
        Some(Known::RebuildFromTypeV2 | Known::RebuildParameterWithState) => {
            if let Some(node) = args.get(3) {
                state(*node);
            }
        }
        // Some of these find what they hold as if it were an attribute.
        Some(Known::Value) if !is_builtin(graph, call.callee) => {
            for node in args.iter().chain(&call.keywords) {
                state(*node);
            }
            let values = call.pairs.iter().map(|(_, value)| *value);
            called.extend(values.filter(|node| may_be_called(graph, *node)));
        }
        _ => {}
    }
}

/// What a state is made of: attributes, and those that have slots.
fn parts<'g>(graph: &'g Graph<'_>, state: NodeId) -> impl Iterator<Item = NodeId> + 'g {
    let parts = match graph.node(state) {
        Node::Tuple(parts) | Node::List(parts) => parts.as_slice(),
        _ => &[],
    };
    core::iter::once(state).chain(parts.iter().copied())
}

/// The values of a mapping, or a value itself, that may be called.
fn values(graph: &Graph<'_>, node: NodeId, called: &mut Vec<NodeId>) {
    let mut take = |pairs: &[(NodeId, NodeId)]| {
        let values = pairs.iter().map(|(_, value)| *value);
        called.extend(values.filter(|node| may_be_called(graph, *node)));
    };
    match graph.node(node) {
        Node::Dict(pairs) => take(pairs),
        Node::Call(call) => {
            take(&call.pairs);
            for given in graph.tuple(call.args) {
                if let Node::Dict(pairs) = graph.node(*given) {
                    take(pairs);
                }
            }
        }
        Node::Global { .. } if may_be_called(graph, node) => called.push(node),
        _ => {}
    }
}

/// Whether a node is a name that does something if it is called where nothing is known of the arguments.
fn may_be_called(graph: &Graph<'_>, node: NodeId) -> bool {
    matches!(graph.node(node), Node::Global { .. })
        && graph.known(node).is_none_or(Known::is_function)
}

fn is_builtin(graph: &Graph<'_>, class: NodeId) -> bool {
    graph.global(class).is_some_and(|(module, _)| module == "builtins")
}

/// Whether what is called with these arguments would call, or make an instance of, one of them that it should not.
fn calls_further(graph: &Graph<'_>, known: Known, args: NodeId) -> bool {
    let (mut known, mut args) = (known, args);
    for _ in 0..CALLS_IN_EACH_OTHER {
        match known {
            Known::RebuildFromTypeV2 => {
                let [function, class, inner, ..] = graph.tuple(args) else {
                    return true;
                };
                if !is_class_of_tensors(graph, *class) {
                    return true;
                }
                match graph.known(*function) {
                    Some(next) if Known::rebuilds(next) => (known, args) = (next, *inner),
                    _ => return true,
                }
            }
            Known::RebuildWrapperSubclass => {
                let [class, ..] = graph.tuple(args) else {
                    return true;
                };
                return !is_class_of_tensors(graph, *class);
            }
            Known::NumpyReconstruct => {
                let [class, ..] = graph.tuple(args) else {
                    return true;
                };
                return graph.known(*class) != Some(Known::NdArray);
            }
            _ => return false,
        }
    }
    true
}

/// How many functions that each call the next are followed. Torch writes two.
const CALLS_IN_EACH_OTHER: usize = 16;

fn is_class_of_tensors(graph: &Graph<'_>, class: NodeId) -> bool {
    matches!(
        graph.known(class),
        Some(Known::Tensor | Known::Parameter | Known::Buffer | Known::LegacyTensor(_))
    )
}

/// Whether `_codecs.encode` gets text and the name of an encoding that is built in: other names import modules.
fn encodes_bytes(graph: &Graph<'_>, args: NodeId) -> bool {
    let [text, rest @ ..] = graph.tuple(args) else {
        return false;
    };
    let builtin = |encoding: &NodeId| {
        graph.text(*encoding).is_some_and(|name| {
            ["latin1", "latin-1", "iso-8859-1", "utf-8", "utf8", "ascii"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
        })
    };
    matches!(graph.node(*text), Node::Text(_)) && rest.len() <= 1 && rest.iter().all(builtin)
}

/// Whether the bytes that `_load_from_bytes` would unpickle were read as a storage, and are data.
fn loads_data(graph: &Graph<'_>, args: NodeId, nested: &[Nested]) -> bool {
    let [bytes] = graph.tuple(args) else {
        return false;
    };
    // With protocol 2, bytes are a call that encodes text.
    let literal = match graph.node(*bytes) {
        Node::Call(call) if graph.known(call.callee) == Some(Known::CodecsEncode) => {
            graph.tuple(call.args).first().copied().unwrap_or(*bytes)
        }
        _ => *bytes,
    };
    let first = nested.partition_point(|nested| nested.literal < literal);
    let mut of_literal = nested
        .get(first..)
        .unwrap_or_default()
        .iter()
        .take_while(|nested| nested.literal == literal)
        .peekable();
    of_literal.peek().is_some_and(|nested| nested.is_torch)
        && of_literal.all(|nested| nested.verdict == Verdict::DataOnly)
}
