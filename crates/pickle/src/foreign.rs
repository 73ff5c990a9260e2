//! Which calls are foreign: of something outside the table, or of something in it that would call further.

use alloc::format;
use alloc::vec::Vec;

use weigh_format::Finding;

use crate::graph::{Call, Graph, Node, NodeId};
use crate::known::Known;
use crate::machine::{Program, at, full_name};
use crate::nested::Nested;
use crate::verdict::Verdict;
use crate::{gadget, rules};

/// Finds the foreign calls of a program, and reports them.
pub(crate) fn settle(program: &mut Program<'_>) {
    let mut foreign = Vec::new();
    for id in &program.calls {
        let Some(call) = program.graph.call(*id) else {
            continue;
        };
        if !is_foreign(&program.graph, call, &program.nested) {
            continue;
        }
        foreign.push(*id);
        let callee = program.graph.global(call.callee);
        program.findings.report(&rules::FOREIGN_CALL, || {
            let finding = match callee {
                Some((module, name)) => {
                    let full = full_name(module, name);
                    let is_gadget = gadget::is_gadget(module, name);
                    let why = if is_gadget { ", which is known to run code" } else { "" };
                    let message = format!("{full} would be called{why}");
                    Finding::new(&rules::FOREIGN_CALL, message).with("callee", full)
                }
                None => Finding::new(&rules::FOREIGN_CALL, "the result of a call would be called"),
            };
            finding.at(at(call.offset))
        });
    }
    program.foreign = foreign;
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
        _ => calls_further(graph, known, call.args),
    }
}

/// Whether what is called with these arguments would call, or make an instance of, one of them that it should not.
fn calls_further(graph: &Graph<'_>, known: Known, args: NodeId) -> bool {
    let (mut known, mut args) = (known, args);
    loop {
        match known {
            Known::RebuildFromTypeV2 => {
                let [function, class, inner, ..] = tuple(graph, args) else {
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
                let [class, ..] = tuple(graph, args) else {
                    return true;
                };
                return !is_class_of_tensors(graph, *class);
            }
            Known::NumpyReconstruct => {
                let [class, ..] = tuple(graph, args) else {
                    return true;
                };
                return graph.known(*class) != Some(Known::NdArray);
            }
            _ => return false,
        }
    }
}

fn tuple<'g>(graph: &'g Graph<'_>, id: NodeId) -> &'g [NodeId] {
    match graph.node(id) {
        Node::Tuple(items) => items,
        _ => &[],
    }
}

fn is_class_of_tensors(graph: &Graph<'_>, class: NodeId) -> bool {
    matches!(
        graph.known(class),
        Some(Known::Tensor | Known::Parameter | Known::Buffer | Known::LegacyTensor(_))
    )
}

/// Whether `_codecs.encode` gets text and the name of an encoding that is built in: other names import modules.
fn encodes_bytes(graph: &Graph<'_>, args: NodeId) -> bool {
    let [text, rest @ ..] = tuple(graph, args) else {
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
    let [bytes] = tuple(graph, args) else {
        return false;
    };
    // With protocol 2, bytes are a call that encodes text.
    let literal = match graph.node(*bytes) {
        Node::Call(call) if graph.known(call.callee) == Some(Known::CodecsEncode) => {
            tuple(graph, call.args).first().copied().unwrap_or(*bytes)
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
