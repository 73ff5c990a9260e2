//! What would change in which file, and what has.

use std::io::{self, Write};
use std::time::Duration;

use weigh::format::order;
use weigh::format::text::escaped;
use weigh::{MetadataChange, MetadataPlan, PlannedMetadata};

use super::SCHEMA;
use crate::json::{Document, Json};
use crate::metadata::{cut, value_or_quotes};
use crate::output::{Output, Style};
use crate::session::Session;
use crate::units;

/// Keys that are told one by one, for each file.
const SHOWN: usize = 50;

/// Columns of a key, and of a value.
const WIDTH: usize = 60;

/// What a command has come to, as far as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'r> {
    pub(super) action: &'static str,
    pub(super) plan: Option<&'r MetadataPlan<'r>>,
    /// How long it took; nothing has been written if there is none.
    pub(super) written: Option<Duration>,
    pub(super) is_dry: bool,
    /// How many files were changed, if not all of them were.
    pub(super) files_written: usize,
}

impl Report<'_> {
    /// One JSON document, with the failures so far.
    pub(super) fn write_json(&self, session: &mut Session) -> io::Result<()> {
        let output = &mut session.output;
        let begin = |json: &mut Json<_>| self.write_own(json);
        let mut document = Document::begin_list(output, SCHEMA, begin, "files")?;
        for file in self.plan.map(files_in_order).unwrap_or_default() {
            document.item(output, |json| {
                json.key("path")?.text(&file.shard.path().to_string_lossy())?;
                json.key("target")?.text(&file.target.to_string_lossy())?;
                json.key("header_bytes_before")?.number(file.header_bytes_before())?;
                json.key("header_bytes")?.number(file.header_bytes())?;
                json.key("bytes_copied")?.number(file.data_bytes())?;
                json.key("changes")?.array()?;
                for MetadataChange { key, before, after, .. } in file.changed() {
                    json.line()?;
                    json.object()?;
                    json.key("key")?.text(key)?;
                    json.key("before")?;
                    text_or_null(json, before)?;
                    json.key("after")?;
                    text_or_null(json, after)?;
                    json.end_object()?;
                }
                json.end_array()
            })?;
        }
        document.end(session)
    }

    fn write_own(&self, json: &mut Json<impl Write>) -> io::Result<()> {
        json.key("action")?.text(self.action)?;
        json.key("dry_run")?.boolean(self.is_dry)?;
        json.key("written")?.boolean(self.written.is_some())?;
        json.key("files_written")?.number(self.files_written as u64)?;
        let Some(plan) = self.plan else { return Ok(()) };
        json.key("in_place")?.boolean(plan.is_in_place())?;
        json.key("bytes_copied")?.number(plan.bytes_copied())?;
        if let Some(written) = self.written {
            json.key("seconds")?.value(&written.as_secs_f64())?;
        }
        if let Some(index) = plan.index() {
            json.key("index")?.text(&index.path.to_string_lossy())?;
            json.key("replaces_index")?.boolean(index.replaces)?;
        }
        json.key("removed")?.array()?;
        for path in plan.removed() {
            json.text(&path.to_string_lossy())?;
        }
        json.end_array()
    }

    /// Lines for people: the files, and below them what changes in them.
    pub(super) fn write_text(&self, output: &mut Output) -> io::Result<()> {
        let Some(plan) = self.plan else { return Ok(()) };
        if !plan.changes() {
            return writeln!(output.data(), "nothing to change");
        }
        if self.written.is_none() && !self.is_dry {
            return Ok(());
        }
        let mut files = files_in_order(plan).into_iter().peekable();
        while let Some(file) = files.next() {
            self.write_file(output, plan, file)?;
            // Most often all files change in the same way, which is said once.
            if files.peek().is_none_or(|next| !next.changed().eq(file.changed())) {
                write_changes(output, file)?;
            }
        }
        if let Some(index) = plan.index() {
            let verb = match (self.is_dry, index.replaces) {
                (false, false) => "wrote",
                (false, true) => "replaced",
                (true, false) => "would write",
                (true, true) => "would replace",
            };
            let path = index.path.to_string_lossy();
            writeln!(output.data(), "{verb} {}", escaped(&path))?;
        }
        for path in plan.removed() {
            let verb = if self.is_dry { "would remove" } else { "removed" };
            writeln!(output.data(), "{verb} {}", escaped(&path.to_string_lossy()))?;
        }
        let moved = units::bytes(plan.bytes_copied());
        let same = match (plan.is_in_place(), self.is_dry) {
            (true, false) => "no byte of a tensor is changed, and none was moved".into(),
            (true, true) => "no byte of a tensor would be changed, and none moved".into(),
            (false, false) => format!("no byte of a tensor is changed; {moved} were copied"),
            (false, true) => {
                format!("no byte of a tensor would be changed; {moved} would be copied")
            }
        };
        writeln!(output.data(), "{same}")
    }

    fn write_file(
        &self,
        output: &mut Output,
        plan: &MetadataPlan<'_>,
        file: &PlannedMetadata<'_>,
    ) -> io::Result<()> {
        let is_elsewhere = file.target != file.shard.path();
        let verb = match (is_elsewhere, self.is_dry) {
            _ if !file.changes() => "unchanged",
            (true, false) => "wrote",
            (true, true) => "would write",
            (false, false) if plan.is_in_place() => "changed in place",
            (false, true) if plan.is_in_place() => "would change in place",
            (false, false) => "rewrote",
            (false, true) => "would rewrite",
        };
        let path = file.target.to_string_lossy();
        let [before, after] = [file.header_bytes_before(), file.header_bytes()].map(units::exact);
        let header = match file.changes() {
            true if before == after => format!("  header {after} bytes"),
            true => format!("  header {before} → {after} bytes"),
            false => String::new(),
        };
        writeln!(output.data(), "{verb} {}{header}", escaped(&path))?;
        let dropped = file.with_unknown_fields() as u64;
        if file.changes() && dropped > 0 {
            let tensors = units::plural(dropped, "tensor");
            let verb = if self.is_dry { "would be" } else { "were" };
            output.note(&format!(
                "{path}: fields that the format does not have {verb} dropped, of {tensors}"
            ));
        }
        Ok(())
    }
}

