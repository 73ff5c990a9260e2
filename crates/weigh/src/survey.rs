//! A checkpoint as far as it can be read: the headers of all its files, and what is wrong with them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use weigh_format::header::Inspection;
use weigh_format::index::{Index, is_plain_file_name};
use weigh_format::shards::{self, Member, check_set};
use weigh_format::{
    Finding, Findings, HashKey, Limits, Policy, Severity, Verdict, kind, order, rule,
};
use weigh_io::{Error as IoError, FileSource};

use crate::Error;
use crate::find::{Found, Layout, index_prefix};

mod read;

use read::{Reading, read_shards};

/// How to open checkpoints.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Options {
    /// What one file may cost.
    pub limits: Limits,
    /// Bytes of a shard index, inclusive.
    pub index_bytes: u64,
    /// Files that an index may name.
    pub shards: usize,
    /// Which findings refuse a checkpoint.
    pub policy: Policy,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            index_bytes: 250_000_000,
            shards: 100_000,
            policy: Policy::Compatible,
        }
    }
}

/// A checkpoint as far as it can be read.
#[derive(Debug)]
pub struct Survey {
    path: PathBuf,
    layout: Layout,
    index: Option<SurveyedIndex>,
    shards: Vec<SurveyedShard>,
    set_findings: Findings,
    beside: Vec<PathBuf>,
    key: HashKey,
}

#[derive(Debug)]
struct SurveyedIndex {
    path: PathBuf,
    index: Index,
    findings: Findings,
}

impl SurveyedIndex {
    /// The files that it names, in its folder.
    fn shard_paths(&self, options: &Options) -> Vec<PathBuf> {
        let folder = self.path.parent().unwrap_or_else(|| Path::new(""));
        let plain = self.index.files().iter().filter(|file| is_plain_file_name(file));
        plain.take(options.shards).map(|file| folder.join(file)).collect()
    }
}

impl Found {
    /// The files that it is made of. An index is read for that; the files are not, and may not be there.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is an index and it cannot be read, [`Error::Refused`] if the policy refuses it.
    pub fn shard_paths(&self, options: &Options) -> Result<Vec<PathBuf>, Error> {
        if self.layout != Layout::Indexed {
            return Ok(self.files.clone());
        }
        let index = read_index(&self.files, options, random_key())?;
        if index.findings.refused_by(options.policy) {
            return Err(Error::Refused(Box::new(index.findings)));
        }
        Ok(index.shard_paths(options))
    }
}

/// One file of a checkpoint, as far as it can be read.
#[derive(Debug)]
pub struct SurveyedShard {
    name: String,
    path: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    Read(Box<Read>),
    /// The index names it and it is not there.
    Missing,
    Failed(IoError),
}

#[derive(Debug)]
struct Read {
    /// Kept open only where the tensors will be read: there may be more shards than a process may have files.
    source: Option<FileSource>,
    inspection: Inspection,
    /// Bytes read from the file.
    bytes: u64,
}

/// Whether the files stay open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keep {
    Open,
    Closed,
}

impl Survey {
    /// Reads the headers of a checkpoint's files, several at a time, and nothing else of them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is an index and it cannot be read. A shard that cannot be read is not an
    /// error here: see [`SurveyedShard::failure`].
    pub fn take(found: &Found, options: &Options) -> Result<Self, Error> {
        Self::take_and(Keep::Closed, found, options)
    }

    /// Files of another format, whose tensors are listed.
    pub(crate) fn listed(
        path: PathBuf,
        layout: Layout,
        files: Vec<(PathBuf, Inspection, u64)>,
        key: HashKey,
    ) -> Self {
        let shards = files.into_iter().map(|(path, inspection, bytes)| SurveyedShard {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path,
            state: State::Read(Box::new(Read { source: None, inspection, bytes })),
        });
        let (set_findings, beside) = (Findings::new(), Vec::new());
        Self { path, layout, index: None, shards: shards.collect(), set_findings, beside, key }
    }

