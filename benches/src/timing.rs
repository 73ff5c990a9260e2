//! Timing contenders in turn, so that a noisy moment strikes all of them.

use std::time::{Duration, Instant};

use crate::amount;

/// Rounds of a benchmark: each contender is timed once a round.
pub(crate) const ROUNDS: usize = 11;

/// The times of one contender, one a round.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// These times, of which there is at least one.
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub(crate) fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    pub(crate) fn least(&self) -> Duration {
        self.0[0]
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn most(&self) -> Duration {
        self.0[self.0.len() - 1]
    }

    /// Median and, in brackets, the fastest, for a table.
    pub(crate) fn shown(&self) -> String {
        let [median, least] = [self.median(), self.least()].map(amount::time);
        format!("{median} ({least})")
    }
}

/// Times two pieces of work in turn, and each `repeats` times in a round.
///
/// What they return is dropped after the clock is read.
pub(crate) fn in_turn<A, B>(
    repeats: u32,
    mut one: impl FnMut() -> A,
    mut other: impl FnMut() -> B,
) -> [Samples; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(mean(repeats, &mut one));
        times[1].push(mean(repeats, &mut other));
    }
    times.map(Samples::new)
}

fn mean<T>(repeats: u32, work: &mut impl FnMut() -> T) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..repeats {
        let start = Instant::now();
        let result = std::hint::black_box(work());
        total += start.elapsed();
        drop(result);
    }
    total / repeats
}
