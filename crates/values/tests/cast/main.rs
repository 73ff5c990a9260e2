//! Casts against a reference written from the definitions of the formats.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the numbers of these tests are small enough"
)]

mod exact;
mod interface;
mod reference;
mod rounding;

use weigh_format::Dtype;
use weigh_values::cast::Cast;

/// What can be cast to.
const TARGETS: [Dtype; 4] = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16];

/// Casts elements given by their bits: whole units.
fn cast(from: Dtype, elements: &[u64], to: Dtype) -> Vec<u64> {
    let cast = Cast::new(from, to).unwrap();
    let mut bytes = vec![0; elements.len() * to.bits() as usize / 8];
    cast.convert(&reference::pack(from, elements), &mut bytes).unwrap();
    reference::unpack(to, &bytes)
}

/// Asserts that elements, whole units, become what the reference makes of them.
fn assert_cast(from: Dtype, elements: &[u64], to: Dtype) {
    for (&element, got) in elements.iter().zip(cast(from, elements, to)) {
        let want = reference::cast(from, element, to);
        assert!(got == want, "{from} {element:#x} to {to}: {got:#x}, not {want:#x}");
    }
}
