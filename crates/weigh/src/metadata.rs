//! Editing metadata: a new header before the same data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weigh_format::encode::{Declaration, EncodeError, Encoded, Layout, Order, encode};
use weigh_format::index::IndexError;
use weigh_io::{Claims, FileSource, NewFile, Source, WriteOptions, commit_set, rewrite_head};

use crate::edit::copy;
use crate::edit::plan::{Piece, plan_index};
use crate::targets::Targets;
use crate::work::{self, Meter};
use crate::{Checkpoint, Edit, Error, PlannedIndex, Shard, Watch};

/// How to edit metadata.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct MetadataOptions {
    /// Whether the header is overwritten where it is. It must have room for the new one; the file is one that
    /// every reader refuses while that lasts, and after a crash until [`mend`](crate::io::mend) undoes it.
    /// Always synced. Of no effect on files that are written elsewhere.
    pub in_place: bool,
    /// Bytes that are left free in the header at least, for later edits in place. A header that has fewer is
    /// written anew, even if its metadata stays what it is.
    ///
    /// `None` keeps what room there is: a header with more spaces at its end than its alignment takes stays as long
    /// as it is, or, if the new one does not fit, that one gets as many. `Some(0)` gives that room up.
    pub reserve: Option<u64>,
    /// Whether a file that is written elsewhere may replace what is there.
    pub replace: bool,
    /// Whether the file is on the disk before this returns.
    pub sync: bool,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self { in_place: false, reserve: None, replace: false, sync: true }
    }
}

/// Where the files go.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum MetadataOutput {
    /// Each to its own place.
    #[default]
    Same,
    /// The one file that there is, to here.
    File(PathBuf),
    /// To a folder, which is made if need be: all files under the names that they have, and the index of several.
    Folder(PathBuf),
}

/// What an edit of metadata will do. Nothing has been done.
#[derive(Debug)]
pub struct MetadataPlan<'c> {
    files: Vec<PlannedMetadata<'c>>,
    index: Option<PlannedIndex>,
    /// Of a set that is replaced, what the new one does not have.
    stale: Vec<PathBuf>,
    /// The folder that has to be made.
    folder: Option<PathBuf>,
    is_elsewhere: bool,
    options: MetadataOptions,
}

/// What an edit of metadata will do to a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlannedMetadata<'c> {
    /// The file.
    pub shard: &'c Shard,
    /// Where it will be written: itself, unless told otherwise.
    pub target: PathBuf,
    /// The metadata that it has.
    pub before: BTreeMap<String, String>,
    /// The metadata that it will have.
    pub after: BTreeMap<String, String>,
    /// The header that will be written, if one will be.
    header: Option<Vec<u8>>,
    is_in_place: bool,
}

/// A key whose value changes; `None` where there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MetadataChange<'m> {
    /// The key, unescaped.
    pub key: &'m str,
    /// The value that it has.
    pub before: Option<&'m str>,
    /// The value that it will have.
    pub after: Option<&'m str>,
}

impl PlannedMetadata<'_> {
    /// Whether there is something to do: other metadata, room that the header lacks, or another place.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.header.is_some()
    }

    /// What changes, in the order of the keys.
    pub fn changed(&self) -> impl Iterator<Item = MetadataChange<'_>> {
        let own = self.before.iter().map(|(key, before)| MetadataChange {
            key,
            before: Some(before),
            after: self.after.get(key).map(String::as_str),
        });
        let new = self.after.iter().filter(|(key, _)| !self.before.contains_key(*key));
        let new = new.map(|(key, after)| MetadataChange { key, before: None, after: Some(after) });
        let mut all: Vec<_> = own.chain(new).filter(|it| it.before != it.after).collect();
        all.sort_unstable_by_key(|change| change.key);
        all.into_iter()
    }

    /// The length of the header that there is, with the length field.
    #[must_use]
    pub fn header_bytes_before(&self) -> u64 {
        self.shard.header().data_start()
    }

    /// The length of the header that it will have, with the length field.
    #[must_use]
    pub fn header_bytes(&self) -> u64 {
        self.header.as_deref().map_or(self.header_bytes_before(), work::length)
    }

    /// Number of tensors whose entries have fields that the format has not, such as notes of the program that wrote
    /// them. They are not kept if the header is written.
    #[must_use]
    pub fn with_unknown_fields(&self) -> usize {
        self.shard.header().with_unknown_fields()
    }

    /// Bytes of tensors that have to move: none in place, nor if there is nothing to do.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        let header = self.shard.header();
        if self.is_in_place || !self.changes() {
            return 0;
        }
        header.file_len().saturating_sub(header.data_start())
    }
}

