//! `weigh select`, `rename`, `cast`, `split` and `join`, run as a program.

mod program;

use std::fs;

use insta::{Settings, assert_snapshot};
use program::{Program, repository, shown};

const HEADER: &str = r#"{"__metadata__":{"format":"pt"},
"h.0.w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
"h.1.w":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]},
"h.2.w":{"dtype":"F32","shape":[2,2],"data_offsets":[32,48]},
"h.0.bias":{"dtype":"F16","shape":[2],"data_offsets":[48,52]},
"steps":{"dtype":"U8","shape":[3],"data_offsets":[52,55]}}"#;

fn program() -> Program {
    let program = Program::new();
    program.file("model.safetensors", HEADER, 55);
    program
}

/// What a command prints, its times left out.
fn said(program: &Program, arguments: &[&str]) -> String {
    let text = program.shown(arguments);
    let lines = text.lines().map(|line| match line.rsplit_once(" in ") {
        Some((before, time)) if time.ends_with(" s") => format!("{before} in TIME"),
        _ => line.into(),
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn names(program: &Program) -> Vec<String> {
    let entries = fs::read_dir(program.path("")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

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
fn selectors_that_match_nothing_are_errors_with_the_nearest_names() {
    let program = program();
    let select = |arguments: &[&str]| {
        said(
            &program,
            &[&["select", "model.safetensors", "-o", "out.safetensors"], arguments].concat(),
        )
    };
    assert_snapshot!(select(&["-i", "h.0.wieght"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor name matches `h.0.wieght`
      help: The nearest name is `h.0.w`.
    ");
    assert_snapshot!(select(&["-i", "*.w", "-i", "steps2"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor name matches `steps2`
      help: The nearest name is `steps`.
    ");
    assert_snapshot!(select(&["--regex", "^g"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor name matches `^g`
    ");
    assert_snapshot!(select(&["--regex", "("]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: regex "(" at byte 0: unclosed group
      help: put a backslash before a character that is meant as itself
    "#);
    assert_snapshot!(select(&["--dtype", "F64"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor is left by all selectors together
    ");
    assert_snapshot!(select(&["--min-size", "1GB"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor is left by all selectors together
    ");
    assert_snapshot!(said(&program, &["cast", "model.safetensors:absent", "--to", "f64", "-o", "out.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor name matches `absent`
    ");
    assert_eq!(names(&program), ["model.safetensors"]);
}

#[test]
fn what_would_leave_no_tensor_is_not_done() {
    let program = program();
    let before = fs::read(program.path("model.safetensors")).unwrap();
    let drop = |arguments: &[&str]| {
        let common =
            ["select", "model.safetensors", "-o", "model.safetensors", "--force", "--drop"];
        said(&program, &[&common, arguments].concat())
    };
    assert_snapshot!(drop(&[]), @"
    exit 2
    -- stdout
    -- stderr
    error: model.safetensors: nothing says which tensors to drop
      help: Give a selector, as `-i '*.bias'`.
    ");
    assert_snapshot!(drop(&["-i", "*"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: no tensor would be left
      help: Give selectors that leave some.
    ");
    assert_snapshot!(drop(&["--json", "--min-size", "0"]), @r#"
    exit 1
    -- stdout
    {"schema":"weigh.write/1","command":"select","written":false,"files":[],"errors":[
    {"path":"model.safetensors","code":"no-match","message":"model.safetensors: no tensor would be left","help":"Give selectors that leave some."}]}
    -- stderr
    error: model.safetensors: no tensor would be left
      help: Give selectors that leave some.
    "#);
    assert_eq!(fs::read(program.path("model.safetensors")).unwrap(), before);
    assert_snapshot!(drop(&["-x", "*.bias"]), @"
    exit 0
    -- stdout
    replaced model.safetensors      108 B  1 tensor
    4 B copied as they are in TIME
    -- stderr
    ");
    assert_snapshot!(said(&program, &["ls", "model.safetensors"]), @"
    exit 0
    -- stdout
    h.0.bias  F16  [2]       4 B
    -- stderr
    ");
}

#[test]
fn names_that_collide_or_do_not_exist_are_errors() {
    let program = program();
    let rename = |arguments: &[&str]| {
        said(
            &program,
            &[&["rename", "model.safetensors", "-o", "out.safetensors"], arguments].concat(),
        )
    };
    assert_snapshot!(rename(&[r"s/h\.[0-9]/h/"]), @"
    exit 1
    -- stdout
    -- stderr
    error: 3 tensors would be named `h.w`: `h.0.w`, `h.1.w`, `h.2.w`
      help: have the rules keep what tells these tensors apart
    ");
    assert_snapshot!(rename(&["s/^g//"]), @"
    exit 1
    -- stdout
    -- stderr
    error: no tensor name matches `s/^g//`
      help: leave the rule out if that is meant; the rules before it may have renamed what it is for
    ");
    assert_snapshot!(rename(&["s/steps/__metadata__/"]), @"
    exit 1
    -- stdout
    -- stderr
    error: tensor `steps` would be named `__metadata__`
      help: that name is the key of the metadata: choose another
    ");
    assert_snapshot!(rename(&["s/(/x/"]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: substitution "s/(/x/": regex "(" at byte 0: unclosed group
      help: put a backslash before a character that is meant as itself
    "#);
    assert_snapshot!(rename(&["tr/a/b/"]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: substitution "tr/a/b/" at byte 0: not s and a delimiter
      help: write s/REGEX/REPLACEMENT/, with a backslash before each / that is meant as itself
    "#);
    assert_snapshot!(rename(&["--strip-prefix", "model."]), @"
    exit 1
    -- stdout
    -- stderr
    error: no tensor name matches `strip prefix model.`
      help: leave the rule out if that is meant; the rules before it may have renamed what it is for
    ");
    fs::write(program.path("map"), "# names\nstep\tcount\n").unwrap();
    assert_snapshot!(rename(&["--map", "map"]), @"
    exit 1
    -- stdout
    -- stderr
    error: no tensor is named `step`
      help: The nearest name is `steps`.
    ");
    fs::write(program.path("map"), r#"{"steps":"a","steps":"b"}"#).unwrap();
    assert_snapshot!(rename(&["--map", "map"]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: map: "steps" is there twice at line 1 column 25
      help: Give a JSON object from old to new names, or lines of old, a tab, new.
    "#);
    fs::write(program.path("map"), "steps count\n").unwrap();
    assert_snapshot!(rename(&["--map", "map"]), @"
    exit 2
    -- stdout
    -- stderr
    error: map: line 1 has no tab
      help: Give a JSON object from old to new names, or lines of old, a tab, new.
    ");
    assert_eq!(names(&program), ["map", "model.safetensors"]);
}

#[test]
fn tensors_get_other_names() {
    let program = program();
    fs::write(program.path("map"), "steps\tcount\n").unwrap();
    let rename = [
        "rename",
        "model.safetensors",
        "-o",
        "out.safetensors",
        "--map",
        "map",
        r"s/^h\.([0-9])/layers.\1/",
        "s|bias|b|",
        "--add-prefix",
        "m.",
    ];
    assert_snapshot!(said(&program, &rename), @"
    exit 0
    -- stdout
    wrote out.safetensors      431 B  5 tensors
    55 B copied as they are in TIME
    -- stderr
    ");
    assert_snapshot!(said(&program, &["ls", "out.safetensors"]), @"
    exit 0
    -- stdout
    m.count       U8   [3]          3 B
    m.layers.0.b  F16  [2]          4 B
    m.layers.0.w  F32  [2, 2]      16 B
    m.layers.1.w  F32  [2, 2]      16 B
    m.layers.2.w  F32  [2, 2]      16 B
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
    warning: big: F32 to F16: of 2 values 1 out of range
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
    exit 2
    -- stdout
    -- stderr
    error: tensor `big` is 12 bits, not a whole number of bytes
      help: Take a dtype of whole bytes, or leave it as it is.
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
fn a_checkpoint_goes_to_stdout_and_what_is_said_to_stderr() {
    let program = program();
    let output = program.run(&["join", "model.safetensors", "-o", "-"]);
    program.run(&["join", "model.safetensors", "-o", "out.safetensors"]);
    assert_eq!(output.stdout, fs::read(program.path("out.safetensors")).unwrap());
    let mut output = output;
    output.stdout.clear();
    Settings::new().bind(|| {
        let text = shown(&output).replace(|it: char| it.is_ascii_digit(), "0");
        assert_snapshot!(text, @"
        exit 0
        -- stdout
        -- stderr
        wrote -      000 B  0 tensors
        00 B copied as they are in 0.00 s
        ");
    });
    assert_snapshot!(said(&program, &["split", "model.safetensors", "-o", "-", "--max-size", "16"]), @"
    exit 2
    -- stdout
    -- stderr
    error: 5 files cannot be written as one
      help: Write them to a folder.
    ");
}

#[test]
fn damaged_and_absent_inputs_are_refused() {
    let program = program();
    program.file("short.safetensors", HEADER, 54);
    assert_snapshot!(said(&program, &["join", "short.safetensors", "-o", "out.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: short.safetensors: error[data-truncated]: missing at the end: 1 byte; the tensors need 55, the file has 54, and 4 of 5 tensors are complete
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    assert_snapshot!(said(&program, &["join", "model.safetensors", "absent", "-o", "out.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: absent: no such file or folder
      help: Check the spelling of the path.
    ");
    assert_snapshot!(said(&program, &["join", "model.safetensors", "model.safetensors", "-o", "out.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: tensor h.0.w is in model.safetensors and in model.safetensors
      help: Rename or leave out one of them first.
    ");
    assert_snapshot!(said(&program, &["split", "model.safetensors:h.*", "-o", "set"]), @"
    exit 2
    -- stdout
    -- stderr
    error: model.safetensors:h.*: `h.*` selects tensors, and all of them are meant here
      help: Take some of them with `weigh select` first.
    ");
    assert_snapshot!(said(&program, &["select", "model.safetensors", "-o", "no/such/folder/out.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: no/such/folder/out.safetensors: no such file or folder
      help: Check the spelling of the path.
    ");
    assert_snapshot!(said(&program, &["select", "model.safetensors", "-o", "out.safetensors", "--align", "12"]), @"
    exit 2
    -- stdout
    -- stderr
    error: alignment 12 is not a power of two from 8 to 2^20
      help: Take 8, 64 or 4096.
    ");
    assert_eq!(names(&program), ["model.safetensors", "short.safetensors"]);
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
