//! Reads with calls that wait: `pread(2)` and its like, on every system.

use std::io::IoSliceMut;
use std::ops::Range;

use super::scratch::Scratch;
use super::{Bound, Job, Queue, ReadError, Took, length};
use crate::source::{fill, fill_while, to_u64};
use crate::{Error, ErrorKind, Source};

/// Carries out requests until there are no more.
pub(super) fn work(job: &Job<'_>, queue: &Queue<'_>, direct: bool) -> Result<(), ReadError> {
    let mut scratches = Scratches::default();
    while let Some(request) = job.next(queue) {
        let took = one(job, request, direct, &mut scratches)?;
        job.finished(&took);
    }
    Ok(())
}

/// What bytes pass through on the way from a file, and from there to where they belong.
#[derive(Default)]
pub(super) struct Scratches {
    pub(super) read: Scratch,
    pub(super) dense: Scratch,
}

/// Carries out one request.
pub(super) fn one(
    job: &Job<'_>,
    mut request: Bound<'_>,
    direct: bool,
    scratches: &mut Scratches,
) -> Result<Took, ReadError> {
    let source = job.source(request.file)?;
    let hook = job.reading().hook;
    if direct && source.direct().is_some() {
        let span = aligned(&request.span);
        let buffer = scratches.read.get(length(&span))?;
        let took = read_direct(source, buffer, &span, &request.span)?;
        let skip = super::usize_of(request.span.start - span.start);
        let bytes = buffer.get(skip..).unwrap_or_default();
        request.hand_out(bytes, hook, &mut scratches.dense)?;
        return Ok(took);
    }
    let offset = request.span.start;
    if request.straight {
        let gaps = request.gaps();
        let unwanted = if gaps > 0 { scratches.read.get(gaps)? } else { &mut [] };
        if !fill_while(source, &mut request.places(unwanted), offset, || job.goes_on())? {
            return Err(ReadError::Cancelled);
        }
    } else {
        let buffer = scratches.read.get(request.bytes())?;
        if !fill_while(source, &mut [IoSliceMut::new(buffer)], offset, || job.goes_on())? {
            return Err(ReadError::Cancelled);
        }
        request.hand_out(buffer, hook, &mut scratches.dense)?;
    }
    let span = to_u64(request.bytes());
    Ok(Took { span, read: span, direct: false, ring: false })
}

/// What direct reads begin and end on, in the file and in memory. Every disk's block divides it.
pub(super) const BLOCK: u64 = 4096;

/// The whole blocks around a span.
pub(super) fn aligned(span: &Range<u64>) -> Range<u64> {
    let end = span.end.checked_next_multiple_of(BLOCK).unwrap_or(span.end);
    span.start / BLOCK * BLOCK..end
}

/// Reads whole blocks past the page cache, of which `wanted` is needed.
fn read_direct(
    source: &dyn Source,
    buffer: &mut [u8],
    span: &Range<u64>,
    wanted: &Range<u64>,
) -> Result<Took, Error> {
    let mut filled = 0;
    if let Some(file) = source.direct() {
        let mut places = [IoSliceMut::new(buffer)];
        match crate::file::read_at(file, &mut places, span.start) {
            Ok(count) => filled = count,
            // The disk may want larger blocks, or the file system none of this: the other way always works.
            Err(error) if may_do_otherwise(&error) => {}
            Err(error) => {
                let (offset, wanted, got) = (span.start, to_u64(buffer.len()), 0);
                let kind = ErrorKind::Failed { offset, wanted, got, error };
                return Err(Error::new(source.path(), kind));
            }
        }
        source.count(to_u64(filled));
    }
    let read = finish(source, buffer, span.start, filled, wanted.end)?;
    Ok(Took { span: to_u64(length(wanted)), read, direct: filled > 0, ring: false })
}

/// Whether plain calls through the page cache may do what failed with this.
pub(super) fn may_do_otherwise(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::InvalidInput
            | ErrorKind::Unsupported
            | ErrorKind::Interrupted
            | ErrorKind::WouldBlock
    )
}

/// Reads what is missing up to `end`, after `filled` bytes from `start`; how many bytes there are then.
pub(super) fn finish(
    source: &dyn Source,
    buffer: &mut [u8],
    start: u64,
    filled: usize,
    end: u64,
) -> Result<u64, Error> {
    let needed = super::usize_of(end - start);
    if filled < needed {
        let rest = buffer.get_mut(filled..needed).unwrap_or_default();
        fill(source, &mut [IoSliceMut::new(rest)], start + to_u64(filled))?;
    }
    Ok(to_u64(filled.max(needed)))
}
