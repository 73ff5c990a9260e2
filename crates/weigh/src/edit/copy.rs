//! The parts of a file that are copied or converted at a time.

use std::ops::Range;

use weigh_io::FileSource;
use weigh_values::Tally;
use weigh_values::cast::Cast;

use crate::edit::plan::Piece;
use crate::edit::{converted, unit_bytes};
use crate::{Error, work};

/// Bytes that are copied at a time: between two, the work can be stopped.
const COPIED: u64 = 32 << 20;

/// Bytes of the source that are converted at a time: few enough to stay in a core's cache.
const CONVERTED: u64 = 1 << 20;

/// A part of a piece.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Part {
    /// The file that it comes from.
    pub(crate) source: usize,
    pub(crate) span: Range<u64>,
    /// Where it goes.
    pub(crate) at: u64,
    /// The number of the conversion.
    pub(super) cast: Option<usize>,
}

/// Cuts a piece into parts.
pub(crate) fn parts(piece: &Piece, cast: impl Fn(usize) -> Option<Cast>) -> Vec<Part> {
    let cast_of = piece.cast.and_then(cast);
    // As many whole units as there is room for: 3-byte units of 6-bit elements are no power of two.
    let step = cast_of.map_or(COPIED, |cast| {
        let [from, _] = unit_bytes(cast);
        CONVERTED / from * from
    });
    let mut parts = Vec::new();
    let mut start = piece.span.start;
    while start < piece.span.end {
        let end = start.saturating_add(step).min(piece.span.end);
        let before = start - piece.span.start;
        let before = cast_of.map_or(before, |cast| converted(cast, before));
        let at = piece.at.saturating_add(before);
        parts.push(Part { source: piece.source, span: start..end, at, cast: piece.cast });
        start = end;
    }
    parts
}

/// Memory that is used again from part to part.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Scratch {
    /// Reads and converts a part, and hands the result on.
    pub(super) fn convert(
        &mut self,
        source: &FileSource,
        part: &Part,
        cast: Cast,
        write: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<Tally, Error> {
        let wanted = part.span.end.saturating_sub(part.span.start);
        let from = resized(&mut self.from, wanted)?;
        source.read_exact_at(from, part.span.start)?;
        let to = resized(&mut self.to, converted(cast, wanted))?;
        let mut tally = Tally::default();
        cast.convert_counted(from, to, &mut tally)
            .map_err(|error| Error::internal(error.to_string()))?;
        write(to)?;
        Ok(tally)
    }

    /// Reads a span, and hands it on piece by piece.
    pub(super) fn stream(
        &mut self,
        source: &FileSource,
        span: Range<u64>,
        mut write: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut at = span.start;
        while at < span.end {
            let piece = resized(&mut self.from, CONVERTED.min(span.end - at))?;
            source.read_exact_at(piece, at)?;
            write(piece)?;
            at = at.saturating_add(work::length(piece));
        }
        Ok(())
    }
}

/// The first bytes of a buffer, which grows if need be.
fn resized(buffer: &mut Vec<u8>, len: u64) -> Result<&mut [u8], Error> {
    let too_long = Error::OutOfMemory { wanted: len };
    let Ok(len) = usize::try_from(len) else { return Err(too_long) };
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer.get_mut(..len).ok_or(too_long)
}
