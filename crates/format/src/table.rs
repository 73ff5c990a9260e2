//! The entries of a header, as compactly as they can be kept.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::Dtype;
use crate::json::Cursor;
use crate::lookup::{HashKey, Lookup};

/// What was read of one entry: 40 bytes; its name stays in the header's text, its shape in one arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Offset of the key's opening quote in the header's text.
    pub(crate) key: u32,
    /// Where the name starts: in the header's text, or in `unescaped`.
    pub(crate) name: u32,
    pub(crate) name_len: u32,
    /// Where the shape starts in `dimensions`.
    pub(crate) shape: u32,
    pub(crate) rank: u32,
    pub(crate) dtype: Option<Dtype>,
    pub(crate) flags: Flags,
}

/// What is known of an entry, a bit each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The name had escapes and is in `unescaped`.
    pub(crate) const UNESCAPED: Self = Self(1);
    /// The name has characters that need a second look.
    pub(crate) const ODD: Self = Self(2);
    pub(crate) const SHAPE: Self = Self(4);
    pub(crate) const OFFSETS: Self = Self(8);
    /// It has fields that the format has not.
    pub(crate) const UNKNOWN_FIELDS: Self = Self(16);
    /// Its offsets need not be inside of the file.
    pub(crate) const ELSEWHERE: Self = Self(32);

    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) const fn with(self, flag: Self, set: bool) -> Self {
        if set { Self(self.0 | flag.0) } else { self }
    }
}

/// A header, read.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The header's JSON.
    pub(crate) text: String,
    /// Names that had escapes, resolved, one after the other.
    pub(crate) unescaped: String,
    /// In the order of the header.
    pub(crate) entries: Vec<Entry>,
    /// All shapes, one after the other.
    pub(crate) dimensions: Vec<u64>,
    /// Offsets in `text` of the keys of `__metadata__`.
    pub(crate) metadata: Vec<u32>,
    /// Whether `__metadata__` is an object, if an empty one.
    pub(crate) has_metadata: bool,
    /// Finds entries by name.
    pub(crate) lookup: Lookup,
    /// The key of that lookup.
    pub(crate) key: HashKey,
    /// Entries by offset; `None` when that is their order in the header.
    pub(crate) by_offset: Option<Vec<u32>>,
    /// Where the data section starts in the file.
    pub(crate) data_start: u64,
    /// Length of the file.
    pub(crate) file_len: u64,
}

impl Table {
    pub(crate) fn name(&self, entry: &Entry) -> &str {
        name(&self.text, &self.unescaped, entry)
    }

    pub(crate) fn shape(&self, entry: &Entry) -> &[u64] {
        self.dimensions.get(range(entry.shape, entry.rank)).unwrap_or_default()
    }

    /// Something made of the entry, of both ends of its name and of its shape.
    pub(crate) fn touch(&self, entry: &Entry) -> u64 {
        let text = if entry.flags.has(Flags::UNESCAPED) { &self.unescaped } else { &self.text };
        let end = entry.name.wrapping_add(entry.name_len).wrapping_sub(1);
        let byte = |at: u32| usize::try_from(at).ok().and_then(|at| text.as_bytes().get(at));
        let [first, last] = [entry.name, end].map(|at| byte(at).map_or(0, |it| u64::from(*it)));
        let dimension = usize::try_from(entry.shape).ok().and_then(|at| self.dimensions.get(at));
        entry.begin ^ first ^ last ^ dimension.copied().unwrap_or_default()
    }

    pub(crate) fn data_len(&self) -> u64 {
        self.file_len.saturating_sub(self.data_start)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        let number = self.lookup.find(name.as_bytes(), |number| {
            self.entry(number).is_some_and(|entry| self.name(entry) == name)
        })?;
        self.entry(number)
    }

    pub(crate) fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(number).ok()?)
    }

    /// Where an entry's key is in the file: its quotes included if the name had no escapes.
    pub(crate) fn key_span(&self, entry: &Entry) -> Range<u64> {
        let text_start = self.data_start.saturating_sub(length(&self.text));
        let start = text_start.saturating_add(u64::from(entry.key));
        let quotes = if entry.flags.has(Flags::UNESCAPED) { 1 } else { 2 };
        let len = if entry.flags.has(Flags::UNESCAPED) { 0 } else { u64::from(entry.name_len) };
        start..start.saturating_add(len).saturating_add(quotes)
    }

    /// The metadata pair whose key is at `at` in the text, its escapes resolved onto the two strings.
    pub(crate) fn metadata_pair(&self, at: u32, key: &mut String, value: &mut String) {
        let mut cursor = Cursor::new(&self.text);
        cursor.advance(usize::try_from(at).unwrap_or(usize::MAX));
        // These were read once already; what is not a pair of strings is not in `metadata`.
        let Ok(raw_key) = cursor.string("") else {
            return;
        };
        if cursor.expect(b':', "").is_err() {
            return;
        }
        let Ok(raw_value) = cursor.string("") else {
            return;
        };
        raw_key.unescape_onto(key);
        raw_value.unescape_onto(value);
    }
}

/// The name of an entry, given the two texts that it may be in.
pub(crate) fn name<'t>(text: &'t str, unescaped: &'t str, entry: &Entry) -> &'t str {
    let text = if entry.flags.has(Flags::UNESCAPED) { unescaped } else { text };
    text.get(range(entry.name, entry.name_len)).unwrap_or_default()
}

fn range(start: u32, len: u32) -> Range<usize> {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    start..start.saturating_add(usize::try_from(len).unwrap_or(usize::MAX))
}

/// The length of a text, in the type of file offsets.
pub(crate) fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// A position in a header, which is shorter than 2^32 bytes ([`crate::Limits::header_bytes`]).
pub(crate) fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
