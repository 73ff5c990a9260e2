//! Editing metadata: a new header before the same data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weigh_format::encode::{Declaration, Encoded, Layout, Order, encode};
use weigh_io::{NewFile, Source, rewrite_head};

use crate::work::{self, Meter};
use crate::{Checkpoint, Error, Shard, Watch, WriteOptions};

/// How to edit metadata.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct MetadataOptions {
    /// Whether the header is overwritten where it is. It must have room for the new one; the file is one that
    /// every reader refuses while that lasts, and after a crash until [`mend`](crate::io::mend) undoes it.
    pub in_place: bool,
    /// Bytes that are left free in the header, for later edits in place.
    pub reserve: u64,
    /// Whether the file is on the disk before this returns.
    pub sync: bool,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self { in_place: false, reserve: 0, sync: true }
    }
}

/// What an edit of metadata will do. Nothing has been done.
#[derive(Debug)]
pub struct MetadataPlan<'c> {
    files: Vec<PlannedMetadata<'c>>,
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
    header: Vec<u8>,
}

impl PlannedMetadata<'_> {
    /// Whether there is something to do.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.target != self.shard.path() || self.before != self.after
    }

    /// The length of the new header, with the length field.
    #[must_use]
    pub fn header_bytes(&self) -> u64 {
        work::length(&self.header)
    }

    /// Bytes of tensors that have to move, as the kernel does it.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        let header = self.shard.header();
        header.file_len().saturating_sub(header.data_start())
    }
}

impl Checkpoint {
    /// Plans an edit of the metadata of every file.
    ///
    /// Tensors stay in the order that they have. `target` says where each file goes: `None` for its own place.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if readers would refuse the header, or, in place, there is no room for it.
    pub fn plan_metadata(
        &self,
        mut edit: impl FnMut(&mut BTreeMap<String, String>),
        target: impl Fn(&Shard) -> Option<PathBuf>,
        options: &MetadataOptions,
    ) -> Result<MetadataPlan<'_>, Error> {
        let plan = |shard| {
            let before: BTreeMap<String, String> = Shard::header(shard).metadata().collect();
            let mut after = before.clone();
            edit(&mut after);
            let header = new_header(shard, &after, options)?;
            let target = target(shard).unwrap_or_else(|| shard.path().into());
            Ok(PlannedMetadata { shard, target, before, after, header })
        };
        let files = self.shards().iter().map(plan).collect::<Result<_, Error>>()?;
        Ok(MetadataPlan { files, options: options.clone() })
    }
}

/// The header of a file with other metadata.
fn new_header(
    shard: &Shard,
    metadata: &BTreeMap<String, String>,
    options: &MetadataOptions,
) -> Result<Vec<u8>, Error> {
    let header = shard.header();
    let declarations: Vec<Declaration<'_>> = header
        .tensors_by_offset()
        .map(|tensor| Declaration { name: tensor.name, dtype: tensor.dtype, shape: tensor.shape })
        .collect();
    let room = options.in_place.then(|| header.data_start().saturating_sub(8));
    let layout =
        Layout { order: Order::Given, reserve: options.reserve, room, ..Layout::default() };
    let Encoded { bytes, .. } = encode(&declarations, Some(metadata), &layout)?;
    Ok(bytes)
}

impl MetadataPlan<'_> {
    /// What will be done to each file.
    #[must_use]
    pub fn files(&self) -> &[PlannedMetadata<'_>] {
        &self.files
    }

    /// Bytes of tensors that will be copied by the kernel.
    #[must_use]
    pub fn bytes_copied(&self) -> u64 {
        if self.options.in_place {
            return 0;
        }
        let changed = self.files.iter().filter(|file| file.changes());
        changed.map(PlannedMetadata::data_bytes).fold(0, u64::saturating_add)
    }

    /// Does it. Says how many files have changed.
    ///
    /// Each file is replaced whole, one after another once all are complete: all of them have the same tensors
    /// before and after. `replace` says whether a target that is not the file itself may be replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Cancelled`]. The files before that one have been changed.
    pub fn write(&self, replace: bool, watch: Watch<'_>) -> Result<usize, Error> {
        let meter = Meter::new(self.bytes_copied(), watch);
        let changed = self.files.iter().filter(|file| file.changes());
        if self.options.in_place {
            let mut count = 0;
            for file in changed {
                meter.check()?;
                overwrite(file)?;
                count += 1;
            }
            return Ok(count);
        }
        let mut complete = Vec::new();
        for file in changed {
            let replace = replace || file.target == file.shard.path();
            let options = WriteOptions { replace, sync: self.options.sync, ..Default::default() };
            complete.push(new_file(file, &options, &meter)?);
        }
        let count = complete.len();
        meter.check()?;
        for file in complete {
            file.commit()?;
        }
        Ok(count)
    }
}

/// Overwrites the header of a file where it is.
fn overwrite(file: &PlannedMetadata<'_>) -> Result<(), Error> {
    let source = file.shard.source();
    let old = source.read_span(0..file.shard.header().data_start())?;
    source.verify()?;
    Ok(rewrite_head(file.shard.path(), &old, &file.header)?)
}

fn new_file(
    file: &PlannedMetadata<'_>,
    options: &WriteOptions,
    meter: &Meter<'_>,
) -> Result<NewFile, Error> {
    let (source, data_start) = (file.shard.source(), file.shard.header().data_start());
    let mut new = NewFile::create(&file.target, &options.of_files())?;
    new.reserve(file.header_bytes().saturating_add(file.data_bytes()))?;
    new.write_at(&file.header, 0)?;
    let mut at = data_start;
    while at < source.len() {
        let end = at.saturating_add(COPIED).min(source.len());
        let target = file.header_bytes().saturating_add(at - data_start);
        new.copy_at(source, at..end, target, meter.cancel(), &|_| ())?;
        meter.add(end - at)?;
        at = end;
    }
    source.verify()?;
    new.prepare()?;
    Ok(new)
}

/// Bytes that the kernel copies at a time: between two, the work can be stopped.
const COPIED: u64 = 32 << 20;
