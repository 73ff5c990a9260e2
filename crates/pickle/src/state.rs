//! The named tensors of a checkpoint: from the root of its graph to a state dict, and from there to dotted names.
//!
//! Nothing is lost in silence. What is left out is listed with the reason, and what has no name, or the name of
//! another, is an error that says where it is.

mod entries;
mod find;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::text::shortened;

use crate::graph::{Graph, Node, NodeId};
use crate::known::Known;
use crate::reach::Reach;
use crate::refusal::Refusal;
use crate::tensor::{Reading, TensorId, TensorReader, no_numbers};
use crate::values::global;
use crate::{Error, Limits};

use entries::{Entries, Keys, Step, entries, is_module, module};

/// The name that safetensors keeps for itself.
const RESERVED: &str = "__metadata__";

/// The name of a tensor that is all there is.
const ALONE: &str = "tensor";

/// Bytes of a name.
const NAME_BYTES: usize = 1 << 20;

/// Which tensors of a file are wanted. The default is those of its state dict.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Options<'o> {
    /// Where the state dict is: a key of the root, or keys with dots between.
    pub key: Option<&'o str>,
    /// Every tensor of the file, the optimizer's too.
    pub all: bool,
    /// Whether objects that look like `torch.nn.Module` are looked into, whatever their class is.
    pub modules: bool,
    /// Whether what cannot be read or named is left out, and listed, instead of being an error.
    pub partial: bool,
}

/// A tensor and what it is called.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The tensor. Two names of one have the same.
    pub tensor: TensorId,
}

/// Where the names begin.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// At the root.
    Root,
    /// At this key, which was asked for.
    Asked(String),
    /// At this key of the root, the only one of those where state dicts are that has tensors.
    Found(&'static str),
}

/// What was left out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Where it is: a dotted name, from the root of the file on if it is beside the state dict.
    pub name: String,
    /// What it is, for [`values`](crate::values::values).
    pub node: NodeId,
    /// Why.
    pub why: Why,
}

/// Why something was left out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// There is no tensor in it. It is of this kind.
    NoTensor(&'static str),
    /// It is the state of an optimizer, a scheduler or a random number generator.
    Optimizer,
    /// It has tensors, and is not in the state dict.
    Beside,
    /// A buffer that its module does not want saved.
    NotPersistent,
    /// An attribute of a module that is no parameter, buffer or submodule, and has tensors.
    Attribute,
    /// An array of what torch has not.
    Refused(Refusal),
    /// It could not be read, and [`Options::partial`] is set.
    Unreadable(Error),
}

/// The named tensors of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct State {
    /// The tensors, in the order of the file. Names are unique.
    pub tensors: Vec<Named>,
    /// Where their names begin.
    pub source: Source,
    /// The keys of the root where a state dict with tensors is. If there are several, and none was asked for, names
    /// begin at the root.
    pub candidates: Vec<&'static str>,
    /// What was left out, in the order of the file; the first of it, if it is very much.
    pub left_out: Vec<LeftOut>,
    /// How much was left out.
    pub left_out_count: u64,
}

