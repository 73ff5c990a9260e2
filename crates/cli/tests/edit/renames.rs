//! `weigh rename`.

use std::fs;

use insta::assert_snapshot;

use crate::checkpoint::{names, program, said};

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
      help: Have the rules keep what tells these tensors apart.
    ");
    assert_snapshot!(rename(&["s/^g//"]), @"
    exit 1
    -- stdout
    -- stderr
    error: no tensor name matches `s/^g//`
      help: Leave the rule out if that is meant.
    ");
    assert_snapshot!(rename(&["s/steps/__metadata__/"]), @"
    exit 1
    -- stdout
    -- stderr
    error: tensor `steps` would be named `__metadata__`
      help: That name is the key of the metadata: choose another.
    ");
    assert_snapshot!(rename(&["s/(/x/"]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: substitution "s/(/x/": regex "(" at byte 0: unclosed group
      help: Put a backslash before a character that is meant as itself.
    "#);
    assert_snapshot!(rename(&["tr/a/b/"]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: substitution "tr/a/b/" at byte 0: not s and a delimiter
      help: Write s/REGEX/REPLACEMENT/, with a backslash before each / that is meant as itself.
    "#);
    assert_snapshot!(rename(&["--strip-prefix", "model."]), @"
    exit 1
    -- stdout
    -- stderr
    error: no tensor name matches `strip prefix model.`
      help: Leave the rule out if that is meant.
    ");
    assert_snapshot!(rename(&[]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: nothing says which names to give
      help: Give a substitution, as 's/^model\.//', a map or a prefix.
    "#);
    assert_snapshot!(rename(&["s/h/h/"]), @"
    exit 1
    -- stdout
    -- stderr
    error: `s/h/h/` changes no name
      help: Leave the rule out if that is meant.
    ");
    assert_eq!(
        program.run(&["rename", "model.safetensors", "-o", "n", "--add-prefix", ""]).status.code(),
        Some(2)
    );
    assert_eq!(names(&program), ["model.safetensors"]);
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
fn a_map_is_of_names_that_there_are() {
    let program = program();
    let rename = |arguments: &[&str]| {
        said(
            &program,
            &[&["rename", "model.safetensors", "-o", "out.safetensors"], arguments].concat(),
        )
    };
    fs::write(program.path("map"), "{}").unwrap();
    assert_snapshot!(rename(&["--map", "map"]), @"
    exit 2
    -- stdout
    -- stderr
    error: map: has no names
      help: Give a JSON object from old to new names, or lines of old, a tab, new.
    ");
    fs::write(program.path("map"), "\u{feff}[\"steps\"]").unwrap();
    assert_snapshot!(rename(&["--map", "map"]), @"
    exit 2
    -- stdout
    -- stderr
    error: map: invalid type: sequence, expected an object from old to new names at line 1 column 0
      help: Give a JSON object from old to new names, or lines of old, a tab, new.
    ");
    fs::write(program.path("map"), "\u{feff} {\"zzz\": \"count\"}").unwrap();
    assert_snapshot!(rename(&["--map", "map"]), @"
    exit 1
    -- stdout
    -- stderr
    error: no tensor is named `zzz`
      help: Look at the names with `weigh ls`: a map has whole names.
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
