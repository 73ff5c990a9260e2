//! What is taken of one dimension, and how the indices of a list fall to the dimensions.

use core::iter::{Chain, RepeatN, repeat_n};
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use core::slice::Iter;

use super::SliceError;

/// What is taken of one dimension, by numpy's basic indexing.
///
/// Places count from 0; negative ones count from the end, −1 being the last.
///
/// ```
/// use weigh_format::slice::Index;
///
/// assert_eq!(Index::from(2..10).step(3).to_string(), "2:10:3");
/// assert_eq!(Index::from(..).step(-1).to_string(), "::-1");
/// assert_eq!(Index::from(..=-1), Index::ALL);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Index {
    /// One place. The slice does not have the dimension.
    At(i64),
    /// The places from `start` on, `step` apart, before `stop` is reached.
    ///
    /// Those outside of the dimension are moved to its ends, so a range may take nothing but is never out of
    /// range.
    Range {
        /// The first place. Without one: the first of the dimension, or the last if the step is negative.
        start: Option<i64>,
        /// The place to stop before. Without one: the end of the dimension, or its beginning.
        stop: Option<i64>,
        /// From a place to the next. Negative steps go backwards; 0 is an error.
        step: i64,
    },
    /// As many whole dimensions as the other indices of the list leave over, maybe none: numpy's `...`.
    Ellipsis,
}

impl Index {
    /// All of a dimension: numpy's `:`.
    pub const ALL: Self = Self::Range { start: None, stop: None, step: 1 };

    /// The same range with another step. One place, and an ellipsis, stay what they are.
    ///
    /// `start` and `stop` stay too, so with a negative step they are to be given from the higher to the
    /// lower.
    #[must_use]
    pub const fn step(self, step: i64) -> Self {
        match self {
            Self::Range { start, stop, step: _ } => Self::Range { start, stop, step },
            Self::At(_) | Self::Ellipsis => self,
        }
    }

    /// The places of dimension `axis`, which has `size` of them.
    pub(super) fn take(self, axis: usize, size: u64) -> Result<Taken, SliceError> {
        match self {
            Self::At(index) => {
                let place = u64::try_from(from_the_beginning(index, size)).ok();
                let low = place.filter(|&place| place < size).ok_or(SliceError::OutOfRange {
                    axis,
                    index,
                    size,
                })?;
                Ok(Taken { low, count: 1, step: 1, is_reversed: false, is_kept: false })
            }
            Self::Range { step: 0, .. } => Err(SliceError::StepZero { axis }),
            Self::Range { start, stop, step } => Ok(range(size, start, stop, step)),
            Self::Ellipsis => Ok(range(size, None, None, 1)),
        }
    }
}

impl From<i64> for Index {
    fn from(place: i64) -> Self {
        Self::At(place)
    }
}

impl From<Range<i64>> for Index {
    fn from(range: Range<i64>) -> Self {
        Self::Range { start: Some(range.start), stop: Some(range.end), step: 1 }
    }
}

impl From<RangeFrom<i64>> for Index {
    fn from(range: RangeFrom<i64>) -> Self {
        Self::Range { start: Some(range.start), stop: None, step: 1 }
    }
}

impl From<RangeTo<i64>> for Index {
    fn from(range: RangeTo<i64>) -> Self {
        Self::Range { start: None, stop: Some(range.end), step: 1 }
    }
}

/// The end belongs to the range, so `..=-1` goes to the last place, and so does `..=i64::MAX`.
impl From<RangeInclusive<i64>> for Index {
    fn from(range: RangeInclusive<i64>) -> Self {
        Self::Range { start: Some(*range.start()), stop: after(*range.end()), step: 1 }
    }
}

