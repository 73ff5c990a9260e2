//! The header of a safetensors file: where it is, what it says, whether it is sound.
//!
//! A safetensors file is an 8-byte little-endian length `N`, `N` bytes of JSON, then tensor data to the
//! end of the file. [`locate`] says from the first 8 bytes which bytes are the JSON; [`inspect`] reads
//! those and gives an [`Inspection`]: everything that could be read and everything found wrong.
//! [`Inspection::accept`] turns a sound one into a [`Header`]. No function here does I/O.
//!
//! # Untrusted input
//!
//! No input makes this module panic or recurse. [`locate`] names no range that is outside the file or
//! over [`Limits::header_bytes`], so a caller may allocate what it is told. [`inspect`] takes time in
//! proportion to the header and keeps the header itself, about 80 bytes a tensor and 8 a dimension.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::finding::{Finding, Findings, Policy, bytes};
use crate::listing::{self, Listed};
use crate::lookup::{HashKey, Lookup};
use crate::table::{self, Entry, Flags, Table, position};
use crate::{Dtype, Limits, layout, notes, order, read, rule};

/// Bytes of the length field.
pub const PREFIX_BYTES: u64 = 8;

/// Finds the JSON header, as a range of byte offsets from the start of the file (rules F1 to F4).
///
/// `prefix` is the file's first bytes, of which 8 are looked at; `file_len` is its length in bytes.
///
/// # Errors
///
/// The finding that refuses the file. A header over `limits` is refused before anything else: `file_len`
/// may be hearsay (a `Content-Length`), a limit is not.
///
/// ```
/// use weigh_format::{Limits, header::locate};
///
/// let limits = Limits::default();
/// assert_eq!(locate(&[2, 0, 0, 0, 0, 0, 0, 0], 10, &limits), Ok(8..10));
/// let finding = locate(&[3, 0, 0, 0, 0, 0, 0, 0], 10, &limits).unwrap_err();
/// assert_eq!(finding.code(), "header-past-end");
/// ```
pub fn locate(prefix: &[u8], file_len: u64, limits: &Limits) -> Result<Range<u64>, Finding> {
    let Some(length) = prefix.first_chunk::<8>().filter(|_| file_len >= PREFIX_BYTES) else {
        let message = format!("the file has {}, fewer than a length field", bytes(file_len));
        let finding = Finding::new(&rule::FILE_TOO_SHORT, message).at(0..file_len);
        return Err(finding.with("file_bytes", file_len));
    };
    let claimed = u64::from_le_bytes(*length);
    let at_length = |rule, message| {
        Finding::new(rule, message)
            .at(0..PREFIX_BYTES)
            .with("header_bytes", claimed)
            .with("file_bytes", file_len)
    };
    let limit = limits.effective_header_bytes();
    if claimed > limit {
        let message = format!("the header length is {}, over the limit of {limit}", bytes(claimed));
        return Err(at_length(&rule::HEADER_OVER_LIMIT, message).with("limit", limit));
    }
    let Some(end) = PREFIX_BYTES.checked_add(claimed).filter(|end| *end <= file_len) else {
        let message =
            format!("the header length is {}, but the file has only {file_len}", bytes(claimed));
        return Err(at_length(&rule::HEADER_PAST_END, message));
    };
    if claimed < 2 {
        let message = format!("the header length is {claimed}, too short for an object");
        return Err(at_length(&rule::HEADER_EMPTY, message));
    }
    Ok(PREFIX_BYTES..end)
}

