//! A log of SARIF 2.1.0, for code scanning.
//!
//! An error is of level `error`, a deviation `warning`, a note `note`. What could not be read, and findings
//! that were counted and not kept, are notifications of the invocation. Text from a file is escaped inside of
//! the JSON as well: a viewer shows it on a page.

use std::io::{self, Write};
use std::path::Path;

use weigh::format::text::escaped;
use weigh::format::{Finding, Rule, Severity};

use crate::findings::evidence_json;
use crate::json::Json;
use crate::session::{Failure, Session};

/// A log that is being written.
pub(crate) struct Log {
    rules: Vec<&'static Rule>,
    results: bool,
    artifacts: Vec<Artifact>,
    /// Of each file with findings that were not kept: how many.
    dropped: Vec<(String, u64)>,
}

/// A file that was looked at.
struct Artifact {
    uri: String,
    length: Option<u64>,
    verdict: Option<&'static str>,
}

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

impl Log {
    /// A log of findings of these rules.
    pub(crate) fn new(rules: impl Iterator<Item = &'static Rule>) -> Self {
        Self { rules: rules.collect(), results: false, artifacts: Vec::new(), dropped: Vec::new() }
    }

    /// Writes what comes before the results.
    pub(crate) fn begin(&self, session: &mut Session) -> anyhow::Result<()> {
        let mut json = Json::new(session.output.data());
        json.object()?;
        json.key("$schema")?.text(SCHEMA)?;
        json.key("version")?.text("2.1.0")?;
        json.key("runs")?.array()?;
        json.object()?;
        json.key("tool")?.object()?;
        json.key("driver")?.object()?;
        json.key("name")?.text("weigh")?;
        json.key("version")?.text(env!("CARGO_PKG_VERSION"))?;
        json.key("rules")?.array()?;
        for rule in &self.rules {
            json.line()?;
            write_rule(&mut json, rule)?;
        }
        json.end_array()?;
        json.end_object()?;
        json.end_object()?;
        json.key("results")?.array()?;
        Ok(())
    }

    /// Writes what was found in a file.
    pub(crate) fn results<'f>(
        &mut self,
        session: &mut Session,
        path: &Path,
        findings: impl Iterator<Item = &'f Finding>,
        dropped: u64,
    ) -> anyhow::Result<()> {
        let uri = uri(path);
        for finding in findings {
            let mut json = Json::after(session.output.data(), self.results);
            self.results = true;
            json.line()?;
            write_result(&mut json, finding, &uri, &self.rules)?;
        }
        if dropped > 0 {
            self.dropped.push((uri, dropped));
        }
        Ok(())
    }

    /// Remembers a file that was looked at.
    pub(crate) fn artifact(
        &mut self,
        path: &Path,
        length: Option<u64>,
        verdict: Option<&'static str>,
    ) {
        self.artifacts.push(Artifact { uri: uri(path), length, verdict });
    }

    /// Writes what comes after the results.
    pub(crate) fn end(&self, session: &mut Session) -> anyhow::Result<()> {
        let failures = std::mem::take(&mut session.failures);
        let exit_code = u64::from(session.exit_code());
        let mut json = Json::after(session.output.data(), true);
        json.end_array()?;
        json.key("artifacts")?.array()?;
        for artifact in &self.artifacts {
            json.line()?;
            write_artifact(&mut json, artifact)?;
        }
        json.end_array()?;
        json.key("invocations")?.array()?;
        json.object()?;
        json.key("executionSuccessful")?.boolean(failures.is_empty())?;
        json.key("exitCode")?.number(exit_code)?;
        json.key("toolExecutionNotifications")?.array()?;
        for failure in &failures {
            json.line()?;
            write_failure(&mut json, failure)?;
        }
        for (uri, dropped) in &self.dropped {
            json.line()?;
            let text = format!("{dropped} more findings were counted, not kept");
            write_notification(&mut json, "warning", "findings-not-kept", &text, Some(uri))?;
        }
        json.end_array()?;
        json.end_object()?;
        json.end_array()?;
        json.end_object()?;
        json.end_array()?;
        json.end_object()?;
        json.end_line()?;
        Ok(())
    }
}

fn write_rule(json: &mut Json<impl Write>, rule: &Rule) -> io::Result<()> {
    json.object()?;
    json.key("id")?.text(rule.code)?;
    write_message(json, "shortDescription", rule.summary)?;
    write_message(json, "help", rule.help)?;
    json.key("defaultConfiguration")?.object()?;
    json.key("level")?.text(level(rule.severity))?;
    json.end_object()?;
    json.key("properties")?.object()?;
    json.key("id")?.text(rule.id)?;
    json.end_object()?;
    json.end_object()
}

