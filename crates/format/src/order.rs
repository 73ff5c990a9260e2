//! Natural order of names: `layers.2` before `layers.10`.
//!
//! Names are compared component by component, a component being what stands between dots, so that a
//! module's tensors stay together. In a component a run of digits counts as a number.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::lookup::{HashKey, Lookup};
use crate::table::position;

/// Compares two names in natural order. Only equal names compare equal.
///
/// ```
/// use std::cmp::Ordering;
/// use weigh_format::order::compare;
///
/// assert_eq!(compare("layers.2.w", "layers.10.w"), Ordering::Less);
/// assert_eq!(compare("a.b", "a-b.b"), Ordering::Less);
/// ```
#[must_use]
pub fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    // The component in which they part starts at the same place in both.
    let start = whole_components(one, other).len();
    let mut ones = components(one.get(start..).unwrap_or_default());
    let mut others = components(other.get(start..).unwrap_or_default());
    loop {
        match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(one), Some(other)) => match compare_components(one, other) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
        }
    }
}

/// The numbers of `names` in natural order.
///
/// Names that are in order already are only looked at once. Otherwise each is decorated once, with the
/// ranks of its components, and the decorations are sorted. `key` keeps the table of components from
/// being flooded.
#[must_use]
pub fn natural(names: &[&str], key: HashKey) -> Vec<u32> {
    if names.is_sorted_by(|one, other| compare(one, other) != Ordering::Greater) {
        return (0..position(names.len())).collect();
    }
    let ranks = Ranks::of(names, key);
    let mut decorated: Vec<(u64, u32)> =
        (0..position(names.len())).map(|number| (ranks.leading(number), number)).collect();
    decorated.sort_unstable_by(|&(one, number), &(other, other_number)| {
        one.cmp(&other)
            .then_with(|| ranks.of_name(number).cmp(ranks.of_name(other_number)))
            .then_with(|| number.cmp(&other_number))
    });
    decorated.into_iter().map(|(_, number)| number).collect()
}

/// The components of many names, each as its rank among all of them: names compare as their ranks do.
struct Ranks {
    /// One name's after the other's, without the components that all names begin with.
    all: Vec<u32>,
    /// Where the ranks of each name end.
    ends: Vec<u32>,
    /// Bits that a rank takes; 0 is for no component, which sorts before any.
    bits: u32,
}

impl Ranks {
    fn of(names: &[&str], key: HashKey) -> Self {
        let skipped = common_components(names);
        let mut lookup = Lookup::with_room(key, 1024);
        let mut distinct: Vec<&[u8]> = Vec::new();
        let mut ids: Vec<u32> = Vec::new();
        let mut ends: Vec<u32> = Vec::with_capacity(names.len());
        let (mut before, mut start_before) = (&[][..], 0_usize);
        for name in names {
            let name = name.as_bytes().get(skipped..).unwrap_or_default();
            // Names near each other in a file begin alike: what they share has been looked up already.
            let shared = whole_components(before, name);
            let start = ids.len();
            let shared_ids = components(shared).count().saturating_sub(1);
            ids.extend_from_within(start_before..start_before.saturating_add(shared_ids));
            (before, start_before) = (name, start);
            for component in components(name.get(shared.len()..).unwrap_or_default()) {
                let hash = lookup.hasher().hash(component);
                let next = position(distinct.len());
                let equals = |other: u32| at(&distinct, other) == Some(component);
                ids.push(lookup.insert(hash, next, equals).unwrap_or_else(|| {
                    distinct.push(component);
                    next
                }));
            }
            ends.push(position(ids.len()));
        }
        let mut by_rank: Vec<u32> = (0..position(distinct.len())).collect();
        by_rank.sort_unstable_by(|&one, &other| {
            let component = |id: u32| at(&distinct, id).unwrap_or_default();
            compare_components(component(one), component(other))
        });
        let mut rank_of = alloc::vec![0; distinct.len()];
        for (rank, &id) in (1_u32..).zip(&by_rank) {
            if let Some(slot) = rank_of.get_mut(usize::try_from(id).unwrap_or(usize::MAX)) {
                *slot = rank;
            }
        }
        for id in &mut ids {
            *id = at(&rank_of, *id).unwrap_or_default();
        }
        let bits = u32::BITS.saturating_sub(position(distinct.len()).leading_zeros()).max(1);
        Self { all: ids, ends, bits }
    }

    /// The ranks of a name's components.
    fn of_name(&self, number: u32) -> &[u32] {
        let start = number.checked_sub(1).and_then(|before| at(&self.ends, before));
        let end = at(&self.ends, number);
        let place = |end: Option<u32>| usize::try_from(end.unwrap_or_default()).unwrap_or_default();
        self.all.get(place(start)..place(end)).unwrap_or_default()
    }

