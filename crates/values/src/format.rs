//! How the elements of a dtype are made: the facts that every cast follows from.

use weigh_format::Dtype;

/// A float dtype with a sign: sign, exponent and mantissa, from the highest bit down.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    /// Bits of the exponent.
    pub(crate) exponent: u16,
    /// Bits of the mantissa.
    pub(crate) mantissa: u16,
    /// What the exponent counts from.
    pub(crate) bias: u16,
    /// Which elements are not finite.
    pub(crate) special: Special,
}

/// The elements that are not finite.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Special {
    /// None.
    None,
    /// All ones but for the sign: NaN.
    AllOnes,
    /// The highest exponent: infinity, or NaN where the mantissa is not 0.
    TopExponent,
    /// What would be −0: NaN.
    NegativeZero,
}

impl Format {
    pub(crate) const F4: Self = Self::new(2, 1, 1, Special::None);
    pub(crate) const F6_E2M3: Self = Self::new(2, 3, 1, Special::None);
    pub(crate) const F6_E3M2: Self = Self::new(3, 2, 3, Special::None);
    pub(crate) const F8_E4M3: Self = Self::new(4, 3, 7, Special::AllOnes);
    pub(crate) const F8_E5M2: Self = Self::new(5, 2, 15, Special::TopExponent);
    pub(crate) const F8_E4M3FNUZ: Self = Self::new(4, 3, 8, Special::NegativeZero);
    pub(crate) const F8_E5M2FNUZ: Self = Self::new(5, 2, 16, Special::NegativeZero);
    pub(crate) const F16: Self = Self::new(5, 10, 15, Special::TopExponent);
    pub(crate) const BF16: Self = Self::new(8, 7, 127, Special::TopExponent);
    pub(crate) const F32: Self = Self::new(8, 23, 127, Special::TopExponent);
    pub(crate) const F64: Self = Self::new(11, 52, 1023, Special::TopExponent);

    const fn new(exponent: u16, mantissa: u16, bias: u16, special: Special) -> Self {
        Self { exponent, mantissa, bias, special }
    }

    /// The format of a dtype, or of the parts of a complex one. `F8_E8M0` has no sign and no 0, and
    /// so none of this kind.
    pub(crate) fn of(dtype: Dtype) -> Option<Self> {
        Some(match dtype {
            Dtype::F4 => Self::F4,
            Dtype::F6_E2M3 => Self::F6_E2M3,
            Dtype::F6_E3M2 => Self::F6_E3M2,
            Dtype::F8_E4M3 => Self::F8_E4M3,
            Dtype::F8_E5M2 => Self::F8_E5M2,
            Dtype::F8_E4M3FNUZ => Self::F8_E4M3FNUZ,
            Dtype::F8_E5M2FNUZ => Self::F8_E5M2FNUZ,
            Dtype::F16 => Self::F16,
            Dtype::BF16 => Self::BF16,
            Dtype::F32 | Dtype::C64 => Self::F32,
            Dtype::F64 => Self::F64,
            _ => return None,
        })
    }

    /// The largest finite element, without its sign.
    #[inline]
    pub(crate) const fn largest(self) -> u64 {
        let all_ones = (1 << (self.exponent + self.mantissa)) - 1;
        match self.special {
            Special::None | Special::NegativeZero => all_ones,
            Special::AllOnes => all_ones - 1,
            Special::TopExponent => all_ones - (1 << self.mantissa),
        }
    }

    pub(crate) fn has_infinity(self) -> bool {
        self.special == Special::TopExponent
    }

    pub(crate) fn has_nan(self) -> bool {
        self.special != Special::None
    }

    /// The largest finite number: the power of two that it is at least, and the bits after the
    /// leading one, as many as F64 has.
    fn top(self) -> (i32, u64) {
        let exponent = (self.largest() >> self.mantissa) & 0x7ff;
        let power = i32::try_from(exponent).unwrap_or(i32::MAX) - i32::from(self.bias);
        let digits = self.largest() & ((1 << self.mantissa) - 1);
        (power, digits << (Self::F64.mantissa - self.mantissa))
    }

    /// The exponent of the smallest element above 0.
    fn lowest_power(self) -> i32 {
        1 - i32::from(self.bias) - i32::from(self.mantissa)
    }

    /// Whether this has every number, infinity and NaN of another. −0 is 0.
    fn has_all_of(self, other: Self) -> bool {
        self.mantissa >= other.mantissa
            && self.top() >= other.top()
            && self.lowest_power() <= other.lowest_power()
            && (self.has_infinity() || !other.has_infinity())
            && (self.has_nan() || !other.has_nan())
    }
}

/// The range of an integer dtype.
#[derive(Clone, Copy)]
pub(crate) struct Integers {
    /// Bits of a number, without the sign.
    pub(crate) digits: u32,
    /// Whether there are negative numbers: down to −2^`digits`.
    pub(crate) signed: bool,
}

impl Integers {
    /// The range of an integer dtype, or of booleans as numbers.
    pub(crate) fn of(dtype: Dtype) -> Option<Self> {
        let (digits, signed) = match dtype {
            Dtype::BOOL => (1, false),
            Dtype::U8 => (8, false),
            Dtype::I8 => (7, true),
            Dtype::U16 => (16, false),
            Dtype::I16 => (15, true),
            Dtype::U32 => (32, false),
            Dtype::I32 => (31, true),
            Dtype::U64 => (64, false),
            Dtype::I64 => (63, true),
            _ => return None,
        };
        Some(Self { digits, signed })
    }
}

/// Whether the dtype is one of floats: not of integers, booleans or complex numbers.
pub(crate) fn is_float(dtype: Dtype) -> bool {
    dtype == Dtype::F8_E8M0 || dtype != Dtype::C64 && Format::of(dtype).is_some()
}

/// Whether elements of the dtype can be NaN.
pub(crate) fn has_nan(dtype: Dtype) -> bool {
    dtype == Dtype::F8_E8M0 || Format::of(dtype).is_some_and(Format::has_nan)
}

/// Whether elements of the dtype, or parts of them, can be infinite.
pub(crate) fn has_infinity(dtype: Dtype) -> bool {
    Format::of(dtype).is_some_and(Format::has_infinity)
}

/// Whether `to` has every number, infinity and NaN of `from`. −0 is 0.
pub(crate) fn has_all_of(to: Dtype, from: Dtype) -> bool {
    if to == from {
        return true;
    }
    // Powers of two from 2^-127, which is not the smallest that BF16 has.
    let scales_in = |format: Format| format.mantissa >= 7 && format.exponent >= 8;
    match (from, Integers::of(from), Integers::of(to), Format::of(from), Format::of(to)) {
        (Dtype::C64, ..) => false,
        (Dtype::F8_E8M0, _, _, _, Some(to)) => scales_in(to),
        (_, Some(from), Some(to), ..) => {
            let fits = to.digits >= from.digits && (to.signed || !from.signed);
            fits && (to.digits > 1 || from.digits == 1)
        }
        (_, Some(from), None, _, Some(to)) => {
            let digits = i32::try_from(from.digits).unwrap_or(i32::MAX);
            i32::from(to.mantissa) + 1 >= digits && to.top().0 >= digits - i32::from(!from.signed)
        }
        (_, _, None, Some(from), Some(to)) => to.has_all_of(from),
        _ => false,
    }
}
