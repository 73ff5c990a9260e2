//! What a file is when it is not safetensors at all (FORMAT.md §7).
//!
//! Told from its first bytes, never from its name. This speaks only when the start of the file was
//! refused; a file with a readable header is safetensors, however damaged.

use alloc::format;
use alloc::string::{String, ToString};

use crate::finding::{Evidence, Finding, Severity};
use crate::rule;
use crate::text::shortened;

/// What a file is instead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Kind {
    /// The stable name, in kebab case.
    pub name: &'static str,
    /// What it is, for people: "a zip archive".
    pub what: &'static str,
    /// What to do.
    pub help: &'static str,
}

/// What a file begins with while its header is edited in place, and after an edit that was cut off.
///
/// As a length it is over 2^63: no reader takes it for a header's.
pub const INTERRUPTED: [u8; 8] = *b"midedit\xff";

/// The rules whose finding gives way to a better explanation.
const EXPLAINED: [&str; 8] = [
    "file-too-short",
    "header-over-limit",
    "header-past-end",
    "header-empty",
    "header-bom",
    "header-not-utf8",
    "json-syntax",
    "header-trailing-data",
];

/// Whether `finding` refuses the start of a file, so that it may be another kind of file.
#[must_use]
pub fn may_explain(finding: &Finding) -> bool {
    finding.severity == Severity::Error && EXPLAINED.contains(&finding.code())
}

/// The finding that says what the file is, if its first bytes `head` tell.
///
/// `refusal` is the finding that it takes the place of.
#[must_use]
pub fn explain(refusal: &Finding, head: &[u8], file_len: u64) -> Option<Finding> {
    let kind = recognize(head, file_len)
        .or_else(|| damage(head, file_len, refusal.code() == rule::HEADER_PAST_END.code))?;
    let detail = detail(&kind, head);
    let message = match &detail {
        Some(detail) => format!("this is not a safetensors file but {}: {detail}", kind.what),
        None => format!("this is not a safetensors file but {}", kind.what),
    };
    let span = 0..file_len.min(u64::try_from(head.len()).unwrap_or(u64::MAX));
    let mut finding = Finding::new(&rule::NOT_SAFETENSORS, message)
        .at(span)
        .help(kind.help)
        .with("kind", kind.name)
        .with("instead_of", refusal.code());
    if let Some(detail) = detail {
        finding = finding.with("detail", detail);
    }
    Some(finding)
}

/// What a file is instead, as `finding` says.
#[must_use]
pub fn explained(finding: &Finding) -> Option<Kind> {
    let is_kind = |(name, _): &&(&str, Evidence)| *name == "kind";
    match finding.evidence.iter().find(is_kind) {
        Some((_, Evidence::Text(name))) if finding.code() == rule::NOT_SAFETENSORS.code => {
            KINDS.iter().find(|kind| kind.name == name).copied()
        }
        _ => None,
    }
}

/// What a file is, by its first bytes, if it is of another known format.
#[must_use]
pub fn recognize(head: &[u8], file_len: u64) -> Option<Kind> {
    if file_len == 0 {
        return Some(EMPTY);
    }
    // A length below 2^32 before an object is a length, whatever else its bytes may mean.
    if head.get(4..9) == Some(b"\0\0\0\0{") {
        return None;
    }
    SIGNATURES
        .iter()
        .find(|(offset, magic, _)| head.get(*offset..).is_some_and(|rest| rest.starts_with(magic)))
        .map(|&(.., kind)| kind)
        .map(|kind| if kind == ZIP && contains(head, b"data.pkl") { TORCH_ZIP } else { kind })
        .or_else(|| pickle(head))
        .or_else(|| onnx(head))
        .or_else(|| text(head))
}

