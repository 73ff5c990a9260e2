//! The bytes of tensors, gathered from where files have them, in constant memory.
//!
//! A [`Blob`] is bytes that tensors are views of; a [`Gathered`] says which of them are a tensor's, in which order, and
//! what is made of them. A [`Job`] cuts the tensors of one output file into pieces of [`Work`] that are done in any
//! order, and hands what comes of each to a sink, with its place in the file: to be written, or to be compared.

mod copy;
mod make;
mod scatter;
mod sums;
mod tile;
mod unpack;

use std::collections::BTreeMap;
use std::ops::Range;

use weigh_io::FileSource;
use weigh_pickle::container::zip::Entry;
use weigh_pickle::view::Runs;

use crate::Error;
use copy::{Batch, Piece};
pub(crate) use make::{Dequantize, Integer, Integers, Make, Steps};
pub(crate) use scatter::{Scatter, Scattered, can_add};
pub(crate) use sums::Sums;
use tile::{Strided, Tile, nearest, tiles};
pub(crate) use unpack::{Unpacked, checksum, unpack};

/// Runs of so many bytes are copied by themselves.
const LONG: u64 = 64 << 10;

/// Bytes of a box of a strided tensor, gaps included, that are read as one.
const NEAR: u64 = 8 << 20;

/// Bytes that tensors are views of.
#[derive(Debug)]
pub(crate) struct Blob {
    /// What it is called in errors.
    pub(crate) name: String,
    /// How many bytes it has.
    pub(crate) len: u64,
    pub(crate) bytes: Bytes,
    /// The CRC-32 that its bytes have to have, if it is known and asked for.
    pub(crate) crc: Option<u32>,
    /// Its first bytes, if they are no tensor's and were read already: for the checksum.
    pub(crate) head: Vec<u8>,
}

/// Where bytes are.
#[derive(Debug)]
pub(crate) enum Bytes {
    /// In a file, by its number, as they are from this byte on.
    Stored { source: usize, start: u64 },
    /// In a file, deflated.
    Deflated { source: usize, span: Range<u64>, entry: Box<Entry> },
    /// In memory.
    Held(Box<[u8]>),
    /// Nowhere yet: values are put where indices say.
    Scattered(Box<Scatter>),
}

impl Blob {
    /// The blobs that it is made of.
    pub(crate) fn parts(&self) -> Vec<usize> {
        match &self.bytes {
            Bytes::Scattered(scatter) => scatter.blobs().collect(),
            _ => Vec::new(),
        }
    }
}

/// Runs of bytes of a blob, in the order of a tensor's elements.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Pattern {
    /// Where the first begins.
    pub(crate) first: u64,
    /// Bytes of each.
    pub(crate) run: u64,
    /// How they repeat, outermost first. A stride of 0 repeats the same.
    pub(crate) dims: Vec<(u64, u64)>,
}

impl Pattern {
    /// One run.
    pub(crate) fn span(span: Range<u64>) -> Self {
        let run = span.end.saturating_sub(span.start);
        Self { first: span.start, run, dims: Vec::new() }
    }

    /// Elements of a shape from `first` on, of which the first dimension runs fastest.
    pub(crate) fn fortran(first: u64, element: u64, shape: &[u64]) -> Self {
        if shape.contains(&0) {
            return Self::span(first..first);
        }
        let mut dims = Vec::new();
        let mut stride = element;
        for &count in shape.iter().filter(|count| **count > 1) {
            dims.push((count, stride));
            stride = stride.saturating_mul(count);
        }
        if let [(count, _)] = *dims.as_slice() {
            return Self::span(first..first.saturating_add(element.saturating_mul(count)));
        }
        Self { first, run: element, dims }
    }

    /// Bytes of all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.dims.iter().fold(self.run, |bytes, (count, _)| bytes.saturating_mul(*count))
    }

    /// Where each run begins.
    fn begins(&self) -> impl Iterator<Item = u64> {
        let count = self.dims.iter().fold(1, |runs: u64, (count, _)| runs.saturating_mul(*count));
        (0..count).map(|number| {
            let mut rest = number;
            let step = |begin: u64, (count, stride): &(u64, u64)| {
                let place = rest % count.max(&1);
                rest /= count.max(&1);
                begin.saturating_add(place.saturating_mul(*stride))
            };
            self.dims.iter().rev().fold(self.first, step)
        })
    }
}

impl From<&Runs> for Pattern {
    fn from(runs: &Runs) -> Self {
        let dims = runs.dims.iter().map(|repeat| (repeat.count, repeat.stride)).collect();
        Self { first: runs.first, run: runs.run, dims }
    }
}

/// A tensor's bytes.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// The number of the blob that they are in.
    pub(crate) blob: usize,
    pub(crate) pattern: Pattern,
    pub(crate) make: Make,
}

