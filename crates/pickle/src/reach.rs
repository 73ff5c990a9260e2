//! What can be reached from a node, how deep it is, and in how many ways.
//!
//! A graph of forty lists, each ten times in the next, has more paths than anybody can walk. So before anything is
//! walked as a tree, the paths are counted on the graph, in time that is linear in it.

use alloc::format;
use alloc::vec::Vec;

use crate::graph::{Graph, Node, NodeId};
use crate::{Error, Limits};

/// Visits that any graph may cost.
const VISITS: u64 = 1 << 20;

/// What can be reached from a root.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Nodes, and how often each is named by another.
    size: u64,
    /// Nodes that a walk along every path to what is wanted would visit, at least: what is only reached through itself
    /// counts once.
    pub visits: u64,
    /// Levels of nodes in nodes.
    pub depth: u32,
    /// A node that is inside itself.
    pub cycle: Option<NodeId>,
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// When it was seen, from 1 on; 0 is never.
    seen: u32,
    /// The first seen of what is being walked that it leads back to.
    back: u32,
    /// Levels, 0 as long as what is inside is being walked.
    depth: u32,
    /// Levels inside.
    inside: u32,
    is_done: bool,
    is_wanted: bool,
    leads_to_wanted: bool,
    visits: u64,
}

/// A node that is being walked.
struct Step {
    node: NodeId,
    next: usize,
}

impl Reach {
    /// Walks what is reached from `root`, each node once; `is_wanted` says which are looked for.
    #[must_use]
    pub fn of(graph: &Graph<'_>, root: NodeId, is_wanted: impl Fn(NodeId) -> bool) -> Self {
        let mut reach = Self {
            size: 0,
            visits: 0,
            depth: 0,
            cycle: None,
            marks: alloc::vec![Mark::default(); graph.len()],
        };
        let mut seen = 0;
        let mut path: Vec<Step> = Vec::new();
        // Nodes whose group, of those that lead to each other, is not known yet.
        let mut open: Vec<NodeId> = Vec::new();
        reach.enter(root, &mut seen, &mut path, &mut open, &is_wanted);
        while let Some(step) = path.last_mut() {
            let Some(child) = child(graph, step.node, step.next) else {
                let node = step.node;
                path.pop();
                reach.leave(node, path.last().map(|step| step.node), &mut open);
                continue;
            };
            step.next = step.next.saturating_add(1);
            let parent = step.node;
            reach.size = reach.size.saturating_add(1);
            let mark = reach.mark(child);
            if mark.seen == 0 && is_leaf(graph.node(child)) {
                let leaf = reach.leaf(child, &mut seen, is_wanted(child));
                reach.add(parent, leaf);
            } else if mark.seen == 0 {
                reach.enter(child, &mut seen, &mut path, &mut open, &is_wanted);
            } else if mark.is_done {
                reach.add(parent, mark);
            } else {
                let on_path = mark.depth == 0;
                if on_path && reach.cycle.is_none() {
                    reach.cycle = Some(child);
                }
                let visits = if on_path { 1 } else { mark.visits };
                let depth = mark.depth;
                reach.change(parent, |parent| {
                    parent.back = parent.back.min(mark.seen);
                    parent.visits = parent.visits.saturating_add(visits);
                    parent.leads_to_wanted |= mark.leads_to_wanted;
                    parent.inside = parent.inside.max(depth);
                });
            }
        }
        let root = reach.mark(root);
        (reach.visits, reach.depth) = (root.visits, root.depth);
        reach
    }

    /// Whether a node that was wanted is reached from this one, or is this one.
    #[must_use]
    pub fn leads_to_wanted(&self, node: NodeId) -> bool {
        self.mark(node).leads_to_wanted
    }

    /// Whether this node was reached, and wanted.
    #[must_use]
    pub fn is_wanted(&self, node: NodeId) -> bool {
        self.mark(node).is_wanted
    }