/// A file that was safetensors, or nearly, by its first bytes.
fn damage(head: &[u8], file_len: u64, past_end: bool) -> Option<Kind> {
    if head.len() >= 8 && head.iter().all(|byte| *byte == 0) {
        return Some(ALL_ZERO);
    }
    let fits = |length: u64, prefix: u64| {
        length >= 2 && length.checked_add(prefix).is_some_and(|end| end <= file_len)
    };
    if let Some(length) = head.first_chunk::<4>()
        && head.get(4) == Some(&b'{')
        && fits(u64::from(u32::from_le_bytes(*length)), 4)
    {
        return Some(LENGTH_32_BIT);
    }
    if let Some(length) = head.first_chunk::<8>()
        && head.get(8) == Some(&b'{')
        && fits(u64::from_be_bytes(*length), 8)
    {
        return Some(LENGTH_BIG_ENDIAN);
    }
    let first = head.get(..8)?;
    let moved = head.get(9) == Some(&b'{') || head.get(10) == Some(&b'{');
    let start = head.get(..10).unwrap_or(first);
    if contains(first, b"\xef\xbf\xbd") || (contains(start, b"\r\n") && moved) {
        return Some(TEXT_DAMAGED);
    }
    (past_end && head.get(8..10) == Some(b"{\"")).then_some(PARTIAL_DOWNLOAD)
}

fn pickle(head: &[u8]) -> Option<Kind> {
    matches!(head, [0x80, 2..=5, ..]).then_some(PICKLE)
}

/// A protobuf that begins as ONNX models do: `ir_version`, then the producer's name or the graph.
fn onnx(head: &[u8]) -> Option<Kind> {
    matches!(head, [0x08, 1..=15, 0x12 | 0x1a | 0x3a | 0x42, ..]).then_some(ONNX)
}

/// How hubs begin the text of a refusal.
const REFUSALS: [&str; 6] = [
    "Entry not found",
    "Repository not found",
    "Invalid username or password",
    "Access to model",
    "Not Found",
    "Unauthorized",
];

fn text(head: &[u8]) -> Option<Kind> {
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let begins = |text: &str| {
        start.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
    };
    if begins("version https://git-lfs.github.com/spec/") {
        return Some(GIT_LFS_POINTER);
    }
    if begins("# xet version") {
        return Some(XET_POINTER);
    }
    if begins("<!doctype") || begins("<html") {
        return Some(HTML);
    }
    if REFUSALS.into_iter().any(begins) {
        return Some(JSON_ERROR);
    }
    if !start.starts_with(b"{") {
        return None;
    }
    if contains(start, b"\"weight_map\"") {
        return Some(SHARD_INDEX);
    }
    if contains(start, b"\"data_offsets\"") {
        return Some(HEADER_WITHOUT_LENGTH);
    }
    contains(start, b"\"error\"").then_some(JSON_ERROR)
}

/// What more the first bytes tell.
fn detail(kind: &Kind, head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    if *kind == GIT_LFS_POINTER {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(shortened(line.trim()).into_owned())
        };
        let size = field("size ")?;
        return Some(match field("oid ") {
            Some(oid) => format!("the real file has {size} bytes, {oid}"),
            None => format!("the real file has {size} bytes"),
        });
    }
    if *kind == HTML {
        // Lower case keeps ASCII lengths, so positions carry over.
        let lower = text.to_ascii_lowercase();
        let start = lower.find("<title")?;
        let open = lower.get(start..)?.find('>')?;
        let from = start.checked_add(open)?.checked_add(1)?;
        let end = lower.get(from..)?.find('<')?;
        let title = text.get(from..from.checked_add(end)?)?.trim();
        return Some(format!("\"{}\"", shortened(title)));
    }
    (*kind == JSON_ERROR).then(|| shortened(text.trim()).to_string())
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(bytes, needle).is_some()
}

