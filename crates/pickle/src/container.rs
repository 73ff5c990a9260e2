//! What a file is, told by its bytes and never by its name, and the containers that checkpoints come in.
//!
//! [`detect`] says what a file begins as; [`layout`] opens it.
//!
//! # Untrusted input
//!
//! A file may be made so that two programs take it for two things. What is returned is what torch would take it for;
//! that it may be taken for something else is a finding, and its rule is an [ambiguous](weigh_format::Rule::is_ambiguous) one.

mod fields;
pub mod inflate;
pub mod layout;
pub mod legacy;
pub mod npy;
pub mod rules;
pub mod tar;
pub mod torch;
pub mod torch_tar;
pub mod wrapper;
pub mod zip;

use alloc::format;

use weigh_format::{Finding, Findings};

use crate::decode::{Argument, Decoder};
use crate::opcode::{ArgumentKind, Opcode};
use crate::{Limits, Spans, Stop};

/// What a file is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A zip archive: a checkpoint of torch since 1.6, an `.npz`, or another.
    Zip,
    /// Pickles one after the other, then storages: torch up to 1.5.
    Legacy,
    /// A tar archive: a checkpoint of torch before 0.1.10, or another.
    Tar,
    /// A pickle.
    Pickle,
    /// An array of numpy.
    Npy,
    /// safetensors.
    Safetensors,
    /// Something packed as a whole.
    Wrapper(Wrapper),
    /// HDF5, as Keras has it.
    Hdf5,
    /// GGUF.
    Gguf,
    /// A preview of a format of torch that was never released.
    TorchPreview,
    /// No bytes.
    Empty,
    /// Nothing known.
    Unknown,
}

/// What a file may be packed into.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Wrapper {
    /// A zlib stream, as joblib writes.
    Zlib,
    /// gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// The format before xz.
    Lzma,
    /// zstd.
    Zstd,
    /// An LZ4 frame.
    Lz4,
    /// joblib's first format: `ZF`, a length in hexadecimal, a zlib stream.
    JoblibZ,
    /// 7z.
    SevenZip,
    /// RAR.
    Rar,
}

impl Wrapper {
    /// The name of the format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lzma => "lzma",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::JoblibZ => "joblib ZF",
            Self::SevenZip => "7z",
            Self::Rar => "rar",
        }
    }
}

impl Kind {
    /// The stable name, in kebab case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Legacy => "torch-legacy",
            Self::Tar => "tar",
            Self::Pickle => "pickle",
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Wrapper(_) => "wrapper",
            Self::Hdf5 => "hdf5",
            Self::Gguf => "gguf",
            Self::TorchPreview => "torch-preview",
            Self::Empty => "empty",
            Self::Unknown => "unknown",
        }
    }
}

/// What a file is, and what else it may be taken for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detection {
    /// What it is.
    pub kind: Kind,
    /// That it is packed, or also of another kind.
    pub findings: Findings,
}

/// Bytes of a file's start that tell what it is.
const HEAD: u64 = 1024;

/// Says what a file is, by its first bytes and its last: one round.
///
/// # Errors
///
/// [`Stop::Missing`] for bytes to read; there is no other.
pub fn detect(spans: &Spans) -> Result<Detection, Stop> {
    let head_span = 0..spans.len().min(HEAD);
    let tail_span = zip::end::tail(spans.len());
    let mut wanted = crate::spans::Batch::default();
    let head = wanted.get(spans, head_span)?;
    let tail = wanted.get(spans, tail_span.clone())?;
    wanted.finish()?;
    let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or_default());
    let end = zip::end::find(tail, tail_span.start);
    let mut kind = recognize(head, spans.len());
    let mut findings = Findings::new();
    if let (Kind::Unknown, Some(_)) = (kind, end) {
        // Readers of archives other than torch take it; that something is before it is found when it is read.
        kind = Kind::Zip;
    } else if let (false, Some(end)) = (kind == Kind::Zip, end) {
        let message =
            format!("the file begins as {}, and an archive ends at {}", kind.name(), end.end());
        findings.push(Finding::new(&rules::POLYGLOT, message).at(tail_span));
    }
    if let Kind::Wrapper(wrapper) = kind {
        let message = format!("the file is packed as {}", wrapper.name());
        findings.push(Finding::new(&rules::WRAPPED, message).with("wrapper", wrapper.name()));
    }
    // The name of a first member, and a zstd frame that is skipped, may be opcodes.
    let is_skipped = matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
    if (kind == Kind::Tar || is_skipped) && looks_like_pickle(head, spans.len()) {
        let message = format!("the file begins as {}, and as a pickle", kind.name());
        findings.push(Finding::new(&rules::POLYGLOT, message).at(0..512));
    }
    if matches!(kind, Kind::Zip | Kind::Pickle | Kind::Legacy)
        && head.get(257..262) == Some(b"ustar")
        && tar::is_header(head)
    {
        let message = format!("the file begins as {}, and as a tar archive", kind.name());
        findings.push(Finding::new(&rules::POLYGLOT, message).at(0..512));
    }
    Ok(Detection { kind, findings })
}

