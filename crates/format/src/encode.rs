//! The bytes of a header, the one way Weigh writes them (FORMAT.md §5).
//!
//! A [`Layout`] says in which order and with how much room. Whatever it says, the same tensors and
//! metadata give the same bytes, and nothing is written that a reader would refuse. This module writes
//! no file: it says what the first bytes are and where the data of each tensor goes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::ops::Range;

use crate::header::PREFIX_BYTES;
use crate::shape::{self, Elements, SizeError};
use crate::{Dtype, Limits};

/// A tensor to write.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a declaration, built by literal")]
pub struct Declaration<'a> {
    /// The name, not escaped.
    pub name: &'a str,
    /// The element type.
    pub dtype: Dtype,
    /// The dimensions; empty for a scalar.
    pub shape: &'a [u64],
}

/// A header, and where the data of each tensor goes.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Encoded {
    /// The length field, the JSON and its padding: the file up to its data section.
    pub bytes: Vec<u8>,
    /// For each declaration, in the order given, its bytes of the data section.
    pub data_offsets: Vec<Range<u64>>,
    /// Length of the data section, in bytes.
    pub data_len: u64,
}

/// How a header is laid out.
///
/// ```
/// use weigh_format::encode::Layout;
///
/// let layout = Layout { alignment: 4096, ..Layout::default() };
/// assert_eq!((layout.reserve, layout.room), (0, None));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Layout {
    /// In which order the tensors are stored.
    pub order: Order,
    /// What the data section's offset in the file is a multiple of, in bytes: a power of two from 8 to 2^20.
    pub alignment: u64,
    /// Spaces to leave in the header at least, so that a longer one fits in its place later.
    pub reserve: u64,
    /// The header's length in bytes, when it must be exactly this: as when it takes the place of another.
    /// The data section then starts where that leaves it, aligned or not.
    pub room: Option<u64>,
    /// Whether metadata that is given and has no pair is written as `{}`. Otherwise it is left out.
    pub empty_metadata: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self { order: Order::Sorted, alignment: 8, reserve: 0, room: None, empty_metadata: false }
    }
}

impl Layout {
    /// Byte for byte what `safetensors` 0.8.0 writes of the same tensors, with at most one metadata pair.
    ///
    /// It writes more pairs in an order that changes from run to run; here they are sorted.
    #[must_use]
    pub fn reference() -> Self {
        Self { empty_metadata: true, ..Self::default() }
    }
}

/// In which order tensors are stored, and their entries written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an argument, and FORMAT.md §5 has these two")]
pub enum Order {
    /// By dtype, last of FORMAT.md §4 first, then by the bytes of their names.
    #[default]
    Sorted,
    /// As they are declared: what the edit of a file keeps.
    Given,
}

/// Why a header cannot be written. Nothing has been.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Two tensors have this name.
    DuplicateName(String),
    /// A tensor is named `__metadata__`.
    ReservedName,
    /// The shape of this tensor has too many elements or bytes.
    TooLarge(String),
    /// The shape of this tensor has a zero dimension, and the product of the others is over 2^64 - 1: some readers
    /// refuse it, depending on their order.
    OverflowBesideZero(String),
    /// All tensors together have over 2^64 - 1 bytes.
    DataTooLarge,
    /// This tensor is not a whole number of bytes.
    NotBytes {
        /// The tensor's name.
        name: String,
        /// Its size in bits.
        bits: u128,
    },
    /// The header would be longer than readers take.
    HeaderTooLarge {
        /// Its length in bytes.
        bytes: u64,
        /// What readers take, in bytes.
        limit: u64,
    },
    /// The header would be longer than readers take, for [`Layout::reserve`].
    ReserveTooLarge {
        /// Bytes that were to be left free.
        reserve: u64,
        /// Its length in bytes, with them.
        bytes: u64,
        /// What readers take, in bytes.
        limit: u64,
    },
    /// The alignment is not a power of two from 8 to 2^20.
    Alignment(u64),
    /// The header does not fit in [`Layout::room`].
    NoRoom {
        /// Its length in bytes, with [`Layout::reserve`].
        needed: u64,
        /// The room in bytes.
        room: u64,
    },
}

