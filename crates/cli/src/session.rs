//! One run of the program: its streams, its options and its exit code.

mod mending;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::Path;

use weigh::format::{Finding, Findings, Limits, Severity};
use weigh::{Address, Found, Options, Survey};

use crate::args::Global;
use crate::findings;
use crate::output::{Output, Style};
use crate::units;
pub(crate) use mending::is_finding;

/// Findings of one rule and file that a listing reports.
const FINDINGS_SHOWN: usize = 5;

/// Failures of one checkpoint that are reported one by one.
const FAILURES_SHOWN: usize = 5;

/// Bytes of a header that a tensor takes at least, near enough: `"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},`
const ENTRY_BYTES: u64 = 50;

/// What a run came to; the worst of it is the exit code.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Outcome {
    Fine,
    Finding,
    Failed,
}

/// Something that could not be opened or read, for the reports that list it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    /// Where, as it was given. Not escaped.
    pub(crate) path: String,
    /// The stable code.
    pub(crate) code: &'static str,
    /// What is wrong, the path in it. Not escaped.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<&weigh::Error> for Failure {
    fn from(error: &weigh::Error) -> Self {
        if let weigh::Error::Stream(error) = error {
            return Self::stdout(error);
        }
        let path = error.path().unwrap_or(Path::new(""));
        let path = path.to_string_lossy().into_owned();
        Self { path, code: error.code(), message: error.to_string(), help: error.help() }
    }
}

impl From<&weigh::io::Error> for Failure {
    fn from(error: &weigh::io::Error) -> Self {
        Self {
            path: error.path().to_string_lossy().into_owned(),
            code: error.code(),
            message: error.to_string(),
            help: error.help().map(String::from),
        }
    }
}

impl Failure {
    /// That stdout does not take what is written to it.
    fn stdout(error: &io::Error) -> Self {
        Self {
            path: "-".into(),
            code: "stream",
            message: format!("stdout: writing failed: {error}"),
            help: None,
        }
    }

    /// The same failure, about this path, which the message has to name.
    pub(crate) fn at(self, path: &Path) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { message: format!("{path}: {}", self.message), path, ..self }
    }
}

/// A run of the program.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) output: Output,
    pub(crate) options: Options,
    /// What could not be opened or read, in the order it was reported.
    pub(crate) failures: Vec<Failure>,
    /// Whether the arguments stand for more than one checkpoint, so that each has to be named.
    pub(crate) several: bool,
    /// Whether checkpoints of torch and numpy are looked at too.
    pub(crate) lists_torch: bool,
    outcome: Outcome,
    /// Whether the command's exit code is a verdict, which a closed pipe does not change.
    pub(crate) gives_verdict: bool,
}

impl Session {
    pub(crate) fn new(global: &Global) -> Self {
        let limits = limits(global.max_header);
        Self {
            output: Output::new(global.color),
            options: Options { limits, ..Options::default() },
            failures: Vec::new(),
            several: false,
            lists_torch: false,
            outcome: Outcome::Fine,
            gives_verdict: false,
        }
    }

    /// Remembers what something came to.
    pub(crate) fn came_to(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.max(outcome);
    }

    /// Reports a failure, and goes on.
    pub(crate) fn failed(&mut self, failure: impl Into<Failure>) {
        let failure = failure.into();
        self.output.error(&failure.message, failure.help.as_deref());
        self.came_to(Outcome::Failed);
        self.failures.push(failure);
    }

    /// Reports something that is wrong with what was looked at, and goes on.
    pub(crate) fn found(&mut self, failure: impl Into<Failure>) {
        let failure = failure.into();
        self.output.error(&failure.message, failure.help.as_deref());
        self.came_to(Outcome::Finding);
        self.failures.push(failure);
    }

