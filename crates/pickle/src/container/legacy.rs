//! Torch's files up to 1.5: pickles one after the other, then the storages' bytes.
//!
//! A magic number, a version, facts of the system that wrote it, the object, the keys of its storages; then for each
//! key, in that order, the number of its elements as 64 bits and the elements, the lowest byte first on every system.
//! Where a storage is follows from the sizes of those before it, which only the object has: so [`read`] finds the
//! pickles, and [`Stream::storages`] the storages once somebody knows the object.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use weigh_format::{Finding, Findings};

use super::fields::Fields;
use super::rules;
use crate::decode::Decoder;
use crate::opcode::Opcode;
use crate::spans::Batch;
use crate::{Error, Limits, Spans, Stop, run};

/// A file's pickles.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stream {
    /// The bytes of every pickle that was found: the magic number, the version, the system, the object, the keys.
    pub pickles: Vec<Range<u64>>,
    /// The bytes of the object's pickle; up to the end of what was read, if it is broken.
    pub object: Range<u64>,
    /// The keys of the storages, in the order of the file.
    pub keys: Vec<String>,
    /// The byte after the keys.
    pub end: u64,
    /// Why the keys could not be read. The object is there to be scanned all the same.
    pub error: Option<Error>,
}

/// A file's storages.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Storages {
    /// The bytes in the file of each, by its key.
    pub by_key: BTreeMap<String, Range<u64>>,
    /// What is odd about them.
    pub findings: Findings,
}

/// Position of the object among the pickles.
const OBJECT: usize = 3;

/// Finds the pickles of a file, reading more of it until each has its end.
///
/// # Errors
///
/// [`Stop::Missing`]; [`Stop::Fault`] if there is no object.
pub fn read(spans: &Spans, limits: &Limits) -> Result<Stream, Stop> {
    let mut stream =
        Stream { pickles: Vec::new(), object: 0..0, keys: Vec::new(), end: 0, error: None };
    for position in 0..=OBJECT.saturating_add(1) {
        let pickle = pickle(spans, stream.end, spans.len(), limits)?;
        stream.end = pickle.span.end;
        if position == OBJECT {
            stream.object = pickle.span.clone();
        }
        stream.pickles.push(pickle.span);
        if pickle.error.is_some() {
            if position < OBJECT {
                // The rest may be a pickle still, for whoever looks into the file.
                stream.object = stream.end..stream.end;
            }
            stream.error = pickle.error;
            return Ok(stream);
        }
    }
    let keys = stream.pickles.last().cloned().unwrap_or_default();
    match self::keys(spans.get(keys.clone())?, limits) {
        Ok(keys) => stream.keys = keys,
        Err(error) => stream.error = Some(error.at(keys.start)),
    }
    Ok(stream)
}

fn keys(bytes: &[u8], limits: &Limits) -> Result<Vec<String>, Error> {
    let fault = || Error::new("legacy-keys", "the keys of the storages are no list of texts");
    let program = run(bytes, limits);
    let root = program.root.filter(|_| program.error.is_none()).ok_or_else(fault)?;
    let items = program.graph.sequence(root).ok_or_else(fault)?;
    items
        .iter()
        .map(|item| program.graph.text(*item).map(ToString::to_string).ok_or_else(fault))
        .collect()
}

