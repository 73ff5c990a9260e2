//! Whether `torch.load(weights_only=True)` takes a pickle, by the rules of torch 2.15.
//!
//! Its unpickler knows 34 opcodes and some 150 names, and checks what is called, built, set and appended to. All of
//! that is decided here. What is not: whether the calls themselves succeed (a tensor beyond its storage, say), beyond
//! the number of their arguments and the type of the first; and what the container does before and after, which is
//! asked of [`Root::torch_refuses`](crate::container::torch::Root::torch_refuses).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use weigh_format::text::{escaped, shortened};

use crate::decode::{Argument, Decoder, Operation};
use crate::known::{Known, known};
use crate::machine::memo::Memo;
use crate::opcode::Opcode;
use crate::{Error, Limits, python2};

/// Where torch stops, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// The byte of the opcode.
    pub offset: u64,
    /// The opcode, if there is one.
    pub opcode: Option<Opcode>,
    /// The name that torch does not allow: a module and a name, joined by a dot.
    pub name: Option<String>,
    /// Why, in words.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.offset)?;
        if let Some(opcode) = self.opcode {
            write!(f, ", {}", opcode.name())?;
        }
        write!(f, ": {}", escaped(&self.reason))
    }
}

/// Runs the pickle that `bytes` begin with as torch would with `weights_only=True`, and says how many bytes it has.
///
/// # Errors
///
/// Where torch stops, and why.
pub fn weights_only(bytes: &[u8], limits: &Limits) -> Result<u64, Refusal> {
    let mut torch = Torch {
        stack: Vec::new(),
        marks: Vec::new(),
        fence: 0,
        memo: Memo::new(),
        limit: limits.stack,
    };
    let mut decoder = Decoder::new(bytes, limits);
    loop {
        let operation = match decoder.next_operation() {
            Ok(operation) => operation,
            // Torch takes a protocol that nobody knows yet.
            Err(error)
                if error.opcode == Some(Opcode::Proto.name())
                    && error.code == "pickle-argument" =>
            {
                continue;
            }
            Err(error) => return Err(undecoded(error)),
        };
        let (offset, opcode) = (operation.offset, operation.opcode);
        match torch.step(operation) {
            Ok(()) => {}
            Err(Reason { name, words }) => {
                return Err(Refusal { offset, opcode: Some(opcode), name, reason: words });
            }
        }
        if opcode == Opcode::Stop {
            return Ok(decoder.position());
        }
    }
}

fn undecoded(error: Error) -> Refusal {
    let opcode = Opcode::ALL.iter().find(|opcode| Some(opcode.name()) == error.opcode).copied();
    Refusal { offset: error.offset.unwrap_or(0), opcode, name: None, reason: error.message.into() }
}

/// Why torch stops.
struct Reason {
    name: Option<String>,
    words: Cow<'static, str>,
}

fn because<T>(words: &'static str) -> Result<T, Reason> {
    Err(Reason { name: None, words: Cow::Borrowed(words) })
}

/// A value, as far as torch looks at its type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Value {
    None,
    /// A truth value or a float.
    Plain,
    Int,
    /// Text or bytes.
    Text(Word),
    /// How many items, what the first is, and whether all can be keys.
    Tuple {
        len: usize,
        first: First,
        is_key: bool,
    },
    List,
    Dict,
    OrderedDict,
    Counter,
    Set,
    Tensor,
    Parameter,
    /// What a persistent id stands for.
    Storage,
    /// A name that is allowed.
    Global(Known),
    ByteArray,
    /// An instance of another class that is allowed.
    Instance,
    /// Of a class that the file chose among those that are allowed.
    Chosen,
    /// Of a class that is not.
    Other,
}

/// What a text says, as far as that counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Word {
    /// `storage`.
    Storage,
    /// The name of a layout.
    Layout,
    Other,
}

impl Word {
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            b"storage" => Self::Storage,
            b"torch.strided" | b"torch.sparse_coo" | b"torch.sparse_csr" | b"torch.sparse_csc"
            | b"torch.sparse_bsr" | b"torch.sparse_bsc" | b"torch._mkldnn" | b"torch.jagged" => {
                Self::Layout
            }
            _ => Self::Other,
        }
    }
}

/// The first item of a tuple, in short.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum First {
    None,
    Number,
    Text(Word),
    Sequence,
    Mapping,
    Set,
    Tensor,
    Storage,
    Global,
    Instance,
    /// Something else, or nothing.
    Other,
}

