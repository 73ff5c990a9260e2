//! A checkpoint as far as it can be read: the headers of all its files, and what is wrong with them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use weigh_format::header::{Inspection, PartialTensor};
use weigh_format::index::{Index, Member, check_set, is_plain_file_name};
use weigh_format::{Finding, Findings, HashKey, Limits, Policy, Verdict, inspect, order, rule};
use weigh_io::{Error as IoError, ErrorKind, FileSource};

use crate::Error;
use crate::find::{Found, Layout};

/// How to open checkpoints.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Options {
    /// What one file may cost.
    pub limits: Limits,
    /// Bytes of a shard index, inclusive.
    pub index_bytes: u64,
    /// Which findings refuse a checkpoint.
    pub policy: Policy,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: Limits::default(), index_bytes: 250_000_000, policy: Policy::Compatible }
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
    source: FileSource,
    inspection: Inspection,
}

/// A tensor as far as its entry could be read, and the shard it is in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SurveyedTensor<'s> {
    /// The shard's place in [`Survey::shards`].
    pub shard: usize,
    /// The entry.
    pub tensor: PartialTensor<'s>,
}

impl Survey {
    /// Reads the headers of a checkpoint's files, several at a time, and nothing else of them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is an index and it cannot be read. A shard that cannot be read is not an
    /// error here: see [`SurveyedShard::failure`].
    pub fn take(found: &Found, options: &Options) -> Result<Self, Error> {
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
            let folder = index.path.parent().unwrap_or_else(|| Path::new(""));
            let plain = index.index.files().iter().filter(|file| is_plain_file_name(file));
            files = plain.map(|file| folder.join(file)).collect();
            survey.beside =
                found.beside.iter().filter(|file| !files.contains(file)).cloned().collect();
            survey.index = Some(index);
        }
        survey.shards = read_shards(&files, found.layout, options, key);
        let members: Vec<Member<'_>> = survey
            .shards
            .iter()
            .filter(|shard| shard.failure().is_none())
            .map(|shard| Member { file: &shard.name, inspection: shard.inspection() })
            .collect();
        if found.layout != Layout::File {
            let index = survey.index.as_ref().map(|index| &index.index);
            let mut findings = check_set(index, &members, key);
            findings.in_file(&display(survey.index_path().unwrap_or(&survey.path)));
            survey.set_findings = findings;
        }
        Ok(survey)
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

    /// The tensors, shard by shard, in the order of the headers.
    pub fn tensors(&self) -> impl Iterator<Item = SurveyedTensor<'_>> {
        self.shards.iter().enumerate().flat_map(|(shard, it)| {
            let entries = it.inspection().map(Inspection::entries);
            entries.into_iter().flatten().map(move |tensor| SurveyedTensor { shard, tensor })
        })
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

    /// The parts of a sound checkpoint.
    pub(crate) fn into_parts(self) -> (PathBuf, HashKey, Vec<(PathBuf, FileSource, Inspection)>) {
        let shards = self.shards.into_iter().filter_map(|shard| match shard.state {
            State::Read(read) => Some((shard.path, read.source, read.inspection)),
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

    fn bytes_read(&self) -> u64 {
        match &self.state {
            State::Read(read) => read.source.bytes_read(),
            State::Missing | State::Failed(_) => 0,
        }
    }
}

fn read_index(files: &[PathBuf], options: &Options, key: HashKey) -> Result<SurveyedIndex, Error> {
    let path = files.first().cloned().unwrap_or_default();
    let source = FileSource::open(&path)?;
    let (index, mut findings) = if source.len() > options.index_bytes {
        let (index, mut findings) = Index::read(b"{\"weight_map\":{}}", key);
        let (length, limit) = (source.len(), options.index_bytes);
        let message = format!("the index is {length} bytes, over the limit of {limit}");
        findings.push(Finding::new(&rule::LIMIT_INDEX, message).with("limit", limit));
        (index, findings)
    } else {
        Index::read(&source.read_span(0..source.len())?, key)
    };
    findings.in_file(&display(&path));
    Ok(SurveyedIndex { path, index, findings })
}

/// How many headers are read at a time.
const READERS: usize = 8;

fn read_shards(
    files: &[PathBuf],
    layout: Layout,
    options: &Options,
    key: HashKey,
) -> Vec<SurveyedShard> {
    if let [file] = files {
        return vec![read_shard(file, layout, options, key)];
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let shard = read_shard(file, layout, options, key);
            if let Ok(mut done) = done.lock() {
                done.push(shard);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..READERS.min(files.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut shards = done.into_inner().unwrap_or_default();
    let places: std::collections::HashMap<&Path, usize> =
        files.iter().enumerate().map(|(place, file)| (file.as_path(), place)).collect();
    shards.sort_by_key(|shard| places.get(shard.path.as_path()).copied());
    shards
}

fn read_shard(path: &Path, layout: Layout, options: &Options, key: HashKey) -> SurveyedShard {
    let state = match inspect_file(path, options, key) {
        Ok(read) => State::Read(Box::new(read)),
        Err(error) if layout == Layout::Indexed && matches!(error.kind(), ErrorKind::Missing) => {
            State::Missing
        }
        Err(error) => State::Failed(error),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    SurveyedShard { name, path: path.into(), state }
}

fn inspect_file(path: &Path, options: &Options, key: HashKey) -> Result<Read, IoError> {
    let source = FileSource::open(path)?;
    let read = |span| source.read_span(span);
    let mut inspection = inspect::inspect(source.len(), read, &options.limits, key)?;
    inspection.findings_mut().in_file(&display(path));
    Ok(Read { source, inspection })
}

/// A path as findings name it.
fn display(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// 128 random bits, from what the standard library keys its own tables with.
fn random_key() -> HashKey {
    use std::hash::{BuildHasher, RandomState};
    HashKey::new(RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8))
}
