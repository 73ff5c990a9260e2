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
    for row in listing.rows() {
        json.line()?;
        json.object()?;
        fields(json, survey, row)?;
        json.end_object()?;
    }
    json.end_array()
}

/// A line a tensor, each an object with the path of its checkpoint.
pub(super) fn json_lines(
    out: &mut impl Write,
    survey: &Survey,
    listing: &Listing<'_>,
) -> io::Result<()> {
    let path = survey.path().to_string_lossy();
    for row in listing.rows() {
        let mut json = Json::new(&mut *out);
        json.object()?;
        json.key("path")?.text(&path)?;
        fields(&mut json, survey, row)?;
        json.end_object()?;
        json.end_line()?;
    }
    Ok(())
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
    if !row.is_present() {
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
    for row in listing.rows() {
        field(out, row.name)?;
        out.write_all(b",")?;
        out.write_all(row.dtype.map_or("?", Dtype::name).as_bytes())?;
        out.write_all(if row.shape.is_none() { b",?" } else { b"," })?;
        for (place, dimension) in row.shape.unwrap_or_default().iter().enumerate() {
            out.write_all(if place == 0 { b"" } else { b"x" })?;
            number(out, *dimension)?;
        }
        let offsets = row.data_offsets();
        let (begin, end) = (offsets.as_ref().map(|it| it.start), offsets.as_ref().map(|it| it.end));
        for cell in [row.bytes(), begin, end] {
            out.write_all(b",")?;
            cell.map_or(Ok(()), |cell| number(out, cell))?;
        }
        out.write_all(b",")?;
        field(out, row.shard(survey).map_or("", weigh::SurveyedShard::name))?;
        if several {
            out.write_all(b",")?;
            field(out, &path)?;
        }
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

/// Text from a file, escaped as on a terminal, and quoted where CSV asks for it.
fn field(out: &mut impl Write, text: &str) -> io::Result<()> {
    if text::is_plain(text) && !text.contains([',', '"']) {
        return out.write_all(text.as_bytes());
    }
    let shown = text::escaped(text).to_string();
    if shown.contains([',', '"']) {
        write!(out, "\"{}\"", shown.replace('"', "\"\""))
    } else {
        out.write_all(shown.as_bytes())
    }
}

fn number(out: &mut impl Write, number: u64) -> io::Result<()> {
    out.write_all(digits(number, &mut [0; 20]))
}
