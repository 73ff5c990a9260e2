//! Values that are no tensors, as a flat list that JSON can be written of.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use weigh_format::text::{is_unsafe_to_print, write_escape};

use crate::containers::{members, pairs};
use crate::graph::{Graph, Node, NodeId};
use crate::known::Known;
use crate::storage::inline_bytes;
use crate::{Error, Limits};

/// A value; those that have others inside are followed by these.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `None`.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A larger integer, in hexadecimal: `"-0x1f"`.
    Long(String),
    /// A float.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes: how many.
    Bytes(u64),
    /// A list, a tuple or a set: how many values follow.
    List(usize),
    /// A dictionary: how many pairs of a key and a value follow.
    Map(usize),
    /// Something else, by what it is: a class, a function, a tensor.
    Other(String),
}

/// The value that a node is, with all that is in it.
///
/// # Errors
///
/// `limit-values` if there are more values, or text, than the limits for nodes and strings; so of a graph with a
/// cycle or too many paths too.
pub fn values(graph: &Graph<'_>, node: NodeId, limits: &Limits) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    let mut rest = alloc::vec![(node, false)];
    let mut text = limits.string_bytes;
    let mut count = u64::from(limits.nodes).min(limits.string_bytes);
    while let Some((node, is_key)) = rest.pop() {
        count = count.checked_sub(1).ok_or_else(over)?;
        let value = match graph.node(node) {
            Node::Tuple(_) | Node::FrozenSet(_) if is_key => Value::Other("a tuple".into()),
            Node::List(_) | Node::Set(_) | Node::Dict(_) | Node::Call(_) if is_key => {
                Value::Other("an object".into())
            }
            _ => value(graph, node, &mut rest),
        };
        let bytes = match &value {
            Value::Text(text) | Value::Long(text) | Value::Other(text) => text.len(),
            _ => 0,
        };
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        text = text.checked_sub(bytes).ok_or_else(over)?;
        if u64::try_from(rest.len()).unwrap_or(u64::MAX) > count {
            return Err(over());
        }
        values.push(value);
    }
    Ok(values)
}

fn over() -> Error {
    Error::new("limit-values", "more values that are no tensors than the limits allow")
}

fn value(graph: &Graph<'_>, node: NodeId, rest: &mut Vec<(NodeId, bool)>) -> Value {
    let mut list = |items: &[NodeId]| {
        rest.extend(items.iter().rev().map(|item| (*item, false)));
        Value::List(items.len())
    };
    match graph.node(node) {
        Node::None => Value::None,
        Node::Bool(value) => Value::Bool(*value),
        Node::Int(number) => Value::Int(*number),
        Node::Long(bytes) => Value::Long(hexadecimal(bytes)),
        Node::Float(number) => Value::Float(*number),
        Node::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        Node::Bytes(bytes) | Node::ByteArray(bytes) => match graph.text(node) {
            Some(text) => Value::Text(text.to_string()),
            None => Value::Bytes(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
        },
        Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
            list(items)
        }
        Node::Dict(pairs) => map(pairs, rest),
        Node::Global { .. } => Value::Other(global(graph, node)),
        Node::Persistent(_) => Value::Other("a storage".into()),
        Node::Call(call) => match (graph.known(call.callee), graph.sequence(call.args)) {
            (Some(known), _) if known.is_dictionary() => match pairs(graph, call) {
                Some(pairs) => map(&pairs, rest),
                None => Value::Other(global(graph, call.callee)),
            },
            (Some(Known::Set | Known::FrozenSet), _) => match members(graph, call) {
                Some(items) => list(&items),
                None => Value::Other(global(graph, call.callee)),
            },
            (Some(Known::Size), Some([of])) => list(graph.sequence(*of).unwrap_or_default()),
            (Some(Known::CodecsEncode), _) => {
                let bytes = inline_bytes(graph, node).map_or(0, |bytes| bytes.len());
                Value::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            _ => Value::Other(global(graph, call.callee)),
        },
    }
}

fn map(pairs: &[(NodeId, NodeId)], rest: &mut Vec<(NodeId, bool)>) -> Value {
    for (key, value) in pairs.iter().rev() {
        rest.push((*value, false));
        rest.push((*key, true));
    }
    Value::Map(pairs.len())
}

/// The name of a global, or what else is called.
pub(crate) fn global(graph: &Graph<'_>, node: NodeId) -> String {
    match graph.global(node) {
        Some((module, name)) => format!("{module}.{name}"),
        None => "something that has no name".into(),
    }
}

/// An integer in two's complement, the lowest byte first.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let is_negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
    let mut digits: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut carry = is_negative;
    for byte in bytes {
        let mut byte = *byte;
        if is_negative {
            byte = !byte;
            (byte, carry) = byte.overflowing_add(u8::from(carry));
        }
        digits.push(byte);
    }
    if is_negative && carry {
        digits.push(1);
    }
    let mut text = String::from(if is_negative { "-0x" } else { "0x" });
    let start = text.len();
    for byte in digits.iter().rev() {
        if text.len() > start {
            let _ = write!(text, "{byte:02x}");
        } else if *byte > 0 {
            let _ = write!(text, "{byte:x}");
        }
    }
    if text.len() == start {
        text.push('0');
    }
    text
}

