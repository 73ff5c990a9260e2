//! Slices against a reference that walks every element, and against numpy's own answers.

#![expect(clippy::similar_names, reason = "start, stop and step are numpy's words")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use weigh_format::Dtype;
use weigh_format::slice::{Index, Indices, Slice, reverse};

/// What Python takes of a sequence of `size`: where it starts and stops, after what is left out is filled
/// in and what is outside is moved to the ends.
fn bounds(size: i128, start: Option<i64>, stop: Option<i64>, step: i128) -> (i128, i128) {
    let (least, most) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let moved = |place: i64| {
        let mut place = i128::from(place);
        if place < 0 {
            place += size;
        }
        place.max(least).min(most)
    };
    let (first, last) = if step > 0 { (least, most) } else { (most, least) };
    (start.map_or(first, moved), stop.map_or(last, moved))
}

/// What is taken of one dimension: the places, first to last, or the one place of a dropped dimension.
#[derive(Debug)]
enum Taken {
    One(i128),
    /// From `start` on, `count` times, `step` apart.
    Some {
        start: i128,
        count: i128,
        step: i128,
    },
}

impl Taken {
    fn places(&self) -> Vec<i128> {
        match *self {
            Self::One(place) => vec![place],
            Self::Some { start, count, step } => (0..count).map(|it| start + it * step).collect(),
        }
    }

    /// The lowest and the highest place, of at least one.
    fn ends(&self) -> (i128, i128) {
        match *self {
            Self::One(place) => (place, place),
            Self::Some { start, count, step } => {
                let last = start + (count - 1) * step;
                (start.min(last), start.max(last))
            }
        }
    }
}

/// What is taken of each dimension, or the code of the error.
fn taken(shape: &[u64], index: &[Index]) -> Result<Vec<Taken>, &'static str> {
    let given: Vec<_> = index.iter().filter(|it| !matches!(it, Index::Ellipsis)).collect();
    if index.len() > given.len() + 1 {
        return Err("slice-two-ellipses");
    }
    if given.len() > shape.len() {
        return Err("slice-too-many-indices");
    }
    let mut all: Vec<Index> = index.to_vec();
    let at = all.iter().position(|it| matches!(it, Index::Ellipsis)).unwrap_or(all.len());
    let left_over = std::iter::repeat_n(Index::ALL, shape.len() - given.len());
    all.splice(at..(at + 1).min(index.len()), left_over);
    let mut taken = Vec::new();
    for (&size, index) in shape.iter().zip(all) {
        let size = i128::from(size);
        taken.push(match index {
            Index::At(place) => {
                let place = i128::from(place);
                let place = if place < 0 { place + size } else { place };
                if place < 0 || place >= size {
                    return Err("slice-out-of-range");
                }
                Taken::One(place)
            }
            Index::Range { step: 0, .. } => return Err("slice-step-zero"),
            Index::Range { start, stop, step } => {
                let step = i128::from(step);
                let (start, stop) = bounds(size, start, stop, step);
                // The least count for which `start + count * step` has reached `stop`.
                let count = ((stop - start) * step.signum()).max(0);
                let count = (count + step.abs() - 1) / step.abs();
                Taken::Some { start, count, step }
            }
            other => panic!("{other:?}"),
        });
    }
    Ok(taken)
}

/// The shape of a slice.
fn sliced_shape(taken: &[Taken]) -> Vec<u64> {
    let count = |taken: &Taken| match *taken {
        Taken::One(_) => None,
        Taken::Some { count, .. } => Some(u64::try_from(count).unwrap()),
    };
    taken.iter().filter_map(count).collect()
}

/// The flat numbers of the elements of a slice, in the slice's order.
fn elements(shape: &[u64], taken: &[Taken]) -> Vec<u64> {
    let mut numbers = vec![0];
    for (&size, taken) in shape.iter().zip(taken) {
        let places = taken.places();
        let inside = |number: u64| {
            places.iter().map(move |&place| number * size + u64::try_from(place).unwrap())
        };
        numbers = numbers.into_iter().flat_map(inside).collect();
    }
    numbers
}

