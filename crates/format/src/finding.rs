//! What was found wrong, or worth knowing, and what that means for the file.
//!
//! One parser records every [`Finding`] in [`Findings`]; a [`Policy`] only decides which of them
//! refuse the file (FORMAT.md §2). The other crates report in the same words.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::rule::Rule;
use crate::text::{self, shortened};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "the three severities of FORMAT.md §2")]
pub enum Severity {
    /// Legal, and worth knowing. Never refuses a file.
    Note,
    /// Against the format, yet every reader agrees on the content. Refuses under [`Policy::Strict`].
    Deviation,
    /// The file is unsound. Refuses under every policy.
    Error,
}

impl Severity {
    /// The word for it: `note`, `deviation`, `error`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Deviation => "deviation",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which findings refuse a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the two policies of FORMAT.md §2")]
pub enum Policy {
    /// Errors and deviations refuse: what `weigh check` asks.
    Strict,
    /// Errors refuse; deviations are reported and the file is read: what loading asks.
    Compatible,
}

impl Policy {
    /// Whether a finding of this severity refuses the file.
    #[must_use]
    pub fn refuses(self, severity: Severity) -> bool {
        match self {
            Self::Strict => severity >= Severity::Deviation,
            Self::Compatible => severity >= Severity::Error,
        }
    }
}

/// What the findings of a file add up to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "the three verdicts of FORMAT.md §2")]
pub enum Verdict {
    /// Nothing but notes.
    Valid,
    /// Readable, against the format in some way.
    ValidWithDeviations,
    /// Unsound.
    Invalid,
}

impl Verdict {
    /// The words for it: `valid`, `valid with deviations`, `invalid`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::ValidWithDeviations => "valid with deviations",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a finding is, as far as each part applies.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// The file, as the caller named it. Filled in by whoever knows it.
    pub file: Option<String>,
    /// The member of an archive.
    pub member: Option<String>,
    /// Bytes of the file, from its start.
    pub span: Option<Range<u64>>,
    /// The tensor's name, shortened when it is very long.
    pub tensor: Option<String>,
    /// The element of the tensor, in C order.
    pub element: Option<u64>,
}

/// A number or a text that shows the fault.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "what JSON and SARIF can carry")]
pub enum Evidence {
    /// A count, an offset, a size.
    Number(u64),
    /// Text from the file, not escaped, or a word of ours.
    Text(String),
}

impl From<u64> for Evidence {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Evidence {
    fn from(text: &str) -> Self {
        Self::Text(shortened(text).into_owned())
    }
}

impl From<String> for Evidence {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// A coded observation about a file.
///
/// `Display` gives one line, `severity[code]: message`, with text from the file escaped.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// How bad it is: the rule's severity, unless the rule says otherwise for this case.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// One line that says what is wrong, with the numbers. Text from the file in it is not escaped.
    pub message: String,
    /// The numbers and texts of the message, by name.
    pub evidence: Vec<(&'static str, Evidence)>,
    /// What to do next.
    pub help: Cow<'static, str>,
}

impl Finding {
    /// A finding of `rule`, of the rule's own severity and help.
    #[must_use]
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            place: Place::default(),
            message: message.into(),
            evidence: Vec::new(),
            help: Cow::Borrowed(rule.help),
        }
    }

    /// The same, at these bytes of the file.
    #[must_use]
    pub fn at(mut self, span: Range<u64>) -> Self {
        self.place.span = Some(span);
        self
    }

    /// The same, about this tensor.
    #[must_use]
    pub fn tensor(mut self, name: &str) -> Self {
        self.place.tensor = Some(shortened(name).into_owned());
        self
    }

    /// The same, saying this.
    #[must_use]
    pub(crate) fn says(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The same, in this file.
    #[must_use]
    pub fn file(mut self, file: &str) -> Self {
        self.place.file = Some(file.to_string());
        self
    }

    /// The same, with one more piece of evidence.
    #[must_use]
    pub fn with(mut self, name: &'static str, evidence: impl Into<Evidence>) -> Self {
        self.evidence.push((name, evidence.into()));
        self
    }

    /// The same, with another severity than the rule's.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same, with help that fits the case better than the rule's.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = help.into();
        self
    }

    /// The rule's stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.rule.code
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.rule.code, text::escaped(&self.message))
    }
}

/// Everything found in one file: a list that cannot outgrow the patience of who reads it.
///
/// At most [`Findings::PER_RULE`] findings of a rule are kept; the rest are counted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: Vec<(&'static Rule, u64)>,
    worst: Option<Severity>,
}

impl Findings {
    /// How many findings of one rule are kept.
    pub const PER_RULE: u64 = 1000;

    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a finding of `rule`; `make` is only called if it will be kept.
    pub fn report(&mut self, rule: &'static Rule, make: impl FnOnce() -> Finding) {
        let position = self.counts.iter().position(|(counted, _)| counted.code == rule.code);
        let count = match position.and_then(|position| self.counts.get_mut(position)) {
            Some((_, count)) => {
                *count = count.saturating_add(1);
                *count
            }
            None => {
                self.counts.push((rule, 1));
                1
            }
        };
        let severity = if count <= Self::PER_RULE {
            let finding = make();
            let severity = finding.severity;
            self.kept.push(finding);
            severity
        } else {
            rule.severity
        };
        self.worst = self.worst.max(Some(severity));
    }

