//! How much there is: tensors, elements, bytes, dtypes, the largest tensors, and parameters.

use std::cmp::{Ordering, Reverse};

use weigh_format::Dtype;
use weigh_format::order::compare;

use crate::quantization::{Role, Siblings};
use crate::{Item, Totals};

/// What a set of tensors adds up to.
///
/// ```
/// use weigh_format::Dtype;
/// use weigh_inventory::Item;
/// use weigh_inventory::count::Counts;
///
/// let item = |name, dtype, bytes| Item { name, dtype: Some(dtype), shape: Some(&[8]), bytes };
/// let items = [item("a", Dtype::F32, 32), item("b", Dtype::BF16, 16), item("c", Dtype::F32, 32)];
/// let counts = Counts::of(&items, 2);
/// assert_eq!((counts.total.tensors, counts.total.elements, counts.total.bytes), (3, 24, 80));
/// assert_eq!(counts.dtypes[0].dtype, Some(Dtype::F32));
/// assert_eq!(counts.largest.iter().map(|item| item.name).collect::<Vec<_>>(), ["a", "c"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Counts<'a> {
    /// All of them.
    pub total: Totals,
    /// Those of each dtype that occurs, most bytes first.
    pub dtypes: Vec<DtypeTotals>,
    /// The largest, most bytes first; equal ones in natural order of their names.
    pub largest: Vec<Item<'a>>,
}

/// The tensors of one dtype.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DtypeTotals {
    /// The dtype; `None` for tensors whose dtype is not known.
    pub dtype: Option<Dtype>,
    /// What they add up to.
    pub totals: Totals,
}

impl<'a> Counts<'a> {
    /// Counts `items`, and picks the `largest`.
    #[must_use]
    pub fn of(items: &[Item<'a>], largest: usize) -> Self {
        let known = Dtype::ALL.into_iter().map(Some);
        let mut dtypes: Vec<DtypeTotals> = std::iter::once(None)
            .chain(known)
            .map(|dtype| DtypeTotals { dtype, totals: Totals::default() })
            .collect();
        for item in items {
            // In the order of `Option`: `None`, then the dtypes in their own order.
            let place = dtypes.binary_search_by_key(&item.dtype, |entry| entry.dtype);
            if let Ok(place) = place
                && let Some(entry) = dtypes.get_mut(place)
            {
                entry.totals.add(item);
            }
        }
        let total = dtypes.iter().fold(Totals::default(), |sum, entry| sum.and(entry.totals));
        dtypes.retain(|entry| entry.totals.tensors > 0);
        dtypes.sort_by_key(|entry| Reverse(entry.totals.bytes));
        Self { total, dtypes, largest: most_bytes(items, largest) }
    }
}

/// The `count` items of the most bytes.
fn most_bytes<'a>(items: &[Item<'a>], count: usize) -> Vec<Item<'a>> {
    let larger = |one: &Item<'_>, other: &Item<'_>| -> Ordering {
        other.bytes.cmp(&one.bytes).then_with(|| compare(one.name, other.name))
    };
    let mut items = items.to_vec();
    if count == 0 {
        items.clear();
    } else if count < items.len() {
        items.select_nth_unstable_by(count, larger);
        items.truncate(count);
    }
    items.sort_unstable_by(larger);
    items
}

/// How many parameters a checkpoint has, stored and unpacked.
///
/// A parameter is an element of a tensor of floats or complex numbers, or a value of a quantized
/// weight. What does not count, and is kept apart:
///
/// - *helpers* of quantized weights: scales, zero points, tables, orders ([`Role::Helper`]), and
///   every E8M0 tensor;
/// - *buffers*: tensors of integers or `BOOL` that nothing shows to be weights, like
///   `position_ids`, masks and counters.
///
/// A tensor of integers whose name ends in the component `weight` counts as a weight; unless it is
/// `I8`, which holds one value an element, it may be packed, and `logical` stays unknown. Buffers
/// of floats, like `running_mean`, cannot be told from parameters and count as such. A tensor that
/// is stored twice counts twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Elements of the tensors that hold parameters, as they are stored.
    pub stored: u64,
    /// Parameters after unpacking; `None` where names and shapes do not prove it.
    pub logical: Option<u64>,
    /// Whether `stored` is exact: every dtype and shape is known, and no sum is over 2^64 − 1.
    pub exact: bool,
    /// Elements of helpers.
    pub helpers: u64,
    /// Elements of buffers.
    pub buffers: u64,
}

