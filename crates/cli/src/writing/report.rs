//! What would be written, and what has been: on stdout, or on stderr where stdout has the checkpoint.

use std::io::{self, Write};

use weigh::format::text::escaped;
use weigh::values::Tally;
use weigh::values::cast::Overflow;
use weigh::{CastReport, PlannedFile, RepairPlan, WritePlan, WriteReport};

use crate::findings::finding_json;
use crate::json::{Document, Json};
use crate::output::Style;
use crate::session::Session;
use crate::units;

/// Conversions with losses that are told one by one.
const SHOWN: usize = 10;

/// What a command has come to, as far as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'r> {
    pub(crate) command: &'static str,
    pub(crate) plan: Option<&'r WritePlan>,
    /// What the plan mends, where that is what it does.
    pub(crate) repair: Option<&'r RepairPlan>,
    /// What was done; nothing has been if there is none.
    pub(crate) written: Option<&'r WriteReport>,
}

impl Report<'_> {
    /// Of a command that has come to nothing so far.
    pub(crate) fn of(command: &'static str) -> Self {
        Self { command, plan: None, repair: None, written: None }
    }

    /// One JSON document, with the failures so far.
    pub(super) fn write_json(&self, session: &mut Session) -> io::Result<()> {
        let Self { command, plan, repair, written } = *self;
        let output = &mut session.output;
        let mut document = Document::begin_list(
            output,
            "weigh.write/1",
            |json| {
                json.key("command")?.text(command)?;
                json.key("written")?.boolean(written.is_some())?;
                let Some(plan) = plan else { return Ok(()) };
                json.key("bytes")?.number(plan.bytes())?;
                json.key("bytes_copied")?.number(plan.bytes_copied())?;
                json.key("bytes_converted")?.number(plan.bytes_converted())?;
                if let Some(written) = written {
                    json.key("seconds")?.value(&written.elapsed.as_secs_f64())?;
                }
                if let Some(index) = plan.index() {
                    json.key("index")?.text(&index.path.to_string_lossy())?;
                    json.key("replaces_index")?.boolean(index.replaces)?;
                }
                if let Some(repair) = repair {
                    write_repair(json, repair)?;
                }
                json.key("removed")?.array()?;
                for path in plan.removed() {
                    json.text(&path.to_string_lossy())?;
                }
                json.end_array()?;
                json.key("casts")?.array()?;
                for (number, planned) in plan.casts().iter().enumerate() {
                    json.line()?;
                    json.object()?;
                    json.key("name")?.text(&planned.name)?;
                    json.key("from")?.text(planned.cast.from().name())?;
                    json.key("to")?.text(planned.cast.to().name())?;
                    if let Some(cast) = written.and_then(|it| it.casts.get(number)) {
                        for (key, count) in counts(&cast.tally) {
                            json.key(key)?.number(count)?;
                        }
                    }
                    json.end_object()?;
                }
                json.end_array()
            },
            "files",
        )?;
        for file in plan.map(WritePlan::files).unwrap_or_default() {
            document.item(output, |json| {
                json.key("path")?.text(&file.path.to_string_lossy())?;
                json.key("bytes")?.number(file.bytes)?;
                json.key("header_bytes")?.number(file.header_bytes)?;
                json.key("tensors")?.number(file.tensors as u64)?;
                json.key("replaces")?.boolean(file.replaces)
            })?;
        }
        document.end(session)
    }

    /// Lines for people.
    pub(super) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(plan) = self.plan else { return Ok(()) };
        let is_done = self.written.is_some();
        let width = plan.files().iter().map(|file| shown_path(file).chars().count()).max();
        let width = width.unwrap_or_default();
        for file in plan.files() {
            let verb = verb(is_done, file.replaces);
            let bytes = units::bytes(file.bytes);
            let tensors = units::plural(file.tensors as u64, "tensor");
            writeln!(out, "{verb} {:width$}  {bytes:>9}  {tensors}", shown_path(file))?;
        }
        if let Some(index) = plan.index() {
            let verb = verb(is_done, index.replaces);
            writeln!(out, "{verb} {}", escaped(&index.path.to_string_lossy()))?;
        }
        for path in plan.removed() {
            let verb = if is_done { "removed" } else { "would remove" };
            writeln!(out, "{verb} {}", escaped(&path.to_string_lossy()))?;
        }
        let mut moved = Vec::new();
        if plan.bytes_copied() > 0 || plan.bytes_converted() == 0 {
            moved.push(format!("{} copied as they are", shown_bytes(plan.bytes_copied())));
        }
        if plan.bytes_converted() > 0 {
            let tensors = units::plural(plan.casts().len() as u64, "tensor");
            let bytes = shown_bytes(plan.bytes_converted());
            moved.push(format!("{bytes} of {tensors} converted"));
        }
        let moved = moved.join(", ");
        match self.written {
            Some(written) => writeln!(out, "{moved} in {:.2} s", written.elapsed.as_secs_f64()),
            None => writeln!(out, "{moved}"),
        }
    }

    /// Says on stderr what conversions have changed beyond rounding: each tensor that lost values, and how many
    /// values became 0 or are NaN in all.
    pub(super) fn warn(&self, session: &mut Session) {
        let casts = self.written.map(|it| it.casts.as_slice()).unwrap_or_default();
        let lost: Vec<&CastReport> =
            casts.iter().filter(|cast| is_worth_a_line(&cast.tally)).collect();
        for cast in lost.iter().take(SHOWN) {
            let (from, to) = (cast.cast.from(), cast.cast.to());
            let message = format!("{}: {from} to {to}: {}", cast.name, losses(&cast.tally));
            if is_loss(cast) {
                session.output.message("warning", Style::Yellow, &message, None);
            } else {
                // It is what was asked for.
                session.output.note(&message);
            }
        }
        let more = lost.len().saturating_sub(SHOWN) as u64;
        if more > 0 {
            let tensors = units::plural(more, "more tensor");
            session.output.note(&format!("{tensors} lost values; --json lists them all"));
        }
        let all: Tally = casts.iter().map(|cast| cast.tally).sum();
        let told = [(all.underflow, "became 0"), (all.nan, "are NaN")];
        for (count, what) in told.into_iter().filter(|(count, _)| *count > 0) {
            let (count, values) = (units::exact(count), units::exact(all.values));
            session.output.note(&format!("{count} of {values} values {what}"));
        }
    }
}