    /// Records a finding that is already made.
    pub fn push(&mut self, finding: Finding) {
        self.report(finding.rule, || finding);
    }

    /// Puts `finding` in the place of the kept ones that `replaced` picks, at the front.
    pub fn replace(&mut self, replaced: impl Fn(&Finding) -> bool, finding: Finding) {
        let kept = core::mem::take(&mut self.kept);
        let counts = core::mem::take(&mut self.counts);
        self.worst = None;
        self.push(finding);
        for (rule, count) in counts {
            let of_rule = kept.iter().filter(|kept| kept.rule.code == rule.code);
            let stays = of_rule.clone().filter(|kept| !replaced(kept)).count();
            if stays == of_rule.count() {
                self.counts.push((rule, count));
            } else if stays > 0 {
                self.counts.push((rule, u64::try_from(stays).unwrap_or(u64::MAX)));
            }
        }
        for finding in kept {
            if !replaced(&finding) {
                self.worst = self.worst.max(Some(finding.severity));
                self.kept.push(finding);
            }
        }
    }

    /// Says of every finding which file it is in.
    pub fn in_file(&mut self, file: &str) {
        for finding in &mut self.kept {
            finding.place.file = Some(file.to_string());
        }
    }

    /// The findings that were kept, in the order they were made.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.kept
    }

    /// How many findings of each rule there were, kept or not.
    #[must_use]
    pub fn counts(&self) -> &[(&'static Rule, u64)] {
        &self.counts
    }

    /// How many findings there were that are not in [`Findings::list`].
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.counts
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(count.saturating_sub(Self::PER_RULE)))
    }

    /// The first finding of this code.
    #[must_use]
    pub fn first(&self, code: &str) -> Option<&Finding> {
        self.kept.iter().find(|finding| finding.rule.code == code)
    }

    /// The worst severity there is.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.worst
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.worst.is_none()
    }

    /// What they add up to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.worst {
            None | Some(Severity::Note) => Verdict::Valid,
            Some(Severity::Deviation) => Verdict::ValidWithDeviations,
            Some(Severity::Error) => Verdict::Invalid,
        }
    }

    /// Whether `policy` refuses the file.
    #[must_use]
    pub fn refused_by(&self, policy: Policy) -> bool {
        self.worst.is_some_and(|worst| policy.refuses(worst))
    }
}

/// `1 byte`, `2 bytes`.
pub(crate) fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_string() } else { alloc::format!("{count} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule;
    use alloc::format;

    fn finding(rule: &'static Rule) -> Finding {
        Finding::new(rule, "message")
    }

    #[test]
    fn a_verdict_is_the_worst_severity() {
        let mut findings = Findings::new();
        assert_eq!(findings.verdict(), Verdict::Valid);
        findings.push(finding(&rule::MISALIGNED));
        assert_eq!(findings.verdict(), Verdict::Valid);
        findings.push(finding(&rule::HEADER_LEADING_SPACE));
        assert_eq!(findings.verdict(), Verdict::ValidWithDeviations);
        assert!(findings.refused_by(Policy::Strict) && !findings.refused_by(Policy::Compatible));
        findings.push(finding(&rule::DATA_GAP));
        assert_eq!(findings.verdict(), Verdict::Invalid);
        assert!(findings.refused_by(Policy::Compatible));
    }

    #[test]
    fn the_thousand_and_first_is_counted_not_made() {
        let mut findings = Findings::new();
        for count in 0..1002 {
            findings.report(&rule::DATA_GAP, || {
                assert!(count < 1000, "made finding {count}");
                finding(&rule::DATA_GAP)
            });
        }
        assert_eq!((findings.list().len(), findings.dropped()), (1000, 2));
        assert_eq!(findings.counts(), [(&rule::DATA_GAP, 1002)]);
    }

    #[test]
    fn replacing_takes_the_place_and_the_verdict() {
        let mut findings = Findings::new();
        findings.push(finding(&rule::JSON_SYNTAX));
        findings.push(finding(&rule::MISALIGNED));
        findings
            .replace(|old| old.rule.code == "json-syntax", finding(&rule::HEADER_LEADING_SPACE));
        let codes: Vec<_> = findings.list().iter().map(Finding::code).collect();
        assert_eq!(codes, ["header-leading-space", "misaligned"]);
        assert_eq!(findings.worst(), Some(Severity::Deviation));
        assert!(findings.first("json-syntax").is_none());
    }

    #[test]
    fn text_from_a_file_is_escaped_and_short() {
        let long = "é".repeat(1000);
        let finding = Finding::new(&rule::DATA_GAP, "a\u{1b}[31m\u{202e}").tensor(&long);
        assert_eq!(format!("{finding}"), "error[data-gap]: a\\u001b[31m\\u202e");
        assert_eq!(finding.place.tensor.unwrap().len(), 200 + '…'.len_utf8());
    }
}
