//! The table: a line a tensor, columns aligned.

use std::io::{self, Write};

use weigh::Survey;
use weigh::format::{Dtype, text};

use super::Ls;
use crate::listing::{Listing, Row, escaped_width};
use crate::output::{Output, Paint, Style};
use crate::units::{Short, digits};

/// Columns that a name may take before it pushes those after it aside: one huge name is not to pad a
/// million lines.
const NAME_COLUMNS: usize = 80;

/// The same, for shapes.
const SHAPE_COLUMNS: usize = 40;

/// The longest size in binary units is `1023 KiB`.
const SIZE_COLUMNS: usize = 8;

/// A table of tensors, to be written.
#[derive(Debug)]
pub(super) struct Table<'l, 's> {
    survey: &'s Survey,
    listing: &'l Listing<'s>,
    long: bool,
    exact: bool,
    widths: Widths,
    paints: Paints,
}

/// Columns that the widest cell takes.
#[derive(Debug, Default)]
struct Widths {
    name: usize,
    dtype: usize,
    shape: usize,
    size: usize,
    offset: usize,
    position: usize,
    file: usize,
}

#[derive(Debug)]
struct Paints {
    dtype: Paint,
    shape: Paint,
    place: Paint,
    fault: Paint,
}

impl<'l, 's> Table<'l, 's> {
    pub(super) fn new(
        args: &Ls,
        output: &Output,
        survey: &'s Survey,
        listing: &'l Listing<'s>,
    ) -> Self {
        let mut table = Self {
            survey,
            listing,
            long: args.long,
            exact: args.bytes,
            widths: Widths::default(),
            paints: Paints {
                dtype: output.paint(Style::Cyan),
                shape: output.paint(Style::Yellow),
                place: output.paint(Style::Dim),
                fault: output.paint(Style::Red),
            },
        };
        table.measure();
        table
    }

    /// Writes the lines.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.listing.write(out, |lines, _, row| self.line(&mut Line(lines), row))
    }

    fn measure(&mut self) {
        let widths = &mut self.widths;
        let wider = |width: &mut usize, other: usize, most: usize| {
            if other <= most {
                *width = (*width).max(other);
            }
        };
        let (mut largest, mut last_offset, mut last_position) = (0, 0, 0);
        for row in self.listing.rows() {
            wider(&mut widths.name, row.width().0, NAME_COLUMNS);
            widths.dtype = widths.dtype.max(dtype(row.dtype).len());
            wider(&mut widths.shape, shape_width(row.shape), SHAPE_COLUMNS);
            largest = largest.max(row.bytes().unwrap_or(0));
            if self.long {
                let (start, _) = place(&row, self.survey);
                let end = row.data_offsets().map_or(0, |offsets| offsets.end);
                last_offset = last_offset.max(end);
                last_position = last_position.max(start.saturating_add(end));
            }
        }
        if self.long {
            let files = self.survey.shards().iter().map(|shard| escaped_width(shard.name()));
            widths.file = files.max().unwrap_or(0);
        }
        widths.offset = digit_count(last_offset);
        widths.position = digit_count(last_position);
        widths.size = if self.exact { digit_count(largest) } else { SIZE_COLUMNS };
    }

    fn line(&self, line: &mut Line, row: &Row<'_>) {
        let Self { widths, paints, .. } = self;
        let (width, plain) = row.width();
        match plain {
            Some(name) => line.text(name),
            None => line.escaped(row.name),
        }
        line.pad(width, widths.name);

        let dtype = dtype(row.dtype);
        line.painted(paints.dtype, |line| line.text(dtype));
        line.pad(dtype.len(), widths.dtype);

        line.painted(paints.shape, |line| line.shape(row.shape));
        line.pad(shape_width(row.shape), widths.shape);

        match row.bytes() {
            None => line.right("?", widths.size),
            Some(bytes) if self.exact => line.number(bytes, widths.size),
            Some(bytes) => line.right(Short::bytes(bytes).as_str(), widths.size),
        }
        if self.long {
            line.text("  ");
            line.painted(paints.place, |line| self.place(line, row));
        }
        let mut faults = row.faults().peekable();
        if faults.peek().is_some() {
            line.text("  ");
            line.painted(paints.fault, |line| {
                line.text("! ");
                for (place, fault) in faults.enumerate() {
                    line.text(if place == 0 { "" } else { ", " });
                    line.text(fault);
                }
            });
        }
        line.text("\n");
    }

    /// Where the bytes are, in the data section and in the file, and which file.
    fn place(&self, line: &mut Line, row: &Row<'_>) {
        let (start, file) = place(row, self.survey);
        for (start, width) in [(0, self.widths.offset), (start, self.widths.position)] {
            match row.data_offsets() {
                None => {
                    line.right("?", width);
                    line.pad(0, width + 2);
                }
                Some(offsets) => {
                    line.number(start.saturating_add(offsets.start), width);
                    line.text("..");
                    let end = start.saturating_add(offsets.end);
                    let mut room = [0; 20];
                    let digits = digits(end, &mut room);
                    line.0.extend_from_slice(digits);
                    line.pad(digits.len(), width);
                }
            }
        }
        line.escaped(file);
        if row.faults().next().is_some() {
            line.spaces(self.widths.file.saturating_sub(escaped_width(file)));
        }
    }
}