impl State {
    /// The named tensors that are reached from `root`.
    ///
    /// # Errors
    ///
    /// - `graph-too-many-paths`, `graph-cycle`, `limit-…`: there is no end of names, or none that limits allow.
    /// - `state-key-missing`: [`Options::key`] is not there; `state-no-tensor`: it is no state dict.
    /// - `state-name-twice`: two tensors have one name. The message says where both are.
    /// - `state-name-reserved`: a tensor is called `__metadata__`.
    /// - `state-key`: a key that leads to a tensor is neither text nor an integer.
    /// - `state-opaque`: a tensor is inside something that has no meaning here: a call, a set.
    /// - those of [`TensorReader::read`].
    ///
    /// Each says where in the file, as `["model"]["w"]`.
    pub fn read(
        reader: &mut TensorReader<'_>,
        root: NodeId,
        options: &Options<'_>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let reach = Reach::of(reader.graph(), root, |node| reader.is_tensor(node));
        reach.check(limits)?;
        let graph = reader.graph();
        let mut walk = Walk {
            graph,
            reader,
            reach: &reach,
            options,
            text_left: limits.pickle_bytes,
            keys: Keys::default(),
            frames: Vec::new(),
            on_path: BTreeSet::new(),
            name: String::new(),
            prefix: Vec::new(),
            stop_at: None,
            skip: None,
            state: Self {
                tensors: Vec::new(),
                source: Source::Root,
                candidates: Vec::new(),
                left_out: Vec::new(),
                left_out_count: 0,
            },
        };
        let start = walk.find(root)?;
        walk.run(start)?;
        if let Some((first, second)) = same_name(&walk.state.tensors) {
            let name = walk.state.tensors.get(first).map(|named| named.name.clone());
            let paths = (walk.path_of(start, first), walk.path_of(start, second));
            return Err(Error::new(
                "state-name-twice",
                format!(
                    "{} and {} have one name, {}",
                    paths.0,
                    paths.1,
                    shortened(&name.unwrap_or_default())
                ),
            ));
        }
        Ok(walk.state)
    }
}

/// The first two tensors of one name, by number, if there are any: the second is the first that has a name again.
fn same_name(tensors: &[Named]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    let name = |place: &usize| tensors.get(*place).map_or("", |named| named.name.as_str());
    order.sort_by(|a, b| name(a).cmp(name(b)));
    let twice = order.windows(2).filter_map(|pair| match pair {
        [first, second] if name(first) == name(second) => Some((*first, *second)),
        _ => None,
    });
    twice.min_by_key(|(_, second)| *second)
}

/// A walk along names.
struct Walk<'r, 'g> {
    graph: &'g Graph<'g>,
    reader: &'r mut TensorReader<'g>,
    reach: &'r Reach,
    options: &'r Options<'r>,
    /// Bytes of names that may still be made.
    text_left: u64,
    keys: Keys<'g>,
    frames: Vec<Frame<'g>>,
    on_path: BTreeSet<NodeId>,
    /// The name of what is at hand.
    name: String,
    /// The keys from the root to where names begin.
    prefix: Vec<Step<'g>>,
    /// The number of a tensor whose place is asked for, instead of all tensors.
    stop_at: Option<usize>,
    /// Containers at the root under these keys are no part of the state.
    skip: Option<&'static [&'static str]>,
    state: State,
}

/// A container that is walked.
struct Frame<'g> {
    node: NodeId,
    entries: Entries<'g>,
    next: usize,
    /// Bytes of the name of the container.
    name: usize,
}

