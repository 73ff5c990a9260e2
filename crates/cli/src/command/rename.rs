//! `weigh rename`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use weigh::inventory::rename::{self, Fault};
use weigh::{Edit, Error};

use crate::listing::nearest;
use crate::session::{Failure, Session};
use crate::units;
use crate::writing::{self, Writing};

/// Give tensors other names.
///
/// Whatever order the options come in, names go first through the map, then through the substitutions in the
/// order given, then lose a prefix, then get one. It is an error, and nothing is written, if two tensors would
/// have one name, or if a rule changes nothing.
#[derive(Args, Debug)]
pub(crate) struct Rename {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Substitutions as sed has them: s/REGEX/REPLACEMENT/, with any delimiter, \1 and &, and the flags g and i
    #[arg(value_name = "s/REGEX/REPLACEMENT/")]
    substitutions: Vec<String>,
    /// A file of names: a JSON object from old to new, or lines of old, a tab and new
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// What to take off the beginning of the names that begin with it
    #[arg(long, value_name = "PREFIX")]
    strip_prefix: Option<String>,
    /// What to put before every name
    #[arg(long, value_name = "PREFIX")]
    add_prefix: Option<String>,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &Rename, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let rules = rules(args)?;
    let input = writing::open_whole(session, &args.path);
    let edit = input.as_ref().and_then(|input| writing::edit(session, &[input]));
    let edit = edit.and_then(|edit| renamed(session, edit, &rules));
    let output = input.as_ref().map(|input| writing.output(input));
    writing::finish(session, "rename", writing, edit.as_ref().zip(output.as_ref()))
}

/// The rules that the arguments ask for.
fn rules(args: &Rename) -> Result<rename::Rename> {
    let mut rules = rename::Rename::builder();
    if let Some(path) = &args.map {
        for (old, new) in read_map(path)? {
            rules = rules.map(old, new);
        }
    }
    for substitution in &args.substitutions {
        rules = rules.substitute(substitution).map_err(|error| Failure {
            path: String::new(),
            code: error.code(),
            message: error.to_string(),
            help: Some(error.help().into()),
        })?;
    }
    if let Some(prefix) = &args.strip_prefix {
        rules = rules.strip_prefix(prefix);
    }
    if let Some(prefix) = &args.add_prefix {
        rules = rules.add_prefix(prefix);
    }
    Ok(rules.build())
}

/// Bytes of a map of names, at most: more than the header of any file.
const LARGEST_MAP: u64 = 1 << 30;

/// The names of a map file, old and new.
fn read_map(path: &Path) -> Result<Vec<(String, String)>> {
    let source = weigh::io::FileSource::open(path).map_err(|error| Failure::from(&error))?;
    let failed = |message: String| Failure {
        path: path.to_string_lossy().into_owned(),
        code: "rename-map",
        message: format!("{}: {message}", path.display()),
        help: Some("Give a JSON object from old to new names, or lines of old, a tab, new.".into()),
    };
    if source.len() > LARGEST_MAP {
        return Err(failed("is too large for a map of names".into()).into());
    }
    let bytes = source.read_span(0..source.len()).map_err(|error| Failure::from(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("is not UTF-8".into()))?;
    if text.trim_start().starts_with('{') {
        let Pairs(pairs) =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        return Ok(pairs);
    }
    Ok(rename::parse_map(&text).map_err(|error| failed(error.to_string()))?)
}

/// The tensors with their new names; nothing, reported, if a rule changes nothing or names collide.
fn renamed<'c>(
    session: &mut Session,
    mut edit: Edit<'c>,
    rules: &rename::Rename,
) -> Option<Edit<'c>> {
    let error = match edit.rename(rules) {
        Ok(_) => return Some(edit),
        Err(Error::Rename(error)) => error,
        Err(error) => {
            writing::report_error(session, &error);
            return None;
        }
    };
    for fault in error.faults().iter().take(SHOWN) {
        let names = edit.tensors().iter().map(|tensor| tensor.source.name);
        let help = match fault {
            Fault::UnknownName { name, .. } => nearest::named("name", name, names),
            _ => None,
        };
        let help = help.or_else(|| Some(fault.help().into()));
        let (code, message) = (fault.code(), fault.to_string());
        session.found(Failure { path: String::new(), code, message, help });
    }
    let more = error.count().saturating_sub(SHOWN) as u64;
    if more > 0 {
        session.output.note(&format!("{} more like that", units::exact(more)));
    }
    None
}

/// Faults that are told one by one.
const SHOWN: usize = 10;

/// A JSON object of strings, no key twice.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from old to new names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
        let (mut pairs, mut seen) = (Vec::new(), HashSet::new());
        while let Some((old, new)) = map.next_entry::<String, String>()? {
            if !seen.insert(old.clone()) {
                return Err(A::Error::custom(format!("{old:?} is there twice")));
            }
            pairs.push((old, new));
        }
        Ok(Pairs(pairs))
    }
}
