//! The element types of torch, and what safetensors calls them.

use alloc::vec::Vec;
use core::fmt;

use weigh_format::Dtype;

use crate::refusal::Refusal;

/// Makes the enum of a table: each row is a variant, torch's name, the storage class that it has (or `""`), bits.
macro_rules! dtypes {
    ($($variant:ident $name:literal $storage:literal $bits:literal)*) => {
        /// An element type of torch.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum TorchDtype {
            $(
                #[doc = concat!("`torch.", $name, "`.")]
                $variant,
            )*
        }

        impl TorchDtype {
            /// Every dtype.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the module `torch`: `"float32"`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The class of its storages, as `"FloatStorage"`, for those that have one.
            #[must_use]
            pub const fn storage(self) -> Option<&'static str> {
                let name = match self {
                    $(Self::$variant => $storage,)*
                };
                if name.is_empty() { None } else { Some(name) }
            }

            /// Bits that an element takes.
            #[must_use]
            pub const fn bits(self) -> u64 {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }
        }
    };
}

dtypes! {
    Float64 "float64" "DoubleStorage" 64
    Float32 "float32" "FloatStorage" 32
    Float16 "float16" "HalfStorage" 16
    BFloat16 "bfloat16" "BFloat16Storage" 16
    Int64 "int64" "LongStorage" 64
    Int32 "int32" "IntStorage" 32
    Int16 "int16" "ShortStorage" 16
    Int8 "int8" "CharStorage" 8
    UInt8 "uint8" "ByteStorage" 8
    Bool "bool" "BoolStorage" 8
    UInt16 "uint16" "" 16
    UInt32 "uint32" "" 32
    UInt64 "uint64" "" 64
    Complex32 "complex32" "" 32
    BComplex32 "bcomplex32" "" 32
    Complex64 "complex64" "ComplexFloatStorage" 64
    Complex128 "complex128" "ComplexDoubleStorage" 128
    Float8E4M3Fn "float8_e4m3fn" "" 8
    Float8E5M2 "float8_e5m2" "" 8
    Float8E4M3Fnuz "float8_e4m3fnuz" "" 8
    Float8E5M2Fnuz "float8_e5m2fnuz" "" 8
    Float8E8M0Fnu "float8_e8m0fnu" "" 8
    Float4E2M1FnX2 "float4_e2m1fn_x2" "" 8
    QInt8 "qint8" "QInt8Storage" 8
    QUInt8 "quint8" "QUInt8Storage" 8
    QInt32 "qint32" "QInt32Storage" 32
    QUInt4x2 "quint4x2" "QUInt4x2Storage" 4
    QUInt2x4 "quint2x4" "QUInt2x4Storage" 2
    Bits8 "bits8" "" 8
    Bits16 "bits16" "" 16
    Bits1x8 "bits1x8" "" 8
    Bits2x4 "bits2x4" "" 8
    Bits4x2 "bits4x2" "" 8
    Int1 "int1" "" 8
    Int2 "int2" "" 8
    Int3 "int3" "" 8
    Int4 "int4" "" 8
    Int5 "int5" "" 8
    Int6 "int6" "" 8
    Int7 "int7" "" 8
    UInt1 "uint1" "" 8
    UInt2 "uint2" "" 8
    UInt3 "uint3" "" 8
    UInt4 "uint4" "" 8
    UInt5 "uint5" "" 8
    UInt6 "uint6" "" 8
    UInt7 "uint7" "" 8
}

