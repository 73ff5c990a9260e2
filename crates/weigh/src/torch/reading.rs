//! The spans of a file that a function without I/O asks for, read until it has all it needs.

use std::ops::Range;

use weigh_io::FileSource;
use weigh_pickle::{Error as PickleError, Limits, Spans, Stop};

use crate::Error;

/// How often one function may ask. Each time it begins anew, so that what asks for one span after another takes the
/// square of this.
const ROUNDS: u32 = 10_000;

/// Bytes that are read to find out what a file is, whatever the limit of a pickle: its directory has as many.
const LEAST: u64 = 64 << 20;

/// Why something was not read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The system did not give the bytes.
    Io(weigh_io::Error),
    /// The bytes are not what they should be.
    Content(PickleError),
}

impl Fault {
    /// As an error about the file.
    pub(crate) fn of(self, source: &FileSource) -> Error {
        match self {
            Self::Io(error) => Error::Io(error),
            Self::Content(error) => Error::torch(source.path(), error),
        }
    }
}

impl From<weigh_io::Error> for Fault {
    fn from(error: weigh_io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<PickleError> for Fault {
    fn from(error: PickleError) -> Self {
        Self::Content(error)
    }
}

/// Spans of a file, and where more of them come from.
#[derive(Debug)]
pub(crate) struct Reading<'s> {
    source: &'s FileSource,
    pub(crate) spans: Spans,
    /// Bytes that may still be read.
    left: u64,
}

impl<'s> Reading<'s> {
    /// Nothing yet of this file.
    pub(crate) fn new(source: &'s FileSource, limits: &Limits) -> Self {
        let left = limits.pickle_bytes.saturating_mul(2).saturating_add(LEAST);
        Self { source, spans: Spans::new(source.len()), left }
    }

    /// What a function gives, once all that it asks for was read.
    pub(crate) fn ask<T>(
        &mut self,
        mut function: impl FnMut(&Spans) -> Result<T, Stop>,
    ) -> Result<T, Fault> {
        for _ in 0..ROUNDS {
            match function(&self.spans) {
                Ok(answer) => return Ok(answer),
                Err(Stop::Fault(error)) => return Err(error.into()),
                Err(Stop::Missing(missing)) => self.fetch(missing)?,
            }
        }
        let message = format!("the file asks for spans more than {ROUNDS} times");
        Err(PickleError::new("limit-rounds", message).into())
    }

    fn fetch(&mut self, missing: Vec<Range<u64>>) -> Result<(), Fault> {
        for span in missing {
            let wanted = span.end.saturating_sub(span.start);
            self.left = self.left.checked_sub(wanted).ok_or_else(|| {
                let message = "the parts of the file that are to be read are larger than the limit";
                PickleError::new("limit-pickle-bytes", message).at(span.start)
            })?;
            let start = span.start;
            self.spans.insert(start, self.source.read_span(span)?);
        }
        Ok(())
    }

    /// Lets go of a span that was asked for as a whole.
    pub(crate) fn forget(&mut self, span: &Range<u64>) {
        self.spans.forget(span.start);
        self.left = self.left.saturating_add(span.end.saturating_sub(span.start));
    }
}
