//! What is still to be done to the elements of a tensor once their bytes are gathered.

use crate::dtype::TorchDtype;

/// What is still to be done to the elements. The default is nothing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "what torch and numpy put off")]
pub struct Transforms {
    /// The bytes of each number are the other way round: the highest first.
    pub swap: bool,
    /// The imaginary parts are to be negated: torch's `conj` bit.
    pub conjugate: bool,
    /// The elements are to be negated: torch's `neg` bit.
    pub negate: bool,
}

impl Transforms {
    /// Whether the bytes are right as they are, but for booleans, which are 0 or 1 only after [`apply`].
    #[must_use]
    pub const fn is_none(self) -> bool {
        !self.swap && !self.conjugate && !self.negate
    }
}

/// Whether elements of a dtype can be negated.
#[must_use]
pub const fn can_negate(dtype: TorchDtype) -> bool {
    matches!(
        dtype,
        TorchDtype::Float64
            | TorchDtype::Float32
            | TorchDtype::Float16
            | TorchDtype::BFloat16
            | TorchDtype::Int64
            | TorchDtype::Int32
            | TorchDtype::Int16
            | TorchDtype::Int8
            | TorchDtype::UInt8
    ) || dtype.is_complex()
}

/// Does it, to the gathered bytes of whole elements; and makes 1 of every boolean that is not 0.
pub fn apply(bytes: &mut [u8], dtype: TorchDtype, transforms: Transforms) {
    if transforms.swap {
        match dtype.swap_unit() {
            2 => swap::<2>(bytes),
            4 => swap::<4>(bytes),
            8 => swap::<8>(bytes),
            _ => {}
        }
    }
    if dtype.is_bool() {
        for byte in bytes.iter_mut() {
            *byte = u8::from(*byte != 0);
        }
    }
    if dtype.is_complex() {
        // Both parts are negated by `negate`, and the imaginary one back by `conjugate`.
        let (real, imaginary) = (transforms.negate, transforms.negate != transforms.conjugate);
        match dtype.bytes() {
            4 => flip_signs::<2>(bytes, real, imaginary),
            8 => flip_signs::<4>(bytes, real, imaginary),
            16 => flip_signs::<8>(bytes, real, imaginary),
            _ => {}
        }
    } else if transforms.negate {
        negate(bytes, dtype);
    }
}

fn swap<const UNIT: usize>(bytes: &mut [u8]) {
    for number in bytes.as_chunks_mut::<UNIT>().0 {
        number.reverse();
    }
}

/// Changes the signs of floats, which come by twos.
fn flip_signs<const UNIT: usize>(bytes: &mut [u8], first: bool, second: bool) {
    let flip = |number: &mut [u8; UNIT]| {
        if let Some(highest) = number.last_mut() {
            *highest ^= 0x80;
        }
    };
    let mut is_second = false;
    for number in bytes.as_chunks_mut::<UNIT>().0 {
        if if is_second { second } else { first } {
            flip(number);
        }
        is_second = !is_second;
    }
}

fn negate(bytes: &mut [u8], dtype: TorchDtype) {
    match dtype {
        TorchDtype::Float64 => flip_signs::<8>(bytes, true, true),
        TorchDtype::Float32 => flip_signs::<4>(bytes, true, true),
        TorchDtype::Float16 | TorchDtype::BFloat16 => flip_signs::<2>(bytes, true, true),
        TorchDtype::Int64 => {
            for number in bytes.as_chunks_mut().0 {
                *number = i64::from_le_bytes(*number).wrapping_neg().to_le_bytes();
            }
        }
        TorchDtype::Int32 => {
            for number in bytes.as_chunks_mut().0 {
                *number = i32::from_le_bytes(*number).wrapping_neg().to_le_bytes();
            }
        }
        TorchDtype::Int16 => {
            for number in bytes.as_chunks_mut().0 {
                *number = i16::from_le_bytes(*number).wrapping_neg().to_le_bytes();
            }
        }
        TorchDtype::Int8 | TorchDtype::UInt8 => {
            for byte in bytes {
                *byte = byte.wrapping_neg();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn applied(bytes: &[u8], dtype: TorchDtype, transforms: Transforms) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        apply(&mut bytes, dtype, transforms);
        bytes
    }

    const NEGATE: Transforms = Transforms { swap: false, conjugate: false, negate: true };
    const CONJUGATE: Transforms = Transforms { swap: false, conjugate: true, negate: false };
    const BOTH: Transforms = Transforms { swap: false, conjugate: true, negate: true };
    const SWAP: Transforms = Transforms { swap: true, conjugate: false, negate: false };

    #[test]
    fn numbers_are_negated_as_torch_does() {
        assert_eq!(
            applied(&1.5_f32.to_le_bytes(), TorchDtype::Float32, NEGATE),
            (-1.5_f32).to_le_bytes()
        );
        assert_eq!(
            applied(&0_f64.to_le_bytes(), TorchDtype::Float64, NEGATE),
            (-0_f64).to_le_bytes()
        );
        assert_eq!(applied(&[0x00, 0x3c], TorchDtype::Float16, NEGATE), [0x00, 0xbc]);
        assert_eq!(
            applied(&i64::MIN.to_le_bytes(), TorchDtype::Int64, NEGATE),
            i64::MIN.to_le_bytes()
        );
        assert_eq!(
            applied(&7_i32.to_le_bytes(), TorchDtype::Int32, NEGATE),
            (-7_i32).to_le_bytes()
        );
        assert_eq!(
            applied(&7_i16.to_le_bytes(), TorchDtype::Int16, NEGATE),
            (-7_i16).to_le_bytes()
        );
        assert_eq!(applied(&[1, 0, 128], TorchDtype::UInt8, NEGATE), [255, 0, 128]);
    }

    #[test]
    fn of_complex_numbers_the_conjugate_has_another_imaginary_part() {
        let complex =
            |real: f32, imaginary: f32| [real.to_le_bytes(), imaginary.to_le_bytes()].concat();
        let given = complex(1.0, 2.0);
        for (transforms, want) in [
            (Transforms::default(), complex(1.0, 2.0)),
            (CONJUGATE, complex(1.0, -2.0)),
            (NEGATE, complex(-1.0, -2.0)),
            (BOTH, complex(-1.0, 2.0)),
        ] {
            assert_eq!(applied(&given, TorchDtype::Complex64, transforms), want, "{transforms:?}");
        }
        let given = [1_f64.to_le_bytes(), 2_f64.to_le_bytes()].concat();
        let want = [1_f64.to_le_bytes(), (-2_f64).to_le_bytes()].concat();
        assert_eq!(applied(&given, TorchDtype::Complex128, CONJUGATE), want);
    }

    #[test]
    fn bytes_change_their_order_within_a_number() {
        let bytes: Vec<u8> = (0..16).collect();
        for (dtype, want) in [
            (TorchDtype::UInt8, bytes.clone()),
            (
                TorchDtype::Float16,
                alloc::vec![1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14],
            ),
            (
                TorchDtype::Complex64,
                alloc::vec![3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12],
            ),
            (
                TorchDtype::Complex128,
                alloc::vec![7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8],
            ),
        ] {
            assert_eq!(applied(&bytes, dtype, SWAP), want, "{dtype}");
        }
    }

    #[test]
    fn booleans_are_0_or_1() {
        let want = [0, 1, 1, 1];
        assert_eq!(applied(&[0, 1, 2, 255], TorchDtype::Bool, Transforms::default()), want);
        assert_eq!(applied(&[2], TorchDtype::UInt8, Transforms::default()), [2]);
    }
}
