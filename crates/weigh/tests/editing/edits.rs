//! `Edit`, written to one file.

use std::fs;

use tempfile::TempDir;
use weigh::format::Dtype;
use weigh::inventory::rename::Rename;
use weigh::values::cast::Overflow;
use weigh::{Checkpoint, Edit, Error, Output, View, Watch, WriteOptions};

use crate::files::{content, map, names, write};

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tensors: &[(&str, &[u8])] =
        &[("layers.10.w", b"ten"), ("layers.2.w", b"two!"), ("norm", b"n")];
    write(&folder.path().join("in.safetensors"), tensors, &[("format", "pt"), ("by", "x")]);
    folder
}

/// Writes what an edit of `in.safetensors` comes to, to `out.safetensors`.
fn edited(folder: &TempDir, change: impl FnOnce(&mut Edit<'_>)) -> Vec<(String, Dtype, Vec<u8>)> {
    let input = Checkpoint::open(folder.path().join("in.safetensors")).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    change(&mut edit);
    let out = folder.path().join("out.safetensors");
    let plan = edit.plan(&Output::File(out.clone()), &WriteOptions::default()).unwrap();
    let report = plan.write(Watch::default()).unwrap();
    assert_eq!(report.bytes, fs::metadata(&out).unwrap().len());
    assert_eq!(names(folder.path()), ["in.safetensors", "out.safetensors"]);
    content(&out)
}

fn bytes(tensors: &[(&str, &[u8])]) -> Vec<(String, Dtype, Vec<u8>)> {
    tensors.iter().map(|(name, bytes)| ((*name).into(), Dtype::U8, bytes.to_vec())).collect()
}

#[test]
fn an_edit_of_nothing_gives_the_same_file() {
    let folder = folder();
    edited(&folder, |_| {});
    let [one, other] = ["in", "out"].map(|name| folder.path().join(format!("{name}.safetensors")));
    assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap());
}

#[test]
fn tensors_are_selected() {
    let got = edited(&folder(), |edit| edit.select(|tensor| tensor.name.starts_with("layers")));
    assert_eq!(got, bytes(&[("layers.2.w", b"two!"), ("layers.10.w", b"ten")]));
}

#[test]
fn tensors_are_renamed_and_their_metadata_stays() {
    let folder = folder();
    let rules = Rename::builder().substitute("s/^layers\\./h./").unwrap().build();
    let got = edited(&folder, |edit| assert_eq!(edit.rename(&rules).unwrap(), 2));
    assert_eq!(got, bytes(&[("h.2.w", b"two!"), ("h.10.w", b"ten"), ("norm", b"n")]));
    let output = Checkpoint::open(folder.path().join("out.safetensors")).unwrap();
    let metadata = Edit::of(&output).unwrap().metadata().unwrap();
    assert_eq!(metadata, map(&[("by", "x"), ("format", "pt")]));
}

#[test]
fn names_that_collide_are_an_error_and_nothing_has_changed() {
    let folder = folder();
    let input = Checkpoint::open(folder.path().join("in.safetensors")).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    let rules = Rename::builder().substitute("s/layers\\.[0-9]+/layer/").unwrap().build();
    assert!(matches!(edit.rename(&rules), Err(Error::Rename(_))));
    assert!(edit.tensors().iter().all(|tensor| tensor.name == tensor.source.name));
}