impl First {
    fn of(value: Option<Value>) -> Self {
        match value {
            Some(Value::None) => Self::None,
            Some(Value::Plain | Value::Int) => Self::Number,
            Some(Value::Text(word)) => Self::Text(word),
            Some(Value::Tuple { .. } | Value::List) => Self::Sequence,
            Some(Value::Dict | Value::OrderedDict | Value::Counter) => Self::Mapping,
            Some(Value::Set) => Self::Set,
            Some(Value::Tensor | Value::Parameter) => Self::Tensor,
            Some(Value::Storage) => Self::Storage,
            Some(Value::Global(_)) => Self::Global,
            Some(Value::Instance | Value::ByteArray) => Self::Instance,
            Some(Value::Chosen | Value::Other) | None => Self::Other,
        }
    }
}

/// Whether a value can be a key.
fn is_key(value: Value) -> bool {
    match value {
        Value::Tuple { is_key, .. } => is_key,
        Value::List
        | Value::Dict
        | Value::OrderedDict
        | Value::Counter
        | Value::Set
        | Value::ByteArray => false,
        _ => true,
    }
}

/// What was pushed since a mark.
struct Popped {
    count: usize,
    first: Option<Value>,
    /// Whether all can be keys.
    are_keys: bool,
    /// Whether every other one can, from the first on.
    has_keys: bool,
}

struct Torch {
    stack: Vec<Value>,
    marks: Vec<usize>,
    fence: usize,
    memo: Memo<Value>,
    limit: u32,
}

impl Torch {
    #[expect(clippy::too_many_lines, reason = "an arm for each opcode")]
    fn step(&mut self, operation: Operation<'_>) -> Result<(), Reason> {
        let Operation { opcode, argument, .. } = operation;
        match opcode {
            Opcode::Proto => Ok(()),
            Opcode::Stop => self.pop().map(|_| ()),
            Opcode::Mark => {
                if u32::try_from(self.marks.len()).is_ok_and(|marks| marks < self.limit) {
                    self.marks.push(self.stack.len());
                    self.fence = self.stack.len();
                    return Ok(());
                }
                because("there are too many marks")
            }
            Opcode::Global => match argument {
                Argument::Names(module, name) => {
                    let allowed = global(module, name)?;
                    self.push(Value::Global(allowed))
                }
                _ => Ok(()),
            },
            Opcode::NewObj => {
                let args = self.pop()?;
                let class = self.pop()?;
                let made = new_object(class, args)?;
                self.push(made)
            }
            Opcode::Reduce => {
                let args = self.pop()?;
                let function = self.pop()?;
                let made = called(function, args)?;
                self.push(made)
            }
            Opcode::Build => {
                let state = self.pop()?;
                let instance = self.top()?;
                built(instance, state)
            }
            Opcode::Append => {
                self.pop()?;
                self.expect(|value| value == Value::List, "only lists are appended to")
            }
            Opcode::Appends => {
                self.pop_mark()?;
                self.expect(|value| value == Value::List, "only lists are appended to")
            }
            Opcode::SetItem => {
                self.pop()?;
                let key = self.pop()?;
                self.expect_mapping()?;
                if is_key(key) { Ok(()) } else { because("a key cannot be hashed") }
            }
            Opcode::SetItems => {
                let Popped { count, has_keys, .. } = self.pop_mark()?;
                self.expect_mapping()?;
                match (count % 2, has_keys) {
                    (0, true) => Ok(()),
                    (0, false) => because("a key cannot be hashed"),
                    _ => because("there is a key without a value"),
                }
            }
            Opcode::Tuple => {
                let Popped { count, first, are_keys, .. } = self.pop_mark()?;
                self.push(tuple(count, first, are_keys))
            }
            Opcode::Tuple1 | Opcode::Tuple2 | Opcode::Tuple3 => {
                let len = match opcode {
                    Opcode::Tuple1 => 1,
                    Opcode::Tuple2 => 2,
                    _ => 3,
                };
                let (mut first, mut are_keys) = (None, true);
                for _ in 0..len {
                    let item = self.pop()?;
                    are_keys &= is_key(item);
                    first = Some(item);
                }
                self.push(tuple(len, first, are_keys))
            }
            Opcode::None => self.push(Value::None),
            Opcode::NewTrue | Opcode::NewFalse | Opcode::BinFloat => self.push(Value::Plain),
            Opcode::EmptyTuple => self.push(tuple(0, None, true)),
            Opcode::EmptyList => self.push(Value::List),
            Opcode::EmptyDict => self.push(Value::Dict),
            Opcode::EmptySet => self.push(Value::Set),
            Opcode::BinInt | Opcode::BinInt1 | Opcode::BinInt2 | Opcode::Long1 => {
                self.push(Value::Int)
            }
            Opcode::BinUnicode | Opcode::ShortBinString => match argument {
                Argument::Text(bytes) | Argument::Bytes(bytes) => {
                    if opcode == Opcode::ShortBinString && core::str::from_utf8(&bytes).is_err() {
                        return because("the string is not UTF-8");
                    }
                    self.push(Value::Text(Word::of(&bytes)))
                }
                _ => Ok(()),
            },
            Opcode::BinPersId => {
                let storage = match self.pop()? {
                    Value::Tuple { len: 5 | 6, first: First::Text(Word::Storage), .. } => {
                        Value::Storage
                    }
                    Value::Tuple { first, len, .. }
                        if len > 0 && first != First::Text(Word::Storage) =>
                    {
                        return because("a persistent id is not that of a storage");
                    }
                    _ => return because("a persistent id has another form than that of a storage"),
                };
                self.push(storage)
            }
            Opcode::BinGet | Opcode::LongBinGet => {
                let Argument::Number(number) = argument else {
                    return Ok(());
                };
                match self.memo.get(number) {
                    Some(value) => self.push(value),
                    None => because("a memo entry was never set"),
                }
            }
            Opcode::BinPut | Opcode::LongBinPut => {
                if let Argument::Number(number) = argument {
                    let top = self.top()?;
                    self.memo.put(number, top);
                }
                Ok(())
            }
            _ => Err(Reason {
                name: None,
                words: format!("unsupported operand {}", opcode.byte()).into(),
            }),
        }
    }

