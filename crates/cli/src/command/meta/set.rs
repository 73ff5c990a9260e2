//! `weigh meta set`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::Result;
use clap::Args;

use super::changing::{self, Changing};
use super::open;
use crate::session::{Failure, Session};
use crate::text;

/// Set keys to values, in every file of a checkpoint.
///
/// Other keys, and every byte of the tensors, stay as they are.
#[derive(Args, Debug)]
pub(super) struct Set {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// What to set; all that comes after the first `=` is the value, which may be empty
    #[arg(value_name = "KEY=VALUE", required_unless_present = "file")]
    pairs: Vec<OsString>,
    /// Set a key to what a file has, to its last byte; `-` is stdin, once. May be repeated
    #[arg(long, value_name = "KEY=FILE")]
    file: Vec<OsString>,
    #[command(flatten)]
    changing: Changing,
}

pub(super) fn run(args: &Set, session: &mut Session) -> Result<()> {
    let pairs = pairs(args).map_err(|failure| session.failed(failure)).ok();
    let checkpoint = pairs.as_ref().and_then(|_| open(session, &args.path));
    let plan = checkpoint.as_ref().zip(pairs).and_then(|(checkpoint, pairs)| {
        args.changing.plan(session, checkpoint, |metadata| metadata.extend(pairs.clone()))
    });
    changing::finish(session, "set", &args.changing, plan.as_ref())
}

/// The keys and values that are given, no key twice.
fn pairs(args: &Set) -> Result<BTreeMap<String, String>, Failure> {
    let mut pairs = BTreeMap::new();
    let mut add = |key: &str, value: String| match pairs.insert(key.into(), value) {
        None => Ok(()),
        Some(_) => {
            let message = format!("the key `{key}` is given twice");
            Err(wrong("key-twice", message, "Give it one value."))
        }
    };
    for pair in &args.pairs {
        let (key, value) = split(pair, "VALUE")?;
        add(key, value.into())?;
    }
    let mut is_stdin_read = false;
    for pair in &args.file {
        let (key, file) = split(pair, "FILE")?;
        if file == "-" && std::mem::replace(&mut is_stdin_read, true) {
            let message = format!("`{pair}`: stdin is read already", pair = pair.to_string_lossy());
            return Err(wrong("stdin-twice", message, "Give one of them a file."));
        }
        add(key, text::read(Path::new(file)).map_err(encode_first)?)?;
    }
    Ok(pairs)
}

/// Splits an argument at its first `=`.
fn split<'a>(pair: &'a OsStr, after: &str) -> Result<(&'a str, &'a str), Failure> {
    let Some(text) = pair.to_str() else {
        let message = format!("`{}` is not UTF-8", pair.to_string_lossy());
        return Err(wrong("text-not-utf8", message, ENCODE));
    };
    let help = match after {
        "VALUE" => "Quote it if the value has spaces; an empty value is `KEY=`.",
        _ => "The file has the value of the key.",
    };
    let form = || wrong("pair-form", format!("`{text}` is not KEY={after}"), help);
    text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(form)
}

/// Says what to do with bytes that are no text.
fn encode_first(failure: Failure) -> Failure {
    match failure.code {
        "text-not-utf8" => Failure { help: Some(ENCODE.into()), ..failure },
        _ => failure,
    }
}

const ENCODE: &str = "Metadata is text: encode the bytes first, as in base64.";

fn wrong(code: &'static str, message: String, help: &str) -> Failure {
    Failure { path: String::new(), code, message, help: Some(help.into()) }
}
