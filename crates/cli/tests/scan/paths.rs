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
    assert_snapshot!(program.shown(&["scan", "m"]), @"
    exit 1
    -- stdout
    m/a.bin: data-only; weights_only refuses it: it is a pickle alone, which torch does not write
    m/b.txt: call; weights_only refuses it at byte 0, GLOBAL of os.getpid
      error[unknown-global] at 0..1: os.getpid would be imported, which is known to run code
        help: Unpickling would import this name. Find out what it is before anything else loads the file.
      error[foreign-call] at 13..14: os.getpid would be called, which is known to run code
        help: Unpickling would run this. Do not load the file with anything that unpickles; convert it to safetensors if its tensors are wanted.
    m/d.py: no checkpoint, not scanned
      note[custom-code]: Python code
        help: Loaders with trust_remote_code import such a file: read it before allowing that.
    m/sub/e.safetensors: unknown-global; weights_only refuses it at byte 2, GLOBAL of os.getpid
      error[unknown-global] at 2..3: os.getpid would be imported, which is known to run code
      deviation[name-differs]: a file named as safetensors begins as pickle
        help: Programs choose the loader by the name or by the bytes: find out which this file is meant for.
    m/sub/f.pt: error
      error[unreadable]: the file is named as a checkpoint, and is of no kind that is known
        help: What was not read may say anything: get the file again, raise the limit that it names, or do not load it.
    6 files: 1 data-only, 1 unknown-global, 1 call, 1 error, 2 no checkpoint
    -- stderr
    ");
}

#[test]
fn quiet_tells_of_what_is_not_clean() {
    let program = program(&[("m/a.bin", DATA), ("m/b.txt", b"text"), ("m/c.pkl", NAMES)]);
    assert_snapshot!(program.shown(&["scan", "--quiet", "m"]), @"
    exit 1
    -- stdout
    m/c.pkl: unknown-global; weights_only refuses it at byte 2, GLOBAL of os.getpid
      error[unknown-global] at 2..3: os.getpid would be imported, which is known to run code
        help: Unpickling would import this name. Find out what it is before anything else loads the file.
    -- stderr
    ");
    assert_snapshot!(program.shown(&["scan", "-q", "m/a.bin"]), @"
    exit 0
    -- stdout
    -- stderr
    ");
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
    let header = r#"{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}"#;
    program.file("sound.safetensors", header, 8);
    program.file("cut.safetensors", header, 7);
    for (paths, want) in [
        (&["clean"][..], 0),
        (&["clean/a.pkl"], 0),
        (&["clean/a.pkl", "sound.safetensors"], 0),
        (&["cut.safetensors"], 1),
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
    assert_snapshot!(program.shown(&["scan", "text.md", "none", "empty", "missing.pkl"]), @"
    exit 2
    -- stdout
    2 files: 2 no checkpoint
    -- stderr
    error: text.md: not scanned: it is no checkpoint
      help: Give checkpoints, or folders with some.
    error: none: there is no file in it
      help: Give checkpoints, or folders with some.
    error: empty: not scanned: it is no checkpoint
      help: Give checkpoints, or folders with some.
    error: missing.pkl: no such file or folder
      help: Check the spelling of the path.
    ");
}

#[test]
fn limits_are_named_and_can_be_raised() {
    let program = program(&[("a.pkl", b"\x80\x02]q\x00(K\x01K\x02K\x03e.")]);
    for limit in ["--max-pickle", "--max-opcodes", "--max-ratio", "--max-unpacked", "--max-nesting"]
    {
        for wrong in ["", "-1", "many", "1.5.5"] {
            let output = program.run(&["scan", &format!("{limit}={wrong}"), "a.pkl"]);
            assert_eq!(output.status.code(), Some(2), "{limit} {wrong}");
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(error.contains(limit) && output.stdout.is_empty(), "{error}");
        }
    }
    for (limit, below, enough) in [("--max-pickle", "13", "14"), ("--max-opcodes", "8", "9")] {
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

#[cfg(unix)]
#[test]
fn what_is_not_looked_at_is_told_and_never_clean() {
    let program = program(&[("m/a.pkl", DATA), ("out/b.pkl", CALL)]);
    std::os::unix::fs::symlink("../out", program.path("m/out")).unwrap();
    std::os::unix::fs::symlink("nowhere", program.path("m/gone.pt")).unwrap();
    let pipe = program.path("m/pipe.pt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_snapshot!(program.shown(&["scan", "m"]), @"
    exit 2
    -- stdout
    m/a.pkl: data-only; weights_only refuses it: it is a pickle alone, which torch does not write
    -- stderr
    error: m/gone.pt: no such file or folder
      help: Check the spelling of the path.
    error: m/out: not looked at: a link to a folder outside of the one that is scanned
      help: Scan what it leads to, or take it out of the folder.
    error: m/pipe.pt: not looked at: a named pipe
      help: Scan what it leads to, or take it out of the folder.
    ");
    assert_snapshot!(program.shown(&["scan", "m/pipe.pt", "m/gone.pt"]), @"
    exit 2
    -- stdout
    -- stderr
    error: m/pipe.pt: is not a regular file
      help: Give the path of a regular file.
    error: m/gone.pt: no such file or folder
      help: Check the spelling of the path.
    ");
    let output = program.run(&["scan", "--json", "m"]);
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("weigh.scan.1.json", &report);
    assert_eq!(report["errors"].as_array().unwrap().len(), 3);
    assert_eq!(report["files"].as_array().unwrap().len(), 1);
    std::fs::remove_file(program.path("m/gone.pt")).unwrap();
    std::fs::remove_file(&pipe).unwrap();
    assert_eq!(program.run(&["scan", "m"]).status.code(), Some(2));
    std::fs::remove_file(program.path("m/out")).unwrap();
    assert_eq!(program.run(&["scan", "m"]).status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_scan_as_it_would_any_program_and_what_was_found_is_written() {
    use std::os::unix::process::ExitStatusExt;
    const SIGTERM: i32 = 15;
    let program = program(&[("a.pkl", &b"\x80\x02N.".repeat(9_000))]);
    let mut arguments = vec!["scan"];
    arguments.extend(std::iter::repeat_n("a.pkl", 5000));
    let mut command = program.command(&arguments);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(SIGTERM));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("a.pkl: ") && text.ends_with('\n'), "{text}");
}

#[test]
fn findings_that_are_not_kept_are_counted() {
    let call = |number: u32| format!("cm{number}\nf\n)R0").into_bytes();
    let many = [(0..5000).flat_map(call).collect(), b"N.".to_vec()].concat();
    let program = program(&[("many.pkl", &many)]);
    let output = program.run(&["scan", "--json", "many.pkl"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("weigh.scan.1.json", &report);
    let file = &report["files"][0];
    assert_eq!((&file["call_count"], &file["dropped"]), (&5000.into(), &8000.into()));
    assert_eq!(file["findings"].as_array().unwrap().len(), 2000);
    let text = String::from_utf8(program.run(&["scan", "many.pkl"]).stdout).unwrap();
    assert!(text.contains("8 000 more findings like these were counted, not kept"), "{text}");
}