#[test]
fn tensors_are_cast_and_the_losses_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.safetensors");
    let values = [1.0_f32, 1e-9, 70000.0, f32::NAN, f32::INFINITY, -0.0];
    let floats = values.map(f32::to_le_bytes).concat();
    let tensors = [
        ("f", View::of(Dtype::F32, &[6], &floats).unwrap()),
        ("i", View::of(Dtype::U8, &[1], &[7]).unwrap()),
    ];
    weigh::save(&path, tensors, &map(&[]), &WriteOptions::default()).unwrap();
    let input = Checkpoint::open(&path).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    let changed = edit.cast(|it| it.dtype == Some(Dtype::F32), Dtype::F16, Overflow::default());
    assert_eq!(changed, 1);
    let out = folder.path().join("out.safetensors");
    let plan = edit.plan(&Output::File(out.clone()), &WriteOptions::default()).unwrap();
    assert_eq!((plan.bytes_copied(), plan.bytes_converted()), (1, 24));
    let report = plan.write(Watch::default()).unwrap();
    let [cast] = report.casts.as_slice() else { panic!("{report:?}") };
    let tally = cast.tally;
    assert_eq!((tally.values, tally.overflow, tally.underflow, tally.nan), (6, 1, 1, 1));
    let halves: Vec<u8> =
        [0x3c00_u16, 0, 0x7c00, 0x7e00, 0x7c00, 0x8000].map(u16::to_le_bytes).concat();
    let want = [("f".into(), Dtype::F16, halves), ("i".into(), Dtype::U8, vec![7])];
    assert_eq!(content(&out), want);

    // To a stream the same.
    let mut stream = Vec::new();
    plan.write_to(&mut stream, Watch::default()).unwrap();
    assert_eq!(stream, fs::read(&out).unwrap());
}

#[test]
fn a_tensor_of_no_whole_bytes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.safetensors");
    write(&path, &[("odd", b"123")], &[]);
    let input = Checkpoint::open(&path).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    edit.cast(|_| true, Dtype::F4, Overflow::default());
    let out = folder.path().join("out.safetensors");
    let error = edit.plan(&Output::File(out.clone()), &WriteOptions::default()).unwrap_err();
    assert_eq!((error.code(), error.path()), ("size-not-bytes", Some(out.as_path())));
    let message = "tensor `odd` is 12 bits, not a whole number of bytes";
    assert_eq!(error.to_string(), format!("{}: {message}", out.display()));
}

#[test]
fn a_shape_that_some_reader_refuses_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.safetensors");
    let json = r#"{"e":{"dtype":"U8","shape":[0,3,6148914691236517206],"data_offsets":[0,0]}}"#;
    fs::write(&path, [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat()).unwrap();
    let input = Checkpoint::open(&path).unwrap();
    let out = folder.path().join("out.safetensors");
    let edit = Edit::of(&input).unwrap();
    let error = edit.plan(&Output::File(out.clone()), &WriteOptions::default()).unwrap_err();
    assert_eq!((error.code(), error.path()), ("shape-overflow-beside-zero", Some(out.as_path())));
    let options = weigh::Options::default();
    let error = weigh::RepairPlan::new(&path, &out, &options, &WriteOptions::default());
    assert_eq!(error.unwrap_err().code(), "shape-overflow-beside-zero");
}

#[test]
fn many_parts_of_each_conversion_come_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.safetensors");
    // Three of the parts that are converted at a time, and some.
    let halves: Vec<u8> =
        (0..(3_u32 << 19) + 12).flat_map(|it| it.to_le_bytes().into_iter().take(2)).collect();
    let shape = [halves.len() as u64 / 2];
    let tensors = [("h", View::of(Dtype::BF16, &shape, &halves).unwrap())];
    weigh::save(&path, tensors, &map(&[]), &WriteOptions::default()).unwrap();
    let input = Checkpoint::open(&path).unwrap();
    for to in [Dtype::F32, Dtype::F8_E4M3, Dtype::F6_E2M3, Dtype::F4, Dtype::F64] {
        let mut edit = Edit::of(&input).unwrap();
        edit.cast(|_| true, to, Overflow::default());
        let out = folder.path().join("out.safetensors");
        let options = WriteOptions { replace: true, ..WriteOptions::default() };
        edit.plan(&Output::File(out.clone()), &options).unwrap().write(Watch::default()).unwrap();
        let cast = edit.tensors()[0].cast.unwrap();
        let mut want = vec![0; content(&out)[0].2.len()];
        cast.convert(&halves, &mut want).unwrap();
        assert!(content(&out)[0].2 == want, "{to}");
    }
}

#[test]
fn the_target_may_be_the_input() {
    let folder = folder();
    let path = folder.path().join("in.safetensors");
    let input = Checkpoint::open(&path).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    edit.select(|tensor| tensor.name != "norm");
    let output = Output::File(path.clone());
    let error = edit.plan(&output, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.code(), "io-exists");
    let options = WriteOptions { replace: true, ..WriteOptions::default() };
    edit.plan(&output, &options).unwrap().write(Watch::default()).unwrap();
    assert_eq!(content(&path), bytes(&[("layers.2.w", b"two!"), ("layers.10.w", b"ten")]));
}

