//! What is packed as a whole, unpacked into memory under caps.

use std::io::{Cursor, ErrorKind, Read};

use weigh_pickle::container::Wrapper;
use weigh_pickle::{Error as PickleError, Limits};

/// Memory of a decoder, in KiB.
const DECODER: u32 = 64 << 10;

/// What unpacks to this or less is no bomb.
const HARMLESS: u64 = 1 << 20;

/// What was packed.
pub(super) struct Unpacked {
    /// The files: a name if the format has names, and the bytes, as far as they could be had.
    pub(super) files: Vec<(Option<String>, Vec<u8>)>,
    /// Why there is no more, if not because it ends.
    pub(super) error: Option<PickleError>,
    /// Bytes that follow what is packed.
    pub(super) tail: u64,
}

/// Unpacks `bytes`, to at most `most` bytes in all.
pub(super) fn unpack(wrapper: Wrapper, bytes: &[u8], most: u64, limits: &Limits) -> Unpacked {
    let packed = wide(bytes.len());
    let mut cap = Cap {
        left: most,
        ratio: packed.saturating_mul(limits.ratio.into()).max(HARMLESS),
        limits,
        packed,
    };
    match wrapper {
        Wrapper::Zlib => zlib(bytes, &mut cap),
        Wrapper::JoblibZ => zlib(joblib_data(bytes), &mut cap),
        Wrapper::Gzip => one(flate2::read::MultiGzDecoder::new(bytes), &mut cap),
        Wrapper::Bzip2 => one(bzip2::read::MultiBzDecoder::new(bytes), &mut cap),
        Wrapper::Xz => one(lzma_rust2::XzReader::new_mem_limit(bytes, true, DECODER), &mut cap),
        Wrapper::Lzma => match lzma_rust2::LzmaReader::new_mem_limit(bytes, DECODER, None) {
            Ok(mut reader) => {
                let (bytes, error) = cap.drain(&mut reader);
                // It reads ahead.
                let (rest, buffered) = reader.into_parts();
                let left = wide(rest.len()).saturating_add(wide(buffered.len()));
                let tail = if error.is_some() { 0 } else { left };
                Unpacked { files: vec![(None, bytes)], error, tail }
            }
            Err(error) => failed(damaged(&error)),
        },
        Wrapper::Zstd => zstd(bytes, &mut cap),
        Wrapper::Lz4 => lz4(bytes, &mut cap),
        Wrapper::SevenZip => seven_zip(bytes, &mut cap),
        other => {
            let message = format!("what is packed as {} is not unpacked", other.name());
            failed(PickleError::new("wrapper", message))
        }
    }
}

/// How much may still be unpacked.
struct Cap<'l> {
    left: u64,
    ratio: u64,
    limits: &'l Limits,
    packed: u64,
}

impl Cap<'_> {
    /// Reads to the end, or to a cap, or to a fault.
    fn drain(&mut self, reader: &mut dyn Read) -> (Vec<u8>, Option<PickleError>) {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = match reader.read(&mut piece) {
                Ok(0) => return (bytes, None),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return (bytes, Some(damaged(&error))),
            };
            let wanted = wide(count);
            let Cap { limits, packed, .. } = *self;
            let over = match (self.left.checked_sub(wanted), self.ratio.checked_sub(wanted)) {
                (Some(left), Some(ratio)) => {
                    (self.left, self.ratio) = (left, ratio);
                    None
                }
                (_, None) => Some(PickleError::new(
                    "limit-ratio",
                    format!("{packed} bytes become more than {} times as many", limits.ratio),
                )),
                (None, _) => Some(PickleError::new(
                    "limit-unpacked",
                    "more is packed than the limit of bytes to unpack allows",
                )),
            };
            let over = over.or_else(|| {
                (wide(bytes.len()).saturating_add(wanted) > limits.pickle_bytes).then(|| {
                    let message =
                        format!("more than the limit of {} bytes is packed", limits.pickle_bytes);
                    PickleError::new("limit-pickle-bytes", message)
                })
            });
            if over.is_some() {
                return (bytes, over);
            }
            bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        }
    }
}

/// A stream without a name, to the end of the file.
fn one(mut reader: impl Read, cap: &mut Cap<'_>) -> Unpacked {
    let (bytes, error) = cap.drain(&mut reader);
    Unpacked { files: vec![(None, bytes)], error, tail: 0 }
}

