//! How much a pickle makes that is not in it: `bytearray(1 << 40)`, `list(range(1 << 40))`, a tensor of a size.
//!
//! What a constructor of the table makes is as large as what it is given, or as large as a number says. The second is
//! counted, and so is the first, since a list can be copied any number of times. What cannot be told counts as more
//! than anybody has.

use alloc::collections::BTreeMap;
use alloc::format;

use weigh_format::Finding;

use crate::decode::wide;
use crate::graph::{Call, CallKind, Graph, Node, NodeId};
use crate::known::Known;
use crate::machine::{Program, at};
use crate::storage::{PersistentId, inline_bytes, persistent_id};
use crate::{Limits, rules};

/// Bytes of an item of a container.
const ITEM: u64 = 8;
/// Bytes of an element, where the type is not known.
const ELEMENT: u64 = 16;
/// What cannot be told.
const ANY: u64 = u64::MAX;
/// What a pickle may make for each of its bytes in any case: small numbers are a byte in it, and an item in a list.
const HONEST: u64 = 16;
/// Arguments of a call, dimensions of a shape and keywords that are looked at, and more than anything honest has. They
/// may be those of any number of calls, so that all of them would take the square of the pickle.
const PARTS: usize = 256;
/// Bytes of the name of a dtype that are looked at.
const NAME: u64 = 256;

/// Reports that a pickle makes more than the limit.
pub(crate) fn check(program: &mut Program<'_>, limits: &Limits) {
    let most = limits.made_bytes.max(program.len.saturating_mul(HONEST));
    let mut made = Made { graph: &program.graph, lengths: BTreeMap::new() };
    let mut total = 0_u64;
    let mut over = None;
    for id in &program.calls {
        let Some(call) = program.graph.call(*id) else {
            continue;
        };
        total = total.saturating_add(made.bytes(*id, call));
        if total > most && over.is_none() {
            over = Some((call.offset, call.callee));
        }
    }
    let Some((offset, callee)) = over else {
        return;
    };
    let name = program.graph.global(callee).map_or("a call", |(_, name)| name);
    let message = format!("with {name}, more than {most} bytes are made that are not in the file");
    program.findings.push(Finding::new(&rules::ALLOCATION, message).at(at(offset)));
}

/// What calls make, in order.
struct Made<'p, 'a> {
    graph: &'p Graph<'a>,
    /// Items of what calls made, for those of which that is known.
    lengths: BTreeMap<NodeId, u64>,
}