impl PlannedMetadata<'_> {
    fn header(&self) -> Result<&[u8], Error> {
        self.header.as_deref().ok_or_else(|| Error::internal("a file that does not change"))
    }
}

impl Checkpoint {
    /// Plans an edit of the metadata of every file.
    ///
    /// Tensors stay in the order that they have, and data that begins on a page goes on doing so. A file whose
    /// metadata stays what it is and whose header has the room that is to be reserved is left alone.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if readers would refuse the header; in place, [`Error::NoRoom`] if there is none for
    /// it; elsewhere, [`Error::ManyFiles`] if several would be one, and [`Error::Io`] and
    /// [`Error::SameTarget`] if they cannot go where they are to.
    pub fn plan_metadata(
        &self,
        mut edit: impl FnMut(&mut BTreeMap<String, String>),
        output: &MetadataOutput,
        options: &MetadataOptions,
    ) -> Result<MetadataPlan<'_>, Error> {
        let is_elsewhere = *output != MetadataOutput::Same;
        let mut options = options.clone();
        options.in_place &= !is_elsewhere;
        if matches!(output, MetadataOutput::File(_)) && self.shards().len() != 1 {
            return Err(Error::ManyFiles { files: self.shards().len() });
        }
        let plan = |shard| {
            let before: BTreeMap<String, String> = Shard::header(shard).metadata().collect();
            let mut after = before.clone();
            edit(&mut after);
            let target = match output {
                MetadataOutput::Same => shard.path().into(),
                MetadataOutput::File(path) => path.clone(),
                MetadataOutput::Folder(path) => path.join(file_name(shard)?),
            };
            let changes = is_elsewhere || before != after || lacks_reserve(shard, &after, &options);
            let header = changes.then(|| new_header(shard, &target, &after, &options));
            let (header, is_in_place) = (header.transpose()?, options.in_place);
            Ok(PlannedMetadata { shard, target, before, after, header, is_in_place })
        };
        let files = self.shards().iter().map(plan).collect::<Result<_, Error>>()?;
        let mut plan = MetadataPlan {
            files,
            index: None,
            stale: Vec::new(),
            folder: None,
            is_elsewhere,
            options,
        };
        if let MetadataOutput::Folder(folder) = output {
            plan.add_folder(self, folder)?;
        }
        if is_elsewhere {
            plan.check_targets()?;
        }
        Ok(plan)
    }
}

/// What data that is mapped as pages begins on a multiple of.
const PAGE: u64 = 4096;

/// Whether the header has less room than is to be left, written the one way that headers are.
fn lacks_reserve(
    shard: &Shard,
    metadata: &BTreeMap<String, String>,
    options: &MetadataOptions,
) -> bool {
    let reserve = options.reserve.unwrap_or_default();
    let room = Some(room(shard));
    let layout = Layout { order: Order::Given, reserve, room, ..Layout::default() };
    reserve > 0 && encode(&declarations(shard), Some(metadata), &layout).is_err()
}

