//! `weigh pagecache` as lines for people, and as the document `weigh.pagecache/1`.

use std::io::{self, Write};

use weigh::format::text::escaped;

use super::{Action, Row};
use crate::json::{Document, Json};
use crate::output::{Data, Output, Style};
use crate::session::Session;
use crate::units;

/// What was reported so far.
pub(super) struct Report {
    document: Option<Document>,
    files: u64,
    /// All files together, as far as they are known.
    cached: u64,
    bytes: u64,
}

impl Report {
    pub(super) fn begin(session: &mut Session, action: &Action) -> io::Result<Self> {
        let begin = |output| {
            let own = |json: &mut Json<&mut Data>| json.key("action")?.text(action.name());
            Document::begin_list(output, "weigh.pagecache/1", own, "files")
        };
        let is_document = action.files().json;
        let document = is_document.then(|| begin(&mut session.output)).transpose()?;
        Ok(Self { document, files: 0, cached: 0, bytes: 0 })
    }

    pub(super) fn row(
        &mut self,
        session: &mut Session,
        action: &Action,
        row: &Row,
    ) -> io::Result<()> {
        if let Some(document) = &mut self.document {
            return document.item(&mut session.output, |json| write_item(json, action, row));
        }
        if let Some(cached) = row.cached {
            self.files += 1;
            self.cached = self.cached.saturating_add(cached);
            self.bytes = self.bytes.saturating_add(row.bytes);
        }
        writeln!(session.output.data(), "{}", line(action, row))?;
        // The next file may take a while.
        session.output.flush()
    }

    pub(super) fn end(self, session: &mut Session) -> anyhow::Result<()> {
        if let Some(document) = self.document {
            document.end(session)?;
        } else if self.files > 1 {
            self.summary(&mut session.output)?;
        }
        Ok(())
    }

    /// A last line: all files together.
    fn summary(&self, output: &mut Output) -> io::Result<()> {
        let files = units::plural(self.files, "file");
        let line = format!("{files}: {}", share(self.cached, self.bytes));
        let line = output.styled(Style::Dim, line);
        writeln!(output.data(), "{line}")
    }
}

/// What there is to say of a file.
fn line(action: &Action, row: &Row) -> String {
    let path = escaped(&row.path);
    let Some(cached) = row.cached else {
        return format!("{path}: ?% cached, ? of {}", units::bytes(row.bytes));
    };
    let mut parts = vec![format!("{path}: {}", share(cached, row.bytes))];
    match (action, row.before) {
        (Action::Status(_), _) | (_, None) => {}
        (Action::Warm(_), Some(before)) => {
            parts.push(format!("{} added", units::bytes(cached.saturating_sub(before))));
        }
        (Action::Drop(_), Some(before)) => {
            parts.push(format!("{} dropped", units::bytes(before.saturating_sub(cached))));
        }
    }
    if let Some(dirty) = row.dirty.filter(|dirty| *dirty > 0) {
        parts.push(format!("{} not on the disk yet", units::bytes(dirty)));
    }
    parts.join(", ")
}

/// `50% cached, 2.00 KiB of 4.00 KiB`; only what is whole has 100%.
fn share(cached: u64, bytes: u64) -> String {
    let percent = (u128::from(cached) * 100).checked_div(u128::from(bytes)).unwrap_or(100);
    format!("{percent}% cached, {} of {}", units::bytes(cached), units::bytes(bytes))
}

fn write_item(json: &mut Json<impl Write>, action: &Action, row: &Row) -> io::Result<()> {
    json.key("path")?.text(&row.path)?;
    json.key("file_system")?.text(row.file_system.name)?;
    json.key("file_system_kind")?.text(row.file_system.kind.name())?;
    json.key("bytes")?.number(row.bytes)?;
    if !matches!(action, Action::Status(_)) {
        json.key("cached_before")?.number_or_null(row.before)?;
    }
    json.key("cached")?.number_or_null(row.cached)?;
    json.key("dirty")?.number_or_null(row.dirty)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weigh::io::system::FileSystem;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_line_says_what_is_known() {
        for (action, before, cached, dirty, want) in [
            ("status", None, Some(2048), Some(0), "50% cached, 2.00 KiB of 4.00 KiB"),
            ("status", None, Some(4095), None, "99% cached, 4.00 KiB of 4.00 KiB"),
            (
                "status",
                None,
                Some(4096),
                Some(512),
                "100% cached, 4.00 KiB of 4.00 KiB, 512 B not on the disk yet",
            ),
            ("status", None, None, None, "?% cached, ? of 4.00 KiB"),
            (
                "warm",
                Some(1024),
                Some(4096),
                None,
                "100% cached, 4.00 KiB of 4.00 KiB, 3.00 KiB added",
            ),
            ("warm", Some(4096), Some(2048), None, "50% cached, 2.00 KiB of 4.00 KiB, 0 B added"),
            ("warm", None, Some(2048), None, "50% cached, 2.00 KiB of 4.00 KiB"),
            ("drop", Some(4096), Some(0), None, "0% cached, 0 B of 4.00 KiB, 4.00 KiB dropped"),
            ("drop", Some(4096), None, None, "?% cached, ? of 4.00 KiB"),
        ] {
            let cli = Cli::try_parse_from(["weigh", "pagecache", action, "a"]).unwrap();
            let Command::Pagecache(args) = cli.command else {
                panic!("{action}");
            };
            let path = "a\u{1b}".into();
            let file_system = FileSystem::UNKNOWN;
            let row = Row { path, file_system, bytes: 4096, before, cached, dirty };
            assert_eq!(line(&args.action, &row), format!("a\\u001b: {want}"), "{action}");
        }
    }

    #[test]
    fn only_what_is_whole_has_100_per_cent() {
        for (cached, bytes, want) in [
            (0, 0, "100% cached, 0 B of 0 B"),
            (0, 1, "0% cached, 0 B of 1 B"),
            (u64::MAX - 1, u64::MAX, "99% cached, 16.0 EiB of 16.0 EiB"),
            (u64::MAX, u64::MAX, "100% cached, 16.0 EiB of 16.0 EiB"),
        ] {
            assert_eq!(share(cached, bytes), want);
        }
    }
}
