//! What an edit will write: files, headers, and where each byte comes from.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_format::encode::{Declaration, Encoded, encode};
use weigh_format::index::{self, IndexError};
use weigh_format::shards;
use weigh_inventory::count::Parameters;
use weigh_inventory::{Item, split};
use weigh_io::{NewFile, Source};
use weigh_values::cast::Cast;

use crate::edit::{Edit, Edited, Output, Shards};
use crate::find::INDEX_SUFFIX;
use crate::targets::Targets;
use crate::{Error, Options, WriteOptions, find, work};

/// What an edit will write. Nothing has been; see [`WritePlan::write`](Self::write).
#[derive(Debug)]
pub struct WritePlan {
    /// The files that are read.
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) files: Vec<PlannedFile>,
    pub(crate) index: Option<PlannedIndex>,
    /// Files of the checkpoint that is replaced, which the new one does not have; its index first.
    pub(crate) stale: Vec<PathBuf>,
    /// The folder that has to be made.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) options: WriteOptions,
    pub(crate) casts: Vec<PlannedCast>,
}

/// A file that will be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedFile {
    /// Where.
    pub path: PathBuf,
    /// How many tensors it will have.
    pub tensors: usize,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The length of its header, with the length field.
    pub header_bytes: u64,
    /// Whether something is there already.
    pub replaces: bool,
    pub(crate) header: Vec<u8>,
    /// Where its bytes come from, in the order of the file.
    pub(crate) pieces: Vec<Piece>,
}

/// An index that will be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedIndex {
    /// Where.
    pub path: PathBuf,
    /// Its text.
    pub text: Vec<u8>,
    /// Whether something is there already.
    pub replaces: bool,
}

impl PlannedIndex {
    /// Begins the file, with all that it has.
    pub(crate) fn begin(&self, options: weigh_io::WriteOptions) -> Result<NewFile, Error> {
        let new = NewFile::create(&self.path, &options)?;
        new.write_at(&self.text, 0)?;
        Ok(new)
    }
}

/// A conversion that will be done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedCast {
    /// The tensor's name, as it will be written.
    pub name: String,
    /// The conversion.
    pub cast: Cast,
}

/// Bytes of a file that come from one place.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The file that they come from.
    pub(crate) source: usize,
    pub(crate) span: Range<u64>,
    /// Where they go.
    pub(crate) at: u64,
    /// Which of the conversions makes them, if one does.
    pub(crate) cast: Option<usize>,
}

impl Edit<'_> {
    /// What would be written.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if readers would refuse a file, [`Error::MetadataDiffers`] if files that are
    /// written as one differ in their metadata, [`Error::Index`] if files cannot be named so,
    /// [`Error::ShardSize`]; [`Error::Io`] and [`Error::SameTarget`] if they cannot go where they are to: as far
    /// as can be told without writing, all that [`WritePlan::write`] would refuse.
    pub fn plan(&self, output: &Output, options: &WriteOptions) -> Result<WritePlan, Error> {
        self.shards.iter().try_for_each(|shard| shard.need_file().map(|_| ()))?;
        let mut plan = WritePlan {
            sources: self.shards.iter().map(|it| Arc::clone(it.shared_source())).collect(),
            files: Vec::new(),
            index: None,
            stale: Vec::new(),
            folder: None,
            options: options.clone(),
            casts: Vec::new(),
        };
        match output {
            Output::File(path) => {
                let all: Vec<usize> = (0..self.tensors.len()).collect();
                plan.add(self, path.clone(), &all, self.merged_metadata()?.as_ref())?;
            }
            Output::Folder { path, stem, shards } => {
                plan.add_folder(self, path, stem.as_deref(), *shards)?;
            }
        }
        plan.check_targets()?;
        Ok(plan)
    }

    /// The tensors of each file, and its metadata. No file is without tensors, but one where there are none.
    fn groups(&self, shards: Shards) -> Result<Vec<Group>, Error> {
        if self.tensors.is_empty() {
            return Ok(vec![(Vec::new(), self.merged_metadata()?)]);
        }
        match shards {
            Shards::Keep => {
                let mut groups: Vec<Group> = (0..self.shards.len())
                    .map(|file| (Vec::new(), self.metadata_of(file).cloned()))
                    .collect();
                for (place, tensor) in self.tensors.iter().enumerate() {
                    if let Some((group, _)) = groups.get_mut(tensor.file) {
                        group.push(place);
                    }
                }
                groups.retain(|(group, _)| !group.is_empty());
                Ok(groups)
            }
            Shards::Most(most) => {
                let order = self.natural_order();
                let bytes = |place: &usize| self.tensors.get(*place).map_or(0, Edited::bytes);
                let bytes: Vec<u64> = order.iter().map(bytes).collect();
                let metadata = self.merged_metadata()?;
                let group = |range: Range<usize>| {
                    (order.get(range).unwrap_or_default().to_vec(), metadata.clone())
                };
                Ok(split::assign(&bytes, most).into_iter().map(group).collect())
            }
        }
    }
}

