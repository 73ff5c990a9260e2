//! Pickles written by hand, and graphs in words.

use weigh_pickle::{Graph, Node, NodeId};

/// Bytes, one after the other.
macro_rules! pickle {
    ($($part:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice(AsRef::<[u8]>::as_ref(&$part));)*
        bytes
    }};
}

/// `BINUNICODE`.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let len = u32::try_from(text.len()).unwrap();
    pickle!(b"X", len.to_le_bytes(), text)
}

/// `SHORT_BINUNICODE`.
pub(crate) fn short(text: &str) -> Vec<u8> {
    pickle!([0x8c, u8::try_from(text.len()).unwrap()], text)
}

/// `BINBYTES`.
pub(crate) fn bytes(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    pickle!(b"B", len.to_le_bytes(), bytes)
}

/// `GLOBAL`.
pub(crate) fn global(module: &str, name: &str) -> Vec<u8> {
    pickle!(b"c", module, b"\n", name, b"\n")
}

/// `STACK_GLOBAL` with its operands.
pub(crate) fn stack_global(module: &str, name: &str) -> Vec<u8> {
    pickle!(text(module), text(name), [0x93])
}

/// A graph as Python would write it, more or less. For small ones.
pub(crate) fn show(graph: &Graph<'_>, id: NodeId) -> String {
    let list = |items: &[NodeId]| -> String {
        items.iter().map(|item| show(graph, *item)).collect::<Vec<_>>().join(", ")
    };
    let pairs = |pairs: &[(NodeId, NodeId)]| -> String {
        let shown = pairs.iter().map(|(k, v)| format!("{}: {}", show(graph, *k), show(graph, *v)));
        shown.collect::<Vec<_>>().join(", ")
    };
    match graph.node(id) {
        Node::None => "None".into(),
        Node::Bool(value) => if *value { "True" } else { "False" }.into(),
        Node::Int(number) => number.to_string(),
        Node::Long(bytes) => format!("long {bytes:02x?}"),
        Node::Float(number) => format!("{number:?}"),
        Node::Text(text) => match core::str::from_utf8(text) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("surrogates {text:02x?}"),
        },
        Node::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Node::ByteArray(bytes) => format!("bytearray b\"{}\"", bytes.escape_ascii()),
        Node::Tuple(items) => format!("({})", list(items)),
        Node::List(items) => format!("[{}]", list(items)),
        Node::Dict(items) => format!("{{{}}}", pairs(items)),
        Node::Set(items) => format!("set {{{}}}", list(items)),
        Node::FrozenSet(items) => format!("frozenset {{{}}}", list(items)),
        Node::Global { .. } => {
            let (module, name) = graph.global(id).unwrap();
            format!("<{module}.{name}>")
        }
        Node::Call(call) => {
            let called = format!("{}{}", show(graph, call.callee), show(graph, call.args));
            let mut shown = vec![format!("{:?} {called}", call.kind)];
            shown.extend(call.keywords.map(|keywords| format!("**{}", show(graph, keywords))));
            for (what, items) in [("states", &call.states), ("items", &call.items)] {
                shown.extend((!items.is_empty()).then(|| format!("{what} [{}]", list(items))));
            }
            let set = &call.pairs;
            shown.extend((!set.is_empty()).then(|| format!("pairs {{{}}}", pairs(set))));
            shown.join(" ")
        }
        Node::Persistent(id) => format!("persistent {}", show(graph, *id)),
        _ => "?".into(),
    }
}