/// What begins with these bytes.
fn recognize(head: &[u8], file_len: u64) -> Kind {
    if file_len == 0 {
        return Kind::Empty;
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Kind::Zip;
    }
    if is_safetensors(head, file_len) {
        return Kind::Safetensors;
    }
    if let Some((_, kind)) = SIGNATURES.iter().find(|(magic, _)| head.starts_with(magic)) {
        return *kind;
    }
    if let Some(wrapper) = wrapper::recognize(head) {
        return Kind::Wrapper(wrapper);
    }
    if tar::is_header(head) {
        return Kind::Tar;
    }
    if is_legacy(head) {
        return Kind::Legacy;
    }
    if looks_like_pickle(head, file_len) { Kind::Pickle } else { Kind::Unknown }
}

const SIGNATURES: [(&[u8], Kind); 4] = [
    (b"\x93NUMPY", Kind::Npy),
    (b"\x89HDF\r\n\x1a\n", Kind::Hdf5),
    (b"GGUF", Kind::Gguf),
    (b"PYTORCH1", Kind::TorchPreview),
];

/// A length that fits, and an object.
fn is_safetensors(head: &[u8], file_len: u64) -> bool {
    let (Some(length), Some(b'{')) = (head.first_chunk::<8>(), head.get(8)) else { return false };
    let length = u64::from_le_bytes(*length);
    length >= 2 && length.checked_add(8).is_some_and(|end| end <= file_len)
}

/// The first pickle of a legacy file: the magic number, literally. A file that computes it is no legacy file.
fn is_legacy(head: &[u8]) -> bool {
    // Protocols 0 and 1 have integers as text.
    if head.starts_with(b"L119547037146038801333356L\n.") {
        return true;
    }
    let [0x80, 2..=5, rest @ ..] = head else { return false };
    // Protocols from 4 on may have it in a frame.
    let rest = match rest {
        [0x95, _, _, _, _, _, _, _, _, framed @ ..] => framed,
        other => other,
    };
    rest.starts_with(b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
}

/// Whether bytes may be a pickle: they say so, or their first opcodes go together.
///
/// Text is not one, though its letters may be opcodes: names in it have spaces, and what takes something off the stack
/// finds nothing there.
fn looks_like_pickle(head: &[u8], file_len: u64) -> bool {
    if matches!(head, [0x80, 0..=5, ..]) {
        return true;
    }
    let limits = Limits::default();
    let mut decoder = Decoder::new(head, &limits);
    // Values and marks on the stack, as far as a reader that does not look at the values can tell.
    let (mut seen, mut pushed, mut marked) = (0_u32, false, false);
    loop {
        let at = usize::try_from(decoder.position()).unwrap_or(usize::MAX);
        let operation = match decoder.next_operation() {
            Ok(operation) => operation,
            Err(error) if error.code == "pickle-truncated" && fields::len(head) < file_len => {
                // A line that never ends is text.
                let cut = head.get(at).and_then(|byte| Opcode::from_byte(*byte));
                let line = cut.map(Opcode::argument);
                return !matches!(line, Some(ArgumentKind::Line | ArgumentKind::TwoLines));
            }
            // Broken: what was there until then may have been enough.
            Err(_) => return seen >= 3,
        };
        if let Argument::Names(module, name) = operation.argument
            && [module, name].iter().any(|name| name.contains(char::is_whitespace))
        {
            return false;
        }
        match operation.opcode {
            Opcode::Stop => return pushed,
            Opcode::Mark => marked = true,
            Opcode::Tuple
            | Opcode::List
            | Opcode::Dict
            | Opcode::Obj
            | Opcode::Inst
            | Opcode::Appends
            | Opcode::SetItems
            | Opcode::AddItems
            | Opcode::FrozenSet
            | Opcode::PopMark => {
                if !marked {
                    return false;
                }
                pushed = true;
            }
            Opcode::Append
            | Opcode::SetItem
            | Opcode::Reduce
            | Opcode::Build
            | Opcode::NewObj
            | Opcode::NewObjEx
            | Opcode::StackGlobal
            | Opcode::Put
            | Opcode::BinPut
            | Opcode::LongBinPut
            | Opcode::Memoize
            | Opcode::Dup
            | Opcode::Pop
            | Opcode::Tuple1
            | Opcode::Tuple2
            | Opcode::Tuple3
            | Opcode::BinPersId => {
                if !pushed && !marked {
                    return false;
                }
            }
            _ => pushed = true,
        }
        seen = seen.saturating_add(1);
    }
}
