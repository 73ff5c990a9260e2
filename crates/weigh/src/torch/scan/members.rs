//! The content of a zip archive's members, inflated within a budget.

use weigh_format::Finding;
use weigh_io::Cancel;
use weigh_pickle::container::inflate::{self, Inflater};
use weigh_pickle::container::npy::{self, Element};
use weigh_pickle::container::zip::{Entry, Method};
use weigh_pickle::{Error as PickleError, Spans};

use super::ScanOptions;
use super::kept::{Budget, Kept};
use crate::torch::reading::{Fault, Reading};

/// Bytes that are inflated at once, and the most of the header of an array that is looked at.
const PIECE: usize = 64 << 10;

/// The content of a member, as much of it as is looked at, or all; and what is wrong with its checksum.
///
/// # Errors
///
/// If it cannot be had, or not within the budget.
pub(super) fn content(
    reading: &mut Reading<'_>,
    entry: &Entry,
    whole: bool,
    budget: &mut Budget,
    options: &ScanOptions<'_>,
) -> Result<(Kept, Option<Finding>), Fault> {
    let limits = &options.limits;
    let span = entry.span.clone().ok_or_else(|| {
        PickleError::new("zip-no-bytes", "it has no bytes of its own in the file")
    })?;
    if entry.compressed_size > limits.pickle_bytes {
        let (size, limit) = (entry.compressed_size, limits.pickle_bytes);
        let message = format!("it has {size} bytes, the limit is {limit}");
        return Err(PickleError::new("limit-pickle-bytes", message).into());
    }
    if entry.method == Method::Deflated {
        budget.spend(entry.size)?;
    }
    let raw = reading.bytes(span.clone())?;
    let mut kept = Kept::new(&entry.name, whole, limits);
    let damage = if entry.method == Method::Deflated {
        let mut inflater = Inflater::new(entry);
        let (mut piece, mut rest) = (vec![0; PIECE], raw);
        loop {
            if options.cancel.is_some_and(Cancel::is_cancelled) {
                return Err(Fault::Cancelled);
            }
            let step = inflater.step(rest, &mut piece)?;
            rest = rest.get(step.taken..).unwrap_or_default();
            kept.push(piece.get(..step.given).unwrap_or_default())?;
            if step.taken == 0 && step.given == 0 {
                break inflater.finish()?;
            }
        }
    } else {
        let content = inflate::content(entry, raw, limits)?;
        kept.push(&content.bytes)?;
        content.damage
    };
    reading.forget(&span);
    Ok((kept, damage))
}

/// Whether a deflated member is an array of numbers, by its header, and nothing else by its size: no more of it is
/// looked at, as no more is of a storage.
///
/// # Errors
///
/// If the file cannot be read.
pub(super) fn is_array(reading: &mut Reading<'_>, entry: &Entry) -> Result<bool, Fault> {
    let (Method::Deflated, Some(span)) = (entry.method, entry.span.clone()) else {
        return Ok(false);
    };
    let most = u64::try_from(PIECE).unwrap_or(0);
    let first = span.start..span.end.min(span.start.saturating_add(most));
    // No larger than what is in it: there may be a million members.
    let most = usize::try_from(entry.size).unwrap_or(PIECE).min(PIECE);
    let mut piece = vec![0; most];
    let step = Inflater::new(entry).step(reading.bytes(first.clone())?, &mut piece);
    reading.forget(&first);
    let head = step.map_or(0, |step| step.given);
    let mut spans = Spans::new(entry.size);
    spans.insert(0, piece.get(..head).unwrap_or_default().to_vec());
    let array = npy::read(&spans, 0..entry.size);
    Ok(array.is_ok_and(|array| {
        let is_numbers = matches!(array.header.element, Element::Number { .. });
        is_numbers && array.data.end == entry.size && array.findings.list().is_empty()
    }))
}