impl Parameters {
    /// Counts the parameters of `items`.
    ///
    /// ```
    /// use weigh_format::Dtype;
    /// use weigh_inventory::Item;
    /// use weigh_inventory::count::Parameters;
    ///
    /// let item = |name, dtype, shape| Item { name, dtype: Some(dtype), shape: Some(shape), bytes: 0 };
    /// let items = [
    ///     item("fc_blocks", Dtype::U8, &[8, 2, 16]),
    ///     item("fc_scales", Dtype::U8, &[8, 2]),
    ///     item("norm", Dtype::BF16, &[64]),
    ///     item("position_ids", Dtype::I64, &[1, 77]),
    /// ];
    /// let parameters = Parameters::of(&items);
    /// assert_eq!((parameters.stored, parameters.logical), (256 + 64, Some(512 + 64)));
    /// assert_eq!((parameters.helpers, parameters.buffers), (16, 77));
    /// ```
    #[must_use]
    pub fn of(items: &[Item<'_>]) -> Self {
        Self::with(items, &Siblings::new(items))
    }

    /// The same, with siblings that are known already.
    #[must_use]
    pub fn with(items: &[Item<'_>], siblings: &Siblings<'_>) -> Self {
        let mut counted = Self { stored: 0, logical: Some(0), exact: true, helpers: 0, buffers: 0 };
        for item in items {
            counted.add(item, siblings.role(item));
        }
        counted
    }

    fn add(&mut self, item: &Item<'_>, role: Role) {
        let elements = item.elements();
        let known = elements.unwrap_or(0);
        let logical = match role {
            Role::Helper => return self.helpers = self.helpers.saturating_add(known),
            Role::Weight { parameters, .. } => parameters,
            Role::Plain => match item.dtype {
                None => {
                    self.exact = false;
                    None
                }
                Some(dtype) if !is_integer(dtype) => elements,
                Some(_) if item.leaf() != "weight" => {
                    return self.buffers = self.buffers.saturating_add(known);
                }
                Some(Dtype::I8) => elements,
                Some(_) => None,
            },
        };
        let stored = elements.and_then(|elements| self.stored.checked_add(elements));
        self.exact &= stored.is_some();
        self.stored = self.stored.saturating_add(known);
        self.logical = match (self.logical, logical) {
            (Some(sum), Some(logical)) => sum.checked_add(logical),
            _ => None,
        };
    }
}

fn is_integer(dtype: Dtype) -> bool {
    matches!(
        dtype,
        Dtype::BOOL
            | Dtype::U8
            | Dtype::I8
            | Dtype::I16
            | Dtype::U16
            | Dtype::I32
            | Dtype::U32
            | Dtype::I64
            | Dtype::U64
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dtype::{BF16, BOOL, F32, I8, I32, I64, U8};

    fn item<'a>(name: &'a str, dtype: impl Into<Option<Dtype>>, shape: &'a [u64]) -> Item<'a> {
        Item { name, dtype: dtype.into(), shape: Some(shape), bytes: 8 }
    }

    #[test]
    fn dtypes_are_sorted_by_bytes() {
        let items = [
            item("a", I64, &[1]),
            item("b", F32, &[2]),
            item("c", F32, &[2]),
            item("d", None, &[3]),
        ];
        let counts = Counts::of(&items, 0);
        let dtypes: Vec<_> =
            counts.dtypes.iter().map(|entry| (entry.dtype, entry.totals.elements)).collect();
        assert_eq!(dtypes, [(Some(F32), 4), (None, 3), (Some(I64), 1)]);
        assert_eq!(counts.total, Totals { tensors: 4, elements: 8, bytes: 32, unknown: 0 });
        assert!(Counts::of(&[], 3).dtypes.is_empty());
    }

    #[test]
    fn the_largest_come_first_and_equal_ones_in_natural_order() {
        let mut items = ["l.10", "l.9", "big", "l.2"].map(|name| item(name, F32, &[1]));
        items[2].bytes = 9;
        for (count, want) in [
            (0, &[][..]),
            (1, &["big"]),
            (3, &["big", "l.2", "l.9"]),
            (4, &["big", "l.2", "l.9", "l.10"]),
            (usize::MAX, &["big", "l.2", "l.9", "l.10"]),
        ] {
            let largest = Counts::of(&items, count).largest;
            let names: Vec<&str> = largest.iter().map(|item| item.name).collect();
            assert_eq!(names, want, "{count}");
        }
    }

    #[test]
    fn parameters_are_floats_and_proven_weights() {
        for (items, stored, logical, exact) in [
            (&[][..], 0, Some(0), true),
            (&[item("a", F32, &[4]), item("b", BF16, &[])], 5, Some(5), true),
            (&[item("position_ids", I64, &[4]), item("mask", BOOL, &[4])], 0, Some(0), true),
            (&[item("a.weight", I8, &[4])], 4, Some(4), true),
            (&[item("a.weight", U8, &[4]), item("b", F32, &[1])], 5, None, true),
            (&[item("a.qweight", I32, &[4])], 4, None, true),
            (&[item("a", None, &[4])], 4, None, false),
            (&[item("a", F32, &[u64::MAX, 2])], 0, None, false),
            (&[item("a", F32, &[u64::MAX]), item("b", F32, &[1])], u64::MAX, None, false),
            (&[Item { shape: None, ..item("a", F32, &[]) }], 0, None, false),
        ] {
            let got = Parameters::of(items);
            assert_eq!((got.stored, got.logical, got.exact), (stored, logical, exact), "{items:?}");
        }
    }
}
