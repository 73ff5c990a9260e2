//! `weigh meta get`.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use weigh::Survey;
use weigh::format::text::{escaped, is_unsafe_to_print};

use super::keys::Keys;
use super::{SCHEMA, not_of_tensors};
use crate::json::{Document, Json};
use crate::metadata::{self, Entry, Metadata};
use crate::output::{Output, Style};
use crate::session::{Failure, Session};
use crate::units;

/// Show metadata: what the files claim of themselves, with JSON in values expanded.
///
/// What all files of a checkpoint have is shown once, anything else with the file that has it. Very long values
/// are shortened, with their size; `--raw` and `--json` have them whole.
#[derive(Args, Debug)]
pub(super) struct Get {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Only these keys, which may be globs; one that is not there is an error
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Print one document, `weigh.meta/1`
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Print the value of one key, byte for byte, and nothing else
    #[arg(long, requires = "keys")]
    raw: bool,
}

pub(super) fn run(args: &Get, session: &mut Session) -> Result<()> {
    let begin = |output| {
        Document::begin_with(output, SCHEMA, |json: &mut Json<_>| json.key("action")?.text("get"))
    };
    let mut document = args.json.then(|| begin(&mut session.output)).transpose()?;
    let keys = Keys::new(&args.keys);
    let mut is_first = true;
    session.each_survey(std::slice::from_ref(&args.path), |session, survey, selector| {
        let path = survey.path().to_string_lossy();
        if let Some(selector) = selector {
            session.failed(not_of_tensors(&path, selector));
            return Ok(());
        }
        let mut metadata = Metadata::of(survey, usize::MAX);
        let there: Vec<String> = metadata.entries.iter().map(|it| it.key.clone()).collect();
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        let meant = keys.among(&there);
        metadata.entries.retain(|entry| meant.contains(entry.key.as_str()));
        if let Some(document) = &mut document {
            document.checkpoint(&mut session.output, survey, |json| {
                write_json(json, survey, &metadata.entries)
            })?;
        } else if args.raw {
            write_raw(session, survey, &metadata.entries)?;
        } else if args.keys.is_empty() || !metadata.entries.is_empty() {
            write_text(&mut session.output, survey, &metadata, is_first)?;
            is_first = false;
        }
        // Of a file that could not be read nobody knows which keys it has.
        if survey.failures().next().is_none() && survey.interrupted_edits().next().is_none() {
            keys.report_missing(session, &path, &there);
        }
        session.report_listing(survey);
        Ok(())
    })?;
    Ok(document.map_or(Ok(()), |document| document.end(session))?)
}

fn write_text(
    output: &mut Output,
    survey: &Survey,
    metadata: &Metadata,
    is_first: bool,
) -> io::Result<()> {
    if !is_first {
        writeln!(output.data())?;
    }
    let path = output.styled(Style::Bold, escaped(&survey.path().to_string_lossy()));
    let of = match metadata.entries.len() {
        shown if shown < metadata.pairs => format!("{} of ", units::exact(shown as u64)),
        _ => String::new(),
    };
    writeln!(output.data(), "{path}  {of}{}", metadata.claimed())?;
    metadata::write_entries(output, survey, &metadata.entries)
}

fn write_json(json: &mut Json<impl Write>, survey: &Survey, entries: &[Entry]) -> io::Result<()> {
    json.key("metadata")?.array()?;
    for entry in entries {
        json.line()?;
        json.object()?;
        json.key("key")?.text(&entry.key)?;
        json.key("value")?.text(&entry.value)?;
        if !entry.is_in_all(survey) {
            json.key("files")?.array()?;
            for shard in entry.shards.iter().filter_map(|it| survey.shards().get(*it)) {
                json.text(shard.name())?;
            }
            json.end_array()?;
        }
        json.end_object()?;
    }
    json.end_array()
}

/// Prints the one value that is meant, as it is; reports why that cannot be.
fn write_raw(session: &mut Session, survey: &Survey, entries: &[Entry]) -> io::Result<()> {
    let refused = |code, message: &str, help: &str| {
        let path = survey.path().to_string_lossy().into_owned();
        let message = format!("{path}: {message}");
        Failure { path, code, message, help: Some(help.into()) }
    };
    if session.several {
        session.failed(refused(
            "raw-not-one",
            "is one of several checkpoints",
            "Give one of them.",
        ));
        return Ok(());
    }
    let value = match entries {
        // That the key is not there is said with the others that are not.
        [] => return Ok(()),
        [one] => &one.value,
        [first, others @ ..] if others.iter().all(|it| it.key == first.key) => {
            let message = format!("files have different values for `{}`", first.key);
            session.failed(refused("raw-not-one", &message, "Give one of the files."));
            return Ok(());
        }
        several => {
            let message = format!("{} keys match", units::exact(several.len() as u64));
            session.failed(refused("raw-not-one", &message, "Name one of them."));
            return Ok(());
        }
    };
    let moves_cursor = |it: char| is_unsafe_to_print(it) && !matches!(it, '\n' | '\t');
    if session.output.is_terminal && value.chars().any(moves_cursor) {
        let message = "the value has characters that a terminal acts on";
        let help = "Send it to a file or another program, or look at it without `--raw`.";
        session.failed(refused("raw-unsafe", message, help));
        return Ok(());
    }
    session.output.data().write_all(value.as_bytes())
}