impl EncodeError {
    /// The stable code: that of the rule that the file would break, `alignment` or `no-room`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateName(_) => "duplicate-key",
            Self::ReservedName => "reserved-name",
            Self::TooLarge(_) | Self::DataTooLarge => "size-overflow",
            Self::OverflowBesideZero(_) => "shape-overflow-beside-zero",
            Self::NotBytes { .. } => "size-not-bytes",
            Self::HeaderTooLarge { .. } | Self::ReserveTooLarge { .. } => "header-over-limit",
            Self::Alignment(_) => "alignment",
            Self::NoRoom { .. } => "no-room",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::DuplicateName(_) => "Rename or leave out one of them.",
            Self::ReservedName => "Give it another name.",
            Self::TooLarge(_) => "No reader takes such a tensor.",
            Self::NotBytes { .. } => "Take a dtype of whole bytes, or leave it as it is.",
            Self::OverflowBesideZero(_) => {
                "Leave the tensor out: it has no elements, and some readers refuse its shape."
            }
            Self::DataTooLarge => "Write them to several files.",
            Self::ReserveTooLarge { .. } => "Reserve less.",
            Self::HeaderTooLarge { .. } => "Write fewer tensors to a file, or less metadata.",
            Self::Alignment(_) => "Take 8, 64 or 4096.",
            Self::NoRoom { .. } => "Write the file anew, with room to spare for the next time.",
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = crate::text::escaped;
        match self {
            Self::DuplicateName(name) => write!(f, "two tensors are named `{}`", shown(name)),
            Self::ReservedName => f.write_str("no tensor may be named `__metadata__`"),
            Self::TooLarge(name) => write!(
                f,
                "the shape of tensor `{}` is over 2^64 - 1 elements or bytes",
                shown(name)
            ),
            Self::OverflowBesideZero(name) => write!(
                f,
                "the dimensions of tensor `{}` beside the zero one have a product over 2^64 - 1",
                shown(name)
            ),
            Self::DataTooLarge => f.write_str("all tensors together are over 2^64 - 1 bytes"),
            Self::NotBytes { name, bits } => {
                write!(f, "tensor `{}` is {bits} bits, not a whole number of bytes", shown(name))
            }
            Self::HeaderTooLarge { bytes, limit } => {
                write!(f, "the header would be {bytes} bytes; readers take {limit}")
            }
            Self::ReserveTooLarge { reserve, bytes, limit } => write!(
                f,
                "with {reserve} bytes left free the header would be {bytes} bytes; readers take {limit}"
            ),
            Self::Alignment(alignment) => {
                write!(f, "alignment {alignment} is not a power of two from 8 to 2^20")
            }
            Self::NoRoom { needed, room } => {
                write!(f, "the header needs {needed} bytes, and there is room for {room}")
            }
        }
    }
}

impl core::error::Error for EncodeError {}

/// The key that is reserved for the metadata.
pub(crate) const METADATA: &str = "__metadata__";

/// Bytes of a header that every reader takes.
const HEADER_LIMIT: u64 = Limits::HEADER_BYTES;

