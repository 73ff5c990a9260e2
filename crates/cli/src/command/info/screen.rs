//! `weigh info` for people: one screen of 80 columns and 24 lines for an ordinary checkpoint.

use std::io::Write;

use weigh::format::Verdict;
use weigh::format::text::escaped;
use weigh::inventory::Item;
use weigh::inventory::count::Parameters;
use weigh::inventory::recognize::Trait;
use weigh::{Layout, Survey};

use super::Summary;
use super::bar::{bar, percent};
use crate::findings::Counts;
use crate::metadata::{self, Metadata};
use crate::output::{Output, Style, wrapped};
use crate::units;

/// Columns of the words on the left.
const LABEL: usize = 12;
/// Columns there are when stdout is no terminal.
const WIDTH: usize = 80;
/// Lines that the screen keeps to if it can, with one left for the prompt.
const LINES: usize = 23;
/// Dtypes and traits that are shown.
const SHOWN: usize = 6;
/// Keys of metadata that are shown: at least, and at most, as lines are left.
const KEYS: std::ops::RangeInclusive<usize> = 3..=12;

/// Writes what is known of a checkpoint.
pub(super) fn write(
    output: &mut Output,
    summary: &Summary<'_>,
    whole_metadata: bool,
    is_first: bool,
) -> anyhow::Result<()> {
    if !is_first {
        writeln!(output.data())?;
    }
    let mut screen = Screen {
        width: output.width.unwrap_or(WIDTH).max(LABEL + 28),
        is_terminal: output.is_terminal,
        output,
        lines_written: 0,
    };
    screen.title(summary)?;
    screen.sizes(summary)?;
    screen.dtypes(summary)?;
    screen.traits(&summary.traits)?;
    screen.largest(&summary.counts.largest)?;
    let most = if whole_metadata { usize::MAX } else { metadata::ENOUGH };
    let metadata = Metadata::of(summary.survey, most);
    if whole_metadata {
        screen.whole_metadata(summary.survey, &metadata)?;
    } else {
        screen.metadata(summary.survey, &metadata)?;
    }
    screen.structure(summary.survey)
}

struct Screen<'o> {
    output: &'o mut Output,
    width: usize,
    is_terminal: bool,
    /// Lines written so far.
    lines_written: usize,
}