/// Reads and checks a header: every rule of FORMAT.md that needs no tensor bytes.
///
/// `bytes` are the ones that [`locate`] named; `file_len` is the length of the file. `key` keeps the
/// table of names from being flooded; choose it at random.
#[must_use]
pub fn inspect(bytes: Vec<u8>, file_len: u64, limits: &Limits, key: HashKey) -> Inspection {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let data_start = PREFIX_BYTES.saturating_add(length);
    let mut inspection = Inspection::of_nothing(file_len, key);
    inspection.table.data_start = data_start;
    inspection.header_located = true;
    let mark = byte_order_mark(&bytes);
    if let Some((mark, encoding)) = mark {
        let end = PREFIX_BYTES.saturating_add(u64::try_from(mark.len()).unwrap_or_default());
        let message = format!("the header begins with the byte order mark of {encoding}");
        inspection.findings.push(Finding::new(&rule::HEADER_BOM, message).at(PREFIX_BYTES..end));
        if mark != UTF8_MARK {
            return inspection;
        }
    }
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = u64::try_from(error.utf8_error().valid_up_to()).unwrap_or(u64::MAX);
            let at = PREFIX_BYTES.saturating_add(valid);
            let message = format!("the header is not UTF-8 from byte {at} on");
            let span = at..at.saturating_add(1);
            inspection.findings.push(Finding::new(&rule::HEADER_NOT_UTF8, message).at(span));
            return inspection;
        }
    };
    if mark.is_some() {
        text.drain(..UTF8_MARK.len());
    }
    let base = data_start.saturating_sub(table::length(&text));
    let read = read::read(&text, base, limits, key, &mut inspection.findings);
    note_magic_length(length, &mut inspection.findings);
    inspection.complete = read.complete;
    inspection.table = Table {
        text,
        unescaped: read.unescaped,
        entries: read.entries,
        dimensions: read.dimensions,
        metadata: read.metadata,
        has_metadata: read.has_metadata,
        lookup: read.lookup,
        key,
        by_offset: None,
        data_start,
        file_len,
    };
    if read.complete {
        layout::check(&mut inspection.table, &mut inspection.findings);
        notes::take(&inspection.table, key, &mut inspection.findings);
    }
    inspection
}

/// A header as far as it could be read, and what was found wrong with it.
#[derive(Clone, Debug)]
pub struct Inspection {
    table: Table,
    findings: Findings,
    header_located: bool,
    complete: bool,
}

impl Inspection {
    /// What is known of a file that [`locate`] refused: nothing but the finding.
    #[must_use]
    pub fn refused(finding: Finding, file_len: u64, key: HashKey) -> Self {
        let mut inspection = Self::of_nothing(file_len, key);
        inspection.findings.push(finding);
        inspection
    }

    /// Tensors of a file of another format, of `file_len` bytes, as if they were those of a header. No policy accepts
    /// it.
    #[must_use]
    pub fn listing<'a>(
        tensors: impl IntoIterator<Item = Listed<'a>>,
        file_len: u64,
        key: HashKey,
    ) -> Self {
        listing::inspection(tensors, file_len, key)
    }

    pub(crate) fn of_list(table: Table, findings: Findings) -> Self {
        Self { table, findings, header_located: false, complete: false }
    }

    fn of_nothing(file_len: u64, key: HashKey) -> Self {
        Self {
            table: Table {
                text: String::new(),
                unescaped: String::new(),
                entries: Vec::new(),
                dimensions: Vec::new(),
                metadata: Vec::new(),
                has_metadata: false,
                lookup: Lookup::with_room(key, 0),
                key,
                by_offset: None,
                data_start: file_len,
                file_len,
            },
            findings: Findings::new(),
            header_located: false,
            complete: false,
        }
    }

    /// Everything found.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Everything found, to add to.
    pub fn findings_mut(&mut self) -> &mut Findings {
        &mut self.findings
    }

    /// The header, if `policy` accepts it.
    ///
    /// # Errors
    ///
    /// The findings, if one of them refuses the file.
    pub fn accept(self, policy: Policy) -> Result<Header, Findings> {
        if self.findings.refused_by(policy) || !self.complete {
            Err(self.findings)
        } else {
            Ok(Header { table: self.table })
        }
    }

    /// Whether the whole header could be read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Bytes of the JSON header; `None` if there is none to be found.
    #[must_use]
    pub fn header_bytes(&self) -> Option<u64> {
        self.header_located.then(|| self.table.data_start.saturating_sub(PREFIX_BYTES))
    }

    /// Where the data section starts in the file, in bytes.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        self.table.data_start
    }

    /// Length of the file, in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.table.file_len
    }

    /// Number of entries that could be read, in whole or in part.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.entries.len()
    }

    /// Whether no entry could be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.entries.is_empty()
    }

    /// What could be read of each entry, in the order of the header.
    #[must_use]
    pub fn entries(&self) -> impl ExactSizeIterator<Item = PartialTensor<'_>> {
        self.table.entries.iter().map(|entry| partial(&self.table, entry))
    }

    /// What could be read of one entry, by its place in the order of the header.
    #[must_use]
    pub fn entry(&self, place: usize) -> Option<PartialTensor<'_>> {
        self.table.entries.get(place).map(|entry| partial(&self.table, entry))
    }

    /// Looks at all that one entry is made of, so that asking for it soon after finds it in the cache.
    ///
    /// For whoever goes through a large header in another order than its own: a few instructions an entry,
    /// so that the processor waits for many at once. The number says nothing; use it, or the compiler will
    /// not look.
    #[must_use]
    pub fn touch(&self, place: usize) -> u64 {
        self.table.entries.get(place).map_or(0, |entry| self.table.touch(entry))
    }

    /// What could be read of the first entry of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<PartialTensor<'_>> {
        self.table.find(name).map(|entry| partial(&self.table, entry))
    }

    /// The header's text, without a byte order mark; empty if it could not be read.
    pub(crate) fn text(&self) -> &str {
        &self.table.text
    }

    /// The metadata pairs that are strings, in the order of the header.
    #[must_use]
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = (String, String)> {
        metadata(&self.table)
    }
}