    /// Reports failures with parts of what is at `path`: the first few, and how many more there are.
    /// Documents list them all.
    pub(crate) fn failed_in<'e>(
        &mut self,
        path: &str,
        failures: impl IntoIterator<Item = &'e weigh::io::Error>,
    ) {
        let mut failures = failures.into_iter();
        for failure in failures.by_ref().take(FAILURES_SHOWN) {
            self.failed(failure);
        }
        let shown = self.failures.len();
        self.failures.extend(failures.map(Failure::from));
        let more = (self.failures.len() - shown) as u64;
        if more > 0 {
            self.output.note(&format!("{path}: {} more could not be read", units::exact(more)));
        }
    }

    /// Finds the checkpoints that the arguments stand for, each with the selector of its address, and reports
    /// what cannot be found.
    pub(crate) fn find(&mut self, arguments: &[OsString]) -> Vec<(Found, Option<String>)> {
        let mut checkpoints = Vec::new();
        for argument in arguments {
            for address in self.addresses(argument) {
                match weigh::find(&address.path) {
                    Ok(found) => {
                        let selector = address.selector;
                        checkpoints.extend(found.into_iter().map(|it| (it, selector.clone())));
                    }
                    Err(error) => self.failed(&error),
                }
            }
        }
        checkpoints
    }

    /// The addresses that an argument stands for, which may be a glob; reports the folders that it may have more in.
    pub(crate) fn addresses(&mut self, argument: &OsStr) -> Vec<Address> {
        let (addresses, unread) = expand(argument);
        self.failed_in(&argument.to_string_lossy(), &unread);
        addresses
    }

    /// The one address that an argument stands for; reports it if there are more.
    pub(crate) fn address(&mut self, argument: &OsStr) -> Option<Address> {
        let mut addresses = self.addresses(argument);
        if addresses.len() > 1 {
            let path = argument.to_string_lossy().into_owned();
            let files = units::exact(addresses.len() as u64);
            self.failed(Failure {
                message: format!("{path}: {files} files match, and one is meant here"),
                path,
                code: "several-checkpoints",
                help: Some("Give one of them.".into()),
            });
            return None;
        }
        addresses.pop()
    }

    /// Surveys the checkpoints that the arguments stand for, one after the other.
    ///
    /// What cannot be found is reported first, what cannot be opened in its turn, and the run goes on.
    pub(crate) fn each_survey(
        &mut self,
        arguments: &[OsString],
        mut look: impl FnMut(&mut Self, &Survey, Option<&str>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let checkpoints = self.find(arguments);
        self.several = checkpoints.len() > 1;
        let mut left = checkpoints.len();
        for (found, selector) in &checkpoints {
            left -= 1;
            match self.survey_or_list(found) {
                Ok(survey) => {
                    let looked = look(self, &survey, selector.as_deref());
                    if left == 0 {
                        // The process is about to end: to give back a large survey page by page takes
                        // longer than to leave it to the system.
                        std::mem::forget(survey);
                    }
                    looked?;
                }
                Err(error) => self.failed(&error),
            }
        }
        Ok(())
    }

    /// Surveys what was found; if it is no safetensors but a checkpoint of torch or numpy, lists that, if it may be.
    fn survey_or_list(&mut self, found: &Found) -> Result<Survey, weigh::Error> {
        let survey = self.survey(found);
        let is_sound =
            survey.as_ref().is_ok_and(|survey| survey.verdict() != weigh::format::Verdict::Invalid);
        if is_sound || !self.lists_torch || !weigh::torch::is_listed(&found.path) {
            return survey;
        }
        let listing = match weigh::torch::list(&found.path) {
            Ok(listing) => listing,
            Err(error @ weigh::Error::Io(_)) => return Err(error),
            Err(error) => {
                // It is no safetensors, and damaged as what it is: both are found in the file.
                self.found(&error);
                return survey;
            }
        };
        let path = found.path.display();
        if listing.verdict > weigh::torch::pickle::Verdict::DataOnly {
            let verdict = listing.verdict;
            let message = format!("{path}: not data alone, but {verdict}: do not unpickle it");
            self.output.message("warning", Style::Yellow, &message, None);
            self.came_to(Outcome::Finding);
        }
        for tensor in &listing.unconverted {
            self.output.note(&format!("{path}: {}: {}", tensor.name, tensor.why));
        }
        Ok(listing.survey)
    }

    /// Reports on stderr what makes a listing less than it seems: findings that refuse a file under either
    /// policy, files that could not be read, files beside an index. Sets the outcome.
    pub(crate) fn report_listing(&mut self, survey: &Survey) {
        self.report_failures(survey);
        for findings in survey.findings() {
            self.report_findings(findings);
            if findings.worst() == Some(Severity::Error) {
                self.came_to(Outcome::Finding);
            }
        }
        self.report_beside(survey);
    }

    /// Reports the files that could not be read. Sets the outcome.
    pub(crate) fn report_failures(&mut self, survey: &Survey) {
        self.failed_in(&survey.path().to_string_lossy(), survey.failures());
    }

    /// Reports errors and deviations: the first few of each rule, and how many more there are.
    fn report_findings(&mut self, findings: &Findings) {
        for (rule, count) in findings.counts() {
            let of_rule = findings.list().iter().filter(|it| it.code() == rule.code);
            let refusing = of_rule.filter(|it| it.severity > Severity::Note);
            let mut shown = 0;
            for finding in refusing.take(FINDINGS_SHOWN) {
                let Finding { severity, .. } = *finding;
                let file = finding.place.file.as_deref().unwrap_or_default();
                let message = format!("{file}: {} [{}]", finding.message, finding.code());
                let help = (shown == 0).then_some(finding.help.as_ref());
                self.output.message(severity.name(), findings::style(severity), &message, help);
                shown += 1;
            }
            if shown == FINDINGS_SHOWN as u64 && *count > shown {
                let more = units::exact(count - shown);
                let code = rule.code;
                self.output.note(&format!("{more} more [{code}]; weigh check says more"));
            }
        }
    }

    /// Reports on stderr which files of the folder are not looked at, because the index does not name them.
    fn report_beside(&mut self, survey: &Survey) {
        let message = match survey.beside() {
            [] => return,
            [one] => format!("{} is not in the index", one.display()),
            [first, more @ ..] => format!(
                "{} and {} more in its folder are not in the index",
                first.display(),
                units::plural(more.len() as u64, "safetensors file")
            ),
        };
        self.output.note(&message);
    }

    /// Writes what is waiting and gives the exit code.
    pub(crate) fn finish(mut self, result: anyhow::Result<()>) -> u8 {
        let result = result.and_then(|()| Ok(self.output.flush()?));
        if let Err(error) = result {
            if is_closed_pipe(&error) {
                if !self.gives_verdict {
                    return 0;
                }
            } else if let Some(error) = error.downcast_ref::<io::Error>() {
                self.failed(Failure::stdout(error));
            } else {
                match error.downcast::<Failure>() {
                    Ok(failure) => self.failed(failure),
                    Err(error) => {
                        self.output.error(&format!("{error:#}"), None);
                        self.came_to(Outcome::Failed);
                    }
                }
            }
        }
        crate::interrupt::end();
        self.exit_code()
    }

    /// The exit code as things stand.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Fine => 0,
            Outcome::Finding => 1,
            Outcome::Failed => 2,
        }
    }
}