/// Bit `at` of some bytes, the low bits of a byte first.
fn bit(bytes: &[u8], at: u64) -> u8 {
    (bytes[usize::try_from(at / 8).unwrap()] >> (at % 8)) & 1
}

/// The dense bytes of these elements, one after the other.
fn gathered(file: &[u8], elements: &[u64], bits: u64) -> Vec<u8> {
    let mut dense = vec![0; (elements.len() * usize::try_from(bits).unwrap()).div_ceil(8)];
    let places = elements.iter().flat_map(|element| element * bits..(element + 1) * bits);
    for (to, from) in places.enumerate() {
        dense[to / 8] |= bit(file, from) << (to % 8);
    }
    dense
}

/// Whether a run of these elements, read in the order of the file, begins inside a byte there or in what is
/// read.
fn has_run_inside_a_byte(elements: &[u64], bits: u64) -> bool {
    let mut sorted = elements.to_vec();
    sorted.sort_unstable();
    (0_u64..).zip(&sorted).any(|(number, &element)| {
        let continues = number > 0 && sorted[usize::try_from(number).unwrap() - 1] + 1 == element;
        !(continues || (element * bits).is_multiple_of(8) && (number * bits).is_multiple_of(8))
    })
}

/// Whether a negative step would move something that is not whole bytes.
fn has_reversal_inside_a_byte(taken: &[Taken], bits: u64) -> bool {
    let mut inner = bits;
    for taken in taken.iter().rev() {
        if let Taken::Some { count, step, .. } = *taken {
            if step < 0 && count > 1 && !inner.is_multiple_of(8) {
                return true;
            }
            inner *= u64::try_from(count).unwrap();
        }
    }
    false
}

/// What the reference makes of a slice: its shape and dense bytes, or the code of an error.
fn reference(
    dtype: Dtype,
    shape: &[u64],
    index: &[Index],
    file: &[u8],
) -> Result<(Vec<u64>, Vec<u8>), &'static str> {
    let bits = u64::from(dtype.bits());
    let taken = taken(shape, index)?;
    let elements = elements(shape, &taken);
    if has_run_inside_a_byte(&elements, bits) {
        return Err("slice-inside-byte");
    }
    if !elements.is_empty() && has_reversal_inside_a_byte(&taken, bits) {
        return Err("slice-reversed-inside-byte");
    }
    Ok((sliced_shape(&taken), gathered(file, &elements, bits)))
}

/// What a reader makes of a slice.
fn read(
    dtype: Dtype,
    shape: &[u64],
    index: &[Index],
    file: &[u8],
) -> Result<(Vec<u64>, Vec<u8>), &'static str> {
    let slice = Slice::new(dtype, shape, index).map_err(|error| error.code())?;
    check_pattern(&slice);
    let mut dense = Vec::new();
    for run in slice.runs() {
        dense.extend_from_slice(&file[place(run.start)..place(run.end)]);
    }
    if slice.is_whole() {
        assert_eq!(dense, file);
    }
    if let Some(last) = dense.last_mut() {
        *last &= u8::MAX >> slice.spare_bits();
    }
    assert_eq!(dense.len() as u64, slice.byte_len());
    reverse(&mut dense, slice.shape(), slice.reversed(), dtype).unwrap();
    Ok((slice.shape().to_vec(), dense))
}

fn place(byte: u64) -> usize {
    usize::try_from(byte).unwrap()
}

