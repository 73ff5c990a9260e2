//! Casts against a reference written from the definitions of the formats.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the numbers of these tests are small enough"
)]

mod boundaries;
mod exact;
mod interface;
mod ml_dtypes;
mod packed;
mod reference;
mod rounding;
mod tally;

use weigh_format::Dtype;
use weigh_values::Tally;
use weigh_values::cast::{Cast, Overflow};

/// The float dtypes of at most 8 bits.
const SMALL: [Dtype; 8] = [
    Dtype::F4,
    Dtype::F6_E2M3,
    Dtype::F6_E3M2,
    Dtype::F8_E4M3,
    Dtype::F8_E5M2,
    Dtype::F8_E8M0,
    Dtype::F8_E4M3FNUZ,
    Dtype::F8_E5M2FNUZ,
];

const OVERFLOWS: [Overflow; 2] = [Overflow::Natural, Overflow::Saturate];

/// Casts elements given by their bits, whole units, naturally.
fn cast(from: Dtype, elements: &[u64], to: Dtype) -> Vec<u64> {
    cast_counted(from, elements, to, Overflow::Natural).0
}

/// Casts elements given by their bits, whole units.
fn cast_counted(from: Dtype, elements: &[u64], to: Dtype, overflow: Overflow) -> (Vec<u64>, Tally) {
    let cast = Cast::new(from, to, overflow);
    let mut bytes = vec![0; elements.len() * to.bits() as usize / 8];
    let mut counted = bytes.clone();
    let mut tally = Tally::default();
    let from = reference::pack(from, elements);
    cast.convert(&from, &mut bytes).unwrap();
    cast.convert_counted(&from, &mut counted, &mut tally).unwrap();
    assert!(bytes == counted, "{cast:?} counted is another");
    (reference::unpack(to, &bytes), tally)
}

/// Asserts that elements, whole units, become what the reference makes of them, and are tallied
/// as it says.
fn assert_cast(from: Dtype, elements: &[u64], to: Dtype) {
    for overflow in OVERFLOWS {
        let (got, tally) = cast_counted(from, elements, to, overflow);
        let mut total = Tally::default();
        for (&element, got) in elements.iter().zip(got) {
            let (want, tally) = reference::cast(from, element, to, overflow);
            assert!(
                got == want,
                "{from} {element:#x} to {to}, {overflow:?}: {got:#x}, not {want:#x}"
            );
            total += tally;
        }
        assert_eq!(tally, total, "{from} to {to}, {overflow:?}");
    }
}
