//! What the tensors of a checkpoint say: each is read once, piece by piece, by several threads.
//!
//! Memory does not grow with the checkpoint: a thread holds one piece's worth of reading, and what it found. What is
//! found in pieces is joined in their order, so it is the same however many threads there are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use weigh_format::Dtype;
use weigh_inventory::select::Selection;
use weigh_io::read_exact;
use weigh_values::LengthError;
use weigh_values::codes::Codes;
use weigh_values::odd::Odd;
use weigh_values::statistics::Statistics;

use crate::work::{self, Meter, lock};
use crate::{Checkpoint, Error, Tensor, Watch};

/// What was found in a tensor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Looked<L> {
    /// The name, unescaped.
    pub name: String,
    /// The element type.
    pub dtype: Dtype,
    /// The dimensions; empty for a scalar.
    pub shape: Vec<u64>,
    /// Its bytes in the file.
    pub bytes: u64,
    /// What was found.
    pub found: L,
}

/// The statistics of a tensor, and how often there is each value if that was asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TensorStatistics {
    /// Extremes, mean, deviation and counts.
    pub statistics: Statistics,
    /// For quantiles and histograms.
    pub codes: Option<Codes>,
}

impl Checkpoint {
    /// The statistics of every tensor of a selection, in natural order of the names.
    ///
    /// With `codes`, how often there is each value is counted as well, of wide dtypes each BF16: see
    /// [`weigh_values::codes`]. That takes about twice as long, and some 0.5 MB for each tensor of 16 bits or more.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read or has changed since it was opened; [`Error::Cancelled`].
    pub fn statistics(
        &self,
        selection: &Selection,
        codes: bool,
        watch: Watch<'_>,
    ) -> Result<Vec<Looked<TensorStatistics>>, Error> {
        let new = |dtype| TensorStatistics {
            statistics: Statistics::new(dtype),
            codes: codes.then(|| Codes::new(dtype)),
        };
        // A table for each piece: it has to be worth one.
        self.look(selection, if codes { 16 * PIECE } else { PIECE }, new, watch)
    }

    /// What is odd in every tensor of a selection, in natural order of the names, with the first so many `positions` of
    /// elements that are not finite.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::statistics`].
    pub fn odd(
        &self,
        selection: &Selection,
        positions: usize,
        watch: Watch<'_>,
    ) -> Result<Vec<Looked<Odd>>, Error> {
        self.look(selection, PIECE, |dtype| Odd::new(dtype).with_positions(positions), watch)
    }

    fn look<L: Look>(
        &self,
        selection: &Selection,
        piece_bytes: u64,
        new: impl Fn(Dtype) -> L + Sync,
        watch: Watch<'_>,
    ) -> Result<Vec<Looked<L>>, Error> {
        let tensors: Vec<Tensor<'_>> = self
            .plan_selected(selection)
            .parts()
            .iter()
            .filter_map(|planned| self.get(planned.name()))
            .collect();
        let pieces: Vec<Piece> = tensors
            .iter()
            .enumerate()
            .flat_map(|(tensor, Tensor { span, .. })| {
                let starts = (span.start..span.end).step_by(step(piece_bytes));
                starts.enumerate().map(move |(place, start)| {
                    let end = start.saturating_add(piece_bytes).min(span.end);
                    Piece { tensor, place, span: start..end }
                })
            })
            .collect();
        let meter =
            Meter::new(pieces.iter().map(|piece| piece.span.end - piece.span.start).sum(), watch);
        let joined: Vec<Mutex<Joined<L>>> =
            tensors.iter().map(|tensor| Mutex::new(Joined::new(new(tensor.dtype)))).collect();
        work::spread(&pieces, |piece, buffer: &mut Vec<u8>| {
            let Some((tensor, joined)) = tensors.get(piece.tensor).zip(joined.get(piece.tensor))
            else {
                return Ok(());
            };
            let mut found = new(tensor.dtype);
            let mut at = piece.span.start;
            while at < piece.span.end {
                let end = at.saturating_add(READ).min(piece.span.end);
                buffer.resize(usize::try_from(end - at).unwrap_or(usize::MAX), 0);
                read_exact(tensor.shard.source(), buffer, at)?;
                let are_whole = found.add(buffer);
                debug_assert!(are_whole.is_ok(), "a header that was checked has whole elements");
                meter.add(end - at)?;
                at = end;
            }
            lock(joined).put(piece.place, found);
            Ok(())
        })?;
        for shard in self.shards() {
            shard.source().verify()?;
        }
        let found = joined.into_iter().map(|joined| {
            joined.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).all
        });
        let looked = tensors.iter().zip(found).map(|(tensor, found)| Looked {
            name: tensor.name.into(),
            dtype: tensor.dtype,
            shape: tensor.shape.to_vec(),
            bytes: tensor.span.end - tensor.span.start,
            found,
        });
        Ok(looked.collect())
    }
}

/// Bytes of a piece: whole elements of every dtype, and whole groups of those of six bits.
const PIECE: u64 = 3 << 20;

/// Bytes that are read at a time: they stay in a processor's own cache until they were looked at.
const READ: u64 = 3 << 16;

fn step(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A part of a tensor's bytes.
struct Piece {
    /// The number of the tensor.
    tensor: usize,
    /// Which of its pieces this is.
    place: usize,
    span: Range<u64>,
}

/// What is found in elements that follow each other.
trait Look: Send {
    fn add(&mut self, bytes: &[u8]) -> Result<(), LengthError>;

    /// Adds what was found in elements that follow.
    fn join(&mut self, later: &Self);
}

impl Look for Odd {
    fn add(&mut self, bytes: &[u8]) -> Result<(), LengthError> {
        Self::add(self, bytes)
    }

    fn join(&mut self, later: &Self) {
        Self::join(self, later);
    }
}

impl Look for TensorStatistics {
    fn add(&mut self, bytes: &[u8]) -> Result<(), LengthError> {
        self.statistics.add(bytes)?;
        self.codes.as_mut().map_or(Ok(()), |codes| codes.add(bytes))
    }

    fn join(&mut self, later: &Self) {
        self.statistics.join(&later.statistics);
        if let (Some(codes), Some(more)) = (&mut self.codes, &later.codes) {
            codes.join(more);
        }
    }
}

/// What was found in the pieces of a tensor up to one of them, and what waits for those before it.
struct Joined<L> {
    all: L,
    next: usize,
    waiting: BTreeMap<usize, L>,
}

impl<L: Look> Joined<L> {
    fn new(nothing: L) -> Self {
        Self { all: nothing, next: 0, waiting: BTreeMap::new() }
    }

    fn put(&mut self, place: usize, found: L) {
        self.waiting.insert(place, found);
        while let Some(found) = self.waiting.remove(&self.next) {
            self.all.join(&found);
            self.next += 1;
        }
    }
}
