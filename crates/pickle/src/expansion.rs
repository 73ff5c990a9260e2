//! Whether a graph is much larger when it is written out as a tree: a list of ten times a list of ten times a list is
//! small as a graph, and a tree of it fills any memory.

use alloc::format;

use weigh_format::Finding;

use crate::decode::wide;
use crate::graph::NodeId;
use crate::machine::Program;
use crate::reach::Reach;
use crate::{Limits, rules};

/// A tree of so many nodes is no attack, whatever the graph.
const HARMLESS: u64 = 1 << 20;

/// Reports what a walk of the graph as a tree would meet.
pub(crate) fn check(program: &mut Program<'_>, root: NodeId, limits: &Limits) {
    let reach = Reach::of(&program.graph, root, |_| true);
    let there = wide(program.graph.len());
    if reach.visits > there.saturating_mul(u64::from(limits.tree)).max(HARMLESS) {
        let message = format!("{there} nodes are a tree of {} nodes or more", reach.visits);
        let finding = Finding::new(&rules::GRAPH_EXPANSION, message);
        program.findings.push(finding.with("nodes", there).with("tree", reach.visits));
    }
    if reach.cycle.is_some() {
        program.findings.push(Finding::new(&rules::GRAPH_CYCLE, "a container is within itself"));
    }
}
