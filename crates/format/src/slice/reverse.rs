//! Axes of a dense array turned around, in place.

use core::fmt;

use crate::Dtype;
use crate::shape::{self, bit_len};

/// Reverses some axes of a dense array in place: what is left to do for a slice with negative steps.
///
/// `bytes` is the array, row major, `shape` its dimensions. To name an axis twice is to name it once. An error
/// leaves the bytes as they were.
///
/// # Errors
///
/// [`ReverseError`] if the bytes are not of this shape, if an axis is not one of its dimensions, or if
/// what would change places is not made of whole bytes.
///
/// ```
/// use weigh_format::Dtype;
/// use weigh_format::slice::reverse;
///
/// let mut bytes = [0, 1, 2, 3, 4, 5];
/// reverse(&mut bytes, &[2, 3], &[1], Dtype::U8)?;
/// assert_eq!(bytes, [2, 1, 0, 5, 4, 3]);
/// # Ok::<(), weigh_format::slice::ReverseError>(())
/// ```
pub fn reverse(
    bytes: &mut [u8],
    shape: &[u64],
    axes: &[usize],
    dtype: Dtype,
) -> Result<(), ReverseError> {
    let rank = shape.len();
    if let Some(&axis) = axes.iter().find(|&&axis| axis >= rank) {
        return Err(ReverseError::NoSuchAxis { axis, rank });
    }
    let elements = shape::elements(shape).number().ok_or(ReverseError::TooLarge)?;
    let expected = bit_len(dtype, elements).div_ceil(8);
    let actual = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if u128::from(actual) != expected {
        return Err(ReverseError::Length { expected, actual });
    }
    if let Some(axis) = inside_bytes(shape, axes, dtype) {
        return Err(ReverseError::InsideByte { axis, dtype });
    }
    if elements == 0 {
        return Ok(());
    }
    let mut inner = 1_u64;
    // Neighbouring axes that are both reversed are one long axis.
    let mut reversed = 1_u64;
    for (axis, &size) in shape.iter().enumerate().rev().filter(|&(_, &size)| size != 1) {
        if axes.contains(&axis) {
            reversed = reversed.saturating_mul(size);
            continue;
        }
        swap(bytes, inner, reversed, dtype);
        inner = inner.saturating_mul(reversed).saturating_mul(size);
        reversed = 1;
    }
    swap(bytes, inner, reversed, dtype);
    Ok(())
}

/// Reverses the order of every `count` neighbours of `inner` elements each.
fn swap(bytes: &mut [u8], inner: u64, count: u64, dtype: Dtype) {
    if count < 2 {
        return;
    }
    let size = bit_len(dtype, inner) >> 3;
    let block = size.saturating_mul(u128::from(count));
    let (Ok(size @ 1..), Ok(block)) = (usize::try_from(size), usize::try_from(block)) else {
        return;
    };
    for block in bytes.chunks_exact_mut(block) {
        match size {
            1 => block.reverse(),
            2 => block.as_chunks_mut::<2>().0.reverse(),
            4 => block.as_chunks_mut::<4>().0.reverse(),
            8 => block.as_chunks_mut::<8>().0.reverse(),
            _ => {
                let mut parts = block.chunks_exact_mut(size);
                while let (Some(front), Some(back)) = (parts.next(), parts.next_back()) {
                    front.swap_with_slice(back);
                }
            }
        }
    }
}

/// The first axis, from the innermost out, along which something would move that is not made of whole bytes.
pub(super) fn inside_bytes(shape: &[u64], axes: &[usize], dtype: Dtype) -> Option<usize> {
    if dtype.bits().is_multiple_of(8) || shape.contains(&0) {
        return None;
    }
    let mut inner = 1_u64;
    for (axis, &size) in shape.iter().enumerate().rev().filter(|&(_, &size)| size != 1) {
        if bit_len(dtype, inner).is_multiple_of(8) {
            return None;
        }
        if axes.contains(&axis) {
            return Some(axis);
        }
        inner = inner.saturating_mul(size);
    }
    None
}

/// Why an array cannot be reversed like that.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ReverseError {
    /// The shape has no such dimension.
    NoSuchAxis {
        /// The axis that was named.
        axis: usize,
        /// The dimensions that the shape has.
        rank: usize,
    },
    /// The shape is over 2^64 − 1 elements.
    TooLarge,
    /// The bytes are more or fewer than the shape has.
    Length {
        /// Bytes of an array of this shape.
        expected: u128,
        /// Bytes that were given.
        actual: u64,
    },
    /// What would change places along this axis is not made of whole bytes.
    InsideByte {
        /// The axis.
        axis: usize,
        /// The element type, of under 8 bits.
        dtype: Dtype,
    },
}

impl ReverseError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchAxis { .. } => "reverse-no-such-axis",
            Self::TooLarge => "size-overflow",
            Self::Length { .. } => "reverse-length",
            Self::InsideByte { .. } => "reverse-inside-byte",
        }
    }
}

