//! Numbered blocks, and experts.

use std::collections::HashMap;

use super::{Evidence, Extent, Trait, counted, shortened};
use crate::Item;
use crate::item::plain_number;

/// Most prefixes that are reported, those with the most blocks first.
const PREFIXES: usize = 8;

/// Numbered blocks: modules whose name is a number, outside any other such module.
pub(super) fn layers(items: &[Item<'_>]) -> Vec<Trait> {
    let mut prefixes = Numbers::default();
    for item in items {
        if let Some((prefix, number)) = outermost_block(item.name) {
            prefixes.add(prefix, Kind::Numbered, number);
        }
    }
    let mut blocks = prefixes.by_name();
    blocks.retain(|(_, entries)| entries.len() > 1);
    blocks.sort_by(|(one, ones), (other, others)| {
        others.len().cmp(&ones.len()).then_with(|| one.cmp(other))
    });
    blocks.truncate(PREFIXES);
    let evidence_of = |prefix: &str| {
        let mut evidence = Evidence::default();
        let is_in = |item: &&Item<'_>| {
            outermost_block(item.name).is_some_and(|(before, _)| before == prefix)
        };
        items.iter().filter(is_in).take(Trait::EVIDENCE).for_each(|item| evidence.add(item.name));
        evidence
    };
    let trait_of = |(prefix, entries): (&str, &[Entry])| {
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        let place = match prefix {
            "" => String::from("at the top level"),
            prefix => format!("under {}", shortened(prefix)),
        };
        let span = match Extent::of(entries.iter().map(|entry| entry.number)) {
            Some(Extent { least, most }) if most.abs_diff(least).saturating_add(1) == count => {
                format!("{least} to {most}")
            }
            Some(Extent { least, most }) => format!("numbers between {least} and {most}"),
            None => String::new(),
        };
        let text = format!("{count} numbered blocks {place} ({span})");
        evidence_of(prefix).proves("layers", text)
    };
    blocks.into_iter().map(trait_of).collect()
}

/// The number of the outermost numbered module that `name` is in, and the name before it.
fn outermost_block(name: &str) -> Option<(&str, u64)> {
    let mut start = 0_usize;
    for component in name.split('.') {
        let end = start.saturating_add(component.len());
        // The last component is the tensor, not a module.
        if end == name.len() {
            return None;
        }
        if let Some(number) = plain_number(component) {
            return Some((name.get(..start.saturating_sub(1))?, number));
        }
        start = end.saturating_add(1);
    }
    None
}

/// Experts: `experts.0.…`, `experts.1.…`; or tensors in `experts` with a dimension for them.
pub(super) fn experts(items: &[Item<'_>]) -> Option<Trait> {
    let mut modules = Numbers::default();
    let mut evidence = Evidence::default();
    for item in items {
        let Some((module, rest)) = in_experts(item.name) else {
            continue;
        };
        match rest.split_once('.') {
            Some((first, _)) => {
                let Some(number) = plain_number(first) else {
                    continue;
                };
                modules.add(module, Kind::Numbered, number);
            }
            None => match item.shape {
                Some([count, _, _, ..]) => modules.add(module, Kind::Stacked, *count),
                _ => continue,
            },
        }
        evidence.add(item.name);
    }
    let counts: Vec<u64> = modules
        .by_name()
        .into_iter()
        .filter_map(|(_, entries)| count_of_experts(entries))
        .collect();
    let modules = u64::try_from(counts.len()).unwrap_or(u64::MAX);
    let extent = Extent::of(counts)?;
    let text = format!("{} experts in {}", extent.text(), counted(modules, "module"));
    Some(evidence.proves("mixture-of-experts", text))
}

/// How many experts a module has; `None` if stacked tensors disagree, or there are both kinds.
fn count_of_experts(group: &[Entry]) -> Option<u64> {
    match group {
        [Entry { kind: Kind::Stacked, number, .. }] => Some(*number),
        // Stacked ones sort first, so that all are numbered if the first is.
        [first, _, ..] if first.kind == Kind::Numbered => u64::try_from(group.len()).ok(),
        _ => None,
    }
}

/// Numbers by the name they belong to.
#[derive(Default)]
struct Numbers<'a> {
    names: Vec<&'a str>,
    places: HashMap<&'a str, usize>,
    entries: Vec<Entry>,
}

impl<'a> Numbers<'a> {
    fn add(&mut self, name: &'a str, kind: Kind, number: u64) {
        let next = self.names.len();
        let place = match self.entries.last() {
            // Most tensors follow another of the same name, which spares looking it up.
            Some(last) if self.names.get(last.place) == Some(&name) => last.place,
            _ => *self.places.entry(name).or_insert(next),
        };
        if place == next {
            self.names.push(name);
        }
        let entry = Entry { place, kind, number };
        if self.entries.last() != Some(&entry) {
            self.entries.push(entry);
        }
    }

    /// The names, and the entries of each, sorted and without doubles.
    fn by_name(&mut self) -> Vec<(&'a str, &[Entry])> {
        self.entries.sort_unstable();
        self.entries.dedup();
        let groups = self.entries.chunk_by(|one, other| one.place == other.place);
        // Every name has entries, and places are in the order of names.
        self.names.iter().copied().zip(groups).collect()
    }
}

/// A number that belongs to a name. Sorts by name, those of one kind together.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Entry {
    place: usize,
    kind: Kind,
    number: u64,
}

/// What a number is of.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    /// The first dimension of a tensor.
    Stacked,
    /// A component of a name.
    Numbered,
}
/// `name` after its component `experts`, and up to it.
fn in_experts(name: &str) -> Option<(&str, &str)> {
    const MODULE: &str = "experts.";
    let start = match name.find(".experts.") {
        _ if name.starts_with(MODULE) => 0,
        Some(dot) => dot.saturating_add(1),
        None => return None,
    };
    name.split_at_checked(start.saturating_add(MODULE.len()))
}