/// The files in natural order of their names: an index may name them in any.
fn files_in_order<'p>(plan: &'p MetadataPlan<'_>) -> Vec<&'p PlannedMetadata<'p>> {
    let mut files: Vec<&PlannedMetadata<'_>> = plan.files().iter().collect();
    let name = |file: &PlannedMetadata<'_>| file.target.to_string_lossy().into_owned();
    files.sort_by(|one, other| order::compare(&name(one), &name(other)));
    files
}

fn write_changes(output: &mut Output, file: &PlannedMetadata<'_>) -> io::Result<()> {
    let mut changes = file.changed();
    for MetadataChange { key, before, after, .. } in changes.by_ref().take(SHOWN) {
        let (sign, style) = match (before, after) {
            (None, _) => ("+", Style::Green),
            (Some(_), Some(_)) => ("~", Style::Yellow),
            (Some(_), None) => ("-", Style::Red),
        };
        let sign = output.styled(style, sign);
        let values: Vec<String> = [before, after].into_iter().flatten().map(shown).collect();
        let key = cut(key, WIDTH).0;
        writeln!(output.data(), "  {sign} {key}  {}", values.join(" → "))?;
    }
    match changes.count() as u64 {
        0 => Ok(()),
        more => {
            let keys = units::plural(more, "more key");
            writeln!(output.data(), "  {keys}, --json has all")
        }
    }
}

/// A value in a line, cut to what can be taken in at a glance.
fn shown(value: &str) -> String {
    match cut(value_or_quotes(value), WIDTH) {
        (text, false) => text,
        (text, true) => format!("{text} ({})", units::bytes(value.len() as u64)),
    }
}

fn text_or_null(json: &mut Json<impl Write>, text: Option<&str>) -> io::Result<()> {
    match text {
        Some(text) => json.text(text),
        None => json.null(),
    }
}
