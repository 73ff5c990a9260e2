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

    /// Takes bytes that were read at an offset. What was held from that offset on is replaced if it was shorter.
    pub fn insert(&mut self, offset: u64, bytes: Vec<u8>) {
        let held = self.held.entry(offset).or_default();
        if held.len() < bytes.len() {
            *held = bytes;
        }
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
