//! The bits of floats as signed integers, which are compared instead of the floats: vectors of them hold more, and NaN
//! has a place among them.

use std::ops::{AddAssign, BitAnd, BitOr, BitXor};

/// Float bits that come as signed integers, to be counted in integers of the same size.
pub(crate) trait Bits<const BYTES: usize>:
    Copy
    + Ord
    + Default
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Send
    + Sync
{
    type Count: Copy + Default + AddAssign + From<bool> + Into<u64>;

    const LEAST: Self;
    const MOST: Self;

    fn of_le_bytes(bytes: [u8; BYTES]) -> Self;

    fn to_le_bytes(self) -> [u8; BYTES];

    /// Without the sign.
    fn magnitude(self) -> Self;

    /// An integer in the order of the floats. Its own inverse.
    fn key(self) -> Self;
}

macro_rules! bits {
    ($signed:ty, $unsigned:ty, $bytes:literal) => {
        impl Bits<$bytes> for $signed {
            type Count = $unsigned;

            const LEAST: Self = Self::MIN;
            const MOST: Self = Self::MAX;

            #[inline(always)]
            fn of_le_bytes(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }

            #[inline(always)]
            fn to_le_bytes(self) -> [u8; $bytes] {
                self.to_le_bytes()
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                self & Self::MAX
            }

            #[inline(always)]
            fn key(self) -> Self {
                self ^ ((self >> (Self::BITS - 1)) & Self::MAX)
            }
        }
    };
}

bits!(i16, u16, 2);
bits!(i32, u32, 4);
bits!(i64, u64, 8);
