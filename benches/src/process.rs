//! What this process has cost so far, as Linux counts it, and memory that its host has ready.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use weigh::io::{Usage, arena};

const PAGE: usize = 4096;

/// Counts from its start: start it, load, then ask for the figures.
#[derive(Debug)]
pub struct Meter {
    resident: u64,
    counts: Counts,
    processor: Duration,
    clock: Instant,
}

/// What a load cost.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Of wall time.
    pub seconds: f64,
    /// Computing, by all threads and the kernel for them.
    cpu_seconds: f64,
    /// The resident set when the load began.
    rss_before_bytes: u64,
    /// The largest resident set since then.
    peak_rss_bytes: u64,
    #[serde(flatten)]
    counts: Counts,
}

/// What the kernel counts for a process, all its threads together.
#[derive(Debug, Serialize)]
struct Counts {
    minor_faults: u64,
    major_faults: u64,
    /// Bytes read by system calls.
    rchar: u64,
    /// Bytes read from storage.
    read_bytes: u64,
}

impl Meter {
    /// Begins to count.
    ///
    /// # Errors
    ///
    /// When the system does not say what this process has used.
    pub fn start() -> Result<Self> {
        // What came before, the memory touched on purpose too, does not belong to the peak.
        fs::write("/proc/self/clear_refs", "5").context("cannot reset the largest resident set")?;
        Ok(Self {
            resident: usage()?.resident,
            counts: Counts::now()?,
            processor: processor(),
            clock: Instant::now(),
        })
    }

    /// What there was since the start.
    ///
    /// # Errors
    ///
    /// When the system does not say what this process has used.
    pub fn figures(&self) -> Result<Figures> {
        // First, for asking for the rest takes time too.
        let seconds = self.clock.elapsed().as_secs_f64();
        let computing = processor().saturating_sub(self.processor);
        let now = Counts::now()?;
        Ok(Figures {
            seconds,
            cpu_seconds: computing.as_secs_f64(),
            rss_before_bytes: self.resident,
            peak_rss_bytes: usage()?.peak,
            counts: Counts {
                minor_faults: now.minor_faults - self.counts.minor_faults,
                major_faults: now.major_faults - self.counts.major_faults,
                rchar: now.rchar - self.counts.rchar,
                read_bytes: now.read_bytes - self.counts.read_bytes,
            },
        })
    }
}

impl Counts {
    fn now() -> Result<Self> {
        let usage = usage()?;
        let io = fs::read_to_string("/proc/self/io")?;
        Ok(Self {
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            rchar: number(&io, "rchar:")?,
            read_bytes: number(&io, "read_bytes:")?,
        })
    }
}

/// What this process has used, as the library counts it.
fn usage() -> Result<Usage> {
    Usage::now().context("no /proc/self/stat and status")
}

/// The number in the line that begins with `name`.
fn number(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name} in /proc"))
}

/// The processor time of this process so far.
#[cfg(unix)]
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Nothing: [`Meter::start`] has failed where there is no `/proc`.
#[cfg(not(unix))]
const fn processor() -> Duration {
    Duration::ZERO
}

/// Touches and frees `size` bytes of fresh memory; gives gigabytes a second, or `None` for none.
///
/// A virtual machine gives free memory back to its host, and the first to ask for it waits until
/// the host has found some. Whoever is measured next finds it ready. The memory is touched in small pages
/// and again in huge ones: which pages of the machine they are made of differs, and some loaders use
/// these and some those. The rate is of the small ones.
#[must_use]
pub fn first_touch(size: usize) -> Option<f64> {
    if size == 0 {
        return None;
    }
    let start = Instant::now();
    // Zeros come untouched from the system.
    let mut memory = vec![0_u8; size];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    let seconds = start.elapsed().as_secs_f64();
    drop(black_box(memory));
    let huge = arena::allocate(&[u64::try_from(size).unwrap_or(u64::MAX)], true);
    for block in &mut huge.map(|(blocks, _)| blocks).unwrap_or_default() {
        block.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        black_box(block);
    }
    Some(rate(u64::try_from(size).unwrap_or(u64::MAX), seconds))
}

/// Gigabytes a second.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "printed with three digits; exact up to 2^53")]
pub fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e9
}