/// The header of a file with other metadata.
fn new_header(
    shard: &Shard,
    target: &Path,
    metadata: &BTreeMap<String, String>,
    options: &MetadataOptions,
) -> Result<Vec<u8>, Error> {
    let declarations = declarations(shard);
    let is_paged = shard.header().data_start().is_multiple_of(PAGE);
    let alignment = if is_paged { PAGE } else { Layout::default().alignment };
    let layout = Layout { order: Order::Given, alignment, ..Layout::default() };
    let (own, free) = (Some(room(shard)), shard.header().free_bytes());
    let attempt =
        |room, reserve| encode(&declarations, Some(metadata), &Layout { room, reserve, ..layout });
    let encoded = match options.reserve {
        reserve if options.in_place => attempt(own, reserve.unwrap_or_default()),
        // What readers take as a header may be too short to have the room as well.
        None if free >= alignment => {
            attempt(own, 0).or_else(|_| attempt(None, free)).or_else(|_| attempt(None, 0))
        }
        reserve => attempt(None, reserve.unwrap_or_default()),
    };
    match encoded {
        Ok(Encoded { bytes, .. }) => Ok(bytes),
        Err(EncodeError::NoRoom { needed, room }) => {
            Err(Error::NoRoom { path: shard.path().into(), needed, room })
        }
        Err(error) => Err(Error::encode(target)(error)),
    }
}

/// The length of the header that there is, without the length field.
fn room(shard: &Shard) -> u64 {
    shard.header().data_start().saturating_sub(8)
}

fn declarations(shard: &Shard) -> Vec<Declaration<'_>> {
    let tensors = shard.header().tensors_by_offset();
    tensors
        .map(|tensor| Declaration { name: tensor.name, dtype: tensor.dtype, shape: tensor.shape })
        .collect()
}

/// The name of a file in its folder: text, as an index has it.
fn file_name(shard: &Shard) -> Result<&str, Error> {
    let name = shard.path().file_name().unwrap_or_default();
    name.to_str().ok_or_else(|| IndexError::FileName(name.to_string_lossy().into()).into())
}

impl MetadataPlan<'_> {
    /// What will be done to each file.
    #[must_use]
    pub fn files(&self) -> &[PlannedMetadata<'_>] {
        &self.files
    }

    /// The index that will be written after them.
    #[must_use]
    pub fn index(&self) -> Option<&PlannedIndex> {
        self.index.as_ref()
    }

    /// Files that will be removed at the end: those of a checkpoint that is replaced.
    #[must_use]
    pub fn removed(&self) -> &[PathBuf] {
        &self.stale
    }

    /// Whether headers will be overwritten where they are.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.options.in_place
    }

    /// Whether there is something to do.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.files.iter().any(PlannedMetadata::changes)
    }

    /// Bytes of tensors that will be copied.
    #[must_use]
    pub fn bytes_copied(&self) -> u64 {
        self.files.iter().map(PlannedMetadata::data_bytes).fold(0, u64::saturating_add)
    }

    /// Plans the index of a folder, and what it replaces.
    fn add_folder(&mut self, checkpoint: &Checkpoint, folder: &Path) -> Result<(), Error> {
        let names: Vec<String> = checkpoint
            .shards()
            .iter()
            .map(|shard| file_name(shard).map(String::from))
            .collect::<Result<_, _>>()?;
        let edit = Edit::of(checkpoint)?;
        let is_indexed = names.len() > 1 || checkpoint.index_path().is_some();
        let tensors = edit.tensors().iter().filter(|_| is_indexed);
        let map: Vec<(&str, &str)> = tensors
            .map(|tensor| Ok((tensor.source.name, file_name(tensor.source.shard)?)))
            .collect::<Result<_, Error>>()?;
        let map = is_indexed.then_some(map.as_slice());
        (self.index, self.stale) = plan_index(&edit, folder, checkpoint.stem(), &names, map)?;
        self.folder = Some(folder.into());
        Ok(())
    }

    /// Says so before any work is done, if something is in the way.
    fn check_targets(&self) -> Result<(), Error> {
        let files = self.files.iter().map(|file| file.target.as_path());
        let targets = Targets {
            files: files.chain(self.index.as_ref().map(|index| index.path.as_path())).collect(),
            stale: &self.stale,
            folder: self.folder.as_deref(),
            replace: self.options.replace,
        };
        targets.check()
    }

    /// Does it. Says how many files have been written.
    ///
    /// Each file is replaced whole, one after another once all are complete: all of them have the same tensors
    /// before and after. Elsewhere, no set that lacks a file looks whole. While it lasts, no other edit of the files
    /// that are replaced can begin.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], also if a file has changed since it was opened, or somebody else is editing it;
    /// [`Error::Cancelled`]; [`Error::Partly`] of them, if some files have been changed in their own places. The file
    /// that failed is as it was, unless its folder could not be synced.
    pub fn write(&self, watch: Watch<'_>) -> Result<usize, Error> {
        let meter = Meter::new(self.bytes_copied(), watch);
        let changed: Vec<_> = self.files.iter().filter(|file| file.changes()).collect();
        if self.options.in_place {
            let files = changed.iter();
            return one_by_one(files, |file| meter.check().and_then(|()| overwrite(file)));
        }
        let replace = || self.replace(&changed, &meter);
        work::in_folder(self.folder.as_deref(), self.options.sync, replace)?;
        Ok(changed.len())
    }

    fn replace(&self, changed: &[&PlannedMetadata<'_>], meter: &Meter<'_>) -> Result<(), Error> {
        let options = WriteOptions {
            replace: self.options.replace || !self.is_elsewhere,
            sync: self.options.sync,
        };
        let bytes =
            |file: &PlannedMetadata<'_>| file.header_bytes().saturating_add(file.data_bytes());
        let sources: Vec<&FileSource> =
            changed.iter().map(|file| file.shard.need_file()).collect::<Result<_, _>>()?;
        let targets = changed.iter().map(|file| file.target.as_path());
        let replaced = targets.chain(self.stale.iter().map(PathBuf::as_path));
        let claims = Claims::of_replaced(sources.iter().copied(), replaced)?;
        let files = changed.iter().map(|file| (file.target.as_path(), bytes(file)));
        work::check_room(files, options)?;
        let mut complete = Vec::with_capacity(changed.len());
        for file in changed {
            complete.push(new_file(file, options, meter)?);
        }
        meter.check()?;
        let index = self.index.as_ref().map(|index| index.begin(options));
        let mut index = index.transpose()?;
        index.as_mut().map_or(Ok(()), NewFile::prepare)?;
        // Those that were copied first may have changed while the others were.
        changed.iter().try_for_each(|file| file.shard.verify())?;
        if self.folder.is_some() {
            commit_set(complete, index, &self.stale)?;
        } else {
            one_by_one(complete.into_iter().zip(changed), |(new, file)| {
                file.shard.verify()?;
                Ok(new.commit()?)
            })?;
        }
        drop(claims);
        Ok(())
    }
}