type Group = (Vec<usize>, Option<BTreeMap<String, String>>);

impl WritePlan {
    /// Plans one file, of the bytes of one other.
    pub(crate) fn of_file(
        source: Arc<dyn Source>,
        file: PlannedFile,
        options: &WriteOptions,
    ) -> Result<Self, Error> {
        let plan = Self {
            sources: vec![source],
            files: vec![file],
            index: None,
            stale: Vec::new(),
            folder: None,
            options: options.clone(),
            casts: Vec::new(),
        };
        plan.check_targets()?;
        Ok(plan)
    }

    /// The files that will be written.
    #[must_use]
    pub fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    /// The index that will be written after them.
    #[must_use]
    pub fn index(&self) -> Option<&PlannedIndex> {
        self.index.as_ref()
    }

    /// Files of a checkpoint that is replaced, which will be removed.
    #[must_use]
    pub fn removed(&self) -> &[PathBuf] {
        &self.stale
    }

    /// The tensors that will be converted.
    #[must_use]
    pub fn casts(&self) -> &[PlannedCast] {
        &self.casts
    }

    /// Bytes that all files will have, headers included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes that will be copied from file to file as they are.
    #[must_use]
    pub fn bytes_copied(&self) -> u64 {
        self.source_bytes(|piece| piece.cast.is_none())
    }

    /// Bytes that will be read to be converted.
    #[must_use]
    pub fn bytes_converted(&self) -> u64 {
        self.source_bytes(|piece| piece.cast.is_some())
    }

