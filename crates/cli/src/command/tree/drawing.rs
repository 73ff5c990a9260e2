//! The tree as it is drawn.

use std::fmt::Write as _;
use std::io::{self, Write};

use weigh::format::{Dtype, text};
use weigh::inventory::Totals;
use weigh::inventory::tree::{Guides, Row, RowKind, Tree};

use crate::output::{Output, Paint, Style};
use crate::units;

/// Columns that lines and labels may take before they push the numbers aside.
const LABEL_COLUMNS: usize = 60;

/// What a tree is drawn with.
#[derive(Debug)]
struct Lines {
    branch: &'static str,
    last: &'static str,
    down: &'static str,
    gap: &'static str,
    times: &'static str,
}

const UNICODE: Lines =
    Lines { branch: "├─ ", last: "└─ ", down: "│  ", gap: "   ", times: "×" };

const ASCII: Lines = Lines { branch: "|- ", last: "`- ", down: "|  ", gap: "   ", times: "x" };

/// A tree to be drawn, and how.
#[derive(Debug)]
pub(super) struct Drawing<'t> {
    tree: &'t Tree<'t>,
    depth: Option<usize>,
    lines: &'static Lines,
    faint: Paint,
    bold: Paint,
    dtype: Paint,
    shape: Paint,
    label_columns: usize,
    dtype_columns: usize,
}

impl<'t> Drawing<'t> {
    pub(super) fn new(
        tree: &'t Tree<'t>,
        depth: Option<usize>,
        ascii: bool,
        output: &Output,
    ) -> Self {
        let lines = if ascii { &ASCII } else { &UNICODE };
        let (mut label_columns, mut dtype_columns) = (0, 0);
        let mut label = String::new();
        for row in tree.rows(depth) {
            write_label(&mut label, &row, lines);
            let columns = 3 * (row.depth + 1) + label.chars().count();
            if columns <= LABEL_COLUMNS {
                label_columns = label_columns.max(columns);
            }
            if row.kind == RowKind::Tensor {
                dtype_columns = dtype_columns.max(row.dtype.map_or(1, |dtype| dtype.name().len()));
            }
        }
        Self {
            tree,
            depth,
            lines,
            faint: output.paint(Style::Dim),
            bold: output.paint(Style::Bold),
            dtype: output.paint(Style::Cyan),
            shape: output.paint(Style::Yellow),
            label_columns,
            dtype_columns,
        }
    }

    /// Writes the checkpoint's path, then a line a row.
    pub(super) fn write(&self, path: &str, out: &mut impl Write) -> io::Result<()> {
        let shown = text::escaped(path).to_string();
        let Paint { on, off } = self.bold;
        write!(out, "{on}{shown}{off}")?;
        self.numbers(out, shown.chars().count(), self.tree.totals())?;
        writeln!(out)?;
        let mut guides = Guides::default();
        let (mut drawn, mut label) = (String::new(), String::new());
        for row in self.tree.rows(self.depth) {
            drawn.clear();
            if let Some((last, above)) = guides.step(&row).split_last() {
                for last in above {
                    drawn.push_str(if *last { self.lines.gap } else { self.lines.down });
                }
                drawn.push_str(if *last { self.lines.last } else { self.lines.branch });
            }
            write_label(&mut label, &row, self.lines);
            let Paint { on, off } = self.faint;
            write!(out, "{on}{drawn}{off}{label}")?;
            let columns = 3 * (row.depth + 1) + label.chars().count();
            self.numbers(out, columns, row.totals)?;
            if row.kind == RowKind::Tensor {
                self.tensor(out, &row)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Parameters and bytes, in their columns after `written` ones.
    fn numbers(&self, out: &mut impl Write, written: usize, totals: Totals) -> io::Result<()> {
        let gap = self.label_columns.saturating_sub(written) + 2;
        let unknown = if totals.unknown > 0 { "+?" } else { "" };
        let parameters = format!("{}{unknown}", units::count(totals.elements));
        let bytes = units::bytes(totals.bytes);
        write!(out, "{:gap$}{parameters:>5}  {bytes:>8}", "")
    }

    /// Dtype, shape, and how many there are of it.
    fn tensor(&self, out: &mut impl Write, row: &Row<'_>) -> io::Result<()> {
        let dtype = row.dtype.map_or("?", Dtype::name);
        let (columns, Paint { on, off }) = (self.dtype_columns, self.dtype);
        write!(out, "  {on}{dtype:columns$}{off}  ")?;
        let Paint { on, off } = self.shape;
        match row.shape {
            Some(shape) => write!(out, "{on}{shape:?}{off}")?,
            None => write!(out, "{on}?{off}")?,
        }
        if row.copies > 1 {
            write!(out, " {}{}", self.lines.times, row.copies)?;
        }
        Ok(())
    }
}

/// What a row is called, escaped, and how many it stands for.
fn write_label(label: &mut String, row: &Row<'_>, lines: &Lines) {
    label.clear();
    // Writing to a string cannot fail.
    let _ = write!(label, "{}", row.label);
    if !text::is_plain(label) {
        *label = text::escaped(label).to_string();
    }
    if row.count > 1 {
        let _ = write!(label, " {}{}", lines.times, row.count);
    }
}
