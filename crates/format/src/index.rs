//! The shard index (`*.safetensors.index.json`) and the checks across a sharded checkpoint (FORMAT.md §6).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::HashKey;
use crate::finding::{Finding, Findings, shortened};
use crate::header::Inspection;
use crate::json::{Cursor, Kind, Number, RawString, Stop};
use crate::lookup::Lookup;
use crate::rule;
use crate::table::{length, position};

/// What an index says.
#[derive(Clone, Debug)]
pub struct Index {
    /// Tensor names, each with the number of its file, in the order of the index.
    tensors: Vec<(String, u32)>,
    files: Vec<String>,
    lookup: Lookup,
    total_size: Option<u64>,
    total_parameters: Option<u64>,
}

impl Index {
    /// Reads an index, recording what is wrong with it.
    ///
    /// Duplicate keys, file names that leave the folder and files that are not an index are errors; of a
    /// damaged index what could be read is kept. `key` keeps the table of names from being flooded.
    #[must_use]
    pub fn read(bytes: &[u8], key: HashKey) -> (Self, Findings) {
        let mut findings = Findings::new();
        let mut index = Self {
            tensors: Vec::new(),
            files: Vec::new(),
            lookup: Lookup::with_room(key, 0),
            total_size: None,
            total_parameters: None,
        };
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match core::str::from_utf8(bytes) {
            Ok(text) => {
                let mut reader = Reader {
                    index: &mut index,
                    findings: &mut findings,
                    cursor: Cursor::new(text),
                };
                if let Err(stop) = reader.object(key) {
                    reader.stopped(stop);
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

    /// `metadata.total_parameters`, as the index claims.
    #[must_use]
    pub fn total_parameters(&self) -> Option<u64> {
        self.total_parameters
    }

    fn entry(&self, number: u32) -> Option<&(String, u32)> {
        self.tensors.get(usize::try_from(number).ok()?)
    }

    fn file(&self, number: u32) -> &str {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        self.files.get(number).map_or("", String::as_str)
    }
}

/// Whether `name` can only be a file in the folder it is looked up in.
#[must_use]
pub fn is_plain_file_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.contains(['/', '\\', ':'])
        && !name.chars().any(crate::text::is_unsafe_to_print)
}

/// Which shard of how many a file name says it is: `model-00001-of-00003.safetensors` is 1 of 3.
#[must_use]
pub fn numbering(file: &str) -> Option<Numbering<'_>> {
    let stem = file.strip_suffix(".safetensors")?;
    let (rest, total) = stem.rsplit_once("-of-").or_else(|| stem.rsplit_once("_of_"))?;
    let (prefix, number) = rest.rsplit_once(['-', '_']).unwrap_or(("", rest));
    let digits = |text: &str| {
        let few = (1..=9).contains(&text.len());
        (few && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
    };
    Some(Numbering { prefix, number: digits(number)?, total: digits(total)? })
}

/// A shard's place in a numbered set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Numbering<'a> {
    /// What comes before the number: `model` in `model-00001-of-00003.safetensors`.
    pub prefix: &'a str,
    /// The number, from 1 on.
    pub number: u64,
    /// How many there should be.
    pub total: u64,
}

/// A file of a set, and its header as far as it could be read.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an argument, built by literal")]
pub struct Member<'a> {
    /// The file's name in the folder.
    pub file: &'a str,
    /// Its header; `None` if the file is not there.
    pub inspection: Option<&'a Inspection>,
}

/// Checks a set of files against its index, if it has one, and against each other.
///
/// What a damaged or missing file would have to tell is not held against the index.
#[must_use]
pub fn check_set(index: Option<&Index>, members: &[Member<'_>], key: HashKey) -> Findings {
    let mut findings = Findings::new();
    let mut set = Set { index, members, key, findings: &mut findings };
    set.missing_files();
    if let Some(index) = index {
        set.mapped_tensors(index);
        set.total_size(index);
    }
    set.shard_tensors();
    set.numbering();
    findings
}

struct Set<'a, 'f> {
    index: Option<&'a Index>,
    members: &'a [Member<'a>],
    key: HashKey,
    findings: &'f mut Findings,
}

impl<'a> Set<'a, '_> {
    fn missing_files(&mut self) {
        let members = self.members;
        for member in members.iter().filter(|member| member.inspection.is_none()) {
            let file = member.file;
            self.findings.report(&rule::INDEX_SHARD_MISSING, || {
                Finding::new(&rule::INDEX_SHARD_MISSING, format!("the file `{file}` is not there"))
                    .with("file", file)
            });
        }
    }

