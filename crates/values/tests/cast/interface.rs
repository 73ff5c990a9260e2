//! What can be cast, in which portions, and what is said where it cannot.

use proptest::prelude::*;
use weigh_format::Dtype;
use weigh_values::cast::{Cast, CastError, Overflow};
use weigh_values::{LengthError, Tally, Unit};

use crate::OVERFLOWS;

/// Every cast there is.
fn casts() -> Vec<Cast> {
    let pairs = Dtype::ALL.into_iter().flat_map(|from| Dtype::ALL.map(|to| (from, to)));
    pairs.flat_map(|(from, to)| OVERFLOWS.map(|overflow| Cast::new(from, to, overflow))).collect()
}

#[test]
fn every_dtype_can_be_cast_to_every_other() {
    for cast in casts() {
        let same = Cast::new(cast.from(), cast.to(), cast.overflow());
        assert_eq!(format!("{cast:?}"), format!("{same:?}"));
    }
    assert_eq!(casts().len(), 22 * 22 * 2);
}

#[test]
fn between_floats_twelve_dtypes_can_be_cast_to_four() {
    let targets = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16];
    let floats: Vec<Dtype> =
        Dtype::ALL.into_iter().filter(|dtype| dtype.name().starts_with(['F', 'B'])).collect();
    let mut count = 0;
    for from in Dtype::ALL {
        for to in Dtype::ALL {
            let want = match (floats.contains(&from) && from != Dtype::BOOL, targets.contains(&to))
            {
                (true, true) => Ok((from, to, Overflow::Natural)),
                (_, false) => Err(CastError::NotTarget { to }),
                (false, true) => Err(CastError::NotFloat { from }),
            };
            let cast = Cast::between_floats(from, to);
            let got = cast.map(|cast| (cast.from(), cast.to(), cast.overflow()));
            assert_eq!(got, want, "{from} to {to}");
            count += usize::from(got.is_ok());
        }
    }
    assert_eq!(count, 12 * 4);
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
        (Dtype::F32, Dtype::F4, 8, 1),
        (Dtype::U8, Dtype::F4, 2, 1),
        (Dtype::F4, Dtype::F4, 1, 1),
        (Dtype::F64, Dtype::F6_E3M2, 32, 3),
        (Dtype::F8_E8M0, Dtype::F6_E2M3, 4, 3),
        (Dtype::F6_E2M3, Dtype::F6_E3M2, 3, 3),
        (Dtype::F6_E2M3, Dtype::F4, 3, 2),
        (Dtype::F4, Dtype::F6_E2M3, 2, 3),
        (Dtype::C64, Dtype::F6_E2M3, 32, 3),
        (Dtype::F6_E2M3, Dtype::C64, 3, 32),
        (Dtype::I64, Dtype::BOOL, 8, 1),
    ] {
        let unit = Cast::new(from, to, Overflow::Natural).unit();
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
        (Dtype::F32, Dtype::F4, 8, 1, Ok(())),
        (Dtype::F32, Dtype::F4, 4, 1, Err("4 bytes are not a multiple of 8")),
        (Dtype::F4, Dtype::F6_E3M2, 2, 3, Ok(())),
        (Dtype::F4, Dtype::F6_E3M2, 1, 3, Err("1 bytes are not a multiple of 2")),
        (Dtype::F6_E3M2, Dtype::F4, 6, 5, Err("6 bytes become 4, but the room is 5")),
    ] {
        let mut bytes = vec![0xa5; to_bytes];
        let cast = Cast::new(from, to, Overflow::Natural);
        let got = cast.convert(&vec![0; from_bytes], &mut bytes);
        let mut tally = Tally::default();
        let counted = cast.convert_counted(&vec![0; from_bytes], &mut bytes, &mut tally);
        assert_eq!(counted, got, "{from} to {to}");
        assert!(got.is_ok() || tally == Tally::default(), "{from} to {to}");
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
        let error = Cast::between_floats(from, to).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
    }
    let not_units = LengthError::NotUnits { from_bytes: 1, unit_bytes: 2 };
    let room = LengthError::Room { from_bytes: 2, wanted_bytes: 4, to_bytes: 3 };
    assert_eq!((not_units.code(), room.code()), ("length-not-units", "length-room"));
}

/// Enough for more than one block of any kind.
const UNITS: usize = 1100;

#[test]
fn every_number_of_units_converts_as_part_of_more() {
    for cast in casts() {
        let Unit { from_bytes, to_bytes } = cast.unit();
        let from: Vec<u8> = (0..UNITS * from_bytes).map(|place| (place * 37 % 251) as u8).collect();
        let whole = converted(cast, &from);
        for units in (0..UNITS).step_by(13).chain(UNITS - 4..=UNITS) {
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
        bytes in prop::collection::vec(any::<u8>(), 0..20_000),
        units in 1_usize..1500,
    ) {
        let Unit { from_bytes, to_bytes } = cast.unit();
        let from = &bytes[..bytes.len() / from_bytes * from_bytes];
        let mut to = vec![0; from.len() / from_bytes * to_bytes];
        let mut tally = Tally::default();
        for (from, to) in from.chunks(units * from_bytes).zip(to.chunks_mut(units * to_bytes)) {
            cast.convert_counted(from, to, &mut tally).unwrap();
        }
        prop_assert_eq!(&to, &converted(cast, from));
        let mut whole = Tally::default();
        cast.convert_counted(from, &mut to, &mut whole).unwrap();
        prop_assert_eq!(tally, whole);
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
