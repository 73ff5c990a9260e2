//! numpy's files, in and out.

use weigh::Output;
use weigh::format::Dtype;
use weigh::torch::{ConvertOptions, Format};

use crate::made::{Made, Place, convert, tensors, zip};

/// An array as numpy writes it.
fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()
}

/// A file, and the dtype, the shape and the bytes of what it becomes.
type Case = (Vec<u8>, Dtype, &'static [u64], Vec<u8>);

#[test]
fn arrays_become_tensors_in_c_order_and_little_endian() {
    let bytes: Vec<u8> = (0..48).collect();
    let turned = |unit: usize| bytes.chunks(unit).flat_map(|it| it.iter().rev()).copied().collect();
    let columns: Vec<u8> =
        [0, 8, 16, 4, 12, 20].iter().flat_map(|at| bytes[*at..at + 4].to_vec()).collect();
    let cases: Vec<Case> = vec![
        (npy("<f4", "False", "(3, 4)", &bytes), Dtype::F32, &[3, 4], bytes.clone()),
        (npy(">i2", "False", "(24,)", &bytes), Dtype::I16, &[24], turned(2)),
        (npy(">c8", "False", "(6,)", &bytes), Dtype::C64, &[6], turned(4)),
        (npy("<u4", "True", "(2, 3)", &bytes[..24]), Dtype::U32, &[2, 3], columns),
        (npy("|b1", "False", "()", &[7]), Dtype::BOOL, &[], vec![1]),
        (npy("<f8", "False", "(0, 5)", &[]), Dtype::F64, &[0, 5], vec![]),
        (npy("<f8", "True", "(1, 6, 1)", &bytes), Dtype::F64, &[1, 6, 1], bytes.clone()),
    ];
    let place = Place::new();
    for (number, (file, dtype, shape, want)) in cases.iter().enumerate() {
        let input = place.file("a.npy", file);
        let output = place.path(&format!("{number}.safetensors"));
        convert(&input, &Output::File(output.clone()), &ConvertOptions::default()).unwrap();
        assert_eq!(tensors(&output)["a"], (*dtype, shape.to_vec(), want.clone()));
    }
    for deflated in [false, true] {
        let members = cases.iter().enumerate();
        let members: Vec<(String, Vec<u8>)> =
            members.map(|(number, case)| (format!("{number}.npy"), case.0.clone())).collect();
        let got = place.converted(&zip(&members, deflated), &ConvertOptions::default()).unwrap();
        for (number, (_, dtype, shape, want)) in cases.iter().enumerate() {
            assert_eq!(got[&number.to_string()], (*dtype, shape.to_vec(), want.clone()));
        }
    }
}

#[test]
fn arrays_that_have_no_counterpart_are_refused_by_name() {
    for (descr, shape, length, code) in [
        ("<f4", "(2,)", 8, None),
        ("<f4", "(2,)", 7, Some("npy-truncated")),
        ("<f4", "(2,)", 9, Some("npy-trailing-bytes")),
        ("<U3", "(2,)", 24, Some("numpy-dtype")),
        ("<M8[ns]", "(1,)", 8, Some("numpy-dtype")),
        ("<c16", "(1,)", 16, Some("complex")),
        ("|O", "(1,)", 8, Some("numpy-objects")),
        ("<f4", "(4294967296, 4294967296, 4)", 8, Some("npy-header")),
    ] {
        let place = Place::new();
        let input = place.file("a.npy", &npy(descr, "False", shape, &vec![0; length]));
        let output = Output::File(place.path("out.safetensors"));
        let got = convert(&input, &output, &ConvertOptions::default());
        assert_eq!(got.as_ref().map_err(weigh::Error::code).err(), code, "{descr} {shape}");
    }
}

#[test]
fn what_is_written_for_numpy_reads_back_and_is_the_same_every_time() {
    let mut made = Made::default();
    let floats = made.storage("FloatStorage", 4, (0..240).collect());
    made.view("b.turned", floats, 0, &[6, 10], &[1, 6]);
    made.view("a", floats, 0, &[60], &[1]);
    made.view("none", floats, 0, &[0, 2], &[2, 1]);
    let bytes = made.storage("BoolStorage", 1, vec![9, 0, 1]);
    made.view("flag", bytes, 0, &[], &[]);
    let place = Place::new();
    let input = place.file("in.pt", &made.zip());
    let to_npz = ConvertOptions { format: Format::Npz, ..ConvertOptions::default() };
    let [one, two] = ["one.npz", "two.npz"].map(|name| place.path(name));
    for path in [&one, &two] {
        convert(&input, &Output::File(path.clone()), &to_npz).unwrap();
    }
    let file = std::fs::read(&one).unwrap();
    assert!(file == std::fs::read(&two).unwrap());
    let back = place.path("back.safetensors");
    convert(&one, &Output::File(back.clone()), &ConvertOptions::default()).unwrap();
    let want = place.converted(&made.zip(), &ConvertOptions::default()).unwrap();
    assert_eq!(tensors(&back), want);
    // And of safetensors the same again.
    let out = place.path("out.safetensors");
    convert(&out, &Output::File(place.path("three.npz")), &to_npz).unwrap();
    assert!(file == std::fs::read(place.path("three.npz")).unwrap());
}

#[test]
fn what_numpy_has_not_is_refused_or_given_as_bits() {
    let mut made = Made::default();
    let of = made.storage("BFloat16Storage", 2, vec![1, 2, 3, 4]);
    made.view("w", of, 0, &[2], &[1]);
    let place = Place::new();
    let input = place.file("in.pt", &made.zip());
    let mut options = ConvertOptions { format: Format::Npz, ..ConvertOptions::default() };
    let output = Output::File(place.path("out.npz"));
    let error = convert(&input, &output, &options).unwrap_err();
    assert_eq!(error.code(), "numpy-dtype");
    options.raw_bits = true;
    convert(&input, &output, &options).unwrap();
    let back = place.path("back.safetensors");
    let plain = ConvertOptions::default();
    convert(&place.path("out.npz"), &Output::File(back.clone()), &plain).unwrap();
    assert_eq!(tensors(&back)["w"], (Dtype::U16, vec![2], vec![1, 2, 3, 4]));
}

#[test]
fn of_arrays_one_after_the_other_in_a_file_none_is_dropped_without_a_word() {
    let one = npy("<f4", "False", "(2,)", &[1; 8]);
    let two = npy("<f4", "False", "(3,)", &[2; 12]);
    let both = [one.clone(), two].concat();
    let place = Place::new();
    for (name, bytes) in [
        ("a.npy", both.clone()),
        ("stored.npz", zip(&[("a.npy".into(), both.clone())], false)),
        ("deflated.npz", zip(&[("a.npy".into(), both.clone())], true)),
    ] {
        let input = place.file(name, &bytes);
        let output = Output::File(place.path("out.safetensors"));
        let error = convert(&input, &output, &ConvertOptions::default()).unwrap_err();
        let (end, len) = (one.len(), both.len());
        let said = format!("ends at byte {end} of {len}: {} bytes follow", len - end);
        assert!(error.to_string().contains(&said), "{error}");
        assert!(matches!(error.code(), "npy-trailing-bytes" | "torch-refused"), "{name}");
    }
}

#[test]
fn arrays_of_text_and_objects_beside_others_are_left_out_unless_all_are_wanted() {
    let members = [
        ("n.npy".into(), npy("<i4", "False", "(2,)", &[1; 8])),
        ("t.npy".into(), npy("<U1", "False", "(2,)", &[1; 8])),
        ("o.npy".into(), npy("|O", "False", "(1,)", b"\x80\x02N.")),
    ];
    let place = Place::new();
    let input = place.file("a.npz", &zip(&members, false));
    let output = Output::File(place.path("out.safetensors"));
    let mut options = ConvertOptions::default();
    let plan = convert(&input, &output, &options).unwrap();
    let left_out: Vec<&str> = plan.beside().iter().map(|it| it.name.as_str()).collect();
    assert_eq!((plan.tensors().len(), left_out), (1, vec!["t", "o"]));
    options.torch.all = true;
    std::fs::remove_file(place.path("out.safetensors")).unwrap();
    assert_eq!(convert(&input, &output, &options).unwrap_err().code(), "numpy-dtype");
}

#[test]
fn booleans_of_safetensors_are_0_or_1_for_numpy() {
    let header = br#"{"f":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}}"#;
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    let place = Place::new();
    let file = [&length[..], header, &[0, 1, 2, 255]].concat();
    let input = place.file("a.safetensors", &file);
    let output = place.path("out.npz");
    let options = ConvertOptions { format: Format::Npz, ..ConvertOptions::default() };
    convert(&input, &Output::File(output.clone()), &options).unwrap();
    assert!(std::fs::read(output).unwrap().windows(5).any(|it| it == [b'\n', 0, 1, 1, 1]));
}
