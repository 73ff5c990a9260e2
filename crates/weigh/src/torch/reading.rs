//! The spans of a file that a function without I/O asks for, read until it has all it needs.

use std::ops::Range;

use weigh_format::Finding;
use weigh_io::FileSource;
use weigh_pickle::container::layout::{self, Layout};
use weigh_pickle::container::{Kind, detect, tar};
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
    /// Whoever asked for it wants it no more.
    Cancelled,
}

impl Fault {
    /// As an error about the file.
    pub(crate) fn of(self, source: &FileSource) -> Error {
        match self {
            Self::Io(error) => Error::Io(error),
            Self::Content(error) => Error::torch(source.path(), error),
            Self::Cancelled => Error::Cancelled,
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
    origin: Origin<'s>,
    pub(crate) spans: Spans,
    /// Bytes that may still be read.
    left: u64,
}

/// Where spans come from.
#[derive(Clone, Copy, Debug)]
enum Origin<'s> {
    /// A file, from this byte on.
    File(&'s FileSource, u64),
    /// What another has in memory, from this byte on.
    Memory(&'s Spans, u64),
    /// Nowhere: what is there is all that will be.
    Nowhere,
}

impl<'s> Reading<'s> {
    /// Nothing yet of this file.
    pub(crate) fn new(source: &'s FileSource, limits: &Limits) -> Self {
        Self::part(Origin::File(source, 0), source.len(), limits)
    }

    fn part(origin: Origin<'s>, len: u64, limits: &Limits) -> Self {
        let left = limits.pickle_bytes.saturating_mul(2).saturating_add(LEAST);
        Self { origin, spans: Spans::new(len), left }
    }

    /// What is in memory; of spans that are not there it is an error that they are.
    pub(crate) fn held(spans: Spans) -> Self {
        Self { origin: Origin::Nowhere, spans, left: 0 }
    }

    /// Nothing yet of a part of it.
    ///
    /// # Errors
    ///
    /// If there is no such part.
    pub(crate) fn window<'w>(
        &'w self,
        span: Range<u64>,
        limits: &Limits,
    ) -> Result<Reading<'w>, Fault> {
        if span.start > span.end || span.end > self.spans.len() {
            let message = format!("a part ends at {}, after the file", span.end);
            return Err(PickleError::new("past-end", message).at(span.start).into());
        }
        let origin = match self.origin {
            Origin::File(source, base) => Origin::File(source, base.saturating_add(span.start)),
            Origin::Memory(spans, base) => Origin::Memory(spans, base.saturating_add(span.start)),
            Origin::Nowhere => Origin::Memory(&self.spans, span.start),
        };
        Ok(Reading::part(origin, span.end.saturating_sub(span.start), limits))
    }

    /// The file as what it is.
    pub(crate) fn open(&mut self, limits: &Limits) -> Result<Layout, Fault> {
        if self.ask(detect)?.kind == Kind::Tar {
            // Its headers are asked for one after the other, and each time from where it stopped.
            let mut walk = tar::Walk::default();
            self.go_on(|spans| walk.go(spans, limits))?;
        }
        self.ask(|spans| layout::open(spans, limits))
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

    /// What a function gives that goes on where it stopped: so it may ask as often as it likes.
    pub(crate) fn go_on<T>(
        &mut self,
        mut function: impl FnMut(&Spans) -> Result<T, Stop>,
    ) -> Result<T, Fault> {
        loop {
            match function(&self.spans) {
                Ok(answer) => return Ok(answer),
                Err(Stop::Fault(error)) => return Err(error.into()),
                Err(Stop::Missing(missing)) => self.fetch(missing)?,
            }
        }
    }

    /// These bytes, which are kept until they are [forgotten](Self::forget).
    pub(crate) fn bytes(&mut self, span: Range<u64>) -> Result<&[u8], Fault> {
        if let Origin::Memory(spans, base) = self.origin
            && span.end <= self.spans.len()
        {
            let [start, end] = [span.start, span.end].map(|at| base.saturating_add(at));
            return spans.get(start..end).map_err(|stop| not_kept(stop, span.start));
        }
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
            let within = |base: u64| base.saturating_add(start)..base.saturating_add(span.end);
            let bytes = match self.origin {
                Origin::File(source, base) => source.read_span(within(base))?,
                Origin::Memory(spans, base) => {
                    let bytes = spans.get(within(base));
                    bytes.map_err(|stop| not_kept(stop, start))?.to_vec()
                }
                Origin::Nowhere => return Err(not_kept(Stop::Missing(Vec::new()), start)),
            };
            self.spans.insert(start, bytes);
        }
        Ok(())
    }

    /// Lets go of a span that was asked for as a whole.
    pub(crate) fn forget(&mut self, span: &Range<u64>) {
        if !matches!(self.origin, Origin::Nowhere) {
            self.spans.forget(span.start);
            self.left = self.left.saturating_add(span.end.saturating_sub(span.start));
        }
    }
}

/// Of what was unpacked, only the first and the last bytes may have been kept.
fn not_kept(stop: Stop, at: u64) -> Fault {
    match stop {
        Stop::Fault(error) => error.into(),
        Stop::Missing(_) => {
            let message = "what is packed was not held in memory as a whole";
            PickleError::new("limit-unpacked", message).at(at).into()
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