/// Changes files, one after another. Says how many, also if one fails after others.
fn one_by_one<F>(
    files: impl ExactSizeIterator<Item = F>,
    mut change: impl FnMut(F) -> Result<(), Error>,
) -> Result<usize, Error> {
    let count = files.len();
    for (done, file) in files.enumerate() {
        change(file).map_err(|error| match done {
            0 => error,
            done => Error::Partly { done, files: count, error: Box::new(error) },
        })?;
    }
    Ok(count)
}

fn overwrite(file: &PlannedMetadata<'_>) -> Result<(), Error> {
    let source = file.shard.need_file()?;
    let old = source.read_span(0..file.shard.header().data_start())?;
    file.shard.verify()?;
    Ok(rewrite_head(file.shard.path(), &old, file.header()?)?)
}

fn new_file(
    file: &PlannedMetadata<'_>,
    options: WriteOptions,
    meter: &Meter<'_>,
) -> Result<NewFile, Error> {
    let (source, data_start) = (file.shard.need_file()?, file.shard.header().data_start());
    let mut new = NewFile::create(&file.target, &options)?;
    new.reserve(file.header_bytes().saturating_add(file.data_bytes()))?;
    new.write_at(file.header()?, 0)?;
    let data =
        Piece { source: 0, span: data_start..source.len(), at: file.header_bytes(), cast: None };
    work::spread(&copy::parts(&data, |_| None), |part, (): &mut ()| {
        new.copy_at(source, part.span.clone(), part.at, meter.cancel(), &|_| ())?;
        meter.add(part.span.end - part.span.start)
    })?;
    // Before the disk is waited for.
    source.verify()?;
    new.prepare()?;
    Ok(new)
}
