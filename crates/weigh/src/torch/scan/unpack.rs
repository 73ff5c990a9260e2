//! What is packed as a whole, unpacked within a budget.

use std::io::{Cursor, ErrorKind, Read};

use weigh_io::Cancel;
use weigh_pickle::Error as PickleError;
use weigh_pickle::container::Wrapper;

use super::ScanOptions;
use super::kept::{Budget, Kept};

/// Memory of a decoder, in KiB.
const DECODER: u32 = 64 << 10;

/// What was packed.
pub(super) struct Unpacked {
    /// The files: a name if the format has names, and the bytes, as far as they could be had.
    pub(super) files: Vec<(Option<String>, Kept)>,
    /// Why there is no more, if not because it ends.
    pub(super) error: Option<PickleError>,
    /// Bytes that follow what is packed.
    pub(super) tail: u64,
}

/// Unpacks `bytes` within a budget, and keeps what is looked at of it, or all.
pub(super) fn unpack(
    wrapper: Wrapper,
    bytes: &[u8],
    whole: bool,
    budget: &mut Budget,
    options: &ScanOptions<'_>,
) -> Unpacked {
    let mut unpacking = Unpacking { budget, options, whole };
    let all = &mut unpacking;
    match wrapper {
        Wrapper::Zlib => zlib(bytes, all),
        Wrapper::JoblibZ => zlib(joblib_data(bytes), all),
        Wrapper::Gzip => one(flate2::read::MultiGzDecoder::new(bytes), all),
        Wrapper::Bzip2 => one(bzip2::read::MultiBzDecoder::new(bytes), all),
        Wrapper::Xz => one(lzma_rust2::XzReader::new_mem_limit(bytes, true, DECODER), all),
        Wrapper::Lzma => match lzma_rust2::LzmaReader::new_mem_limit(bytes, DECODER, None) {
            Ok(mut reader) => {
                let (kept, error) = all.drain("", &mut reader);
                // It reads ahead.
                let (rest, buffered) = reader.into_parts();
                let left = wide(rest.len()).saturating_add(wide(buffered.len()));
                let tail = if error.is_some() { 0 } else { left };
                Unpacked { files: vec![(None, kept)], error, tail }
            }
            Err(error) => failed(damaged(&error)),
        },
        Wrapper::Zstd => zstd(bytes, all),
        Wrapper::Lz4 => lz4(bytes, all),
        Wrapper::SevenZip => seven_zip(bytes, all),
        other => {
            let message = format!("what is packed as {} is not unpacked", other.name());
            failed(PickleError::new("wrapper", message))
        }
    }
}

/// What is the same for all that is unpacked.
struct Unpacking<'a> {
    budget: &'a mut Budget,
    options: &'a ScanOptions<'a>,
    whole: bool,
}

impl Unpacking<'_> {
    fn keep(&self, name: &str) -> Kept {
        Kept::new(name, self.whole, &self.options.limits)
    }

    /// Reads to the end, or to a limit, or to a fault.
    fn drain(&mut self, name: &str, reader: &mut dyn Read) -> (Kept, Option<PickleError>) {
        let mut kept = self.keep(name);
        let error = self.drain_into(&mut kept, reader);
        (kept, error)
    }

    fn drain_into(&mut self, kept: &mut Kept, reader: &mut dyn Read) -> Option<PickleError> {
        let mut piece = vec![0; 64 << 10];
        loop {
            if self.options.cancel.is_some_and(Cancel::is_cancelled) {
                // Whoever asked for it takes note, and nothing of what was found.
                return Some(PickleError::new("cancelled", "cancelled"));
            }
            let count = match reader.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Some(damaged(&error)),
            };
            let piece = piece.get(..count).unwrap_or_default();
            let taken = self.budget.spend(wide(count)).and_then(|()| kept.push(piece));
            if let Err(error) = taken {
                return Some(error);
            }
        }
    }
}

/// A stream without a name, to the end of the file.
fn one(mut reader: impl Read, all: &mut Unpacking<'_>) -> Unpacked {
    let (kept, error) = all.drain("", &mut reader);
    Unpacked { files: vec![(None, kept)], error, tail: 0 }
}

fn zlib(bytes: &[u8], all: &mut Unpacking<'_>) -> Unpacked {
    let mut reader = flate2::bufread::ZlibDecoder::new(bytes);
    let (kept, error) = all.drain("", &mut reader);
    let tail = if error.is_some() { 0 } else { wide(reader.get_ref().len()) };
    Unpacked { files: vec![(None, kept)], error, tail }
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
fn zstd(bytes: &[u8], all: &mut Unpacking<'_>) -> Unpacked {
    let mut kept = all.keep("");
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
                return Unpacked { files: vec![(None, kept)], error, tail: 0 };
            }
        };
        let error = all.drain_into(&mut kept, &mut reader);
        let left = reader.into_inner();
        if error.is_some() || left.len() >= rest.len() {
            return Unpacked { files: vec![(None, kept)], error, tail: wide(left.len()) };
        }
        rest = left;
    }
    Unpacked { files: vec![(None, kept)], error: None, tail: 0 }
}

/// The same.
fn lz4(bytes: &[u8], all: &mut Unpacking<'_>) -> Unpacked {
    let mut kept = all.keep("");
    let mut rest = bytes;
    loop {
        let mut reader = lz4_flex::frame::FrameDecoder::new(rest);
        let error = all.drain_into(&mut kept, &mut reader);
        let left = reader.into_inner();
        let is_frame = left.starts_with(b"\x04\x22\x4d\x18") && left.len() < rest.len();
        if error.is_some() || !is_frame {
            let tail = if error.is_some() { 0 } else { wide(left.len()) };
            return Unpacked { files: vec![(None, kept)], error, tail };
        }
        rest = left;
    }
}

fn seven_zip(bytes: &[u8], all: &mut Unpacking<'_>) -> Unpacked {
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
        let (kept, error) = all.drain(entry.name(), content);
        files.push((Some(entry.name().to_owned()), kept));
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
