//! What loading cost, run by run, and whether the answer was right.

use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;

use crate::amount;
use crate::load::sets::Answer;
use crate::timing::Samples;

/// The line of JSON that a program prints: one run.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Line {
    /// Its name for itself, with its version.
    loader: String,
    version: String,
    #[serde(flatten)]
    answer: Answer,
    seconds: f64,
    cpu_seconds: f64,
    rss_before_bytes: u64,
    peak_rss_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
    read_bytes: u64,
    /// Gigabytes a second, of fresh memory before the load.
    #[serde(rename = "first_touch_GBps")]
    first_touch: Option<f64>,
}

/// The runs of one contender in one case.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    lines: Vec<Line>,
    /// Why it failed: then the lines are not all that there should be.
    pub(crate) failure: Option<String>,
    /// What was wrong with an answer: then the lines mean nothing.
    pub(crate) wrong: Option<String>,
}

impl Line {
    /// The line of a program that only reads files, of which nothing else is known.
    pub(crate) fn of_reading(seconds: f64, bytes: u64) -> Self {
        Self {
            loader: "dd".into(),
            version: String::new(),
            answer: Answer { tensors: 0, bytes, checksum: String::new() },
            seconds,
            cpu_seconds: 0.0,
            rss_before_bytes: 0,
            peak_rss_bytes: 0,
            minor_faults: 0,
            major_faults: 0,
            read_bytes: bytes,
            first_touch: None,
        }
    }

    /// What is wrong with the answer, if something is. A program that finds no tensors gives none.
    fn fault(&self, want: &Answer) -> Option<String> {
        let got = &self.answer;
        (got != want && !got.checksum.is_empty()).then(|| {
            format!(
                "{} tensors, {} bytes, checksum {} for {}, {}, {}",
                got.tensors, got.bytes, got.checksum, want.tensors, want.bytes, want.checksum
            )
        })
    }
}

impl Outcome {
    /// Adds a run, which was to give `want`.
    pub(crate) fn add(&mut self, run: Result<Line>, want: &Answer) {
        match run {
            Ok(line) => {
                self.wrong = line.fault(want);
                self.lines.push(line);
            }
            Err(error) => self.failure = Some(format!("{error:#}")),
        }
    }

    /// Whether another run would tell nothing.
    pub(crate) const fn is_over(&self) -> bool {
        self.failure.is_some() || self.wrong.is_some()
    }

    /// How the last run ended: its time, or what went wrong.
    pub(crate) fn last_shown(&self) -> String {
        let wrong = self.failure.clone().or_else(|| self.wrong.clone());
        let time = |line: &Line| amount::time(Duration::from_secs_f64(line.seconds));
        wrong.or_else(|| self.lines.last().map(time)).unwrap_or_default()
    }

    /// The wall times, if all runs went well.
    pub(crate) fn times(&self) -> Option<Samples> {
        let times = self.lines.iter().map(|line| Duration::from_secs_f64(line.seconds));
        (!self.is_over() && !self.lines.is_empty()).then(|| Samples::new(times.collect()))
    }

    /// Whether more is known of the runs than their time.
    pub(crate) fn is_measured(&self) -> bool {
        self.lines.iter().all(|line| !line.answer.checksum.is_empty())
    }

    /// What the loader calls itself, with its version.
    pub(crate) fn called(&self) -> Option<String> {
        self.lines.first().map(|line| format!("{} {}", line.loader, line.version))
    }

    /// Bytes loaded, in each run.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.first().map_or(0, |line| line.answer.bytes)
    }

    /// The median of the processor time.
    pub(crate) fn computing(&self) -> Duration {
        let times = self.lines.iter().map(|line| Duration::from_secs_f64(line.cpu_seconds));
        Samples::new(times.collect()).median()
    }

    /// The largest resident set of all runs, beside what was there before the load.
    pub(crate) fn memory(&self) -> u64 {
        let more = |line: &Line| line.peak_rss_bytes.saturating_sub(line.rss_before_bytes);
        self.lines.iter().map(more).max().unwrap_or_default()
    }

    /// The medians of minor and of major faults, and of bytes read from storage.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let median = |count: fn(&Line) -> u64| {
            let mut counts: Vec<u64> = self.lines.iter().map(count).collect();
            counts.sort_unstable();
            counts.get(counts.len() / 2).copied().unwrap_or_default()
        };
        [
            median(|line| line.minor_faults),
            median(|line| line.major_faults),
            median(|line| line.read_bytes),
        ]
    }

    /// How fast fresh memory was had before each run, in gigabytes a second.
    pub(crate) fn first_touches(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().filter_map(|line| line.first_touch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_held_to_the_answer() {
        let text = |checksum: &str| {
            format!(
                r#"{{"loader": "x", "version": "1", "mode": "own", "threads": 1, "tensors": 2,
                "bytes": 16, "GBps": 1.0, "seconds": 0.5, "cpu_seconds": 0.25,
                "rss_before_bytes": 10, "peak_rss_bytes": 30, "minor_faults": 3,
                "major_faults": 1, "rchar": 16, "read_bytes": 0, "first_touch_GBps": null,
                "checksum": "{checksum}"}}"#
            )
        };
        let want = Answer { tensors: 2, bytes: 16, checksum: "0a".into() };
        let mut outcome = Outcome::default();
        outcome.add(Ok(serde_json::from_str(&text("0a")).unwrap()), &want);
        assert_eq!(outcome.times().unwrap().median(), Duration::from_millis(500));
        assert_eq!((outcome.memory(), outcome.counts()), (20, [3, 1, 0]));
        outcome.add(Ok(serde_json::from_str(&text("0b")).unwrap()), &want);
        assert!(outcome.times().is_none());
        assert_eq!(outcome.wrong.unwrap(), "2 tensors, 16 bytes, checksum 0b for 2, 16, 0a");
    }
}