    /// Bytes that will be read, one way or the other: what progress is told of.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.source_bytes(|_| true)
    }

    fn source_bytes(&self, is_meant: impl Fn(&Piece) -> bool) -> u64 {
        let pieces = self.files.iter().flat_map(|file| &file.pieces);
        let bytes = pieces.filter(|piece| is_meant(piece)).map(|it| it.span.end - it.span.start);
        bytes.fold(0, u64::saturating_add)
    }

    /// Plans a folder: one file, or several and their index.
    fn add_folder(
        &mut self,
        edit: &Edit<'_>,
        folder: &Path,
        stem: Option<&str>,
        shards: Shards,
    ) -> Result<(), Error> {
        if shards == Shards::Most(0) {
            return Err(Error::ShardSize);
        }
        let groups = edit.groups(shards)?;
        let stem = stem_of(stem, &edit.stem, shards, groups.len())?;
        let mut names = Vec::with_capacity(groups.len());
        let count = groups.len() as u64;
        for (number, (group, metadata)) in (1..).zip(&groups) {
            let name = shards::file_name(stem, number, count);
            self.add(edit, folder.join(&name), group, metadata.as_ref())?;
            names.push(name);
        }
        let mut map: Vec<(&str, &str)> = Vec::with_capacity(edit.tensors.len());
        for ((group, _), file) in groups.iter().zip(&names) {
            let tensors = group.iter().filter_map(|place| edit.tensors.get(*place));
            map.extend(tensors.map(|tensor| (&*tensor.name, file.as_str())));
        }
        let map = (groups.len() > 1).then_some(map.as_slice());
        (self.index, self.stale) = plan_index(edit, folder, stem, &names, map)?;
        self.folder = Some(folder.into());
        Ok(())
    }

    /// Plans a file.
    fn add<'e>(
        &mut self,
        edit: &'e Edit<'e>,
        path: PathBuf,
        group: &[usize],
        metadata: Option<&BTreeMap<String, String>>,
    ) -> Result<(), Error> {
        let tensors: Vec<&'e Edited<'e>> =
            group.iter().filter_map(|place| edit.tensors.get(*place)).collect();
        let declare = |tensor: &&'e Edited<'e>| Declaration {
            name: &tensor.name,
            dtype: tensor.dtype(),
            shape: tensor.source.shape,
        };
        let declarations: Vec<Declaration<'_>> = tensors.iter().map(declare).collect();
        let encoded =
            encode(&declarations, metadata, &self.options.layout).map_err(Error::encode(&path))?;
        let content = tensors.iter().map(|tensor| {
            let cast = tensor.cast.map(|cast| {
                self.casts.push(PlannedCast { name: tensor.name.clone().into_owned(), cast });
                self.casts.len() - 1
            });
            (tensor.file, tensor.source.span.clone(), cast)
        });
        self.files.push(PlannedFile::new(path, encoded, content));
        Ok(())
    }

    /// Says so before any work is done, if something is in the way.
    fn check_targets(&self) -> Result<(), Error> {
        let files = self.files.iter().map(|file| file.path.as_path());
        let targets = Targets {
            files: files.chain(self.index.as_ref().map(|index| index.path.as_path())).collect(),
            stale: &self.stale,
            folder: self.folder.as_deref(),
            replace: self.options.replace,
        };
        targets.check()
    }
}

impl PlannedFile {
    /// A file with this header; `content` is, for each of its tensors in the order that they were declared, the
    /// number of the file that it comes from, its bytes there, and the number of its conversion.
    pub(crate) fn new(
        path: PathBuf,
        encoded: Encoded,
        content: impl Iterator<Item = (usize, Range<u64>, Option<usize>)>,
    ) -> Self {
        let Encoded { bytes: header, data_offsets, data_len, .. } = encoded;
        let (header_bytes, tensors) = (work::length(&header), data_offsets.len());
        let place = |(offsets, (source, span, cast)): (Range<u64>, _)| Piece {
            source,
            span,
            at: header_bytes.saturating_add(offsets.start),
            cast,
        };
        let mut placed: Vec<Piece> = data_offsets.into_iter().zip(content).map(place).collect();
        placed.retain(|piece| !piece.span.is_empty());
        placed.sort_unstable_by_key(|piece| piece.at);
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in placed {
            match pieces.last_mut() {
                Some(last) if last.is_continued_by(&piece) => last.span.end = piece.span.end,
                _ => pieces.push(piece),
            }
        }
        let replaces = path.exists();
        let bytes = header_bytes.saturating_add(data_len);
        Self { path, tensors, bytes, header_bytes, replaces, header, pieces }
    }
}

impl Piece {
    /// Whether `next` begins where this one ends, there as here.
    fn is_continued_by(&self, next: &Self) -> bool {
        let len = self.span.end.saturating_sub(self.span.start);
        self.cast.is_none()
            && next.cast.is_none()
            && self.source == next.source
            && self.span.end == next.span.start
            && self.at.saturating_add(len) == next.at
    }
}