    fn mapped_tensors(&mut self, index: &Index) {
        let by_file: BTreeMap<&str, &Member<'_>> =
            self.members.iter().map(|member| (member.file, member)).collect();
        for (name, file) in index.tensors() {
            let Some(inspection) = by_file.get(file).and_then(|member| member.inspection) else {
                continue;
            };
            if inspection.is_complete() && inspection.get(name).is_none() {
                self.findings.report(&rule::INDEX_TENSOR_MISSING, || {
                    let name = shortened(name);
                    let message =
                        format!("tensor `{name}` is not in `{file}`, where the index says");
                    Finding::new(&rule::INDEX_TENSOR_MISSING, message)
                        .tensor(&name)
                        .with("file", file)
                });
            }
        }
    }

    fn shard_tensors(&mut self) {
        let members = self.members;
        let total =
            members.iter().filter_map(|member| member.inspection).map(Inspection::len).sum();
        let mut lookup = Lookup::with_room(self.key, total);
        let mut seen: Vec<(&str, &str)> = Vec::with_capacity(total);
        for member in members {
            let (file, Some(inspection)) = (member.file, member.inspection) else {
                continue;
            };
            for tensor in inspection.entries() {
                let name = tensor.name;
                let at = |number: u32| usize::try_from(number).ok().and_then(|at| seen.get(at));
                let hash = lookup.hasher().hash(name.as_bytes());
                let same = |number: u32| at(number).is_some_and(|(other, _)| *other == name);
                let first = lookup.insert(hash, position(seen.len()), same);
                match first.and_then(at).map(|(_, other)| *other) {
                    // Twice in one file is that file's own finding.
                    Some(other) if other != file => {
                        self.findings.report(&rule::INDEX_TENSOR_TWICE, || {
                            let name = shortened(name);
                            let message =
                                format!("tensor `{name}` is in `{other}` and in `{file}`");
                            Finding::new(&rule::INDEX_TENSOR_TWICE, message)
                                .tensor(&name)
                                .with("first", other)
                                .with("second", file)
                        });
                    }
                    Some(_) => {}
                    None => seen.push((name, file)),
                }
                if self.index.is_some_and(|index| index.get(name).is_none()) {
                    self.findings.report(&rule::INDEX_TENSOR_UNMAPPED, || {
                        let name = shortened(name);
                        let message = format!("tensor `{name}` of `{file}` is not in the index");
                        Finding::new(&rule::INDEX_TENSOR_UNMAPPED, message)
                            .tensor(&name)
                            .with("file", file)
                    });
                }
            }
        }
    }

    fn total_size(&mut self, index: &Index) {
        let mut sum = 0_u64;
        for member in self.members {
            let Some(inspection) = member.inspection.filter(|it| it.is_complete()) else {
                return;
            };
            for tensor in inspection.entries() {
                let Some(span) = tensor.data_offsets else {
                    return;
                };
                sum = sum.saturating_add(span.end.saturating_sub(span.start));
            }
        }
        let message = match index.total_size {
            Some(claimed) if claimed == sum => return,
            Some(claimed) => format!("the index claims {claimed} bytes; the tensors have {sum}"),
            None => format!("the index gives no total_size; the tensors have {sum} bytes"),
        };
        let mut finding = Finding::new(&rule::INDEX_TOTAL_SIZE, message).with("tensor_bytes", sum);
        if let Some(claimed) = index.total_size {
            finding = finding.with("total_size", claimed);
        }
        self.findings.push(finding);
    }

