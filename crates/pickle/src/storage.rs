//! The storages that a pickle names: what its persistent ids say.
//!
//! A storage is bytes under a key. Where these are in the file is the container's to say; how many they should be,
//! and of what, is said here.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::Error;
use crate::dtype::TorchDtype;
use crate::graph::{Graph, Node, NodeId};
use crate::known::Known;

/// A storage of a [`Storages`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StorageId(pub(crate) u32);

/// What a persistent id says.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PersistentId<'g> {
    /// A storage.
    Storage {
        /// Its elements; `None` if it is untyped.
        dtype: Option<TorchDtype>,
        /// The key of its bytes.
        key: &'g str,
        /// The device that it was on: `"cpu"`, `"cuda:0"`, `"meta"`.
        location: &'g str,
        /// Elements, or bytes if it is untyped.
        numel: u64,
        /// The part of the storage that is meant, in old files that say so.
        view: Option<Part<'g>>,
    },
    /// A class with its source, in old files: the class is all that is taken.
    Class(NodeId),
    /// A tensor or a storage of a tar file.
    Key(Cow<'g, str>),
}

/// A part of a storage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Part<'g> {
    /// The key that the part goes by.
    pub key: &'g str,
    /// Elements before it.
    pub offset: u64,
    /// Elements in it.
    pub numel: u64,
}

impl<'g> Part<'g> {
    /// A part of `numel` elements, after `offset` others.
    #[must_use]
    pub fn new(key: &'g str, offset: u64, numel: u64) -> Self {
        Self { key, offset, numel }
    }
}

/// Reads the node of a persistent id.
///
/// # Errors
///
/// `storage-id` if it is none of the kinds that torch writes.
pub fn persistent_id<'g>(graph: &'g Graph<'_>, id: NodeId) -> Result<PersistentId<'g>, Error> {
    if let Some(key) = tar_key(graph, id) {
        return Ok(PersistentId::Key(key));
    }
    let Node::Tuple(items) = graph.node(id) else {
        return Err(wrong("is no tuple and no key"));
    };
    let kind = items.first().and_then(|kind| graph.text(*kind));
    match (kind, items.as_slice()) {
        (Some("storage"), [_, class, key, location, numel]) => {
            storage(graph, [*class, *key, *location, *numel], None)
        }
        (Some("storage"), [_, class, key, location, numel, view]) => {
            let view = match graph.node(*view) {
                Node::None => None,
                _ => Some(part(graph, *view)?),
            };
            storage(graph, [*class, *key, *location, *numel], view)
        }
        (Some("module"), [_, class, _, _]) => Ok(PersistentId::Class(*class)),
        (Some(kind @ ("storage" | "module")), items) => {
            Err(wrong(format!("of a {kind} has {} items", items.len())))
        }
        _ => Err(wrong("is no storage and no module")),
    }
}

fn storage<'g>(
    graph: &'g Graph<'_>,
    [class, key, location, numel]: [NodeId; 4],
    view: Option<Part<'g>>,
) -> Result<PersistentId<'g>, Error> {
    let dtype = match graph.known(class) {
        Some(Known::Storage(name)) => {
            Some(TorchDtype::from_name(name).ok_or_else(|| wrong("has a class of no dtype"))?)
        }
        Some(Known::UntypedStorage) => None,
        _ => return Err(wrong("has a class that is no storage's")),
    };
    Ok(PersistentId::Storage {
        dtype,
        key: graph.text(key).ok_or_else(|| wrong("has a key that is no text"))?,
        location: graph.text(location).ok_or_else(|| wrong("has a location that is no text"))?,
        numel: count(graph, numel)?,
        view,
    })
}

fn part<'g>(graph: &'g Graph<'_>, view: NodeId) -> Result<Part<'g>, Error> {
    match graph.node(view) {
        Node::Tuple(items) if let [key, offset, numel] = items.as_slice() => Ok(Part {
            key: graph.text(*key).ok_or_else(|| wrong("has a view whose key is no text"))?,
            offset: count(graph, *offset)?,
            numel: count(graph, *numel)?,
        }),
        _ => Err(wrong("has a view that is no tuple of three")),
    }
}

