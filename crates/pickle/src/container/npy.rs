//! The header of numpy's `.npy`, of all its versions, read as data: no literal is evaluated.

mod literal;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use weigh_format::{Dtype, Finding, Findings};

use super::fields::Fields;
use super::rules;
use super::torch::ByteOrder;
use crate::{Error, Spans, Stop};
use literal::{Literal, Value};

/// What the elements of an array are.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Element {
    /// Numbers that safetensors has too.
    Number {
        /// Their type.
        dtype: Dtype,
        /// The order of their bytes.
        byte_order: ByteOrder,
    },
    /// Objects of Python: a pickle follows the header.
    Object,
    /// Something else, by its name in numpy.
    Other {
        /// As the header spells it.
        name: String,
    },
}

/// A header.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// What the elements are.
    pub element: Element,
    /// Whether the first dimension runs fastest.
    pub fortran_order: bool,
    /// The dimensions.
    pub shape: Vec<u64>,
    /// Bytes of the header, from the start of the array's file: the data follow.
    pub len: u64,
}

/// An array in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Array {
    /// Its header.
    pub header: Header,
    /// The bytes of its elements, or of its pickle, in the file.
    pub data: Range<u64>,
    /// What is odd about it.
    pub findings: Findings,
}

/// Bytes that say how long a header is.
pub const PREFIX: u64 = 12;
/// Bytes of a header at most. One of plain numbers has under 200.
const MOST: u64 = 1 << 20;

/// How many bytes a header has, from the first [`PREFIX`] bytes.
///
/// # Errors
///
/// `npy-header` if they are not those of an array, `limit-npy-header` if it is over 1 MiB.
pub fn header_len(prefix: &[u8]) -> Result<u64, Error> {
    let fault = |message: &str| Error::new("npy-header", message).at(0);
    let Some([major, _, rest @ ..]) = prefix.strip_prefix(b"\x93NUMPY") else {
        return Err(fault("the file does not begin as an array of numpy does"));
    };
    let mut fields = Fields::new(rest);
    let len = match major {
        1 => fields.u16().map(|len| u64::from(len).saturating_add(10)),
        2 | 3 => fields.u32().map(|len| u64::from(len).saturating_add(12)),
        other => return Err(fault(&format!("the version is {other}, not 1 to 3"))),
    };
    let len = len.ok_or_else(|| fault("the file ends in the header"))?;
    if len > MOST {
        let message = format!("the header has {len} bytes, the limit is {MOST}");
        return Err(Error::new("limit-npy-header", message).at(0));
    }
    Ok(len)
}

/// Reads a header, from all of its bytes.
///
/// # Errors
///
/// `npy-header` if it is not a dictionary of `descr`, `fortran_order` and `shape`.
pub fn header(bytes: &[u8]) -> Result<Header, Error> {
    let len = header_len(bytes)?;
    let start: u64 = if bytes.get(6) == Some(&1) { 10 } else { 12 };
    let text = usize::try_from(start).ok().zip(usize::try_from(len).ok());
    let text = text.and_then(|(start, end)| bytes.get(start..end));
    let text = text.ok_or_else(|| Error::new("npy-header", "the file ends in the header").at(0))?;
    let fault = |message: &str| Error::new("npy-header", message).at(start);
    let entries = Literal::dictionary(text).map_err(fault)?;
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    for (key, value) in entries {
        let twice = match (key.as_slice(), value) {
            (b"descr", value) => descr.replace(value).is_some(),
            (b"fortran_order", Value::Bool(value)) => fortran_order.replace(value).is_some(),
            (b"shape", Value::Tuple(value)) => shape.replace(value).is_some(),
            _ => return Err(fault("a key is not known, or has a value of the wrong type")),
        };
        if twice {
            return Err(fault("a key comes twice"));
        }
    }
    let (Some(descr), Some(fortran_order), Some(shape)) = (descr, fortran_order, shape) else {
        return Err(fault("`descr`, `fortran_order` or `shape` is missing"));
    };
    let element = match descr {
        Value::Text(text) => element(&text),
        Value::List => Element::Other { name: String::from("structured") },
        _ => return Err(fault("`descr` is neither text nor a list")),
    };
    Ok(Header { element, fortran_order, shape, len })
}

/// Reads the array that is these bytes of a file.
///
/// # Errors
///
/// [`Stop::Missing`]; see [`header`]; `npy-truncated` if the elements end after the bytes.
pub fn read(spans: &Spans, span: Range<u64>) -> Result<Array, Stop> {
    let within = |len: u64| span.start..span.start.saturating_add(len).min(span.end);
    let prefix = spans.get(within(PREFIX))?;
    let len = header_len(prefix)?;
    let header = header(spans.get(within(len))?)?;
    let start = span.start.saturating_add(header.len);
    let mut findings = Findings::new();
    let mut end = span.end;
    if let Some(bytes) = header.data_bytes()? {
        end = start.checked_add(bytes).filter(|end| *end <= span.end).ok_or_else(|| {
            let left = span.end.saturating_sub(start);
            let message = format!("the elements have {bytes} bytes, {left} are there");
            Error::new("npy-truncated", message).at(start)
        })?;
        if end < span.end {
            let count = span.end.saturating_sub(end);
            let message = format!("{count} bytes follow the array");
            findings.push(Finding::new(&rules::NPY_TAIL, message).at(end..span.end));
        }
    }
    Ok(Array { header, data: start..end, findings })
}

impl Header {
    /// Bytes of all elements, if they are numbers.
    ///
    /// # Errors
    ///
    /// `npy-header` if there are more than 2^64.
    pub fn data_bytes(&self) -> Result<Option<u64>, Error> {
        let Element::Number { dtype, .. } = &self.element else { return Ok(None) };
        let size = u64::from(dtype.bits()).div_ceil(8);
        let elements = if self.shape.contains(&0) {
            Some(0)
        } else {
            self.shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
        };
        elements
            .and_then(|elements| elements.checked_mul(size))
            .map(Some)
            .ok_or_else(|| Error::new("npy-header", "the shape has more bytes than 2^64").at(0))
    }
}

/// What `descr` means.
fn element(text: &[u8]) -> Element {
    let other = || Element::Other { name: String::from_utf8_lossy(text).into_owned() };
    let Some((order, code)) = text.split_first() else { return other() };
    let dtype = match code {
        b"O" | b"O8" | b"O4" => return Element::Object,
        b"b1" => Dtype::BOOL,
        b"i1" => Dtype::I8,
        b"u1" => Dtype::U8,
        b"i2" => Dtype::I16,
        b"u2" => Dtype::U16,
        b"i4" => Dtype::I32,
        b"u4" => Dtype::U32,
        b"i8" => Dtype::I64,
        b"u8" => Dtype::U64,
        b"f2" => Dtype::F16,
        b"f4" => Dtype::F32,
        b"f8" => Dtype::F64,
        b"c8" => Dtype::C64,
        _ if text == b"O" => return Element::Object,
        _ => return other(),
    };
    let byte_order = match order {
        b'<' => ByteOrder::Little,
        b'>' => ByteOrder::Big,
        b'|' if dtype.bits() == 8 => ByteOrder::Little,
        _ => return other(),
    };
    Element::Number { dtype, byte_order }
}
