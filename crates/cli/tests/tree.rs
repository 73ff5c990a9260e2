//! `weigh tree`, run as a program.

mod program;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;

#[test]
fn repeated_blocks_are_one_line() {
    let examples = repository("examples");
    let program = Program::new();
    let shown = |name: &str, flags: &[&str]| {
        let path = examples.join(name);
        let fixed = ["tree".as_ref(), path.as_os_str()];
        let flags = flags.iter().map(AsRef::as_ref);
        let arguments: Vec<&std::ffi::OsStr> = fixed.into_iter().chain(flags).collect();
        program.shown(&arguments).replace(examples.to_str().unwrap(), "EXAMPLES")
    };
    assert_snapshot!(shown("tiny", &[]), @"");
    assert_snapshot!(shown("lora", &["--ascii"]), @"");
    assert_snapshot!(shown("quantized", &["--depth", "3"]), @"");
    assert_snapshot!(shown("tiny", &["--depth", "0"]), @"");
    assert_snapshot!(shown("tiny", &["--tensors", "*norm*"]), @"");
    assert_snapshot!(shown("tiny", &["--json", "--depth", "2"]), @"");
    assert_snapshot!(shown("lora", &["--color=always", "-d1"]).replace('\u{1b}', "ESC"), @"");
}

#[test]
fn names_are_escaped_and_long_ones_pad_no_line() {
    let program = Program::new();
    let long = "long_".repeat(30);
    let header = format!(
        "{{{},{},{},{}}}",
        r#""m.\u001b[31mred\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#,
        "\"m.a\u{202e}b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}",
        format_args!(r#""m.{long}.x":{{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#),
        r#""":{"dtype":"U8","shape":[],"data_offsets":[3,4]}"#,
    );
    program.file("odd.safetensors", &header, 4);
    assert_snapshot!(program.shown(&["tree", "."]), @"");
}

#[test]
fn a_damaged_file_has_a_tree_of_what_could_be_read() {
    let program = Program::new();
    program.file(
        "damaged.safetensors",
        concat!(
            r#"{"a.whole":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"#,
            r#""a.cut":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"#,
            r#""b":{"dtype":"I4","shape":"4","data_offsets":[8,10]}}"#,
        ),
        5,
    );
    assert_snapshot!(program.shown(&["tree", "."]), @"");
}

#[test]
fn several_checkpoints_are_apart_and_no_match_is_a_finding() {
    let program = Program::new();
    let header = r#"{"m.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    for name in ["unet/model.safetensors", "vae/model.safetensors"] {
        program.file(name, header, 1);
    }
    assert_snapshot!(program.shown(&["tree", ".", "absent"]), @"");
    assert_snapshot!(program.shown(&["tree", "vae:m"]), @"");
}

#[test]
fn documents_keep_to_their_schema() {
    let path = repository("docs/schemas/weigh.tree.1.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let program = Program::new();
    for path in [repository("examples"), repository("conformance/format/cases"), "absent".into()] {
        let output = program.run(&["tree".as_ref(), "--json".as_ref(), path.as_os_str()]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let faults: Vec<_> = validator.iter_errors(&document).map(|it| it.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:#?}", path.display());
    }
}
