//! The bytes of a header, the one way Weigh writes them (FORMAT.md §5).

use alloc::collections::{BTreeMap, BTreeSet};
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
    /// The alignment is not a power of two from 8 to 2^20.
    Alignment(u64),
}

impl EncodeError {
    /// The stable code: that of the rule that the file would break, or `alignment`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateName(_) => "duplicate-key",
            Self::ReservedName => "reserved-name",
            Self::TooLarge(_) => "size-overflow",
            Self::NotBytes { .. } => "size-not-bytes",
            Self::HeaderTooLarge { .. } => "header-over-limit",
            Self::Alignment(_) => "alignment",
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
            Self::NotBytes { name, bits } => {
                write!(f, "tensor `{}` is {bits} bits, not a whole number of bytes", shown(name))
            }
            Self::HeaderTooLarge { bytes, limit } => {
                write!(f, "the header would be {bytes} bytes; readers take {limit}")
            }
            Self::Alignment(alignment) => {
                write!(f, "alignment {alignment} is not a power of two from 8 to 2^20")
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
/// The same input gives the same bytes, in whatever order the tensors are declared: they are stored by
/// dtype, last of FORMAT.md §4 first, then by the bytes of their names. The data section starts at a
/// multiple of `alignment` bytes, a power of two from 8 on.
///
/// # Errors
///
/// [`EncodeError`] if a reader would refuse the file.
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh_format::{Dtype, encode::{Declaration, encode}};
///
/// let tensors = [Declaration { name: "w", dtype: Dtype::F32, shape: &[2] }];
/// let encoded = encode(&tensors, &BTreeMap::new(), 8)?;
/// assert_eq!(encoded.data_offsets, [0..8]);
/// assert!(encoded.bytes[8..].starts_with(br#"{"w":{"dtype":"F32","shape":[2],"#));
/// # Ok::<(), weigh_format::encode::EncodeError>(())
/// ```
pub fn encode(
    tensors: &[Declaration<'_>],
    metadata: &BTreeMap<String, String>,
    alignment: u64,
) -> Result<Encoded, EncodeError> {
    if !alignment.is_power_of_two() || !(8..=1 << 20).contains(&alignment) {
        return Err(EncodeError::Alignment(alignment));
    }
    let mut names = BTreeSet::new();
    for tensor in tensors {
        if tensor.name == METADATA {
            return Err(EncodeError::ReservedName);
        }
        if !names.insert(tensor.name) {
            return Err(EncodeError::DuplicateName(tensor.name.into()));
        }
    }
    let mut stored: Vec<(usize, &Declaration<'_>)> = tensors.iter().enumerate().collect();
    stored.sort_unstable_by(|(_, one), (_, other)| {
        other.dtype.cmp(&one.dtype).then_with(|| one.name.cmp(other.name))
    });
    let mut data_offsets = alloc::vec![0..0; tensors.len()];
    let mut data_len = 0_u64;
    for (number, tensor) in &stored {
        let begin = data_len;
        data_len = begin
            .checked_add(byte_len(tensor)?)
            .ok_or_else(|| EncodeError::TooLarge(tensor.name.into()))?;
        if let Some(slot) = data_offsets.get_mut(*number) {
            *slot = begin..data_len;
        }
    }
    let json = json(&stored, &data_offsets, metadata);
    let bytes = with_prefix(&json, alignment)?;
    Ok(Encoded { bytes, data_offsets, data_len })
}

fn byte_len(tensor: &Declaration<'_>) -> Result<u64, EncodeError> {
    let name = || String::from(tensor.name);
    let Elements::Exact(elements) = shape::elements(tensor.shape) else {
        return Err(EncodeError::TooLarge(name()));
    };
    shape::byte_len(tensor.dtype, elements).map_err(|error| match error {
        SizeError::Overflow => EncodeError::TooLarge(name()),
        SizeError::NotBytes { bits } => EncodeError::NotBytes { name: name(), bits },
    })
}

fn json(
    stored: &[(usize, &Declaration<'_>)],
    data_offsets: &[Range<u64>],
    metadata: &BTreeMap<String, String>,
) -> String {
    let mut json = String::from("{");
    if !metadata.is_empty() {
        json.push_str("\"__metadata__\":{");
        for (key, value) in metadata {
            separate(&mut json);
            string(&mut json, key);
            json.push(':');
            string(&mut json, value);
        }
        json.push('}');
    }
    for (number, tensor) in stored {
        separate(&mut json);
        string(&mut json, tensor.name);
        let offsets = data_offsets.get(*number).cloned().unwrap_or_default();
        // Writing to a String does not fail.
        let _ = write!(json, ":{{\"dtype\":\"{}\",\"shape\":[", tensor.dtype);
        for (axis, dimension) in tensor.shape.iter().enumerate() {
            let comma = if axis == 0 { "" } else { "," };
            let _ = write!(json, "{comma}{dimension}");
        }
        let _ = write!(json, "],\"data_offsets\":[{},{}]}}", offsets.start, offsets.end);
    }
    json.push('}');
    json
}

/// A comma, unless what comes is the first.
fn separate(json: &mut String) {
    if !json.ends_with('{') {
        json.push(',');
    }
}

/// A JSON string with no more escapes than JSON asks for.
fn string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '\0'..='\u{1f}' => {
                let _ = crate::text::write_escape(json, character);
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}

fn with_prefix(json: &str, alignment: u64) -> Result<Vec<u8>, EncodeError> {
    let unpadded = crate::table::length(json).saturating_add(PREFIX_BYTES);
    let data_start = unpadded.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
    let header_bytes = data_start.saturating_sub(PREFIX_BYTES);
    let size = usize::try_from(data_start)
        .ok()
        .filter(|_| header_bytes <= HEADER_LIMIT)
        .ok_or(EncodeError::HeaderTooLarge { bytes: header_bytes, limit: HEADER_LIMIT })?;
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(&header_bytes.to_le_bytes());
    bytes.extend_from_slice(json.as_bytes());
    bytes.resize(size, b' ');
    Ok(bytes)
}
