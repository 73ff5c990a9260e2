//! The element types of the format (FORMAT.md §4).

/// An element type.
///
/// The order of the variants is the order of FORMAT.md §4, which a writer sorts by, last first.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(non_camel_case_types, reason = "these are the format's own spellings")]
pub enum Dtype {
    /// Boolean, one byte, 0 or 1.
    BOOL,
    /// Float, E2M1, 4 bits, two elements a byte.
    F4,
    /// Float, E2M3, 6 bits.
    F6_E2M3,
    /// Float, E3M2, 6 bits.
    F6_E3M2,
    /// Unsigned integer, 8 bits.
    U8,
    /// Signed integer, 8 bits.
    I8,
    /// Float, E5M2, 8 bits.
    F8_E5M2,
    /// Float, E4M3 (finite, NaN only), 8 bits.
    F8_E4M3,
    /// Power-of-two scale, E8M0, 8 bits.
    F8_E8M0,
    /// Float, E4M3, no negative zero, 8 bits.
    F8_E4M3FNUZ,
    /// Float, E5M2, no negative zero, 8 bits.
    F8_E5M2FNUZ,
    /// Signed integer, 16 bits.
    I16,
    /// Unsigned integer, 16 bits.
    U16,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16.
    BF16,
    /// Signed integer, 32 bits.
    I32,
    /// Unsigned integer, 32 bits.
    U32,
    /// IEEE 754 single precision.
    F32,
    /// Complex, two F32.
    C64,
    /// IEEE 754 double precision.
    F64,
    /// Signed integer, 64 bits.
    I64,
    /// Unsigned integer, 64 bits.
    U64,
}

impl Dtype {
    /// Every dtype, in the order of FORMAT.md §4.
    pub const ALL: [Self; 22] = [
        Self::BOOL,
        Self::F4,
        Self::F6_E2M3,
        Self::F6_E3M2,
        Self::U8,
        Self::I8,
        Self::F8_E5M2,
        Self::F8_E4M3,
        Self::F8_E8M0,
        Self::F8_E4M3FNUZ,
        Self::F8_E5M2FNUZ,
        Self::I16,
        Self::U16,
        Self::F16,
        Self::BF16,
        Self::I32,
        Self::U32,
        Self::F32,
        Self::C64,
        Self::F64,
        Self::I64,
        Self::U64,
    ];

    /// The name as a header spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BOOL => "BOOL",
            Self::F4 => "F4",
            Self::F6_E2M3 => "F6_E2M3",
            Self::F6_E3M2 => "F6_E3M2",
            Self::U8 => "U8",
            Self::I8 => "I8",
            Self::F8_E5M2 => "F8_E5M2",
            Self::F8_E4M3 => "F8_E4M3",
            Self::F8_E8M0 => "F8_E8M0",
            Self::F8_E4M3FNUZ => "F8_E4M3FNUZ",
            Self::F8_E5M2FNUZ => "F8_E5M2FNUZ",
            Self::I16 => "I16",
            Self::U16 => "U16",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::I32 => "I32",
            Self::U32 => "U32",
            Self::F32 => "F32",
            Self::C64 => "C64",
            Self::F64 => "F64",
            Self::I64 => "I64",
            Self::U64 => "U64",
        }
    }

    /// Bits an element takes.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::F4 => 4,
            Self::F6_E2M3 | Self::F6_E3M2 => 6,
            Self::BOOL
            | Self::U8
            | Self::I8
            | Self::F8_E5M2
            | Self::F8_E4M3
            | Self::F8_E8M0
            | Self::F8_E4M3FNUZ
            | Self::F8_E5M2FNUZ => 8,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::C64 | Self::F64 | Self::I64 | Self::U64 => 64,
        }
    }

    /// The dtype that a header spells `name`, exactly (rule T1).
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"BF16" => Self::BF16,
            b"F16" => Self::F16,
            b"F32" => Self::F32,
            b"F8_E4M3" => Self::F8_E4M3,
            b"U8" => Self::U8,
            b"I8" => Self::I8,
            b"I32" => Self::I32,
            b"I64" => Self::I64,
            b"BOOL" => Self::BOOL,
            b"F4" => Self::F4,
            b"F6_E2M3" => Self::F6_E2M3,
            b"F6_E3M2" => Self::F6_E3M2,
            b"F8_E5M2" => Self::F8_E5M2,
            b"F8_E8M0" => Self::F8_E8M0,
            b"F8_E4M3FNUZ" => Self::F8_E4M3FNUZ,
            b"F8_E5M2FNUZ" => Self::F8_E5M2FNUZ,
            b"I16" => Self::I16,
            b"U16" => Self::U16,
            b"U32" => Self::U32,
            b"C64" => Self::C64,
            b"F64" => Self::F64,
            b"U64" => Self::U64,
            _ => return None,
        })
    }

    /// The dtype that somebody who wrote `text` most likely meant, if that is clear.
    ///
    /// Knows the spellings of torch, numpy and common shorthand; never used to read a file.
    #[must_use]
    pub fn nearest(text: &str) -> Option<Self> {
        let short = text.rsplit('.').next().unwrap_or(text);
        if let Some(dtype) =
            Self::ALL.into_iter().find(|dtype| dtype.name().eq_ignore_ascii_case(short))
        {
            return Some(dtype);
        }
        SPELLINGS
            .iter()
            .find(|(spelling, _)| spelling.eq_ignore_ascii_case(short))
            .map(|&(_, dtype)| dtype)
    }

    /// The first release of the reference implementation that reads this dtype.
    #[must_use]
    pub const fn since(self) -> &'static str {
        match self {
            Self::F8_E5M2 | Self::F8_E4M3 => "0.4",
            Self::F4 | Self::F6_E2M3 | Self::F6_E3M2 | Self::F8_E8M0 => "0.6",
            Self::C64 => "0.7",
            Self::F8_E4M3FNUZ | Self::F8_E5M2FNUZ => "0.8",
            _ => "0.3",
        }
    }

    /// Whether only some readers know this dtype (rule P1).
    #[must_use]
    pub const fn is_rare(self) -> bool {
        matches!(
            self,
            Self::F4
                | Self::F6_E2M3
                | Self::F6_E3M2
                | Self::F8_E8M0
                | Self::F8_E4M3FNUZ
                | Self::F8_E5M2FNUZ
                | Self::C64
        )
    }
}

