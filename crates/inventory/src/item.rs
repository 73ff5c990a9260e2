//! One tensor as a header lists it, and sums over many.

use weigh_format::Dtype;
use weigh_format::shape::{self, Elements};

/// A tensor's entry: what is known of it without its bytes.
///
/// A damaged file may leave `dtype` or `shape` unknown, and may list a name twice.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make one of their own tables, by literal")]
pub struct Item<'a> {
    /// The name, unescaped, exactly as in the header.
    pub name: &'a str,
    /// The element type, if the header says a known one.
    pub dtype: Option<Dtype>,
    /// The dimensions, if the header says them; `[]` is a scalar.
    pub shape: Option<&'a [u64]>,
    /// Bytes the tensor takes in the data section.
    pub bytes: u64,
}

impl<'a> Item<'a> {
    /// The number of elements; `None` if the shape is unknown or its product is over 2^64 − 1.
    ///
    /// A zero dimension makes it 0, whatever the others are (FORMAT.md T4z).
    ///
    /// ```
    /// use weigh_inventory::Item;
    ///
    /// let item = |shape| Item { name: "w", dtype: None, shape, bytes: 0 };
    /// assert_eq!(item(Some(&[2, 3])).elements(), Some(6));
    /// assert_eq!(item(Some(&[])).elements(), Some(1));
    /// assert_eq!(item(Some(&[1 << 32, 1 << 32])).elements(), None);
    /// assert_eq!(item(Some(&[1 << 32, 1 << 32, 0])).elements(), Some(0));
    /// assert_eq!(item(None).elements(), None);
    /// ```
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        match shape::elements(self.shape?) {
            Elements::Exact(elements) => Some(elements),
            Elements::NoneBesideOverflow => Some(0),
            _ => None,
        }
    }

    /// The name's last component.
    pub(crate) fn leaf(&self) -> &'a str {
        split(self.name).1
    }
}

/// A name's module and last component: `a.b.c` is `c` in `a.b`; a name without dots is in none.
pub(crate) fn split(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once('.') {
        Some((module, leaf)) => (Some(module), leaf),
        None => (None, name),
    }
}

/// The number that a component spells in the one way it can be: `7`, not `07` or `+7`.
pub(crate) fn plain_number(label: &str) -> Option<u64> {
    let plain = label == "0" || !label.starts_with(['0', '+']);
    label.parse().ok().filter(|_| plain)
}

/// How much a set of tensors holds. Sums stop at 2^64 − 1 instead of wrapping.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Totals {
    /// Number of tensors.
    pub tensors: u64,
    /// Elements of the tensors whose number of elements is known.
    pub elements: u64,
    /// Bytes in the data section.
    pub bytes: u64,
    /// Tensors whose number of elements is not known: `elements` lacks them.
    pub unknown: u64,
}

impl Totals {
    /// Adds one tensor.
    pub fn add(&mut self, item: &Item<'_>) {
        let elements = item.elements();
        *self = self.and(Self {
            tensors: 1,
            elements: elements.unwrap_or(0),
            bytes: item.bytes,
            unknown: u64::from(elements.is_none()),
        });
    }

    /// The sum of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tensors: self.tensors.saturating_add(other.tensors),
            elements: self.elements.saturating_add(other.elements),
            bytes: self.bytes.saturating_add(other.bytes),
            unknown: self.unknown.saturating_add(other.unknown),
        }
    }

    /// What `copies` of this hold.
    #[must_use]
    pub fn times(self, copies: u64) -> Self {
        Self {
            tensors: self.tensors.saturating_mul(copies),
            elements: self.elements.saturating_mul(copies),
            bytes: self.bytes.saturating_mul(copies),
            unknown: self.unknown.saturating_mul(copies),
        }
    }
}

impl<'a> FromIterator<&'a Item<'a>> for Totals {
    fn from_iter<I: IntoIterator<Item = &'a Item<'a>>>(items: I) -> Self {
        let mut totals = Self::default();
        for item in items {
            totals.add(item);
        }
        totals
    }
}

/// What the tests of this crate write a tensor as.
#[cfg(test)]
pub(crate) type Entry<'a> = (&'a str, Dtype, &'a [u64]);

/// Tensors that are there in whole, for tests.
#[cfg(test)]
pub(crate) fn items<'a>(entries: &[Entry<'a>]) -> Vec<Item<'a>> {
    entries
        .iter()
        .map(|&(name, dtype, shape)| Item {
            name,
            dtype: Some(dtype),
            shape: Some(shape),
            bytes: 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_splits_at_its_last_dot() {
        for (name, want) in [
            ("a", (None, "a")),
            ("", (None, "")),
            (".", (Some(""), "")),
            (".a", (Some(""), "a")),
            ("a.", (Some("a"), "")),
            ("a.b.c", (Some("a.b"), "c")),
        ] {
            assert_eq!(split(name), want, "{name:?}");
        }
    }

    #[test]
    fn only_plain_numbers_are_numbers() {
        for (label, want) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("00", None),
            ("07", None),
            ("+7", None),
            ("-0", None),
            ("", None),
            ("1a", None),
            ("١", None),
        ] {
            assert_eq!(plain_number(label), want, "{label:?}");
        }
        assert_eq!(plain_number(&"9".repeat(1000)), None);
    }

    #[test]
    fn sums_stop_at_the_top() {
        let huge = Item { name: "", dtype: None, shape: Some(&[u64::MAX]), bytes: u64::MAX };
        let unknown = Item { shape: None, ..huge };
        let totals: Totals = [huge, huge, unknown].iter().collect();
        let want = Totals { tensors: 3, elements: u64::MAX, bytes: u64::MAX, unknown: 1 };
        assert_eq!(totals, want);
        assert_eq!(want.times(u64::MAX).tensors, u64::MAX);
        assert_eq!(want.times(0), Totals::default());
    }
}