    fn push(&mut self, value: Value) -> Result<(), Reason> {
        if u32::try_from(self.stack.len()).is_ok_and(|len| len < self.limit) {
            self.stack.push(value);
            return Ok(());
        }
        because("there are too many values on the stack")
    }

    fn top(&self) -> Result<Value, Reason> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.fence => Ok(*top),
            _ => because("the stack is empty"),
        }
    }

    fn pop(&mut self) -> Result<Value, Reason> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Drops what was pushed since the last mark.
    fn pop_mark(&mut self) -> Result<Popped, Reason> {
        let Some(mark) = self.marks.pop() else {
            return because("there is no mark");
        };
        self.fence = self.marks.last().copied().unwrap_or(0);
        let items = self.stack.get(mark..).unwrap_or_default();
        let popped = Popped {
            count: items.len(),
            first: items.first().copied(),
            are_keys: items.iter().all(|item| is_key(*item)),
            has_keys: items.iter().step_by(2).all(|item| is_key(*item)),
        };
        self.stack.truncate(mark);
        Ok(popped)
    }

    fn expect(&self, is_wanted: fn(Value) -> bool, otherwise: &'static str) -> Result<(), Reason> {
        if is_wanted(self.top()?) { Ok(()) } else { because(otherwise) }
    }

    fn expect_mapping(&self) -> Result<(), Reason> {
        let is_mapping = |value| matches!(value, Value::Dict | Value::OrderedDict | Value::Counter);
        self.expect(is_mapping, "items are only set in dict, OrderedDict and Counter")
    }
}

fn tuple(len: usize, first: Option<Value>, is_key: bool) -> Value {
    Value::Tuple { len, first: First::of(first), is_key }
}

/// What torch has for a name. It joins module and name before it looks.
fn global(module: &str, name: &str) -> Result<Known, Reason> {
    let (module, name) = python2::renamed(module, name);
    // Names in the table have no dots, so that a module in a name counts as one.
    let found = match name.rsplit_once('.') {
        Some((more, name)) => allowed(&format!("{module}.{more}"), name),
        None => allowed(module, name),
    };
    found.ok_or_else(|| {
        let full = crate::machine::full_name(module, name);
        let words = format!("{} is not allowed", shortened(&full)).into();
        Reason { name: Some(full), words }
    })
}

/// What torch has for a name, if it allows it.
fn allowed(module: &str, name: &str) -> Option<Known> {
    if matches!(module, "torch.sparse" | "torch.cuda.sparse") {
        let dtype = name.strip_suffix("Tensor")?;
        let is_one =
            ["BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"]
                .contains(&dtype);
        return is_one.then_some(Known::Tensor);
    }
    known(module, name).filter(|known| {
        !matches!(
            known,
            Known::Dict
                | Known::DefaultDict
                | Known::RebuildNestedTensor
                | Known::LoadFromBytes
                | Known::Buffer
                | Known::NumpyReconstruct
                | Known::NumpyScalar
                | Known::NdArray
                | Known::NumpyDtype
                | Known::NumpyFromBuffer
                | Known::FrozenSet
                | Known::Slice
                | Known::Range
                | Known::Value
        )
    })
}

