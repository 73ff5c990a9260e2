//! The list for programs: JSON, JSON lines, CSV. Nothing is kept; each tensor is written as it comes.

use std::io::{self, Write};

use weigh::Survey;
use weigh::format::{Dtype, text};

use crate::json::Json;
use crate::listing::{Listing, Row};
use crate::units::digits;

/// What the document says of a checkpoint that other commands do not.
pub(super) fn json(
    json: &mut Json<impl Write>,
    survey: &Survey,
    listing: &Listing<'_>,
) -> io::Result<()> {
    json.key("total_tensors")?.number(listing.tensors)?;
    json.key("total_bytes")?.number(listing.bytes)?;
    json.key("tensors")?.array()?;
    listing.write(json.out(), |lines, place, row| {
        lines.extend_from_slice(if place == 0 { b"\n" } else { b",\n" });
        object(lines, survey, row, None);
    })?;
    json.end_array()
}

/// A line a tensor, each an object with the path of its checkpoint.
pub(super) fn json_lines(
    out: &mut impl Write,
    survey: &Survey,
    listing: &Listing<'_>,
) -> io::Result<()> {
    let path = survey.path().to_string_lossy();
    listing.write(out, |lines, _, row| {
        object(lines, survey, row, Some(&path));
        lines.push(b'\n');
    })
}

fn object(lines: &mut Vec<u8>, survey: &Survey, row: &Row<'_>, path: Option<&str>) {
    let mut json = Json::new(lines);
    let mut write = || {
        json.object()?;
        if let Some(path) = path {
            json.key("path")?.text(path)?;
        }
        fields(&mut json, survey, row)?;
        json.end_object()
    };
    // Writing to a vector cannot fail.
    let _: io::Result<()> = write();
}

fn fields(json: &mut Json<impl Write>, survey: &Survey, row: &Row<'_>) -> io::Result<()> {
    json.key("name")?.text(row.name)?;
    json.key("dtype")?;
    match row.dtype {
        Some(dtype) => json.text(dtype.name())?,
        None => json.null()?,
    }
    json.key("shape")?;
    match row.shape {
        Some(shape) => json.numbers(shape)?,
        None => json.null()?,
    }
    json.key("bytes")?.number_or_null(row.bytes())?;
    json.key("data_offsets")?;
    match row.data_offsets() {
        Some(offsets) => json.numbers(&[offsets.start, offsets.end])?,
        None => json.null()?,
    }
    let file = row.shard(survey).map(weigh::SurveyedShard::name);
    json.key("file")?.text(file.unwrap_or_default())?;
    if row.is_missing() {
        json.key("present")?.boolean(false)?;
    }
    Ok(())
}

/// The line of column names.
pub(super) fn csv_header(out: &mut impl Write, several: bool) -> io::Result<()> {
    let path = if several { ",path" } else { "" };
    write!(out, "name,dtype,shape,bytes,begin,end,file{path}\r\n")
}

/// A record a tensor, as RFC 4180 has it. What is not known is `?`, or an empty field for a number; a scalar's
/// shape is empty.
pub(super) fn csv(
    out: &mut impl Write,
    survey: &Survey,
    listing: &Listing<'_>,
    several: bool,
) -> io::Result<()> {
    let path = survey.path().to_string_lossy();
    listing.write(out, |lines, _, row| record(lines, survey, row, several.then_some(&*path)))
}

fn record(line: &mut Vec<u8>, survey: &Survey, row: &Row<'_>, path: Option<&str>) {
    field(line, row.name);
    line.push(b',');
    line.extend_from_slice(row.dtype.map_or("?", Dtype::name).as_bytes());
    line.extend_from_slice(if row.shape.is_none() { b",?" } else { b"," });
    for (place, dimension) in row.shape.unwrap_or_default().iter().enumerate() {
        line.extend_from_slice(if place == 0 { b"" } else { b"x" });
        line.extend_from_slice(digits(*dimension, &mut [0; 20]));
    }
    let offsets = row.data_offsets();
    let [begin, end] = [offsets.clone().map(|it| it.start), offsets.map(|it| it.end)];
    for number in [row.bytes(), begin, end] {
        line.push(b',');
        if let Some(number) = number {
            line.extend_from_slice(digits(number, &mut [0; 20]));
        }
    }
    line.push(b',');
    field(line, row.shard(survey).map_or("", weigh::SurveyedShard::name));
    if let Some(path) = path {
        line.push(b',');
        field(line, path);
    }
    line.extend_from_slice(b"\r\n");
}

/// Text from a file, escaped as on a terminal, and quoted where CSV asks for it.
fn field(line: &mut Vec<u8>, text: &str) {
    if text::is_plain(text) && !text.contains([',', '"']) {
        return line.extend_from_slice(text.as_bytes());
    }
    let shown = text::escaped(text).to_string();
    if shown.contains([',', '"']) {
        line.push(b'"');
        line.extend_from_slice(shown.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(shown.as_bytes());
    }
}