impl fmt::Display for ReverseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchAxis { axis, rank } => {
                write!(f, "axis {axis} is to be reversed, but the array has {rank} dimensions")
            }
            Self::TooLarge => f.write_str("the array is over 2^64 - 1 elements"),
            Self::Length { expected, actual } => {
                write!(f, "the array has {expected} bytes, but {actual} were given")
            }
            Self::InsideByte { axis, dtype } => write!(
                f,
                "axis {axis} cannot be reversed inside bytes: {dtype} has {} bits",
                dtype.bits()
            ),
        }
    }
}

impl core::error::Error for ReverseError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// The element numbers of an array after some axes were reversed.
    fn reversed<const BYTES: usize>(shape: &[u64], axes: &[usize], dtype: Dtype) -> Vec<u8> {
        let elements = shape.iter().product::<u64>();
        let mut bytes: Vec<u8> =
            (0..elements).flat_map(|number| [u8::try_from(number).unwrap(); BYTES]).collect();
        reverse(&mut bytes, shape, axes, dtype).unwrap();
        let elements = bytes.as_chunks::<BYTES>().0;
        assert!(elements.iter().all(|element| element.iter().all(|byte| *byte == element[0])));
        elements.iter().map(|element| element[0]).collect()
    }

    #[test]
    fn each_axis_is_turned_around() {
        for (shape, axes, want) in [
            (&[6][..], &[0][..], &[5, 4, 3, 2, 1, 0][..]),
            (&[5], &[0], &[4, 3, 2, 1, 0]),
            (&[2, 3], &[], &[0, 1, 2, 3, 4, 5]),
            (&[2, 3], &[0], &[3, 4, 5, 0, 1, 2]),
            (&[2, 3], &[1], &[2, 1, 0, 5, 4, 3]),
            (&[2, 3], &[0, 1], &[5, 4, 3, 2, 1, 0]),
            (&[2, 3], &[1, 0, 1], &[5, 4, 3, 2, 1, 0]),
            (&[2, 1, 3], &[2, 1, 0], &[5, 4, 3, 2, 1, 0]),
            (&[2, 2, 2], &[0, 2], &[5, 4, 7, 6, 1, 0, 3, 2]),
            (&[2, 2, 2], &[1], &[2, 3, 0, 1, 6, 7, 4, 5]),
            (&[], &[], &[0]),
            (&[1], &[0], &[0]),
        ] {
            assert_eq!(reversed::<1>(shape, axes, Dtype::I8), want, "{shape:?} {axes:?}");
            assert_eq!(reversed::<2>(shape, axes, Dtype::BF16), want, "{shape:?} {axes:?}");
            assert_eq!(reversed::<4>(shape, axes, Dtype::F32), want, "{shape:?} {axes:?}");
            assert_eq!(reversed::<8>(shape, axes, Dtype::C64), want, "{shape:?} {axes:?}");
        }
        let mut rows = [0x10, 0x32, 0x54, 0x76];
        reverse(&mut rows, &[2, 4], &[0], Dtype::F4).unwrap();
        assert_eq!(rows, [0x54, 0x76, 0x10, 0x32]);
        assert_eq!(reverse(&mut [], &[u64::MAX, 0, u64::MAX], &[0, 2], Dtype::F64), Ok(()));
    }

    #[test]
    fn what_cannot_be_reversed_stays_as_it_is() {
        for (shape, axes, dtype, code, message) in [
            (
                &[2, 3][..],
                &[0, 2][..],
                Dtype::U8,
                "reverse-no-such-axis",
                "axis 2 is to be reversed, but the array has 2 dimensions",
            ),
            (
                &[2, 3],
                &[0],
                Dtype::U16,
                "reverse-length",
                "the array has 12 bytes, but 6 were given",
            ),
            (&[7], &[0], Dtype::U8, "reverse-length", "the array has 7 bytes, but 6 were given"),
            (
                &[u64::MAX],
                &[0],
                Dtype::U64,
                "reverse-length",
                "the array has 147573952589676412920 bytes, but 6 were given",
            ),
            (
                &[u64::MAX, 2],
                &[0],
                Dtype::U8,
                "size-overflow",
                "the array is over 2^64 - 1 elements",
            ),
            (
                &[4, 3],
                &[0],
                Dtype::F4,
                "reverse-inside-byte",
                "axis 0 cannot be reversed inside bytes: F4 has 4 bits",
            ),
            (
                &[2, 4],
                &[0, 1],
                Dtype::F6_E3M2,
                "reverse-inside-byte",
                "axis 1 cannot be reversed inside bytes: F6_E3M2 has 6 bits",
            ),
        ] {
            let mut bytes = [0, 1, 2, 3, 4, 5];
            let error = reverse(&mut bytes, shape, axes, dtype).unwrap_err();
            assert_eq!((error.code(), error.to_string()), (code, message.to_string()));
            assert_eq!(bytes, [0, 1, 2, 3, 4, 5], "{shape:?} {axes:?}");
        }
    }
}