fn count(graph: &Graph<'_>, node: NodeId) -> Result<u64, Error> {
    let number = graph.integer(node).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| wrong("has a count that is no integer from 0"))
}

fn tar_key<'g>(graph: &'g Graph<'_>, id: NodeId) -> Option<Cow<'g, str>> {
    match graph.node(id) {
        Node::Int(number) => Some(Cow::Owned(number.to_string())),
        _ => graph.text(id).map(Cow::Borrowed),
    }
}

fn wrong(what: impl AsRef<str>) -> Error {
    Error::new("storage-id", format!("a persistent id {}", what.as_ref()))
}

/// Where the bytes of a storage are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// Under the storage's key, in the file that the pickle is in.
    Key,
    /// In the pickle: what [`inline_bytes`] has of this node.
    Pickle(NodeId),
}

/// A storage.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Storage {
    /// The key of its bytes; empty for one in the pickle.
    pub key: String,
    /// Its elements; `None` if it is untyped.
    pub dtype: Option<TorchDtype>,
    /// How many bytes the pickle says that it has.
    pub bytes: u64,
    /// The device that it was on. Nothing is done about it.
    pub location: String,
    /// Where its bytes are.
    pub origin: Origin,
    /// How many tensors are views of it.
    pub uses: u64,
}

impl Storage {
    /// Whether it was on the device `meta`, so that there are no bytes.
    #[must_use]
    pub fn is_meta(&self) -> bool {
        self.location == "meta"
    }
}

/// A storage, or the part of one, that a tensor is a view of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Window {
    /// The storage.
    pub storage: StorageId,
    /// The elements; `None` if it is untyped.
    pub dtype: Option<TorchDtype>,
    /// Bytes of the storage before it.
    pub first: u64,
    /// Bytes in it.
    pub bytes: u64,
}

/// The storages of a pickle, in the order that tensors name them.
#[derive(Clone, Debug, Default)]
pub struct Storages {
    list: Vec<Storage>,
    by_key: BTreeMap<String, StorageId>,
    parts: BTreeMap<String, Window>,
    inline: BTreeMap<NodeId, StorageId>,
}

impl Storages {
    /// All of them.
    #[must_use]
    pub fn list(&self) -> &[Storage] {
        &self.list
    }

    /// A storage. `None` for an id of other storages.
    #[must_use]
    pub fn get(&self, id: StorageId) -> Option<&Storage> {
        self.list.get(usize::try_from(id.0).ok()?)
    }

    /// The storage of this key.
    #[must_use]
    pub fn by_key(&self, key: &str) -> Option<StorageId> {
        self.by_key.get(key).copied()
    }

    /// All of a storage, by its key, or the part that was added under this key.
    #[must_use]
    pub fn window(&self, key: &str) -> Option<Window> {
        if let Some(part) = self.parts.get(key) {
            return Some(*part);
        }
        let id = self.by_key(key)?;
        let Storage { dtype, bytes, .. } = *self.get(id)?;
        Some(Window { storage: id, dtype, first: 0, bytes })
    }

    /// Adds a part of a storage under a key of its own, as a tar file has it.
    ///
    /// # Errors
    ///
    /// `storage-id` if the root is not there or the key is; `tensor-bounds` if the part is not inside.
    pub fn add_part(&mut self, root: &str, part: Part<'_>) -> Result<Window, Error> {
        let whole = self.window(root).ok_or_else(|| {
            Error::new(
                "storage-id",
                format!("storage {} is of {root}, which is not there", part.key),
            )
        })?;
        if self.window(part.key).is_some() {
            return Err(Error::new(
                "storage-conflict",
                format!("storage {} is there twice", part.key),
            ));
        }
        let window = within(whole, part)?;
        self.parts.insert(part.key.to_owned(), window);
        Ok(window)
    }

