//! `weigh check` for people: a line with the verdict of each file, then what was found in it.

use std::collections::BTreeMap;
use std::io::Write;

use weigh::Layout;
use weigh::format::text::escaped;
use weigh::format::{Finding, Severity, Verdict, order};

use super::{Checked, Judge, Part, PolicyName, Report};
use crate::findings::Shown;
use crate::output::{Output, Style};
use crate::session::Session;
use crate::units;

/// Findings of one rule and file that are shown; the rest are counted.
const SHOWN: usize = 10;

pub(super) struct Text {
    judge: Judge,
    notes: bool,
    shown: Shown,
    /// Files by their verdicts, the best first; those that could not be read last.
    verdicts: BTreeMap<(bool, Option<Verdict>), u64>,
    /// Indexes and numbered sets that are not valid.
    unsound_sets: u64,
    /// Whether something was refused that has no error.
    refused_beside_errors: bool,
}

impl Text {
    pub(super) fn new(judge: Judge, notes: bool) -> Self {
        Self {
            judge,
            notes: notes || judge.refuses == Severity::Note,
            shown: Shown::default(),
            verdicts: BTreeMap::new(),
            unsound_sets: 0,
            refused_beside_errors: false,
        }
    }

    fn part(&mut self, output: &mut Output, label: &str, part: &Part<'_>) -> anyhow::Result<()> {
        let words = verdict_words(output, part.verdict);
        writeln!(output.data(), "{}: {words}", escaped(label))?;
        let mut findings: Vec<&Finding> = part.list().collect();
        // The worst first; those of a severity stay in their order.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut notes = 0;
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in findings {
            if finding.severity == Severity::Note && !self.notes {
                notes += 1;
                continue;
            }
            let seen = seen.entry(finding.code()).or_default();
            *seen += 1;
            if *seen <= SHOWN {
                self.shown.write(output, finding)?;
            }
        }
        for (code, seen) in seen.into_iter().filter(|(_, seen)| *seen > SHOWN) {
            let more = units::exact((seen - SHOWN) as u64);
            writeln!(output.data(), "  {more} more {code}; --format json has all that were kept")?;
        }
        if part.dropped() > 0 {
            let dropped = units::exact(part.dropped());
            writeln!(output.data(), "  {dropped} more findings like these were counted, not kept")?;
        }
        if notes > 0 {
            let line = format!("{}, shown with --notes", units::plural(notes, "note"));
            let line = output.styled(Style::Dim, line);
            writeln!(output.data(), "  {line}")?;
        }
        Ok(())
    }

    fn summary(&self) -> Option<String> {
        let total: u64 = self.verdicts.values().sum();
        let parts: Vec<String> = self
            .verdicts
            .iter()
            .map(|((_, verdict), count)| {
                let word = verdict.map_or("not read", Verdict::name);
                format!("{} {word}", units::exact(*count))
            })
            .collect();
        let sets = match self.unsound_sets {
            0 => String::new(),
            sets => format!("; {} not valid", units::plural(sets, "set")),
        };
        (total > 1 || self.unsound_sets > 0)
            .then(|| format!("{}: {}{sets}", units::plural(total, "file"), parts.join(", ")))
    }
}

impl Report for Text {
    fn begin(&mut self, _session: &mut Session) -> anyhow::Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self, session: &mut Session, checked: &Checked<'_>) -> anyhow::Result<()> {
        let output = &mut session.output;
        if let Some(set) = &checked.set {
            let path = set.path.to_string_lossy();
            let label = match checked.survey.layout() {
                Layout::Numbered => {
                    let files = units::plural(checked.files.len() as u64, "file");
                    format!("{path} (a numbered set of {files})")
                }
                _ => path.into_owned(),
            };
            self.unsound_sets += u64::from(set.verdict != Some(Verdict::Valid));
            self.part(output, &label, set)?;
        }
        let mut files: Vec<&Part<'_>> = checked.files.iter().map(|(_, part)| part).collect();
        files.sort_by(|one, other| {
            let [one, other] = [one, other].map(|part| part.path.to_string_lossy());
            order::compare(&one, &other)
        });
        for part in files {
            let verdict = (part.verdict.is_none(), part.verdict);
            *self.verdicts.entry(verdict).or_default() += 1;
            // What kept a file from being read is told on stderr.
            if part.verdict.is_some() {
                self.part(output, &part.path.to_string_lossy(), part)?;
            }
        }
        let invalid = checked.survey.verdict() == Verdict::Invalid;
        self.refused_beside_errors |= checked.refused && !invalid;
        Ok(())
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        if let Some(summary) = self.summary() {
            writeln!(session.output.data(), "{summary}")?;
        }
        if self.refused_beside_errors {
            session.output.note(match (self.judge.policy, self.judge.refuses) {
                (_, Severity::Note) => "--deny note refuses files with notes",
                (PolicyName::Compatible, _) => "--deny deviation refuses files with deviations",
                (PolicyName::Strict, _) => {
                    "deviations refuse under the strict policy; --policy compatible takes them"
                }
            });
        }
        Ok(())
    }
}

fn verdict_words(output: &Output, verdict: Option<Verdict>) -> String {
    match verdict {
        Some(Verdict::Valid) => output.styled(Style::Green, Verdict::Valid),
        Some(Verdict::ValidWithDeviations) => {
            output.styled(Style::Yellow, Verdict::ValidWithDeviations)
        }
        Some(Verdict::Invalid) => output.styled(Style::Red, Verdict::Invalid),
        None => output.styled(Style::Red, "no verdict, a file could not be read"),
    }
}
