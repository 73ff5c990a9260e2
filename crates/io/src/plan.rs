//! A read plan: which bytes of which files are read by which request, and what becomes of them.
//!
//! Parts go in, in any order. They are cut into *pieces*, sorted by file and offset, and gathered into
//! *requests*: one contiguous span of one file each, near pieces together, none longer than a limit. A
//! plan says nothing of memory: it is made from numbers alone, and reads nothing.
//!
//! # Untrusted input
//!
//! The numbers of a part may come from a file. A plan costs about 100 bytes for each piece, and a load about
//! twice as many again; a rule of a few numbers can stand for any number of pieces, so there are
//! [`MOST_PIECES`] at most.

use std::fmt;
use std::ops::Range;

use crate::Runs;

/// Pieces of one plan, at most: enough for 8 million rows that lie far apart, or for 32 TiB in requests of
/// 4 MiB.
pub const MOST_PIECES: usize = 1 << 23;

/// Something to be read into one place.
#[derive(Clone, Debug)]
pub struct Part {
    /// The number of the file.
    pub file: usize,
    /// The bytes.
    pub runs: Runs,
    /// What becomes of them on the way.
    pub unit: Unit,
}

/// How many bytes arrive for how many that are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unit {
    /// Bytes read, the smallest number that can be converted by itself.
    pub from: u32,
    /// Bytes that they become.
    pub to: u32,
}

impl Unit {
    /// Bytes arrive as they are.
    pub const SAME: Self = Self { from: 1, to: 1 };

    /// What so many bytes become; `None` if they are no whole number of units, or far too many.
    #[must_use]
    pub fn apply(self, bytes: u64) -> Option<u64> {
        let from = u64::from(self.from);
        let units = bytes.checked_div(from).filter(|_| bytes.is_multiple_of(from))?;
        units.checked_mul(self.to.into())
    }
}

/// How a plan is cut. A limit of less than a page counts as a page.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Longest span of one request, in bytes.
    pub request_bytes: u64,
    /// Longest span of a request that is taken apart or converted on the way, in bytes: what fits a
    /// core's cache is best. One unit that is longer is a request of its own.
    pub scratch_bytes: u64,
    /// Gaps up to this many bytes are read over rather than cost a request of their own. What is less
    /// than a page counts as a page: the system reads whole ones anyway.
    pub gap_bytes: u64,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// A part's runs are no whole number of its units, its unit is of or becomes no bytes, or all of them
    /// become far too many.
    Unit {
        /// The number of the part.
        part: usize,
    },
    /// The parts, up to this one, are of more than [`MOST_PIECES`] pieces. They may be sound: read fewer at
    /// once.
    TooManyPieces {
        /// The number of the part.
        part: usize,
    },
}

/// The requests that read some parts.
#[derive(Debug)]
pub struct Plan {
    parts: Vec<Part>,
    pieces: Vec<Piece>,
    requests: Vec<Request>,
}

/// One span of one file.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) file: usize,
    pub(crate) span: Range<u64>,
    pub(crate) pieces: Range<usize>,
    /// Every byte goes to one place or to none, unconverted: no scratch is needed.
    pub(crate) straight: bool,
}

/// Some runs of one part, or some bytes of one run.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) part: usize,
    /// The span of the file from the first byte to the last.
    pub(crate) span: Range<u64>,
    /// Bytes of the part, in the span.
    pub(crate) bytes: u64,
    /// The number of the first run, where runs are gathered; `None` for contiguous bytes.
    pub(crate) gathered: Option<u64>,
}

/// Gaps below a page are never worth a request.
const PAGE: u64 = 4096;

impl Plan {
    /// Plans the reading of `parts`, which may be empty and may overlap.
    ///
    /// # Errors
    ///
    /// [`PlanError::Unit`] and [`PlanError::TooManyPieces`].
    pub fn new(parts: Vec<Part>, cut: &Cut) -> Result<Self, PlanError> {
        let gap = cut.gap_bytes.max(PAGE);
        let mut pieces = Vec::with_capacity(parts.len().min(MOST_PIECES));
        for (number, part) in parts.iter().enumerate() {
            let sizes = [part.runs.run(), part.runs.bytes()];
            if part.unit.to == 0 || sizes.iter().any(|bytes| part.unit.apply(*bytes).is_none()) {
                return Err(PlanError::Unit { part: number });
            }
            cut_part(number, part, cut, gap, &mut pieces)
                .ok_or(PlanError::TooManyPieces { part: number })?;
        }
        let place = |piece: &Piece| {
            let file = parts.get(piece.part).map_or(0, |part| part.file);
            (file, piece.span.start, piece.part)
        };
        // The pieces of one part are in order already, and must stay so.
        if !pieces.is_sorted_by_key(place) {
            pieces.sort_by_key(place);
        }
        let requests = gather(&parts, &pieces, cut, gap);
        Ok(Self { parts, pieces, requests })
    }

