//! `weigh ls`.

mod records;
mod table;

use anyhow::Result;
use clap::Args;
use weigh::Survey;

use crate::args::{Paths, Select};
use crate::json::Document;
use crate::listing::{Listing, Meant, Order, by_flags};
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
    let flags = by_flags(&args.select)?;
    let mut document = if args.format.json {
        Some(Document::begin(&mut session.output, "weigh.ls/1")?)
    } else {
        None
    };
    let mut listed = 0_u64;
    session.each_survey(&args.paths.paths, |session, survey, selector| {
        let meant = Meant::new(&flags, selector)?;
        let listing = Listing::take(survey, &meant, &args.order);
        let several = session.several;
        if let Some(document) = &mut document {
            document.checkpoint(&mut session.output, survey, |json| {
                records::json(json, survey, &listing)
            })?;
        } else if args.format.jsonl {
            records::json_lines(session.output.data(), survey, &listing)?;
        } else if args.format.csv {
            let out = session.output.data();
            if listed == 0 {
                records::csv_header(out, several)?;
            }
            records::csv(out, survey, &listing, several)?;
        } else {
            if several {
                heading(&mut session.output, survey, listed > 0)?;
            }
            Table::new(args, &session.output, survey, &listing).write(session.output.data())?;
            summary(&mut session.output, &listing)?;
        }
        listed += 1;
        meant.report(session, survey, &args.select, listing.is_empty());
        session.report_listing(survey);
        Ok(())
    })?;
    match document {
        Some(document) => Ok(document.end(session)?),
        None => Ok(()),
    }
}

/// A line that says which checkpoint the lines below are of.
fn heading(output: &mut Output, survey: &Survey, again: bool) -> std::io::Result<()> {
    use std::io::Write;
    let path = survey.path().to_string_lossy();
    let path = output.styled(Style::Bold, weigh::format::text::escaped(&path));
    writeln!(output.data(), "{}{path}:", if again { "\n" } else { "" })
}

/// A last line for who looks at it: how many tensors there are, and how large they are together.
fn summary(output: &mut Output, listing: &Listing<'_>) -> std::io::Result<()> {
    use std::io::Write;
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
