//! Amounts of memory and time, for people.

use std::time::Duration;

/// A duration with three digits and its unit.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = if seconds < 1e-3 {
        (seconds * 1e6, "µs")
    } else if seconds < 1.0 {
        (seconds * 1e3, "ms")
    } else {
        (seconds, "s")
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

/// Bytes, in decimal megabytes.
pub(crate) fn size(bytes: u64) -> String {
    format!("{:.1} MB", float(bytes) / 1e6)
}

/// How often `part` goes into `whole`.
pub(crate) fn ratio(whole: u64, part: u64) -> f64 {
    float(whole) / float(part)
}

#[expect(clippy::cast_precision_loss, reason = "printed with three digits; exact up to 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

/// Gigabytes a second.
#[cfg(target_os = "linux")]
pub(crate) fn speed(bytes: u64, time: Duration) -> f64 {
    float(bytes) / 1e9 / time.as_secs_f64()
}
