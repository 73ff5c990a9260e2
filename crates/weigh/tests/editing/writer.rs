//! `Writer` and `save`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;

use weigh::format::Dtype;
use weigh::format::encode::{Declaration, Layout};
use weigh::io::Progress;
use weigh::{Error, View, Watch, WriteOptions, Writer};

use crate::files::{content, map, names, write};

fn declared() -> [Declaration<'static>; 3] {
    [
        Declaration { name: "b", dtype: Dtype::U8, shape: &[5] },
        Declaration { name: "a", dtype: Dtype::F32, shape: &[2] },
        Declaration { name: "empty", dtype: Dtype::I64, shape: &[0, 3] },
    ]
}

#[test]
fn tensors_are_written_in_any_order_and_from_several_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let metadata = map(&[("format", "pt")]);
    let options = WriteOptions::default();
    let writer = Writer::create(&path, &declared(), &metadata, &options).unwrap();
    let header = writer.header().len() as u64;
    // F32 before U8, whatever the order of the declarations.
    let spans = [0, 1, 2].map(|tensor| writer.span(tensor).unwrap());
    assert_eq!(spans, [header + 8..header + 13, header..header + 8, header..header]);
    std::thread::scope(|scope| {
        for byte in 0..5_u8 {
            let writer = &writer;
            scope.spawn(move || writer.write(0, byte.into(), &[byte]).unwrap());
        }
        scope.spawn(|| writer.write(1, 4, &2.0_f32.to_le_bytes()).unwrap());
        scope.spawn(|| writer.write(1, 0, &1.0_f32.to_le_bytes()).unwrap());
    });
    assert!(!path.exists());
    assert_eq!(writer.first_missing(), None);
    writer.finish().unwrap();
    let floats = [1.0_f32, 2.0].map(f32::to_le_bytes).concat();
    let want = [
        ("a".into(), Dtype::F32, floats),
        ("b".into(), Dtype::U8, vec![0, 1, 2, 3, 4]),
        ("empty".into(), Dtype::I64, Vec::new()),
    ];
    assert_eq!(content(&path), want);
    assert_eq!(names(folder.path()), ["m.safetensors"]);
}

#[test]
fn what_was_not_written_is_named_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write(&path, &[("old", b"old")], &[]);
    let old = fs::read(&path).unwrap();
    let options = WriteOptions { replace: true, ..WriteOptions::default() };
    let writer = Writer::create(&path, &declared(), &BTreeMap::new(), &options).unwrap();
    writer.write(1, 0, &[0; 8]).unwrap();
    writer.write(0, 0, &[0; 2]).unwrap();
    writer.write(0, 4, &[0; 1]).unwrap();
    assert_eq!(writer.first_missing(), Some((0, 2..4)));
    let error = writer.finish().unwrap_err();
    assert!(
        matches!(&error, Error::Incomplete { name, missing } if name == "b" && *missing == (2..4))
    );
    assert_eq!(error.to_string(), "b: bytes 2 to 4 were never written");
    assert_eq!(fs::read(&path).unwrap(), old);
    assert_eq!(names(folder.path()), ["m.safetensors"]);
}

#[test]
fn nothing_is_written_outside_a_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let options = WriteOptions::default();
    let writer = Writer::create(&path, &declared(), &BTreeMap::new(), &options).unwrap();
    for (tensor, offset, bytes, fits) in [
        (0, 0, 5, true),
        (0, 5, 0, true),
        (0, 0, 6, false),
        (0, 5, 1, false),
        (0, u64::MAX, 1, false),
        (0, u64::MAX, 0, false),
        (2, 0, 0, true),
        (2, 0, 1, false),
        (3, 0, 1, false),
        (usize::MAX, 0, 1, false),
    ] {
        let written = writer.write(tensor, offset, &vec![1; bytes]);
        let is_outside = matches!(written, Err(Error::Outside { .. }));
        assert_eq!(is_outside, !fits, "{tensor} {offset} {bytes}");
    }
}

