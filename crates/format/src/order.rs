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
    let same = common_prefix(one, other);
    // Both have this prefix, so the component in which they part starts at the same place.
    let prefix = one.get(..same).unwrap_or_default();
    let start = prefix.iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot.wrapping_add(1));
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
/// ranks of its components, and the decorations are sorted.
#[must_use]
pub fn natural(names: &[&str], key: HashKey) -> Vec<u32> {
    let mut order: Vec<u32> = (0..position(names.len())).collect();
    if names.is_sorted_by(|one, other| compare(one, other) != Ordering::Greater) {
        return order;
    }
    if let Some(mut keyed) = decorate(names, key) {
        keyed.sort_unstable();
        for (slot, (_, number)) in order.iter_mut().zip(keyed) {
            *slot = number;
        }
    } else {
        let name = |number: u32| {
            usize::try_from(number).ok().and_then(|number| names.get(number)).copied()
        };
        order.sort_unstable_by(|&one, &other| {
            let (one_name, other_name) = (name(one), name(other));
            compare(one_name.unwrap_or_default(), other_name.unwrap_or_default())
                .then(one.cmp(&other))
        });
    }
    order
}

/// Bits of a component's rank in a decoration.
const RANK_BITS: u32 = 16;

/// Components that a decoration has room for, after those that all names begin with.
const RANKS: usize = 8;

/// Pairs each name's number with the ranks of its components, first component highest.
///
/// `None` if some name has more components than there is room for, or there are too many different ones.
fn decorate(names: &[&str], key: HashKey) -> Option<Vec<(u128, u32)>> {
    let skipped = common_components(names);
    let mut lookup = Lookup::with_room(key, 1024);
    let mut distinct: Vec<&[u8]> = Vec::new();
    let mut keyed: Vec<(u128, u32)> = Vec::with_capacity(names.len());
    for (number, name) in (0_u32..).zip(names) {
        let rest = name.as_bytes().get(skipped..).unwrap_or_default();
        let mut ranks = 0_u128;
        let mut room = RANKS;
        for component in components(rest) {
            room = room.checked_sub(1)?;
            let hash = lookup.hasher().hash(component);
            let next = position(distinct.len());
            let equals = |other: u32| {
                usize::try_from(other).ok().and_then(|other| distinct.get(other))
                    == Some(&component)
            };
            let id = match lookup.insert(hash, next, equals) {
                Some(id) => id,
                None => {
                    distinct.push(component);
                    next
                }
            };
            // 0 is for no component at all, which sorts before any.
            let id = u16::try_from(id).ok()?.checked_add(1)?;
            ranks = (ranks << RANK_BITS) | u128::from(id);
        }
        let shift = RANK_BITS.saturating_mul(u32::try_from(room).unwrap_or_default());
        keyed.push((ranks.checked_shl(shift).unwrap_or_default(), number));
    }
    let mut by_rank: Vec<usize> = (0..distinct.len()).collect();
    by_rank.sort_unstable_by(|&one, &other| {
        let component = |id: usize| distinct.get(id).copied().unwrap_or_default();
        compare_components(component(one), component(other))
    });
    let mut rank_of = alloc::vec![0_u16; distinct.len().saturating_add(1)];
    for (rank, id) in (1_u16..).zip(by_rank) {
        *rank_of.get_mut(id.saturating_add(1))? = rank;
    }
    for (ids, _) in &mut keyed {
        let mut lanes = ids.to_be_bytes();
        let (lanes_of_two, _) = lanes.as_chunks_mut::<2>();
        for lane in lanes_of_two {
            *lane = rank_of.get(usize::from(u16::from_be_bytes(*lane)))?.to_be_bytes();
        }
        *ids = u128::from_be_bytes(lanes);
    }
    Some(keyed)
}

/// Bytes at the start of every name that are the same whole components.
fn common_components(names: &[&str]) -> usize {
    let Some((first, rest)) = names.split_first() else {
        return 0;
    };
    let mut same = first.as_bytes();
    for name in rest {
        let length = common_prefix(same, name.as_bytes());
        same = same.get(..length).unwrap_or_default();
    }
    same.iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot.saturating_add(1))
}

/// How many bytes two names have in common at the start.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (one_words, _) = one.as_chunks::<8>();
    let (other_words, _) = other.as_chunks::<8>();
    let words = one_words.iter().zip(other_words).take_while(|(a, b)| a == b).count();
    let start = words.saturating_mul(8);
    let tails = one.iter().skip(start).zip(other.iter().skip(start));
    start.saturating_add(tails.take_while(|(a, b)| a == b).count())
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
            names in prop::collection::vec("[a-c01]{0,3}(\\.[ab0-9]{0,2}){0,9}", 0..60),
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