/// The end belongs to the range, so `..=-1` goes to the last place, and so does `..=i64::MAX`.
impl From<RangeToInclusive<i64>> for Index {
    fn from(range: RangeToInclusive<i64>) -> Self {
        Self::Range { start: None, stop: after(range.end), step: 1 }
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Self {
        Self::ALL
    }
}

/// Where to stop so that `end` is the last place. After −1 comes no 0 but the end of the dimension.
fn after(end: i64) -> Option<i64> {
    end.checked_add(1).filter(|&stop| stop != 0)
}

/// The places taken of a dimension: `count` of them, the lowest at `low` (0 if there is none), `step` apart.
pub(super) struct Taken {
    pub(super) low: u64,
    pub(super) count: u64,
    pub(super) step: u64,
    /// Whether they are wanted from the highest to the lowest, and there are several.
    pub(super) is_reversed: bool,
    /// Whether the slice has the dimension.
    pub(super) is_kept: bool,
}

/// The place that an index means, which may lie outside of the dimension.
fn from_the_beginning(index: i64, size: u64) -> i128 {
    let place = i128::from(index);
    if index < 0 { place.saturating_add(i128::from(size)) } else { place }
}

/// The places of a range whose step is not 0.
#[expect(clippy::similar_names, reason = "numpy's words")]
fn range(size: u64, start: Option<i64>, stop: Option<i64>, step: i64) -> Taken {
    // Going backwards, one may start at the last place and stop before the first.
    let backwards = step < 0;
    let shift = i128::from(backwards);
    let lowest = 0_i128.saturating_sub(shift);
    let highest = i128::from(size).saturating_sub(shift);
    let (first, last) = if backwards { (highest, lowest) } else { (lowest, highest) };
    let within = |index| from_the_beginning(index, size).clamp(lowest, highest);
    let start = start.map_or(first, within);
    let stop = stop.map_or(last, within);
    let distance = if backwards { start.saturating_sub(stop) } else { stop.saturating_sub(start) };
    let step = step.unsigned_abs();
    // A distance below 0 takes nothing.
    let count = u64::try_from(distance).unwrap_or(0).div_ceil(step.max(1));
    let start = u64::try_from(start).unwrap_or(0);
    let low = match count.checked_sub(1) {
        Some(steps) if backwards => start.saturating_sub(steps.saturating_mul(step)),
        Some(_) => start,
        None => 0,
    };
    Taken { low, count, step, is_reversed: backwards && count > 1, is_kept: true }
}

/// The indices of a list, one for each dimension.
type PerAxis<'a> = Chain<Chain<Iter<'a, Index>, RepeatN<&'a Index>>, Iter<'a, Index>>;

/// One index for each of `rank` dimensions, outermost first.
pub(super) fn for_each_axis(index: &[Index], rank: usize) -> Result<PerAxis<'_>, SliceError> {
    let mut parts = index.splitn(2, |index| matches!(index, Index::Ellipsis));
    let before = parts.next().unwrap_or_default();
    let after = parts.next().unwrap_or_default();
    if after.contains(&Index::Ellipsis) {
        return Err(SliceError::TwoEllipses);
    }
    let given = before.len().saturating_add(after.len());
    let left_over = rank.checked_sub(given).ok_or(SliceError::TooManyIndices { given, rank })?;
    Ok(before.iter().chain(repeat_n(&Index::ALL, left_over)).chain(after))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// The places an index takes of a dimension, in the order they are wanted.
    fn places(index: impl Into<Index>, size: u64) -> Option<Vec<u64>> {
        let taken = index.into().take(0, size).ok()?;
        let mut places: Vec<u64> =
            (0..taken.count).map(|number| taken.low + number * taken.step).collect();
        if taken.is_reversed {
            places.reverse();
        }
        Some(places)
    }

    #[test]
    fn both_ends_of_a_dimension_bound_its_places() {
        for (index, want) in [
            (-6, None),
            (-5, Some(0)),
            (-1, Some(4)),
            (0, Some(0)),
            (4, Some(4)),
            (5, None),
            (i64::MIN, None),
            (i64::MAX, None),
        ] {
            assert_eq!(places(index, 5), want.map(|place| alloc::vec![place]), "{index}");
        }
        assert_eq!(places(0, 0), None);
        assert_eq!(places(-1, 0), None);
        assert_eq!(places(-1, u64::MAX), Some(alloc::vec![u64::MAX - 1]));
        assert_eq!(places(i64::MIN, u64::MAX), Some(alloc::vec![(1 << 63) - 1]));
    }