/// Encodes the header of a file with these tensors and this metadata.
///
/// The same input gives the same bytes; in [`Order::Sorted`] it does in whatever order the tensors are
/// declared. Memory is a small multiple of the declarations and of what readers take as a header.
///
/// # Errors
///
/// [`EncodeError`] if a reader would refuse the file, or `layout` cannot be had.
///
/// ```
/// use weigh_format::{Dtype, encode::{Declaration, Layout, encode}};
///
/// let tensors = [Declaration { name: "w", dtype: Dtype::F32, shape: &[2] }];
/// let encoded = encode(&tensors, None, &Layout::default())?;
/// assert_eq!(encoded.data_offsets, [0..8]);
/// assert!(encoded.bytes[8..].starts_with(br#"{"w":{"dtype":"F32","shape":[2],"#));
/// # Ok::<(), weigh_format::encode::EncodeError>(())
/// ```
pub fn encode(
    tensors: &[Declaration<'_>],
    metadata: Option<&BTreeMap<String, String>>,
    layout: &Layout,
) -> Result<Encoded, EncodeError> {
    if !layout.alignment.is_power_of_two() || !(8..=1 << 20).contains(&layout.alignment) {
        return Err(EncodeError::Alignment(layout.alignment));
    }
    let by_name = by_name(tensors)?;
    let stored = match layout.order {
        Order::Sorted => by_dtype(tensors, by_name),
        Order::Given => (0..tensors.len()).collect(),
    };
    let mut data_offsets = alloc::vec![0..0; tensors.len()];
    let mut data_len = 0_u64;
    let mut header = Text::new();
    header.metadata(metadata.filter(|pairs| layout.empty_metadata || !pairs.is_empty()));
    for number in stored {
        let (Some(tensor), Some(slot)) = (tensors.get(number), data_offsets.get_mut(number)) else {
            continue;
        };
        let begin = data_len;
        data_len = begin.checked_add(byte_len(tensor)?).ok_or(EncodeError::DataTooLarge)?;
        *slot = begin..data_len;
        header.entry(tensor, slot);
    }
    Ok(Encoded { bytes: header.finish(layout)?, data_offsets, data_len })
}

/// The numbers of the tensors by the bytes of their names, which are checked.
fn by_name(tensors: &[Declaration<'_>]) -> Result<Vec<usize>, EncodeError> {
    if tensors.iter().any(|tensor| tensor.name == METADATA) {
        return Err(EncodeError::ReservedName);
    }
    let mut sorted: Vec<(&str, usize)> =
        tensors.iter().enumerate().map(|(number, tensor)| (tensor.name, number)).collect();
    sorted.sort_unstable();
    match sorted.array_windows().find(|[(one, _), (other, _)]| one == other) {
        Some([(name, _), _]) => Err(EncodeError::DuplicateName((*name).into())),
        None => Ok(sorted.into_iter().map(|(_, number)| number).collect()),
    }
}

/// The numbers of the tensors by dtype, widest first; those of one dtype stay in their order.
fn by_dtype(tensors: &[Declaration<'_>], mut numbers: Vec<usize>) -> Vec<usize> {
    let dtype = |number: &usize| tensors.get(*number).map(|tensor| tensor.dtype);
    numbers.sort_by_key(|number| core::cmp::Reverse(dtype(number)));
    numbers
}

fn byte_len(tensor: &Declaration<'_>) -> Result<u64, EncodeError> {
    let name = || String::from(tensor.name);
    let elements = match shape::elements(tensor.shape) {
        Elements::Exact(elements) => elements,
        Elements::NoneBesideOverflow => return Err(EncodeError::OverflowBesideZero(name())),
        Elements::Overflow => return Err(EncodeError::TooLarge(name())),
    };
    shape::byte_len(tensor.dtype, elements).map_err(|error| match error {
        SizeError::Overflow => EncodeError::TooLarge(name()),
        SizeError::NotBytes { bits } => EncodeError::NotBytes { name: name(), bits },
    })
}

/// A header as it grows: the length field, then JSON.
///
/// What is over the limit is counted, not kept.
struct Text {
    bytes: Vec<u8>,
    json_bytes: u64,
    is_first: bool,
}

impl Text {
    fn new() -> Self {
        let mut text = Self { bytes: Vec::new(), json_bytes: 0, is_first: true };
        text.bytes.extend_from_slice(&[0; 8]);
        text.push("{");
        text
    }

    fn push(&mut self, text: &str) {
        self.json_bytes = self.json_bytes.saturating_add(crate::table::length(text));
        if self.json_bytes <= HEADER_LIMIT {
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// Opens a member of the object that is being written.
    fn key(&mut self, key: &str) {
        if !core::mem::take(&mut self.is_first) {
            self.push(",");
        }
        self.string(key);
        self.push(":");
    }

    fn metadata(&mut self, pairs: Option<&BTreeMap<String, String>>) {
        let Some(pairs) = pairs else {
            return;
        };
        self.key(METADATA);
        self.push("{");
        self.is_first = true;
        for (key, value) in pairs {
            self.key(key);
            self.string(value);
        }
        self.push("}");
        self.is_first = false;
    }

    fn entry(&mut self, tensor: &Declaration<'_>, data_offsets: &Range<u64>) {
        self.key(tensor.name);
        self.push("{\"dtype\":\"");
        self.push(tensor.dtype.name());
        self.push("\",\"shape\":[");
        for (axis, dimension) in tensor.shape.iter().enumerate() {
            if axis > 0 {
                self.push(",");
            }
            self.number(*dimension);
        }
        self.push("],\"data_offsets\":[");
        self.number(data_offsets.start);
        self.push(",");
        self.number(data_offsets.end);
        self.push("]}");
    }

    fn number(&mut self, number: u64) {
        // Writing to this does not fail.
        let _ = write!(self, "{number}");
    }

    /// A JSON string with no more escapes than JSON asks for.
    fn string(&mut self, text: &str) {
        self.push("\"");
        let mut rest = text;
        while let Some(at) = rest.find(|it| matches!(it, '"' | '\\' | '\0'..='\u{1f}')) {
            let (plain, escaped) = rest.split_at_checked(at).unwrap_or((rest, ""));
            self.push(plain);
            let mut characters = escaped.chars();
            match characters.next() {
                Some('"') => self.push("\\\""),
                Some('\\') => self.push("\\\\"),
                Some('\u{8}') => self.push("\\b"),
                Some('\u{c}') => self.push("\\f"),
                Some(control) => {
                    let _ = crate::text::write_escape(self, control);
                }
                None => {}
            }
            rest = characters.as_str();
        }
        self.push(rest);
        self.push("\"");
    }

    /// Why a header of so many bytes is too long.
    fn too_large(&self, reserve: u64, bytes: u64) -> EncodeError {
        let limit = HEADER_LIMIT;
        if reserve > 0 && self.json_bytes <= limit {
            EncodeError::ReserveTooLarge { reserve, bytes, limit }
        } else {
            EncodeError::HeaderTooLarge { bytes, limit }
        }
    }

    /// The whole header, its length known and its room filled with spaces.
    fn finish(mut self, layout: &Layout) -> Result<Vec<u8>, EncodeError> {
        self.push("}");
        let needed = self.json_bytes.saturating_add(layout.reserve);
        let aligned = || {
            let unaligned = needed.saturating_add(PREFIX_BYTES);
            let data_start = unaligned.checked_next_multiple_of(layout.alignment);
            data_start.map_or(u64::MAX, |it| it.saturating_sub(PREFIX_BYTES))
        };
        let header_bytes = layout.room.unwrap_or_else(aligned);
        if header_bytes < needed {
            return Err(EncodeError::NoRoom { needed, room: header_bytes });
        }
        let size = usize::try_from(header_bytes.saturating_add(PREFIX_BYTES))
            .ok()
            .filter(|_| header_bytes <= HEADER_LIMIT)
            .ok_or_else(|| self.too_large(layout.reserve, header_bytes))?;
        self.bytes.resize(size, b' ');
        if let Some(length) = self.bytes.first_chunk_mut() {
            *length = header_bytes.to_le_bytes();
        }
        Ok(self.bytes)
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}
