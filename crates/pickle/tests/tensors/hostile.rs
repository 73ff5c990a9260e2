//! Graphs made to exhaust whoever walks them.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use weigh_pickle::reach::Reach;
use weigh_pickle::state::{Options, State};
use weigh_pickle::tensor::TensorReader;
use weigh_pickle::values::values;
use weigh_pickle::{Limits, run};

use super::made::*;

/// The code of what is wrong with a file, and how long that took to say.
fn refused(bytes: &[u8], limits: &Limits) -> (Option<&'static str>, Duration) {
    let program = run(bytes, limits);
    let Some(root) = program.root else {
        return (program.error.map(|error| error.code), Duration::ZERO);
    };
    let start = Instant::now();
    let mut reader = TensorReader::new(&program.graph, limits);
    let state = State::read(&mut reader, root, &Options::default(), limits);
    (state.err().map(|error| error.code), start.elapsed())
}

/// Lists, each ten times in the next, around a value.
fn laughs(value: Piece, levels: u8) -> Piece {
    let mut piece = put(list(&[value]), 0);
    for level in 1..levels {
        let items = vec![get(level - 1); 9].concat();
        // The list of the level before is on the stack already: its first place is there.
        piece = [b"](".to_vec(), piece, items, b"e".to_vec(), vec![b'q', level]].concat();
    }
    piece
}

#[test]
fn more_paths_than_can_be_walked_are_refused_at_once() {
    // Where no tensor is, nothing is walked.
    for (value, want) in [(none(), None), (pair("0"), Some("graph-too-many-paths"))] {
        let (code, time) = refused(&pickle(laughs(value, 40)), &Limits::default());
        assert_eq!(code, want);
        assert!(time < Duration::from_millis(100), "{time:?}");
    }
    // A few of them are nothing.
    assert_eq!(refused(&pickle(laughs(pair("0"), 1)), &Limits::default()).0, None);
}

#[test]
fn values_of_many_paths_are_refused_too() {
    let bytes = pickle(laughs(none(), 40));
    let limits = Limits { nodes: 100_000, ..Limits::default() };
    let program = run(&bytes, &limits);
    let error = values(&program.graph, program.root.unwrap(), &limits).unwrap_err();
    assert_eq!(error.code, "limit-values");
}

#[test]
fn depth_has_a_limit_and_costs_no_stack() {
    let nested = |levels: usize, value: Piece| pickle([value, b"\x85".repeat(levels)].concat());
    let limits = Limits { depth: 100, ..Limits::default() };
    for (levels, want) in [(99, None), (100, Some("limit-depth"))] {
        assert_eq!(refused(&nested(levels, none()), &limits).0, want, "{levels}");
    }
    let (code, time) = refused(&nested(400_000, pair("0")), &Limits::default());
    assert_eq!(code, Some("limit-depth"));
    assert!(time < Duration::from_millis(500), "{time:?}");
}

#[test]
fn what_is_inside_itself_has_no_names() {
    // A list that has itself and a tensor.
    let with = |tensor: Piece| [b"]q\x00(h\x00".to_vec(), tensor, b"e".to_vec()].concat();
    assert_eq!(refused(&pickle(with(pair("0"))), &Limits::default()).0, Some("graph-cycle"));
    assert_eq!(refused(&pickle(with(none())), &Limits::default()).0, None);
    // Two lists, each in the other: from one to the tensor only through the other.
    let two =
        [b"]q\x00](h\x00".to_vec(), none(), b"eq\x01a0h\x00(".to_vec(), pair("0"), b"e".to_vec()]
            .concat();
    assert_eq!(refused(&pickle(two), &Limits::default()).0, Some("graph-cycle"));
}