fn write_result(
    json: &mut Json<impl Write>,
    finding: &Finding,
    uri: &str,
    rules: &[&Rule],
) -> io::Result<()> {
    json.object()?;
    json.key("ruleId")?.text(finding.code())?;
    if let Some(index) = rules.iter().position(|rule| rule.code == finding.code()) {
        json.key("ruleIndex")?.number(index as u64)?;
    }
    json.key("level")?.text(level(finding.severity))?;
    write_message(json, "message", &finding.message)?;
    json.key("locations")?.array()?;
    json.object()?;
    json.key("physicalLocation")?.object()?;
    write_artifact_location(json, "artifactLocation", uri)?;
    if let Some((offset, length)) = region(finding) {
        json.key("region")?.object()?;
        json.key("byteOffset")?.number(offset)?;
        json.key("byteLength")?.number(length)?;
        json.end_object()?;
    }
    json.end_object()?;
    let place = &finding.place;
    let named = place.tensor.as_ref().map(|tensor| (tensor, "tensor"));
    if let Some((name, kind)) = named.or(place.member.as_ref().map(|member| (member, "member"))) {
        json.key("logicalLocations")?.array()?;
        json.object()?;
        json.key("fullyQualifiedName")?.text(&escaped(name).to_string())?;
        json.key("kind")?.text(kind)?;
        json.end_object()?;
        json.end_array()?;
    }
    json.end_object()?;
    json.end_array()?;
    json.key("properties")?.object()?;
    json.key("help")?.text(&finding.help)?;
    json.key("evidence")?.value(&evidence_json(finding))?;
    json.end_object()?;
    json.end_object()
}

fn write_artifact(json: &mut Json<impl Write>, artifact: &Artifact) -> io::Result<()> {
    json.object()?;
    write_artifact_location(json, "location", &artifact.uri)?;
    if let Some(length) = artifact.length.filter(|length| is_sarif_integer(*length)) {
        json.key("length")?.number(length)?;
    }
    json.key("roles")?.array()?;
    json.text("analysisTarget")?;
    json.end_array()?;
    json.key("properties")?.object()?;
    match artifact.verdict {
        Some(verdict) => json.key("verdict")?.text(verdict)?,
        None => json.key("verdict")?.null()?,
    }
    json.end_object()?;
    json.end_object()
}

fn write_failure(json: &mut Json<impl Write>, failure: &Failure) -> io::Result<()> {
    let uri = (!failure.path.is_empty()).then(|| uri(Path::new(&failure.path)));
    write_notification(json, "error", failure.code, &failure.message, uri.as_deref())
}

fn write_notification(
    json: &mut Json<impl Write>,
    level: &str,
    code: &str,
    text: &str,
    uri: Option<&str>,
) -> io::Result<()> {
    json.object()?;
    json.key("descriptor")?.object()?;
    json.key("id")?.text(code)?;
    json.end_object()?;
    json.key("level")?.text(level)?;
    write_message(json, "message", text)?;
    if let Some(uri) = uri {
        json.key("locations")?.array()?;
        json.object()?;
        json.key("physicalLocation")?.object()?;
        write_artifact_location(json, "artifactLocation", uri)?;
        json.end_object()?;
        json.end_object()?;
        json.end_array()?;
    }
    json.end_object()
}

fn write_artifact_location(
    json: &mut Json<impl Write>,
    key: &'static str,
    uri: &str,
) -> io::Result<()> {
    json.key(key)?.object()?;
    json.key("uri")?.text(uri)?;
    json.end_object()
}

/// A message in plain text. What SARIF would read as a link stays text.
fn write_message(json: &mut Json<impl Write>, key: &'static str, text: &str) -> io::Result<()> {
    let mut text = escaped(text).to_string();
    if text.contains("](") {
        text = text.replace('[', "\\[").replace(']', "\\]");
    }
    json.key(key)?.object()?;
    json.key("text")?.text(&text)?;
    json.end_object()
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Deviation => "warning",
        Severity::Note => "note",
    }
}

/// Where in the file, if SARIF's integers can say it.
fn region(finding: &Finding) -> Option<(u64, u64)> {
    let span = finding.place.span.as_ref()?;
    let length = span.end.checked_sub(span.start)?;
    is_sarif_integer(span.end).then_some((span.start, length))
}

/// Readers of SARIF keep integers in 64 bits with a sign.
fn is_sarif_integer(number: u64) -> bool {
    i64::try_from(number).is_ok()
}

/// A path as a URI reference: relative as it is, absolute as `file://`; every byte that could mean
/// something else is encoded.
fn uri(path: &Path) -> String {
    let mut uri = String::from(if path.has_root() { "file://" } else { "" });
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) && path.is_absolute() && !bytes.starts_with(b"\\") {
        uri.push('/');
    }
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => {
                uri.push('%');
                uri.extend([byte >> 4, byte & 15].map(|digit| HEXADECIMAL[usize::from(digit)]));
            }
        }
    }
    uri
}

const HEXADECIMAL: [char; 16] =
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn no_byte_of_a_path_can_mean_something_else_in_a_uri() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        for (path, want) in [
            (&b"model.safetensors"[..], "model.safetensors"),
            (b"a/b-c_d~e", "a/b-c_d~e"),
            (b"/models/a", "file:///models/a"),
            (b"../a b", "../a%20b"),
            (b"javascript:x", "javascript%3Ax"),
            (b"a?b#c%41", "a%3Fb%23c%2541"),
            (b"\xff\n\x1b", "%FF%0A%1B"),
            ("é\u{202e}".as_bytes(), "%C3%A9%E2%80%AE"),
            (b"a\\b", "a%5Cb"),
        ] {
            assert_eq!(uri(Path::new(OsStr::from_bytes(path))), want);
        }
    }

    #[test]
    fn places_beyond_the_integers_of_sarif_are_left_out() {
        let at = |span| region(&Finding::new(&weigh::format::rule::DATA_GAP, "").at(span));
        let most = u64::try_from(i64::MAX).unwrap();
        assert_eq!(at(0..0), Some((0, 0)));
        assert_eq!(at(8..most), Some((8, most - 8)));
        assert_eq!(at(8..most + 1), None);
    }
}
