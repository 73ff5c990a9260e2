//! What is in a container, under which key.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use weigh_format::text::shortened;

use crate::containers::{members, pairs};
use crate::graph::{Call, Graph, Node, NodeId};
use crate::known::Known;
use crate::values::hexadecimal;

/// What something is called in a container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step<'g> {
    /// A key that is text.
    Text(&'g str),
    /// A key that is an integer.
    Integer(i64),
    /// A place in a list.
    Place(usize),
    /// A key that makes no name.
    Nameless(NodeId),
}

impl Step<'_> {
    /// As Python would have it after the container.
    pub(super) fn shown(self, graph: &Graph<'_>) -> String {
        match self {
            Self::Text(text) => format!("[{text:?}]"),
            Self::Integer(number) => format!("[{number}]"),
            Self::Place(place) => format!("[{place}]"),
            Self::Nameless(key) => format!("[{}]", literal(graph, key)),
        }
    }

    /// As a part of a dotted name; a key that makes none as Python would have it.
    pub(super) fn push_to(self, graph: &Graph<'_>, name: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Text(text) => name.write_str(text),
            Self::Integer(number) => write!(name, "{number}"),
            Self::Place(place) => write!(name, "{place}"),
            Self::Nameless(key) => name.write_str(&literal(graph, key)),
        };
    }

    /// Bytes of it as a part of a name, at most.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Nameless(_) => LITERAL,
            _ => 20,
        }
    }
}

/// Bytes of a key that is shown as Python would have it, at most.
const LITERAL: usize = 1 << 10;

/// Items of a tuple that are shown.
const ITEMS: usize = 8;

/// A key as Python would have it, cut short if it is long.
fn literal(graph: &Graph<'_>, key: NodeId) -> String {
    let text = match graph.node(key) {
        Node::Tuple(items) => {
            let shown: Vec<String> =
                items.iter().take(ITEMS).map(|item| scalar(graph, *item)).collect();
            let end = match items.len() {
                1 => ",",
                more if more > ITEMS => ", …",
                _ => "",
            };
            format!("({}{end})", shown.join(", "))
        }
        _ => scalar(graph, key),
    };
    shortened(&text).into_owned()
}

/// A key, or an item of one, that has no others inside; of those that have, what they are.
fn scalar(graph: &Graph<'_>, node: NodeId) -> String {
    match graph.node(node) {
        Node::None => "None".into(),
        Node::Bool(true) => "True".into(),
        Node::Bool(false) => "False".into(),
        Node::Int(number) => format!("{number}"),
        Node::Long(bytes) => hexadecimal(bytes),
        Node::Float(number) => format!("{number:?}"),
        Node::Text(text) => {
            format!("{:?}", shortened(&String::from_utf8_lossy(text)))
        }
        Node::Bytes(bytes) => {
            let shown = bytes.get(..bytes.len().min(32)).unwrap_or_default();
            format!("b\"{}\"", shown.escape_ascii())
        }
        _ => super::kind(graph, node).into(),
    }
}

/// What is in a container.
pub(super) type Entries<'g> = Vec<(Step<'g>, NodeId)>;

/// Keys that are equal in Python, by number. A long key that comes often is compared once.
#[derive(Debug, Default)]
pub(super) struct Keys<'g> {
    by_node: BTreeMap<NodeId, u32>,
    by_key: BTreeMap<Key<'g>, u32>,
}

/// A key, as Python compares them.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Key<'g> {
    Text(&'g [u8]),
    Bytes(&'g [u8]),
    Integer(i64),
    /// The bits of a float that is no integer.
    Float(u64),
    None,
    Other(NodeId),
}

impl<'g> Keys<'g> {
    fn number(&mut self, graph: &'g Graph<'g>, node: NodeId) -> u32 {
        if let Some(number) = self.by_node.get(&node) {
            return *number;
        }
        let key = match graph.node(node) {
            Node::Text(text) => Key::Text(text),
            Node::Bytes(bytes) => Key::Bytes(bytes),
            Node::Int(number) => Key::Integer(*number),
            Node::Bool(flag) => Key::Integer(i64::from(*flag)),
            Node::Float(number) => float_key(*number),
            Node::None => Key::None,
            _ => Key::Other(node),
        };
        let next = u32::try_from(self.by_key.len()).unwrap_or(u32::MAX);
        let number = *self.by_key.entry(key).or_insert(next);
        self.by_node.insert(node, number);
        number
    }

    /// Pairs, each key once: with the value that was set last, where it was set first.
    pub(super) fn unique(
        &mut self,
        graph: &'g Graph<'g>,
        pairs: impl Iterator<Item = (NodeId, NodeId)>,
    ) -> Entries<'g> {
        let mut entries: Entries<'g> = Vec::new();
        let mut places: BTreeMap<u32, usize> = BTreeMap::new();
        for (key, value) in pairs {
            let place = *places.entry(self.number(graph, key)).or_insert(entries.len());
            match entries.get_mut(place) {
                Some((_, last)) => *last = value,
                None => entries.push((step(graph, key), value)),
            }
        }
        entries
    }
}

