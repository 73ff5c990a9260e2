//! What is in a dictionary or a set that a call makes.

use alloc::vec::Vec;

use crate::graph::{Call, CallKind, Graph, Node, NodeId};
use crate::known::Known;

/// The keys and values of a dictionary, in the order that they were set, as Python makes it of its arguments; `None`
/// for one that is made of something else than pairs, or in a way that no writer has.
///
/// `__new__` makes an empty one, whatever its arguments are. What it is made of are the items that were there when it
/// was made: what was added to them later is not in it.
pub(crate) fn pairs(graph: &Graph<'_>, call: &Call) -> Option<Vec<(NodeId, NodeId)>> {
    let known = graph.known(call.callee).filter(|known| known.is_dictionary())?;
    let Node::Tuple(args) = graph.node(call.args) else {
        return None;
    };
    let mut pairs = match call.kind {
        CallKind::NewObj | CallKind::NewObjEx => Vec::new(),
        _ => {
            // A default dictionary has the factory first.
            let skipped = usize::from(known == Known::DefaultDict);
            match args.get(skipped..).unwrap_or_default() {
                [] => Vec::new(),
                [given] => given_pairs(graph, known, *given, call.taken)?,
                _ => return None,
            }
        }
    };
    pairs.extend(&call.pairs);
    Some(pairs)
}

/// What a dictionary is made of: the first items of another, or of a list of pairs.
fn given_pairs(
    graph: &Graph<'_>,
    known: Known,
    given: NodeId,
    taken: u32,
) -> Option<Vec<(NodeId, NodeId)>> {
    let taken = usize::try_from(taken).unwrap_or(usize::MAX);
    let pair = |pair: &NodeId| match graph.sequence(*pair) {
        Some([key, value]) => Some((*key, *value)),
        _ => None,
    };
    match graph.node(given) {
        Node::Dict(pairs) => Some(pairs.iter().take(taken).copied().collect()),
        // Of a list, it counts the items.
        Node::List(items) if known != Known::Counter => {
            items.iter().take(taken).map(pair).collect()
        }
        Node::Tuple(items) if known != Known::Counter => items.iter().map(pair).collect(),
        Node::List(_) | Node::Tuple(_) if graph.sequence(given)?.is_empty() => Some(Vec::new()),
        Node::None if known == Known::Counter => Some(Vec::new()),
        _ => None,
    }
}

/// The members of a set that a call makes, as Python makes it of its arguments; `None` if it is no set, or made of
/// something else than a list.
pub(crate) fn members(graph: &Graph<'_>, call: &Call) -> Option<Vec<NodeId>> {
    let known = graph.known(call.callee)?;
    let is_new = matches!(call.kind, CallKind::NewObj | CallKind::NewObjEx);
    let given = match (known, graph.tuple(call.args)) {
        (Known::Set, _) if is_new => &[],
        (Known::Set | Known::FrozenSet, []) => &[],
        (Known::Set | Known::FrozenSet, [given]) => match graph.node(*given) {
            Node::List(items) => {
                let taken = usize::try_from(call.taken).unwrap_or(usize::MAX);
                items.get(..taken).unwrap_or(items)
            }
            Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) => items,
            _ => return None,
        },
        _ => return None,
    };
    Some(given.iter().chain(&call.items).copied().collect())
}