impl<'g> Walk<'_, 'g> {
    /// Names everything from `start` on.
    fn run(&mut self, start: NodeId) -> Result<(), Error> {
        if self.reader.is_tensor(start) {
            self.name.push_str(ALONE);
            return self.tensor(start);
        }
        if !self.reach.leads_to_wanted(start) {
            self.leave_out_all(start);
            return Ok(());
        }
        self.open(start)?;
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return Ok(());
            };
            self.name.truncate(frame.name);
            let Some(&(step, node)) = frame.entries.get(frame.next) else {
                self.on_path.remove(&frame.node);
                self.frames.pop();
                continue;
            };
            frame.next = frame.next.saturating_add(1);
            self.entry(step, node)?;
        }
    }

    fn entry(&mut self, step: Step<'g>, node: NodeId) -> Result<(), Error> {
        if !self.reach.leads_to_wanted(node) {
            // Parameters and buffers may be None.
            if *self.graph.node(node) != Node::None {
                self.leave_out_plain(step, node);
            }
            return Ok(());
        }
        let is_tensor = self.reader.is_tensor(node);
        if let (Some(skip), Step::Text(key), 1, false) =
            (self.skip, step, self.frames.len(), is_tensor)
            && skip.contains(&key)
        {
            self.leave_out(step, node, Why::Optimizer);
            return Ok(());
        }
        if matches!(step, Step::Nameless(_)) {
            let error = self.here("state-key", "the key is neither text nor an integer");
            return self.give_up(step, node, error);
        }
        self.push(step)?;
        if is_tensor { self.tensor(node) } else { self.open(node) }
    }

    /// Goes into a container.
    fn open(&mut self, node: NodeId) -> Result<(), Error> {
        if self.on_path.contains(&node) {
            return Err(self.here("graph-cycle", "the container is inside itself"));
        }
        let mut entries = entries(self.graph, &mut self.keys, node);
        if entries.is_none()
            && self.options.modules
            && let Some(module) = module(self.graph, &mut self.keys, node)
        {
            for (step, buffer) in module.not_persistent {
                self.leave_out(step, buffer, Why::NotPersistent);
            }
            for (step, other) in module.others {
                if self.reach.leads_to_wanted(other) {
                    self.leave_out(step, other, Why::Attribute);
                }
            }
            entries = Some(module.entries);
        }
        let Some(entries) = entries else {
            let message = self.opaque(node);
            let error = self.here("state-opaque", &message);
            return self.give_up_here(node, error);
        };
        self.on_path.insert(node);
        self.frames.push(Frame { node, entries, next: 0, name: self.name.len() });
        Ok(())
    }

    /// Why a container with tensors is not looked into.
    fn opaque(&self, node: NodeId) -> String {
        let Some(call) = self.graph.call(node) else {
            return format!("a tensor is in {}, where it has no name", kind(self.graph, node));
        };
        let class = global(self.graph, call.callee);
        if is_module(self.graph, node) {
            return format!("a {class}, which looks like a module, has tensors");
        }
        format!("a tensor is in a {class}, which has no meaning here")
    }

    fn tensor(&mut self, node: NodeId) -> Result<(), Error> {
        let number = self.state.tensors.len();
        if self.stop_at == Some(number) {
            return Err(self.here("found", ""));
        }
        match self.reader.read(node) {
            Ok(Reading::Tensor(tensor)) => {
                if self.name == RESERVED {
                    let error = self.here(
                        "state-name-reserved",
                        "the name of the tensor is one that safetensors keeps for itself",
                    );
                    return self.give_up_here(node, error);
                }
                self.spend(self.name.len())?;
                self.state.tensors.push(Named { name: self.name.clone(), tensor });
                Ok(())
            }
            Ok(Reading::Other(refusal)) => {
                self.left(self.name.clone(), node, Why::Refused(refusal));
                Ok(())
            }
            Err(mut error) => {
                error.message = format!("{}: {}", self.path(), error.message);
                self.give_up_here(node, error)
            }
        }
    }

    /// Leaves out what cannot be read, if it may be.
    fn give_up_here(&mut self, node: NodeId, error: Error) -> Result<(), Error> {
        if !self.options.partial {
            return Err(error);
        }
        self.left(self.name.clone(), node, Why::Unreadable(error));
        Ok(())
    }

    fn give_up(&mut self, step: Step<'g>, node: NodeId, error: Error) -> Result<(), Error> {
        if !self.options.partial {
            return Err(error);
        }
        self.leave_out(step, node, Why::Unreadable(error));
        Ok(())
    }

    /// Lists an entry of the container at hand as left out.
    fn leave_out(&mut self, step: Step<'g>, node: NodeId, why: Why) {
        if step.len().saturating_add(self.name.len()) > NAME_BYTES || self.text_left == 0 {
            self.state.left_out_count = self.state.left_out_count.saturating_add(1);
            return;
        }
        let mut name = self.name.clone();
        if !name.is_empty() {
            name.push('.');
        }
        step.push_to(self.graph, &mut name);
        self.left(name, node, why);
    }

    /// Leaves out what has no tensor in it. Of an array of text or objects it is said that it is none if all tensors
    /// are wanted, for those that numpy has are among these.
    fn leave_out_plain(&mut self, step: Step<'g>, node: NodeId) {
        let why = match no_numbers(self.graph, node).filter(|_| self.options.all) {
            Some((_, refusal)) => Why::Refused(refusal),
            None => Why::NoTensor(kind(self.graph, node)),
        };
        self.leave_out(step, node, why);
    }

    /// Leaves out all there is, which is without a tensor.
    fn leave_out_all(&mut self, start: NodeId) {
        match entries(self.graph, &mut self.keys, start) {
            Some(entries) => {
                for (step, node) in entries {
                    self.leave_out_plain(step, node);
                }
            }
            None => self.leave_out_plain(Step::Text(ALONE), start),
        }
    }

    /// Whether a node is a dictionary of nothing: a state dict of a model without parameters.
    fn is_empty_mapping(&mut self, node: NodeId) -> bool {
        entries::is_mapping(self.graph, node)
            && entries(self.graph, &mut self.keys, node).is_some_and(|entries| entries.is_empty())
    }

    fn left(&mut self, name: String, node: NodeId, why: Why) {
        self.state.left_out_count = self.state.left_out_count.saturating_add(1);
        if self.spend(name.len()).is_ok() && self.stop_at.is_none() {
            self.state.left_out.push(LeftOut { name, node, why });
        }
    }

    /// Adds a part to the name.
    fn push(&mut self, step: Step<'g>) -> Result<(), Error> {
        if step.len().saturating_add(self.name.len()) > NAME_BYTES {
            return Err(self.here("limit-name", "the name is too long"));
        }
        self.spend(step.len())?;
        // The first part of a name has no dot before it, even if it is empty.
        if self.frames.len() > 1 {
            self.name.push('.');
        }
        step.push_to(self.graph, &mut self.name);
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        match self.text_left.checked_sub(bytes) {
            Some(left) => {
                self.text_left = left;
                Ok(())
            }
            None => {
                self.text_left = 0;
                Err(Error::new("limit-names", "the names are longer than a pickle may be"))
            }
        }
    }

    fn here(&self, code: &'static str, message: &str) -> Error {
        Error::new(code, format!("{}: {message}", self.path()))
    }

    /// Where the walk is.
    fn path(&self) -> String {
        let current = |frame: &Frame<'g>| {
            let last = frame.next.checked_sub(1)?;
            frame.entries.get(last).map(|(step, _)| *step)
        };
        let steps = self.prefix.iter().copied().chain(self.frames.iter().filter_map(current));
        let mut path = String::new();
        for step in steps {
            path.push_str(&step.shown(self.graph));
            if path.len() > NAME_BYTES {
                break;
            }
        }
        if path.is_empty() {
            path.push_str("the root");
        }
        shortened(&path).into_owned()
    }

    /// Where the tensor of a number is, found by walking again.
    fn path_of(&mut self, start: NodeId, number: usize) -> String {
        self.frames.clear();
        self.on_path.clear();
        self.name.clear();
        self.state.tensors.clear();
        self.text_left = u64::MAX;
        self.stop_at = Some(number);
        let _ = self.run(start);
        self.path()
    }
}

/// What a node is, for people.
fn kind(graph: &Graph<'_>, node: NodeId) -> &'static str {
    match graph.node(node) {
        Node::None => "None",
        Node::Bool(_) => "a boolean",
        Node::Int(_) | Node::Long(_) => "an integer",
        Node::Float(_) => "a float",
        Node::Text(_) => "text",
        Node::Bytes(_) | Node::ByteArray(_) => "bytes",
        Node::Tuple(_) => "a tuple",
        Node::List(_) => "a list",
        Node::Dict(_) => "a dictionary",
        Node::Set(_) | Node::FrozenSet(_) => "a set",
        Node::Global { .. } => "a name",
        Node::Persistent(_) => "a storage",
        Node::Call(_) if entries::is_mapping(graph, node) => "a dictionary",
        Node::Call(call) if graph.known(call.callee) == Some(Known::NumpyScalar) => {
            "a number of numpy"
        }
        Node::Call(_) => no_numbers(graph, node).map_or("an object", |(what, _)| what),
    }
}
