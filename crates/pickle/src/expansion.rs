//! How large a graph is when it is written out as a tree: a list of ten times a list of ten times a list is small as
//! a graph, and a tree of it fills any memory.

use alloc::format;
use alloc::vec::Vec;

use weigh_format::Finding;

use crate::graph::{Graph, Node, NodeId};
use crate::machine::Program;
use crate::{Limits, rules};

/// A tree of so many nodes is no attack, whatever the graph.
const HARMLESS: u64 = 1 << 20;

/// What a graph is as a tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the two things a tree can be asked")]
pub struct Expansion {
    /// Nodes of the tree, or `u64::MAX - 1` if there are more. What is within itself counts once.
    pub nodes: u64,
    /// Whether something is within itself: then the tree has no end.
    pub cycle: bool,
}

/// The expansion of what `root` reaches. It takes time and memory of the order of the graph.
#[must_use]
pub fn expansion(graph: &Graph<'_>, root: NodeId) -> Expansion {
    const OPEN: u64 = u64::MAX;
    const MOST: u64 = u64::MAX - 1;
    // The size below a node, 0 if it was not seen yet, and `OPEN` while it is on the path.
    let mut sizes: Vec<u64> = alloc::vec![0; graph.len()];
    let mut path: Vec<(NodeId, usize, u64)> = alloc::vec![(root, 0, 1)];
    let mut cycle = false;
    if let Some(size) = sizes.get_mut(place(root)) {
        *size = OPEN;
    }
    let mut total = 1;
    while let Some((node, next, size)) = path.last_mut() {
        let Some(child) = child(graph.node(*node), *next) else {
            total = *size;
            if let Some(known) = sizes.get_mut(place(*node)) {
                *known = total;
            }
            path.pop();
            if let Some((_, _, above)) = path.last_mut() {
                *above = above.saturating_add(total).min(MOST);
            }
            continue;
        };
        *next = next.saturating_add(1);
        match sizes.get_mut(place(child)) {
            Some(seen) if *seen == 0 => {
                if is_leaf(graph.node(child)) {
                    *size = size.saturating_add(1).min(MOST);
                } else {
                    *seen = OPEN;
                    path.push((child, 0, 1));
                }
            }
            Some(&mut OPEN) => {
                cycle = true;
                *size = size.saturating_add(1).min(MOST);
            }
            Some(&mut known) => *size = size.saturating_add(known).min(MOST),
            None => {}
        }
    }
    Expansion { nodes: total, cycle }
}

/// Reports what a walk of the graph as a tree would meet.
pub(crate) fn check(program: &mut Program<'_>, root: NodeId, limits: &Limits) {
    let Expansion { nodes, cycle } = expansion(&program.graph, root);
    let there = u64::try_from(program.graph.len()).unwrap_or(u64::MAX);
    if nodes > there.saturating_mul(u64::from(limits.visits)).max(HARMLESS) {
        let message = format!("{there} nodes are a tree of {nodes} nodes or more");
        let finding =
            Finding::new(&rules::GRAPH_EXPANSION, message).with("nodes", there).with("tree", nodes);
        program.findings.push(finding);
    }
    if cycle {
        program.findings.push(Finding::new(&rules::GRAPH_CYCLE, "a container is within itself"));
    }
}

fn is_leaf(node: &Node<'_>) -> bool {
    child(node, 0).is_none()
}

/// What a node holds, by number.
fn child(node: &Node<'_>, number: usize) -> Option<NodeId> {
    match node {
        Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
            items.get(number).copied()
        }
        Node::Dict(pairs) => half(pairs, number),
        Node::Persistent(id) => (number == 0).then_some(*id),
        Node::Call(call) => {
            let number = match number {
                0 => return Some(call.args),
                number => number.checked_sub(1)?,
            };
            let number = match (call.keywords, number) {
                (Some(keywords), 0) => return Some(keywords),
                (Some(_), number) => number.checked_sub(1)?,
                (None, number) => number,
            };
            let Some(number) = number.checked_sub(call.states.len()) else {
                return call.states.get(number).copied();
            };
            let Some(number) = number.checked_sub(call.items.len()) else {
                return call.items.get(number).copied();
            };
            half(&call.pairs, number)
        }
        _ => None,
    }
}

/// A key or a value.
fn half(pairs: &[(NodeId, NodeId)], number: usize) -> Option<NodeId> {
    let (key, value) = pairs.get(number >> 1)?;
    Some(if number & 1 == 0 { *key } else { *value })
}

fn place(id: NodeId) -> usize {
    usize::try_from(id.0).unwrap_or(usize::MAX)
}
