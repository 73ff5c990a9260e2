//! What somebody most likely meant by a pattern that matches no name.

use weigh::format::order;

/// How many names are suggested.
const SUGGESTED: usize = 3;

/// What globs are made of.
const GLOB: &[char] = &['*', '?', '[', ']', '{', '}', '\\'];

/// Names less alike than this, in thousandths, are not worth suggesting.
const ALIKE: usize = 500;

/// What to try instead of `pattern`, given the names there are; `None` if nothing comes near.
pub(crate) fn help<'n, I>(pattern: &str, names: impl Fn() -> I) -> Option<String>
where
    I: Iterator<Item = &'n str>,
{
    help_with("name", pattern, names)
}

/// The same for other things than names; `noun` is what one of them is called.
pub(crate) fn help_with<'n, I>(noun: &str, pattern: &str, names: impl Fn() -> I) -> Option<String>
where
    I: Iterator<Item = &'n str>,
{
    if is_plain(pattern) && !pattern.is_empty() {
        let containing = names().filter(|name| name.contains(pattern)).count();
        if containing > 0 {
            let (is, names) = if containing == 1 {
                ("contains", format!("1 {noun}"))
            } else {
                ("contain", format!("{containing} {noun}s"))
            };
            return Some(format!(
                "A selector matches whole {noun}s; {names} {is} it: try `*{pattern}*`."
            ));
        }
    }
    named(noun, pattern, names())
}

/// The names most like a pattern, in words; `None` if none comes near.
pub(crate) fn named<'n>(
    noun: &str,
    pattern: &str,
    names: impl Iterator<Item = &'n str>,
) -> Option<String> {
    let nearest = nearest(pattern, names);
    let (last, first) = nearest.split_last()?;
    Some(if first.is_empty() {
        format!("The nearest {noun} is `{last}`.")
    } else {
        format!("The nearest {noun}s are `{}` and `{last}`.", first.join("`, `"))
    })
}

fn is_plain(pattern: &str) -> bool {
    !pattern.contains(GLOB)
}

/// The names most like a pattern, the most alike first.
pub(crate) fn nearest<'n>(pattern: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let pairs = Pairs::of(pattern);
    let mut best: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let likeness = pairs.likeness(name);
        let worst = best.last().map_or(0, |(likeness, _)| *likeness);
        if likeness < ALIKE || (best.len() == SUGGESTED && likeness < worst) {
            continue;
        }
        let before = |(other, own): &(usize, &str)| {
            let by_name = || order::compare(own, name).is_lt();
            *other > likeness || (*other == likeness && by_name())
        };
        best.insert(best.partition_point(before), (likeness, name));
        best.truncate(SUGGESTED);
    }
    best.into_iter().map(|(_, name)| name).collect()
}

/// The pairs of neighbouring bytes of a pattern, without regard to case or to what globs are made of.
struct Pairs {
    /// For each pair there may be, its number in the pattern, from 1 on; 0 if it is not in it.
    numbers: Vec<u8>,
    count: u8,
    is_glob: bool,
}

impl Pairs {
    /// As many as have a bit each in a `u128`.
    const MOST: u8 = 128;

    fn of(pattern: &str) -> Self {
        let mut pairs = Self { numbers: vec![0; 1 << 16], count: 0, is_glob: !is_plain(pattern) };
        for pair in pattern.split([GLOB, &[',']].concat().as_slice()).flat_map(pairs_of) {
            if let Some(number) = pairs.numbers.get_mut(pair)
                && *number == 0
                && pairs.count < Self::MOST
            {
                pairs.count += 1;
                *number = pairs.count;
            }
        }
        pairs
    }

    /// How much of a glob's pairs a name has, or how much a name and another have in common (Sørensen and
    /// Dice's coefficient), in thousandths.
    fn likeness(&self, name: &str) -> usize {
        let mut found = 0_u128;
        for pair in pairs_of(name) {
            let number = self.numbers.get(pair).copied().unwrap_or_default();
            if let Some(place) = number.checked_sub(1) {
                found |= 1 << place;
            }
        }
        let own = usize::from(self.count);
        let other = if self.is_glob { own } else { name.len().saturating_sub(1) };
        let common = usize::try_from(found.count_ones()).unwrap_or_default();
        common * 2000 / (own + other).max(1)
    }
}

/// The pairs of a text's neighbouring bytes, as numbers.
fn pairs_of(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    bytes.iter().zip(bytes.iter().skip(1)).map(|(one, other)| {
        let pair = [one.to_ascii_lowercase(), other.to_ascii_lowercase()];
        usize::from(u16::from_be_bytes(pair))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "lm_head.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.1.self_attn.q_proj.weight",
        "model.layers.10.self_attn.q_proj.weight",
        "model.norm.weight",
    ];

    #[test]
    fn help_is_what_was_meant() {
        for (pattern, want) in [
            (
                "self_attn",
                Some("A selector matches whole names; 3 names contain it: try `*self_attn*`."),
            ),
            (
                "lm_head",
                Some("A selector matches whole names; 1 name contains it: try `*lm_head*`."),
            ),
            ("model.norm.wieght", Some("The nearest name is `model.norm.weight`.")),
            (
                "Model.Layers.1.self_attn.q_proj.*",
                Some(
                    "The nearest names are `model.layers.1.self_attn.q_proj.weight`, \
                     `model.layers.10.self_attn.q_proj.weight` and `model.layers.0.self_attn.q_proj.weight`.",
                ),
            ),
            (
                "*q_prj*",
                Some(
                    "The nearest names are `model.layers.0.self_attn.q_proj.weight`, \
                     `model.layers.1.self_attn.q_proj.weight` and `model.layers.10.self_attn.q_proj.weight`.",
                ),
            ),
            ("zzz*", None),
            ("", None),
        ] {
            let help = help(pattern, || NAMES.into_iter());
            assert_eq!(help.as_deref(), want, "{pattern}");
        }
    }
}
