//! Views of a storage, however strided and however large: the elements are those of a walk through them one by one.

use weigh::torch::ConvertOptions;

use crate::made::{Made, Place};

/// The bytes of a view, gathered one element after the other.
fn naive(storage: &[u8], element: usize, offset: u64, shape: &[u64], strides: &[u64]) -> Vec<u8> {
    let count: u64 = shape.iter().product();
    let mut bytes = Vec::new();
    for number in 0..count {
        let (mut rest, mut at) = (number, offset);
        for (size, stride) in shape.iter().zip(strides).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        let start = usize::try_from(at).unwrap() * element;
        bytes.extend(&storage[start..start + element]);
    }
    bytes
}

/// Bytes that are seldom the same again.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[5]
    };
    std::iter::repeat_with(next).take(length).collect()
}

type View = (u64, &'static [u64], &'static [u64]);

const SMALL: &[View] = &[
    (0, &[], &[]),
    (7, &[], &[]),
    (0, &[40, 50], &[50, 1]),
    (0, &[50, 40], &[1, 50]),
    (155, &[14, 4], &[50, 1]),
    (0, &[14, 25], &[150, 2]),
    (0, &[40], &[51]),
    (3, &[7, 5], &[0, 1]),
    (3, &[6, 4], &[1, 0]),
    (11, &[5, 6], &[2, 3]),
    (0, &[50, 4], &[1, 1]),
    (0, &[5, 2, 4, 3], &[1, 5, 10, 40]),
    (0, &[4, 2, 5, 3], &[2, 1, 8, 40]),
    (0, &[1, 40, 1], &[9, 1, 9]),
    (0, &[0, 3], &[3, 1]),
    (9999, &[3, 0], &[1, 1]),
];

#[test]
fn small_views_of_every_kind() {
    for (class, element) in
        [("ByteStorage", 1), ("HalfStorage", 2), ("FloatStorage", 4), ("DoubleStorage", 8)]
    {
        let storage = noise(2100 * element);
        let mut made = Made::default();
        let of = made.storage(class, element as u64, storage.clone());
        for (number, (offset, shape, strides)) in SMALL.iter().enumerate() {
            made.view(&number.to_string(), of, *offset, shape, strides);
        }
        for deflated in [false, true] {
            made.deflated = deflated;
            let files = [made.zip(), made.legacy()];
            for file in &files {
                let got = Place::new().converted(file, &ConvertOptions::default()).unwrap();
                for (number, (offset, shape, strides)) in SMALL.iter().enumerate() {
                    let (_, got_shape, bytes) = &got[&number.to_string()];
                    let want = if shape.contains(&0) {
                        Vec::new()
                    } else {
                        naive(&storage, element, *offset, shape, strides)
                    };
                    assert_eq!(got_shape, shape);
                    assert!(*bytes == want, "{class} {deflated} {offset} {shape:?} {strides:?}");
                }
            }
        }
    }
}

/// More than is read at once, and boxes that do not come out even.
const LARGE: &[View] = &[
    // Transposed, in both directions long.
    (0, &[1601, 1603], &[1, 1601]),
    // Very long in one.
    (0, &[3, 800_001], &[1, 3]),
    (0, &[800_001, 3], &[1, 800_001]),
    // The middle dimensions exchanged.
    (5, &[25, 61, 40, 32], &[78_080, 32, 1952, 1]),
    // All of them, and a part of each.
    (0, &[19, 40, 60, 40], &[1, 20, 820, 50_020]),
    // Rows and columns left out.
    (0, &[500, 1600], &[5000, 3]),
    (0, &[1100, 500], &[2, 4999]),
    // A few of many.
    (0, &[1580], &[1581]),
    // The same again.
    (4, &[2, 2_200_000], &[0, 1]),
    (4, &[2_200_000, 2], &[1, 0]),
    // Long runs.
    (0, &[20, 100_003], &[125_000, 1]),
];

#[test]
fn large_views_in_constant_memory() {
    let storage = noise(2_600_000 * 4);
    for (offset, shape, strides) in LARGE {
        let want = naive(&storage, 4, *offset, shape, strides);
        for deflated in [false, true] {
            let mut made = Made { deflated, ..Made::default() };
            let of = made.storage("FloatStorage", 4, storage.clone());
            made.view("view", of, *offset, shape, strides);
            let got = Place::new().converted(&made.zip(), &ConvertOptions::default()).unwrap();
            assert!(got["view"].2 == want, "{deflated} {offset} {shape:?} {strides:?}");
        }
    }
}

#[test]
fn a_view_that_ends_after_its_storage_is_refused() {
    for (offset, shape, strides, fine) in [
        (0, &[10][..], &[1][..], true),
        (1, &[10], &[1], false),
        (0, &[2, 5], &[6, 1], false),
        (0, &[3], &[4], true),
        (1, &[3], &[4], true),
        (2, &[3], &[4], false),
    ] {
        let mut made = Made::default();
        let of = made.storage("FloatStorage", 4, noise(40));
        made.view("w", of, offset, shape, strides);
        let place = Place::new();
        for file in [made.zip(), made.legacy()] {
            let got = place.converted(&file, &ConvertOptions::default());
            let code = got.as_ref().map_err(weigh::Error::code).err();
            assert_eq!(code, (!fine).then_some("tensor-bounds"), "{offset} {shape:?} {strides:?}");
        }
    }
}

#[test]
fn a_small_storage_does_not_become_a_large_file() {
    let mut made = Made::default();
    let of = made.storage("FloatStorage", 4, noise(4));
    made.view("w", of, 0, &[20_000, 1000], &[0, 0]);
    let place = Place::new();
    let error = place.converted(&made.zip(), &ConvertOptions::default()).unwrap_err();
    assert_eq!(
        (error.code(), place.names().as_slice()),
        ("limit-expansion", &["in.pt".to_string()][..])
    );
}