    pub(crate) fn take_and(keep: Keep, found: &Found, options: &Options) -> Result<Self, Error> {
        let key = random_key();
        let mut survey = Self {
            path: found.path.clone(),
            layout: found.layout,
            index: None,
            shards: Vec::new(),
            set_findings: Findings::new(),
            beside: Vec::new(),
            key,
        };
        let mut files = found.files.clone();
        if found.layout == Layout::Indexed {
            let index = read_index(&found.files, options, key)?;
            files = index.shard_paths(options);
            let own: HashSet<&PathBuf> = files.iter().collect();
            survey.beside =
                found.beside.iter().filter(|file| !own.contains(file)).cloned().collect();
            survey.index = Some(index);
        }
        survey.shards = read_shards(&files, &Reading { layout: found.layout, options, key, keep });
        if found.layout != Layout::File {
            survey.check_set();
        }
        Ok(survey)
    }

    /// Checks the files against the index, if there is one, and against each other.
    fn check_set(&mut self) {
        let mut members: Vec<Member<'_>> =
            self.shards.iter().map(|it| Member { file: &it.name, state: it.member() }).collect();
        let index = self.index();
        // Names that are not plain were never looked up.
        let not_plain = index.into_iter().flat_map(Index::files);
        let not_plain = not_plain.filter(|file| !is_plain_file_name(file));
        members.extend(not_plain.map(|file| Member { file, state: shards::State::Unread }));
        let mut findings = check_set(index, &members, self.key);
        findings.in_file(&display(self.index_path().unwrap_or(&self.path)));
        self.set_findings = findings;
    }

    /// What the checkpoint is called.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How its files belong together.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Its index, if it has one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        self.index.as_ref().map(|index| &index.index)
    }

    /// Where its index is, if it has one.
    #[must_use]
    pub fn index_path(&self) -> Option<&Path> {
        self.index.as_ref().map(|index| index.path.as_path())
    }

    /// What the names of its files begin with: `model` for `model.safetensors.index.json`,
    /// `model-00001-of-00002.safetensors` and `model.safetensors`.
    #[must_use]
    pub fn stem(&self) -> String {
        let file = self.index_path().or_else(|| self.shards.first().map(SurveyedShard::path));
        let name = file.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if let Some(stem) = self.index_path().and_then(index_prefix) {
            return stem;
        }
        let numbered = shards::numbering(&name).filter(|_| self.layout != Layout::File);
        let stem = numbered.map(|it| it.prefix).or_else(|| name.strip_suffix(".safetensors"));
        stem.unwrap_or(&name).into()
    }

    /// Its files, in the order of the index or of their names.
    #[must_use]
    pub fn shards(&self) -> &[SurveyedShard] {
        &self.shards
    }

    /// Safetensors files in its folder that it is not made of.
    #[must_use]
    pub fn beside(&self) -> &[PathBuf] {
        &self.beside
    }

    /// Everything found: in the index, across the set, and in each file.
    pub fn findings(&self) -> impl Iterator<Item = &Findings> {
        let shards = self.shards.iter().filter_map(|it| Some(it.inspection()?.findings()));
        self.set_findings().chain(shards)
    }

    /// What was found in the index and across the set: all but what is in each file.
    pub fn set_findings(&self) -> impl Iterator<Item = &Findings> {
        let index = self.index.iter().map(|index| &index.findings);
        index.chain(std::iter::once(&self.set_findings))
    }

    /// What the findings add up to. Says nothing of files that could not be read.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.findings().map(Findings::verdict).max().unwrap_or(Verdict::Valid)
    }

    /// The files that could not be read, and why.
    pub fn failures(&self) -> impl Iterator<Item = &IoError> {
        self.shards.iter().filter_map(SurveyedShard::failure)
    }

    /// The files whose header was being edited in place when they were read: the edit is under way, or was cut
    /// off, and [`mend`](crate::io::mend) undoes it.
    pub fn interrupted_edits(&self) -> impl Iterator<Item = &Path> {
        let interrupted = self.shards.iter().filter(|shard| shard.is_interrupted_edit());
        interrupted.map(SurveyedShard::path)
    }

    /// Length of all its files together, in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let lengths = self.shards.iter().filter_map(|it| Some(it.inspection()?.file_len()));
        lengths.fold(0, u64::saturating_add)
    }

    /// Bytes that were read from its files.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.shards.iter().map(SurveyedShard::bytes_read).fold(0, u64::saturating_add)
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().filter_map(|shard| Some(shard.inspection()?.len())).sum()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The places of `names` in natural order.
    #[must_use]
    pub fn natural_order(&self, names: &[&str]) -> Vec<u32> {
        order::natural(names, self.key)
    }

    /// The metadata of each shard, with the shard's place in [`Survey::shards`].
    pub fn metadata(&self) -> impl Iterator<Item = (usize, String, String)> {
        self.shards.iter().enumerate().flat_map(|(shard, it)| {
            let pairs = it.inspection().map(Inspection::metadata);
            pairs.into_iter().flatten().map(move |(key, value)| (shard, key, value))
        })
    }

    /// What it was found as.
    pub(crate) fn found(&self) -> Found {
        let shards = self.shards.iter().map(|shard| shard.path.clone());
        let files = match &self.index {
            Some(index) => vec![index.path.clone()],
            None => shards.collect(),
        };
        let (path, layout, beside) = (self.path.clone(), self.layout, self.beside.clone());
        Found { path, layout, files, beside }
    }

    /// The parts of a sound checkpoint.
    pub(crate) fn into_parts(self) -> (PathBuf, HashKey, Vec<(PathBuf, FileSource, Inspection)>) {
        let shards = self.shards.into_iter().filter_map(|shard| match shard.state {
            State::Read(read) => Some((shard.path, read.source?, read.inspection)),
            State::Missing | State::Failed(_) => None,
        });
        (self.path, self.key, shards.collect())
    }

    /// The first failure to read a file, taken out.
    pub(crate) fn take_failure(&mut self) -> Option<IoError> {
        let failed = self.shards.iter_mut().find(|shard| shard.failure().is_some())?;
        match std::mem::replace(&mut failed.state, State::Missing) {
            State::Failed(error) => Some(error),
            State::Read(_) | State::Missing => None,
        }
    }
}

