//! The command line.

use std::ffi::OsString;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use weigh::format::{Dtype, Limits};

use crate::command::{
    bench, cast, check, convert, generate, info, join, ls, meta, pagecache, rename, repair, scan,
    select, split, tree,
};
use crate::units;

/// Look inside model weights in the safetensors format, and check them. No code from a file is ever run.
#[derive(Debug, Parser)]
#[command(name = "weigh", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
`weigh PATH` is `weigh info PATH`.

Exit codes: 0 fine; 1 a finding (invalid, flagged, no match, a limit met); 2 usage, I/O, or could not finish.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Ls),
    Tree(tree::Tree),
    Info(info::Info),
    Check(check::Check),
    Scan(scan::Scan),
    Select(select::SelectTensors),
    Rename(rename::Rename),
    Cast(cast::Cast),
    Split(split::Split),
    Join(join::Join),
    Convert(convert::Convert),
    Meta(meta::Meta),
    Repair(repair::Repair),
    Bench(bench::Bench),
    Pagecache(pagecache::Pagecache),
    Completions(generate::Completions),
    Man(generate::Man),
}

/// Options of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// When to use colour; `auto` is on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// The largest header to read, in bytes; above the default, as many tensors as it has room for
    #[arg(long, global = true, default_value_t = Limits::HEADER_BYTES, value_name = "BYTES")]
    pub(crate) max_header: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// What to look at.
#[derive(Args, Debug)]
pub(crate) struct Paths {
    /// Files, folders or shard indexes; `PATH:GLOB` means the tensors that the glob matches
    #[arg(required = true, value_name = "PATH[:GLOB]")]
    pub(crate) paths: Vec<OsString>,
}

/// Which tensors are meant.
#[derive(Args, Debug, Default)]
pub(crate) struct Select {
    /// Only tensors whose name matches this glob; `*` crosses dots. May be repeated
    #[arg(long = "tensors", short = 'i', visible_alias = "include", value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// No tensors whose name matches this glob. May be repeated
    #[arg(long, short = 'x', value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Only tensors whose name has a match of this regular expression somewhere. May be repeated
    #[arg(long, short = 'e', value_name = "REGEX")]
    pub(crate) regex: Vec<String>,
    /// No tensors whose name has a match of this regular expression. May be repeated
    #[arg(long, value_name = "REGEX")]
    pub(crate) exclude_regex: Vec<String>,
    /// Only tensors of at least so many bytes, as 4096, 64K or 1GB
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub(crate) min_size: Option<u64>,
    /// Only tensors of at most so many bytes
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub(crate) max_size: Option<u64>,
    /// Only tensors of this dtype, as F32 or BF16. May be repeated, or separated by commas
    #[arg(long, value_name = "DTYPE", value_delimiter = ',', value_parser = parse_dtype)]
    pub(crate) dtype: Vec<Dtype>,
}

impl Select {
    /// Whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { include, exclude, regex, exclude_regex, min_size, max_size, dtype } = self;
        [include, exclude, regex, exclude_regex].iter().all(|patterns| patterns.is_empty())
            && min_size.is_none()
            && max_size.is_none()
            && dtype.is_empty()
    }
}

/// A dtype, in capitals or not.
pub(crate) fn parse_dtype(text: &str) -> Result<Dtype, String> {
    if let Some(dtype) = Dtype::from_name(text.to_ascii_uppercase().as_bytes()) {
        return Ok(dtype);
    }
    let list = || Dtype::ALL.map(Dtype::name).join(", ");
    Err(Dtype::nearest(text).map_or_else(
        || format!("the format has {}", list()),
        |dtype| format!("the format calls it {dtype}"),
    ))
}

/// Makes `weigh PATH` mean `weigh info PATH`, and `weigh meta PATH` `weigh meta get PATH`: an argument that is no
/// command is a path.
pub(crate) fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let meta = command.find_subcommand("meta");
    if let Some(place) = insert_default(&mut arguments, 1, &command, &command, "info")
        && let Some(meta) = meta.filter(|_| arguments.get(place).is_some_and(|it| it == "meta"))
    {
        insert_default(&mut arguments, place + 1, &command, meta, "get");
    }
    arguments
}