/// What could be read of an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PartialTensor<'h> {
    /// The name, unescaped.
    pub name: &'h str,
    /// The element type, if it is one of the format's.
    pub dtype: Option<Dtype>,
    /// The dimensions, if all could be read.
    pub shape: Option<&'h [u64]>,
    /// Bytes of the data section, if both offsets could be read and are not reversed.
    pub data_offsets: Option<Range<u64>>,
    /// Whether the file has all of those bytes.
    pub is_present: bool,
}

/// A sound header: every tensor has a place, and the places cover the data section exactly.
#[derive(Clone, Debug)]
pub struct Header {
    table: Table,
}

impl Header {
    /// Where the data section starts in the file, in bytes.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        self.table.data_start
    }

    /// Length of the file, in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.table.file_len
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.entries.len()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.entries.is_empty()
    }

    /// The tensor of this name, in constant time.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        self.table.find(name).and_then(|entry| whole(&self.table, entry))
    }

    /// The tensors in the order of the header.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.table.entries.iter().filter_map(|entry| whole(&self.table, entry))
    }

    /// The tensors in the order of their bytes.
    pub fn tensors_by_offset(&self) -> impl Iterator<Item = Tensor<'_>> {
        let count = position(self.table.entries.len());
        let order = self.table.by_offset.as_deref();
        (0..count).filter_map(move |place| {
            let number = match order {
                None => place,
                Some(order) => *order.get(usize::try_from(place).ok()?)?,
            };
            whole(&self.table, self.table.entry(number)?)
        })
    }

    /// The tensors in natural order of their names: `layers.2` before `layers.10`.
    pub fn tensors_by_name(&self) -> impl Iterator<Item = Tensor<'_>> {
        let names: Vec<&str> =
            self.table.entries.iter().map(|entry| self.table.name(entry)).collect();
        order::natural(&names, self.table.key)
            .into_iter()
            .filter_map(|number| whole(&self.table, self.table.entry(number)?))
    }

    /// The metadata, in the order of the header.
    #[must_use]
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = (String, String)> {
        metadata(&self.table)
    }

    /// Whether the header has metadata, if without any pair: `"__metadata__":{}`.
    #[must_use]
    pub fn has_metadata(&self) -> bool {
        self.table.has_metadata
    }

    /// Spaces after its object, in bytes: so much longer could it be.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let text = self.table.text.as_str();
        let used = table::length(text.trim_end_matches(' '));
        table::length(text).saturating_sub(used)
    }

    /// Number of tensors whose entries have fields that the format has not. They are not kept where the header is
    /// written anew.
    #[must_use]
    pub fn with_unknown_fields(&self) -> usize {
        let entries = self.table.entries.iter();
        entries.filter(|entry| entry.flags.has(Flags::UNKNOWN_FIELDS)).count()
    }

    /// Whether it was read of these bytes, those that [`locate`] named.
    #[must_use]
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        let text = bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes);
        text == self.table.text.as_bytes()
    }
}

