//! The spans of a file that a function without I/O asks for, read until it has all it needs.

use std::ops::Range;

use weigh_format::Finding;
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

/// Spans of a file or of a part of one, and where more of them come from.
#[derive(Debug)]
pub(crate) struct Reading<'s> {
    /// The file, and the byte of it where the part begins; none if all is held.
    source: Option<(&'s FileSource, u64)>,
    pub(crate) spans: Spans,
    /// Bytes that may still be read.
    left: u64,
}

impl<'s> Reading<'s> {
    /// Nothing yet of this file.
    pub(crate) fn new(source: &'s FileSource, limits: &Limits) -> Self {
        Self::part(source, 0..source.len(), limits)
    }

    fn part(source: &'s FileSource, span: Range<u64>, limits: &Limits) -> Self {
        let left = limits.pickle_bytes.saturating_mul(2).saturating_add(LEAST);
        let spans = Spans::new(span.end.saturating_sub(span.start));
        Self { source: Some((source, span.start)), spans, left }
    }

    /// What is in memory.
    pub(crate) fn held(bytes: Vec<u8>) -> Self {
        Self { source: None, spans: Spans::whole(bytes), left: 0 }
    }

    /// Nothing yet of a part of it.
    ///
    /// # Errors
    ///
    /// If there is no such part.
    pub(crate) fn window(&self, span: Range<u64>, limits: &Limits) -> Result<Self, Fault> {
        match self.source {
            Some((source, base)) if span.start <= span.end && span.end <= self.spans.len() => {
                let [start, end] = [span.start, span.end].map(|at| base.saturating_add(at));
                Ok(Self::part(source, start..end, limits))
            }
            _ => match self.spans.get(span) {
                Ok(bytes) => Ok(Self::held(bytes.to_vec())),
                Err(Stop::Fault(error)) => Err(error.into()),
                Err(Stop::Missing(_)) => Ok(Self::held(Vec::new())),
            },
        }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        self.spans.len()
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

    /// These bytes, which are kept until they are [forgotten](Self::forget).
    pub(crate) fn bytes(&mut self, span: Range<u64>) -> Result<&[u8], Fault> {
        self.ask(|spans| spans.get(span.clone()).map(drop))?;
        // They are there now.
        Ok(self.spans.get(span).unwrap_or_default())
    }

    fn fetch(&mut self, missing: Vec<Range<u64>>) -> Result<(), Fault> {
        for span in missing {
            let wanted = span.end.saturating_sub(span.start);
            self.left = self.left.checked_sub(wanted).ok_or_else(|| {
                let message = "the parts that are to be read are larger than the limit";
                PickleError::new("limit-pickle-bytes", message).at(span.start)
            })?;
            let start = span.start;
            let Some((source, base)) = self.source else {
                return Err(PickleError::new("past-end", "bytes are missing").at(start).into());
            };
            let read = base.saturating_add(start)..base.saturating_add(span.end);
            self.spans.insert(start, source.read_span(read)?);
        }
        Ok(())
    }

    /// Lets go of a span that was asked for as a whole.
    pub(crate) fn forget(&mut self, span: &Range<u64>) {
        if self.source.is_some() {
            self.spans.forget(span.start);
            self.left = self.left.saturating_add(span.end.saturating_sub(span.start));
        }
    }
}

/// A finding of a pickle, in a member, or from the byte of the file that the pickle begins at.
pub(crate) fn placed(mut finding: Finding, member: Option<&str>, start: u64) -> Finding {
    if let Some(span) = &mut finding.place.span {
        span.start = span.start.saturating_add(start);
        span.end = span.end.saturating_add(start);
    }
    if let Some(member) = member {
        finding.place.member = Some(joined(member, finding.place.member.as_deref()));
    }
    finding
}

/// The same of an error.
pub(crate) fn placed_error(
    mut error: PickleError,
    member: Option<&str>,
    start: u64,
) -> PickleError {
    error.offset = error.offset.map(|offset| offset.saturating_add(start));
    if let Some(member) = member {
        error.member = Some(joined(member, error.member.as_deref()));
    }
    error
}

/// The name of a member of a member.
pub(crate) fn joined(outer: &str, inner: Option<&str>) -> String {
    match inner {
        // What says its member itself.
        Some(inner) if inner == outer => outer.into(),
        Some(inner) if outer.is_empty() => inner.into(),
        Some(inner) => format!("{outer}/{inner}"),
        None => outer.into(),
    }
}