impl Gathered {
    /// How many it has in the end.
    pub(crate) fn bytes(&self) -> u64 {
        self.make.bytes(self.pattern.bytes())
    }

    /// What is done to its bytes, in words.
    pub(crate) fn how(&self, blobs: &[Blob]) -> String {
        let is_deflated = |blob: &Blob| matches!(blob.bytes, Bytes::Deflated { .. });
        let is_scattered = |blob: &Blob| matches!(blob.bytes, Bytes::Scattered(_));
        let first = if !self.pattern.dims.is_empty() {
            "gathered"
        } else if blobs.get(self.blob).is_some_and(is_scattered) {
            "densified"
        } else if blobs.get(self.blob).is_some_and(is_deflated) {
            "inflated"
        } else {
            "copied"
        };
        std::iter::once(first).chain(self.make.words()).collect::<Vec<_>>().join(", ")
    }

    /// Whether a blob that is inflated from its beginning to its end has its elements in order, whole.
    fn streams(&self) -> bool {
        self.pattern.dims.is_empty() && self.pattern.first.is_multiple_of(self.make.unit())
    }
}

/// The tensors of one output file.
#[derive(Debug)]
pub(crate) struct Job<'p> {
    /// The files that blobs are in.
    pub(crate) sources: &'p [&'p FileSource],
    pub(crate) blobs: &'p [Blob],
    /// Those that were inflated first.
    pub(crate) unpacked: &'p BTreeMap<usize, Unpacked>,
    /// The tensors, each with the place of its first byte in the output.
    pub(crate) tensors: Vec<(&'p Gathered, u64)>,
    /// What takes the checksums of stored blobs.
    pub(crate) sums: Option<&'p Sums>,
}

/// What is done at a time.
#[derive(Debug)]
pub(crate) enum Work {
    /// Bytes that are next to each other in the output, each of one run.
    Copy(Vec<Piece>),
    /// A box of a tensor.
    Tile { tensor: usize, tile: Tile },
    /// All of a blob that is deflated, for these tensors.
    Inflate { blob: usize, tensors: Vec<usize> },
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    read: Vec<u8>,
    gathered: Vec<u8>,
    made: Vec<u8>,
}

/// Takes bytes of the output, with their place.
pub(crate) type Sink<'s> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 's;

impl<'p> Job<'p> {
    /// Cuts it up.
    pub(crate) fn works(&self) -> Vec<Work> {
        let mut order: Vec<usize> = (0..self.tensors.len()).collect();
        order.sort_by_key(|tensor| self.tensors.get(*tensor).map(|(_, at)| *at));
        let mut works = Vec::new();
        let mut deflated: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut batch = Batch::default();
        for tensor in order {
            let Some((gathered, at)) = self.tensors.get(tensor) else { continue };
            let pattern = &gathered.pattern;
            if pattern.bytes() == 0 {
                continue;
            }
            let is_deflated = self.blobs.get(gathered.blob).is_some_and(|blob| {
                matches!(blob.bytes, Bytes::Deflated { .. })
                    && !self.unpacked.contains_key(&gathered.blob)
            });
            if is_deflated {
                deflated.entry(gathered.blob).or_default().push(tensor);
            } else if pattern.dims.is_empty() || pattern.run >= LONG {
                let mut offset = 0;
                for begin in pattern.begins() {
                    batch.add_run(&mut works, (tensor, gathered, *at), offset, begin);
                    offset = offset.saturating_add(pattern.run);
                }
            } else {
                works.extend(tiles(pattern).into_iter().map(|tile| Work::Tile { tensor, tile }));
            }
        }
        batch.flush(&mut works);
        works.extend(deflated.into_iter().map(|(blob, tensors)| Work::Inflate { blob, tensors }));
        works
    }

    /// Does some of it.
    pub(crate) fn run(
        &self,
        work: &Work,
        scratch: &mut Scratch,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        match work {
            Work::Copy(pieces) => self.copy(pieces, scratch, sink),
            Work::Tile { tensor, tile } => self.tile(*tensor, tile, scratch, sink),
            Work::Inflate { blob, tensors } => self.inflate(*blob, tensors, sink),
        }
    }