    /// What is read.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many requests there are.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Bytes that the requests read, gaps included.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        let lengths = self.requests.iter().map(|request| request.span.end - request.span.start);
        lengths.fold(0, u64::saturating_add)
    }

    /// Bytes that were asked for.
    #[must_use]
    pub fn bytes_wanted(&self) -> u64 {
        self.parts.iter().map(|part| part.runs.bytes()).fold(0, u64::saturating_add)
    }

    /// The file and the span of each request, in the order they are begun.
    pub fn spans(&self) -> impl Iterator<Item = (usize, Range<u64>)> {
        self.requests.iter().map(|request| (request.file, request.span.clone()))
    }

    pub(crate) fn planned(&self) -> &[Request] {
        &self.requests
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

/// Cuts one part into pieces, in the order of the file. `None` if there are more than may be.
fn cut_part(
    number: usize,
    part: &Part,
    cut: &Cut,
    gap: u64,
    pieces: &mut Vec<Piece>,
) -> Option<()> {
    let runs = &part.runs;
    if runs.bytes() == 0 {
        return Some(());
    }
    let unit = u64::from(part.unit.from);
    let scratch = cut.scratch_bytes.max(PAGE);
    let limit = if part.unit == Unit::SAME { cut.request_bytes.max(PAGE) } else { scratch };
    let step = (limit / unit).max(1) * unit;
    // Runs are taken out of the scratch where it has room for two.
    let two = runs.innermost().map_or(u64::MAX, |level| level.stride.saturating_add(runs.run()));
    let together = if two > scratch { 1 } else { runs.together(gap.min(scratch)) };
    let blocks = runs.count() / together;
    // Pieces of each block, at least: so that a rule of far too many is refused without making them.
    let least = if together == 1 {
        runs.run().div_ceil(step)
    } else {
        let extent = runs.start(together - 1) + runs.run() - runs.start(0);
        extent.div_ceil(scratch.saturating_mul(2))
    };
    let room = u64::try_from(MOST_PIECES - pieces.len()).unwrap_or(u64::MAX);
    if blocks.saturating_mul(least) > room {
        return None;
    }
    for block in 0..blocks {
        let first = block * together;
        if together == 1 {
            let (mut from, end) = (runs.start(first), runs.start(first) + runs.run());
            while from < end {
                let span = from..from.saturating_add(step).min(end);
                from = span.end;
                let bytes = span.end - span.start;
                pieces.push(Piece { part: number, span, bytes, gathered: None });
            }
            continue;
        }
        let (mut next, end, mut count) = (first, first + together, 1);
        while next < end {
            if pieces.len() == MOST_PIECES {
                return None;
            }
            count = runs_within(runs, next..end, scratch, count);
            let span = runs.start(next)..runs.start(next + count - 1) + runs.run();
            let bytes = count * runs.run();
            pieces.push(Piece { part: number, span, bytes, gathered: Some(next) });
            next += count;
        }
    }
    Some(())
}

/// How many of these runs, from the first on, lie within `limit` bytes; at least one. Likely as many as
/// `likely`, which is not zero.
fn runs_within(runs: &Runs, numbers: Range<u64>, limit: u64, likely: u64) -> u64 {
    let (first, most) = (numbers.start, numbers.end - numbers.start);
    let start = runs.start(first);
    let fits = |count: u64| runs.start(first + count - 1) + runs.run() - start <= limit;
    if likely < most && fits(likely) && !fits(likely + 1) {
        return likely;
    }
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Gathers sorted pieces into requests.
fn gather(parts: &[Part], pieces: &[Piece], cut: &Cut, gap: u64) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let Some(part) = parts.get(piece.part) else { continue };
        let straight = piece.gathered.is_none() && part.unit == Unit::SAME;
        if let Some(last) = requests.last_mut().filter(|last| last.file == part.file) {
            let both = straight && last.straight && piece.span.start >= last.span.end;
            let limit = if both { cut.request_bytes } else { cut.scratch_bytes };
            let end = last.span.end.max(piece.span.end);
            let near = piece.span.start <= last.span.end.saturating_add(gap);
            // One request is not made to need scratch by its neighbour, unless they overlap.
            let alike = straight == last.straight || piece.span.start < last.span.end;
            if near && alike && end - last.span.start <= limit.max(PAGE) {
                last.span.end = end;
                last.pieces.end = number + 1;
                last.straight = both;
                continue;
            }
        }
        requests.push(Request {
            file: part.file,
            span: piece.span.clone(),
            pieces: number..number + 1,
            straight,
        });
    }
    requests
}

impl PlanError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unit { .. } => "plan-unit",
            Self::TooManyPieces { .. } => "plan-too-many-pieces",
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit { part } => write!(f, "part {part} is no whole number of its units"),
            Self::TooManyPieces { part } => write!(
                f,
                "up to part {part} there are more than {MOST_PIECES} pieces to read, the limit of one load"
            ),
        }
    }
}

impl std::error::Error for PlanError {}
