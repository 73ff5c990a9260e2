//! Whether the state that a pickle gives a dtype of numpy goes with its name and with itself.
//!
//! numpy believes the state. One that hides objects among the parts of an element makes it take the bytes of an array
//! for addresses of objects; one that says a wrong size makes it read beyond them; and one of a dtype that was not
//! copied changes the dtype of the whole program.

use crate::graph::{Call, Graph, Node, NodeId};

/// Elements are objects, or have some.
const REFERENCES: i64 = 0x01;
/// Arrays of it are lists in pickles, and not bytes.
const IN_LISTS: i64 = 0x02;
/// Elements are addresses.
const POINTERS: i64 = 0x04;
/// All flags of the dtype of objects.
const OF_OBJECTS: i64 = 63;
/// Dimensions that numpy has, at most.
const MOST_DIMENSIONS: usize = 64;
/// Fields of a dtype that are looked at: many dtypes may share them, and each looks at all.
const MOST_FIELDS: usize = 4096;
/// The flag of text, whose elements are cleared first.
const CLEARED: i64 = 0x08;

/// Whether every state of a dtype, which this call makes, says what numpy writes for a dtype of its name.
pub(crate) fn is_sound(graph: &Graph<'_>, call: &Call) -> bool {
    if call.states.is_empty() {
        return true;
    }
    let [name, _, copy] = graph.tuple(call.args) else {
        return false;
    };
    let copies = matches!(graph.node(*copy), Node::Bool(true) | Node::Int(1));
    let Some(name) = graph.text(*name).and_then(Name::parse).filter(|_| copies) else {
        return false;
    };
    call.states.iter().all(|state| is_sound_state(graph, name, graph.tuple(*state)))
}

fn is_sound_state(graph: &Graph<'_>, name: Name, state: &[NodeId]) -> bool {
    // The first versions of the state had no flags.
    let ([_, order, subarray, names, fields, size, _]
    | [_, order, subarray, names, fields, size, _, _, ..]) = state
    else {
        return false;
    };
    let is_order = graph.text(*order).is_some_and(|order| matches!(order, "<" | ">" | "=" | "|"));
    let flags = match state.get(7).map(|flags| graph.node(*flags)) {
        None => None,
        Some(Node::Int(flags)) => Some(*flags),
        Some(_) => return false,
    };
    if !is_order || state.len() > 9 {
        return false;
    }
    let none = |node: &NodeId| *graph.node(*node) == Node::None;
    let parts = (none(subarray), none(names) && none(fields));
    let has_objects = match (name.kind, parts) {
        (Kind::Objects, (true, true)) => return flags.is_none_or(|flags| flags == OF_OBJECTS),
        (Kind::Plain, (true, true)) => {
            // What other packages register may have flags of its own.
            let own = if name.size.is_some() { !0 } else { REFERENCES | IN_LISTS | POINTERS };
            return flags.is_none_or(|flags| flags & own == 0);
        }
        (Kind::Text, (true, true)) => {
            let cleared = flags.is_none_or(|flags| flags & !CLEARED == 0);
            return cleared && graph.integer(*size) == name.size;
        }
        (Kind::Void, (true, true)) => Some(false),
        (Kind::Void, (false, true)) => subarray_has_objects(graph, *subarray, name),
        (Kind::Void, (true, false)) if !none(names) => fields_have_objects(graph, *fields, name),
        _ => None,
    };
    let Some(has_objects) = has_objects.filter(|_| graph.integer(*size) == name.size) else {
        return false;
    };
    let all = REFERENCES | IN_LISTS;
    flags.is_none_or(
        |flags| {
            if has_objects { flags & all == all } else { flags & (all | POINTERS) == 0 }
        },
    )
}

/// Whether the elements of a dtype that is an array have objects; `None` if it is none of this size.
fn subarray_has_objects(graph: &Graph<'_>, subarray: NodeId, name: Name) -> Option<bool> {
    let [of, shape] = graph.tuple(subarray) else {
        return None;
    };
    let mut size = size_of(graph, *of)?;
    let lone = core::slice::from_ref(shape);
    let counts = graph.sequence(*shape).unwrap_or(lone);
    if counts.len() > MOST_DIMENSIONS {
        return None;
    }
    for count in counts {
        size = graph.integer(*count).filter(|count| *count >= 0)?.checked_mul(size)?;
    }
    if Some(size) == name.size { has_objects(graph, *of) } else { None }
}

/// Whether a dtype that has fields has objects; `None` if one is not inside it.
fn fields_have_objects(graph: &Graph<'_>, fields: NodeId, name: Name) -> Option<bool> {
    let Node::Dict(fields) = graph.node(fields) else {
        return None;
    };
    if fields.len() > MOST_FIELDS {
        return None;
    }
    let mut found = false;
    for (_, field) in fields {
        let [of, offset, ..] = graph.tuple(*field) else {
            return None;
        };
        let offset = graph.integer(*offset).filter(|offset| *offset >= 0)?;
        let end = offset.checked_add(size_of(graph, *of)?)?;
        found |= has_objects(graph, *of)?;
        if name.size.is_none_or(|size| end > size) {
            return None;
        }
    }
    Some(found)
}

/// The name of a dtype that a node is, as far as it is one.
fn name_of<'g>(graph: &'g Graph<'_>, node: NodeId) -> Option<(Name, &'g Call)> {
    let call = graph.call(node)?;
    let name = graph.tuple(call.args).first().and_then(|name| graph.text(*name))?;
    Some((Name::parse(name)?, call))
}

fn size_of(graph: &Graph<'_>, node: NodeId) -> Option<i64> {
    name_of(graph, node)?.0.size
}

/// Whether the elements of a dtype are objects or have some, by its flags: they are compared with the rest where
/// the state of that dtype is looked at.
fn has_objects(graph: &Graph<'_>, node: NodeId) -> Option<bool> {
    let (name, call) = name_of(graph, node)?;
    match (name.kind, call.states.last()) {
        (Kind::Objects, _) => Some(true),
        (Kind::Void, Some(state)) => {
            let flags = graph.tuple(*state).get(7).and_then(|flags| graph.integer(*flags))?;
            Some(flags & IN_LISTS != 0)
        }
        _ => Some(false),
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Numbers, and what else has no parts.
    Plain,
    /// Objects.
    Objects,
    /// Text and bytes.
    Text,
    /// Bytes that may have parts.
    Void,
}

/// The name of a dtype, in the form that numpy gives it in a pickle.
#[derive(Clone, Copy, Debug)]
struct Name {
    kind: Kind,
    /// Bytes of an element, if the name says so.
    size: Option<i64>,
}

impl Name {
    fn parse(name: &str) -> Option<Self> {
        let plain = name.strip_prefix(['<', '>', '=', '|']).unwrap_or(name);
        if !plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        let (letter, digits) = plain.split_at_checked(1)?;
        let number = if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok() };
        let (kind, size) = match (letter, number) {
            ("O", Some(_)) => (Kind::Objects, Some(8)),
            ("S" | "a", Some(size)) => (Kind::Text, Some(size)),
            ("U", Some(size)) => (Kind::Text, Some(size.checked_mul(4)?)),
            ("V", Some(size)) => (Kind::Void, Some(size)),
            ("?", _) => (Kind::Plain, Some(1)),
            (_, Some(size @ 1..)) => (Kind::Plain, Some(size)),
            // Names of other packages' numbers.
            _ if !plain.to_ascii_lowercase().starts_with("obj") => (Kind::Plain, None),
            _ => return None,
        };
        Some(Self { kind, size })
    }
}