/// A tensor of a sound header.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Tensor<'h> {
    /// The name, unescaped.
    pub name: &'h str,
    /// The element type.
    pub dtype: Dtype,
    /// The dimensions; empty for a scalar.
    pub shape: &'h [u64],
    /// Bytes of the data section. Add [`Header::data_start`] for bytes of the file.
    pub data_offsets: Range<u64>,
}

fn partial<'h>(table: &'h Table, entry: &Entry) -> PartialTensor<'h> {
    let data_offsets = placed(entry);
    PartialTensor {
        name: table.name(entry),
        dtype: entry.dtype,
        shape: entry.flags.has(Flags::SHAPE).then(|| table.shape(entry)),
        is_present: data_offsets.is_some()
            && (entry.end <= table.data_len() || entry.flags.has(Flags::ELSEWHERE)),
        data_offsets,
    }
}

fn placed(entry: &Entry) -> Option<Range<u64>> {
    entry.flags.has(Flags::OFFSETS).then_some(entry.begin..entry.end)
}

fn whole<'h>(table: &'h Table, entry: &Entry) -> Option<Tensor<'h>> {
    Some(Tensor {
        name: table.name(entry),
        dtype: entry.dtype?,
        shape: table.shape(entry),
        data_offsets: entry.begin..entry.end,
    })
}

fn metadata(table: &Table) -> impl ExactSizeIterator<Item = (String, String)> {
    table.metadata.iter().map(|&at| {
        let (mut key, mut value) = (String::new(), String::new());
        table.metadata_pair(at, &mut key, &mut value);
        (key, value)
    })
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The byte order mark that `bytes` begin with (rule F7).
fn byte_order_mark(bytes: &[u8]) -> Option<(&'static [u8], &'static str)> {
    // UTF-32's little-endian mark begins with UTF-16's.
    const MARKS: [(&[u8], &str); 5] = [
        (UTF8_MARK, "UTF-8"),
        (b"\xff\xfe\0\0", "UTF-32, little endian"),
        (b"\xff\xfe", "UTF-16, little endian"),
        (b"\xfe\xff", "UTF-16, big endian"),
        (b"\0\0\xfe\xff", "UTF-32, big endian"),
    ];
    MARKS.into_iter().find(|(mark, _)| bytes.starts_with(mark))
}

/// Notes a length field that reads as another format's magic number (rule F11).
fn note_magic_length(length: u64, findings: &mut Findings) {
    const MAGIC: [(&[u8], &str); 9] = [
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"BZh", "bzip2"),
        (b"GGUF", "GGUF"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"%PDF", "PDF"),
        (b"\x7fELF", "an ELF program"),
        (b"Rar!", "RAR"),
        (b"<htm", "HTML"),
    ];
    let bytes = length.to_le_bytes();
    if let Some((_, format)) = MAGIC.into_iter().find(|(magic, _)| bytes.starts_with(magic)) {
        let message = format!("the length field, {length}, is also the magic number of {format}");
        findings.push(
            Finding::new(&rule::LENGTH_IS_MAGIC, message)
                .at(0..PREFIX_BYTES)
                .with("header_bytes", length)
                .with("format", format),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Header {
        let length = u64::try_from(text.len()).unwrap();
        let key = HashKey::new(1, 2);
        let read = inspect(text.into(), 8 + length + 2, &Limits::default(), key);
        read.accept(Policy::Compatible).unwrap()
    }

    const ONE: &str = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;

    #[test]
    fn free_bytes_are_the_spaces_at_the_end() {
        for spaces in [0, 1, 1000] {
            let text = format!("{ONE}{:spaces$}", "");
            assert_eq!(header(&text).free_bytes(), u64::try_from(spaces).unwrap());
        }
    }

    #[test]
    fn entries_with_unknown_fields_are_counted() {
        let two = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","extra":[1,2],"shape":[1],"data_offsets":[1,2]}}"#;
        for (text, want) in [(ONE, 0), (two, 1)] {
            assert_eq!(header(text).with_unknown_fields(), want);
        }
    }

    #[test]
    fn it_is_of_the_bytes_that_it_was_read_of() {
        let header = header(ONE);
        assert!(header.is_of(ONE.as_bytes()));
        for other in ["", "{}", &ONE.replace('a', "b"), &format!("{ONE} ")] {
            assert!(!header.is_of(other.as_bytes()), "{other}");
        }
    }
}
