//! The shard index, `*.safetensors.index.json` (FORMAT.md §6): read, checked and written.

mod write;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::HashKey;
use crate::finding::{Finding, Findings};
use crate::json::{Cursor, Kind, RawString, Stop};
use crate::keys::{Keys, Repeated};
use crate::lookup::Lookup;
use crate::rule;
use crate::table::{length, position};
use crate::text::shortened;
pub use write::{Extra, IndexError, encode};

/// What an index says.
#[derive(Clone, Debug)]
pub struct Index {
    /// Tensor names, each with the number of its file, in the order of the index.
    tensors: Vec<(String, u32)>,
    files: Vec<String>,
    lookup: Lookup,
    total_size: Option<u64>,
    claims_total_size: bool,
    total_parameters: Option<u64>,
    extra: BTreeMap<String, Extra>,
    beside: BTreeMap<String, Extra>,
    is_complete: bool,
}

impl Index {
    /// Reads an index, recording what is wrong with it.
    ///
    /// Duplicate keys, file names that leave the folder and files that are not an index are errors; of a
    /// damaged index what could be read is kept. `key` keeps the table of names from being flooded.
    #[must_use]
    pub fn read(bytes: &[u8], key: HashKey) -> (Self, Findings) {
        let mut findings = Findings::new();
        let mut index = Self::unread(key);
        match core::str::from_utf8(bytes) {
            Ok(text) => {
                let (cursor, findings) = (Cursor::new(text), &mut findings);
                let mut reader = Reader { index: &mut index, findings, text, cursor };
                match reader.object(key) {
                    Ok(()) => index.is_complete = true,
                    Err(stop) => reader.stopped(stop),
                }
            }
            Err(error) => {
                let at = u64::try_from(error.valid_up_to()).unwrap_or(u64::MAX);
                let message = format!("the index is not UTF-8 from byte {at} on");
                let span = at..at.saturating_add(1);
                findings.push(Finding::new(&rule::INDEX_SYNTAX, message).at(span));
            }
        }
        (index, findings)
    }

    /// An index of which nothing could be read.
    #[must_use]
    pub fn unread(key: HashKey) -> Self {
        Self {
            tensors: Vec::new(),
            files: Vec::new(),
            lookup: Lookup::with_room(key, 0),
            total_size: None,
            claims_total_size: false,
            total_parameters: None,
            extra: BTreeMap::new(),
            beside: BTreeMap::new(),
            is_complete: false,
        }
    }

    /// Whether all of it could be read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The files that the index names, each once, in the order of their first mention.
    ///
    /// Those that are not plain names in the index's folder were reported; see [`is_plain_file_name`].
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Number of tensors that are mapped to a file.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether no tensor is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The tensor names with the file each is mapped to, in the order of the index.
    #[must_use]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.tensors.iter().map(|(name, file)| (name.as_str(), self.file(*file)))
    }

    /// The file that a tensor is mapped to.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let number = self.lookup.find(name.as_bytes(), |number| {
            self.entry(number).is_some_and(|(own, _)| own == name)
        })?;
        self.entry(number).map(|(_, file)| self.file(*file))
    }

    /// `metadata.total_size`: bytes of all tensors, as the index claims.
    #[must_use]
    pub fn total_size(&self) -> Option<u64> {
        self.total_size
    }

    /// Whether there is a `metadata.total_size`, though it may be no number of bytes.
    #[must_use]
    pub fn claims_total_size(&self) -> bool {
        self.claims_total_size
    }

    /// `metadata.total_parameters`, as the index claims.
    #[must_use]
    pub fn total_parameters(&self) -> Option<u64> {
        self.total_parameters
    }

    /// What `metadata` has that is no total, for [`encode`].
    #[must_use]
    pub fn extra(&self) -> &BTreeMap<String, Extra> {
        &self.extra
    }

    /// What the index has beside `metadata` and `weight_map`, for [`encode`].
    #[must_use]
    pub fn beside(&self) -> &BTreeMap<String, Extra> {
        &self.beside
    }

    fn entry(&self, number: u32) -> Option<&(String, u32)> {
        self.tensors.get(usize::try_from(number).ok()?)
    }

    fn file(&self, number: u32) -> &str {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        self.files.get(number).map_or("", String::as_str)
    }
}

/// Bytes of a file name that every file system takes.
const FILE_NAME_BYTES: usize = 255;

/// Names that are devices on Windows, whatever their extension.
const DEVICES: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8",
    "COM9", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

/// Whether `name` can only be a file in the folder it is looked up in, on any system.
#[must_use]
pub fn is_plain_file_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    (1..=FILE_NAME_BYTES).contains(&name.len())
        && !name.contains(['/', '\\', ':'])
        && !name.chars().any(crate::text::is_unsafe_to_print)
        // Among them `.` and `..`; the rest would be another file on Windows.
        && !name.ends_with(['.', ' '])
        && !DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device))
}

/// Levels of nesting that an index may have.
const DEPTH: u32 = 32;

struct Reader<'t, 'i> {
    index: &'i mut Index,
    findings: &'i mut Findings,
    text: &'t str,
    cursor: Cursor<'t>,
}