impl core::fmt::Display for Dtype {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// What other programs call these types.
const SPELLINGS: &[(&str, Dtype)] = &[
    ("float16", Dtype::F16),
    ("half", Dtype::F16),
    ("FP16", Dtype::F16),
    ("bfloat16", Dtype::BF16),
    ("float", Dtype::F32),
    ("float32", Dtype::F32),
    ("FP32", Dtype::F32),
    ("double", Dtype::F64),
    ("float64", Dtype::F64),
    ("FP64", Dtype::F64),
    ("complex64", Dtype::C64),
    ("boolean", Dtype::BOOL),
    ("int8", Dtype::I8),
    ("int16", Dtype::I16),
    ("int32", Dtype::I32),
    ("int64", Dtype::I64),
    ("uint8", Dtype::U8),
    ("uint16", Dtype::U16),
    ("uint32", Dtype::U32),
    ("uint64", Dtype::U64),
    ("F8", Dtype::F8_E4M3),
    ("FP8", Dtype::F8_E4M3),
    ("E4M3", Dtype::F8_E4M3),
    ("float8_e4m3fn", Dtype::F8_E4M3),
    ("F8_E4M3FN", Dtype::F8_E4M3),
    ("E5M2", Dtype::F8_E5M2),
    ("float8_e5m2", Dtype::F8_E5M2),
    ("E8M0", Dtype::F8_E8M0),
    ("UE8", Dtype::F8_E8M0),
    ("UE8M0", Dtype::F8_E8M0),
    ("float8_e8m0fnu", Dtype::F8_E8M0),
    ("float8_e4m3fnuz", Dtype::F8_E4M3FNUZ),
    ("float8_e5m2fnuz", Dtype::F8_E5M2FNUZ),
    ("FP4", Dtype::F4),
    ("E2M1", Dtype::F4),
    ("float4_e2m1fn_x2", Dtype::F4),
    ("E2M3", Dtype::F6_E2M3),
    ("E3M2", Dtype::F6_E3M2),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_the_order_is_that_of_all() {
        for (position, dtype) in Dtype::ALL.into_iter().enumerate() {
            assert_eq!(Dtype::from_name(dtype.name().as_bytes()), Some(dtype));
            assert_eq!(dtype as usize, position);
            assert_eq!(Dtype::nearest(dtype.name()), Some(dtype));
        }
    }

    #[test]
    fn names_are_spelled_exactly() {
        for name in ["f32", "F32 ", "", "F128", "I4", "U4", "E8M0", "bool"] {
            assert_eq!(Dtype::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn the_nearest_is_what_was_meant() {
        for (text, want) in [
            ("torch.bfloat16", Some(Dtype::BF16)),
            ("f32", Some(Dtype::F32)),
            ("E8M0", Some(Dtype::F8_E8M0)),
            ("FP4", Some(Dtype::F4)),
            ("STRING", None),
            ("", None),
        ] {
            assert_eq!(Dtype::nearest(text), want, "{text}");
        }
    }
}