/// Where the data section of a tensor's file starts, and the file's name.
fn place<'s>(row: &Row<'_>, survey: &'s Survey) -> (u64, &'s str) {
    let Some(shard) = row.shard(survey) else {
        return (0, "");
    };
    let start = shard.inspection().map_or(0, weigh::format::header::Inspection::data_start);
    (start, shard.name())
}

fn dtype(dtype: Option<Dtype>) -> &'static str {
    dtype.map_or("?", Dtype::name)
}

/// Columns that [`Line::shape`] takes.
fn shape_width(shape: Option<&[u64]>) -> usize {
    let Some(shape) = shape else {
        return 1;
    };
    let digits: usize = shape.iter().map(|dimension| digit_count(*dimension)).sum();
    digits + 2 + 2 * shape.len().saturating_sub(1)
}

fn digit_count(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |power| power as usize + 1)
}

/// A line, as it is put together at the end of others.
#[derive(Debug)]
struct Line<'v>(&'v mut Vec<u8>);

impl Line<'_> {
    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Text from a file.
    fn escaped(&mut self, text: &str) {
        // Writing to a vector cannot fail.
        let _ = write!(self.0, "{}", text::escaped(text));
    }

    fn painted(&mut self, paint: Paint, write: impl FnOnce(&mut Self)) {
        self.text(paint.on);
        write(self);
        self.text(paint.off);
    }

    /// Fills a column of `width` up, and the gap after it.
    fn pad(&mut self, written: usize, width: usize) {
        self.spaces(width.saturating_sub(written) + 2);
    }

    fn spaces(&mut self, count: usize) {
        const SPACES: &str = "                                                                ";
        let mut left = count;
        while left > 0 {
            let some = left.min(SPACES.len());
            self.text(SPACES.get(..some).unwrap_or_default());
            left -= some;
        }
    }

    fn right(&mut self, text: &str, width: usize) {
        self.spaces(width.saturating_sub(text.len()));
        self.text(text);
    }

    fn number(&mut self, number: u64, width: usize) {
        let mut room = [0; 20];
        let digits = digits(number, &mut room);
        self.spaces(width.saturating_sub(digits.len()));
        self.0.extend_from_slice(digits);
    }

    /// A shape as `[4096, 4096]`, or `?`.
    fn shape(&mut self, shape: Option<&[u64]>) {
        let Some(shape) = shape else {
            return self.text("?");
        };
        self.text("[");
        for (place, dimension) in shape.iter().enumerate() {
            self.text(if place == 0 { "" } else { ", " });
            self.number(*dimension, 0);
        }
        self.text("]");
    }
}
