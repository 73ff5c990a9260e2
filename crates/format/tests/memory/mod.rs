//! Inspecting a file that is in memory.

use std::convert::Infallible;
use std::ops::Range;

use weigh_format::header::Inspection;
use weigh_format::{HashKey, Limits, inspect::inspect};

/// What inspecting these bytes gives.
pub(crate) fn look(bytes: &[u8], limits: &Limits) -> Inspection {
    let read = |span: Range<u64>| {
        let span = usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap();
        Ok::<_, Infallible>(bytes[span].to_vec())
    };
    let Ok(inspection) = inspect(bytes.len() as u64, read, limits, HashKey::new(3, 5));
    inspection
}