    #[test]
    fn ranges_are_moved_to_the_ends_and_default_to_them() {
        let range = |start, stop, step| Index::Range { start, stop, step };
        let (min, max) = (i64::MIN, i64::MAX);
        for (index, want) in [
            (range(None, None, 1), &[0, 1, 2, 3, 4][..]),
            (range(None, None, -1), &[4, 3, 2, 1, 0]),
            (range(None, None, 2), &[0, 2, 4]),
            (range(None, None, -2), &[4, 2, 0]),
            (range(None, None, 4), &[0, 4]),
            (range(None, None, 5), &[0]),
            (range(None, None, -5), &[4]),
            (range(Some(1), Some(4), 1), &[1, 2, 3]),
            (range(Some(4), Some(1), 1), &[]),
            (range(Some(4), Some(1), -1), &[4, 3, 2]),
            (range(Some(1), Some(4), -1), &[]),
            (range(Some(-3), Some(-1), 1), &[2, 3]),
            (range(Some(-1), Some(-3), -1), &[4, 3]),
            // Going backwards one cannot stop before the first by a number.
            (range(Some(2), Some(-1), -1), &[]),
            (range(Some(2), Some(-6), -1), &[2, 1, 0]),
            (range(Some(min), Some(max), 1), &[0, 1, 2, 3, 4]),
            (range(Some(max), Some(min), -1), &[4, 3, 2, 1, 0]),
            (range(Some(max), None, 1), &[]),
            (range(Some(min), None, -1), &[]),
            (range(None, Some(min), 1), &[]),
            (range(None, Some(max), -1), &[]),
            (range(None, None, max), &[0]),
            (range(None, None, min), &[4]),
        ] {
            assert_eq!(places(index, 5).as_deref(), Some(want), "{index}");
            assert_eq!(places(index, 0).as_deref(), Some(&[][..]), "{index}");
        }
        assert_eq!(places(range(None, None, 0), 5), None);
        let far = range(None, None, min);
        assert_eq!(places(far, u64::MAX), Some(alloc::vec![u64::MAX - 1, u64::MAX / 2 - 1]));
    }

    #[test]
    fn ranges_of_rust_are_ranges_of_places() {
        for (index, want) in [
            (Index::from(3), "3"),
            (Index::from(1..4), "1:4"),
            (Index::from(1..), "1:"),
            (Index::from(..4), ":4"),
            (Index::from(..), ":"),
            (Index::from(1..=4), "1:5"),
            (Index::from(..=4), ":5"),
            (Index::from(-3..=-2), "-3:-1"),
            (Index::from(-3..=-1), "-3:"),
            (Index::from(0..=i64::MAX), "0:"),
            (Index::from(2..10).step(3), "2:10:3"),
            (Index::ALL.step(-1), "::-1"),
            (Index::At(3).step(2), "3"),
            (Index::Ellipsis.step(2), "..."),
        ] {
            assert_eq!(index.to_string(), want);
        }
    }

    #[test]
    fn an_ellipsis_is_the_dimensions_that_are_left_over() {
        let (one, two, rest) = (Index::At(1), Index::At(2), Index::Ellipsis);
        for (index, rank, want) in [
            (&[one, rest, two][..], 4, Some("1,:,:,2")),
            (&[one, rest, two], 2, Some("1,2")),
            (&[one, rest, two], 1, None),
            (&[rest], 0, Some("")),
            (&[], 2, Some(":,:")),
            (&[one], 2, Some("1,:")),
            (&[one, two], 1, None),
            (&[rest, rest], 2, None),
        ] {
            let got = for_each_axis(index, rank).ok();
            let got = got.map(|it| it.map(ToString::to_string).collect::<Vec<_>>().join(","));
            assert_eq!(got.as_deref(), want, "{index:?} of {rank}");
        }
    }
}