impl SurveyedShard {
    /// The file's name in its folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header as far as it could be read; `None` if the file is missing or failed to be read.
    #[must_use]
    pub fn inspection(&self) -> Option<&Inspection> {
        match &self.state {
            State::Read(read) => Some(&read.inspection),
            State::Missing | State::Failed(_) => None,
        }
    }

    /// Why the file could not be read.
    #[must_use]
    pub fn failure(&self) -> Option<&IoError> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Read(_) | State::Missing => None,
        }
    }

    fn is_interrupted_edit(&self) -> bool {
        let findings = self.inspection().map(Inspection::findings);
        let refused = findings.filter(|it| it.worst() == Some(Severity::Error));
        let mut kinds = refused.into_iter().flat_map(Findings::list).filter_map(kind::explained);
        kinds.any(|kind| kind == kind::INTERRUPTED_EDIT)
    }

    fn member(&self) -> shards::State<'_> {
        match &self.state {
            State::Read(read) => shards::State::Read(&read.inspection),
            State::Missing => shards::State::Missing,
            State::Failed(_) => shards::State::Unread,
        }
    }

    fn bytes_read(&self) -> u64 {
        match &self.state {
            State::Read(read) => read.bytes,
            State::Missing | State::Failed(_) => 0,
        }
    }
}

fn read_index(files: &[PathBuf], options: &Options, key: HashKey) -> Result<SurveyedIndex, Error> {
    let path = files.first().cloned().unwrap_or_default();
    let source = FileSource::open(&path)?;
    let (index, mut findings) = if source.len() > options.index_bytes {
        let (index, mut findings) = (Index::unread(key), Findings::new());
        let (length, limit) = (source.len(), options.index_bytes);
        let message = format!("the index is {length} bytes, over the limit of {limit}");
        findings.push(Finding::new(&rule::LIMIT_INDEX, message).with("limit", limit));
        (index, findings)
    } else {
        Index::read(&source.read_span(0..source.len())?, key)
    };
    let (named, limit) = (index.files().len(), options.shards);
    if named > limit {
        let message = format!("the index names {named} files, over the limit of {limit}");
        findings.push(Finding::new(&rule::LIMIT_INDEX, message));
    }
    findings.in_file(&display(&path));
    Ok(SurveyedIndex { path, index, findings })
}

/// A path as findings name it.
pub(crate) fn display(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// 128 random bits, from what the standard library keys its own tables with.
pub(crate) fn random_key() -> HashKey {
    use std::hash::{BuildHasher, RandomState};
    HashKey::new(RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8))
}