/// Checks what [`weigh_format::slice::Runs`] promises.
fn check_pattern(slice: &Slice) {
    let runs = slice.runs();
    let mut extent = runs.run;
    for repeat in runs.dims.iter().rev() {
        assert!(repeat.count >= 2 && repeat.stride >= extent, "{runs:?}");
        extent += repeat.stride * (repeat.count - 1);
    }
    assert_ne!(runs.dims.last().map(|it| it.stride), Some(runs.run), "could be one run: {runs:?}");
    for pair in runs.dims.windows(2) {
        let inside = pair[1].count.checked_mul(pair[1].stride);
        assert_ne!(Some(pair[0].stride), inside, "could be one dimension: {runs:?}");
    }
    assert_eq!(runs.span(), runs.first..runs.first + extent);
    let count = if runs.run == 0 { 0 } else { runs.dims.iter().map(|it| it.count).product() };
    assert_eq!((runs.count(), runs.byte_len()), (count, count * runs.run));
    assert_eq!(runs.iter().size_hint(), (place(count), Some(place(count))));
    let mut end = runs.first;
    for run in runs.iter().take(1000) {
        assert!(run.start >= end && run.end == run.start + runs.run && run.end <= runs.span().end);
        end = run.end;
    }
    if count <= 1000 {
        assert_eq!((end, runs.iter().count() as u64), (runs.span().end, count));
    }
}

/// A bound of a range: mostly one that leaves something.
fn a_bound(near: std::ops::RangeInclusive<i64>) -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        10 => Just(None),
        6 => near.prop_map(Some),
        2 => (-9_i64..=9).prop_map(Some),
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]).prop_map(Some),
    ]
}

fn a_range() -> impl Strategy<Value = Index> {
    let forwards = (
        a_bound(0..=2),
        a_bound(3..=7),
        prop_oneof![5 => Just(1_i64), 5 => 2_i64..=4, 1 => 5_i64..=8, 1 => Just(i64::MAX)],
    );
    let backwards = (
        a_bound(-2..=-1),
        a_bound(-9..=-3),
        prop_oneof![5 => Just(-1_i64), 5 => -4_i64..=-2, 1 => -8_i64..=-5, 1 => Just(i64::MIN)],
    );
    let any = (a_bound(-9..=9), a_bound(-9..=9), -3_i64..=3);
    prop_oneof![6 => forwards, 4 => backwards, 1 => any]
        .prop_map(|(start, stop, step)| Index::Range { start, stop, step })
}

fn an_index() -> impl Strategy<Value = Index> {
    prop_oneof![
        3 => (-2_i64..=1).prop_map(Index::At),
        20 => a_range(),
        5 => Just(Index::ALL),
    ]
}

/// Sizes, many of them of whole bytes whatever the dtype.
fn a_size() -> impl Strategy<Value = u64> {
    prop_oneof![10 => 2_u64..=7, 6 => Just(4_u64), 1 => 0_u64..=1]
}

/// A shape, and indices for some of its dimensions; sometimes for more.
fn a_case() -> impl Strategy<Value = (Vec<u64>, Vec<Index>)> {
    prop::collection::vec(a_size(), 0..=5).prop_flat_map(|shape| {
        let rank = shape.len();
        let count = prop_oneof![6 => Just(rank), 6 => 0..=rank, 1 => Just(rank + 1)];
        let index = count.prop_flat_map(|count| prop::collection::vec(an_index(), count));
        let ellipses = prop_oneof![
            20 => Just(vec![]),
            8 => prop::collection::vec(0_usize..6, 1),
            1 => prop::collection::vec(0_usize..6, 2),
        ];
        (Just(shape), index, ellipses).prop_map(|(shape, mut index, ellipses)| {
            for at in ellipses {
                index.insert(at.min(index.len()), Index::Ellipsis);
            }
            (shape, index)
        })
    })
}