    pub(crate) fn used(&mut self, id: StorageId) {
        let storage = usize::try_from(id.0).ok().and_then(|place| self.list.get_mut(place));
        if let Some(storage) = storage {
            storage.uses = storage.uses.saturating_add(1);
        }
    }

    /// Adds a storage by key, or finds it again.
    ///
    /// # Errors
    ///
    /// `storage-conflict` if the key is there with other elements or another size, and `storage-size` if the size
    /// cannot be counted.
    pub fn add(
        &mut self,
        key: &str,
        dtype: Option<TorchDtype>,
        numel: u64,
        location: &str,
    ) -> Result<Window, Error> {
        let bytes = match dtype {
            // Of those that are packed, the storage counts bytes too.
            Some(dtype) => numel.checked_mul(dtype.bytes()),
            None => Some(numel),
        };
        let bytes = bytes.ok_or_else(|| {
            Error::new("storage-size", format!("storage {key} has {numel} elements"))
        })?;
        let Some(&storage) = self.by_key.get(key) else {
            let storage = self.push(Storage {
                key: key.to_owned(),
                dtype,
                bytes,
                location: location.to_owned(),
                origin: Origin::Key,
                uses: 0,
            })?;
            self.by_key.insert(key.to_owned(), storage);
            return Ok(Window { storage, dtype, first: 0, bytes });
        };
        let Some(there) = self.get(storage) else {
            return Err(Error::new("storage-id", format!("storage {key} is lost")));
        };
        if there.dtype != dtype || there.bytes != bytes {
            let name = |dtype: Option<TorchDtype>| dtype.map_or("untyped", TorchDtype::name);
            return Err(Error::new(
                "storage-conflict",
                format!(
                    "storage {key} is {} bytes of {}, and again {bytes} bytes of {}",
                    there.bytes,
                    name(there.dtype),
                    name(dtype)
                ),
            ));
        }
        Ok(Window { storage, dtype, first: 0, bytes })
    }

    /// The storage that a node is.
    ///
    /// # Errors
    ///
    /// `storage-id` if it is none, and those of [`Storages::add`]; `nested-file` if it is a file in a file.
    pub fn resolve(&mut self, graph: &Graph<'_>, node: NodeId) -> Result<Window, Error> {
        let Node::Persistent(id) = graph.node(node) else {
            let callee = graph.call(node).and_then(|call| graph.known(call.callee));
            return Err(match callee {
                Some(Known::LoadFromBytes) => Error::new(
                    "nested-file",
                    "a storage is a file of its own, in bytes of this one",
                ),
                _ => Error::new("storage-id", "what should be a storage is none"),
            });
        };
        match persistent_id(graph, *id)? {
            PersistentId::Storage { dtype, key, location, numel, view } => {
                let whole = self.add(key, dtype, numel, location)?;
                view.map_or(Ok(whole), |view| within(whole, view))
            }
            PersistentId::Class(_) => Err(wrong("is of a class, and should be of a storage")),
            PersistentId::Key(key) => self
                .window(&key)
                .ok_or_else(|| wrong(format!("is the key {key}, which no storage has"))),
        }
    }

    /// Adds the bytes of a node as a storage, or finds it again.
    ///
    /// # Errors
    ///
    /// `storage-id` if the node is no bytes.
    pub(crate) fn inline(&mut self, graph: &Graph<'_>, node: NodeId) -> Result<Window, Error> {
        let bytes = match self.inline.get(&node).and_then(|id| self.get(*id)) {
            Some(storage) => storage.bytes,
            None => inline_len(graph, node)
                .ok_or_else(|| Error::new("storage-id", "what should be bytes is none"))?,
        };
        let storage = match self.inline.get(&node) {
            Some(id) => *id,
            None => {
                let id = self.push(Storage {
                    key: String::new(),
                    dtype: None,
                    bytes,
                    location: "cpu".to_owned(),
                    origin: Origin::Pickle(node),
                    uses: 0,
                })?;
                self.inline.insert(node, id);
                id
            }
        };
        Ok(Window { storage, dtype: None, first: 0, bytes })
    }

