//! The rules of FORMAT.md §3, §6 and §7, each once: id, code, severity, what it says, what to do.
//!
//! `weigh check --rules`, `--explain`, SARIF and the documentation are made from this table.

use crate::finding::Severity;

/// A rule, and the findings that break it. Codes are stable; texts may improve.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rule {
    /// The id in FORMAT.md, or the section for rules that have none.
    pub id: &'static str,
    /// The stable kebab-case code.
    pub code: &'static str,
    /// The severity of its findings, unless the rule says otherwise for a case.
    pub severity: Severity,
    /// What the rule asks, as one sentence.
    pub summary: &'static str,
    /// What to do about a finding.
    pub help: &'static str,
    /// Whether two programs may read a file differently that has such a finding, or it is made to exhaust them.
    pub is_ambiguous: bool,
}

impl Rule {
    /// A rule of another crate.
    #[must_use]
    pub const fn new(
        id: &'static str,
        code: &'static str,
        severity: Severity,
        summary: &'static str,
        help: &'static str,
    ) -> Self {
        Self { id, code, severity, summary, help, is_ambiguous: false }
    }

    /// The same, of files that two programs may read differently, or that are made to exhaust them.
    #[must_use]
    pub const fn ambiguous(self) -> Self {
        Self { is_ambiguous: true, ..self }
    }
}

/// Makes statics of a table of rules, and the list `RULES` of them, in its order: each row is a name, the id, the
/// severity, `ambiguous` if such files are, the code, what the rule asks and what to do.
#[macro_export]
macro_rules! rules {
    ($($name:ident = $id:literal $severity:ident $($ambiguous:ident)? $code:literal, $summary:literal, $help:literal;)*) => {
        $(
            #[doc = concat!("`", $code, "` (", $id, "): ", $summary)]
            pub static $name: $crate::Rule =
                $crate::Rule::new($id, $code, $crate::Severity::$severity, $summary, $help)
                    $(.$ambiguous())?;
        )*
        /// Every rule of this crate, in order.
        pub static RULES: &[&$crate::Rule] = &[$(&$name),*];
    };
}

