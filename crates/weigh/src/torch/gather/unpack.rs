//! Blobs that are deflated: inflated piece by piece, or as a whole where a tensor's elements are not in order there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use weigh_io::{FileSource, NewFile};
use weigh_pickle::container::inflate::Inflater;

use super::{Blob, Bytes, Gathered, Job, Sink, lost, size};
use crate::{Error, work};

/// Bytes of a blob that are kept in memory: one that is larger is inflated to a file.
pub(super) const HELD: u64 = 16 << 20;

/// Bytes that are inflated at a time. A multiple of any element's.
const INFLATED: usize = 1 << 20;

/// Bytes that are read at a time.
const READ: u64 = 256 << 10;

/// A blob that was inflated as a whole.
#[derive(Debug)]
pub(crate) enum Unpacked {
    /// To memory.
    Held(Vec<u8>),
    /// To a file that never takes a place.
    Spilled(Box<NewFile>),
}

impl Unpacked {
    /// Bytes from a place on.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Held(held) => {
                let own = held.get(size(at)..).and_then(|rest| rest.get(..into.len()));
                into.copy_from_slice(own.ok_or_else(lost)?);
                Ok(())
            }
            Self::Spilled(file) => Ok(file.read_exact_at(into, at)?),
        }
    }

    /// Replaces bytes from a place on.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Held(held) => {
                let own = held.get_mut(size(at)..).and_then(|rest| rest.get_mut(..bytes.len()));
                own.ok_or_else(lost)?.copy_from_slice(bytes);
                Ok(())
            }
            Self::Spilled(file) => Ok(file.write_at(bytes, at)?),
        }
    }
}

/// Inflates the blobs of tensors whose elements are not in order there, and makes those dense that are sparse. A large
/// one goes to a file without a name beside `output`.
pub(crate) fn unpack<'g>(
    sources: &[&FileSource],
    blobs: &[Blob],
    tensors: impl Iterator<Item = &'g Gathered>,
    output: &Path,
) -> Result<BTreeMap<usize, Unpacked>, Error> {
    let is_scattered = |tensor: &Gathered| {
        let blob = blobs.get(tensor.blob);
        blob.is_some_and(|blob| matches!(blob.bytes, Bytes::Scattered(_)))
    };
    let whole: BTreeSet<usize> = tensors
        .filter(|tensor| !tensor.streams() || is_scattered(tensor))
        .map(|tensor| tensor.blob)
        .collect();
    let mut unpacked = BTreeMap::new();
    for number in whole {
        let Some(blob) = blobs.get(number) else { continue };
        match &blob.bytes {
            Bytes::Deflated { .. } => {}
            Bytes::Scattered(scatter) => {
                let dense = scatter.unpack(sources, blobs, blob.len, output)?;
                unpacked.insert(number, dense);
                continue;
            }
            Bytes::Stored { .. } | Bytes::Held(_) => continue,
        }
        let whole = if blob.len <= HELD {
            let mut held = Vec::new();
            inflate(sources, blob, |_, bytes| {
                held.extend_from_slice(bytes);
                Ok(())
            })?;
            Unpacked::Held(held)
        } else {
            // It is never put in place: whether something is there does not matter.
            let options = weigh_io::WriteOptions { replace: true, sync: false };
            let file = NewFile::create(output, &options)?;
            file.reserve(blob.len)?;
            inflate(sources, blob, |at, bytes| Ok(file.write_at(bytes, at)?))?;
            Unpacked::Spilled(Box::new(file))
        };
        unpacked.insert(number, whole);
    }
    Ok(unpacked)
}

impl Job<'_> {
    /// Inflates a blob, and hands on what tensors have of it.
    pub(super) fn inflate(
        &self,
        blob: usize,
        tensors: &[usize],
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        let of = self.blobs.get(blob).ok_or_else(lost)?;
        let (mut own, mut made) = (Vec::new(), Vec::new());
        inflate(self.sources, of, |at, bytes| {
            for tensor in tensors {
                let (gathered, place) = self.tensor(*tensor)?;
                let first = gathered.pattern.first;
                let end = first.saturating_add(gathered.pattern.run);
                let from = first.max(at);
                let until = end.min(at.saturating_add(work::length(bytes)));
                if from >= until {
                    continue;
                }
                let part = bytes.get(size(from - at)..size(until - at)).ok_or_else(lost)?;
                own.clear();
                own.extend_from_slice(part);
                let offset = from - first;
                let out = gathered.make.apply(&mut own, offset, &mut made);
                sink(place.saturating_add(gathered.make.bytes(offset)), out)?;
            }
            Ok(())
        })
    }
}

/// Inflates a blob from its beginning to its end: `take` gets all of it in pieces, each with its place.
pub(super) fn inflate(
    sources: &[&FileSource],
    blob: &Blob,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let Bytes::Deflated { source, span, entry } = &blob.bytes else { return Err(lost()) };
    let file = *sources.get(*source).ok_or_else(lost)?;
    let failed = |error| Error::torch(file.path(), error);
    let mut reading = Reading { file, span: span.clone(), raw: Vec::new(), used: 0 };
    let mut inflater = Inflater::new(entry);
    let mut piece = vec![0; INFLATED];
    let (mut filled, mut at) = (0, 0);
    loop {
        let room = piece.get_mut(filled..).unwrap_or_default();
        let step = inflater.step(reading.raw()?, room).map_err(failed)?;
        reading.used += step.taken;
        filled += step.given;
        let is_over = step.taken == 0 && step.given == 0;
        if filled == INFLATED || is_over {
            let bytes = piece.get(..filled).unwrap_or_default();
            take(at, bytes)?;
            at = at.saturating_add(work::length(bytes));
            filled = 0;
        }
        if is_over {
            let damage = inflater.finish().map_err(failed)?;
            return match damage.filter(|_| blob.crc.is_some()) {
                Some(damage) => Err(checksum(file, blob, &damage.message)),
                None => Ok(()),
            };
        }
    }
}

/// Deflated bytes, read as they are used.
struct Reading<'f> {
    file: &'f FileSource,
    /// What was not read yet.
    span: Range<u64>,
    raw: Vec<u8>,
    used: usize,
}

impl Reading<'_> {
    /// Those that come next; none at the end.
    fn raw(&mut self) -> Result<&[u8], Error> {
        if self.used == self.raw.len() && !self.span.is_empty() {
            let end = self.span.end.min(self.span.start.saturating_add(READ));
            let wanted = size(end - self.span.start);
            self.raw.resize(wanted, 0);
            self.file.read_exact_at(&mut self.raw, self.span.start)?;
            self.span.start = end;
            self.used = 0;
        }
        Ok(self.raw.get(self.used..).unwrap_or_default())
    }
}

/// That bytes do not have their checksum. torch writes none, which is 0, where it leaves out the bytes.
pub(crate) fn checksum(file: &FileSource, blob: &Blob, message: &str) -> Error {
    let error = if blob.crc == Some(0) {
        let message = "the storage has no checksum, as `torch.serialization.skip_data()` writes it: its bytes were \
                       left out, or put there later; --ignore-crc takes what is there";
        weigh_pickle::Error::new("skipped-data", message)
    } else {
        weigh_pickle::Error::new("zip-crc", message)
    };
    Error::torch(file.path(), error.member(&blob.name))
}
