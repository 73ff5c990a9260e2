//! From any dtype to numbers.
//!
//! ```
//! use weigh_format::Dtype;
//! use weigh_values::decode;
//!
//! let bytes = [1, 0, 0xff, 0xff];
//! let mut values = [0.0; 2];
//! assert_eq!(decode::count(Dtype::I16, bytes.len())?, 2);
//! decode::to_f64(Dtype::I16, &bytes, &mut values)?;
//! assert_eq!(values, [1.0, -1.0]);
//! # Ok::<(), weigh_values::LengthError>(())
//! ```
//!
//! Elements become what [`crate::cast`] says, but a complex number is two, the real part first.
//!
//! [`to_f64`] is exact but for I64 and U64; [`to_f32`] also rounds F64, I32 and U32.

use weigh_format::Dtype;

use crate::cast::{Cast, Overflow};
use crate::length::{LengthError, Unit};

/// How many numbers `bytes` bytes of a dtype are.
///
/// # Errors
///
/// [`LengthError::NotUnits`] if they are not a whole number of elements, or end inside a group of
/// four 6-bit ones.
pub fn count(dtype: Dtype, bytes: usize) -> Result<usize, LengthError> {
    unit(dtype, 1).target(bytes)
}

/// Decodes little-endian elements, at any alignment, to F64.
///
/// # Errors
///
/// [`LengthError`] if `from` is not a whole number of elements, or `to` has not as many numbers
/// as [`count`] says; `to` is then as it was.
pub fn to_f64(dtype: Dtype, from: &[u8], to: &mut [f64]) -> Result<(), LengthError> {
    unit(dtype, size_of::<f64>()).check(from.len(), size_of_val(to))?;
    let bytes = bytemuck::cast_slice_mut(to);
    numbers(dtype, Dtype::F64, from, bytes)?;
    // Nothing to do where bytes are little-endian anyway.
    for value in to {
        *value = f64::from_bits(u64::from_le(value.to_bits()));
    }
    Ok(())
}

/// Decodes little-endian elements, at any alignment, to F32.
///
/// # Errors
///
/// Those of [`to_f64`].
pub fn to_f32(dtype: Dtype, from: &[u8], to: &mut [f32]) -> Result<(), LengthError> {
    unit(dtype, size_of::<f32>()).check(from.len(), size_of_val(to))?;
    let bytes = bytemuck::cast_slice_mut(to);
    numbers(dtype, Dtype::F32, from, bytes)?;
    // Nothing to do where bytes are little-endian anyway.
    for value in to {
        *value = f32::from_bits(u32::from_le(value.to_bits()));
    }
    Ok(())
}

/// The bytes of a dtype that decode by themselves, to numbers of `number_bytes` bytes.
fn unit(dtype: Dtype, number_bytes: usize) -> Unit {
    let numbers = if dtype == Dtype::C64 { 2 } else { 1 };
    Unit::of(dtype, numbers * number_bytes)
}

/// Decodes elements to the numbers they are made of.
fn numbers(dtype: Dtype, number: Dtype, from: &[u8], to: &mut [u8]) -> Result<(), LengthError> {
    let part = if dtype == Dtype::C64 { Dtype::F32 } else { dtype };
    Cast::new(part, number, Overflow::Natural).convert(from, to)
}