/// What the names of so many files begin with: `own` unless something is given.
///
/// What is split anew is not the file of a set any more, should its name have said so.
fn stem_of<'s>(
    given: Option<&'s str>,
    own: &'s str,
    shards: Shards,
    files: usize,
) -> Result<&'s str, Error> {
    let own_file = shards::file_name(own, 1, 1);
    let is_own_name = given.is_none() && shards == Shards::Keep && files == 1;
    let stem = match (given, shards::numbering(&own_file)) {
        (Some(given), _) => given,
        (None, Some(numbered)) if !is_own_name => {
            own.get(..numbered.prefix.len()).unwrap_or_default()
        }
        (None, _) => own,
    };
    let stem = if stem.is_empty() && given.is_none() { "model" } else { stem };
    // The longest of the names.
    let count = files as u64;
    let names = [shards::file_name(stem, count, count), format!("{stem}{INDEX_SUFFIX}")];
    let names = if files > 1 { &names[..] } else { &names[..1] };
    let is_hidden = stem.is_empty() || (stem.starts_with('.') && !is_own_name);
    if is_hidden || !names.iter().all(|name| index::is_plain_file_name(name)) {
        return Err(IndexError::FileName(stem.into()).into());
    }
    Ok(stem)
}

/// The index of the files named `names` in a folder, if `map` says that there is one and which tensor is in which
/// of them; and the files that are there of another checkpoint of this stem, and will be replaced.
pub(crate) fn plan_index(
    edit: &Edit<'_>,
    folder: &Path,
    stem: &str,
    names: &[String],
    map: Option<&[(&str, &str)]>,
) -> Result<(Option<PlannedIndex>, Vec<PathBuf>), Error> {
    let path = folder.join(format!("{stem}{INDEX_SUFFIX}"));
    let mut stale = replaced(&edit.set_files, &path, stem, names);
    let Some(map) = map else { return Ok((None, stale)) };
    let total = edit.tensors.iter().map(Edited::bytes).fold(0, u64::saturating_add);
    let [extra, beside] = &edit.index_extra;
    let text = index::encode(map, total, parameters(edit), extra, beside)?;
    stale.retain(|stale| *stale != path);
    let replaces = path.exists();
    Ok((Some(PlannedIndex { path, text, replaces }), stale))
}

/// The parameters of all tensors, where their names and shapes prove how many there are.
fn parameters<'e>(edit: &'e Edit<'e>) -> Option<u64> {
    let item = |tensor: &'e Edited<'e>| Item {
        name: &tensor.name,
        dtype: Some(tensor.dtype()),
        shape: Some(tensor.source.shape),
        bytes: tensor.bytes(),
    };
    let items: Vec<Item<'_>> = edit.tensors.iter().map(item).collect();
    Parameters::of(&items).logical
}

/// The files of the checkpoint whose index is or would be at `index`, without those in `new`; the index first.
///
/// Only files that are numbered as this checkpoint's own: an index may name anything. Without an index, those
/// that were read.
pub(crate) fn replaced(read: &[&Path], index: &Path, stem: &str, new: &[String]) -> Vec<PathBuf> {
    let mut stale = Vec::new();
    let mut files = Vec::new();
    if index.is_file() {
        stale.push(index.to_path_buf());
        let named = find(index).ok().and_then(|found| {
            let found = found.into_iter().next()?;
            found.shard_paths(&Options::default()).ok()
        });
        files.extend(named.unwrap_or_default());
    }
    // However the folder was spelled when they were opened.
    let folder = index.parent().unwrap_or(Path::new("."));
    let there = work::real_folder(index);
    let own = read.iter().filter(|file| work::real_folder(file) == there);
    files.extend(own.filter_map(|file| Some(folder.join(file.file_name()?))));
    files.sort();
    files.dedup();
    let is_own = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_numbered = shards::numbering(&name).is_some_and(|it| it.prefix == stem);
        is_numbered && !new.iter().any(|new| *new == name) && fs::symlink_metadata(path).is_ok()
    };
    stale.extend(files.into_iter().filter(is_own));
    stale
}
