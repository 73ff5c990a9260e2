//! What can be cast, in which portions, and what is said where it cannot.

use proptest::prelude::*;
use weigh_format::Dtype;
use weigh_values::cast::{Cast, CastError};
use weigh_values::{LengthError, Unit};

use crate::TARGETS;

/// Every cast there is.
fn casts() -> Vec<Cast> {
    let pairs = Dtype::ALL.into_iter().flat_map(|from| TARGETS.map(|to| Cast::new(from, to)));
    pairs.filter_map(Result::ok).collect()
}

#[test]
fn twelve_dtypes_can_be_cast_to_four() {
    let floats: Vec<Dtype> =
        Dtype::ALL.into_iter().filter(|dtype| dtype.name().starts_with(['F', 'B'])).collect();
    for from in Dtype::ALL {
        for to in Dtype::ALL {
            let want = match (floats.contains(&from) && from != Dtype::BOOL, TARGETS.contains(&to))
            {
                (true, true) => Ok((from, to)),
                (_, false) => Err(CastError::NotTarget { to }),
                (false, true) => Err(CastError::NotFloat { from }),
            };
            let got = Cast::new(from, to).map(|cast| (cast.from(), cast.to()));
            assert_eq!(got, want, "{from} to {to}");
        }
    }
    assert_eq!(casts().len(), 12 * 4);
}

#[test]
fn a_unit_is_whole_bytes() {
    for (from, to, from_bytes, to_bytes) in [
        (Dtype::BF16, Dtype::F32, 2, 4),
        (Dtype::F4, Dtype::F32, 1, 8),
        (Dtype::F4, Dtype::BF16, 1, 4),
        (Dtype::F6_E2M3, Dtype::F32, 3, 16),
        (Dtype::F6_E3M2, Dtype::F64, 3, 32),
        (Dtype::F8_E4M3, Dtype::BF16, 1, 2),
        (Dtype::F8_E8M0, Dtype::F64, 1, 8),
        (Dtype::F64, Dtype::F16, 8, 2),
        (Dtype::F32, Dtype::F32, 4, 4),
    ] {
        let unit = Cast::new(from, to).unwrap().unit();
        assert_eq!(unit, Unit { from_bytes, to_bytes }, "{from} to {to}");
    }
}

#[test]
fn lengths_must_fit_or_nothing_is_written() {
    for (from, to, from_bytes, to_bytes, want) in [
        (Dtype::F32, Dtype::BF16, 0, 0, Ok(())),
        (Dtype::F32, Dtype::BF16, 8, 4, Ok(())),
        (Dtype::F32, Dtype::BF16, 7, 4, Err("7 bytes are not a multiple of 4")),
        (Dtype::F32, Dtype::BF16, 8, 3, Err("8 bytes become 4, but the room is 3")),
        (Dtype::F32, Dtype::BF16, 8, 5, Err("8 bytes become 4, but the room is 5")),
        (Dtype::F32, Dtype::BF16, 0, 1, Err("0 bytes become 0, but the room is 1")),
        (Dtype::F32, Dtype::F32, 4, 4, Ok(())),
        (Dtype::F32, Dtype::F32, 5, 5, Err("5 bytes are not a multiple of 4")),
        (Dtype::F4, Dtype::F32, 1, 8, Ok(())),
        (Dtype::F4, Dtype::F32, 1, 4, Err("1 bytes become 8, but the room is 4")),
        (Dtype::F6_E2M3, Dtype::F32, 3, 16, Ok(())),
        (Dtype::F6_E2M3, Dtype::F32, 4, 16, Err("4 bytes are not a multiple of 3")),
        (Dtype::F8_E4M3, Dtype::F64, 3, 24, Ok(())),
    ] {
        let mut bytes = vec![0xa5; to_bytes];
        let got = Cast::new(from, to).unwrap().convert(&vec![0; from_bytes], &mut bytes);
        let text = got.map_err(|error| error.to_string());
        assert_eq!(text, want.map_err(String::from), "{from} to {to}");
        let untouched = bytes.iter().all(|byte| *byte == 0xa5);
        assert!(got.is_ok() || untouched, "{from} to {to}");
    }
}

#[test]
fn errors_have_codes_and_say_what_is_wrong() {
    for (from, to, code, text) in [
        (Dtype::I8, Dtype::F32, "cast-not-float", "I8 is not a float dtype"),
        (
            Dtype::F32,
            Dtype::F8_E4M3,
            "cast-not-target",
            "cannot cast to F8_E4M3, only to F64, F32, F16 or BF16",
        ),
    ] {
        let error = Cast::new(from, to).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
    }
    let not_units = LengthError::NotUnits { from_bytes: 1, unit_bytes: 2 };
    let room = LengthError::Room { from_bytes: 2, wanted_bytes: 4, to_bytes: 3 };
    assert_eq!((not_units.code(), room.code()), ("length-not-units", "length-room"));
}

#[test]
fn every_number_of_units_converts_as_part_of_more() {
    for cast in casts() {
        let Unit { from_bytes, to_bytes } = cast.unit();
        let from: Vec<u8> = (0..150 * from_bytes).map(|place| (place * 37 % 251) as u8).collect();
        let whole = converted(cast, &from);
        for units in 0..150 {
            let part = converted(cast, &from[..units * from_bytes]);
            assert!(part == whole[..units * to_bytes], "{units} units by {cast:?}");
        }
    }
}

#[test]
fn no_alignment_is_wanted() {
    for cast in casts() {
        let Unit { from_bytes, to_bytes } = cast.unit();
        let bytes: Vec<u8> =
            (0..70 * from_bytes + 8).map(|place| (place * 37 % 251) as u8).collect();
        for offset in 0..8 {
            let from = &bytes[offset..][..70 * from_bytes];
            let mut room = vec![0; 70 * to_bytes + 8];
            let to = &mut room[8 - offset..][..70 * to_bytes];
            cast.convert(from, to).unwrap();
            assert!(*to == converted(cast, from), "offset {offset} by {cast:?}");
        }
    }
}

fn converted(cast: Cast, from: &[u8]) -> Vec<u8> {
    let Unit { from_bytes, to_bytes } = cast.unit();
    let mut to = vec![0; from.len() / from_bytes * to_bytes];
    cast.convert(from, &mut to).unwrap();
    to
}

proptest! {
    #[test]
    fn chunks_of_units_convert_as_the_whole_does(
        cast in prop::sample::select(casts()),
        bytes in prop::collection::vec(any::<u8>(), 0..4096),
        units in 1_usize..300,
    ) {
        let Unit { from_bytes, to_bytes } = cast.unit();
        let from = &bytes[..bytes.len() / from_bytes * from_bytes];
        let mut to = vec![0; from.len() / from_bytes * to_bytes];
        for (from, to) in from.chunks(units * from_bytes).zip(to.chunks_mut(units * to_bytes)) {
            cast.convert(from, to).unwrap();
        }
        prop_assert_eq!(to, converted(cast, from));
    }

    #[test]
    fn no_lengths_are_a_panic(
        cast in prop::sample::select(casts()),
        from_bytes in 0_usize..200,
        to_bytes in 0_usize..200,
    ) {
        let _ = cast.convert(&vec![0xff; from_bytes], &mut vec![0; to_bytes]);
    }
}
