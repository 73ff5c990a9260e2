//! Whether `torch.load(weights_only=True)` takes a pickle, by the rules of torch 2.15.
//!
//! Its unpickler knows 34 opcodes and some 150 names, and checks what is called, built, set and appended to. All of
//! that is decided here. What is not: whether the calls themselves succeed (a tensor beyond its storage, say), beyond
//! the number of their arguments; and what the container does before and after.

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
    /// `None`, a truth value or a float.
    Plain,
    Int,
    /// Text or bytes, and whether they are `storage`.
    Text {
        is_storage: bool,
    },
    /// How many items, and whether the first is `storage`.
    Tuple {
        len: usize,
        is_storage: bool,
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
    /// An instance of another class that is allowed.
    Instance,
    /// Of a class that the file chose among those that are allowed.
    Chosen,
    /// Of a class that is not.
    Other,
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
                self.pop()?;
                let class = self.pop()?;
                let made = new_object(class)?;
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
                self.pop()?;
                self.expect_mapping()
            }
            Opcode::SetItems => {
                let (count, _) = self.pop_mark()?;
                self.expect_mapping()?;
                if count % 2 == 0 { Ok(()) } else { because("there is a key without a value") }
            }
            Opcode::Tuple => {
                let (len, first) = self.pop_mark()?;
                self.push(tuple(len, first))
            }
            Opcode::Tuple1 | Opcode::Tuple2 | Opcode::Tuple3 => {
                let len = match opcode {
                    Opcode::Tuple1 => 1,
                    Opcode::Tuple2 => 2,
                    _ => 3,
                };
                let mut first = None;
                for _ in 0..len {
                    first = Some(self.pop()?);
                }
                self.push(tuple(len, first))
            }
            Opcode::None | Opcode::NewTrue | Opcode::NewFalse | Opcode::BinFloat => {
                self.push(Value::Plain)
            }
            Opcode::EmptyTuple => self.push(tuple(0, None)),
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
                    self.push(Value::Text { is_storage: *bytes == *b"storage" })
                }
                _ => Ok(()),
            },
            Opcode::BinPersId => {
                let storage = match self.pop()? {
                    Value::Tuple { len: 5 | 6, is_storage: true } => Value::Storage,
                    Value::Tuple { is_storage: false, len } if len > 0 => {
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

    /// Drops what was pushed since the last mark: how many values, and the first.
    fn pop_mark(&mut self) -> Result<(usize, Option<Value>), Reason> {
        let Some(mark) = self.marks.pop() else {
            return because("there is no mark");
        };
        self.fence = self.marks.last().copied().unwrap_or(0);
        let first = self.stack.get(mark).copied();
        let count = self.stack.len().saturating_sub(mark);
        self.stack.truncate(mark);
        Ok((count, first))
    }

    fn expect(&self, is_wanted: fn(Value) -> bool, otherwise: &'static str) -> Result<(), Reason> {
        if is_wanted(self.top()?) { Ok(()) } else { because(otherwise) }
    }

    fn expect_mapping(&self) -> Result<(), Reason> {
        let is_mapping = |value| matches!(value, Value::Dict | Value::OrderedDict | Value::Counter);
        self.expect(is_mapping, "items are only set in dict, OrderedDict and Counter")
    }
}

fn tuple(len: usize, first: Option<Value>) -> Value {
    Value::Tuple { len, is_storage: first == Some(Value::Text { is_storage: true }) }
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
        Value::Plain | Value::Int | Value::Global(_) => {
            return because("the arguments of a call are no sequence");
        }
        _ => {}
    }
    Ok(made(known))
}

/// What `NEWOBJ` makes.
fn new_object(class: Value) -> Result<Value, Reason> {
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
        ) => Ok(made(known)),
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
        Known::CodecsEncode => Value::Text { is_storage: false },
        Known::Size
        | Known::Device
        | Known::Complex
        | Known::ByteArray
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
        | Value::Chosen => Ok(()),
        _ => {
            because("only Tensor, Parameter, OrderedDict and classes that are allowed get a state")
        }
    }
}