impl Screen<'_> {
    /// Writes a line, after a word on the left.
    fn line(&mut self, label: &str, body: &str) -> anyhow::Result<()> {
        self.lines_written += 1;
        let label = self.output.styled(Style::Cyan, format!("{label:<LABEL$}"));
        writeln!(self.output.data(), "{label}{body}")?;
        Ok(())
    }

    /// Writes lines, the first after a word on the left.
    fn lines(&mut self, label: &str, lines: &[String]) -> anyhow::Result<()> {
        for (number, line) in lines.iter().enumerate() {
            self.line(if number == 0 { label } else { "" }, line)?;
        }
        Ok(())
    }

    /// Columns right of the words on the left.
    fn room(&self) -> usize {
        self.width - LABEL
    }

    fn title(&mut self, summary: &Summary<'_>) -> anyhow::Result<()> {
        let mut path = summary.survey.path().to_string_lossy().into_owned();
        if let Some(selector) = summary.selector {
            path.push(':');
            path.push_str(selector);
        }
        let path = self.output.styled(Style::Bold, escaped(&path));
        writeln!(self.output.data(), "{path}  {}", layout(summary.survey))?;
        self.lines_written += 1;
        Ok(())
    }

    fn sizes(&mut self, summary: &Summary<'_>) -> anyhow::Result<()> {
        let survey = summary.survey;
        let read = survey.shards().iter().filter(|it| it.inspection().is_some());
        let (read, files) = (read.count(), survey.shards().len());
        let bytes = survey.file_bytes();
        let mut size = vec![units::bytes(bytes)];
        if bytes >= 1024 {
            size.push(format!("({} bytes)", units::exact(bytes)));
        }
        if read < files {
            size.push(format!("in the {read} of {files} files that could be read"));
        }
        self.line("size", &size.join(" "))?;
        let total = &summary.counts.total;
        let mut tensors = vec![units::exact(total.tensors)];
        if !summary.is_all {
            let (all, bytes) = (units::exact(tensors_of(survey)), units::bytes(total.bytes));
            tensors = vec![format!("{} of {all} selected", units::exact(total.tensors)), bytes];
        }
        let faults = [
            (summary.in_no_file, "in files that were not read"),
            (summary.missing_bytes, "with bytes missing"),
        ];
        for (count, words) in faults.into_iter().filter(|(count, _)| *count > 0) {
            let words = format!("{} {words}", units::exact(count));
            tensors.push(self.output.styled(Style::Red, words));
        }
        self.line("tensors", &tensors.join(", "))?;
        if total.tensors > 0 {
            let lines = wrapped(&parameters(&summary.parameters), 0, self.room());
            self.lines("parameters", &lines)?;
        }
        Ok(())
    }

    fn dtypes(&mut self, summary: &Summary<'_>) -> anyhow::Result<()> {
        let whole = summary.counts.total.bytes;
        let dtypes = &summary.counts.dtypes;
        let cells = dtypes.iter().take(SHOWN).map(|entry| {
            [
                entry.dtype.map_or("unknown", |dtype| dtype.name()).into(),
                units::bytes(entry.totals.bytes),
                percent(entry.totals.bytes, whole),
                units::plural(entry.totals.tensors, "tensor"),
            ]
        });
        let cells: Vec<[String; 4]> = cells.collect();
        let [names, sizes, shares, tensors] = widths(&cells);
        let columns = names + sizes + shares + tensors + 8;
        let bar_width = self.room().saturating_sub(columns).clamp(8, 32);
        for (number, (entry, [name, size, share, tensors])) in dtypes.iter().zip(&cells).enumerate()
        {
            let label = if number == 0 { "dtypes" } else { "" };
            let bar = bar(entry.totals.bytes, whole, bar_width);
            let bar = self.output.styled(Style::Green, bar);
            let line =
                format!("{name:<names$}  {bar}  {size:>sizes$}  {share:>shares$}  {tensors}");
            self.line(label, &line)?;
        }
        self.more(dtypes.len(), "dtype")
    }

    fn traits(&mut self, traits: &[Trait]) -> anyhow::Result<()> {
        for (number, found) in traits.iter().take(SHOWN).enumerate() {
            let label = if number == 0 { "looks like" } else { "" };
            let mut lines = wrapped(&found.text, 0, self.room());
            let last = lines.pop().unwrap_or_default();
            // What it rests on, if there is room for enough of it to be of use.
            let left = self.room().saturating_sub(last.chars().count() + 4);
            let evidence = found.evidence.first();
            let evidence = evidence.filter(|name| left >= 20 && !found.text.contains(*name));
            lines.push(match evidence {
                None => last,
                Some(name) => {
                    let name = format!("({})", cut_front(name, left));
                    format!("{last}  {}", self.output.styled(Style::Dim, name))
                }
            });
            self.lines(label, &lines)?;
        }
        self.more(traits.len(), "trait")
    }

    fn largest(&mut self, largest: &[Item<'_>]) -> anyhow::Result<()> {
        let cells: Vec<[String; 3]> = largest.iter().map(cells).collect();
        let [dtypes, shapes, sizes] = widths(&cells);
        let room = self.room().saturating_sub(dtypes + shapes + sizes + 6).max(16);
        // A name is cut on a screen alone: what reads a pipe looks for it.
        let most = if self.is_terminal { room } else { usize::MAX };
        let names: Vec<String> = largest.iter().map(|item| cut_front(item.name, most)).collect();
        let name_widths = names.iter().map(|name| name.chars().count());
        let name_width = name_widths.max().unwrap_or_default().min(room);
        for (number, (name, [dtype, shape, size])) in names.iter().zip(&cells).enumerate() {
            let label = if number == 0 { "largest" } else { "" };
            let line =
                format!("{name:<name_width$}  {dtype:<dtypes$}  {shape:<shapes$}  {size:>sizes$}");
            self.line(label, &line)?;
        }
        Ok(())
    }

    fn metadata(&mut self, survey: &Survey, metadata: &Metadata) -> anyhow::Result<()> {
        self.line("metadata", &metadata.claimed())?;
        let entries = &metadata.entries;
        let left = LINES.saturating_sub(self.lines_written + 1);
        let mut shown = left.clamp(*KEYS.start(), *KEYS.end());
        if metadata.pairs > shown {
            // The line that says how many more.
            shown -= 1;
        }
        let keys: Vec<String> =
            entries.iter().take(shown).map(|entry| metadata::cut(&entry.key, 28).0).collect();
        let key_width = keys.iter().map(|key| key.chars().count()).max().unwrap_or_default();
        for (entry, key) in entries.iter().zip(&keys) {
            let after = entry.in_files(survey);
            let room = self.room().saturating_sub(key_width + 2 + after.chars().count()).max(12);
            let (mut value, is_cut) = metadata::cut(entry.value_or_quotes(), room);
            if is_cut {
                let size = format!(" ({})", units::bytes(entry.value.len() as u64));
                let room = room.saturating_sub(size.chars().count());
                value = metadata::cut(&entry.value, room).0;
                value.push_str(&self.output.styled(Style::Dim, size));
            }
            self.line("", &format!("{key:<key_width$}  {value}{after}"))?;
        }
        if metadata.pairs > shown {
            let more = units::exact((metadata.pairs - shown) as u64);
            let line = format!("{more} more, shown with --metadata");
            let line = self.output.styled(Style::Dim, line);
            self.line("", &line)?;
        }
        Ok(())
    }

    fn whole_metadata(&mut self, survey: &Survey, metadata: &Metadata) -> anyhow::Result<()> {
        self.line("metadata", &metadata.claimed())?;
        Ok(metadata::write_entries(self.output, survey, &metadata.entries)?)
    }

    fn structure(&mut self, survey: &Survey) -> anyhow::Result<()> {
        let counts: Counts = survey.findings().collect();
        let failures = survey.failures().count();
        let verdict = survey.verdict();
        let style = match verdict {
            Verdict::Invalid => Style::Red,
            _ if failures > 0 => Style::Red,
            Verdict::ValidWithDeviations => Style::Yellow,
            Verdict::Valid => Style::Green,
        };
        let words = if failures > 0 && verdict != Verdict::Invalid {
            format!("no verdict, {} could not be read", units::plural(failures as u64, "file"))
        } else {
            verdict.to_string()
        };
        let found =
            [(counts.errors, "error"), (counts.deviations, "deviation"), (counts.notes, "note")];
        let found = found.into_iter().filter(|(count, _)| *count > 0);
        let found = found.map(|(count, noun)| units::plural(count, noun));
        let words = self.output.styled(style, words);
        let words: Vec<String> = std::iter::once(words).chain(found).collect();
        let mut line = words.join(", ");
        if words.len() > 1 {
            let only_notes = counts.errors + counts.deviations == 0;
            let flag = if only_notes { " --notes" } else { "" };
            let hint = format!("  (weigh check{flag} says more)");
            line.push_str(&self.output.styled(Style::Dim, hint));
        }
        self.line("structure", &line)
    }

    /// Says how many of `all` were left out.
    fn more(&mut self, all: usize, noun: &str) -> anyhow::Result<()> {
        if all <= SHOWN {
            return Ok(());
        }
        let more = units::plural((all - SHOWN) as u64, &format!("more {noun}"));
        let line = self.output.styled(Style::Dim, format!("{more}, --json has all"));
        self.line("", &line)
    }
}