    /// As many leading ranks of a name as 64 bits have room for, the first highest.
    fn leading(&self, number: u32) -> u64 {
        let mut leading = 0_u64;
        let mut room = u64::BITS;
        for &rank in self.of_name(number) {
            let Some(left) = room.checked_sub(self.bits) else { break };
            room = left;
            leading |= u64::from(rank).checked_shl(room).unwrap_or_default();
        }
        leading
    }
}

fn at<T: Copy>(items: &[T], number: u32) -> Option<T> {
    items.get(usize::try_from(number).ok()?).copied()
}

/// Bytes at the start of every name that are the same whole components.
fn common_components(names: &[&str]) -> usize {
    let mut names = names.iter().map(|name| name.as_bytes());
    let first = names.next().unwrap_or_default();
    names.fold(first, whole_components).len()
}

/// What two names have in common at the start, up to its last dot and with it.
fn whole_components<'n>(one: &'n [u8], other: &[u8]) -> &'n [u8] {
    let same = one.get(..common_prefix(one, other)).unwrap_or_default();
    let end = same.iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot.saturating_add(1));
    same.get(..end).unwrap_or_default()
}

/// How many bytes two names have in common at the start.
#[must_use]
pub fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (one_words, other_words) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    let mut same = 0_usize;
    for (word, other_word) in one_words.iter().zip(other_words) {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other_word);
        if differing != 0 {
            let bytes = usize::try_from(differing.trailing_zeros() / 8).unwrap_or_default();
            return same.saturating_add(bytes);
        }
        same = same.saturating_add(8);
    }
    // At least one of the two has no whole word left.
    let (ones, others) = (one.get(same..), other.get(same..));
    let pairs = ones.unwrap_or_default().iter().zip(others.unwrap_or_default());
    same.saturating_add(pairs.take_while(|(one, other)| one == other).count())
}

fn compare_components(one: &[u8], other: &[u8]) -> Ordering {
    let (mut ones, mut others) = (one, other);
    loop {
        let (one_digits, one_rest) = split_digits(ones);
        let (other_digits, other_rest) = split_digits(others);
        if !one_digits.is_empty() && !other_digits.is_empty() {
            match compare_numbers(one_digits, other_digits) {
                Ordering::Equal => (ones, others) = (one_rest, other_rest),
                unequal => return unequal,
            }
        } else {
            match (ones.split_first(), others.split_first()) {
                // Equal as numbers: `01` and `1` differ all the same.
                (None, None) => return one.cmp(other),
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some((one, one_rest)), Some((other, other_rest))) => {
                    if one != other {
                        return one.cmp(other);
                    }
                    (ones, others) = (one_rest, other_rest);
                }
            }
        }
    }
}

/// Compares two runs of digits of any length as numbers.
fn compare_numbers(one: &[u8], other: &[u8]) -> Ordering {
    let [one, other] = [one, other].map(|digits| {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.get(zeros..).unwrap_or_default()
    });
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at_checked(digits).unwrap_or_default()
}

fn components(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    #[test]
    fn numbers_count_and_modules_stay_together() {
        let sorted = [
            "", "1", "01", "2", "10", "a", "a.1.w", "a.2.b", "a.2.w", "a.10.w", "a.b", "a-b.b",
            "a1", "a2", "a10b",
        ];
        for (place, one) in sorted.iter().enumerate() {
            for (other_place, other) in sorted.iter().enumerate() {
                if one != other && [*one, *other] != ["1", "01"] && [*one, *other] != ["01", "1"] {
                    assert_eq!(compare(one, other), place.cmp(&other_place), "{one} {other}");
                }
            }
        }
        assert_ne!(compare("1", "01"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn decorated_and_compared_agree(
            names in prop::collection::vec("[a-c01]{0,3}(\\.[ab0-9]{0,2}){0,30}", 0..60),
            common in "([a-z]{1,3}\\.){0,2}",
        ) {
            let names: Vec<String> = names.iter().map(|name| format!("{common}{name}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut want: Vec<u32> = (0..u32::try_from(names.len()).unwrap()).collect();
            want.sort_by(|&one, &other| compare(names[one as usize], names[other as usize]));
            prop_assert_eq!(natural(&names, HashKey::new(1, 2)), want);
        }

        #[test]
        fn the_order_is_total(names in prop::collection::vec("[ab019.]{0,6}", 3)) {
            let [a, b, c] = [&names[0], &names[1], &names[2]];
            prop_assert_eq!(compare(a, b), compare(b, a).reverse());
            prop_assert_eq!(compare(a, b) == Ordering::Equal, a == b);
            if compare(a, b).is_le() && compare(b, c).is_le() {
                prop_assert!(compare(a, c).is_le());
            }
        }
    }
}