/// Puts `default` at a place if what follows names none of a command's own; where the one is that it names.
fn insert_default(
    arguments: &mut Vec<OsString>,
    at: usize,
    options: &clap::Command,
    command: &clap::Command,
    default: &str,
) -> Option<usize> {
    let is_command =
        |argument: &str| argument == "help" || command.find_subcommand(argument).is_some();
    let asks_for_help = |argument: &OsString| {
        matches!(argument.to_str(), Some("-h" | "--help" | "-V" | "--version"))
    };
    let rest = arguments.get(at..).unwrap_or_default();
    let place = first_positional(options, rest)?;
    let (leading, positional) = rest.split_at(place);
    // After `--` nothing is a command.
    let is_path = leading.last().is_some_and(|it| it == "--");
    let first = positional.first().and_then(|it| it.to_str());
    if leading.iter().any(asks_for_help) {
        return None;
    }
    if is_path || !first.is_some_and(is_command) {
        arguments.insert(at, default.into());
        return None;
    }
    Some(at + place)
}

/// The place of the first argument that is neither an option nor the value of a global one.
fn first_positional(command: &clap::Command, arguments: &[OsString]) -> Option<usize> {
    let takes_next = |argument: &str| {
        let long = argument.strip_prefix("--");
        let mut valued = command.get_arguments().filter(|it| it.get_action().takes_values());
        long.is_some_and(|long| valued.any(|it| it.get_long() == Some(long)))
    };
    let mut is_value = false;
    let mut is_positional = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        let was_value = std::mem::replace(&mut is_value, takes_next(&argument));
        !was_value && !argument.starts_with('-')
    };
    let separator = arguments.iter().position(|argument| argument == "--");
    let plain = arguments.iter().position(&mut is_positional);
    match separator {
        Some(at) if plain.is_none_or(|plain| at < plain) => {
            Some(at + 1).filter(|place| *place < arguments.len())
        }
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_path_alone_is_info() {
        let with = |arguments: &[&str]| {
            with_default_command(arguments.iter().map(OsString::from).collect())
        };
        assert_eq!(with(&["weigh", "model"]), ["weigh", "info", "model"]);
        assert_eq!(
            with(&["weigh", "--color=never", "a", "b"]),
            ["weigh", "info", "--color=never", "a", "b"]
        );
        for path in [
            &["a", "check"][..],
            &["--color", "never", "a", "ls"],
            &["--max-header", "100", "a"],
            &["--metadata", "a"],
            &["--", "ls"],
            &["--", "-a"],
        ] {
            let [before, after] =
                [&["weigh"][..], &["weigh", "info"]].map(|it| [it, path].concat());
            assert_eq!(with(&before), after);
        }
        for path in
            [&["a"][..], &["--json", "a", "set"], &["--", "set"], &["--color", "never", "a"]]
        {
            let [before, after] = [
                &["weigh", "--max-header", "9", "meta"][..],
                &["weigh", "--max-header", "9", "meta", "get"],
            ]
            .map(|it| [it, path].concat());
            assert_eq!(with(&before), after);
        }
        for unchanged in [
            &["weigh"][..],
            &["weigh", "meta"],
            &["weigh", "meta", "--help"],
            &["weigh", "meta", "--help", "a"],
            &["weigh", "meta", "help"],
            &["weigh", "meta", "get", "a"],
            &["weigh", "meta", "--color", "never", "set", "a"],
            &["weigh", "help", "meta"],
            &["weigh", "ls", "meta", "a"],
            &["weigh", "ls", "model"],
            &["weigh", "--help"],
            &["weigh", "help", "ls"],
            &["weigh", "--color", "never", "ls", "model"],
            &["weigh", "--max-header", "100", "ls", "model"],
            &["weigh", "--color", "never"],
            &["weigh", "--"],
            &["weigh", "check", "ls"],
        ] {
            assert_eq!(with(unchanged), unchanged);
        }
    }
}