fn write_repair(json: &mut Json<impl Write>, repair: &RepairPlan) -> io::Result<()> {
    json.key("mended")?.array()?;
    for finding in repair.mended() {
        json.line()?;
        json.value(&finding_json(finding))?;
    }
    json.end_array()?;
    json.key("left_out")?.array()?;
    for span in repair.dropped() {
        json.numbers(&[span.start, span.end])?;
    }
    json.end_array()
}

fn shown_path(file: &PlannedFile) -> String {
    escaped(&file.path.to_string_lossy()).to_string()
}

fn verb(is_done: bool, replaces: bool) -> &'static str {
    match (is_done, replaces) {
        (true, false) => "wrote",
        (true, true) => "replaced",
        (false, false) => "would write",
        (false, true) => "would replace",
    }
}

/// Bytes for people, and exactly where that is not the same.
fn shown_bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return units::bytes(bytes);
    }
    format!("{} ({} bytes)", units::bytes(bytes), units::exact(bytes))
}

/// Whether values became something else than what was asked for.
pub(super) fn is_loss(cast: &CastReport) -> bool {
    let Tally { overflow, nan_lost, imaginary_lost, .. } = cast.tally;
    let is_out_of_range = overflow > 0 && cast.cast.overflow() == Overflow::Natural;
    is_out_of_range || nan_lost > 0 || imaginary_lost > 0
}

fn is_worth_a_line(tally: &Tally) -> bool {
    tally.overflow > 0 || tally.nan_lost > 0 || tally.imaginary_lost > 0
}

fn counts(tally: &Tally) -> [(&'static str, u64); 6] {
    [
        ("values", tally.values),
        ("overflow", tally.overflow),
        ("underflow", tally.underflow),
        ("nan", tally.nan),
        ("nan_lost", tally.nan_lost),
        ("imaginary_lost", tally.imaginary_lost),
    ]
}

fn losses(tally: &Tally) -> String {
    let told = [
        (tally.overflow, "out of range"),
        (tally.nan_lost, "NaN that it cannot hold"),
        (tally.imaginary_lost, "imaginary parts dropped"),
    ];
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> =
        told.map(|(count, what)| format!("{} {what}", units::exact(*count))).collect();
    format!("of {} values {}", units::exact(tally.values), told.join(", "))
}
