//! `weigh ls`.

mod records;
mod table;

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use weigh::Survey;
use weigh::format::text;

use crate::args::{Paths, Select};
use crate::listing::{Listing, Order, each_meant};
use crate::output::{Output, Style};
use crate::session::Session;
use crate::units;
use table::Table;

/// List the tensors, one a line.
///
/// The columns are name, dtype, shape and bytes; then, with `-l`, the bytes of the data section, the
/// bytes of the file, and the file; then, after `!`, what is wrong with the tensor if the file is damaged.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    order: Order,
    /// Where the bytes are as well: offsets in the data section and in the file, and which file
    #[arg(long, short)]
    long: bool,
    /// Exact numbers of bytes
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    format: Format,
}

/// How to write the list; as a table if nothing is asked for.
#[derive(Args, Debug)]
#[group(multiple = false, conflicts_with_all = ["long", "bytes"])]
struct Format {
    /// One JSON document
    #[arg(long)]
    json: bool,
    /// A JSON object a line for each tensor
    #[arg(long)]
    jsonl: bool,
    /// Comma-separated values, with a header line
    #[arg(long)]
    csv: bool,
}

pub(crate) fn run(args: &Ls, session: &mut Session) -> Result<()> {
    let mut begun = false;
    let schema = args.format.json.then_some("weigh.ls/1");
    each_meant(session, &args.paths, &args.select, schema, |session, document, survey, meant| {
        let listing = Listing::take(survey, meant, &args.order);
        let several = session.several;
        let output = &mut session.output;
        if let Some(document) = document {
            let own = |json: &mut _| records::json(json, survey, &listing);
            document.checkpoint(output, survey, own)?;
        } else if args.format.jsonl {
            records::json_lines(output.data(), survey, &listing)?;
        } else if args.format.csv {
            if !begun {
                records::csv_header(output.data(), several)?;
            }
            begun = true;
            records::csv(output.data(), survey, &listing, several)?;
        } else if !listing.is_empty() || meant.is_all() {
            if several {
                heading(output, survey, begun)?;
            }
            begun = true;
            Table::new(args, output, survey, &listing).write(output.data())?;
            summary(output, &listing)?;
        }
        Ok(listing.is_empty())
    })
}

/// A line that says which checkpoint the lines below are of.
fn heading(output: &mut Output, survey: &Survey, again: bool) -> io::Result<()> {
    let path = survey.path().to_string_lossy();
    let path = output.styled(Style::Bold, text::escaped(&path));
    writeln!(output.data(), "{}{path}:", if again { "\n" } else { "" })
}

/// A last line for who looks at it: how many tensors there are, and how large they are together.
fn summary(output: &mut Output, listing: &Listing<'_>) -> io::Result<()> {
    if !output.is_terminal || listing.is_empty() {
        return Ok(());
    }
    let tensors = units::plural(listing.tensors, "tensor");
    let bytes = units::bytes(listing.bytes);
    let shown = listing.shown();
    let part = if shown < listing.tensors {
        format!("{} of ", units::exact(shown))
    } else {
        String::new()
    };
    let line = output.styled(Style::Dim, format!("{part}{tensors}, {bytes}"));
    writeln!(output.data(), "{line}")
}
