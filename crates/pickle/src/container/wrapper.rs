//! What files may be packed into as a whole. Some of it is unpacked, for scanning.

use alloc::format;
use alloc::vec::Vec;

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::Wrapper;
use super::fields::{Fields, len};
use crate::{Error, Limits};

/// What begins with these bytes.
pub(super) fn recognize(head: &[u8]) -> Option<Wrapper> {
    let found = SIGNATURES.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, wrapper)) = found {
        return Some(*wrapper);
    }
    match head {
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
            if rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
        {
            Some(Wrapper::Bzip2)
        }
        // A frame that readers skip.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Wrapper::Zstd),
        // Its properties, the size of its window, and that of its content or none.
        [0x5d, 0, 0, _, _, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..]
        | [0x5d, 0, 0, _, _, _, _, _, _, _, 0, 0, 0, ..] => Some(Wrapper::Lzma),
        [first, second, ..] if first & 0x8f == 0x08 => {
            let check = u16::from_be_bytes([*first, *second]);
            (check % 31 == 0 && second & 0x20 == 0 && *first == 0x78).then_some(Wrapper::Zlib)
        }
        _ => None,
    }
}

const SIGNATURES: [(&[u8], Wrapper); 7] = [
    (b"\x1f\x8b\x08", Wrapper::Gzip),
    (b"\xfd7zXZ\0", Wrapper::Xz),
    (b"\x28\xb5\x2f\xfd", Wrapper::Zstd),
    (b"\x04\x22\x4d\x18", Wrapper::Lz4),
    (b"ZF0x", Wrapper::JoblibZ),
    (b"7z\xbc\xaf\x27\x1c", Wrapper::SevenZip),
    (b"Rar!\x1a\x07", Wrapper::Rar),
];

/// What was packed, and whether all of it is there.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unpacked {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Why there are no more, if not because they end. What is there is to be scanned all the same.
    pub error: Option<Error>,
}

/// Unpacks zlib, gzip and joblib's first format, of a whole file.
///
/// # Errors
///
/// `wrapper` for the other formats, and for a header that is malformed.
pub fn unpack(wrapper: Wrapper, bytes: &[u8], limits: &Limits) -> Result<Unpacked, Error> {
    match wrapper {
        Wrapper::Zlib => Ok(inflated(bytes, DataFormat::Zlib, limits)),
        Wrapper::Gzip => {
            let start = gzip_header(bytes)
                .ok_or_else(|| Error::new("wrapper", "the header of gzip is cut off").at(0))?;
            Ok(inflated(start, DataFormat::Raw, limits))
        }
        Wrapper::JoblibZ => {
            // `ZF`, then the length as `hex` writes it, padded to 19 characters, or 21 with an `L`.
            let start = bytes.iter().position(|byte| *byte == 0x78 && bytes.first() != Some(byte));
            let start = bytes
                .windows(2)
                .enumerate()
                .skip(4)
                .find(|(_, pair)| recognize(pair) == Some(Wrapper::Zlib))
                .map(|(position, _)| position)
                .or(start);
            let packed = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
            Ok(inflated(packed, DataFormat::Zlib, limits))
        }
        other => {
            let message = format!("what is packed as {} is not unpacked", other.name());
            Err(Error::new("wrapper", message).at(0))
        }
    }
}

/// What follows the header of a member.
fn gzip_header(bytes: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields::new(bytes);
    let flags = *fields.take(10)?.get(3)?;
    if flags & 0x04 != 0 {
        let extra = fields.u16()?;
        fields.take(extra.into())?;
    }
    for flag in [0x08, 0x10] {
        if flags & flag != 0 {
            let end = fields.rest().iter().position(|byte| *byte == 0)?;
            fields.take(end.checked_add(1)?)?;
        }
    }
    if flags & 0x02 != 0 {
        fields.u16()?;
    }
    Some(fields.rest())
}

/// Inflates until the end, a fault or a limit.
fn inflated(bytes: &[u8], format: DataFormat, limits: &Limits) -> Unpacked {
    const HARMLESS: u64 = 1 << 20;
    let allowed = len(bytes).saturating_mul(limits.ratio.into()).max(HARMLESS);
    let mut state = InflateState::new_boxed(format);
    let mut unpacked = Vec::new();
    let mut piece = alloc::vec![0; 64 << 10];
    let mut rest = bytes;
    let error = loop {
        let result = inflate(&mut state, rest, &mut piece, MZFlush::None);
        rest = rest.get(result.bytes_consumed..).unwrap_or_default();
        let given = piece.get(..result.bytes_written).unwrap_or_default();
        let total = len(&unpacked).saturating_add(len(given));
        if total > limits.pickle_bytes {
            let message = format!("more than the limit of {} bytes is packed", limits.pickle_bytes);
            break Some(Error::new("limit-pickle-bytes", message));
        }
        if total > allowed {
            let message =
                format!("{} bytes become more than {} times as many", bytes.len(), limits.ratio);
            break Some(Error::new("limit-ratio", message));
        }
        unpacked.extend_from_slice(given);
        let none = result.bytes_consumed == 0 && result.bytes_written == 0;
        match result.status {
            Ok(MZStatus::StreamEnd) => break None,
            Ok(_) | Err(MZError::Buf) if !none => {}
            Ok(_) | Err(MZError::Buf) => {
                break Some(Error::new("inflate", "what is packed is cut off"));
            }
            Err(_) => break Some(Error::new("inflate", "what is packed is damaged")),
        }
    };
    Unpacked { bytes: unpacked, error }
}
