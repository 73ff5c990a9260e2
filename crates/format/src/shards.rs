//! The files of a set: their numbering, and the checks across them (FORMAT.md §6).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::HashKey;
use crate::finding::{Finding, Findings};
use crate::header::Inspection;
use crate::index::Index;
use crate::lookup::Lookup;
use crate::rule;
use crate::table::position;
use crate::text::shortened;

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

/// What the file of a shard is named, `number` from 1 on of `count`; one alone is not numbered.
///
/// Numbers have five digits, or as many as `count` has, so that names sort as the shards do.
///
/// ```
/// use weigh_format::shards::file_name;
///
/// assert_eq!(file_name("model", 1, 3), "model-00001-of-00003.safetensors");
/// assert_eq!(file_name("model", 1, 1), "model.safetensors");
/// ```
#[must_use]
pub fn file_name(stem: &str, number: u64, count: u64) -> String {
    if count == 1 {
        return format!("{stem}.safetensors");
    }
    let digits = count.to_string().len().max(5);
    format!("{stem}-{number:0digits$}-of-{count:0digits$}.safetensors")
}

/// A file of a set, and its header as far as it could be read.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an argument, built by literal")]
pub struct Member<'a> {
    /// The file's name in the folder.
    pub file: &'a str,
    /// What is known of it.
    pub state: State<'a>,
}

/// What is known of a file of a set.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "an argument, built by literal")]
pub enum State<'a> {
    /// Its header, as far as it could be read.
    Read(&'a Inspection),
    /// It is not there.
    Missing,
    /// It could not be read, or must not be.
    Unread,
}

impl<'a> Member<'a> {
    fn inspection(&self) -> Option<&'a Inspection> {
        match self.state {
            State::Read(inspection) => Some(inspection),
            State::Missing | State::Unread => None,
        }
    }
}

/// Checks a set of files against its index, if it has one, and against each other.
///
/// What a damaged, missing or unread file would have to tell is not held against the index, nor what a
/// damaged index would have to tell against the files.
#[must_use]
pub fn check_set(index: Option<&Index>, members: &[Member<'_>], key: HashKey) -> Findings {
    let mut findings = Findings::new();
    let mut set = Set { index, members, key, findings: &mut findings };
    set.missing_files();
    if let Some(index) = index {
        set.mapped_tensors(index);
        if index.is_complete() {
            set.total_size(index);
        }
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
        for member in members.iter().filter(|member| matches!(member.state, State::Missing)) {
            let file = shortened(member.file);
            self.findings.report(&rule::INDEX_SHARD_MISSING, || {
                Finding::new(&rule::INDEX_SHARD_MISSING, format!("the file `{file}` is not there"))
                    .with("file", file.as_ref())
            });
        }
    }

    fn mapped_tensors(&mut self, index: &Index) {
        let by_file: BTreeMap<&str, &Member<'_>> =
            self.members.iter().map(|member| (member.file, member)).collect();
        for (name, file) in index.tensors() {
            let Some(inspection) = by_file.get(file).and_then(|member| member.inspection()) else {
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
        let total = members.iter().filter_map(Member::inspection).map(Inspection::len).sum();
        let mut lookup = Lookup::with_room(self.key, total);
        let mut seen: Vec<(&str, &str)> = Vec::with_capacity(total);
        for member in members {
            let (file, Some(inspection)) = (member.file, member.inspection()) else {
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
                if self.index.is_some_and(|index| index.is_complete() && index.get(name).is_none())
                {
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
            let Some(inspection) = member.inspection().filter(|it| it.is_complete()) else {
                return;
            };
            for tensor in inspection.entries() {
                let Some(span) = tensor.data_offsets else {
                    return;
                };
                sum = sum.saturating_add(span.end.saturating_sub(span.start));
            }
        }
        let message = match index.total_size() {
            Some(claimed) if claimed == sum => return,
            Some(claimed) => format!("the index claims {claimed} bytes; the tensors have {sum}"),
            None if index.claims_total_size() => {
                format!(
                    "the index's total_size is not a whole number of bytes; the tensors have {sum}"
                )
            }
            None => format!("the index gives no total_size; the tensors have {sum} bytes"),
        };
        let mut finding = Finding::new(&rule::INDEX_TOTAL_SIZE, message).with("tensor_bytes", sum);
        if let Some(claimed) = index.total_size() {
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
            let are = if count == 1 { "is" } else { "are" };
            format!("the files are numbered of {}, but there {are} {count}", first.total)
        } else {
            "the files are not numbered as one set".to_string()
        };
        // Without an index nothing else says which files there should be.
        let is_short = one_set && self.index.is_none();
        let rule = if is_short { &rule::INDEX_SHARD_MISSING } else { &rule::INDEX_NUMBERING };
        let finding = Finding::new(rule, message);
        self.findings.push(finding.with("numbered", count).with("total", first.total));
    }
}

fn length_of<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}