    fn tile(
        &self,
        tensor: usize,
        tile: &Tile,
        scratch: &mut Scratch,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        let (of, at) = self.tensor(tensor)?;
        let pattern = &of.pattern;
        let Scratch { read, gathered, made } = scratch;
        let gathered = resized(gathered, tile.bytes(pattern.run))?;
        let (first, span) = tile.span(pattern);
        let run = size(pattern.run);
        let plain = || {
            let counts = tile.counts.iter().zip(&pattern.dims);
            counts.map(|(count, (_, stride))| (size(*count), size(*stride))).collect()
        };
        let done = match self.held(of.blob) {
            Some(held) => {
                let source = held.get(size(first)..).ok_or_else(lost)?;
                Strided { run, dims: plain() }.gather(source, gathered)
            }
            None if span <= NEAR => {
                let source = resized(read, span)?;
                self.read(of.blob, first, source)?;
                Strided { run, dims: plain() }.gather(source, gathered)
            }
            None => {
                let dims = self.read_lines(of, tile, first, read)?;
                Strided { run, dims }.gather(read, gathered)
            }
        };
        done.ok_or_else(lost)?;
        let (part, begins) = tile.parts(pattern);
        for (bytes, begin) in gathered.chunks_exact_mut(size(part).max(1)).zip(begins) {
            let out = of.make.apply(bytes, begin, made);
            sink(at.saturating_add(of.make.bytes(begin)), out)?;
        }
        Ok(())
    }

    /// Reads the lines of a box that are near in the file, and nothing between them. Says where runs are in what was
    /// read.
    fn read_lines(
        &self,
        of: &Gathered,
        tile: &Tile,
        first: u64,
        read: &mut Vec<u8>,
    ) -> Result<Vec<(usize, usize)>, Error> {
        let pattern = &of.pattern;
        let near = nearest(&pattern.dims).ok_or_else(lost)?;
        let count = tile.counts.get(near).copied().unwrap_or(1);
        let stride = pattern.dims.get(near).map_or(0, |(_, stride)| *stride);
        let whole = count.saturating_sub(1).saturating_mul(stride).saturating_add(pattern.run);
        let packed = count.saturating_mul(pattern.run);
        // Gaps that are as long as the runs are read with them.
        let is_whole = whole <= packed.saturating_mul(2).max(1 << 12);
        let line = if is_whole { whole } else { packed };
        // What is read is in the order of the other dimensions, each line after the other.
        let mut dims = vec![(1, 0); tile.counts.len()];
        let mut step = line;
        let mut lines = Pattern { first, run: line, dims: Vec::new() };
        for (place, ((own, count), (_, stride))) in
            dims.iter_mut().zip(&tile.counts).zip(&pattern.dims).enumerate().rev()
        {
            if place == near {
                *own = (size(*count), size(if is_whole { *stride } else { pattern.run }));
            } else {
                *own = (size(*count), size(step));
                step = step.saturating_mul(*count);
                lines.dims.push((*count, *stride));
            }
        }
        lines.dims.reverse();
        let bytes = resized(read, step)?;
        for (into, begin) in bytes.chunks_exact_mut(size(line)).zip(lines.begins()) {
            if is_whole {
                self.read(of.blob, begin, into)?;
                continue;
            }
            for (number, into) in (0_u64..).zip(into.chunks_exact_mut(size(pattern.run))) {
                self.read(of.blob, begin.saturating_add(number.saturating_mul(stride)), into)?;
            }
        }
        Ok(dims)
    }

    fn tensor(&self, tensor: usize) -> Result<(&'p Gathered, u64), Error> {
        self.tensors.get(tensor).copied().ok_or_else(lost)
    }

    /// The file and the byte of it where a byte of a blob is, if it is there as it is.
    fn file_place(&self, blob: usize, at: u64) -> Option<(usize, u64)> {
        match self.blobs.get(blob)?.bytes {
            Bytes::Stored { source, start } => Some((source, start.saturating_add(at))),
            _ => None,
        }
    }

    /// A blob that is in memory.
    fn held(&self, blob: usize) -> Option<&[u8]> {
        if let Some(Unpacked::Held(bytes)) = self.unpacked.get(&blob) {
            return Some(bytes);
        }
        match &self.blobs.get(blob)?.bytes {
            Bytes::Held(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Reads bytes of a blob, if it is there as it is.
    pub(crate) fn read(&self, blob: usize, at: u64, into: &mut [u8]) -> Result<(), Error> {
        if let Some(held) = self.held(blob) {
            let own = held.get(size(at)..).and_then(|rest| rest.get(..into.len()));
            into.copy_from_slice(own.ok_or_else(lost)?);
            return Ok(());
        }
        if let Some(whole) = self.unpacked.get(&blob) {
            return whole.read(at, into);
        }
        let (source, at) = self.file_place(blob, at).ok_or_else(lost)?;
        Ok(self.sources.get(source).ok_or_else(lost)?.read_exact_at(into, at)?)
    }
}

/// The first bytes of a buffer, which grows if need be.
pub(crate) fn resized(buffer: &mut Vec<u8>, len: u64) -> Result<&mut [u8], Error> {
    let too_long = Error::OutOfMemory { wanted: len };
    let Ok(len) = usize::try_from(len) else { return Err(too_long) };
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer.get_mut(..len).ok_or(too_long)
}

pub(crate) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// That a plan names what it has not.
pub(crate) fn lost() -> Error {
    Error::internal("a tensor of no bytes")
}
