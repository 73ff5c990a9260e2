use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::program::{Program, repository};

const CALL: &[u8] = b"cos\ngetpid\n(tR.";
const DATA: &[u8] = b"\x80\x02}.";
const NAMES: &[u8] = b"\x80\x02cos\ngetpid\n.";

fn program(files: &[(&str, &[u8])]) -> Program {
    let program = Program::new();
    for (name, bytes) in files {
        let path = program.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    program
}

#[test]
fn a_folder_is_looked_at_whole() {
    let program = program(&[
        ("m/a.bin", DATA),
        ("m/b.txt", CALL),
        ("m/c.md", b"# Text"),
        ("m/d.py", b"import os\n"),
        ("m/sub/e.safetensors", NAMES),
        ("m/sub/f.pt", b"nothing known"),
    ]);
    assert_snapshot!(program.shown(&["scan", "m"]), @"");
}

#[test]
fn quiet_tells_of_what_is_not_clean() {
    let program = program(&[("m/a.bin", DATA), ("m/b.txt", b"text"), ("m/c.pkl", NAMES)]);
    assert_snapshot!(program.shown(&["scan", "--quiet", "m"]), @"");
    assert_snapshot!(program.shown(&["scan", "-q", "m/a.bin"]), @"");
}

#[test]
fn exit_codes() {
    let program = program(&[
        ("clean/a.pkl", DATA),
        ("clean/readme.md", b"text"),
        ("call.pkl", CALL),
        ("text.md", b"text"),
        ("empty/.keep", b""),
    ]);
    fs::create_dir(program.path("none")).unwrap();
    for (paths, want) in [
        (&["clean"][..], 0),
        (&["clean/a.pkl"], 0),
        (&["call.pkl"], 1),
        (&["clean", "call.pkl"], 1),
        (&["text.md"], 2),
        (&["empty"], 2),
        (&["none"], 2),
        (&["missing.pkl"], 2),
        (&["call.pkl", "missing.pkl"], 2),
        (&["clean/a.pkl:x"], 2),
        (&[], 2),
    ] {
        for format in ["text", "json", "sarif"] {
            let output = program.run(&[&["scan", "--format", format], paths].concat());
            assert_eq!(output.status.code(), Some(want), "{paths:?} {format}");
        }
    }
    assert_snapshot!(program.shown(&["scan", "text.md", "none", "empty", "missing.pkl"]), @"");
}

#[test]
fn limits_are_named_and_can_be_raised() {
    let program = program(&[("a.pkl", b"\x80\x02]q\x00(K\x01K\x02K\x03e.")]);
    for (limit, below, enough) in
        [("--max-pickle", "13", "14"), ("--max-opcodes", "8", "9")]
    {
        let output = program.run(&["scan", "--json", limit, below, "a.pkl"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["files"][0]["verdict"], "error", "{limit}: {report}");
        let findings = report["files"][0]["findings"].as_array().unwrap();
        let code = findings[0]["evidence"]["code"].as_str().unwrap();
        assert!(code.starts_with("limit-"), "{code}");
        let output = program.run(&["scan", limit, enough, "a.pkl"]);
        assert_eq!(output.status.code(), Some(0), "{limit}");
    }
    let bomb = repository("conformance/checkpoints/zipbomb.pt");
    let bomb = bomb.to_str().unwrap();
    assert_eq!(program.run(&["scan", bomb]).status.code(), Some(1));
}
