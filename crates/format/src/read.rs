//! Reads the JSON of a header, recording findings: rules F8 to F11, J, T1 to T7, M1 and L1.
//!
//! One pass. An entry in the exact spelling that writers use is read by [`fields::compact`]; any other
//! spelling by the general reader beside it. Both end in `Reader::finish_entry`.

mod fields;
mod metadata;
mod sizes;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use self::fields::Fields;
use crate::finding::{Finding, Findings, Severity, bytes};
use crate::json::{Cursor, Kind, RawString, Stop};
use crate::keys::{Keys, Repeated};
use crate::lookup::{HashKey, Lookup};
use crate::rule::{self, Rule};
use crate::table::{self, Entry, Flags, position};
use crate::text::shortened;
use crate::{Limits, encode};

/// Bytes of the shortest entry that can be sound, with a name of one byte and a comma.
const SHORTEST_ENTRY: usize = r#""a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"#.len();

/// What reading a header gives, before the layout is looked at.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) entries: Vec<Entry>,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) unescaped: String,
    pub(crate) metadata: Vec<u32>,
    pub(crate) has_metadata: bool,
    pub(crate) lookup: Lookup,
    /// Whether the whole header could be read.
    pub(crate) complete: bool,
}

/// Reads `text`, which begins at byte `base` of the file.
pub(crate) fn read(
    text: &str,
    base: u64,
    limits: &Limits,
    key: HashKey,
    findings: &mut Findings,
) -> Read {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        text,
        base,
        limits,
        key,
        lookup: Lookup::with_room(key, 0),
        findings,
        entries: Vec::new(),
        dimensions: Vec::new(),
        unescaped: String::new(),
        metadata: Vec::new(),
        has_metadata: false,
        metadata_key: None,
        hashes: Vec::new(),
    };
    let outcome = reader.header();
    if let Err(stop) = outcome {
        reader.stopped(stop);
    }
    reader.find_duplicates();
    Read {
        entries: reader.entries,
        dimensions: reader.dimensions,
        unescaped: reader.unescaped,
        metadata: reader.metadata,
        has_metadata: reader.has_metadata,
        lookup: reader.lookup,
        complete: outcome.is_ok(),
    }
}

struct Reader<'t, 'c> {
    cursor: Cursor<'t>,
    text: &'t str,
    base: u64,
    limits: &'c Limits,
    key: HashKey,
    lookup: Lookup,
    findings: &'c mut Findings,
    entries: Vec<Entry>,
    dimensions: Vec<u64>,
    unescaped: String,
    metadata: Vec<u32>,
    /// Whether that is an object, if empty.
    has_metadata: bool,
    /// Where the first `__metadata__` was.
    metadata_key: Option<usize>,
    /// The hash of each entry's name, until the lookup is built.
    hashes: Vec<u32>,
}