fn layout(survey: &Survey) -> String {
    let files = units::plural(survey.shards().len() as u64, "file");
    let missing = survey
        .shards()
        .iter()
        .filter(|shard| shard.inspection().is_none() && shard.failure().is_none())
        .count();
    let layout = match survey.layout() {
        Layout::Indexed => format!("{files}, indexed"),
        Layout::Numbered => format!("{files}, numbered, no index"),
        _ => "one file".into(),
    };
    if missing > 0 { format!("{layout}, {missing} missing") } else { layout }
}

/// How many tensors there are to select from.
fn tensors_of(survey: &Survey) -> u64 {
    let mapped = survey.index().map_or(0, weigh::format::index::Index::len);
    survey.len().max(mapped) as u64
}

fn parameters(parameters: &Parameters) -> String {
    let count = |number: u64| match number {
        0..1000 => number.to_string(),
        _ => format!("{} ({})", units::count(number), units::exact(number)),
    };
    let stored = parameters.stored;
    let text = match parameters.logical {
        _ if !parameters.exact => format!("at least {}", count(stored)),
        Some(logical) if logical == stored => count(logical),
        Some(logical) => {
            format!("{}, packed into {} elements", count(logical), units::count(stored))
        }
        None => format!("{} stored, packed: what they unpack to is not proven", count(stored)),
    };
    let beside = [(parameters.helpers, "scales and the like"), (parameters.buffers, "buffers")];
    let beside = beside.into_iter().filter(|(number, _)| *number > 0);
    let beside = beside.map(|(number, what)| format!("{} in {what}", units::count(number)));
    let beside: Vec<String> = beside.collect();
    if beside.is_empty() { text } else { format!("{text}, beside {}", beside.join(" and ")) }
}

/// Columns of each cell of a table.
fn widths<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

/// Dtype, shape and size of a tensor.
fn cells(item: &Item<'_>) -> [String; 3] {
    let dtype = item.dtype.map_or("?", |dtype| dtype.name());
    let shape = item.shape.map_or_else(
        || "?".into(),
        |shape| {
            let shown: Vec<String> = shape.iter().take(8).map(u64::to_string).collect();
            let more = if shape.len() > 8 { ", …" } else { "" };
            format!("[{}{more}]", shown.join(", "))
        },
    );
    [dtype.into(), shape, units::bytes(item.bytes)]
}

/// A name escaped, and cut at its front to `width` columns: its end tells it from others.
fn cut_front(name: &str, width: usize) -> String {
    let shown = escaped(name).to_string();
    let over = shown.chars().count().saturating_sub(width);
    if over == 0 {
        return shown;
    }
    let kept: String = shown.chars().skip(over + 1).collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_its_front() {
        for (name, width, want) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "…cdefg"),
            ("a\nb", 3, "…nb"),
            ("漢字漢字漢", 3, "…字漢"),
        ] {
            assert_eq!(cut_front(name, width), want);
        }
    }
}