#[test]
fn reach_is_that_of_every_path() {
    // a = [b, b], b = [None]: the walk along every path is of five nodes.
    let bytes = pickle([b"](".to_vec(), put(list(&[none()]), 0), get(0), b"e".to_vec()].concat());
    let program = run(&bytes, &Limits::default());
    let reach = Reach::of(&program.graph, program.root.unwrap(), |_| true);
    assert_eq!((reach.visits, reach.depth, reach.cycle), (5, 3, None));
    // Of that to what is wanted, which is nothing, it is of none but the first.
    let reach = Reach::of(&program.graph, program.root.unwrap(), |_| false);
    assert_eq!((reach.visits, reach.depth, reach.cycle), (1, 3, None));
    let bytes = pickle(b"]q\x00h\x00a".to_vec());
    let program = run(&bytes, &Limits::default());
    let root = program.root.unwrap();
    let reach = Reach::of(&program.graph, root, |_| false);
    assert_eq!((reach.visits, reach.depth, reach.cycle), (2, 1, Some(root)));
}

#[test]
fn long_keys_that_come_often_cost_what_they_are_once() {
    let key = put(text(&"k".repeat(1 << 16)), 0);
    let mut piece = [b"}(".to_vec(), key, none()].concat();
    for _ in 0..100_000 {
        piece.extend(get(0));
        piece.extend(none());
    }
    piece.extend(text("w"));
    piece.extend(pair("0"));
    piece.extend(b"u");
    let (code, time) = refused(&pickle(piece), &Limits::default());
    assert_eq!(code, None);
    assert!(time < Duration::from_millis(500), "{time:?}");
}

#[test]
fn the_number_of_tensors_has_a_limit() {
    let limits = Limits { tensors: 2, ..Limits::default() };
    let two = list(&[pair("0"), pair("1")]);
    assert_eq!(refused(&pickle(two), &limits).0, None);
    let three = list(&[pair("0"), pair("1"), pair("2")]);
    assert_eq!(refused(&pickle(three), &limits).0, Some("limit-tensors"));
}

/// A file with something of everything.
fn everything() -> Piece {
    let array = build(
        reduce(
            global("numpy.core.multiarray", "_reconstruct"),
            &[global("numpy", "ndarray"), ints(&[0]), bytes(b"b")],
        ),
        tuple(&[
            int(1),
            ints(&[2]),
            reduce(global("numpy", "dtype"), &[text("u1"), int(0), int(1)]),
            truth(false),
            encoded(b"ab"),
        ]),
    );
    let quantized = reduce(
        utils("_rebuild_qtensor"),
        &[
            storage("QInt8Storage", "7", 6),
            int(0),
            ints(&[2, 3]),
            ints(&[3, 1]),
            tuple(&[global("torch", "per_tensor_affine"), float(0.5), int(3)]),
            truth(false),
            hooks(),
        ],
    );
    let net = build(
        new_object(global("my.code", "Net")),
        dict(&[
            ("_parameters", ordered(&[("w", parameter(put(pair("1"), 1)))])),
            ("_buffers", dict(&[("b", get(1))])),
            ("_modules", dict(&[])),
        ]),
    );
    dict(&[
        ("model", net),
        ("list", list(&[put(pair("2"), 2), get(2), tensor("2", 2, 1, &[1], &[5])])),
        ("array", array),
        ("quantized", quantized),
        ("lr", float(0.1)),
    ])
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
        all in any::<bool>(),
        modules in any::<bool>(),
        partial in any::<bool>(),
    ) {
        let mut bytes = pickle(everything());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for (one, other) in swaps {
            let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
            bytes.swap(one, other);
        }
        let limits = Limits { nodes: 100_000, ..Limits::default() };
        let program = run(&bytes, &limits);
        if let Some(root) = program.root {
            let mut reader = TensorReader::new(&program.graph, &limits);
            let options = Options { key: None, all, modules, partial };
            if let Ok(state) = State::read(&mut reader, root, &options, &limits) {
                for named in &state.tensors {
                    let tensor = reader.get(named.tensor).unwrap();
                    let Some(dense) = tensor.dense() else { continue };
                    let storage = reader.storages().get(dense.view.storage).unwrap();
                    if dense.view.elements() > 0 {
                        prop_assert!(dense.view.span_in_storage().end <= storage.bytes);
                    }
                }
            }
            let _ = values(&program.graph, root, &limits);
        }
    }
}
