//! `weigh check`: the structure of files, and whether that refuses them.
//!
//! Every file gets a verdict: *valid*, *valid with deviations* or *invalid*. The policy and `--deny` do not
//! change it; they decide which findings refuse, and so the exit code. A file that could not be read has no
//! verdict, and neither has a checkpoint that it belongs to, unless another file makes that invalid.

mod json;
mod rules;
mod sarif;
mod text;

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};
use weigh::format::header::Inspection;
use weigh::format::{Finding, Findings, Policy, Severity, Verdict};
use weigh::{Layout, Survey, SurveyedShard};

use crate::output::Writing;
use crate::session::{Failure, Outcome, Session};

/// Check the structure of files, strictly.
///
/// Only headers and indexes are read. For each file a line with its verdict: `valid`, `valid with deviations`
/// (against the format, yet every reader agrees on the content) or `invalid`; and what was found, where, and
/// what to do about it. A folder with several checkpoints has all of them checked.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// Files, folders or shard indexes
    #[arg(value_name = "PATH", required_unless_present_any = ["rules", "explain"])]
    paths: Vec<OsString>,
    /// Which findings refuse a file
    #[arg(long, value_enum, default_value_t = PolicyName::Strict, value_name = "POLICY")]
    policy: PolicyName,
    /// The least finding that refuses a file, if the policy would let it pass
    #[arg(long, value_enum, value_name = "SEVERITY")]
    deny: Option<Deny>,
    /// Show notes one by one, not their number (`--deny note` does too)
    #[arg(long)]
    notes: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print the rules instead: id, code, severity, what each asks
    #[arg(long, conflicts_with_all = ["paths", "explain", "policy", "deny", "notes"])]
    rules: bool,
    /// Print what a rule asks and what to do about its findings; CODE as in `data-gap`, or an id, as in `T9`
    #[arg(long, value_name = "CODE", conflicts_with_all = ["paths", "policy", "deny", "notes"])]
    explain: Option<String>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 nothing refused; 1 something refused; 2 usage, or something not read; 2 wins.

What refuses a file:   error   deviation             note
  --policy strict      yes     yes                   with --deny note
  --policy compatible  yes     with --deny deviation with --deny note
                               or --deny note";

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum PolicyName {
    /// Errors and deviations refuse
    Strict,
    /// Errors refuse, as in loading
    Compatible,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Deny {
    /// Deviations refuse, under either policy
    Deviation,
    /// Notes and deviations refuse, under either policy
    Note,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// One document, `weigh.check/1`
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// The page docs/rules.md
    #[value(hide = true)]
    Markdown,
}

/// Which findings refuse, and by which words that was asked for.
#[derive(Clone, Copy, Debug)]
struct Judge {
    policy: PolicyName,
    /// The least severity that refuses.
    refuses: Severity,
}

impl Judge {
    fn new(policy: PolicyName, deny: Option<Deny>) -> Self {
        let by_policy = [Severity::Note, Severity::Deviation, Severity::Error]
            .into_iter()
            .find(|&severity| policy.policy().refuses(severity));
        let denied = deny.map(|deny| match deny {
            Deny::Deviation => Severity::Deviation,
            Deny::Note => Severity::Note,
        });
        let refuses = by_policy.into_iter().chain(denied).min();
        Self { policy, refuses: refuses.unwrap_or(Severity::Error) }
    }

    fn refuses(self, findings: &[&Findings]) -> bool {
        findings.iter().any(|findings| findings.worst().is_some_and(|worst| worst >= self.refuses))
    }
}

impl PolicyName {
    fn policy(self) -> Policy {
        match self {
            Self::Strict => Policy::Strict,
            Self::Compatible => Policy::Compatible,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Compatible => "compatible",
        }
    }
}

/// A checkpoint, judged.
struct Checked<'s> {
    survey: &'s Survey,
    /// The index and the set of files, where there is more than one file to hold together.
    set: Option<Part<'s>>,
    files: Vec<(&'s SurveyedShard, Part<'s>)>,
    /// Of the whole; `None` if that could not be found out.
    verdict: Option<Verdict>,
    refused: bool,
}

/// A file, or what holds the files of a checkpoint together, judged.
struct Part<'s> {
    path: &'s Path,
    findings: Vec<&'s Findings>,
    /// `None` if something of it could not be read.
    verdict: Option<Verdict>,
    refused: bool,
}

