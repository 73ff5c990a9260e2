//! `weigh tree`.

mod drawing;

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use weigh::Survey;
use weigh::inventory::tree::{Label, Part, Row, RowKind, Tree as Modules};

use crate::args::{Paths, Select};
use crate::json::Json;
use crate::listing::{Tensors, each_meant, meant_rows};
use crate::session::Session;
use crate::units;
use drawing::Drawing;

/// Show the modules as a tree, repeated blocks collapsed.
///
/// Each line has the number of parameters (elements, as they are stored) and of bytes; a tensor's has its dtype
/// and shape as well. Numbered modules that hold the same are one line, `layers.[0..31] ×32`, and the
/// numbers there and below are those of all of them together.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    select: Select,
    /// Only so many levels
    #[arg(long, short, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Draw in ASCII
    #[arg(long, conflicts_with = "json")]
    ascii: bool,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Tree, session: &mut Session) -> Result<()> {
    let mut shown = 0_u64;
    let schema = args.json.then_some("weigh.tree/1");
    each_meant(session, &args.paths, &args.select, schema, |session, document, survey, meant| {
        let mut missing = 0;
        let all = Tensors::of(survey);
        let items = meant_rows(&all, meant).map(|row| {
            missing += u64::from(row.is_missing());
            row.item()
        });
        let modules = Modules::build(items);
        let none = modules.totals().tensors == 0;
        if let Some(document) = document {
            document.checkpoint(&mut session.output, survey, |json| {
                write_json(json, &modules, args.depth)
            })?;
        } else if !none || meant.is_all() {
            if shown > 0 {
                writeln!(session.output.data())?;
            }
            let drawing = Drawing::new(&modules, args.depth, args.ascii, &session.output);
            drawing.write(&survey.path().to_string_lossy(), session.output.data())?;
            shown += 1;
        }
        note_missing(session, survey, missing);
        Ok(none)
    })
}

/// A tree adds tensors up, so it cannot mark those whose bytes are missing.
fn note_missing(session: &mut Session, survey: &Survey, missing: u64) {
    let has = match missing {
        0 => return,
        1 => "has",
        _ => "have",
    };
    let (path, tensors) = (survey.path().display(), units::plural(missing, "tensor"));
    let message = format!("{path}: {tensors} {has} missing bytes; `weigh ls` marks them");
    session.output.note(&message);
}

/// What the document says of a checkpoint that other commands do not.
fn write_json(
    json: &mut Json<impl Write>,
    modules: &Modules<'_>,
    depth: Option<usize>,
) -> io::Result<()> {
    let totals = modules.totals();
    json.key("total_tensors")?.number(totals.tensors)?;
    json.key("total_elements")?.number(totals.elements)?;
    json.key("total_bytes")?.number(totals.bytes)?;
    json.key("rows")?.array()?;
    for row in modules.rows(depth) {
        json.line()?;
        json.object()?;
        write_row(json, &row)?;
        json.end_object()?;
    }
    json.end_array()
}

fn write_row(json: &mut Json<impl Write>, row: &Row<'_>) -> io::Result<()> {
    let is_tensor = row.kind == RowKind::Tensor;
    json.key("depth")?.number(u64::try_from(row.depth).unwrap_or(u64::MAX))?;
    json.key("label")?.text(&row.label.to_string())?;
    json.key("path")?.text(row.path)?;
    json.key("kind")?.text(if is_tensor { "tensor" } else { "module" })?;
    json.key("count")?.number(row.count)?;
    json.key("copies")?.number(row.copies)?;
    write_indices(json, &row.label)?;
    json.key("tensors")?.number(row.totals.tensors)?;
    json.key("elements")?.number(row.totals.elements)?;
    json.key("bytes")?.number(row.totals.bytes)?;
    if row.totals.unknown > 0 {
        json.key("unknown")?.number(row.totals.unknown)?;
    }
    json.key("dtypes")?.array()?;
    for dtype in row.dtypes.iter() {
        json.text(dtype.name())?;
    }
    json.end_array()?;
    if is_tensor {
        json.key("shape")?;
        match row.shape {
            Some(shape) => json.numbers(shape)?,
            None => json.null()?,
        }
    }
    Ok(())
}

/// The numbers that the label stands for, exactly: for each component that is collapsed, runs of first and last.
fn write_indices(json: &mut Json<impl Write>, label: &Label<'_>) -> io::Result<()> {
    let collapsed = label.parts().iter().filter_map(|part| match part {
        Part::Indices(indices) => Some(indices),
        _ => None,
    });
    let mut collapsed = collapsed.peekable();
    if collapsed.peek().is_none() {
        return Ok(());
    }
    json.key("indices")?.array()?;
    for indices in collapsed {
        json.array()?;
        for run in indices.runs() {
            json.numbers(&[*run.start(), *run.end()])?;
        }
        json.end_array()?;
    }
    json.end_array()
}
