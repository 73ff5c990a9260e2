use super::*;
use proptest::prelude::*;

fn view(first: u64, element_bytes: u64, shape: &[u64], strides: &[u64]) -> View {
    View {
        storage: StorageId(0),
        first,
        element_bytes,
        shape: shape.to_vec(),
        strides: strides.to_vec(),
    }
}

/// The byte of the storage that each byte of the gathered elements is.
fn naive(view: &View) -> Vec<u64> {
    let mut elements = alloc::vec![view.first];
    for (&size, &stride) in view.shape.iter().zip(&view.strides) {
        elements = elements
            .iter()
            .flat_map(|start| {
                (0..size).map(move |place| start + place * stride * view.element_bytes)
            })
            .collect();
    }
    elements.iter().flat_map(|start| *start..start + view.element_bytes).collect()
}

#[test]
fn dimensions_are_merged_and_what_is_contiguous_is_one_run() {
    for (shape, strides, run, dims) in [
        (&[][..], &[][..], 4, &[][..]),
        (&[1, 1], &[77, 99], 4, &[]),
        (&[2, 3], &[3, 1], 24, &[]),
        (&[2, 1, 3], &[3, 50, 1], 24, &[]),
        (&[2, 3], &[4, 1], 12, &[(2, 16)]),
        (&[3, 2], &[1, 3], 4, &[(3, 4), (2, 12)]),
        (&[5], &[0], 4, &[(5, 0)]),
        (&[5, 6], &[0, 0], 4, &[(30, 0)]),
        (&[2, 2, 2], &[8, 4, 2], 4, &[(8, 8)]),
        (&[2, 2, 3], &[8, 3, 1], 24, &[(2, 32)]),
        (&[0, 5], &[5, 1], 0, &[]),
    ] {
        let runs = view(0, 4, shape, strides).runs();
        let got: Vec<_> = runs.dims.iter().map(|repeat| (repeat.count, repeat.stride)).collect();
        assert_eq!((runs.run, got.as_slice()), (run, dims), "{shape:?} {strides:?}");
    }
}

#[test]
fn a_view_is_contiguous_if_it_is_one_run() {
    for (shape, strides, want) in [
        (&[][..], &[][..], true),
        (&[2, 3], &[3, 1], true),
        (&[1, 3], &[0, 1], true),
        (&[2, 0], &[7, 7], true),
        (&[0, 2], &[7, 7], true),
        (&[3, 2], &[1, 3], false),
        (&[2], &[0], false),
        (&[2, 3], &[4, 1], false),
    ] {
        assert_eq!(view(8, 2, shape, strides).is_contiguous(), want, "{shape:?} {strides:?}");
    }
}

#[test]
fn the_span_ends_with_the_last_element() {
    for (shape, strides, want) in [
        (&[2, 3][..], &[3, 1][..], 8..32),
        (&[2, 3], &[1, 4], 8..48),
        (&[2, 0], &[1, 4], 8..8),
        (&[9], &[0], 8..12),
    ] {
        assert_eq!(view(8, 4, shape, strides).span_in_storage(), want, "{shape:?} {strides:?}");
    }
}

#[test]
fn a_view_of_many_gigabytes_takes_no_memory() {
    let runs = view(0, 4, &[1 << 20, 1 << 20], &[1, 1 << 20]).runs();
    assert_eq!((runs.count(), runs.byte_len()), (1 << 40, 1 << 42));
    assert_eq!(runs.iter().next(), Some(0..4));
    assert_eq!(runs.span(), 0..1 << 42);
}

fn views() -> impl Strategy<Value = View> {
    let dims = prop::collection::vec((0..5_u64, 0..7_u64), 0..5);
    (0..9_u64, prop::sample::select(&[1_u64, 2, 3, 4, 8, 16][..]), dims).prop_map(
        |(offset, element, dims)| {
            let (shape, strides): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            view(offset * element, element, &shape, &strides)
        },
    )
}

/// Views as slices and transpositions of a row-major tensor make them.
fn sliced() -> impl Strategy<Value = View> {
    (prop::collection::vec((1..5_u64, 1..3_u64), 0..5), any::<u64>()).prop_map(|(dims, order)| {
        let mut stride = 1;
        let mut made: Vec<(u64, u64)> = Vec::new();
        for (size, step) in dims.iter().rev() {
            made.push((*size, stride * step));
            stride *= size * step;
        }
        made.reverse();
        let turns = usize::try_from(order % 5).unwrap().min(made.len());
        made.rotate_left(turns);
        let (shape, strides): (Vec<u64>, Vec<u64>) = made.into_iter().unzip();
        view(0, 4, &shape, &strides)
    })
}

proptest! {
    #[test]
    fn runs_are_those_of_a_naive_gather(view in prop_oneof![views(), sliced()]) {
        let want = naive(&view);
        let runs = view.runs();
        let got: Vec<u64> = runs.iter().flatten().collect();
        prop_assert_eq!(&got, &want);
        prop_assert_eq!(runs.byte_len(), want.len() as u64);
        prop_assert_eq!(view.byte_len(), want.len() as u64);
        prop_assert_eq!(runs.count(), runs.iter().count() as u64);
        let in_a_row = want.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        prop_assert_eq!(view.is_contiguous(), in_a_row);
        if !want.is_empty() {
            let span = *want.iter().min().unwrap()..want.iter().max().unwrap() + 1;
            prop_assert_eq!(view.span_in_storage(), span);
        }
    }
}
