//! `weigh scan` for people: a line with the verdict of each file, then what was found in it.

use std::collections::BTreeMap;
use std::io::Write;

use weigh::format::text::{escaped, shortened};
use weigh::format::{Finding, Severity};
use weigh::torch::pickle::Verdict;
use weigh::torch::rules;
use weigh::torch::scan::{ScanReport, WeightsOnly};

use super::Report;
use crate::findings::Shown;
use crate::output::{Output, Style};
use crate::session::Session;
use crate::units;

/// Findings of one rule and file that are shown; the rest are counted.
const SHOWN: usize = 10;

pub(super) struct Text {
    quiet: bool,
    notes: bool,
    shown: Shown,
    /// Files by their verdicts.
    verdicts: BTreeMap<Verdict, u64>,
    /// Files that are no checkpoints.
    skipped: u64,
}

impl Text {
    pub(super) fn new(quiet: bool, notes: bool) -> Self {
        Self { quiet, notes, shown: Shown::default(), verdicts: BTreeMap::new(), skipped: 0 }
    }

    fn findings(&mut self, output: &mut Output, report: &ScanReport) -> anyhow::Result<()> {
        let mut findings: Vec<&Finding> = report.findings.list().iter().collect();
        // The worst first; those of a severity stay in their order.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut notes = 0;
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in findings {
            if finding.severity == Severity::Note && !self.notes && !is_of_folder(finding) {
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
        if report.findings.dropped() > 0 {
            let dropped = units::exact(report.findings.dropped());
            writeln!(output.data(), "  {dropped} more findings like these were counted, not kept")?;
        }
        if notes > 0 {
            let line = format!("{}, shown with --notes", units::plural(notes, "note"));
            let line = output.styled(Style::Dim, line);
            writeln!(output.data(), "  {line}")?;
        }
        Ok(())
    }
}

impl Report for Text {
    fn begin(&mut self, _session: &mut Session) -> anyhow::Result<()> {
        Ok(())
    }

    fn file(&mut self, session: &mut Session, report: &ScanReport) -> anyhow::Result<()> {
        let output = &mut session.output;
        let path = report.path.to_string_lossy();
        let Some(verdict) = report.verdict else {
            self.skipped += 1;
            let is_told = self.notes || report.findings.list().iter().any(is_of_folder);
            if is_told && !self.quiet {
                let word = output.styled(Style::Dim, "no checkpoint, not scanned");
                writeln!(output.data(), "{}: {word}", escaped(&path))?;
                self.findings(output, report)?;
            }
            return Ok(());
        };
        *self.verdicts.entry(verdict).or_default() += 1;
        let word = output.styled(style(verdict), verdict);
        write!(output.data(), "{}: {word}", escaped(&path))?;
        if verdict != Verdict::Error && !report.complete {
            write!(output.data(), ", and not read to the end")?;
        }
        match &report.weights_only {
            None => {}
            Some(WeightsOnly::Taken) => write!(output.data(), "; weights_only takes it")?,
            Some(WeightsOnly::Refused(refused)) => {
                write!(output.data(), "; weights_only refuses it")?;
                if let Some(offset) = refused.offset {
                    write!(output.data(), " at byte {offset}")?;
                }
                if let Some(opcode) = refused.opcode {
                    write!(output.data(), ", {opcode}")?;
                }
                if let Some(name) = &refused.name {
                    write!(output.data(), " of {}", escaped(&shortened(name)))?;
                } else {
                    write!(output.data(), ": {}", escaped(&shortened(&refused.reason)))?;
                }
            }
        }
        writeln!(output.data())?;
        self.findings(output, report)
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        let total: u64 = self.verdicts.values().sum::<u64>() + self.skipped;
        if total < 2 || self.quiet {
            return Ok(());
        }
        let mut parts: Vec<String> = self
            .verdicts
            .iter()
            .map(|(verdict, count)| format!("{} {verdict}", units::exact(*count)))
            .collect();
        if self.skipped > 0 {
            parts.push(format!("{} no checkpoint", units::exact(self.skipped)));
        }
        writeln!(session.output.data(), "{}: {}", units::plural(total, "file"), parts.join(", "))?;
        Ok(())
    }
}

/// Whether a finding says what a file beside weights is.
fn is_of_folder(finding: &Finding) -> bool {
    rules::RULES.iter().any(|rule| rule.code == finding.code())
}

const fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::DataOnly => Style::Green,
        Verdict::UnknownGlobal | Verdict::Ambiguous => Style::Yellow,
        Verdict::Call | Verdict::Error => Style::Red,
    }
}
