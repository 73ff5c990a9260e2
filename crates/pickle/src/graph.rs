//! What a pickle says, as nodes that name each other.
//!
//! A node is known by its [`NodeId`] alone, so that one object that is reached in two ways stays one object, and a
//! list that grows after it was put in the memo has grown wherever it is.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::known::{Known, KnownId};

/// A node of a [`Graph`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub(crate) u32);

/// How a pickle wants something called.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the opcodes that call")]
pub enum CallKind {
    /// `callee(*args)`.
    Reduce,
    /// `callee.__new__(callee, *args)`.
    NewObj,
    /// `callee.__new__(callee, *args, **keywords)`.
    NewObjEx,
    /// `callee(*args)`, the arguments being on the stack, and the class too.
    Obj,
    /// `callee(*args)`, the arguments being on the stack.
    Inst,
    /// No opcode calls it: `BUILD` makes it an attribute, which Python may look up and call, or changes it.
    Build,
}

impl CallKind {
    /// The name of the opcode: `REDUCE`.
    #[must_use]
    pub const fn opcode(self) -> &'static str {
        match self {
            Self::Reduce => "REDUCE",
            Self::NewObj => "NEWOBJ",
            Self::NewObjEx => "NEWOBJ_EX",
            Self::Obj => "OBJ",
            Self::Inst => "INST",
            Self::Build => "BUILD",
        }
    }
}

/// Something in a pickle. Bytes are those of the pickle, where it has them as they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Node<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A larger integer, in two's complement, the lowest byte first.
    Long(Cow<'a, [u8]>),
    /// A float.
    Float(f64),
    /// Text, which may have surrogates that UTF-8 has not: then it is no valid UTF-8.
    Text(Cow<'a, [u8]>),
    /// Bytes, and the strings of Python 2.
    Bytes(Cow<'a, [u8]>),
    /// A `bytearray`.
    ByteArray(Cow<'a, [u8]>),
    /// A tuple.
    Tuple(Vec<NodeId>),
    /// A list.
    List(Vec<NodeId>),
    /// A dictionary: keys and values in the order that they were set, a key that was set twice being there twice.
    Dict(Vec<(NodeId, NodeId)>),
    /// A set.
    Set(Vec<NodeId>),
    /// A frozen set.
    FrozenSet(Vec<NodeId>),
    /// A name that would be imported. Those of Python 2 are what Python 3 makes of them.
    Global {
        /// The module: a node of text.
        module: NodeId,
        /// The name in it, dots and all: a node of text.
        name: NodeId,
        /// What the table has for it.
        known: Option<KnownId>,
    },
    /// A call that the pickle wants.
    Call(Box<Call>),
    /// What whoever unpickles is asked for by an id: with torch, a storage.
    Persistent(NodeId),
}

/// A call that a pickle wants, and what it does with the result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// How it is called.
    pub kind: CallKind,
    /// What is called.
    pub callee: NodeId,
    /// The arguments: a tuple, unless the pickle has something else there.
    pub args: NodeId,
    /// The keyword arguments of `NewObjEx`.
    pub keywords: Option<NodeId>,
    /// What `BUILD` sets it to, in order.
    pub states: Vec<NodeId>,
    /// What is appended to it, or added.
    pub items: Vec<NodeId>,
    /// What is set in it by key.
    pub pairs: Vec<(NodeId, NodeId)>,
    /// How many items the last argument had when it was called, if that is a list or a dictionary.
    pub taken: u32,
    /// The byte of the pickle where it is called.
    pub offset: u64,
}

/// The nodes of a pickle.
#[derive(Clone, Debug, Default)]
pub struct Graph<'a> {
    pub(crate) nodes: Vec<Node<'a>>,
}

impl<'a> Graph<'a> {
    /// The ids of everything that is elsewhere, in the order of the pickle: of storages, mostly.
    pub fn persistent_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter_map(|node| match node {
            Node::Persistent(id) => Some(*id),
            _ => None,
        })
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node<'a> {
        // Ids are made by the graph and nodes are never removed: every id has one.
        self.nodes.get(usize::try_from(id.0).unwrap_or(usize::MAX)).unwrap_or(&Node::None)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The text of a node, if it is text in UTF-8, or a string of Python 2 in ASCII.
    #[must_use]
    pub fn text(&self, id: NodeId) -> Option<&str> {
        match self.node(id) {
            Node::Text(text) => core::str::from_utf8(text).ok(),
            Node::Bytes(bytes) if bytes.is_ascii() => core::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The number of a node, if it is an integer of at most 64 bits.
    #[must_use]
    pub fn integer(&self, id: NodeId) -> Option<i64> {
        match self.node(id) {
            Node::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The items of a tuple or a list.
    #[must_use]
    pub fn sequence(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.node(id) {
            Node::Tuple(items) | Node::List(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a tuple; none of anything else.
    #[must_use]
    pub fn tuple(&self, id: NodeId) -> &[NodeId] {
        match self.node(id) {
            Node::Tuple(items) => items,
            _ => &[],
        }
    }

    /// The module and the name of a global.
    #[must_use]
    pub fn global(&self, id: NodeId) -> Option<(&str, &str)> {
        match self.node(id) {
            Node::Global { module, name, .. } => Some((self.text(*module)?, self.text(*name)?)),
            _ => None,
        }
    }

    /// What the table of known names has for a global.
    #[must_use]
    pub fn known(&self, id: NodeId) -> Option<Known> {
        match self.node(id) {
            Node::Global { known, .. } => known.as_ref().map(|id| id.known()),
            _ => None,
        }
    }

    /// A call.
    #[must_use]
    pub fn call(&self, id: NodeId) -> Option<&Call> {
        match self.node(id) {
            Node::Call(call) => Some(call),
            _ => None,
        }
    }
}