impl<'t> Reader<'t, '_> {
    fn header(&mut self) -> Result<(), Stop> {
        self.cursor.skip_whitespace();
        let start = self.cursor.at();
        if start > 0 {
            self.report(&rule::HEADER_LEADING_SPACE, 0..start, |finding| {
                finding.says(format!(
                    "white space before the header's object: {}",
                    bytes(length(start))
                ))
            });
        }
        if self.cursor.rest().first() != Some(&b'{') {
            return self.cursor.fail("'{'");
        }
        self.cursor.open(1, self.limits.depth)?;
        if !self.cursor.eat(b"}") {
            loop {
                self.top_level_entry()?;
                if !self.cursor.another(b'}')? {
                    break;
                }
            }
        }
        self.padding();
        Ok(())
    }

    #[inline]
    fn top_level_entry(&mut self) -> Result<(), Stop> {
        let key = self.cursor.string("a string")?;
        self.check_name_limit(key)?;
        let is_metadata = if key.escaped {
            key.text(&mut String::new()) == encode::METADATA
        } else {
            key.raw == encode::METADATA
        };
        if is_metadata {
            self.cursor.expect(b':', "':'")?;
            return self.metadata(key);
        }
        self.check_tensor_limit(key)?;
        if self.limits.depth >= fields::LEVELS
            && let Some(fields) = fields::compact(&mut self.cursor, &mut self.dimensions)
        {
            self.finish_entry(key, &fields);
            return Ok(());
        }
        self.cursor.expect(b':', "':'")?;
        if self.cursor.kind()? != Kind::Object {
            let span = self.skip(2)?;
            self.report_entry(&rule::ENTRY_FIELD_TYPE, span, key, |name, finding| {
                finding.says(format!("the entry of tensor `{name}` is not an object"))
            });
            self.keep(key, &Fields::default());
            return Ok(());
        }
        let start = self.cursor.at();
        let fields = self.fields(key)?;
        self.check_fields_present(key, &fields, start);
        self.finish_entry(key, &fields);
        Ok(())
    }

    #[inline]
    fn check_tensor_limit(&self, key: RawString<'t>) -> Result<(), Stop> {
        if self.entries.len() >= usize::try_from(self.limits.tensors).unwrap_or(usize::MAX) {
            return Err(Stop::Tensors { at: key.at });
        }
        Ok(())
    }

    #[inline]
    fn check_name_limit(&mut self, key: RawString<'t>) -> Result<(), Stop> {
        let limit = usize::try_from(self.limits.name_bytes).unwrap_or(usize::MAX);
        if key.raw.len() > limit {
            let bytes = key.text(&mut String::new()).len();
            if bytes > limit {
                return Err(Stop::Name { at: key.at, bytes });
            }
        }
        Ok(())
    }

    /// Checks the fields of an entry against each other, and keeps what could be read of it.
    #[inline]
    fn finish_entry(&mut self, key: RawString<'t>, fields: &Fields) {
        if !fields.fit(&self.dimensions) {
            self.check_sizes(key, fields);
        }
        self.keep(key, fields);
    }

    #[inline]
    fn keep(&mut self, key: RawString<'t>, fields: &Fields) {
        let (name, name_len) = if key.escaped {
            let start = self.unescaped.len();
            key.unescape_onto(&mut self.unescaped);
            (start, self.unescaped.len().saturating_sub(start))
        } else {
            (key.at.saturating_add(1), key.raw.len())
        };
        let shape = fields.shape.unwrap_or(self.dimensions.len());
        let [begin, end] = fields.offsets.unwrap_or_default();
        let entry = Entry {
            begin,
            end,
            key: position(key.at),
            name: position(name),
            name_len: position(name_len),
            shape: position(shape),
            rank: position(self.dimensions.len().saturating_sub(shape)),
            dtype: fields.dtype,
            flags: Flags::default()
                .with(Flags::UNESCAPED, key.escaped)
                .with(Flags::ODD, key.odd || key.raw.starts_with('/'))
                .with(Flags::SHAPE, fields.shape.is_some())
                .with(Flags::OFFSETS, fields.offsets.is_some() && begin <= end)
                .with(Flags::UNKNOWN_FIELDS, fields.has_unknown),
        };
        if self.entries.len() == self.entries.capacity() {
            self.make_room();
        }
        let name =
            if key.escaped { self.unescaped.get(name..).unwrap_or_default() } else { key.raw };
        self.hashes.push(self.lookup.hasher().hash(name.as_bytes()));
        self.entries.push(entry);
    }

    /// Makes room for what the rest of the text has, if it goes on like this.
    ///
    /// Doubling alone would leave up to half of the room unused.
    #[cold]
    fn make_room(&mut self) {
        let (read, left) = (self.cursor.at(), self.cursor.rest().len());
        let expected = |so_far: usize, most: usize| {
            let expected = so_far.saturating_mul(left).checked_div(read).unwrap_or_default();
            expected.min(most).saturating_add(so_far / 8).saturating_add(64)
        };
        let limit = usize::try_from(self.limits.tensors).unwrap_or(usize::MAX);
        let entries = expected(self.entries.len(), limit.min(left / SHORTEST_ENTRY));
        let dimensions = expected(self.dimensions.len(), entries.saturating_mul(4));
        self.entries.reserve_exact(entries);
        self.hashes.reserve_exact(entries);
        self.dimensions.reserve_exact(dimensions);
    }

    /// Builds the lookup; equal names are found on the way.
    fn find_duplicates(&mut self) {
        let mut lookup = Lookup::with_room(self.key, self.entries.len());
        let mut twice = Vec::new();
        let entries = &self.entries;
        let entry = |number: u32| entries.get(usize::try_from(number).unwrap_or(usize::MAX));
        let name = |number: u32| {
            entry(number).map_or("", |entry| table::name(self.text, &self.unescaped, entry))
        };
        for (number, &hash) in (0_u32..).zip(&self.hashes) {
            if let Some(first) = lookup.insert(hash, number, |other| name(other) == name(number)) {
                let keys = [entry(first), entry(number)].map(|entry| entry.map_or(0, |e| e.key));
                twice.push(keys);
            }
        }
        self.lookup = lookup;
        self.hashes = Vec::new();
        for [first, second] in twice {
            let mut cursor = Cursor::new(self.text);
            cursor.advance(usize::try_from(second).unwrap_or(usize::MAX));
            let Ok(key) = cursor.string("a string") else {
                continue;
            };
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            self.duplicate("tensor", first, key, None);
        }
    }

    /// Reports the keys of an object that come twice.
    fn repeated(&mut self, what: &'static str, keys: Keys, of: Option<RawString<'t>>) {
        for Repeated { first, key } in keys.repeated(self.text) {
            self.duplicate(what, first, key, of);
        }
    }

    /// Reports that key `second` repeats what stands at `first`.
    fn duplicate(
        &mut self,
        what: &'static str,
        first: usize,
        second: RawString<'_>,
        of: Option<RawString<'_>>,
    ) {
        let first = self.file_offset(first);
        let again = self.file_offset(second.at);
        self.report(&rule::DUPLICATE_KEY, second.span(), |finding| {
            let key = shown(second);
            let (of, tensor) = match of.map(shown) {
                Some(tensor) => (format!(" of tensor `{tensor}`"), tensor),
                None => (String::new(), key.clone()),
            };
            finding
                .says(format!("{what} `{key}`{of} comes twice, at bytes {first} and {again}"))
                .with("first", first)
                .with("second", again)
                .tensor(&tensor)
        });
    }

    /// Looks at what follows the object (rules F9 to F11).
    fn padding(&mut self) {
        let rest = self.cursor.rest();
        let start = self.cursor.at();
        let end = self.text.len();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        if let Some(index) = rest.iter().position(|byte| !is_space(byte)) {
            let tail = rest.get(index..).unwrap_or_default();
            let trailing = length(tail.len());
            let span = start.saturating_add(index)..end;
            if tail.iter().all(|byte| *byte == 0 || is_space(byte)) {
                self.report(&rule::HEADER_PADDING, span, |finding| {
                    finding
                        .severity(Severity::Error)
                        .says(format!("the header is padded with NUL: {}", bytes(trailing)))
                });
            } else {
                self.report(&rule::HEADER_TRAILING_DATA, span, |finding| {
                    finding.says(format!("after the header's object: {}", bytes(trailing)))
                });
            }
        } else if let Some(index) = rest.iter().position(|byte| *byte != b' ') {
            self.report(&rule::HEADER_PADDING, start.saturating_add(index)..end, |finding| {
                finding.says("the header is padded with white space other than spaces")
            });
        } else if rest.len() >= 4096 {
            self.report(&rule::HEADER_LARGE_PADDING, start..end, |finding| {
                finding.says(format!("the header is padded with {} spaces", rest.len()))
            });
        }
    }

    fn stopped(&mut self, stop: Stop) {
        let at = stop.at();
        let span = at..at.saturating_add(1).min(self.text.len()).max(at);
        let limits = *self.limits;
        let offset = self.file_offset(at);
        match stop {
            Stop::Syntax { at, expected } => {
                let got = self.text.get(at..).and_then(|rest| rest.chars().next());
                self.report(&rule::JSON_SYNTAX, span, |finding| {
                    let found = match got {
                        Some(got) => format!("found {got:?}"),
                        None => "but the header ends".into(),
                    };
                    finding
                        .says(format!("expected {expected}, {found}, at byte {offset}"))
                        .with("expected", expected)
                });
            }
            Stop::Depth { .. } => self.report(&rule::JSON_DEPTH, span, |finding| {
                finding
                    .says(format!(
                        "brackets nest more than {} levels deep, at byte {offset}",
                        limits.depth
                    ))
                    .with("limit", u64::from(limits.depth))
            }),
            Stop::Tensors { .. } => self.report(&rule::LIMIT_TENSORS, span, |finding| {
                finding
                    .says(format!("more than {} tensors", limits.tensors))
                    .with("limit", u64::from(limits.tensors))
            }),
            Stop::Name { bytes, .. } => self.report(&rule::LIMIT_NAME, span, |finding| {
                let limit = limits.name_bytes;
                finding
                    .says(format!(
                        "a name has {}, over the limit of {limit}",
                        crate::finding::bytes(length(bytes))
                    ))
                    .with("limit", u64::from(limit))
            }),
        }
    }

    /// Skips any value and says where it was.
    fn skip(&mut self, level: u32) -> Result<Range<usize>, Stop> {
        let start = self.cursor.at();
        self.cursor.skip_value(level, self.limits.depth)?;
        Ok(start..self.cursor.at())
    }

    /// Records a finding at a span of the text.
    fn report(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        fill: impl FnOnce(Finding) -> Finding,
    ) {
        let span = self.file_offset(span.start)..self.file_offset(span.end);
        self.findings.report(rule, || fill(Finding::new(rule, "").at(span)));
    }

    /// Records a finding at a span of the text about the tensor of this key.
    #[cold]
    fn report_entry(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        key: RawString<'_>,
        fill: impl FnOnce(&str, Finding) -> Finding,
    ) {
        self.report(rule, span, |finding| {
            let name = shown(key);
            fill(&name, finding.tensor(&name))
        });
    }

    fn file_offset(&self, at: usize) -> u64 {
        self.base.saturating_add(length(at))
    }
}

/// A number of bytes in the type of file offsets.
fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A name as a finding shows it.
fn shown(name: RawString<'_>) -> String {
    shortened(name.text(&mut String::new())).into_owned()
}