impl<'s> Checked<'s> {
    fn new(survey: &'s Survey, judge: Judge) -> Self {
        let files: Vec<_> = survey
            .shards()
            .iter()
            .filter(|shard| shard.inspection().is_some() || shard.failure().is_some())
            .map(|shard| {
                let findings = shard.inspection().map(Inspection::findings);
                let could_read = findings.is_some();
                let findings = findings.into_iter().collect();
                (shard, Part::new(shard.path(), findings, could_read, judge))
            })
            .collect();
        let whole = survey.failures().next().is_none();
        let set = (survey.layout() != Layout::File).then(|| {
            let path = survey.index_path().unwrap_or(survey.path());
            Part::new(path, survey.set_findings().collect(), whole, judge)
        });
        let verdict = Some(survey.verdict()).filter(|it| whole || *it == Verdict::Invalid);
        let mut parts = files.iter().map(|(_, part)| part).chain(&set);
        let refused = parts.any(|part| part.refused);
        Self { survey, set, files, verdict, refused }
    }

    /// The index and the set first, then the files.
    fn parts(&self) -> impl Iterator<Item = &Part<'s>> {
        self.set.iter().chain(self.files.iter().map(|(_, part)| part))
    }
}

impl<'s> Part<'s> {
    /// Judges by findings; only a `whole` part, all of which could be read, can come out better than invalid.
    fn new(path: &'s Path, findings: Vec<&'s Findings>, whole: bool, judge: Judge) -> Self {
        let verdict = findings.iter().map(|it| it.verdict()).max();
        let verdict = verdict.unwrap_or(Verdict::Valid);
        let refused = judge.refuses(&findings);
        Self {
            path,
            findings,
            verdict: Some(verdict).filter(|it| whole || *it == Verdict::Invalid),
            refused,
        }
    }

    fn list(&self) -> impl Iterator<Item = &'s Finding> {
        self.findings.iter().flat_map(|findings| findings.list())
    }

    /// How many findings were counted and not kept.
    fn dropped(&self) -> u64 {
        let dropped = self.findings.iter().map(|findings| findings.dropped());
        dropped.fold(0, u64::saturating_add)
    }
}

/// A form that the report can take.
trait Report {
    /// Writes what comes before the first checkpoint.
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()>;
    /// Writes what was found in a checkpoint.
    fn checkpoint(&mut self, session: &mut Session, checked: &Checked<'_>) -> anyhow::Result<()>;
    /// Writes what comes after the last.
    fn end(&mut self, session: &mut Session) -> anyhow::Result<()>;
}

pub(crate) fn run(args: &Check, session: &mut Session) -> anyhow::Result<()> {
    let format = if args.json { Format::Json } else { args.format };
    if let Some(code) = &args.explain {
        return rules::explain(code, format, session);
    }
    if args.rules {
        return rules::print(format, session);
    }
    session.gives_verdict = true;
    let judge = Judge::new(args.policy, args.deny);
    let mut report: Box<dyn Report> = match format {
        Format::Text => Box::new(text::Text::new(judge, args.notes)),
        Format::Json | Format::Sarif if args.notes => {
            anyhow::bail!("--notes is for text; the other formats have every note")
        }
        Format::Json => Box::new(json::Json::new(judge)),
        Format::Sarif => Box::new(sarif::Sarif::default()),
        Format::Markdown => anyhow::bail!("--format markdown is for --rules"),
    };
    let mut writing = Writing::default();
    writing.keep(report.begin(session))?;
    session.each_survey(&args.paths, |session, survey, selector| {
        if let Some(selector) = selector {
            session.failed(not_taken(survey.path(), selector));
            return Ok(());
        }
        let mut judge_one = |session: &mut Session, survey: &Survey| {
            let checked = Checked::new(survey, judge);
            if checked.refused {
                session.came_to(Outcome::Finding);
            }
            if writing.is_open() {
                writing.keep(report.checkpoint(session, &checked))?;
            }
            session.report_failures(survey);
            anyhow::Ok(())
        };
        judge_one(session, survey)?;
        // Loaders disagree on which files of a folder they take, so those beside an index are checked too.
        for file in survey.beside() {
            for found in weigh::find(file)? {
                match session.survey(&found) {
                    Ok(survey) => judge_one(session, &survey)?,
                    Err(error) => session.failed(&error),
                }
            }
        }
        Ok(())
    })?;
    if writing.is_open() {
        writing.keep(report.end(session))?;
    }
    writing.end()
}

/// A selector is not taken: a verdict on some of the tensors of a file would say nothing of the file.
fn not_taken(path: &Path, selector: &str) -> Failure {
    let path = path.to_string_lossy().into_owned();
    Failure {
        code: "selector-not-taken",
        message: format!("{path}: files are checked whole, not the tensors `{selector}`"),
        help: Some("Give the path alone.".into()),
        path,
    }
}
