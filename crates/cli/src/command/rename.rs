//! `weigh rename`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use weigh::inventory::rename::{self, Fault};
use weigh::{Checkpoint, Edit, Error};

use crate::listing::nearest;
use crate::session::{Failure, Session};
use crate::text;
use crate::units;
use crate::writing::{self, Writing};

/// Give tensors other names.
///
/// Whatever order the options come in, names go first through the map, then through the substitutions in the
/// order given, then lose a prefix, then get one. It is an error, and nothing is written, if two tensors would
/// have one name, or if a rule finds nothing to change.
#[derive(Args, Debug)]
pub(crate) struct Rename {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Substitutions much as sed has them: s/REGEX/REPLACEMENT/, with any delimiter, \1 and &, and the flags g
    /// (every match, not only the first) and i (letters of either case)
    #[arg(value_name = "s/REGEX/REPLACEMENT/")]
    substitutions: Vec<String>,
    /// A file of names: a JSON object from old to new, or lines of old, a tab and new; `-` is stdin
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// What to take off the beginning of the names that begin with it
    #[arg(long, value_name = "PREFIX", value_parser = NonEmptyStringValueParser::new())]
    strip_prefix: Option<String>,
    /// What to put before every name
    #[arg(long, value_name = "PREFIX", value_parser = NonEmptyStringValueParser::new())]
    add_prefix: Option<String>,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &Rename, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let rules = rules(args).map_err(|failure| session.failed(failure)).ok();
    let input = rules.as_ref().and_then(|_| writing::open_whole(session, &args.path));
    let edit = input.as_ref().and_then(|input| writing::edit(session, &[input]));
    let edit = edit.zip(rules).and_then(|(edit, rules)| renamed(session, edit, &rules));
    let output = input.as_ref().map(|input| writing.output(input));
    let inputs: Vec<&Checkpoint> = input.iter().collect();
    writing::finish(session, "rename", writing, &inputs, edit.as_ref().zip(output.as_ref()))
}

/// The rules that the arguments ask for, at least one.
fn rules(args: &Rename) -> Result<rename::Rename, Failure> {
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
    let rules = rules.build();
    if rules.is_empty() {
        return Err(Failure {
            path: String::new(),
            code: "rename-how",
            message: "nothing says which names to give".into(),
            help: Some("Give a substitution, as 's/^model\\.//', a map or a prefix.".into()),
        });
    }
    Ok(rules)
}

/// The names of a map file, old and new, at least one pair.
fn read_map(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let failed = |message: String| Failure {
        path: path.to_string_lossy().into_owned(),
        code: "rename-map",
        message: format!("{}: {message}", path.display()),
        help: Some("Give a JSON object from old to new names, or lines of old, a tab, new.".into()),
    };
    let text = text::read(path)?;
    // Some editors begin a file with a mark that says it is UTF-8.
    let text = text.trim_start_matches('\u{feff}').trim_start_matches([' ', '\t', '\r', '\n']);
    let pairs = if text.starts_with(['{', '[']) {
        let pairs = serde_json::from_str(text).map(|Pairs(pairs)| pairs);
        pairs.map_err(|error| failed(error.to_string()))?
    } else {
        rename::parse_map(text).map_err(|error| failed(error.to_string()))?
    };
    if pairs.is_empty() {
        return Err(failed("has no names".into()));
    }
    Ok(pairs)
}

/// The tensors with their new names; nothing, reported, if a rule changes nothing or names collide.
fn renamed<'c>(
    session: &mut Session,
    mut edit: Edit<'c>,
    rules: &rename::Rename,
) -> Option<Edit<'c>> {
    let error = match edit.rename(rules) {
        Ok(0) if !edit.tensors().is_empty() => {
            session.found(Failure {
                path: String::new(),
                code: "rename-unused",
                message: "no tensor would get another name".into(),
                help: Some("The rules give names that the tensors have already.".into()),
            });
            return None;
        }
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