impl TorchDtype {
    /// The dtype of this name in the module `torch`, aliases (`half`, `long`) included.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = match name {
            "double" => "float64",
            "float" => "float32",
            "half" => "float16",
            "long" => "int64",
            "int" => "int32",
            "short" => "int16",
            "chalf" => "complex32",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            name => name,
        };
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }

    /// The dtype of the storages of this class: `"FloatStorage"`.
    #[must_use]
    pub fn from_storage(class: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.storage() == Some(class))
    }

    /// Bytes that an element takes in memory; those of less than a byte, of which torch keeps several in one, have
    /// that one.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bits().div_ceil(8)
    }

    /// What safetensors calls the elements as they are.
    ///
    /// # Errors
    ///
    /// Why it has no name for them, and so no plain conversion.
    pub const fn safetensors(self) -> Result<Dtype, Refusal> {
        Ok(match self {
            Self::Float64 => Dtype::F64,
            Self::Float32 => Dtype::F32,
            Self::Float16 => Dtype::F16,
            Self::BFloat16 => Dtype::BF16,
            Self::Int64 => Dtype::I64,
            Self::Int32 => Dtype::I32,
            Self::Int16 => Dtype::I16,
            Self::Int8 => Dtype::I8,
            Self::UInt8 => Dtype::U8,
            Self::Bool => Dtype::BOOL,
            Self::UInt16 => Dtype::U16,
            Self::UInt32 => Dtype::U32,
            Self::UInt64 => Dtype::U64,
            Self::Complex64 => Dtype::C64,
            Self::Float8E4M3Fn => Dtype::F8_E4M3,
            Self::Float8E5M2 => Dtype::F8_E5M2,
            Self::Float8E4M3Fnuz => Dtype::F8_E4M3FNUZ,
            Self::Float8E5M2Fnuz => Dtype::F8_E5M2FNUZ,
            Self::Float8E8M0Fnu => Dtype::F8_E8M0,
            Self::Float4E2M1FnX2 => Dtype::F4,
            Self::Complex32 | Self::BComplex32 | Self::Complex128 => {
                return Err(Refusal::Complex(self));
            }
            Self::QInt8 | Self::QUInt8 | Self::QInt32 | Self::QUInt4x2 | Self::QUInt2x4 => {
                return Err(Refusal::Quantized(self));
            }
            _ => return Err(Refusal::Bits(self)),
        })
    }

    /// What safetensors calls the bytes of the elements, whatever they mean: what a rule of the user may take them
    /// as. Complex numbers are two of these; of quantized ones these are the integers.
    #[must_use]
    pub fn components(self) -> Dtype {
        match self {
            Self::Complex32 => Dtype::F16,
            Self::BComplex32 => Dtype::BF16,
            Self::Complex64 => Dtype::F32,
            Self::Complex128 => Dtype::F64,
            Self::QInt8 => Dtype::I8,
            Self::QInt32 => Dtype::I32,
            Self::Bits16 => Dtype::U16,
            _ => self.safetensors().unwrap_or(Dtype::U8),
        }
    }

    /// Whether an element is a real and an imaginary number.
    #[must_use]
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::Complex32 | Self::BComplex32 | Self::Complex64 | Self::Complex128)
    }

    /// Whether elements are integers with a scale beside them.
    #[must_use]
    pub const fn is_quantized(self) -> bool {
        matches!(self, Self::QInt8 | Self::QUInt8 | Self::QInt32 | Self::QUInt4x2 | Self::QUInt2x4)
    }

    /// Whether several elements are in one byte, so that strides mean nothing.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Whether bytes other than 0 and 1 have to become 1.
    #[must_use]
    pub const fn is_bool(self) -> bool {
        matches!(self, Self::Bool)
    }

    /// Bytes that change their order together when the byte order changes; 1 if there is none.
    #[must_use]
    pub const fn swap_unit(self) -> u64 {
        if self.is_complex() { self.bytes() / 2 } else { self.bytes() }
    }

    /// A shape of torch as safetensors counts it: two elements for each byte of `float4_e2m1fn_x2`, in the last
    /// dimension.
    ///
    /// # Errors
    ///
    /// [`Refusal::PackedScalar`] if there is no last dimension, and [`Refusal::TooLarge`].
    pub fn safetensors_shape(self, shape: &[u64]) -> Result<Vec<u64>, Refusal> {
        let mut shape = Vec::from(shape);
        if self == Self::Float4E2M1FnX2 {
            let last = shape.last_mut().ok_or(Refusal::PackedScalar)?;
            *last = last.checked_mul(2).ok_or(Refusal::TooLarge)?;
        }
        Ok(shape)
    }
}

impl fmt::Display for TorchDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_read_back_and_are_unique() {
        let names: BTreeSet<_> = TorchDtype::ALL.iter().map(|dtype| dtype.name()).collect();
        assert_eq!(names.len(), TorchDtype::ALL.len());
        for &dtype in TorchDtype::ALL {
            assert_eq!(TorchDtype::from_name(dtype.name()), Some(dtype));
            if let Some(storage) = dtype.storage() {
                assert_eq!(TorchDtype::from_storage(storage), Some(dtype));
            }
        }
        assert_eq!(TorchDtype::ALL.iter().filter(|dtype| dtype.storage().is_some()).count(), 17);
        for (name, want) in [
            ("half", Some(TorchDtype::Float16)),
            ("long", Some(TorchDtype::Int64)),
            ("Float32", None),
            ("", None),
            ("storage", None),
        ] {
            assert_eq!(TorchDtype::from_name(name), want, "{name}");
        }
        assert_eq!(TorchDtype::from_storage(""), None);
    }

    #[test]
    fn what_safetensors_has_is_as_large_and_what_it_has_not_is_named() {
        for &dtype in TorchDtype::ALL {
            match dtype.safetensors() {
                // Two elements of safetensors in one of torch.
                Ok(Dtype::F4) => assert_eq!(dtype, TorchDtype::Float4E2M1FnX2),
                Ok(plain) => assert_eq!(u64::from(plain.bits()), dtype.bits(), "{dtype}"),
                Err(refusal) => assert!(!refusal.code().is_empty(), "{dtype}"),
            }
        }
        for (dtype, code) in [
            (TorchDtype::Complex128, "complex"),
            (TorchDtype::Complex32, "complex"),
            (TorchDtype::QInt8, "quantized"),
            (TorchDtype::Bits16, "bits"),
            (TorchDtype::UInt7, "bits"),
        ] {
            assert_eq!(dtype.safetensors().map_err(|refusal| refusal.code()), Err(code));
        }
    }

    #[test]
    fn bytes_that_swap_together_are_those_of_one_number() {
        for (dtype, bytes, unit) in [
            (TorchDtype::Float64, 8, 8),
            (TorchDtype::Complex128, 16, 8),
            (TorchDtype::Complex64, 8, 4),
            (TorchDtype::Complex32, 4, 2),
            (TorchDtype::Bool, 1, 1),
            (TorchDtype::QUInt2x4, 1, 1),
            (TorchDtype::QInt32, 4, 4),
        ] {
            assert_eq!((dtype.bytes(), dtype.swap_unit()), (bytes, unit), "{dtype}");
        }
    }

    #[test]
    fn two_elements_of_four_bits_are_in_each_byte_of_the_last_dimension() {
        let packed = TorchDtype::Float4E2M1FnX2;
        assert_eq!(packed.safetensors_shape(&[2, 3]), Ok(alloc::vec![2, 6]));
        assert_eq!(packed.safetensors_shape(&[]), Err(Refusal::PackedScalar));
        assert_eq!(packed.safetensors_shape(&[u64::MAX]), Err(Refusal::TooLarge));
        assert_eq!(TorchDtype::Float32.safetensors_shape(&[]), Ok(alloc::vec![]));
    }
}