    fn numbering(&mut self) {
        let numbered: Vec<Numbering<'a>> =
            self.members.iter().filter_map(|member| numbering(member.file)).collect();
        let Some(first) = numbered.first() else {
            return;
        };
        let one_set = numbered.len() == self.members.len()
            && numbered.iter().all(|it| it.total == first.total && it.prefix == first.prefix);
        let mut numbers: Vec<u64> = numbered.iter().map(|it| it.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let count = length_of(&numbers);
        let complete =
            count == first.total && numbers.first() == Some(&1) && numbers.last() == Some(&count);
        if one_set && complete {
            return;
        }
        let message = if one_set {
            format!("the files are numbered of {}, but there are {count}", first.total)
        } else {
            "the files are not numbered as one set".to_string()
        };
        self.findings.push(
            Finding::new(&rule::INDEX_NUMBERING, message)
                .with("numbered", count)
                .with("total", first.total),
        );
    }
}

fn length_of<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

/// Levels of nesting that an index may have.
const DEPTH: u32 = 32;

struct Reader<'t, 'i> {
    index: &'i mut Index,
    findings: &'i mut Findings,
    cursor: Cursor<'t>,
}

impl<'t> Reader<'t, '_> {
    fn object(&mut self, key: HashKey) -> Result<(), Stop> {
        self.cursor.skip_whitespace();
        let mut seen: [Option<RawString<'t>>; 2] = [None, None];
        self.members(|reader, field| {
            let which = match field.text(&mut String::new()) {
                "metadata" => 0,
                "weight_map" => 1,
                _ => return reader.cursor.skip_value(2, DEPTH),
            };
            if let Some(first) = seen.get_mut(which).and_then(|slot| slot.replace(field)) {
                reader.duplicate(first.at, field);
                return reader.cursor.skip_value(2, DEPTH);
            }
            if which == 0 { reader.metadata() } else { reader.weight_map(key) }
        })?;
        let [_, weight_map] = seen;
        if weight_map.is_none() {
            let message = "the index has no weight_map";
            self.findings.push(Finding::new(&rule::INDEX_SYNTAX, message));
        }
        self.cursor.skip_whitespace();
        if self.cursor.rest().is_empty() { Ok(()) } else { self.cursor.fail("nothing more") }
    }

    /// Reads an object, leaving each value to `member`.
    fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, RawString<'t>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.cursor.expect(b'{', "'{'")?;
        if self.cursor.eat(b"}") {
            return Ok(());
        }
        loop {
            let field = self.cursor.string("a string")?;
            self.cursor.expect(b':', "':'")?;
            member(self, field)?;
            if !self.cursor.another(b'}')? {
                return Ok(());
            }
        }
    }

    fn metadata(&mut self) -> Result<(), Stop> {
        if self.cursor.kind()? != Kind::Object {
            return self.cursor.skip_value(2, DEPTH);
        }
        self.members(|reader, field| {
            let value = match reader.cursor.kind()? {
                Kind::Number => match reader.cursor.number()? {
                    Number::Plain(value) => Some(value),
                    Number::Other => None,
                },
                // Some writers give numbers as strings.
                Kind::String => {
                    let string = reader.cursor.string("a string")?;
                    string.text(&mut String::new()).parse().ok()
                }
                _ => {
                    reader.cursor.skip_value(3, DEPTH)?;
                    None
                }
            };
            match field.text(&mut String::new()) {
                "total_size" => reader.index.total_size = value,
                "total_parameters" => reader.index.total_parameters = value,
                _ => {}
            }
            Ok(())
        })
    }

    fn weight_map(&mut self, key: HashKey) -> Result<(), Stop> {
        let mut files = Files { lookup: Lookup::with_room(key, 0) };
        let mut keys: Vec<u32> = Vec::new();
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
            match first {
                Some(first) => {
                    let first = usize::try_from(first).ok().and_then(|first| keys.get(first));
                    let first = first.and_then(|first| usize::try_from(*first).ok());
                    reader.duplicate(first.unwrap_or_default(), field);
                }
                None => {
                    tensors.push((name, file));
                    keys.push(position(field.at));
                }
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
