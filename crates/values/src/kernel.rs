//! The loops over bytes, compiled for the vectors of more than one generation of processors.
//!
//! Every loop takes whole units and ends with the shorter of its sides: that lengths fit is for
//! callers to check.
#![expect(clippy::inline_always, reason = "what is not inlined stays scalar")]

use std::ops::AddAssign;

/// Values in a block of [`each_block`]: some multiple of what any vector holds.
pub(crate) const BLOCK: usize = 64;

// What a loop captures it owns (`move`): a reference might lead to what it writes, so that every
// element would be a new look at it.

/// Converts elements of `FROM` bytes to elements of `TO` bytes.
#[inline(always)]
pub(crate) fn each<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; FROM]) -> [u8; TO],
) {
    let (from, _) = from.as_chunks();
    let (to, _) = to.as_chunks_mut();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            for (from, to) in from.iter().zip(to) {
                *to = convert(*from);
            }
        },
    );
}

/// Converts blocks of `FROM` bytes to [`BLOCK`] elements of `TO` bytes; the last may be shorter.
///
/// For conversions in steps, each of which fills its vectors with elements of its own size.
#[inline(always)]
pub(crate) fn each_block<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn(&[u8; FROM], &mut [[u8; TO]; BLOCK]),
) {
    let (from, last_from) = from.as_chunks();
    let (to, last_to) = to.as_chunks_mut().0.as_chunks_mut();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            for (from, to) in from.iter().zip(to) {
                convert(from, to);
            }
            if !last_from.is_empty() {
                let mut from = [0; FROM];
                let mut to = [[0; TO]; BLOCK];
                from[..last_from.len()].copy_from_slice(last_from);
                convert(&from, &mut to);
                last_to.copy_from_slice(&to[..last_to.len()]);
            }
        },
    );
}

/// Converts blocks of `FROM` bytes to `TO` bytes each; the last may be shorter.
///
/// For targets of which several elements share a byte.
#[inline(always)]
pub(crate) fn each_packed<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn(&[u8; FROM]) -> [u8; TO],
) {
    let (from, last_from) = from.as_chunks();
    let (to, last_to) = to.as_chunks_mut();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            for (from, to) in from.iter().zip(to) {
                *to = convert(from);
            }
            if !last_from.is_empty() {
                let mut from = [0; FROM];
                from[..last_from.len()].copy_from_slice(last_from);
                last_to.copy_from_slice(&convert(&from)[..last_to.len()]);
            }
        },
    );
}

/// Adds up what `count` finds in elements of `BYTES` bytes.
#[inline(always)]
pub(crate) fn sum<const BYTES: usize, T: Copy + Default + AddAssign>(
    bytes: &[u8],
    count: impl Fn([u8; BYTES]) -> [T; 3],
) -> [T; 3] {
    let (elements, _) = bytes.as_chunks();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let [mut first, mut second, mut third] = [T::default(); 3];
            for element in elements {
                let found = count(*element);
                first += found[0];
                second += found[1];
                third += found[2];
            }
            [first, second, third]
        },
    )
}
