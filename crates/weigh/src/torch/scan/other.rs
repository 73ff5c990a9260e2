//! What is no archive and no pickle, by its bytes: safetensors, HDF5, and what is of no known kind; and what its name
//! says.

use std::ops::Range;

use weigh_format::{Finding, Verdict as FormatVerdict, inspect};
use weigh_pickle::container::rules as container;
use weigh_pickle::{Error as PickleError, Verdict};

use super::beside;
use super::engine::Scan;
use super::keras::Finder;
use super::seen::At;
use super::trial::{Trial, trial};
use crate::torch::reading::{Fault, Reading};
use crate::torch::rules;

/// Bytes of what is of no known kind that are tried as a pickle at first.
const TRIED: u64 = 64 << 10;

/// Bytes of safetensors files that are run as a pickle, if those are not enough.
const TRIED_AS_WELL: u64 = 4 << 20;

impl Scan<'_> {
    pub(super) fn safetensors(
        &mut self,
        reading: &mut Reading<'_>,
        at: At<'_>,
    ) -> Result<(), Fault> {
        let (len, limits, key) = (reading.len(), &self.options.header, self.key);
        let read = |span: Range<u64>| {
            let bytes = reading.bytes(span.clone()).map(<[u8]>::to_vec)?;
            reading.forget(&span);
            Ok::<_, Fault>(bytes)
        };
        let inspection = inspect::inspect(len, read, limits, key)?;
        self.seen.find_all(inspection.findings(), at);
        let verdict = match inspection.findings().verdict() {
            FormatVerdict::Valid => Verdict::DataOnly,
            FormatVerdict::ValidWithDeviations => Verdict::Ambiguous,
            FormatVerdict::Invalid => {
                self.seen.unread = true;
                Verdict::Error
            }
        };
        self.seen.comes_to(verdict);
        // A header's length may be an opcode, and its text a string.
        self.as_pickle_too(reading, "safetensors", at)
    }

    /// Runs what is of a kind as a pickle, if it is one as well: a loader that goes by the name would unpickle it.
    pub(super) fn as_pickle_too(
        &mut self,
        reading: &mut Reading<'_>,
        kind: &str,
        at: At<'_>,
    ) -> Result<(), Fault> {
        let len = reading.len();
        for most in [TRIED, TRIED_AS_WELL] {
            let span = 0..len.min(most);
            let tried = trial(reading.bytes(span.clone())?, len, &self.options.limits);
            reading.forget(&span);
            match tried {
                Trial::Nothing => return Ok(()),
                Trial::Unfinished => {}
                Trial::Pickle => {
                    let message = format!("the file is {kind}, and a pickle");
                    self.seen.find(Finding::new(&container::POLYGLOT, message), at);
                    return self.pickles(reading, 0..len, at);
                }
            }
        }
        Ok(())
    }

    /// Names the functions in the configuration of a Keras model, wherever in the first bytes of a file that is.
    pub(super) fn functions(&mut self, reading: &mut Reading<'_>, at: At<'_>) -> Result<(), Fault> {
        let end = reading.len().min(beside::SEARCHED);
        let mut finder = Finder::default();
        let mut start = 0;
        while start < end {
            self.check()?;
            let span = start..end.min(start.saturating_add(1 << 20));
            finder.push(reading.bytes(span.clone())?);
            reading.forget(&span);
            start = span.end;
        }
        for place in finder.finish() {
            self.seen.find(beside::function().at(place), at);
        }
        Ok(())
    }

    /// What is of no known kind may still do something when it is unpickled.
    pub(super) fn unknown(
        &mut self,
        reading: &mut Reading<'_>,
        name: &str,
        at: At<'_>,
    ) -> Result<(), Fault> {
        let len = reading.len();
        let most = if beside::is_configuration(name) { beside::CONFIGURATION } else { TRIED };
        let span = 0..len.min(most);
        let bytes = reading.bytes(span.clone())?;
        for finding in beside::by_content(name, bytes) {
            self.seen.find(finding, at);
        }
        let tried = trial(bytes, len, &self.options.limits);
        reading.forget(&span);
        match tried {
            Trial::Nothing => Ok(()),
            Trial::Pickle => self.pickles(reading, 0..len, at),
            Trial::Unfinished => {
                let most = len.min(self.options.limits.pickle_bytes);
                let bytes = reading.bytes(0..most)?;
                let is_pickle = !matches!(trial(bytes, most, &self.options.limits), Trial::Nothing);
                reading.forget(&(0..most));
                if is_pickle { self.pickles(reading, 0..len, at) } else { Ok(()) }
            }
        }
    }

    /// Compares a file's name with what it was found to be.
    pub(super) fn judge_name(
        &mut self,
        reading: &mut Reading<'_>,
        name: &str,
        kind: &'static str,
    ) -> Result<(), Fault> {
        let at = At { member: "", start: 0 };
        let lower = name.to_ascii_lowercase();
        let extension = lower.rsplit_once('.').map_or("", |(_, extension)| extension);
        if extension == "safetensors" && kind != "safetensors" {
            if self.seen.verdict.is_some() {
                let message = format!("a file named as safetensors begins as {kind}");
                self.seen.find(Finding::new(&rules::NAME_DIFFERS, message), at);
                return Ok(());
            }
            return match self.safetensors(reading, at) {
                Err(Fault::Content(error)) => {
                    self.seen.unreadable(error, at);
                    Ok(())
                }
                result => result,
            };
        }
        let is_checkpoint = CHECKPOINTS.contains(&extension)
            || lower.starts_with("pytorch_model") && extension == "bin";
        if is_checkpoint && self.seen.verdict.is_none() {
            let message = "the file is named as a checkpoint, and is of no kind that is known";
            self.seen.unreadable(PickleError::new("unknown-kind", message), at);
        }
        Ok(())
    }
}

/// What files are called that programs load as checkpoints.
const CHECKPOINTS: [&str; 13] = [
    "pt", "pth", "ckpt", "pkl", "pickle", "joblib", "npy", "npz", "keras", "h5", "hdf5", "dill",
    "p",
];