/// A float as a key: it is the integer that it is equal to.
fn float_key<'g>(number: f64) -> Key<'g> {
    // Exact, if it is written without a fraction.
    match format!("{number:.0}").parse::<i64>() {
        Ok(integer) if format!("{number:?}") == format!("{integer}.0") => Key::Integer(integer),
        _ => Key::Float(number.to_bits()),
    }
}

fn step<'g>(graph: &'g Graph<'_>, key: NodeId) -> Step<'g> {
    match graph.node(key) {
        Node::Int(number) => Step::Integer(*number),
        _ => graph.text(key).map_or(Step::Nameless(key), Step::Text),
    }
}

/// Whether a node is a dictionary, or one of Python's classes of such.
pub(super) fn is_mapping(graph: &Graph<'_>, node: NodeId) -> bool {
    match graph.node(node) {
        Node::Dict(_) => true,
        Node::Call(call) => graph.known(call.callee).is_some_and(Known::is_dictionary),
        _ => false,
    }
}

/// What is in a dictionary, a list or a tuple. `None` for what is none of these.
pub(super) fn entries<'g>(
    graph: &'g Graph<'g>,
    keys: &mut Keys<'g>,
    node: NodeId,
) -> Option<Entries<'g>> {
    match graph.node(node) {
        Node::Dict(pairs) => Some(keys.unique(graph, pairs.iter().copied())),
        Node::Tuple(items) | Node::List(items) => Some(
            items.iter().enumerate().map(|(place, item)| (Step::Place(place), *item)).collect(),
        ),
        Node::Call(call) if is_mapping(graph, node) => {
            Some(keys.unique(graph, pairs(graph, call)?.into_iter()))
        }
        _ => None,
    }
}

/// A module: an object whose state has parameters and submodules.
pub(super) struct Module<'g> {
    /// Its parameters, buffers and submodules, as a state dict has them.
    pub(super) entries: Entries<'g>,
    /// Buffers that no state dict has.
    pub(super) not_persistent: Entries<'g>,
    /// Its other attributes.
    pub(super) others: Entries<'g>,
}

/// Whether a node looks like a module.
pub(super) fn is_module(graph: &Graph<'_>, node: NodeId) -> bool {
    let Some(call) = graph.call(node) else {
        return false;
    };
    let has = |name: &str| states(graph, call).any(|(key, _)| graph.text(key) == Some(name));
    graph.known(call.callee).is_none() && has("_parameters") && has("_modules")
}

/// The parts of a module. `None` if it is none.
pub(super) fn module<'g>(
    graph: &'g Graph<'g>,
    keys: &mut Keys<'g>,
    node: NodeId,
) -> Option<Module<'g>> {
    let call = graph.call(node).filter(|_| is_module(graph, node))?;
    let mut module = Module { entries: Vec::new(), not_persistent: Vec::new(), others: Vec::new() };
    let attributes = keys.unique(graph, states(graph, call));
    let attribute = |name: &str| {
        attributes.iter().find(|(step, _)| *step == Step::Text(name)).map(|(_, value)| *value)
    };
    let hidden = match attribute("_non_persistent_buffers_set").map(|set| graph.node(set)) {
        Some(Node::Set(items) | Node::FrozenSet(items)) => items.clone(),
        Some(Node::Call(call)) => members(graph, call).unwrap_or_default(),
        _ => Vec::new(),
    };
    let hidden: BTreeSet<&str> = hidden.iter().filter_map(|name| graph.text(*name)).collect();
    module.entries.extend(entries(graph, keys, attribute("_parameters")?)?);
    for (step, buffer) in
        attribute("_buffers").and_then(|node| entries(graph, keys, node)).unwrap_or_default()
    {
        match step {
            Step::Text(name) if hidden.contains(name) => module.not_persistent.push((step, buffer)),
            _ => module.entries.push((step, buffer)),
        }
    }
    module.entries.extend(entries(graph, keys, attribute("_modules")?)?);
    let is_part =
        |step: &Step<'_>| matches!(step, Step::Text("_parameters" | "_buffers" | "_modules"));
    module.others = attributes.iter().filter(|(step, _)| !is_part(step)).copied().collect();
    Some(module)
}

/// The attributes that `BUILD` gives an object, in order.
fn states<'g>(graph: &'g Graph<'g>, call: &'g Call) -> impl Iterator<Item = (NodeId, NodeId)> + 'g {
    let pairs = |state: &NodeId| match graph.node(*state) {
        Node::Dict(pairs) => pairs.as_slice(),
        // Attributes, and those that have slots.
        Node::Tuple(parts) => match parts.first().map(|part| graph.node(*part)) {
            Some(Node::Dict(pairs)) if parts.len() == 2 => pairs.as_slice(),
            _ => &[],
        },
        _ => &[],
    };
    call.states.iter().flat_map(pairs).copied()
}
