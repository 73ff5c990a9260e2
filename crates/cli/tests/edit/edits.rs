//! What is written, and what is said of it.

use std::fs;

use insta::assert_snapshot;

use crate::checkpoint::{HEADER, names, program, said};
use crate::program::repository;

#[test]
fn what_would_be_written_is_said_and_nothing_is() {
    let program = program();
    assert_snapshot!(said(&program, &["split", "model.safetensors", "-o", "set", "--max-size", "32", "--dry-run"]), @"
    exit 0
    -- stdout
    would write set/model-00001-of-00003.safetensors      188 B  2 tensors
    would write set/model-00002-of-00003.safetensors      200 B  2 tensors
    would write set/model-00003-of-00003.safetensors       99 B  1 tensor
    would write set/model.safetensors.index.json
    55 B copied as they are
    -- stderr
    ");
    assert_eq!(names(&program), ["model.safetensors"]);
    assert_snapshot!(said(&program, &["cast", "model.safetensors", "--to", "bf16", "-o", "out.safetensors", "--dry-run"]), @"
    exit 0
    -- stdout
    would write out.safetensors      375 B  5 tensors
    3 B copied as they are, 52 B of 4 tensors converted
    -- stderr
    ");
    assert_eq!(names(&program), ["model.safetensors"]);
}

#[test]
fn files_that_are_there_are_replaced_only_on_request() {
    let program = program();
    let arguments = ["join", "model.safetensors", "-o", "model.safetensors"];
    assert_snapshot!(said(&program, &arguments), @"
    exit 2
    -- stdout
    -- stderr
    error: model.safetensors: exists already
      help: Choose another name, or say that it is to be replaced (`--force`).
    ");
    let forced = [&arguments[..], &["--force"]].concat();
    assert_snapshot!(said(&program, &forced), @"
    exit 0
    -- stdout
    replaced model.safetensors      399 B  5 tensors
    55 B copied as they are in TIME
    -- stderr
    ");
    let forced =
        [&["split", "model.safetensors", "-o", "set", "--max-size", "32"][..], &["--force"]]
            .concat();
    assert_snapshot!(said(&program, &forced), @"
    exit 0
    -- stdout
    wrote set/model-00001-of-00003.safetensors      188 B  2 tensors
    wrote set/model-00002-of-00003.safetensors      200 B  2 tensors
    wrote set/model-00003-of-00003.safetensors       99 B  1 tensor
    wrote set/model.safetensors.index.json
    55 B copied as they are in TIME
    -- stderr
    ");
    assert_snapshot!(said(&program, &forced[..6]), @"
    exit 2
    -- stdout
    -- stderr
    error: set/model-00001-of-00003.safetensors: exists already
      help: Choose another name, or say that it is to be replaced (`--force`).
    ");
    assert_snapshot!(said(&program, &["split", "set", "-o", "set", "--force"]), @"
    exit 0
    -- stdout
    wrote set/model.safetensors      399 B  5 tensors
    removed set/model.safetensors.index.json
    removed set/model-00001-of-00003.safetensors
    removed set/model-00002-of-00003.safetensors
    removed set/model-00003-of-00003.safetensors
    55 B copied as they are in TIME
    -- stderr
    ");
}

#[test]
fn values_that_are_lost_are_told() {
    let program = program();
    // A tensor of values that F16 does not reach, and one that it does.
    let header = r#"{"big":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"ok":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}"#;
    let values = [1e6_f32, f32::NAN, 1.0, 1e-30].map(f32::to_le_bytes).concat();
    let path = program.file("in.safetensors", header, 0);
    let file = [fs::read(&path).unwrap(), values].concat();
    fs::write(&path, file).unwrap();
    let cast = |arguments: &[&str]| {
        said(
            &program,
            &[&["cast", "in.safetensors", "-o", "out.safetensors", "--force"], arguments].concat(),
        )
    };
    assert_snapshot!(cast(&["--to", "f16"]), @"
    exit 1
    -- stdout
    wrote out.safetensors      128 B  2 tensors
    16 B of 2 tensors converted in TIME
    -- stderr
    warning: big: F32 to F16: of 2 values 1 out of range
    note: 1 of 4 values became 0
    note: 1 of 4 values are NaN
    ");
    assert_snapshot!(cast(&["--to", "f16", "--saturate"]), @"
    exit 0
    -- stdout
    replaced out.safetensors      128 B  2 tensors
    16 B of 2 tensors converted in TIME
    -- stderr
    note: big: F32 to F16: of 2 values 1 out of range
    note: 1 of 4 values became 0
    note: 1 of 4 values are NaN
    ");
    assert_snapshot!(cast(&["--to", "i8"]), @"
    exit 1
    -- stdout
    replaced out.safetensors      124 B  2 tensors
    16 B of 2 tensors converted in TIME
    -- stderr
    warning: big: F32 to I8: of 2 values 1 out of range, 1 NaN that it cannot hold
    note: 1 of 4 values became 0
    note: 1 of 4 values are NaN
    ");
    assert_snapshot!(cast(&["--to", "f64"]), @"
    exit 0
    -- stdout
    replaced out.safetensors      160 B  2 tensors
    16 B of 2 tensors converted in TIME
    -- stderr
    note: 1 of 4 values are NaN
    ");
    assert_snapshot!(cast(&["--to", "f4"]), @"
    exit 1
    -- stdout
    replaced out.safetensors      122 B  2 tensors
    16 B of 2 tensors converted in TIME
    -- stderr
    warning: big: F32 to F4: of 2 values 1 out of range, 1 NaN that it cannot hold
    note: 1 of 4 values became 0
    note: 1 of 4 values are NaN
    ");
    assert_snapshot!(cast(&["--to", "f6_e2m3"]), @"
    exit 1
    -- stdout
    -- stderr
    error: out.safetensors: tensor `big` is 12 bits, not a whole number of bytes
      help: Take a dtype of whole bytes, or leave it as it is.
    ");
    assert_snapshot!(said(&program, &["cast", "in.safetensors", "--to", "f32", "-o", "same.safetensors"]), @"
    exit 0
    -- stdout
    wrote same.safetensors      136 B  2 tensors
    16 B copied as they are in TIME
    -- stderr
    note: in.safetensors: there is no tensor to convert
    ");
    assert_snapshot!(cast(&["--to", "f31"]), @"
    exit 2
    -- stdout
    -- stderr
    error: invalid value 'f31' for '--to <DTYPE>': the format has BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64

    For more information, try '--help'.
    ");
}

#[test]
fn globs_stand_for_files() {
    let program = program();
    program.run(&["split", "model.safetensors", "-o", "set", "--max-size", "32"]);
    assert_snapshot!(said(&program, &["join", "set/*-of-*.safetensors", "-o", "out.safetensors"]), @"
    exit 0
    -- stdout
    wrote out.safetensors      399 B  5 tensors
    55 B copied as they are in TIME
    -- stderr
    ");
    assert_snapshot!(said(&program, &["rename", "mod*", "s/h/g/", "-o", "other.safetensors"]), @"
    exit 0
    -- stdout
    wrote other.safetensors      399 B  5 tensors
    55 B copied as they are in TIME
    -- stderr
    ");
    assert_snapshot!(said(&program, &["rename", "set/*.safetensors", "s/h/g/", "-o", "n"]), @"
    exit 2
    -- stdout
    -- stderr
    error: set/*.safetensors: 3 files match, and one is meant here
      help: Give one of them.
    ");
    assert_snapshot!(said(&program, &["join", "no*.safetensors", "-o", "n"]), @"
    exit 2
    -- stdout
    -- stderr
    error: no*.safetensors: no such file or folder
      help: Check the spelling of the path.
    ");
}

#[test]
fn what_is_mended_and_what_is_left_out_is_told() {
    let program = program();
    let gap = repository("conformance/format/cases/lay_hole_mid.safetensors");
    fs::copy(gap, program.path("gap.safetensors")).unwrap();
    let repair = |arguments: &[&str]| said(&program, &[&["repair"], arguments].concat());
    let out = ["-o", "out.safetensors"];
    assert_snapshot!(repair(&["gap.safetensors", "-o", "out.safetensors"]), @"
    exit 0
    -- stdout
    wrote out.safetensors      128 B  2 tensors
    8 B copied as they are in TIME
    -- stderr
    note: gap.safetensors: mends: between `a` and `b`, 4 bytes belong to no tensor
    note: gap.safetensors: leaves out 4 bytes at 120: 00 00 80 3f
    ");
    assert_snapshot!(said(&program, &["check", "out.safetensors"]), @"
    exit 0
    -- stdout
    out.safetensors: valid
    -- stderr
    ");
    assert_snapshot!(repair(&["gap.safetensors", "-o", "gap.safetensors", "--force"]), @"
    exit 2
    -- stdout
    -- stderr
    error: gap.safetensors: cannot be mended into itself
      help: The damaged file is kept: give another path.
    ");
    assert_snapshot!(repair(&[&["model.safetensors"], &out[..], &["--force"]].concat()), @"
    exit 0
    -- stdout
    replaced out.safetensors      399 B  5 tensors
    55 B copied as they are in TIME
    -- stderr
    note: model.safetensors: mends: tensors off a multiple of their element size: 4, the first is `h.0.w`
    ");
    assert_snapshot!(repair(&["out.safetensors", "-o", "other.safetensors"]), @"
    exit 0
    -- stdout
    -- stderr
    note: out.safetensors: there is nothing to mend: nothing is written
    ");
    let sound = program.run(&["repair", "out.safetensors", "-o", "-"]);
    assert_eq!(sound.stdout, fs::read(program.path("out.safetensors")).unwrap());
    program.file("short.safetensors", HEADER, 54);
    assert_snapshot!(repair(&["short.safetensors", "-o", "other.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: short.safetensors: error[data-truncated]: missing at the end: 1 byte; the tensors need 55, the file has 54, and 4 of 5 tensors are complete
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    // Each of two thousand tensors is the whole data.
    let entries: Vec<String> = (0..2000)
        .map(|it| format!(r#""{it}":{{"dtype":"U8","shape":[100000],"data_offsets":[0,100000]}}"#))
        .collect();
    program.file("bomb.safetensors", &format!("{{{}}}", entries.join(",")), 100_000);
    let said = repair(&["bomb.safetensors", "-o", "other.safetensors"]);
    assert_snapshot!(said.lines().last().unwrap().trim(), @"help: Give --force if that is meant.");
    assert_eq!(
        names(&program),
        [
            "bomb.safetensors",
            "gap.safetensors",
            "model.safetensors",
            "out.safetensors",
            "short.safetensors"
        ]
    );
}
