//! Which tensors go into which shard of a set.

use std::ops::Range;

/// Cuts tensors of these sizes, in their order, into shards of at most `most` bytes.
///
/// Each range is the numbers of one shard's tensors. A shard takes tensors as long as they fit; a tensor
/// of more than `most` bytes has one of its own. A tensor without bytes never begins a shard, except the
/// first: it goes with the tensors before it.
///
/// ```
/// use weigh_inventory::split::assign;
///
/// assert_eq!(assign(&[3, 2, 9, 4], 5), [0..2, 2..3, 3..4]);
/// ```
#[must_use]
pub fn assign(bytes: &[u64], most: u64) -> Vec<Range<usize>> {
    let mut shards = Vec::new();
    let (mut start, mut sum) = (0, 0_u64);
    for (number, &size) in bytes.iter().enumerate() {
        let grown = sum.checked_add(size).filter(|grown| *grown <= most);
        // What has no bytes yet takes any tensor.
        sum = if size == 0 || sum == 0 {
            sum.saturating_add(size)
        } else if let Some(grown) = grown {
            grown
        } else {
            shards.push(start..number);
            start = number;
            size
        };
    }
    if start < bytes.len() {
        shards.push(start..bytes.len());
    }
    shards
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_sides_of_every_boundary() {
        // Each with where the shards end.
        for (bytes, most, want) in [
            (&[][..], 5, &[][..]),
            (&[0], 5, &[1]),
            (&[5], 5, &[1]),
            (&[6], 5, &[1]),
            (&[2, 3], 5, &[2]),
            (&[2, 4], 5, &[1, 2]),
            (&[6, 1, 6], 5, &[1, 2, 3]),
            (&[6, 0, 6, 0, 0], 5, &[2, 5]),
            (&[0, 0, 6, 1], 5, &[3, 4]),
            (&[5, 0, 5], 5, &[2, 3]),
            (&[0, 0], 0, &[2]),
            (&[1, 1], 0, &[1, 2]),
            (&[u64::MAX, u64::MAX, 1], u64::MAX, &[1, 2, 3]),
            (&[u64::MAX - 1, 1], u64::MAX, &[2]),
        ] {
            let ends: Vec<usize> = assign(bytes, most).iter().map(|shard| shard.end).collect();
            assert_eq!(ends, want, "{bytes:?} {most}");
        }
    }

    proptest! {
        #[test]
        fn shards_cover_all_and_are_as_large_as_they_may_be(
            bytes in prop::collection::vec(0_u64..9, 0..60),
            most in 0_u64..20,
        ) {
            let shards = assign(&bytes, most);
            let mut end = 0;
            for shard in &shards {
                prop_assert_eq!(shard.start, end);
                end = shard.end;
                let sizes: Vec<u64> =
                    bytes[shard.clone()].iter().copied().filter(|size| *size > 0).collect();
                prop_assert!(sizes.len() == 1 || sizes.iter().sum::<u64>() <= most || bytes.iter().all(|it| *it == 0));
                let next = bytes.get(end).copied();
                prop_assert!(next.is_none_or(|next| next > 0 && sizes.iter().sum::<u64>() + next > most));
            }
            prop_assert_eq!(end, bytes.len());
        }
    }
}
