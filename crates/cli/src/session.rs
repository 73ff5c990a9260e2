//! One run of the program: its streams, its options and its exit code.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use weigh::format::{Limits, Severity};
use weigh::{Address, Options, Survey};

use crate::args::Global;
use crate::output::{Output, Style};

/// What a run came to; the worst of it is the exit code.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Outcome {
    Fine,
    Finding,
    Failed,
}

/// A run of the program.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) output: Output,
    pub(crate) options: Options,
    outcome: Outcome,
    /// Whether the command's exit code is a verdict, which a closed pipe does not change.
    pub(crate) gives_verdict: bool,
}

impl Session {
    pub(crate) fn new(global: &Global) -> Self {
        let limits = Limits {
            header_bytes: global.max_header,
            ..Limits::default()
        };
        Self {
            output: Output::new(global.color),
            options: Options {
                limits,
                ..Options::default()
            },
            outcome: Outcome::Fine,
            gives_verdict: false,
        }
    }

    /// Remembers what something came to.
    pub(crate) fn came_to(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.max(outcome);
    }

    /// Reports a failure, and goes on.
    pub(crate) fn failed(&mut self, error: &weigh::Error) {
        self.output
            .error(&error.to_string(), error.help().as_deref());
        self.came_to(Outcome::Failed);
    }

    /// Surveys the checkpoints that the arguments stand for, one after the other.
    ///
    /// What cannot be opened is reported, and the run goes on.
    pub(crate) fn each_survey(
        &mut self,
        arguments: &[OsString],
        mut look: impl FnMut(&mut Self, &Survey, Option<&str>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for address in arguments.iter().flat_map(|argument| expand(argument)) {
            let found = match weigh::find(&address.path) {
                Ok(found) => found,
                Err(error) => {
                    self.failed(&error);
                    continue;
                }
            };
            for found in &found {
                match Survey::take(found, &self.options) {
                    Ok(survey) => look(self, &survey, address.selector.as_deref())?,
                    Err(error) => self.failed(&error),
                }
            }
        }
        Ok(())
    }

    /// Reports on stderr what makes a listing less than it seems: findings that refuse a file under either
    /// policy, files that could not be read, files beside an index. Sets the outcome.
    pub(crate) fn report_listing(&mut self, survey: &Survey) {
        for failure in survey.failures() {
            self.output.error(&failure.to_string(), failure.help());
            self.came_to(Outcome::Failed);
        }
        for findings in survey.findings() {
            for finding in findings.list() {
                let (word, style) = match finding.severity {
                    Severity::Error => ("error", Style::Red),
                    Severity::Deviation => ("deviation", Style::Yellow),
                    Severity::Note => continue,
                };
                let file = finding.place.file.as_deref().unwrap_or_default();
                let message = format!("{file}: {} [{}]", finding.message, finding.code());
                self.output
                    .message(word, style, &message, Some(&finding.help));
            }
            if findings.dropped() > 0 {
                let dropped = findings.dropped();
                self.output.note(&format!(
                    "{dropped} more findings like these were counted, not kept"
                ));
            }
            if findings.worst() == Some(Severity::Error) {
                self.came_to(Outcome::Finding);
            }
        }
        if !survey.beside().is_empty() {
            let first = survey.beside()[0].display();
            let count = survey.beside().len();
            self.output.note(&format!(
                "{count} more safetensors files are not in the index, like {first}"
            ));
        }
    }

    /// Writes what is waiting and gives the exit code.
    pub(crate) fn finish(mut self, result: anyhow::Result<()>) -> ExitCode {
        let result = result.and_then(|()| Ok(self.output.flush()?));
        if let Err(error) = result {
            if is_closed_pipe(&error) {
                if !self.gives_verdict {
                    return ExitCode::SUCCESS;
                }
            } else {
                self.output.error(&format!("{error:#}"), None);
                self.came_to(Outcome::Failed);
            }
        }
        ExitCode::from(match self.outcome {
            Outcome::Fine => 0,
            Outcome::Finding => 1,
            Outcome::Failed => 2,
        })
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The addresses that an argument stands for: a path that does not exist may be a glob on files.
fn expand(argument: &OsString) -> Vec<Address> {
    let address = Address::parse(argument);
    let is_glob = |text: &str| text.contains(['*', '?', '[']);
    let Some(text) = argument.to_str().filter(|text| is_glob(text)) else {
        return vec![address];
    };
    if address.selector.is_some() || address.path.exists() {
        return vec![address];
    }
    // The selector may be a glob as well: the longest part up to a colon that matches files is the path.
    let colons = text
        .rmatch_indices(':')
        .map(|(at, _)| (&text[..at], Some(&text[at + 1..])));
    let splits = std::iter::once((text, None)).chain(colons);
    for (pattern, selector) in splits.filter(|(pattern, _)| is_glob(pattern)) {
        let Ok(matches) = glob::glob(pattern) else {
            continue;
        };
        let mut paths: Vec<_> = matches.filter_map(Result::ok).collect();
        paths.sort();
        if !paths.is_empty() {
            let selector = selector.map(String::from);
            let address = |path| {
                let mut address = address.clone();
                address.path = path;
                address.selector.clone_from(&selector);
                address
            };
            return paths.into_iter().map(address).collect();
        }
    }
    vec![address]
}