impl<'p> Made<'p, '_> {
    /// Bytes that a call makes.
    fn bytes(&mut self, id: NodeId, call: &Call) -> u64 {
        let Some(known) = self.graph.known(call.callee).filter(|known| known.is_callable()) else {
            return 0;
        };
        let args: &'p [NodeId] = self.graph.tuple(call.args);
        if args.len() > PARTS {
            return ANY;
        }
        // Of these, `__new__` makes an empty one, whatever it is given.
        let is_new = matches!(call.kind, CallKind::NewObj | CallKind::NewObjEx);
        let name = self.graph.global(call.callee).map_or("", |(_, name)| name);
        match known {
            Known::ByteArray if is_new => self.makes(id, 0, 1),
            Known::ByteArray => {
                let length = self.sized(args.first());
                self.makes(id, length, 1)
            }
            Known::Value if name == "bytes" => {
                let length = self.sized(args.first());
                self.makes(id, length, 1)
            }
            Known::Dict | Known::OrderedDict | Known::Counter | Known::Set if is_new => {
                self.makes(id, 0, ITEM)
            }
            Known::DefaultDict if is_new => self.makes(id, 0, ITEM),
            Known::Value if is_new && name == "list" => self.makes(id, 0, ITEM),
            Known::DefaultDict => self.copied(id, args.get(1)),
            Known::Dict
            | Known::OrderedDict
            | Known::Counter
            | Known::Set
            | Known::FrozenSet
            | Known::Size => self.copied(id, args.first()),
            Known::Value if matches!(name, "list" | "tuple") => self.copied(id, args.first()),
            Known::Value if name == "str" => match args {
                [] | [_, _, ..] => 0,
                // What anything else is written as.
                [of] if self.is_plain(*of) => 0,
                [_] => ANY,
            },
            Known::CodecsEncode => match self.length(args.first()) {
                Some(length) => self.makes(id, length, 2),
                None => ANY,
            },
            Known::Range => {
                let length = self.range(args);
                self.lengths.insert(id, length);
                0
            }
            Known::Tensor
            | Known::LegacyTensor(_)
            | Known::Storage(_)
            | Known::TypedStorage
            | Known::UntypedStorage => {
                let keywords = call.keywords.map_or(0, |keywords| self.keywords(keywords));
                self.tensor(args).max(keywords)
            }
            Known::NumpyReconstruct => self.array(args, call),
            Known::NumpyScalar => match args {
                [dtype] => self.element(*dtype),
                _ => 0,
            },
            Known::RebuildQTensor => self.quantized(args),
            _ if args.iter().any(|arg| self.is_range(*arg)) => ANY,
            _ => 0,
        }
    }

    fn makes(&mut self, id: NodeId, length: u64, each: u64) -> u64 {
        self.lengths.insert(id, length);
        length.saturating_mul(each)
    }

    /// A container of what another has.
    fn copied(&mut self, id: NodeId, of: Option<&NodeId>) -> u64 {
        let length = if of.is_none() { 0 } else { self.length(of).unwrap_or(ANY) };
        self.makes(id, length, ITEM)
    }

    /// Items of a container, or bytes; `None` if that cannot be told.
    fn length(&self, node: Option<&NodeId>) -> Option<u64> {
        let node = *node?;
        let length = match self.graph.node(node) {
            Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
                items.len()
            }
            Node::Dict(pairs) => pairs.len(),
            Node::Text(bytes) | Node::Bytes(bytes) | Node::ByteArray(bytes) => bytes.len(),
            Node::None => 0,
            Node::Call(call) => {
                let set = call.items.len().saturating_add(call.pairs.len());
                return self.lengths.get(&node).map(|length| length.saturating_add(wide(set)));
            }
            _ => return None,
        };
        Some(wide(length))
    }

    /// What a number of bytes, or their content, comes to.
    fn sized(&self, node: Option<&NodeId>) -> u64 {
        match node {
            None => 0,
            Some(id) => self.number(*id).or_else(|| self.length(node)).unwrap_or(ANY),
        }
    }

    /// A number that says how many; `None` if the node is none.
    fn number(&self, node: NodeId) -> Option<u64> {
        match self.graph.node(node) {
            Node::Int(number) => Some(u64::try_from(*number).unwrap_or(0)),
            Node::Bool(flag) => Some(u64::from(*flag)),
            Node::Long(bytes) if bytes.last().is_some_and(|last| *last >= 0x80) => Some(0),
            Node::Long(_) => Some(ANY),
            _ => None,
        }
    }

    fn is_plain(&self, node: NodeId) -> bool {
        match self.graph.node(node) {
            Node::Tuple(items) => items.is_empty(),
            Node::List(_) | Node::Dict(_) | Node::Set(_) | Node::FrozenSet(_) | Node::Call(_) => {
                false
            }
            _ => true,
        }
    }

    fn is_range(&self, node: NodeId) -> bool {
        let call = self.graph.call(node);
        call.is_some_and(|call| self.graph.known(call.callee) == Some(Known::Range))
    }

    /// Items of a range, or more.
    fn range(&self, args: &[NodeId]) -> u64 {
        let numbers = args.iter().map(|arg| match self.graph.node(*arg) {
            Node::Int(number) => Some(*number),
            Node::Bool(flag) => Some(i64::from(*flag)),
            _ => None,
        });
        let Some(numbers) = numbers.collect::<Option<alloc::vec::Vec<i64>>>() else {
            return ANY;
        };
        let (from, to, step) = match numbers.as_slice() {
            [to] => (0, *to, 1),
            [from, to] => (*from, *to, 1),
            [from, to, step] => (*from, *to, *step),
            _ => return 0,
        };
        let (low, high) = if step < 0 { (to, from) } else { (from, to) };
        if low >= high {
            return 0;
        }
        high.abs_diff(low).div_ceil(step.unsigned_abs().max(1))
    }

    /// Bytes of a tensor or a storage of the sizes that are given.
    fn tensor(&self, args: &[NodeId]) -> u64 {
        let lone = match args {
            [] => return 0,
            [of] => Some(*of),
            _ => None,
        };
        if let Some(of) = lone {
            match self.graph.node(of) {
                Node::Persistent(_) => return 0,
                Node::Call(call) => {
                    let known = self.graph.known(call.callee);
                    let is_tensor = known.is_some_and(|known| {
                        known.rebuilds()
                            || matches!(
                                known,
                                Known::LegacyTensor(_) | Known::Tensor | Known::LoadFromBytes
                            )
                    });
                    if is_tensor {
                        return 0;
                    }
                    if known == Some(Known::Size) {
                        let sizes = self.graph.tuple(call.args).first();
                        let sizes = sizes.and_then(|sizes| self.graph.sequence(*sizes));
                        return sizes.map_or(ANY, |sizes| self.product(sizes, ELEMENT));
                    }
                    return self.length(Some(&of)).unwrap_or(ANY).saturating_mul(ELEMENT);
                }
                Node::Tuple(_) | Node::List(_) => {
                    // Numbers, or lists of numbers.
                    return self.length(Some(&of)).unwrap_or(ANY).saturating_mul(ELEMENT);
                }
                _ => {}
            }
        }
        let sizes =
            args.iter().filter(|arg| !matches!(self.graph.node(**arg), Node::Persistent(_)));
        sizes.fold(ELEMENT, |bytes, size| match self.graph.node(*size) {
            Node::Int(_) | Node::Bool(_) | Node::Long(_) => {
                bytes.saturating_mul(self.number(*size).unwrap_or(ANY))
            }
            Node::Call(call) if self.graph.known(call.callee) != Some(Known::Device) => ANY,
            _ => bytes,
        })
    }

    /// The largest number among keywords.
    fn keywords(&self, keywords: NodeId) -> u64 {
        let Node::Dict(pairs) = self.graph.node(keywords) else {
            return ANY;
        };
        if pairs.len() > PARTS {
            return ANY;
        }
        let numbers = pairs.iter().map(|(_, value)| match self.graph.node(*value) {
            Node::Int(_) | Node::Long(_) => self.number(*value).unwrap_or(ANY),
            Node::Tuple(_) | Node::List(_) => self.product(self.graph.tuple(*value), ELEMENT),
            _ => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// The product of sizes.
    fn product(&self, sizes: &[NodeId], each: u64) -> u64 {
        if sizes.len() > PARTS {
            return ANY;
        }
        let sizes = sizes.iter().map(|size| self.number(*size).unwrap_or(ANY));
        let mut product = each;
        for size in sizes {
            if size == 0 {
                return 0;
            }
            product = product.saturating_mul(size);
        }
        product
    }

    /// Bytes of an array, before its state, and of one whose elements are in a list.
    fn array(&self, args: &[NodeId], call: &Call) -> u64 {
        let [_, shape, dtype, ..] = args else {
            return 0;
        };
        let product = |shape: &NodeId, each: u64| match self.graph.node(*shape) {
            Node::Tuple(sizes) | Node::List(sizes) => self.product(sizes, each),
            _ => self.product(core::slice::from_ref(shape), each),
        };
        let mut bytes = product(shape, self.element(*dtype));
        for state in &call.states {
            let state = self.graph.tuple(*state);
            let from = state.len().saturating_sub(4);
            if let Some([shape, _, _, data]) = state.get(from..)
                && let Node::List(_) | Node::Tuple(_) | Node::Call(_) = self.graph.node(*data)
                && inline_bytes(self.graph, *data).is_none()
            {
                bytes = bytes.max(product(shape, ITEM));
            }
        }
        bytes
    }

    /// Bytes of an element of a dtype of numpy, or more.
    fn element(&self, dtype: NodeId) -> u64 {
        let name = match self.graph.call(dtype) {
            Some(call) if self.graph.known(call.callee) == Some(Known::NumpyDtype) => {
                self.graph.tuple(call.args).first().copied()
            }
            _ => Some(dtype),
        };
        let Some(name) = name else {
            return ELEMENT;
        };
        if self.length(Some(&name)).is_some_and(|length| length > NAME) {
            return ANY;
        }
        let bytes = match self.graph.text(name) {
            Some(text) => text.as_bytes().into(),
            None => match inline_bytes(self.graph, name) {
                Some(bytes) => bytes,
                // A type is small; anything else may be of any size.
                None if matches!(self.graph.node(name), Node::Global { .. }) => return ELEMENT,
                None => return ANY,
            },
        };
        // One number is the size; what has several, as `(100,100)f4`, has at most their product.
        let mut product = ELEMENT;
        for digits in bytes.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty())
        {
            let number = core::str::from_utf8(digits).ok().and_then(|it| it.parse::<u64>().ok());
            product = product.saturating_mul(number.unwrap_or(ANY).max(1));
        }
        product
    }

    /// A quantized tensor is made of its whole size before it gets its storage.
    fn quantized(&self, args: &[NodeId]) -> u64 {
        let [storage, _, size, ..] = args else {
            return 0;
        };
        let sizes = match self.graph.node(*size) {
            Node::Tuple(sizes) | Node::List(sizes) => self.product(sizes, 1),
            Node::Call(call) => {
                let sizes = self.graph.tuple(call.args).first();
                let sizes = sizes.and_then(|sizes| self.graph.sequence(*sizes));
                sizes.map_or(ANY, |sizes| self.product(sizes, 1))
            }
            _ => ANY,
        };
        let stored = match self.graph.node(*storage) {
            Node::Persistent(id) => match persistent_id(self.graph, *id) {
                Ok(PersistentId::Storage { numel, .. }) => numel,
                _ => 0,
            },
            _ => 0,
        };
        if sizes <= stored { 0 } else { sizes.saturating_mul(ITEM) }
    }
}