fn a_dtype() -> impl Strategy<Value = Dtype> {
    prop_oneof![
        1 => prop::sample::select(Dtype::ALL.to_vec()),
        1 => prop::sample::select(vec![Dtype::F4, Dtype::F6_E2M3, Dtype::F6_E3M2]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_read_is_what_the_reference_gathers(
        dtype in a_dtype(),
        (shape, index) in a_case(),
        seed in any::<u8>(),
    ) {
        let bits = shape.iter().product::<u64>() * u64::from(dtype.bits());
        let mut state = u32::from(seed) + 1;
        let file: Vec<u8> = (0..bits.div_ceil(8)).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        }).collect();
        prop_assert_eq!(
            read(dtype, &shape, &index, &file),
            reference(dtype, &shape, &index, &file)
        );
    }

    #[test]
    fn a_list_of_indices_reads_back(index in prop::collection::vec(an_index(), 1..8)) {
        let text = Indices::from(index.clone()).to_string();
        prop_assert_eq!(&*text.parse::<Indices>().unwrap(), &index[..], "{}", text);
    }

    #[test]
    fn any_text_is_a_list_or_says_where_it_is_not(text in "[-+0-9:,. a\u{e9}]{0,12}|.{0,40}") {
        match text.parse::<Indices>() {
            Ok(indices) => {
                let again: Indices = indices.to_string().parse().unwrap();
                prop_assert_eq!(again, indices);
            }
            Err(error) => prop_assert!(text.is_char_boundary(error.position()), "{:?}", error),
        }
    }
}

/// Sizes that a header may claim, and places around them.
fn a_hostile_size() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(1_u64),
        2 => 0_u64..=3,
        2 => prop::sample::select(vec![1 << 16, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62]),
        2 => prop::sample::select(vec![(1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX]),
        1 => any::<u64>(),
    ]
}

fn a_hostile_place() -> impl Strategy<Value = i64> {
    prop_oneof![
        2 => -2_i64..=2,
        2 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]),
        1 => any::<i64>(),
    ]
}

fn a_hostile_index() -> impl Strategy<Value = Index> {
    let place = || prop::option::of(a_hostile_place());
    prop_oneof![
        1 => a_hostile_place().prop_map(Index::At),
        4 => prop::sample::select(vec![-1_i64, 0]).prop_map(Index::At),
        8 => Just(Index::ALL),
        8 => (place(), place(), a_hostile_place())
            .prop_map(|(start, stop, step)| Index::Range { start, stop, step }),
        8 => prop::sample::select(vec![-1_i64, 2, i64::MIN, i64::MAX])
            .prop_map(|step| Index::ALL.step(step)),
    ]
}

/// A shape, often with so many ones among few other sizes that it can be counted, and as many indices.
fn a_hostile_case() -> impl Strategy<Value = (Vec<u64>, Vec<Index>)> {
    let shape = prop_oneof![
        4 => prop::collection::vec(a_hostile_size(), 0..=5),
        1 => prop::collection::vec(a_hostile_size(), 64),
        2 => (prop::collection::vec(a_hostile_size(), 3), prop::collection::vec(0_usize..64, 3))
            .prop_map(|(sizes, places)| {
                let mut shape = vec![1; 64];
                places.into_iter().zip(sizes).for_each(|(place, size)| shape[place] = size);
                shape
            }),
        1 => prop::collection::vec(1_u64..=2, 64),
    ];
    shape.prop_flat_map(|shape| {
        let rank = shape.len();
        let count = prop_oneof![4 => Just(rank.min(6)), 2 => Just(rank), 1 => 0..=rank, 1 => Just(rank + 1)];
        let index = count.prop_flat_map(|count| prop::collection::vec(a_hostile_index(), count));
        (Just(shape), index, prop::option::of(0_usize..6)).prop_map(|(shape, mut index, ellipsis)| {
            if let Some(at) = ellipsis {
                index.insert(at.min(index.len()), Index::Ellipsis);
            }
            (shape, index)
        })
    })
}