/// JSON of the first value of a list, on one line. What JSON has not is an object of one key: `{"$bytes": 12}`,
/// `{"$other": "…"}`, `{"$float": "nan"}`, `{"$int": "0x…"}`. Keys are text: those that are not, as they are shown.
#[must_use]
pub fn to_json(values: &[Value]) -> String {
    let mut json = String::new();
    // Of each list or map that is open, how many values are to come, keys counted.
    let mut open: Vec<Open> = Vec::new();
    for value in values {
        let is_key = open.last().is_some_and(|open| open.is_map && open.left & 1 == 0);
        match value {
            Value::List(count) if *count > 0 => {
                json.push('[');
                open.push(Open { left: *count, is_map: false });
                continue;
            }
            Value::Map(count) if *count > 0 => {
                json.push('{');
                open.push(Open { left: count.saturating_mul(2), is_map: true });
                continue;
            }
            value if is_key => key(&mut json, value),
            value => scalar(&mut json, value),
        }
        // Closes what ends with this value.
        while let Some(last) = open.last_mut() {
            last.left = last.left.saturating_sub(1);
            if last.left > 0 {
                json.push(if last.is_map && last.left & 1 == 1 { ':' } else { ',' });
                break;
            }
            json.push(if last.is_map { '}' } else { ']' });
            open.pop();
        }
        if open.is_empty() {
            break;
        }
    }
    json
}

struct Open {
    left: usize,
    is_map: bool,
}

fn scalar(json: &mut String, value: &Value) {
    // Writing to a string cannot fail.
    let _ = match value {
        Value::None => json.write_str("null"),
        Value::Bool(value) => write!(json, "{value}"),
        Value::Int(number) => write!(json, "{number}"),
        Value::Long(digits) => write!(json, "{{\"$int\":\"{digits}\"}}"),
        Value::Float(number) if number.is_finite() => write!(json, "{number:?}"),
        Value::Float(number) => write!(json, "{{\"$float\":\"{number}\"}}"),
        Value::Text(text) => quoted(json, text),
        Value::Bytes(count) => write!(json, "{{\"$bytes\":{count}}}"),
        Value::List(_) => json.write_str("[]"),
        Value::Map(_) => json.write_str("{}"),
        Value::Other(what) => {
            json.push_str("{\"$other\":");
            let _ = quoted(json, what);
            json.write_char('}')
        }
    };
}

fn key(json: &mut String, value: &Value) {
    let _ = match value {
        Value::Text(text) | Value::Other(text) => quoted(json, text),
        Value::Int(number) => write!(json, "\"{number}\""),
        Value::Bool(value) => write!(json, "\"{value}\""),
        Value::Float(number) => write!(json, "\"{number:?}\""),
        Value::Long(digits) => write!(json, "\"{digits}\""),
        Value::Bytes(count) => write!(json, "\"{count} bytes\""),
        Value::None | Value::List(_) | Value::Map(_) => json.write_str("\"null\""),
    };
}

fn quoted(json: &mut String, text: &str) -> core::fmt::Result {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            character if is_unsafe_to_print(character) => write_escape(json, character)?,
            character => json.push(character),
        }
    }
    json.write_char('"')
}