fn zlib(bytes: &[u8], cap: &mut Cap<'_>) -> Unpacked {
    let mut reader = flate2::bufread::ZlibDecoder::new(bytes);
    let (bytes, error) = cap.drain(&mut reader);
    let tail = if error.is_some() { 0 } else { wide(reader.get_ref().len()) };
    Unpacked { files: vec![(None, bytes)], error, tail }
}

/// What follows `ZF`, the length as `hex` writes it, and spaces.
fn joblib_data(bytes: &[u8]) -> &[u8] {
    let is_header = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'x' | b'L' | b' ');
    let rest = bytes.get(2..).unwrap_or_default();
    // Zlib data begins with an `x`, which a length has once.
    let digits = rest.strip_prefix(b"0x").unwrap_or(rest);
    let end = digits.iter().position(|byte| *byte == b'x' || !is_header(byte));
    digits.get(end.unwrap_or(digits.len())..).unwrap_or_default()
}

/// Frames one after the other.
fn zstd(bytes: &[u8], cap: &mut Cap<'_>) -> Unpacked {
    let mut all = Vec::new();
    let mut rest = bytes;
    let window = u64::from(DECODER) << 10;
    while !rest.is_empty() {
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, after @ ..] = rest {
            // A frame that readers skip.
            let len = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
            rest = after.get(len..).unwrap_or_default();
            continue;
        }
        let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(rest, window);
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(error) => {
                let message = format!("what is packed is damaged: {error}");
                let error = Some(PickleError::new("wrapper", message));
                return Unpacked { files: vec![(None, all)], error, tail: 0 };
            }
        };
        let (frame, error) = cap.drain(&mut reader);
        all.extend(frame);
        let left = reader.into_inner();
        if error.is_some() || left.len() >= rest.len() {
            return Unpacked { files: vec![(None, all)], error, tail: wide(left.len()) };
        }
        rest = left;
    }
    Unpacked { files: vec![(None, all)], error: None, tail: 0 }
}

/// The same.
fn lz4(bytes: &[u8], cap: &mut Cap<'_>) -> Unpacked {
    let mut all = Vec::new();
    let mut rest = bytes;
    loop {
        let mut reader = lz4_flex::frame::FrameDecoder::new(rest);
        let (frame, error) = cap.drain(&mut reader);
        all.extend(frame);
        let left = reader.into_inner();
        let is_frame = left.starts_with(b"\x04\x22\x4d\x18") && left.len() < rest.len();
        if error.is_some() || !is_frame {
            let tail = if error.is_some() { 0 } else { wide(left.len()) };
            return Unpacked { files: vec![(None, all)], error, tail };
        }
        rest = left;
    }
}

fn seven_zip(bytes: &[u8], cap: &mut Cap<'_>) -> Unpacked {
    use sevenz_rust2::{ArchiveReader, Password};
    let memory = usize::try_from(DECODER).unwrap_or(usize::MAX);
    let reader =
        ArchiveReader::new_with_memory_limit(Cursor::new(bytes), Password::empty(), memory);
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return failed(damaged(&error)),
    };
    reader.set_thread_count(1);
    let (mut files, mut fault) = (Vec::new(), None);
    let result = reader.for_each_entries(|entry, content| {
        if entry.is_directory() || fault.is_some() {
            return Ok(fault.is_none());
        }
        let (bytes, error) = cap.drain(content);
        files.push((Some(entry.name().to_owned()), bytes));
        fault = error;
        Ok(fault.is_none())
    });
    let error = fault.or_else(|| result.err().map(|error| damaged(&error)));
    Unpacked { files, error, tail: wide(bytes.len()).saturating_sub(seven_zip_end(bytes)) }
}

/// The byte after an archive: that of its header, the place and size of which are in its first bytes.
fn seven_zip_end(bytes: &[u8]) -> u64 {
    let field =
        |at: usize| bytes.get(at..)?.first_chunk::<8>().map(|field| u64::from_le_bytes(*field));
    let [offset, size] = [12, 20].map(|at| field(at).unwrap_or(0));
    offset.saturating_add(size).saturating_add(32)
}

fn failed(error: PickleError) -> Unpacked {
    Unpacked { files: Vec::new(), error: Some(error), tail: 0 }
}

fn damaged(error: &dyn std::fmt::Display) -> PickleError {
    PickleError::new("wrapper", format!("what is packed cannot be unpacked: {error}"))
}

fn wide(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