/// The product of a shape, 0 before all else; `None` if it is over 2^64 − 1.
fn product(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn sizes_and_places_may_be_any_numbers(
        dtype in a_dtype(),
        (shape, index) in a_hostile_case(),
    ) {
        let got = Slice::new(dtype, &shape, &index);
        let bits = i128::from(dtype.bits());
        let is_counted = product(&shape).is_some_and(|count| i128::from(count) * bits / 8 < 1 << 64);
        if !is_counted {
            prop_assert_eq!(got.unwrap_err().code(), "size-overflow");
            return Ok(());
        }
        let taken = match taken(&shape, &index) {
            Ok(taken) => taken,
            Err(code) => {
                prop_assert_eq!(got.unwrap_err().code(), code);
                return Ok(());
            }
        };
        let slice = match got {
            Ok(slice) => slice,
            Err(error) => {
                prop_assert!(error.code().ends_with("inside-byte") && bits < 8, "{:?}", error);
                return Ok(());
            }
        };
        check_pattern(&slice);
        let sliced = sliced_shape(&taken);
        prop_assert_eq!(slice.shape(), &sliced[..]);
        let bytes = |elements: i128| u64::try_from((elements * bits + 7) / 8).unwrap();
        let count = product(&sliced).unwrap();
        prop_assert_eq!(slice.byte_len(), bytes(i128::from(count)));
        prop_assert!(reverse(&mut [0; 3], &sliced, slice.reversed(), dtype).is_ok() == (slice.byte_len() == 3));

        if count == 0 {
            prop_assert_eq!(slice.runs().iter().next(), None);
            return Ok(());
        }
        let (mut first, mut last) = (0, 0);
        for (taken, &size) in taken.iter().zip(&shape) {
            let (lowest, highest) = taken.ends();
            first = first * i128::from(size) + lowest;
            last = last * i128::from(size) + highest;
        }
        let span = bytes(first)..bytes(last + 1);
        prop_assert_eq!(slice.runs().span(), span);
    }

    #[test]
    fn what_is_to_be_reversed_may_be_any_axes(
        dtype in a_dtype(),
        shape in prop::collection::vec(a_hostile_size(), 0..=64),
        axes in prop::collection::vec(0_usize..66, 0..8),
    ) {
        let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        if reverse(&mut bytes, &shape, &axes, dtype).is_err() {
            prop_assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
        }
    }
}

/// `slice_cases.txt`, which `slice_cases.py` writes: shape, index, and numpy's shape and element numbers or
/// the name of its exception, separated by tabs.
#[test]
fn numpy_gives_the_same() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slice_cases.txt");
    let table = fs::read_to_string(table).unwrap();
    let numbers = |cell: &str| -> Vec<u64> {
        cell.split_terminator(' ').map(|number| number.parse().unwrap()).collect()
    };
    let mut cases = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let shape = numbers(cells[0]);
        let bytes = |numbers: Vec<u64>| -> Vec<u8> {
            numbers.into_iter().flat_map(|it| u16::try_from(it).unwrap().to_le_bytes()).collect()
        };
        let file = bytes((0..shape.iter().product()).collect());
        let got = cells[1]
            .parse::<Indices>()
            .map_err(|error| error.code())
            .and_then(|index| read(Dtype::U16, &shape, &index, &file));
        let got = got.map_err(|code| match code {
            "slice-step-zero" => "ValueError",
            // The texts are sound, so what is refused is a place beyond 64 bits.
            "slice-too-many-indices"
            | "slice-two-ellipses"
            | "slice-out-of-range"
            | "slice-syntax" => "IndexError",
            other => other,
        });
        let want = match cells[..] {
            // For a place beyond 64 bits numpy has one or the other.
            [_, _, "OverflowError"] => Err("IndexError"),
            [_, _, error] => Err(error),
            [_, _, shape, elements] => Ok((numbers(shape), bytes(numbers(elements)))),
            _ => panic!("{line}"),
        };
        assert_eq!(got, want, "{line}");
        cases += 1;
    }
    assert!(cases > 1000, "{cases} cases");
}