/// What `REDUCE` makes.
fn called(function: Value, args: Value) -> Result<Value, Reason> {
    let Value::Global(known) = function else {
        return because("what is called is not one of the functions that are allowed");
    };
    let (least, most) = match known {
        Known::Dtype(_) | Known::QScheme(_) | Known::Storage(_) => {
            return because("what is called cannot be called");
        }
        Known::RebuildTensor
        | Known::RebuildParameterWithState
        | Known::RebuildFromTypeV2
        | Known::RebuildMetaTensorNoStorage
        | Known::RebuildDeviceTensorFromCpuTensor
        | Known::RebuildDeviceTensorFromNumpy => (4, 4),
        Known::RebuildTensorV2 => (6, 7),
        Known::RebuildTensorV3 => (7, 8),
        Known::RebuildParameter => (3, 3),
        Known::RebuildSparseTensor => (2, 2),
        Known::RebuildQTensor => (7, 7),
        Known::RebuildWrapperSubclass => (8, 8),
        Known::GetLayout => (1, 1),
        Known::CodecsEncode => (1, 3),
        Known::Device => (1, 2),
        Known::Complex => (0, 2),
        Known::OrderedDict | Known::Counter | Known::Set | Known::Size => (0, 1),
        Known::ByteArray | Known::Parameter => (0, 3),
        _ => (0, usize::MAX),
    };
    match args {
        Value::Tuple { len, .. } if len < least || len > most => {
            return Err(Reason {
                name: None,
                words: format!("the call has {len} arguments, and takes {least} to {most}").into(),
            });
        }
        Value::None | Value::Plain | Value::Int | Value::Global(_) => {
            return because("the arguments of a call are no sequence");
        }
        _ => {}
    }
    fits(known, args)?;
    Ok(made(known))
}

/// Whether the first argument is of a type that the function does not fail on.
fn fits(known: Known, args: Value) -> Result<(), Reason> {
    let Value::Tuple { len: 1.., first, .. } = args else {
        return Ok(());
    };
    match (known, first) {
        (
            Known::Size,
            First::None | First::Number | First::Text(_) | First::Global | First::Storage,
        ) => because("a Size is made of something that is no sequence"),
        (Known::GetLayout, first) if first != First::Text(Word::Layout) => {
            because("there is no layout of this name")
        }
        (
            Known::RebuildTensor
            | Known::RebuildTensorV2
            | Known::RebuildTensorV3
            | Known::RebuildQTensor,
            first,
        ) if !matches!(first, First::Storage | First::Other) => {
            because("a tensor is made of something that is no storage")
        }
        (
            Known::RebuildParameter | Known::RebuildParameterWithState,
            First::Number
            | First::Text(_)
            | First::Sequence
            | First::Mapping
            | First::Set
            | First::Storage
            | First::Global
            | First::Instance,
        ) => because("a parameter is made of something that is no tensor"),
        _ => Ok(()),
    }
}

/// What `NEWOBJ` makes.
fn new_object(class: Value, args: Value) -> Result<Value, Reason> {
    match class {
        Value::Global(
            known @ (Known::Parameter
            | Known::OrderedDict
            | Known::Counter
            | Known::Set
            | Known::Size
            | Known::Tensor
            | Known::LegacyTensor(_)
            | Known::Device
            | Known::Complex
            | Known::ByteArray
            | Known::TypedStorage
            | Known::UntypedStorage),
        ) => {
            fits(known, args)?;
            Ok(made(known))
        }
        _ => because("only instances of classes that are allowed are made"),
    }
}

fn made(known: Known) -> Value {
    match known {
        Known::OrderedDict => Value::OrderedDict,
        Known::Counter => Value::Counter,
        Known::Set => Value::Set,
        Known::Parameter | Known::RebuildParameter | Known::RebuildParameterWithState => {
            Value::Parameter
        }
        Known::RebuildFromTypeV2 | Known::RebuildWrapperSubclass => Value::Chosen,
        Known::GetLayout => Value::Other,
        Known::CodecsEncode => Value::Text(Word::Other),
        Known::ByteArray => Value::ByteArray,
        Known::Size
        | Known::Device
        | Known::Complex
        | Known::TypedStorage
        | Known::UntypedStorage => Value::Instance,
        _ => Value::Tensor,
    }
}

/// What `BUILD` does.
fn built(instance: Value, state: Value) -> Result<(), Reason> {
    let is_mapping = matches!(
        state,
        Value::Dict | Value::OrderedDict | Value::Counter | Value::List | Value::Tuple { .. }
    );
    match instance {
        Value::OrderedDict if !is_mapping => because("the state of an OrderedDict is no mapping"),
        Value::Tensor
        | Value::Parameter
        | Value::OrderedDict
        | Value::Counter
        | Value::Storage
        | Value::Instance
        | Value::ByteArray
        | Value::Chosen => Ok(()),
        _ => {
            because("only Tensor, Parameter, OrderedDict and classes that are allowed get a state")
        }
    }
}
