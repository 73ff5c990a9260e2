//! Requests with their destinations: who gets which of the bytes that were read.

use std::io::IoSliceMut;
use std::ops::Range;

use super::scratch::Scratch;
use super::{Hook, ReadError, length, usize_of};
use crate::gather::gather;
use crate::source::to_u64;
use crate::{Plan, Runs, Unit};

/// A request that knows where its bytes go.
pub(crate) struct Bound<'d> {
    pub(crate) file: usize,
    pub(crate) span: Range<u64>,
    pub(crate) straight: bool,
    pub(crate) pieces: Vec<BoundPiece<'d>>,
}

/// A piece of a part, with its place.
pub(crate) struct BoundPiece<'d> {
    part: usize,
    /// Bytes of the part before this piece.
    at: u64,
    span: Range<u64>,
    bytes: u64,
    unit: Unit,
    gathered: Option<(&'d Runs, u64)>,
    pub(crate) to: &'d mut [u8],
}

/// Gives every piece of a plan its place in the destination of its part.
pub(super) fn bind<'d>(
    plan: &'d Plan,
    destinations: Vec<&'d mut [u8]>,
) -> Result<Vec<Bound<'d>>, ReadError> {
    let parts = plan.parts();
    if destinations.len() != parts.len() {
        let part = destinations.len().min(parts.len());
        let wanted = parts.get(part).map_or(0, |part| part.runs.bytes());
        let got = destinations.get(part).map_or(0, |memory| to_u64(memory.len()));
        return Err(ReadError::Destination { part, wanted, got });
    }
    for (number, (part, destination)) in parts.iter().zip(&destinations).enumerate() {
        let wanted = part.unit.apply(part.runs.bytes()).unwrap_or(u64::MAX);
        let got = to_u64(destination.len());
        if wanted != got {
            return Err(ReadError::Destination { part: number, wanted, got });
        }
    }
    // What is left of each part's destination, and how many bytes have been given out.
    let mut rests: Vec<(&mut [u8], u64)> = destinations.into_iter().map(|it| (it, 0)).collect();
    let requests = plan.planned().iter().map(|request| {
        let pieces = plan.pieces().get(request.pieces.clone()).unwrap_or_default().iter();
        let pieces = pieces.map(|piece| {
            let failed = ReadError::Destination { part: piece.part, wanted: piece.bytes, got: 0 };
            let (Some(part), Some((rest, at))) = (parts.get(piece.part), rests.get_mut(piece.part))
            else {
                return Err(failed);
            };
            let becomes = part.unit.apply(piece.bytes).map(usize_of);
            let Some(to) = becomes.and_then(|len| rest.split_off_mut(..len)) else {
                return Err(failed);
            };
            let gathered = piece.gathered.map(|first| (&part.runs, first));
            let (span, bytes, unit) = (piece.span.clone(), piece.bytes, part.unit);
            let bound = BoundPiece { part: piece.part, at: *at, span, bytes, unit, gathered, to };
            *at += bytes;
            Ok(bound)
        });
        let (file, span, straight) = (request.file, request.span.clone(), request.straight);
        Ok(Bound { file, span, straight, pieces: pieces.collect::<Result<_, _>>()? })
    });
    requests.collect()
}

impl Bound<'_> {
    pub(crate) fn bytes(&self) -> usize {
        length(&self.span)
    }

    /// Bytes of the span that belong to no piece, of a request that needs no scratch.
    pub(crate) fn gaps(&self) -> usize {
        self.bytes().saturating_sub(self.pieces.iter().map(|piece| piece.to.len()).sum())
    }

    /// The places of all bytes of the span, in order; what belongs to no piece goes to `unwanted`, of at
    /// least [`gaps`](Self::gaps) bytes. Of a request that needs no scratch.
    pub(crate) fn places<'s>(&'s mut self, mut unwanted: &'s mut [u8]) -> Vec<IoSliceMut<'s>> {
        let mut places = Vec::with_capacity(self.pieces.len() + 1);
        let mut at = self.span.start;
        for piece in &mut self.pieces {
            let gap = usize_of(piece.span.start.saturating_sub(at));
            if gap > 0 {
                places.extend(unwanted.split_off_mut(..gap).map(IoSliceMut::new));
            }
            at = piece.span.end;
            places.push(IoSliceMut::new(piece.to));
        }
        places
    }

    /// Hands out the bytes of the span, of a request whose bytes were read elsewhere.
    pub(crate) fn hand_out(
        &mut self,
        bytes: &[u8],
        hook: Option<&dyn Hook>,
        scratch: &mut Scratch,
    ) -> Result<(), ReadError> {
        for piece in &mut self.pieces {
            let from = usize_of(piece.span.start.saturating_sub(self.span.start));
            let span = bytes.get(from..).and_then(|bytes| bytes.get(..length(&piece.span)));
            // Not to be: the whole span was read. But no part is left as it was without a word.
            let (part, wanted, got) = (piece.part, piece.bytes, to_u64(bytes.len()));
            let bytes = span.ok_or(ReadError::Destination { part, wanted, got })?;
            match (piece.gathered, piece.unit == Unit::SAME) {
                (None, true) => piece.to.copy_from_slice(bytes),
                (None, false) => piece.convert(bytes, hook),
                (Some((runs, first)), true) => gather(runs, first, bytes, piece.to),
                (Some((runs, first)), false) => {
                    let dense = scratch.get(usize_of(piece.bytes))?;
                    gather(runs, first, bytes, dense);
                    piece.convert(dense, hook);
                }
            }
        }
        Ok(())
    }
}

/// Bytes that are converted in one call: they and what they become stay in a core's cache.
const CHUNK: usize = 256 << 10;

impl BoundPiece<'_> {
    fn convert(&mut self, bytes: &[u8], hook: Option<&dyn Hook>) {
        let Some(hook) = hook else { return };
        let (from, to) = (usize_of(self.unit.from.into()), usize_of(self.unit.to.into()));
        let units = (CHUNK / from.max(to).max(1)).max(1);
        let mut at = self.at;
        for (bytes, to) in bytes.chunks(units * from).zip(self.to.chunks_mut(units * to)) {
            hook.convert(self.part, at, bytes, to);
            at += to_u64(bytes.len());
        }
    }
}