impl<'t> Reader<'t, '_> {
    fn object(&mut self, key: HashKey) -> Result<(), Stop> {
        self.cursor.skip_whitespace();
        let mut has_weight_map = false;
        self.members(|reader, field| match field.text(&mut String::new()) {
            "metadata" => reader.metadata(),
            "weight_map" => {
                has_weight_map = true;
                reader.weight_map(key)
            }
            key => {
                let value = reader.value(2)?;
                reader.index.beside.insert(key.to_string(), value);
                Ok(())
            }
        })?;
        if !has_weight_map {
            let message = "the index has no weight_map";
            self.findings.push(Finding::new(&rule::INDEX_SYNTAX, message));
        }
        self.cursor.skip_whitespace();
        if self.cursor.rest().is_empty() { Ok(()) } else { self.cursor.fail("nothing more") }
    }

    /// Reads an object, leaving each value to `member`. Keys that come twice are reported.
    fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, RawString<'t>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.cursor.expect(b'{', "'{'")?;
        if self.cursor.eat(b"}") {
            return Ok(());
        }
        let mut keys = Keys::default();
        loop {
            let field = self.cursor.string("a string")?;
            keys.add(self.index.lookup.hasher(), field);
            self.cursor.expect(b':', "':'")?;
            member(self, field)?;
            if !self.cursor.another(b'}')? {
                break;
            }
        }
        for Repeated { first, key } in keys.repeated(self.text) {
            self.duplicate(first, key);
        }
        Ok(())
    }

    fn metadata(&mut self) -> Result<(), Stop> {
        if self.cursor.kind()? != Kind::Object {
            return self.cursor.skip_value(2, DEPTH);
        }
        self.members(|reader, field| {
            let value = reader.value(3)?;
            // Some writers give numbers as strings.
            let number = || value.text().parse().ok();
            match field.text(&mut String::new()) {
                "total_size" => {
                    reader.index.total_size = number();
                    reader.index.claims_total_size = true;
                }
                "total_parameters" => reader.index.total_parameters = number(),
                key => {
                    reader.index.extra.insert(key.to_string(), value);
                }
            }
            Ok(())
        })
    }

    /// Reads a value of any kind, at this depth.
    fn value(&mut self, depth: u32) -> Result<Extra, Stop> {
        if self.cursor.kind()? == Kind::String {
            let mut text = String::new();
            self.cursor.string("a string")?.unescape_onto(&mut text);
            return Ok(text.into());
        }
        let from = self.cursor.at();
        self.cursor.skip_value(depth, DEPTH)?;
        Ok(Extra::literal(self.text.get(from..self.cursor.at()).unwrap_or_default()))
    }

    fn weight_map(&mut self, key: HashKey) -> Result<(), Stop> {
        let mut files = Files { lookup: Lookup::with_room(key, 0) };
        self.members(|reader, field| {
            if reader.cursor.kind()? != Kind::String {
                return reader.cursor.fail("a file name");
            }
            let value = reader.cursor.string("a file name")?;
            let file = files.number(reader, value);
            let mut name = String::new();
            field.unescape_onto(&mut name);
            let Index { tensors, lookup, .. } = &mut *reader.index;
            let hash = lookup.hasher().hash(name.as_bytes());
            let first = lookup.insert(hash, position(tensors.len()), |other| {
                let other = usize::try_from(other).unwrap_or(usize::MAX);
                tensors.get(other).is_some_and(|(other, _)| *other == name)
            });
            if first.is_none() {
                tensors.push((name, file));
            }
            Ok(())
        })
    }

    fn duplicate(&mut self, first: usize, second: RawString<'t>) {
        let [first, again] = [first, second.at].map(|at| u64::try_from(at).unwrap_or(u64::MAX));
        self.findings.report(&rule::DUPLICATE_KEY, || {
            let mut scratch = String::new();
            let name = shortened(second.text(&mut scratch));
            let message =
                format!("`{name}` comes twice in the index, at bytes {first} and {again}");
            Finding::new(&rule::DUPLICATE_KEY, message)
                .at(again..again.saturating_add(length(second.raw)).saturating_add(2))
                .with("first", first)
                .with("second", again)
        });
    }

    fn stopped(&mut self, stop: Stop) {
        let at = u64::try_from(stop.at()).unwrap_or(u64::MAX);
        let message = match stop {
            Stop::Syntax { expected, .. } => format!("expected {expected} at byte {at}"),
            _ => format!("brackets nest more than {DEPTH} levels deep at byte {at}"),
        };
        self.findings.push(Finding::new(&rule::INDEX_SYNTAX, message).at(at..at.saturating_add(1)));
    }
}

/// The file names of a weight map, each once.
struct Files {
    lookup: Lookup,
}

impl Files {
    /// The number of the file that `value` names, which may be new.
    fn number(&mut self, reader: &mut Reader<'_, '_>, value: RawString<'_>) -> u32 {
        let mut scratch = String::new();
        let file = value.text(&mut scratch);
        let files = &mut reader.index.files;
        let next = position(files.len());
        let hash = self.lookup.hasher().hash(file.as_bytes());
        let known = self.lookup.insert(hash, next, |other| {
            let other = usize::try_from(other).unwrap_or(usize::MAX);
            files.get(other).is_some_and(|other| other == file)
        });
        if let Some(number) = known {
            return number;
        }
        files.push(file.to_string());
        if !is_plain_file_name(file) {
            let at = u64::try_from(value.at).unwrap_or(u64::MAX);
            reader.findings.report(&rule::INDEX_PATH, || {
                let shown = shortened(file);
                Finding::new(
                    &rule::INDEX_PATH,
                    format!("the index names `{shown}`, which is not a plain file name"),
                )
                .at(at..at.saturating_add(length(value.raw)).saturating_add(2))
                .with("file", shown.as_ref())
            });
        }
        next
    }
}
