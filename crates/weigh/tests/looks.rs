//! What the tensors of a checkpoint say, over pieces and threads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use weigh::format::Dtype;
use weigh::inventory::select::Selection;
use weigh::values::odd::Odd;
use weigh::values::statistics::Statistics;
use weigh::{Checkpoint, Error, View, Watch, WriteOptions, save};

/// More bytes than a piece, and no whole number of them.
const ELEMENTS: usize = 2_500_003;

fn floats(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state & 0x3fff_ffff) | (state & 0x8000_0000)
    });
    next.take(count).flat_map(u32::to_le_bytes).collect()
}

#[test]
fn pieces_on_threads_are_as_one_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let mut wide = floats(ELEMENTS);
    wide[4 * 2_000_000..4 * 2_000_001].copy_from_slice(&f32::NAN.to_le_bytes());
    wide[4 * 10..4 * 11].copy_from_slice(&f32::NEG_INFINITY.to_le_bytes());
    let half = floats(9_000_001 / 2);
    let shapes = [vec![ELEMENTS as u64], vec![half.len() as u64 / 2], vec![], vec![0, 3]];
    let tensors = [
        ("wide", View::of(Dtype::F32, &shapes[0], &wide).unwrap()),
        ("half", View::of(Dtype::BF16, &shapes[1], &half).unwrap()),
        ("scalar", View::of(Dtype::I8, &shapes[2], &[7]).unwrap()),
        ("empty", View::of(Dtype::F64, &shapes[3], &[]).unwrap()),
    ];
    save(&path, tensors, &BTreeMap::new(), &WriteOptions::default()).unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    let all = Selection::all();

    let looked = checkpoint.statistics(&all, true, Watch::default()).unwrap();
    let names: Vec<&str> = looked.iter().map(|looked| looked.name.as_str()).collect();
    assert_eq!(names, ["empty", "half", "scalar", "wide"]);
    for (looked, (_, view)) in
        looked.iter().zip([&tensors[3], &tensors[1], &tensors[2], &tensors[0]])
    {
        let mut whole = Statistics::new(looked.dtype);
        whole.add(view.bytes()).unwrap();
        let (whole, ours) = (whole.summary(), looked.found.statistics.summary());
        assert_eq!((whole.numbers, whole.nan, whole.zeros), (ours.numbers, ours.nan, ours.zeros));
        assert_eq!(whole.bounds, ours.bounds);
        assert!((whole.moments.norm() - ours.moments.norm()).abs() <= 1e-12 * whole.moments.norm());
        let count = looked.found.codes.as_ref().unwrap().distribution().count();
        assert_eq!(count, ours.moments.count(), "{}", looked.name);
    }
    let odd = checkpoint.odd(&all, 5, Watch::default()).unwrap();
    let mut whole = Odd::new(Dtype::F32).with_positions(5);
    whole.add(&wide).unwrap();
    let ours = &odd[3].found;
    assert_eq!((ours.nan(), ours.negative_infinity()), (whole.nan(), whole.negative_infinity()));
    assert_eq!(ours.positions(), [10, 2_000_000]);
}

#[test]
fn the_digits_of_a_sum_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let wide = floats(ELEMENTS);
    let shape = [ELEMENTS as u64];
    save(
        &path,
        [("a", View::of(Dtype::F32, &shape, &wide).unwrap())],
        &BTreeMap::new(),
        &WriteOptions::default(),
    )
    .unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    let mut sums = Vec::new();
    for _ in 0..8 {
        let looked = checkpoint.statistics(&Selection::all(), false, Watch::default()).unwrap();
        let moments = looked[0].found.statistics.summary().moments;
        sums.push((moments.sum().to_bits(), moments.deviation().to_bits()));
    }
    sums.dedup();
    assert_eq!(sums.len(), 1);
}

#[test]
fn a_look_can_be_stopped_and_a_file_that_changed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let bytes = vec![0; 1 << 20];
    let shape = [1 << 20];
    save(
        &path,
        [("a", View::of(Dtype::U8, &shape, &bytes).unwrap())],
        &BTreeMap::new(),
        &WriteOptions::default(),
    )
    .unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    let stop = |_| ControlFlow::Break(());
    let watch = Watch { progress: Some(&stop), ..Watch::default() };
    assert!(matches!(checkpoint.odd(&Selection::all(), 0, watch), Err(Error::Cancelled)));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 10).unwrap();
    assert!(matches!(checkpoint.odd(&Selection::all(), 0, Watch::default()), Err(Error::Io(_))));
}
