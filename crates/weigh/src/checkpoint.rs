//! A sound checkpoint, for loading.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weigh_format::header::{Inspection, PREFIX_BYTES};
use weigh_format::index::Extra;
use weigh_format::{Dtype, Findings, HashKey, Header, inspect, order};
use weigh_io::{Change, Error as IoError, ErrorKind, FileSource, Source, read_span};

use crate::survey::{Keep, display, random_key};
use crate::{Error, Options, Survey, find};

/// One or more files opened as one set of tensors, all sound.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    shards: Vec<Shard>,
    key: HashKey,
    files: OnceLock<HashMap<Box<str>, usize>>,
    index: Option<IndexFacts>,
    stem: String,
}

/// What is kept of an index.
#[derive(Debug)]
pub(crate) struct IndexFacts {
    pub(crate) path: PathBuf,
    /// What its metadata has beside totals.
    pub(crate) extra: BTreeMap<String, Extra>,
    /// What it has beside that and the map.
    pub(crate) beside: BTreeMap<String, Extra>,
}

/// Shards that are asked one by one for a name: more take a table of all names.
const FEW_SHARDS: usize = 8;

/// One file of a checkpoint.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    source: Arc<dyn Source>,
    header: Header,
}

/// A tensor of a checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tensor<'c> {
    /// The name, unescaped.
    pub name: &'c str,
    /// The element type.
    pub dtype: Dtype,
    /// The dimensions; empty for a scalar.
    pub shape: &'c [u64],
    /// Its bytes, from the start of its shard's file.
    pub span: std::ops::Range<u64>,
    /// The shard that it is in.
    pub shard: &'c Shard,
}

impl Checkpoint {
    /// Opens a file, a folder or a shard index, with the default [`Options`].
    ///
    /// Reads the headers and nothing else.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read, [`Error::NothingFound`] or [`Error::Several`] if the path
    /// does not stand for one checkpoint, [`Error::Refused`] if a file has an error in its structure.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::open`]; [`Error::Refused`] as the policy has it.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        let found = find(&path)?;
        let [found] = found.as_slice() else {
            let candidates = found.into_iter().map(|found| found.path).collect();
            return Err(Error::Several { path: path.as_ref().into(), candidates });
        };
        Self::from_survey(Survey::take_and(Keep::Open, found, options)?, options)
    }

    /// Opens again what has been surveyed. The files may have changed since; they are checked anew.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::open_with`].
    pub fn open_surveyed(survey: &Survey, options: &Options) -> Result<Self, Error> {
        Self::from_survey(Survey::take_and(Keep::Open, &survey.found(), options)?, options)
    }

    /// Opens what need not be a file, of `len` bytes in all, under the name that the source has.
    ///
    /// It can be read in every way but [`map`](Self::map); an [`Edit`](crate::Edit) of it cannot be written.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::Refused`] as the policy has it.
    pub fn open_source(
        source: Arc<dyn Source>,
        len: u64,
        options: &Options,
    ) -> Result<Self, Error> {
        let (key, path) = (random_key(), source.path().to_path_buf());
        let inspection = inspect_with(&*source, len, options, key)?;
        let header =
            inspection.accept(options.policy).map_err(|it| Error::Refused(Box::new(it)))?;
        let shards = vec![Shard { path: path.clone(), source, header }];
        let stem = String::from("model");
        Ok(Self { path, shards, key, files: OnceLock::new(), index: None, stem })
    }

    fn from_survey(mut survey: Survey, options: &Options) -> Result<Self, Error> {
        if let Some(error) = survey.take_failure() {
            return Err(error.into());
        }
        let mut refused = Findings::new();
        for findings in survey.findings().filter(|it| it.refused_by(options.policy)) {
            findings.list().iter().cloned().for_each(|finding| refused.push(finding));
        }
        if !refused.is_empty() {
            return Err(Error::Refused(Box::new(refused)));
        }
        let index = survey.index().zip(survey.index_path()).map(|(index, path)| IndexFacts {
            path: path.into(),
            extra: index.extra().clone(),
            beside: index.beside().clone(),
        });
        let stem = survey.stem();
        let (path, key, parts) = survey.into_parts();
        let accepted = parts.into_iter().map(|(path, source, inspection)| {
            let header = inspection.accept(options.policy).map_err(Box::new);
            header
                .map(|header| Shard { path, source: Arc::new(source), header })
                .map_err(Error::Refused)
        });
        let files = OnceLock::new();
        let shards = accepted.collect::<Result<_, _>>()?;
        Ok(Self { path, shards, key, files, index, stem })
    }

    /// What the checkpoint is called.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its files, in the order of the index or of their names.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.header.len()).sum()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.header.is_empty())
    }

    /// The tensor of this name, in constant time.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        self.find(name).map(|(_, tensor)| tensor)
    }

    /// The tensor of this name, and the number of its shard.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, Tensor<'_>)> {
        let of_shard = |(file, shard): (usize, &'_ Shard)| shard.header.get(name).map(|_| file);
        let file = if self.shards.len() > FEW_SHARDS {
            *self.files_by_name().get(name)?
        } else {
            self.shards.iter().enumerate().find_map(of_shard)?
        };
        let shard = self.shards.get(file)?;
        Some((file, shard.tensor(&shard.header.get(name)?)))
    }

    /// The shard of each name; made when it is first needed.
    fn files_by_name(&self) -> &HashMap<Box<str>, usize> {
        self.files.get_or_init(|| {
            let shards = self.shards.iter().enumerate();
            let names = shards
                .flat_map(|(file, shard)| shard.tensors().map(move |it| (it.name.into(), file)));
            // Where a name stands in several shards, the first has it.
            let mut files = HashMap::with_capacity(self.len());
            for (name, file) in names {
                files.entry(name).or_insert(file);
            }
            files
        })
    }

    /// The path of its index, if it has one.
    #[must_use]
    pub fn index_path(&self) -> Option<&Path> {
        self.index.as_ref().map(|index| index.path.as_path())
    }

    pub(crate) fn index(&self) -> Option<&IndexFacts> {
        self.index.as_ref()
    }

    /// What the names of its files begin with.
    #[must_use]
    pub fn stem(&self) -> &str {
        &self.stem
    }

    pub(crate) fn key(&self) -> HashKey {
        self.key
    }

    /// The tensors, in natural order of their names: `layers.2` before `layers.10`.
    #[must_use]
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let in_files: Vec<Tensor<'_>> = self.shards.iter().flat_map(Shard::tensors).collect();
        let names: Vec<&str> = in_files.iter().map(|tensor| tensor.name).collect();
        let order = order::natural(&names, self.key).into_iter();
        let place = |number| in_files.get(usize::try_from(number).ok()?).cloned();
        order.filter_map(place).collect()
    }
}