#[test]
fn an_input_that_changes_is_an_error_and_nothing_is_written() {
    let folder = folder();
    let path = folder.path().join("in.safetensors");
    let input = Checkpoint::open(&path).unwrap();
    let out = folder.path().join("out.safetensors");
    let plan =
        Edit::of(&input).unwrap().plan(&Output::File(out), &WriteOptions::default()).unwrap();
    let mut changed = fs::read(&path).unwrap();
    changed.push(0);
    fs::write(&path, changed).unwrap();
    assert_eq!(plan.write(Watch::default()).unwrap_err().code(), "io-changed");
    assert_eq!(names(folder.path()), ["in.safetensors"]);
}

#[test]
fn as_the_reference_writes_metadata_without_pairs_is_told_from_none() {
    let folder = tempfile::tempdir().unwrap();
    let [none, empty] = ["none", "empty"].map(|it| folder.path().join(format!("{it}.safetensors")));
    let entry = |name| format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#);
    for (path, json) in [
        (&none, format!("{{{}}}", entry("n"))),
        (&empty, format!(r#"{{"__metadata__":{{}},{}}}"#, entry("e"))),
    ] {
        let json = format!("{json:<0$}", json.len().next_multiple_of(8));
        let file = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), b"x"].concat();
        fs::write(path, file).unwrap();
    }
    let [none, empty] = [none, empty].map(|path| Checkpoint::open(path).unwrap());
    let out = folder.path().join("out.safetensors");
    let reference = weigh::format::encode::Layout::reference();
    for (inputs, layout, has) in [
        (&[&none][..], reference, false),
        (&[&empty], reference, true),
        (&[&none, &empty], reference, true),
        (&[&empty], weigh::format::encode::Layout::default(), false),
    ] {
        let options = WriteOptions { replace: true, layout, ..WriteOptions::default() };
        let plan = Edit::of_all(inputs).unwrap().plan(&Output::File(out.clone()), &options);
        plan.unwrap().write(Watch::default()).unwrap();
        let got = Checkpoint::open(&out).unwrap().shards()[0].header().has_metadata();
        assert_eq!(got, has, "{inputs:?} {layout:?}");
        if let ([input], true) = (inputs, layout == reference) {
            assert_eq!(fs::read(&out).unwrap(), fs::read(input.path()).unwrap());
        }
    }
}

#[test]
fn several_checkpoints_become_one_unless_they_disagree() {
    let folder = folder();
    let [a, b, c, d] =
        ["a", "b", "c", "d"].map(|it| folder.path().join(format!("{it}.safetensors")));
    write(&a, &[("one", b"1")], &[("format", "pt"), ("own", "a")]);
    write(&b, &[("two", b"2")], &[("format", "pt")]);
    write(&c, &[("three", b"3")], &[("format", "mlx")]);
    write(&d, &[("one", b"4")], &[]);
    let [a, b, c, d] = [a, b, c, d].map(|path| Checkpoint::open(path).unwrap());
    let out = folder.path().join("out.safetensors");
    let (output, options) = (Output::File(out.clone()), WriteOptions::default());
    let edit = Edit::of_all(&[&a, &b]).unwrap();
    edit.plan(&output, &options).unwrap().write(Watch::default()).unwrap();
    assert_eq!(content(&out), bytes(&[("one", b"1"), ("two", b"2")]));
    let joined = Checkpoint::open(&out).unwrap();
    let metadata = Edit::of(&joined).unwrap().metadata().unwrap();
    assert_eq!(metadata, map(&[("format", "pt"), ("own", "a")]));

    let other = Output::File(folder.path().join("other.safetensors"));
    let error = Edit::of_all(&[&a, &c]).unwrap().plan(&other, &options).unwrap_err();
    assert!(matches!(&error, Error::MetadataDiffers { key, .. } if key == "format"), "{error}");
    let error = Edit::of_all(&[&a, &b, &d]).unwrap_err();
    assert!(matches!(&error, Error::Twice { name, .. } if name == "one"), "{error}");
}