rules! {
    FILE_TOO_SHORT = "F1" Error "file-too-short",
        "A file has at least 8 bytes, its header length.",
        "The file was cut off or never written: get it again.";
    HEADER_OVER_LIMIT = "F2" Error "header-over-limit",
        "The header length is within the limit (100 000 000 bytes unless set).",
        "If the file is known to be sound, raise the limit with --max-header; otherwise the length field is damaged or this is another kind of file.";
    HEADER_PAST_END = "F3" Error "header-past-end",
        "The header ends inside the file.",
        "The file was cut off, or is not safetensors: compare its size with the origin's and get it again.";
    HEADER_EMPTY = "F4" Error "header-empty",
        "The header has at least two bytes, `{}`.",
        "The file was preallocated or overwritten: get it again.";
    HEADER_NOT_UTF8 = "F6" Error "header-not-utf8",
        "The header is valid UTF-8.",
        "The file is damaged, or its writer did not encode names as UTF-8.";
    HEADER_BOM = "F7" Error "header-bom",
        "The header does not begin with a byte order mark.",
        "The writer encoded the header as text with a mark: write it as plain UTF-8.";
    HEADER_LEADING_SPACE = "F8" Deviation "header-leading-space",
        "The first byte of the header is `{`.",
        "Several readers refuse white space there: have the writer pad after the object instead.";
    HEADER_PADDING = "F9" Deviation "header-padding",
        "The header is padded with spaces only; NUL bytes are an error.",
        "Have the writer pad with spaces (0x20).";
    HEADER_TRAILING_DATA = "F10" Error "header-trailing-data",
        "Nothing follows the JSON object but padding.",
        "The header length is wrong, or something is hidden after the object.";
    HEADER_LARGE_PADDING = "F11" Note "header-large-padding",
        "Padding of 4096 bytes and more is unusual.",
        "Room kept for later edits looks like this; so does a header made long to smuggle a payload.";
    LENGTH_IS_MAGIC = "F11" Note "length-is-magic",
        "The length field is not the magic number of another format.",
        "Other programs may take this file for that format: find out who made the header this long.";
    DATA_TRUNCATED = "F12" Error "data-truncated",
        "The file ends where its last tensor ends, not before.",
        "The download or the write was interrupted: resume it, or get the file again.";
    DATA_TRAILING = "F12" Error "data-trailing",
        "The file ends where its last tensor ends, not after.",
        "Look at the extra bytes before trusting the file: an overwritten longer file looks like this, and so does a hidden payload.";
    JSON_SYNTAX = "J1" Error "json-syntax",
        "The header is one JSON object, in strict grammar.",
        "The header is damaged or was written by hand: have the writer use a JSON encoder.";
    JSON_DEPTH = "J3" Error "json-depth",
        "Nesting is at most 8 levels deep, the object itself being the first.",
        "No safetensors header needs this depth: the file was made to exhaust a parser.";
    DUPLICATE_KEY = "J5" Error "duplicate-key",
        "No key comes twice in an object, compared after unescaping.",
        "Readers disagree on which one counts, so the file means different things to them: have the writer use each name once.";
    ENTRY_FIELD_MISSING = "J9" Error "entry-field-missing",
        "An entry has `dtype`, `shape` and `data_offsets`.",
        "The entry cannot be read without it: have the writer give all three.";
    ENTRY_FIELD_TYPE = "J9" Error "entry-field-type",
        "An entry is an object of a string `dtype` and two arrays of integers, `data_offsets` having two.",
        "The entry cannot be read as it is: have the writer follow the format.";
    ENTRY_FIELD_UNKNOWN = "J9" Deviation "entry-field-unknown",
        "An entry has no other fields than those three.",
        "Readers ignore or refuse it: put such data into __metadata__.";
    DTYPE_UNKNOWN = "T1" Error "dtype-unknown",
        "The dtype is one of the format's, spelled exactly.",
        "No reader knows its size: have the writer use a dtype of the format.";
    NUMBER_FORM = "T2" Error "number-form",
        "Dimensions and offsets are plain non-negative integers below 2^64.",
        "Readers round, wrap or refuse such numbers: have the writer use plain integers.";
    SHAPE_OVERFLOW = "T4" Error "shape-overflow",
        "The number of elements, the product of the dimensions, is below 2^64.",
        "No tensor is that large: the shape is damaged, or made to wrap around in a careless reader.";
    SHAPE_OVERFLOW_BESIDE_ZERO = "T4z" Deviation "shape-overflow-beside-zero",
        "The dimensions beside a zero one have a product below 2^64 too.",
        "Some readers refuse this shape, depending on the order of its dimensions.";
    SIZE_OVERFLOW = "T5" Error "size-overflow",
        "The size of a tensor is below 2^64 bytes.",
        "No tensor is that large: the shape is damaged, or made to wrap around in a careless reader.";
    SIZE_NOT_BYTES = "T6" Error "size-not-bytes",
        "A tensor is a whole number of bytes.",
        "Shapes of sub-byte types count elements, not bytes: pad the last dimension.";
    ROWS_NOT_BYTES = "T6" Note "rows-not-bytes",
        "Rows of sub-byte types begin on a byte.",
        "Such rows cannot be sliced without shifting bits.";
    SIZE_MISMATCH = "T7" Error "size-mismatch",
        "data_offsets span exactly the bytes that dtype and shape need.",
        "The dtype, the shape or the offsets are wrong: compare with the writer's.";
    DATA_GAP = "T9" Error "data-gap",
        "Tensors follow each other from the start of the data section without a gap.",
        "Bytes that belong to no tensor can hide a payload: have the writer pack the data.";
    DATA_OVERLAP = "T9" Error "data-overlap",
        "No two tensors share bytes.",
        "The offsets of one of the two are wrong.";
    DATA_ALIAS = "T9" Error "data-alias",
        "No two tensors are the same bytes.",
        "Tied weights cannot be stored as one span: save one, or both as copies.";
    OFFSETS_REVERSED = "T9" Error "offsets-reversed",
        "data_offsets do not end before they begin.",
        "The two numbers are swapped or damaged.";
    EMPTY_OFF_BOUNDARY = "T11" Error "empty-off-boundary",
        "The offsets of an empty tensor are equal and lie between tensors.",
        "Have the writer place empty tensors where the next tensor begins.";
    MISALIGNED = "T13" Note "misaligned",
        "A tensor begins at a multiple of its element size.",
        "A memory map cannot be viewed in place; loading copies instead.";
    RANK_HIGH = "T3" Note "rank-high",
        "A tensor has at most 8 dimensions.",
        "Legal, but several readers stop at 8.";
    METADATA_TYPE = "M1" Error "metadata-type",
        "`__metadata__` is an object of strings.",
        "Have the writer turn the value into a string, as JSON in a string for instance.";
    METADATA_NULL = "M1" Note "metadata-null",
        "`__metadata__` is left out rather than null.",
        "MLX writes this when there is no metadata; it is harmless.";
    RESERVED_NAME = "M3" Error "reserved-name",
        "No tensor is named `__metadata__`.",
        "Rename the tensor.";
    NAME_EMPTY = "N1" Note "name-empty",
        "A tensor has a name.",
        "Legal, but easy to lose: name the tensor.";
    NAME_CONTROL = "N1" Note "name-control",
        "Names have no control characters.",
        "Printed raw, such a name can rewrite a terminal's screen.";
    NAME_PATH = "N1" Note "name-path",
        "Names do not look like paths (`..`, a leading `/`, a backslash).",
        "A program that makes files from names could write outside its folder.";
    NAME_LONG = "N1" Note "name-long",
        "Names have at most 256 bytes.",
        "Some readers and many tools cut or refuse longer ones.";
    NAME_BIDI = "N1" Note "name-bidi",
        "Names have no bidirectional controls.",
        "Such a name reads differently on the screen from what it is.";
    NAME_CONFUSABLE = "N1" Note "name-confusable",
        "No two names are equal after Unicode normalization (NFC).",
        "They look the same and are not: normalize the names when writing.";
    LIMIT_TENSORS = "L1" Error "limit-tensors",
        "The number of tensors is within the caller's limit.",
        "The file may be sound: raise the limit to read it, with --max-header or in Limits::tensors.";
    LIMIT_NAME = "L1" Error "limit-name",
        "The length of every name is within the caller's limit.",
        "The file may be sound: raise the limit to read it, in Limits::name_bytes.";
    LIMIT_INDEX = "L1" Error "limit-index",
        "The size of a shard index, and the number of files it names, are within the caller's limits.",
        "The index may be sound: raise the limit to read it, in Options.";
    PORTABILITY = "P1" Note "portability",
        "The file uses nothing that only few readers know.",
        "Large hub readers stop at 25 000 000 bytes of header; older readers refuse new dtypes.";
    INDEX_PATH = "§6" Error "index-path",
        "A shard's file name is a plain name in the index's own folder.",
        "A name that leaves the folder reads or fetches somebody else's file: do not use this index.";
    INDEX_SHARD_MISSING = "§6" Error "index-shard-missing",
        "Every file that the index names, or the numbers of a set without one, is there.",
        "Fetch the missing shard.";
    INDEX_TENSOR_MISSING = "§6" Error "index-tensor-missing",
        "Every tensor is in the file that the index says.",
        "The index and the shards are from different versions: fetch them again together.";
    INDEX_TENSOR_TWICE = "§6" Error "index-tensor-twice",
        "No tensor is in two files of a set.",
        "Readers disagree on which one counts: remove the stale shard.";
    INDEX_TENSOR_UNMAPPED = "§6" Deviation "index-tensor-unmapped",
        "Every tensor in a shard is in the index.",
        "Some loaders take it, some do not: write the index again.";
    INDEX_TOTAL_SIZE = "§6" Note "index-total-size",
        "total_size is the sum of the tensors' bytes.",
        "Stale totals are ordinary; memory estimates made from it are off.";
    INDEX_NUMBERING = "§6" Note "index-numbering",
        "Shards are numbered 1 to N of one N, all there.",
        "A shard of another set may have been mixed in, or one may be missing.";
    INDEX_SYNTAX = "§6" Error "index-syntax",
        "The index is a JSON object with a `weight_map` of tensor names to file names.",
        "The index is damaged or is another file: fetch it again.";
    NOT_SAFETENSORS = "§7" Error "not-safetensors",
        "The file is a safetensors file.",
        "See what kind of file it is.";
}

/// The rule with this code.
#[must_use]
pub fn by_code(code: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let codes: BTreeSet<_> = RULES.iter().map(|rule| rule.code).collect();
        assert_eq!(codes.len(), RULES.len());
        for rule in RULES {
            assert!(
                rule.code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')),
                "{}",
                rule.code
            );
            assert!(rule.summary.ends_with('.') && rule.help.ends_with('.'), "{}", rule.code);
            assert!(core::ptr::eq(by_code(rule.code).unwrap(), *rule));
        }
    }
}