#[test]
fn headers_that_readers_refuse_are_errors_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let declaration = |name, shape| Declaration { name, dtype: Dtype::F32, shape };
    let cases: [(&[Declaration<'_>], &str); 3] = [
        (&[declaration("a", &[1]), declaration("a", &[1])], "duplicate-key"),
        (&[declaration("__metadata__", &[1])], "reserved-name"),
        (&[declaration("a", &[u64::MAX, 2])], "size-overflow"),
    ];
    let long = map(&[("long", &"x".repeat(100_000_001))]);
    let none = BTreeMap::new();
    let with_long: (&[Declaration<'_>], &str) = (&[], "header-over-limit");
    let cases = cases.map(|case| (case, &none)).into_iter().chain([(with_long, &long)]);
    for ((tensors, code), metadata) in cases {
        let error = Writer::create(&path, tensors, metadata, &WriteOptions::default()).unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(names(folder.path()), [""; 0], "{code}");
    }
}

#[test]
fn the_same_tensors_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    let metadata = [("z", "1"), ("a", "2"), ("m", "3")];
    write(&one, &[("b", b"12"), ("a", b"3")], &metadata);
    write(&other, &[("a", b"3"), ("b", b"12")], &metadata);
    assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap());
}

#[test]
fn data_begins_where_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    for (alignment, reserve) in [(8, 0), (64, 0), (4096, 0), (8, 65536), (4096, 1)] {
        let layout = Layout { alignment, reserve, ..Layout::default() };
        let options = WriteOptions { replace: true, layout, ..WriteOptions::default() };
        let writer = Writer::create(&path, &[], &BTreeMap::new(), &options).unwrap();
        let len = writer.header().len() as u64;
        assert!(len.is_multiple_of(alignment) && len >= 10 + reserve, "{alignment} {reserve}");
        writer.finish().unwrap();
    }
}

#[test]
fn a_save_can_be_stopped_and_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write(&path, &[("old", b"old")], &[]);
    let old = fs::read(&path).unwrap();
    let bytes = vec![1; 40 << 20];
    let shape = [bytes.len() as u64];
    let view = View::of(Dtype::U8, &shape, &bytes).unwrap();
    let stop = |progress: Progress| {
        assert!(progress.done > 0 && progress.done <= progress.total);
        if progress.done > 20 << 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let watch = Watch { progress: Some(&stop), ..Watch::default() };
    let options = WriteOptions { replace: true, ..WriteOptions::default() };
    let saved = weigh::save_watched(&path, [("t", view)], &BTreeMap::new(), &options, watch);
    assert!(matches!(saved, Err(Error::Cancelled)));
    assert_eq!(fs::read(&path).unwrap(), old);
    assert_eq!(names(folder.path()), ["m.safetensors"]);
    weigh::save(&path, [("t", view)], &BTreeMap::new(), &options).unwrap();
    assert!(content(&path)[0].2 == bytes);
}

#[test]
fn a_view_has_the_bytes_of_its_shape() {
    for (dtype, shape, bytes, wanted) in [
        (Dtype::F32, &[2, 3][..], 24, Some(24)),
        (Dtype::F32, &[2, 3], 23, Some(24)),
        (Dtype::F4, &[3], 2, None),
        (Dtype::F4, &[4], 2, Some(2)),
        (Dtype::U8, &[], 1, Some(1)),
        (Dtype::U8, &[0, u64::MAX], 0, Some(0)),
        (Dtype::U8, &[u64::MAX, 2], 0, None),
    ] {
        let bytes = vec![0; bytes];
        let got = View::of(dtype, shape, &bytes).map(|view| view.bytes().len() as u64);
        match got {
            Ok(len) => assert_eq!(wanted, Some(len), "{dtype} {shape:?}"),
            Err(Error::ViewSize { wanted: said, got }) => {
                assert_eq!((said, got), (wanted, bytes.len() as u64), "{dtype} {shape:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
