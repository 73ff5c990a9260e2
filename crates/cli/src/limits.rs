//! `--limit NAME=VALUE`: what reading a checkpoint of torch may cost, for every command that reads some.

use clap::Args;
use weigh::torch::pickle::Limits;

use crate::units;

/// A limit that is set.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LimitArgs {
    /// Set a limit of what reading pickles and archives may cost, as opcodes=1000000 or string-bytes=1GiB. May be
    /// repeated. There are pickle-bytes, opcodes, nodes, graph-bytes, memo, stack, string-bytes, integer-bytes, depth,
    /// tensors, entries, name-bytes, ratio, expansion, expanded-bytes, visits, tree, made-bytes and foreign
    #[arg(long = "limit", help_heading = "Limits", value_name = "NAME=VALUE", value_parser = parse)]
    set: Vec<Limit>,
}

/// One of them, and what it is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    set: fn(&mut Limits, u64),
    value: u64,
}

impl LimitArgs {
    /// The limits, with those changed that are given; of one that is given twice the last counts.
    pub(crate) fn over(&self, limits: Limits) -> Limits {
        self.set.iter().fold(limits, |mut limits, limit| {
            (limit.set)(&mut limits, limit.value);
            limits
        })
    }
}

/// A limit by its name: the most that it can be, and how it is set.
type Row = (&'static str, u64, fn(&mut Limits, u64));

const COUNT: u64 = u32::MAX as u64;

/// All of them.
const ALL: [Row; 19] = [
    ("pickle-bytes", u64::MAX, |limits, value| limits.pickle_bytes = value),
    ("opcodes", u64::MAX, |limits, value| limits.opcodes = value),
    ("nodes", COUNT, |limits, value| limits.nodes = count(value)),
    ("graph-bytes", u64::MAX, |limits, value| limits.graph_bytes = value),
    ("memo", COUNT, |limits, value| limits.memo = count(value)),
    ("stack", COUNT, |limits, value| limits.stack = count(value)),
    ("string-bytes", u64::MAX, |limits, value| limits.string_bytes = value),
    ("integer-bytes", COUNT, |limits, value| limits.integer_bytes = count(value)),
    ("depth", COUNT, |limits, value| limits.depth = count(value)),
    ("tensors", COUNT, |limits, value| limits.tensors = count(value)),
    ("entries", COUNT, |limits, value| limits.entries = count(value)),
    ("name-bytes", COUNT, |limits, value| limits.name_bytes = count(value)),
    ("ratio", COUNT, |limits, value| limits.ratio = count(value)),
    ("expansion", COUNT, |limits, value| limits.expansion = count(value)),
    ("expanded-bytes", u64::MAX, |limits, value| limits.expanded_bytes = value),
    ("visits", COUNT, |limits, value| limits.visits = count(value)),
    ("tree", COUNT, |limits, value| limits.tree = count(value)),
    ("made-bytes", u64::MAX, |limits, value| limits.made_bytes = value),
    ("foreign", COUNT, |limits, value| limits.foreign = count(value)),
];

fn count(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn parse(text: &str) -> Result<Limit, String> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=VALUE, as opcodes=1000000")?;
    let Some((_, most, set)) = ALL.iter().find(|(own, ..)| *own == name) else {
        let names = ALL.map(|(name, ..)| name).join(", ");
        return Err(format!("there is no limit of this name; there are {names}"));
    };
    let value = units::parse_bytes(value)
        .map_err(|_| format!("the value of {name} is a number, as 4096, 64K or 1GiB"))?;
    if value > *most {
        return Err(format!("{name} is {most} at most"));
    }
    Ok(Limit { set: *set, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_set_by_its_name_and_no_other_is() {
        for (name, most, _) in ALL {
            for value in [7, most] {
                let limit = parse(&format!("{name}={value}")).unwrap();
                let set = LimitArgs { set: vec![limit] }.over(Limits::default());
                assert_ne!(set, Limits::default(), "{name}");
                let field = name.replace('-', "_");
                assert!(format!("{set:?}").contains(&format!("{field}: {value}")), "{name}");
            }
            if most == COUNT {
                assert!(parse(&format!("{name}={}", COUNT + 1)).is_err(), "{name}");
            }
        }
        // There is none that has no name.
        let fields = format!("{:?}", Limits::default()).matches(':').count();
        assert_eq!(fields, ALL.len());
    }

    #[test]
    fn the_last_of_one_counts_and_what_is_no_limit_is_said_to_be_none() {
        let set =
            ["depth=1", "ratio=2", "depth=3", "string-bytes=1KiB"].map(|it| parse(it).unwrap());
        let limits = LimitArgs { set: set.to_vec() }.over(Limits::default());
        assert_eq!((limits.depth, limits.ratio, limits.string_bytes), (3, 2, 1024));
        for wrong in ["depth", "=1", "levels=1", "Depth=1", "depth=", "depth=-1", "depth=x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("levels=1").unwrap_err().contains("opcodes, nodes"));
    }

    #[test]
    fn the_help_names_them_all() {
        use clap::Args as _;
        let command = LimitArgs::augment_args(clap::Command::new("x"));
        let help = command.get_arguments().next().unwrap().get_help().unwrap().to_string();
        assert!(ALL.iter().all(|(name, ..)| help.contains(name)), "{help}");
    }

    #[test]
    fn the_page_has_a_row_for_each() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scan.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (name, ..) in ALL {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
