//! How many elements and bytes a shape has, in arithmetic that cannot wrap (rules T4 to T6).

use crate::Dtype;

/// The number of elements of a shape, and whether the format allows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Elements {
    /// The exact product of the dimensions.
    Exact(u64),
    /// A dimension is 0, so there are no elements, but the product of the others is over
    /// 2^64 − 1: some readers refuse this, depending on the order (rule T4z).
    NoneBesideOverflow,
    /// The product is over 2^64 − 1 (rule T4).
    Overflow,
}

impl Elements {
    /// The number, 0 where a dimension is; `None` if it is over 2^64 − 1.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Exact(elements) => Some(elements),
            Self::NoneBesideOverflow => Some(0),
            Self::Overflow => None,
        }
    }
}

/// Counts the elements of `shape`; `[]` is a scalar and has one.
///
/// ```
/// use weigh_format::shape::{Elements, elements};
///
/// assert_eq!(elements(&[]), Elements::Exact(1));
/// assert_eq!(elements(&[2, 3]), Elements::Exact(6));
/// assert_eq!(elements(&[1 << 32, 1 << 32]), Elements::Overflow);
/// assert_eq!(elements(&[1 << 32, 1 << 32, 0]), Elements::NoneBesideOverflow);
/// ```
#[must_use]
pub fn elements(shape: &[u64]) -> Elements {
    let mut product = Some(1_u64);
    let mut empty = false;
    for &dimension in shape {
        if dimension == 0 {
            empty = true;
        } else {
            product = product.and_then(|product| product.checked_mul(dimension));
        }
    }
    match (product, empty) {
        (Some(_), true) => Elements::Exact(0),
        (Some(product), false) => Elements::Exact(product),
        (None, true) => Elements::NoneBesideOverflow,
        (None, false) => Elements::Overflow,
    }
}

/// Why a number of elements has no size in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SizeError {
    /// Over 2^64 − 1 bytes (rule T5).
    Overflow,
    /// Not a whole number of bytes (rule T6).
    NotBytes {
        /// The size in bits.
        bits: u128,
    },
}

/// Bytes that `elements` elements of `dtype` take.
///
/// # Errors
///
/// [`SizeError`] if that is over 2^64 − 1, or not a whole number of bytes.
pub fn byte_len(dtype: Dtype, elements: u64) -> Result<u64, SizeError> {
    let bits = bit_len(dtype, elements);
    if bits & 7 != 0 {
        return Err(SizeError::NotBytes { bits });
    }
    u64::try_from(bits >> 3).map_err(|_| SizeError::Overflow)
}

/// Bits that `elements` elements of `dtype` take.
pub(crate) fn bit_len(dtype: Dtype, elements: u64) -> u128 {
    u128::from(elements).saturating_mul(u128::from(dtype.bits()))
}

/// Whether some rows of `shape` start inside a byte, though the whole is bytes: legal, but hard to slice.
#[must_use]
pub fn rows_share_bytes(dtype: Dtype, shape: &[u64]) -> bool {
    let not_bytes = |elements| matches!(byte_len(dtype, elements), Err(SizeError::NotBytes { .. }));
    let whole = match elements(shape) {
        Elements::Exact(elements) => elements > 0 && !not_bytes(elements),
        Elements::NoneBesideOverflow | Elements::Overflow => false,
    };
    whole && shape.last().copied().is_some_and(not_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_boundary() {
        for (shape, want) in [
            (&[u64::MAX][..], Elements::Exact(u64::MAX)),
            (&[u64::MAX, 1], Elements::Exact(u64::MAX)),
            (&[u64::MAX, 2], Elements::Overflow),
            (&[u64::MAX, 2, 0], Elements::NoneBesideOverflow),
            (&[0, u64::MAX, 2], Elements::NoneBesideOverflow),
            (&[0, u64::MAX], Elements::Exact(0)),
            (&[0], Elements::Exact(0)),
        ] {
            assert_eq!(elements(shape), want, "{shape:?}");
        }
    }

    #[test]
    fn sizes_are_exact_bytes_in_u64() {
        assert_eq!(byte_len(Dtype::U8, u64::MAX), Ok(u64::MAX));
        assert_eq!(byte_len(Dtype::U16, u64::MAX / 2), Ok(u64::MAX - 1));
        assert_eq!(byte_len(Dtype::U16, u64::MAX / 2 + 1), Err(SizeError::Overflow));
        assert_eq!(byte_len(Dtype::F4, 2), Ok(1));
        assert_eq!(byte_len(Dtype::F4, 3), Err(SizeError::NotBytes { bits: 12 }));
        assert_eq!(byte_len(Dtype::F6_E2M3, 4), Ok(3));
        assert_eq!(byte_len(Dtype::F6_E2M3, 3), Err(SizeError::NotBytes { bits: 18 }));
    }

    #[test]
    fn rows_that_start_inside_a_byte() {
        assert!(rows_share_bytes(Dtype::F4, &[2, 3]));
        assert!(!rows_share_bytes(Dtype::F4, &[3, 2]));
        assert!(!rows_share_bytes(Dtype::F4, &[0, 3]));
        assert!(!rows_share_bytes(Dtype::U8, &[2, 3]));
        assert!(!rows_share_bytes(Dtype::F4, &[]));
    }
}