/// Reads the header of what need not be a file, of `len` bytes in all, with everything found wrong in it.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read.
pub fn inspect_source(
    source: &dyn Source,
    len: u64,
    options: &Options,
) -> Result<Inspection, Error> {
    inspect_with(source, len, options, random_key())
}

fn inspect_with(
    source: &dyn Source,
    len: u64,
    options: &Options,
    key: HashKey,
) -> Result<Inspection, Error> {
    let read = |span| read_span(source, span);
    let mut inspection = inspect::inspect(len, read, &options.limits, key)?;
    inspection.findings_mut().in_file(&display(source.path()));
    Ok(inspection)
}

impl Shard {
    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its bytes come from.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// The open file; `None` if its bytes come from elsewhere.
    #[must_use]
    pub fn file(&self) -> Option<&FileSource> {
        self.source.plain_file()
    }

    /// The open file, where nothing else will do.
    pub(crate) fn need_file(&self) -> Result<&FileSource, Error> {
        self.file().ok_or_else(|| Error::NotAFile { path: self.path.clone() })
    }

    /// Says whether the file and its header are still what was read: the time that a file has been written to is
    /// not so fine that it would tell every edit in place.
    pub(crate) fn verify(&self) -> Result<(), Error> {
        let source = self.need_file()?;
        let start = PREFIX_BYTES.min(self.header.data_start());
        if !self.header.is_of(&source.read_span(start..self.header.data_start())?) {
            let written = ErrorKind::Changed(Change::Written);
            return Err(IoError::new(source.path(), written).into());
        }
        Ok(source.verify()?)
    }

    pub(crate) fn shared_source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Its header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its tensors, in the order of the header.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.header.tensors().map(|tensor| self.tensor(&tensor))
    }

    fn tensor<'c>(&'c self, tensor: &weigh_format::Tensor<'c>) -> Tensor<'c> {
        let start = self.header.data_start();
        let offsets = &tensor.data_offsets;
        Tensor {
            name: tensor.name,
            dtype: tensor.dtype,
            shape: tensor.shape,
            span: start.saturating_add(offsets.start)..start.saturating_add(offsets.end),
            shard: self,
        }
    }
}
