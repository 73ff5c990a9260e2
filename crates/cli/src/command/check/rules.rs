//! `weigh check --rules` and `--explain`: the table of rules that every check goes by.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use weigh::format::{Policy, Rule};

use super::Format;
use crate::findings::{FORMAT_RULES, all_rules, scan_rules, style};
use crate::json::Json;
use crate::listing::nearest::nearest;
use crate::output::Style;
use crate::session::{Outcome, Session};

/// A rule as JSON has it.
#[derive(Serialize)]
struct RuleJson {
    id: &'static str,
    code: &'static str,
    severity: &'static str,
    summary: &'static str,
    help: &'static str,
}

/// Prints all rules.
pub(super) fn print(format: Format, session: &mut Session) -> anyhow::Result<()> {
    match format {
        Format::Text => table(session),
        Format::Json => json(&all_rules().collect::<Vec<_>>(), session),
        Format::Markdown => markdown(session),
        Format::Sarif => Err(not_for_rules(format)),
    }
}

/// Prints the rules of a code or an id.
pub(super) fn explain(asked: &str, format: Format, session: &mut Session) -> anyhow::Result<()> {
    let same = |rule: &&'static Rule| rule.code == asked || rule.id.eq_ignore_ascii_case(asked);
    let rules: Vec<&'static Rule> = all_rules().filter(same).collect();
    if rules.is_empty() {
        let help = match nearest(asked, all_rules().map(|rule| rule.code)).as_slice() {
            [] => "--rules lists them all.".to_string(),
            near => format!("Did you mean `{}`? --rules lists them all.", near.join("`, `")),
        };
        let message = format!("no rule has the code or id `{asked}`");
        session.output.error(&message, Some(&help));
        session.came_to(Outcome::Failed);
        return Ok(());
    }
    match format {
        Format::Text => text(&rules, session),
        Format::Json => json(&rules, session),
        Format::Sarif | Format::Markdown => Err(not_for_rules(format)),
    }
}

fn not_for_rules(format: Format) -> anyhow::Error {
    let format = format.to_possible_value();
    let name = format.as_ref().map_or("it", clap::builder::PossibleValue::get_name);
    anyhow::anyhow!("--format {name} is not for rules; give text or json")
}

fn table(session: &mut Session) -> anyhow::Result<()> {
    let width = |cell: fn(&Rule) -> &str| all_rules().map(|rule| cell(rule).chars().count()).max();
    let ids = width(|rule| rule.id).unwrap_or_default();
    let codes = width(|rule| rule.code).unwrap_or_default();
    let taken = ids + codes + 9 + 6;
    for rule in all_rules() {
        let severity = session.output.styled(style(rule.severity), format!("{:<9}", rule.severity));
        let Rule { id, code, summary, .. } = rule;
        let label = format!("{id:<ids$}  {code:<codes$}  {severity}  ");
        session.output.write_hanging([0, taken], &label, taken, summary)?;
    }
    Ok(())
}

fn text(rules: &[&Rule], session: &mut Session) -> anyhow::Result<()> {
    for (number, rule) in rules.iter().enumerate() {
        let blank = if number == 0 { "" } else { "\n" };
        let code = session.output.styled(Style::Bold, rule.code);
        let severity = session.output.styled(style(rule.severity), rule.severity);
        let is_of_format = FORMAT_RULES.iter().any(|of_format| of_format.code == rule.code);
        let refused_by = match (
            Policy::Compatible.refuses(rule.severity),
            Policy::Strict.refuses(rule.severity),
        ) {
            _ if !is_of_format => "of `weigh scan`",
            (true, _) => "refuses a file under either policy",
            (_, true) => "refuses a file under the strict policy",
            _ => "refuses a file with --deny note alone",
        };
        let out = session.output.data();
        writeln!(out, "{blank}{code} ({}): {severity}, {refused_by}", rule.id)?;
        session.output.write_hanging([2, 8], "rule: ", 6, rule.summary)?;
        session.output.write_hanging([2, 8], "help: ", 6, rule.help)?;
    }
    Ok(())
}

fn json(rules: &[&'static Rule], session: &mut Session) -> anyhow::Result<()> {
    let mut json = Json::new(session.output.data());
    json.object()?;
    json.key("schema")?.text("weigh.rules/1")?;
    json.key("rules")?.array()?;
    for rule in rules {
        json.line()?;
        json.value(&RuleJson {
            id: rule.id,
            code: rule.code,
            severity: rule.severity.name(),
            summary: rule.summary,
            help: rule.help,
        })?;
    }
    json.end_array()?;
    json.end_object()?;
    json.end_line()?;
    Ok(())
}

/// The page `docs/rules.md`.
fn markdown(session: &mut Session) -> anyhow::Result<()> {
    let out = session.output.data();
    out.write_all(PAGE.as_bytes())?;
    write_rows(out, FORMAT_RULES.iter().copied())?;
    out.write_all(SCAN.as_bytes())?;
    write_rows(out, scan_rules())?;
    Ok(())
}

fn write_rows(
    out: &mut impl Write,
    rules: impl Iterator<Item = &'static Rule>,
) -> anyhow::Result<()> {
    out.write_all(HEAD.as_bytes())?;
    for rule in rules {
        let Rule { id, code, severity, summary, help, .. } = rule;
        writeln!(out, "| {id} | `{code}` | {severity} | {summary} | {help} |")?;
    }
    Ok(())
}

const PAGE: &str = "\
# Rules

What `weigh check` looks for. An *error* makes a file invalid. A *deviation* is against the format, yet every
reader agrees on the content: `weigh check` refuses it and loading does not. A *note* is worth knowing and
refuses nothing. The severity is the usual one; a finding says its own. Ids are those of the format's text.

This page is made: `weigh check --rules --format markdown > docs/rules.md`.

";

const SCAN: &str = "
## Torch checkpoints, and what lies beside weights

What `weigh scan` looks for. Its verdict does not follow from severities: see [scan.md](scan.md).

";

const HEAD: &str = "\
| id | code | severity | rule | what to do |
|---|---|---|---|---|
";
