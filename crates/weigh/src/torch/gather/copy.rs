//! Bytes that are copied as they are: runs, cut into pieces, and pieces that are near each other read at once.

use super::{Gathered, Job, Scratch, Sink, Work, lost, resized, size};
use crate::Error;

/// Bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

/// Bytes between two pieces that are read rather than left out.
const GAP: u64 = 4 << 10;

/// Bytes that are copied.
#[derive(Debug)]
pub(crate) struct Piece {
    tensor: usize,
    /// Bytes of the tensor, gathered, before it.
    offset: u64,
    /// Where it is in the blob.
    from: u64,
    len: u64,
}

/// Pieces that are next to each other in the output, gathered up to [`PIECE`].
#[derive(Default)]
pub(super) struct Batch {
    pieces: Vec<Piece>,
    bytes: u64,
    /// Where the next byte would go.
    end: u64,
}

impl Batch {
    /// Adds a run, in pieces if it is long.
    pub(super) fn add_run(
        &mut self,
        works: &mut Vec<Work>,
        (tensor, gathered, at): (usize, &Gathered, u64),
        offset: u64,
        from: u64,
    ) {
        let run = gathered.pattern.run;
        let mut done = 0;
        while done < run {
            let place = at.saturating_add(gathered.make.bytes(offset.saturating_add(done)));
            let left = run - done;
            // Up to where a page of the output ends, so that none is written in two goes.
            let most = (PIECE - place % PIECE).next_multiple_of(ELEMENTS);
            let len = left.min(most);
            let keeps_length = gathered.make.keeps_length();
            let fits = self.bytes.saturating_add(len) <= PIECE;
            if place != self.end || !fits || !keeps_length {
                self.flush(works);
            }
            let (offset, from) = (offset.saturating_add(done), from.saturating_add(done));
            self.pieces.push(Piece { tensor, offset, from, len });
            self.bytes = self.bytes.saturating_add(len);
            self.end = place.saturating_add(len);
            if !keeps_length {
                self.flush(works);
            }
            done = done.saturating_add(len);
        }
    }

    pub(super) fn flush(&mut self, works: &mut Vec<Work>) {
        if !self.pieces.is_empty() {
            works.push(Work::Copy(std::mem::take(&mut self.pieces)));
        }
        self.bytes = 0;
        self.end = u64::MAX;
    }
}

/// Bytes that have whole elements of any kind.
const ELEMENTS: u64 = 16;

impl Job<'_> {
    pub(super) fn copy(
        &self,
        pieces: &[Piece],
        scratch: &mut Scratch,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        let Scratch { gathered: bytes, made, read } = scratch;
        let total = pieces.iter().fold(0, |sum: u64, piece| sum.saturating_add(piece.len));
        let bytes = resized(bytes, total)?;
        self.read_pieces(pieces, bytes, read)?;
        let mut rest = &mut *bytes;
        for piece in pieces {
            let (gathered, at) = self.tensor(piece.tensor)?;
            let (own, others) = rest.split_at_mut_checked(size(piece.len)).ok_or_else(lost)?;
            rest = others;
            let is_checked = self.blobs.get(gathered.blob).is_some_and(|it| it.crc.is_some());
            if let (true, Some(sums)) = (is_checked, self.sums) {
                sums.add(gathered.blob, piece.from, own);
            }
            let out = gathered.make.apply(own, piece.offset, made);
            if pieces.len() == 1 {
                return sink(at.saturating_add(gathered.make.bytes(piece.offset)), out);
            }
        }
        let Some(first) = pieces.first() else { return Ok(()) };
        let (_, at) = self.tensor(first.tensor)?;
        sink(at.saturating_add(first.offset), bytes)
    }

    /// Reads pieces, which are next to each other in `bytes`; those that are near each other in a file at once.
    fn read_pieces(
        &self,
        pieces: &[Piece],
        bytes: &mut [u8],
        read: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut wanted = Vec::with_capacity(pieces.len());
        let mut start = 0;
        for piece in pieces {
            let (gathered, _) = self.tensor(piece.tensor)?;
            let end = start + size(piece.len);
            match self.file_place(gathered.blob, piece.from) {
                Some((source, at)) => wanted.push((source, at, start..end)),
                None => {
                    let into = bytes.get_mut(start..end).ok_or_else(lost)?;
                    self.read(gathered.blob, piece.from, into)?;
                }
            }
            start = end;
        }
        wanted.sort_unstable_by_key(|(source, at, _)| (*source, *at));
        let mut rest = wanted.as_slice();
        while let Some((source, at, into)) = rest.first() {
            let file = self.sources.get(*source).ok_or_else(lost)?;
            let mut end = at.saturating_add(into.len() as u64);
            let mut count = 1;
            for (other, next, into) in rest.iter().skip(1) {
                let is_near = next.saturating_sub(end) <= GAP && next.saturating_sub(*at) < PIECE;
                if other != source || !is_near {
                    break;
                }
                end = end.max(next.saturating_add(into.len() as u64));
                count += 1;
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            if let [(_, at, into)] = group {
                let into = bytes.get_mut(into.clone()).ok_or_else(lost)?;
                file.read_exact_at(into, *at)?;
                continue;
            }
            let near = resized(read, end.saturating_sub(*at))?;
            file.read_exact_at(near, *at)?;
            for (_, from, into) in group {
                let from = size(from.saturating_sub(*at));
                let into = bytes.get_mut(into.clone()).ok_or_else(lost)?;
                let own = near.get(from..from + into.len()).ok_or_else(lost)?;
                into.copy_from_slice(own);
            }
        }
        Ok(())
    }
}