    fn push(&mut self, storage: Storage) -> Result<StorageId, Error> {
        let id = u32::try_from(self.list.len())
            .map_err(|_| Error::new("limit-nodes", "more storages than can be counted"))?;
        self.list.push(storage);
        Ok(StorageId(id))
    }
}

/// The part of a storage that an old file means.
fn within(whole: Window, view: Part<'_>) -> Result<Window, Error> {
    let element = whole.dtype.map_or(1, TorchDtype::bytes);
    let first = view.offset.checked_mul(element);
    let bytes = view.numel.checked_mul(element);
    let end = first.zip(bytes).and_then(|(first, bytes)| first.checked_add(bytes));
    match (first, bytes, end) {
        (Some(first), Some(bytes), Some(end)) if end <= whole.bytes => {
            Ok(Window { first, bytes, ..whole })
        }
        _ => Err(Error::new(
            "tensor-bounds",
            format!(
                "view {} is {} elements from element {} on, of a storage of {} bytes",
                view.key, view.numel, view.offset, whole.bytes
            ),
        )),
    }
}

/// The bytes that a node is: bytes, a `bytearray`, or text that is to be encoded as Latin-1, which is how protocol 2
/// has bytes.
#[must_use]
pub fn inline_bytes<'g>(graph: &'g Graph<'_>, node: NodeId) -> Option<Cow<'g, [u8]>> {
    Some(match inline(graph, node)? {
        Inline::Bytes(bytes) => Cow::Borrowed(bytes),
        Inline::Latin1(text) => {
            Cow::Owned(text.chars().map(u8::try_from).collect::<Result<_, _>>().ok()?)
        }
    })
}

fn inline_len(graph: &Graph<'_>, node: NodeId) -> Option<u64> {
    let len = match inline(graph, node)? {
        Inline::Bytes(bytes) => bytes.len(),
        Inline::Latin1(text) => {
            let mut len = 0_usize;
            for character in text.chars() {
                u8::try_from(character).ok()?;
                len = len.saturating_add(1);
            }
            len
        }
    };
    u64::try_from(len).ok()
}

enum Inline<'g> {
    Bytes(&'g [u8]),
    Latin1(&'g str),
}

fn inline<'g>(graph: &'g Graph<'_>, node: NodeId) -> Option<Inline<'g>> {
    match graph.node(node) {
        Node::Bytes(bytes) | Node::ByteArray(bytes) => return Some(Inline::Bytes(bytes)),
        _ => {}
    }
    let call = graph.call(node)?;
    if !call.states.is_empty() || call.keywords.is_some() {
        return None;
    }
    match (graph.known(call.callee), graph.sequence(call.args)?) {
        (Some(Known::CodecsEncode), [text, encoding])
            if graph.text(*encoding).is_some_and(is_latin1) =>
        {
            match graph.node(*text) {
                Node::Text(text) => core::str::from_utf8(text).ok().map(Inline::Latin1),
                _ => None,
            }
        }
        // With protocol 2, empty bytes are a call without arguments.
        (Some(_), []) if graph.global(call.callee) == Some(("builtins", "bytes")) => {
            Some(Inline::Bytes(&[]))
        }
        (Some(Known::ByteArray), []) => Some(Inline::Bytes(&[])),
        (Some(Known::ByteArray), [bytes]) => match graph.node(*bytes) {
            Node::Bytes(bytes) => Some(Inline::Bytes(bytes)),
            _ => None,
        },
        _ => None,
    }
}

fn is_latin1(encoding: &str) -> bool {
    matches!(encoding, "latin1" | "latin-1")
}