impl Stream {
    /// Finds the storages, and compares the number of elements before each with what the object says: `bytes_of` gives
    /// that number and the bytes of an element, by the key. One round for all of them.
    ///
    /// # Errors
    ///
    /// [`Stop::Missing`]; `legacy-keys` for a key that comes twice or that the object does not have, `legacy-size` if
    /// the two numbers differ, and `past-end` if the file is cut off.
    pub fn storages(
        &self,
        spans: &Spans,
        mut bytes_of: impl FnMut(&str) -> Option<(u64, u32)>,
    ) -> Result<Storages, Stop> {
        if let Some(error) = &self.error {
            return Err(error.clone().into());
        }
        let mut storages = Storages::default();
        let mut wanted = Batch::default();
        let mut at = self.end;
        for key in &self.keys {
            let (elements, element) = bytes_of(key).ok_or_else(|| {
                let message =
                    format!("the object has no storage {key}, so that its size is not known");
                Error::new("legacy-keys", message).at(at)
            })?;
            let past_end = || Error::past_end(at..u64::MAX, spans.len());
            let start =
                at.checked_add(8).filter(|start| *start <= spans.len()).ok_or_else(past_end)?;
            if let Some(bytes) = wanted.get(spans, at..start)? {
                let stored = Fields::new(bytes).u64();
                if stored != Some(elements) {
                    let message = format!(
                        "storage {key} has {} elements before its bytes, and {elements} in the object",
                        stored.unwrap_or(0)
                    );
                    return Err(Error::new("legacy-size", message).at(at).into());
                }
            }
            let end = elements
                .checked_mul(element.into())
                .and_then(|bytes| start.checked_add(bytes))
                .filter(|end| *end <= spans.len())
                .ok_or_else(past_end)?;
            if storages.by_key.insert(key.clone(), start..end).is_some() {
                let message = format!("storage {key} comes twice");
                return Err(Error::new("legacy-keys", message).at(at).into());
            }
            at = end;
        }
        wanted.finish()?;
        if at < spans.len() {
            storages.findings.report(&rules::LEGACY_TAIL, || {
                let count = spans.len().saturating_sub(at);
                let message = format!("{count} bytes follow the last storage");
                Finding::new(&rules::LEGACY_TAIL, message).at(at..spans.len())
            });
        }
        Ok(storages)
    }
}

/// Where a pickle is.
pub(super) struct Found {
    /// Its bytes; where it is broken, those up to the fault or more.
    pub(super) span: Range<u64>,
    /// Why it has no end.
    pub(super) error: Option<Error>,
}

/// Bytes that are read of a pickle at first.
const WINDOW: u64 = 64 << 10;

/// Finds the end of the pickle that begins at a byte. As long as it is cut off, twice as many bytes are asked for.
pub(super) fn pickle(spans: &Spans, start: u64, end: u64, limits: &Limits) -> Result<Found, Stop> {
    let mut window = WINDOW;
    loop {
        let most = end.min(start.saturating_add(limits.pickle_bytes));
        let until = most.min(start.saturating_add(window)).max(start);
        let bytes = spans.get(start..until)?;
        match skim(bytes, limits) {
            Ok(len) => return Ok(Found { span: start..start.saturating_add(len), error: None }),
            Err((error, wanted))
                if error.code == "pickle-truncated"
                    && until < most
                    && wanted <= most.saturating_sub(start) =>
            {
                window = window.saturating_mul(2).max(wanted);
            }
            Err((error, wanted)) => {
                let is_in_file = wanted <= end.saturating_sub(start);
                let error = if error.code == "pickle-truncated" && until < end && is_in_file {
                    let limit = limits.pickle_bytes;
                    Error::new(
                        "limit-pickle-bytes",
                        format!("a pickle has more bytes than the limit of {limit}"),
                    )
                    .at(start)
                } else {
                    let offset = error.offset.unwrap_or(0);
                    error.at(start.saturating_add(offset))
                };
                return Ok(Found { span: start..until, error: Some(error) });
            }
        }
    }
}

/// The length of a pickle, by its opcodes alone; with an error, the bytes that there would have to be.
fn skim(bytes: &[u8], limits: &Limits) -> Result<u64, (Error, u64)> {
    let mut decoder = Decoder::new(bytes, limits);
    loop {
        match decoder.next_operation() {
            Ok(operation) if operation.opcode == Opcode::Stop => return Ok(decoder.position()),
            Ok(_) => {}
            Err(error) => return Err((error, decoder.wanted())),
        }
    }
}
