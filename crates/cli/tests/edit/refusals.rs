//! What is refused, before anything is written.

use std::fs;

use insta::assert_snapshot;

use crate::checkpoint::{HEADER, names, program, said};

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
      help: Put a backslash before a character that is meant as itself.
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
    exit 1
    -- stdout
    -- stderr
    error: tensor h.0.w is in model.safetensors and in model.safetensors
      help: Rename or leave out one of them first.
    ");
    assert_snapshot!(said(&program, &["split", "model.safetensors:h.*", "-o", "set"]), @"
    exit 2
    -- stdout
    -- stderr
    error: model.safetensors: `h.*` selects tensors, and all of them are meant here
      help: Take some of them with `weigh select` first.
    ");
    assert_snapshot!(said(&program, &["select", "model.safetensors", "-o", "no/such/folder/out.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: no/such/folder: no such file or folder
      help: Check the spelling of the path.
    ");
    assert_snapshot!(said(&program, &["select", "model.safetensors", "-o", "out.safetensors", "--align", "12"]), @"
    exit 2
    -- stdout
    -- stderr
    error: out.safetensors: alignment 12 is not a power of two from 8 to 2^20
      help: Take 8, 64 or 4096.
    ");
    assert_eq!(names(&program), ["model.safetensors", "short.safetensors"]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let program = program();
    let common = ["select", "model.safetensors", "-o", "out.safetensors", "--layout", "reference"];
    assert_snapshot!(said(&program, &[&common[..], &["--reserve", "64K"]].concat()), @"
    exit 2
    -- stdout
    -- stderr
    error: the reference implementation knows no `--align` and no `--reserve`
      help: Leave them out, or `--layout reference`.
    ");
    assert_eq!(program.run(&[&common[..], &["--align", "8"]].concat()).status.code(), Some(2));
    assert_eq!(program.run(&common).status.code(), Some(0));
    let split = ["split", "model.safetensors", "-o", "set", "--dry-run"];
    assert_snapshot!(said(&program, &[&split[..], &["--max-size", "0"]].concat()), @"
    exit 2
    -- stdout
    -- stderr
    error: invalid value '0' for '--max-size <BYTES>': a file needs room for a byte at least

    For more information, try '--help'.
    ");
    let long = "n".repeat(196);
    for name in ["", ".", "..", ".hidden", "a/b", "a:b", "nul", &long] {
        let output = program.run(&[&split[..], &["--name", name]].concat());
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    assert_snapshot!(said(&program, &[&split[..], &["--name", "a/b"]].concat()), @"
    exit 2
    -- stdout
    -- stderr
    error: invalid value 'a/b' for '--name <NAME>': the files need a plain name, neither hidden nor longer than 195 bytes

    For more information, try '--help'.
    ");
    assert_eq!(program.run(&[&split[..], &["--name", &long[1..]]].concat()).status.code(), Some(0));
    #[cfg(unix)]
    {
        fs::copy(program.path("model.safetensors"), program.path("we:ird.safetensors")).unwrap();
        assert_snapshot!(said(&program, &["split", "we:ird.safetensors", "-o", "set"]), @"
        exit 2
        -- stdout
        -- stderr
        error: set: `we:ird` is not a plain file name
          help: Names of files are those of the input, unless `weigh split --name` gives others.
        ");
        fs::remove_file(program.path("we:ird.safetensors")).unwrap();
    }
    let numbered = program.path("x-00001-of-00002.safetensors");
    fs::copy(program.path("model.safetensors"), numbered).unwrap();
    assert_snapshot!(said(&program, &["split", "x-00001-of-00002.safetensors", "-o", "set", "--max-size", "32", "--dry-run"]), @"
    exit 0
    -- stdout
    would write set/x-00001-of-00003.safetensors      188 B  2 tensors
    would write set/x-00002-of-00003.safetensors      200 B  2 tensors
    would write set/x-00003-of-00003.safetensors       99 B  1 tensor
    would write set/x.safetensors.index.json
    55 B copied as they are
    -- stderr
    ");
    // A file where a folder would be, and something else where a file would.
    assert_snapshot!(said(&program, &["split", "model.safetensors", "-o", "out.safetensors", "--force"]), @"
    exit 2
    -- stdout
    -- stderr
    error: out.safetensors: is a file, and what is written needs a folder
      help: Give a folder, or the path of one to be.
    ");
    assert_snapshot!(said(&program, &["join", "model.safetensors", "-o", "new/"]), @"
    exit 0
    -- stdout
    wrote new/model.safetensors      399 B  5 tensors
    55 B copied as they are in TIME
    -- stderr
    ");
    assert_eq!(
        fs::read(program.path("new/model.safetensors")).unwrap(),
        fs::read(program.path("out.safetensors")).unwrap()
    );
}

#[test]
fn a_set_is_not_left_half_replaced() {
    let program = program();
    program.run(&["split", "model.safetensors", "-o", "set", "--max-size", "32"]);
    let before = names(&program);
    let one = "set/model-00002-of-00003.safetensors";
    assert_snapshot!(said(&program, &["join", "set", "-o", one, "--force"]), @"
    exit 2
    -- stdout
    -- stderr
    error: set/model-00002-of-00003.safetensors: is part of set, of which 2 files would stay as they are
      help: Write elsewhere, or replace the set: give its folder.
    ");
    assert_snapshot!(said(&program, &["select", "set:*.w", "-o", one, "--force", "--dry-run"]), @"
    exit 2
    -- stdout
    -- stderr
    error: set/model-00002-of-00003.safetensors: is part of set, of which 2 files would stay as they are
      help: Write elsewhere, or replace the set: give its folder.
    ");
    assert_eq!(names(&program), before);
    // One of its files alone may well be written anew, and all of them together.
    assert_snapshot!(said(&program, &["cast", one, "--to", "f32", "-o", one, "--force"]), @"
    exit 0
    -- stdout
    replaced set/model-00002-of-00003.safetensors      200 B  2 tensors
    32 B copied as they are in TIME
    -- stderr
    note: set/model-00002-of-00003.safetensors: there is no tensor to convert
    ");
    assert_snapshot!(said(&program, &["select", "set:h.*.w", "-o", "set", "--force"]), @"
    exit 0
    -- stdout
    wrote set/model-00001-of-00002.safetensors      120 B  1 tensor
    wrote set/model-00002-of-00002.safetensors      200 B  2 tensors
    replaced set/model.safetensors.index.json
    removed set/model-00001-of-00003.safetensors
    removed set/model-00002-of-00003.safetensors
    removed set/model-00003-of-00003.safetensors
    48 B copied as they are in TIME
    -- stderr
    ");
}

#[test]
fn a_document_says_what_is_wrong_with_the_arguments() {
    let program = program();
    for arguments in [
        &["select", "model.safetensors", "-o", "n", "-e", "("][..],
        &["cast", "model.safetensors:[", "-o", "n", "--to", "f16"],
        &["rename", "model.safetensors", "-o", "n", "s/(/x/"],
        &["rename", "model.safetensors", "-o", "n", "--map", "absent"],
        &["rename", "model.safetensors", "-o", "n"],
        &["select", "model.safetensors", "-o", "n", "--layout", "reference", "--align", "64"],
        &["repair", "model.safetensors", "-o", "n", "--layout", "reference", "--align", "64"],
        &["ls", "model.safetensors", "-e", "("],
        &["info", "model.safetensors", "-i", "["],
        &["meta", "get", "model.safetensors", "["],
        &["meta", "unset", "model.safetensors", "["],
        &["meta", "set", "model.safetensors", "k"],
        &["meta", "import", "model.safetensors", "absent"],
    ] {
        let output = program.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["errors"].as_array().unwrap().len(), 1, "{arguments:?}: {document}");
    }
    assert_eq!(names(&program), ["model.safetensors"]);
}
