//! What `weigh bench` says.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use weigh::Survey;
use weigh::io::policy::{Choice, Direct, Facts};

use super::{Measured, Run};
use crate::json::Json;
use crate::session::Session;
use crate::units;

pub(super) fn write_text(
    session: &mut Session,
    survey: &Survey,
    measured: &Measured,
    explain: bool,
) -> Result<()> {
    let path = weigh::format::text::escaped(&survey.path().to_string_lossy()).to_string();
    let out = session.output.data();
    let (tensors, files) =
        (units::plural(measured.tensors, "tensor"), units::plural(measured.files, "file"));
    writeln!(out, "{path}: {tensors}, {} in {files}", units::bytes(measured.bytes))?;
    if explain {
        write_explanation(out, measured)?;
    }
    let header =
        ["run", "seconds", "GB/s", "requests", "read", "faults", "resident"].map(String::from);
    let mut rows = vec![header];
    rows.extend(measured.runs.iter().enumerate().map(|(number, run)| {
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "?".into());
        let faults = run.minor_faults.zip(run.major_faults);
        [
            (number + 1).to_string(),
            format!("{:.3}", run.elapsed.as_secs_f64()),
            format!("{:.2}", rate(measured.bytes, run.elapsed) / 1e9),
            units::exact(run.requests),
            units::bytes(run.bytes_read),
            or_unknown(faults.map(|(minor, major)| format!("{}+{major}", units::exact(minor)))),
            or_unknown(run.resident.map(units::bytes)),
        ]
    }));
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in &rows {
        let mut line = String::from("  ");
        for (width, cell) in widths.into_iter().zip(row) {
            let _ = write!(line, "{cell:>width$}  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    let mut said = HashSet::new();
    for note in measured.runs.iter().flat_map(|run| &run.notes) {
        if said.insert(note) {
            session.output.note(note);
        }
    }
    Ok(())
}

fn write_explanation(out: &mut impl Write, measured: &Measured) -> io::Result<()> {
    // Of the last run: the first may have left in the page cache what was not there.
    let Some(Run { facts, choice, .. }) = measured.runs.last() else { return Ok(()) };
    writeln!(out, "  known: {}", known(facts))?;
    writeln!(out, "  picked: {}", picked(choice))?;
    for reason in &choice.reasons {
        writeln!(out, "  because: {reason}")?;
    }
    Ok(())
}

fn known(facts: &Facts) -> String {
    let wanted = units::bytes(facts.wanted);
    let cached = match facts.cached {
        Some(cached) => format!("{} of {wanted} cached", units::bytes(cached)),
        None => format!("{wanted}, not known what is cached"),
    };
    let mut known =
        vec![format!("{} ({})", facts.file_system.name, facts.file_system.kind.name()), cached];
    if let Some(memory) = facts.memory {
        known.push(format!("{} of memory free", units::bytes(memory.available)));
    }
    known.push(units::plural(facts.cores as u64, "core"));
    known.join(", ")
}

fn picked(choice: &Choice) -> String {
    let direct = match choice.direct {
        Direct::Never => "through the page cache",
        Direct::Always => "past the page cache",
        Direct::Probe => "past the page cache if that is faster",
    };
    let mut threads = units::plural(choice.threads as u64, "thread");
    if choice.depth > 1 {
        threads = format!("{threads} with {} requests each", choice.depth);
    }
    let (request, gap) = (units::bytes(choice.request_bytes), units::bytes(choice.gap_bytes));
    let pages = if choice.huge_pages { "huge pages" } else { "small pages" };
    let backend = choice.backend.name();
    format!("{backend} {direct}, {threads}, requests up to {request}, gaps up to {gap}, {pages}")
}

/// Bytes a second.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / elapsed.as_secs_f64().max(1e-9)
}

/// What the document says of a checkpoint.
pub(super) fn write_json(json: &mut Json<impl Write>, measured: &Measured) -> io::Result<()> {
    json.key("tensors")?.number(measured.tensors)?;
    json.key("bytes")?.number(measured.bytes)?;
    json.key("runs")?.array()?;
    for run in &measured.runs {
        json.line()?;
        json.object()?;
        write_run(json, run)?;
        json.end_object()?;
    }
    json.end_array()
}

fn write_facts(json: &mut Json<impl Write>, facts: &Facts) -> io::Result<()> {
    json.key("facts")?.object()?;
    json.key("file_system")?.text(facts.file_system.name)?;
    json.key("file_system_kind")?.text(facts.file_system.kind.name())?;
    json.key("cached_bytes")?.number_or_null(facts.cached)?;
    json.key("available_memory")?.number_or_null(facts.memory.map(|memory| memory.available))?;
    json.key("cores")?.number(facts.cores as u64)?;
    json.end_object()
}

fn write_choice(json: &mut Json<impl Write>, choice: &Choice) -> io::Result<()> {
    json.key("choice")?.object()?;
    json.key("backend")?.text(choice.backend.name())?;
    json.key("direct")?.text(choice.direct.name())?;
    json.key("threads")?.number(choice.threads as u64)?;
    json.key("depth")?.number(choice.depth as u64)?;
    json.key("request_bytes")?.number(choice.request_bytes)?;
    json.key("gap_bytes")?.number(choice.gap_bytes)?;
    json.key("huge_pages")?.boolean(choice.huge_pages)?;
    json.key("reasons")?.array()?;
    for reason in &choice.reasons {
        json.text(&reason.to_string())?;
    }
    json.end_array()?;
    json.end_object()
}

fn write_run(json: &mut Json<impl Write>, run: &Run) -> io::Result<()> {
    write_facts(json, &run.facts)?;
    write_choice(json, &run.choice)?;
    let nanoseconds = u64::try_from(run.elapsed.as_nanos()).unwrap_or(u64::MAX);
    json.key("nanoseconds")?.number(nanoseconds)?;
    json.key("requests")?.number(run.requests)?;
    json.key("bytes_read")?.number(run.bytes_read)?;
    json.key("minor_faults")?.number_or_null(run.minor_faults)?;
    json.key("major_faults")?.number_or_null(run.major_faults)?;
    json.key("resident_bytes")?.number_or_null(run.resident)?;
    json.key("notes")?.array()?;
    for note in &run.notes {
        json.text(note)?;
    }
    json.end_array()
}
