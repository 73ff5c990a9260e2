//! Findings as reports show them.

use std::collections::HashSet;
use std::io;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use weigh::format::finding::Evidence;
use weigh::format::text::escaped;
use weigh::format::{Finding, Findings, Rule, Severity};

use crate::output::{Output, Style};

/// The rules of the format.
pub(crate) static FORMAT_RULES: &[&Rule] = weigh::format::rule::RULES;

/// The rules of torch checkpoints and of what lies beside weights, which `weigh scan` goes by.
pub(crate) fn scan_rules() -> impl Iterator<Item = &'static Rule> {
    use weigh::torch::{pickle, rules};
    [pickle::container::rules::RULES, pickle::rules::RULES, rules::RULES]
        .into_iter()
        .flatten()
        .copied()
}

/// All of them.
pub(crate) fn all_rules() -> impl Iterator<Item = &'static Rule> {
    FORMAT_RULES.iter().copied().chain(scan_rules())
}

/// Findings shown to people: what to do about one is said once.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    helped: HashSet<(&'static str, String)>,
}

impl Shown {
    /// Writes a finding under the line of its file.
    pub(crate) fn write(&mut self, output: &mut Output, finding: &Finding) -> io::Result<()> {
        let mut label = format!("{}[{}]", finding.severity, finding.code());
        let member = finding.place.member.as_ref();
        let member = member.map_or(String::new(), |it| format!(" in {}", escaped(it)));
        let place = match &finding.place.span {
            Some(span) => format!("{member} at {}..{}: ", span.start, span.end),
            None => format!("{member}: "),
        };
        let taken = label.len() + place.chars().count();
        label = output.styled(style(finding.severity), label);
        output.write_hanging([2, 4], &format!("{label}{place}"), taken, &finding.message)?;
        if self.helped.insert((finding.code(), finding.help.to_string())) {
            let label = output.styled(Style::Cyan, "help:");
            output.write_hanging([4, 6], &format!("{label} "), 6, &finding.help)?;
        }
        Ok(())
    }
}

/// A finding as JSON reports have it; what is not known is absent.
pub(crate) fn finding_json(finding: &Finding) -> impl Serialize {
    FindingJson(finding)
}

/// The evidence of a finding as an object.
pub(crate) fn evidence_json(finding: &Finding) -> impl Serialize {
    EvidenceJson(finding)
}

struct FindingJson<'f>(&'f Finding);

impl Serialize for FindingJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finding = self.0;
        let place = &finding.place;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("rule", finding.rule.code)?;
        map.serialize_entry("id", finding.rule.id)?;
        map.serialize_entry("severity", finding.severity.name())?;
        map.serialize_entry("message", &finding.message)?;
        map.serialize_entry("help", &finding.help)?;
        if let Some(file) = &place.file {
            map.serialize_entry("file", file)?;
        }
        if let Some(member) = &place.member {
            map.serialize_entry("member", member)?;
        }
        if let Some(span) = &place.span {
            map.serialize_entry("span", &[span.start, span.end])?;
        }
        if let Some(tensor) = &place.tensor {
            map.serialize_entry("tensor", tensor)?;
        }
        if let Some(element) = &place.element {
            map.serialize_entry("element", element)?;
        }
        if !finding.evidence.is_empty() {
            map.serialize_entry("evidence", &EvidenceJson(finding))?;
        }
        map.end()
    }
}

struct EvidenceJson<'f>(&'f Finding);

impl Serialize for EvidenceJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.evidence.len()))?;
        for (name, evidence) in &self.0.evidence {
            match evidence {
                Evidence::Number(number) => map.serialize_entry(name, number)?,
                Evidence::Text(text) => map.serialize_entry(name, text)?,
            }
        }
        map.end()
    }
}

/// How many findings there are of each severity, those that were counted and not kept too.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Counts {
    pub(crate) errors: u64,
    pub(crate) deviations: u64,
    pub(crate) notes: u64,
}

impl<'f> FromIterator<&'f Findings> for Counts {
    fn from_iter<I: IntoIterator<Item = &'f Findings>>(all: I) -> Self {
        let mut counts = Self::default();
        for findings in all {
            for finding in findings.list() {
                counts.add(finding.severity, 1);
            }
            for (rule, count) in findings.counts() {
                // What was not kept has its rule's severity.
                counts.add(rule.severity, count.saturating_sub(Findings::PER_RULE));
            }
        }
        counts
    }
}

impl Counts {
    fn add(&mut self, severity: Severity, number: u64) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Deviation => &mut self.deviations,
            Severity::Note => &mut self.notes,
        };
        *count = count.saturating_add(number);
    }
}

/// The colour of a severity.
pub(crate) fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => Style::Red,
        Severity::Deviation => Style::Yellow,
        Severity::Note => Style::Cyan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_of_one_rule() {
        let codes: HashSet<_> = all_rules().map(|rule| rule.code).collect();
        assert_eq!(codes.len(), all_rules().count());
    }
}
