//! The loops over bytes, compiled for the vectors of more than one generation of processors.
//!
//! Every loop takes whole units and ends with the shorter of its sides: that lengths fit is for
//! callers to check.
#![expect(clippy::inline_always, reason = "what is not inlined stays scalar")]

/// Values in a block of [`each_block`]: some multiple of what any vector holds.
pub(crate) const BLOCK: usize = 64;

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
        || {
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
        || {
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
