//! The bytes of a file that have been read so far, and how more are asked for.
//!
//! What reads a file is a function of [`Spans`], called again with more of them until it has all it needs: it stops
//! with [`Stop::Missing`] where it lacks some. So the same code serves a program that waits for a disk and a page in a
//! browser that must not wait.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use crate::Error;

/// Why a function of [`Spans`] did not end with a result.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing else to do but to read, or to stop")]
pub enum Stop {
    /// These bytes of the file are needed first: read them, [`Spans::insert`] them, and call again.
    Missing(Vec<Range<u64>>),
    /// The file cannot be read, whatever else of it is read.
    Fault(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fault(error)
    }
}

/// Bytes of a file, by where they are in it.
#[derive(Debug, Default)]
pub struct Spans {
    len: u64,
    held: BTreeMap<u64, Vec<u8>>,
}

impl Spans {
    /// Nothing yet of a file of `len` bytes.
    #[must_use]
    pub fn new(len: u64) -> Self {
        Self { len, held: BTreeMap::new() }
    }

    /// A whole file.
    #[must_use]
    pub fn whole(bytes: Vec<u8>) -> Self {
        let mut all = Self::new(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        all.insert(0, bytes);
        all
    }

    /// Bytes of the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes bytes that were read at an offset. Those that another span has already are not kept twice.
    ///
    /// No span lies inside another: so the last that begins at or before a byte is the one that reaches furthest.
    pub fn insert(&mut self, offset: u64, bytes: Vec<u8>) {
        let end = end(offset, &bytes);
        let before = self.held.range(..=offset).next_back();
        if before.is_some_and(|(start, held)| self::end(*start, held) >= end) {
            return;
        }
        while let Some((start, held)) = self.held.range(offset..).next()
            && self::end(*start, held) <= end
        {
            let start = *start;
            self.held.remove(&start);
        }
        self.held.insert(offset, bytes);
    }

    /// Lets go of bytes that are needed no more.
    pub fn forget(&mut self, offset: u64) {
        self.held.remove(&offset);
    }

    /// These bytes of the file.
    ///
    /// # Errors
    ///
    /// [`Stop::Missing`] if they were not read yet, and [`Stop::Fault`] if the file has no such bytes.
    pub fn get(&self, span: Range<u64>) -> Result<&[u8], Stop> {
        if span.start > span.end || span.end > self.len {
            return Err(Error::past_end(span, self.len).into());
        }
        if span.is_empty() {
            return Ok(&[]);
        }
        let found = self.held.range(..=span.start).next_back().and_then(|(start, bytes)| {
            let first = usize::try_from(span.start.checked_sub(*start)?).ok()?;
            let end = usize::try_from(span.end.checked_sub(*start)?).ok()?;
            bytes.get(first..end)
        });
        found.ok_or_else(|| Stop::Missing(alloc::vec![span]))
    }
}

fn end(start: u64, bytes: &[u8]) -> u64 {
    start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
}

/// Spans that are wanted together: asked for at once, those that are near each other as one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    missing: Vec<Range<u64>>,
}

impl Batch {
    /// Spans that are apart by less than this are read as one.
    const NEAR: u64 = 1 << 10;

    /// These bytes, or `None` after noting that they are wanted.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if the file has no such bytes.
    pub(crate) fn get<'a>(
        &mut self,
        spans: &'a Spans,
        span: Range<u64>,
    ) -> Result<Option<&'a [u8]>, Stop> {
        match spans.get(span) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Stop::Missing(missing)) => {
                self.missing.extend(missing);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Stops if any are missing.
    pub(crate) fn finish(self) -> Result<(), Stop> {
        let mut missing = self.missing;
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable_by_key(|span| span.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for span in missing {
            match merged.last_mut() {
                Some(last) if span.start <= last.end.saturating_add(Self::NEAR) => {
                    last.end = last.end.max(span.end);
                }
                _ => merged.push(span),
            }
        }
        Err(Stop::Missing(merged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn what_was_read_is_found_whatever_was_read_beside_it() {
        let file: Vec<u8> = (0..100).collect();
        let mut spans = Spans::new(100);
        for span in [10..20_usize, 40..50, 12..15, 5..60, 45..55, 50..70, 0..6] {
            let (start, end) = (span.start as u64, span.end as u64);
            spans.insert(start, file[span.clone()].to_vec());
            assert_eq!(spans.get(start..end).unwrap(), &file[span]);
        }
        assert_eq!(spans.get(12..58).unwrap(), &file[12..58]);
        let Err(Stop::Missing(missing)) = spans.get(58..71) else { panic!() };
        assert_eq!((missing[0].start, missing[0].end, missing.len()), (58, 71, 1));
        assert!(matches!(spans.get(99..101), Err(Stop::Fault(error)) if error.code == "past-end"));
        assert!(spans.get(3..3).unwrap().is_empty());
    }

    #[test]
    fn near_spans_are_asked_for_as_one() {
        let spans = Spans::new(1 << 20);
        let mut batch = Batch::default();
        for start in [5000, 0, 1034, 2068, 90] {
            assert!(batch.get(&spans, start..start + 10).unwrap().is_none());
        }
        let Err(Stop::Missing(wanted)) = batch.finish() else { panic!() };
        assert_eq!(wanted, vec![0..2078, 5000..5010]);
    }
}