    /// Whether everything may be walked as a tree.
    ///
    /// # Errors
    ///
    /// `graph-too-many-paths` if that takes more than [`Limits::visits`] for each node and each time that one is
    /// named, or a million; `limit-depth`.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        let budget = self.size.saturating_mul(u64::from(limits.visits)).max(VISITS);
        if self.visits > budget {
            let ways = if self.visits == u64::MAX {
                "more nodes than can be counted".into()
            } else {
                format!("{} nodes", self.visits)
            };
            return Err(Error::new(
                "graph-too-many-paths",
                format!(
                    "along every path there are {ways}, and the file names nodes {} times",
                    self.size
                ),
            ));
        }
        if self.depth > limits.depth {
            return Err(Error::new(
                "limit-depth",
                format!("{} levels, over the limit of {}", self.depth, limits.depth),
            ));
        }
        Ok(())
    }

    /// Marks a node that names no other, and gives the mark.
    fn leaf(&mut self, node: NodeId, seen: &mut u32, is_wanted: bool) -> Mark {
        *seen = seen.saturating_add(1);
        self.size = self.size.saturating_add(1);
        let leaf = Mark {
            seen: *seen,
            back: *seen,
            depth: 1,
            inside: 0,
            is_done: true,
            is_wanted,
            leads_to_wanted: is_wanted,
            visits: 1,
        };
        self.change(node, |mark| *mark = leaf);
        leaf
    }

    fn enter(
        &mut self,
        node: NodeId,
        seen: &mut u32,
        path: &mut Vec<Step>,
        open: &mut Vec<NodeId>,
        is_wanted: &impl Fn(NodeId) -> bool,
    ) {
        *seen = seen.saturating_add(1);
        let (seen, is_wanted) = (*seen, is_wanted(node));
        self.size = self.size.saturating_add(1);
        self.change(node, |mark| {
            *mark = Mark {
                seen,
                back: seen,
                is_wanted,
                leads_to_wanted: is_wanted,
                visits: 1,
                ..Mark::default()
            };
        });
        path.push(Step { node, next: 0 });
        open.push(node);
    }

    /// All that is in a node is walked.
    fn leave(&mut self, node: NodeId, parent: Option<NodeId>, open: &mut Vec<NodeId>) {
        self.change(node, |mark| mark.depth = mark.inside.saturating_add(1));
        let mark = self.mark(node);
        if mark.back == mark.seen {
            // What was opened since leads here, and from here there: they reach the same.
            let first = open.iter().rposition(|other| *other == node).unwrap_or(0);
            let group = open.get(first..).unwrap_or_default();
            let leads = group.iter().any(|member| self.mark(*member).leads_to_wanted);
            for member in group {
                self.change(*member, |mark| {
                    mark.is_done = true;
                    mark.leads_to_wanted = leads;
                });
            }
            open.truncate(first);
        }
        if let Some(parent) = parent {
            self.add(parent, self.mark(node));
        }
    }

    /// Adds what a walked child reaches.
    fn add(&mut self, parent: NodeId, child: Mark) {
        self.change(parent, |parent| {
            if !child.is_done {
                parent.back = parent.back.min(child.back);
            }
            if child.leads_to_wanted || !child.is_done {
                parent.visits = parent.visits.saturating_add(child.visits);
            }
            parent.leads_to_wanted |= child.leads_to_wanted;
            parent.inside = parent.inside.max(child.depth);
        });
    }

    fn mark(&self, node: NodeId) -> Mark {
        place(node).and_then(|place| self.marks.get(place)).copied().unwrap_or_default()
    }

    fn change(&mut self, node: NodeId, change: impl FnOnce(&mut Mark)) {
        if let Some(mark) = place(node).and_then(|place| self.marks.get_mut(place)) {
            change(mark);
        }
    }
}

fn place(node: NodeId) -> Option<usize> {
    usize::try_from(node.0).ok()
}

/// Whether a node names no other, whatever is in it.
fn is_leaf(node: &Node<'_>) -> bool {
    match node {
        Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
            items.is_empty()
        }
        Node::Dict(pairs) => pairs.is_empty(),
        Node::Call(_) | Node::Persistent(_) => false,
        _ => true,
    }
}

/// What a node names, by number.
fn child(graph: &Graph<'_>, node: NodeId, number: usize) -> Option<NodeId> {
    match graph.node(node) {
        Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
            items.get(number).copied()
        }
        Node::Dict(pairs) => pair(pairs, number),
        Node::Persistent(id) => (number == 0).then_some(*id),
        Node::Call(call) => {
            let fixed = [Some(call.callee), Some(call.args), call.keywords].into_iter().flatten();
            // Skipping in slices takes no time, however long they are.
            let mut nodes =
                fixed.chain(call.states.iter().copied()).chain(call.items.iter().copied());
            let before = 2_usize
                .saturating_add(usize::from(call.keywords.is_some()))
                .saturating_add(call.states.len())
                .saturating_add(call.items.len());
            match number.checked_sub(before) {
                Some(number) => pair(&call.pairs, number),
                None => nodes.nth(number),
            }
        }
        _ => None,
    }
}

fn pair(pairs: &[(NodeId, NodeId)], number: usize) -> Option<NodeId> {
    let (key, value) = pairs.get(number >> 1)?;
    Some(if number & 1 == 0 { *key } else { *value })
}
