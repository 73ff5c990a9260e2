//! Dtypes of which several elements share bytes, at every length.

use weigh_format::Dtype;

use crate::{OVERFLOWS, cast_counted, reference};

#[test]
fn packed_elements_stay_in_order_at_every_length() {
    let packed = [Dtype::F4, Dtype::F6_E2M3, Dtype::F6_E3M2];
    for from in Dtype::ALL {
        for to in Dtype::ALL {
            if !packed.contains(&from) && !packed.contains(&to) {
                continue;
            }
            let mask = u64::MAX >> (64 - from.bits());
            let elements: Vec<u64> = (1..=1200_u64)
                .map(|place| place.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                .collect();
            let want = OVERFLOWS.map(|overflow| -> Vec<u64> {
                elements.iter().map(|it| reference::cast(from, *it, to, overflow).0).collect()
            });
            let lengths = (0..=140).step_by(4).chain((1000..=1200).step_by(4));
            for length in lengths {
                for (overflow, want) in OVERFLOWS.into_iter().zip(&want) {
                    let (got, tally) = cast_counted(from, &elements[..length], to, overflow);
                    assert!(got == want[..length], "{length} of {from} to {to}");
                    assert_eq!(tally.values, length as u64, "{from} to {to}");
                }
            }
        }
    }
}

#[test]
fn two_of_4_bits_are_enough() {
    for dtype in Dtype::ALL.into_iter().filter(|dtype| !dtype.name().starts_with("F6")) {
        let elements = [1, 3];
        for (from, to) in [(dtype, Dtype::F4), (Dtype::F4, dtype)] {
            for overflow in OVERFLOWS {
                let want = elements.map(|it| reference::cast(from, it, to, overflow).0);
                assert_eq!(cast_counted(from, &elements, to, overflow).0, want, "{from} to {to}");
            }
        }
    }
}