/// The limits for a largest header; a larger one than by default may hold more tensors too.
fn limits(header_bytes: u64) -> Limits {
    let default = Limits::default();
    let tensors = u32::try_from(header_bytes / ENTRY_BYTES).unwrap_or(u32::MAX);
    Limits { header_bytes, tensors: tensors.max(default.tensors), ..default }
}

/// Whether writing failed because nobody reads any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The addresses that an argument stands for, and the folders that could not be looked into for more: a path
/// that does not exist may be a glob on files.
fn expand(argument: &OsStr) -> (Vec<Address>, Vec<weigh::io::Error>) {
    let address = Address::parse(argument);
    let is_glob = |text: &str| text.contains(['*', '?', '[']);
    let Some(text) = argument.to_str().filter(|text| is_glob(text)) else {
        return (vec![address], Vec::new());
    };
    if address.selector.is_some() || address.path.exists() {
        return (vec![address], Vec::new());
    }
    // The selector may be a glob as well: the longest part up to a colon that matches files is the path.
    let colons = text.rmatch_indices(':').map(|(at, _)| (&text[..at], Some(&text[at + 1..])));
    let splits = std::iter::once((text, None)).chain(colons);
    let mut unread = Vec::new();
    for (pattern, selector) in splits.filter(|(pattern, _)| is_glob(pattern)) {
        // `**` would follow links in circles; here it means no more than `*`.
        let mut pattern = pattern.to_owned();
        while pattern.contains("**") {
            pattern = pattern.replace("**", "*");
        }
        let Ok(matches) = glob::glob(&pattern) else {
            continue;
        };
        let (mut paths, mut errors) = (Vec::new(), Vec::new());
        for found in matches {
            match found {
                Ok(path) => paths.push(path),
                Err(error) => {
                    let path = error.path().to_path_buf();
                    errors.push(weigh::io::Error::system(&path, error.into()));
                }
            }
        }
        paths.sort();
        if !paths.is_empty() {
            let selector = selector.map(String::from);
            let address = |path| {
                let mut address = address.clone();
                address.path = path;
                address.selector.clone_from(&selector);
                address
            };
            return (paths.into_iter().map(address).collect(), errors);
        }
        if unread.is_empty() {
            unread = errors;
        }
    }
    // What could not be looked into may well have it: then nothing says that there is no such file.
    let address = Some(address).filter(|_| unread.is_empty());
    (address.into_iter().collect(), unread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_header_may_hold_more_tensors() {
        let default = Limits::default();
        for (header_bytes, tensors) in [
            (0, default.tensors),
            (default.header_bytes, default.tensors),
            (100_000_049, default.tensors),
            (100_000_050, 2_000_001),
            (u64::MAX, u32::MAX),
        ] {
            let limits = limits(header_bytes);
            assert_eq!((limits.header_bytes, limits.tensors), (header_bytes, tensors));
        }
    }
}