macro_rules! kinds {
    ($($(#[$attribute:meta])* $visible:vis $name:ident = $code:literal, $what:literal, $help:literal;)*) => {
        $($(#[$attribute])* $visible const $name: Kind = Kind { name: $code, what: $what, help: $help };)*
        /// Every kind of file that is recognized.
        pub const KINDS: &[Kind] = &[$($name),*];
    };
}

kinds! {
    GIT_LFS_POINTER = "git-lfs-pointer", "a Git LFS pointer",
        "Only the pointer was fetched: run `git lfs install && git lfs pull`, or download the file itself.";
    XET_POINTER = "xet-pointer", "a Xet pointer",
        "Only the pointer was fetched: download the file itself.";
    HTML = "html", "a web page saved under this name",
        "The server answered with a page, often a login or an error: download again, signed in.";
    JSON_ERROR = "json-error", "an error message saved under this name",
        "The server refused the download: check the name, the licence gate and the token, then get it again.";
    SHARD_INDEX = "shard-index", "a shard index",
        "Give the folder, or the index under its own name, *.safetensors.index.json.";
    HEADER_WITHOUT_LENGTH = "header-without-length", "a JSON header without its 8-byte length",
        "The writer left out the length field: have it write the header's length first.";
    ZIP = "zip", "a zip archive",
        "Unpack it first; an archive of arrays (npz) has to be converted.";
    TORCH_ZIP = "torch-zip", "a torch checkpoint (a zip with a pickle in it)",
        "It has to be converted. Do not load it with torch unless you trust it: a pickle runs code.";
    PICKLE = "pickle", "a pickle",
        "It has to be converted. Do not load it unless you trust it: a pickle runs code.";
    GGUF = "gguf", "a GGUF file", "Use a GGUF reader, or get the safetensors version.";
    GGML = "ggml", "a GGML file", "Use a GGML reader, or get the safetensors version.";
    HDF5 = "hdf5", "an HDF5 file", "Use an HDF5 reader, or get the safetensors version.";
    NPY = "npy", "a NumPy array", "Load it with numpy, with allow_pickle=False.";
    ONNX = "onnx", "probably an ONNX model", "Use an ONNX reader, or get the safetensors version.";
    TFLITE = "tflite", "a TensorFlow Lite model", "Use a TensorFlow Lite reader.";
    GZIP = "gzip", "a gzip file", "Decompress it first.";
    ZSTD = "zstd", "a zstd file", "Decompress it first.";
    XZ = "xz", "an xz file", "Decompress it first.";
    BZIP2 = "bzip2", "a bzip2 file", "Decompress it first.";
    SEVEN_ZIP = "7z", "a 7z archive", "Unpack it first.";
    RAR = "rar", "a RAR archive", "Unpack it first.";
    TAR = "tar", "a tar archive", "Unpack it first.";
    LENGTH_32_BIT = "length-32-bit", "a header after a 32-bit length",
        "The writer wrote four bytes of length; the format has eight.";
    LENGTH_BIG_ENDIAN = "length-big-endian", "a header after a big-endian length",
        "The writer wrote the length in big-endian order; the format is little endian.";
    EMPTY = "empty", "an empty file",
        "The download or the write never began: get it again.";
    ALL_ZERO = "all-zero", "nothing but zero bytes",
        "The space was reserved and the data never arrived, as in an interrupted download: get it again.";
    /// A file that begins with [`INTERRUPTED`].
    pub INTERRUPTED_EDIT = "interrupted-edit", "one whose header was being edited in place",
        "The edit is under way, or was cut off: run `weigh` on the file where it may be written, with its journal \
         `.NAME.weigh-journal` beside it, and the edit is undone.";
    TEXT_DAMAGED = "text-damaged", "a file that went through a text conversion",
        "Line ends or characters were converted: transfer it again, in binary.";
    PARTIAL_DOWNLOAD = "partial-download", "the beginning of one",
        "The file ends inside its header: resume the download, or get it again.";
}

/// Where magic numbers are, and whose.
const SIGNATURES: &[(usize, &[u8], Kind)] = &[
    (0, &INTERRUPTED, INTERRUPTED_EDIT),
    (0, b"PK\x03\x04", ZIP),
    (0, b"PK\x05\x06", ZIP),
    (0, b"GGUF", GGUF),
    (0, b"ggml", GGML),
    (0, b"lmgg", GGML),
    (0, b"fmgg", GGML),
    (0, b"tjgg", GGML),
    (0, b"\x89HDF\r\n\x1a\n", HDF5),
    (0, b"\x93NUMPY", NPY),
    (4, b"TFL3", TFLITE),
    (0, b"\x1f\x8b\x08", GZIP),
    (0, b"\x28\xb5\x2f\xfd", ZSTD),
    (0, b"\xfd7zXZ\0", XZ),
    (0, b"BZh", BZIP2),
    (0, b"7z\xbc\xaf\x27\x1c", SEVEN_ZIP),
    (0, b"Rar!\x1a\x07", RAR),
    (257, b"ustar", TAR),
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn kind_of(head: &[u8]) -> Option<&'static str> {
        let refusal = Finding::new(&rule::HEADER_PAST_END, "");
        let length = u64::try_from(head.len()).unwrap();
        let finding = explain(&refusal, head, length)?;
        explained(&finding).map(|kind| kind.name)
    }

    #[test]
    fn each_kind_by_its_first_bytes() {
        let mut tar = alloc::vec![b'x'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let mut lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n".to_vec();
        lfs.extend(b"size 12\n");
        let heads: Vec<(&[u8], Option<&str>)> = alloc::vec![
            (b"", Some("empty")),
            (&[0; 64], Some("all-zero")),
            (&lfs, Some("git-lfs-pointer")),
            (b"# xet version 0\n", Some("xet-pointer")),
            (b"\n<!DOCTYPE html><title>Sign in</title>", Some("html")),
            (b"{\"error\":\"gated\"}", Some("json-error")),
            (b"Entry not found", Some("json-error")),
            (b"{\"metadata\":{},\"weight_map\":{}}", Some("shard-index")),
            (b"{\"a\":{\"data_offsets\":[0,4]}}", Some("header-without-length")),
            (b"PK\x03\x04....archive/data.pkl", Some("torch-zip")),
            (b"PK\x03\x04....a.npy", Some("zip")),
            (b"\x80\x02}q\0.....", Some("pickle")),
            (b"GGUF\x03\0\0\0", Some("gguf")),
            (b"lmgg\x03\0\0\0", Some("ggml")),
            (b"\x89HDF\r\n\x1a\n", Some("hdf5")),
            (b"\x93NUMPY\x01\0", Some("npy")),
            (b"\x08\x07\x12\x07pytorch", Some("onnx")),
            (b"\x1c\0\0\0TFL3", Some("tflite")),
            (b"\x1f\x8b\x08\0\0\0\0\0", Some("gzip")),
            (b"\x28\xb5\x2f\xfd\0\0\0\0", Some("zstd")),
            (b"\xfd7zXZ\0\0\0", Some("xz")),
            (b"BZh91AY&", Some("bzip2")),
            (b"7z\xbc\xaf\x27\x1c\0\x04", Some("7z")),
            (b"Rar!\x1a\x07\x01\0", Some("rar")),
            (&tar, Some("tar")),
            (b"\x02\0\0\0{}      ", Some("length-32-bit")),
            (b"\0\0\0\0\0\0\0\x02{}", Some("length-big-endian")),
            (b"midedit\xff{\"a\"", Some("interrupted-edit")),
            (b"midedit\xfe[\"a\"", None),
            (b"\xef\xbf\xbd\0\0\0\0\0\0\0{\"a\"", Some("text-damaged")),
            (b"\r\n\x01\0\0\0\0\0\0{\"a\"", Some("text-damaged")),
            (b"\x80\0\0\0\0\0\0\0{\"a\":", Some("partial-download")),
            (b"\x80\0\0\0\0\0\0\0", None),
            (b"random bytes", None),
        ];
        for (head, want) in &heads {
            assert_eq!(kind_of(head), *want, "{}", head.escape_ascii());
        }
        for kind in KINDS {
            assert!(heads.iter().any(|(_, want)| *want == Some(kind.name)), "{}", kind.name);
        }
    }

    #[test]
    fn details_are_told() {
        let refusal = Finding::new(&rule::HEADER_OVER_LIMIT, "");
        for (head, want) in [
            (
                &b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n"[..],
                "this is not a safetensors file but a Git LFS pointer: the real file has 12 bytes, sha256:ab",
            ),
            (
                b"<html><head><TITLE lang=en> Sign in </TITLE>",
                "this is not a safetensors file but a web page saved under this name: \"Sign in\"",
            ),
        ] {
            assert_eq!(explain(&refusal, head, 100).unwrap().message, want);
        }
    }
}
