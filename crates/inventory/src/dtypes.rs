//! Sets of dtypes.

use std::fmt;

use weigh_format::Dtype;

/// A set of dtypes.
///
/// ```
/// use weigh_format::Dtype;
/// use weigh_inventory::DtypeSet;
///
/// let set: DtypeSet = [Dtype::BF16, Dtype::F32].into_iter().collect();
/// assert!(set.contains(Dtype::F32) && !set.contains(Dtype::F16));
/// assert_eq!(format!("{set:?}"), "{BF16, F32}");
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct DtypeSet(u64);

impl DtypeSet {
    /// The set of none.
    pub const EMPTY: Self = Self(0);

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether `dtype` is one of them.
    #[must_use]
    pub fn contains(self, dtype: Dtype) -> bool {
        self.0 & bit(dtype) != 0
    }

    /// Adds `dtype`.
    pub fn insert(&mut self, dtype: Dtype) {
        self.0 |= bit(dtype);
    }

    /// The dtypes that are in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The dtypes, in the order of [`Dtype::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Dtype> {
        Dtype::ALL.into_iter().filter(move |&dtype| self.contains(dtype))
    }

    /// The dtype, if there is exactly one.
    #[must_use]
    pub fn only(self) -> Option<Dtype> {
        if self.len() == 1 { self.iter().next() } else { None }
    }
}

impl FromIterator<Dtype> for DtypeSet {
    fn from_iter<I: IntoIterator<Item = Dtype>>(dtypes: I) -> Self {
        let mut set = Self::EMPTY;
        for dtype in dtypes {
            set.insert(dtype);
        }
        set
    }
}

impl fmt::Debug for DtypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The bit that stands for `dtype`: a field-less enum of 22 variants.
const fn bit(dtype: Dtype) -> u64 {
    1 << (dtype as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_bit_of_its_own() {
        let all: DtypeSet = Dtype::ALL.into_iter().collect();
        assert_eq!(usize::try_from(all.len()).unwrap(), Dtype::ALL.len());
        assert!(all.iter().eq(Dtype::ALL));
        assert_eq!(all.only(), None);
        for dtype in Dtype::ALL {
            let one = DtypeSet::from_iter([dtype]);
            assert_eq!((one.only(), one.union(all)), (Some(dtype), all));
        }
        assert!(DtypeSet::EMPTY.is_empty());
    }
}
