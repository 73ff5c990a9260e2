//! `weigh bench`, run as a program.

mod program;

use insta::assert_snapshot;
use program::{Program, repository};

/// Exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let program = Program::new();
    let mut command = program.command(&[&["bench"], arguments].concat());
    let output = command.current_dir(repository("examples")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn each_run_is_a_line_with_what_it_cost() {
    let (code, out, err) = run(&["tiny", "--runs", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "tiny: 39 tensors, 123 KiB in 3 files");
    let columns: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(columns, ["run", "seconds", "GB/s", "requests", "read", "faults", "resident"]);
    assert_eq!(lines.len(), 4);
    for (number, line) in lines[2..].iter().enumerate() {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[0], (number + 1).to_string());
        assert!(cells[1].parse::<f64>().is_ok() && cells[2].parse::<f64>().is_ok(), "{line}");
        assert_eq!(cells[3..6], ["3", "123", "KiB"]);
    }
}

#[test]
fn what_was_picked_is_explained() {
    let (code, out, _) = run(&["tiny", "--runs", "1", "--explain", "--threads", "3"]);
    assert_eq!(code, 0);
    for start in ["  known: ", "  picked: ", "  because: "] {
        assert!(out.lines().any(|line| line.starts_with(start)), "{out}");
    }
    assert!(out.contains("3 threads"), "{out}");
}

#[test]
fn every_way_of_reading_can_be_asked_for() {
    for way in [
        &["--backend", "pread"][..],
        &["--backend", "uring", "--depth", "2"],
        &["--backend", "mmap"],
        &["--direct", "always", "--request", "64K"],
        &["--direct", "probe", "--gap", "0"],
        &["--huge-pages", "true"],
        &["--budget", "1M"],
        &["--cast", "f32"],
        &["--cold"],
    ] {
        let (code, out, err) = run(&[&["tiny", "--runs", "1"], way].concat());
        assert_eq!(code, 0, "{way:?}: {err}");
        assert_eq!(out.lines().count(), 3, "{out}");
    }
}

#[test]
fn what_cannot_be_measured_has_its_exit_code() {
    for (arguments, want, message) in [
        (&["absent"][..], 2, "no such file"),
        (&["tiny:absent"], 1, "no tensor name matches"),
        (&["tiny", "--cast", "I8"], 2, "cast"),
        (&["tiny", "--runs", "0"], 2, "--runs"),
        (&["tiny", "--budget", "much"], 2, "a number of bytes"),
    ] {
        let (code, out, err) = run(arguments);
        assert_eq!((code, out.as_str()), (want, ""), "{arguments:?}: {err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
    let damaged = repository("conformance/format/cases");
    let (code, out, err) = run(&[damaged.to_str().unwrap(), "--json", "--runs", "1"]);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("\"schema\":\"weigh.bench/1\"") && out.contains("\"code\":"), "{out}");
}

#[test]
fn a_damaged_file_is_said_to_be_damaged_and_not_loaded() {
    let program = Program::new();
    let header = r#"{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}"#;
    program.file("short.safetensors", header, 7);
    assert_snapshot!(program.shown(&["bench", "short.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: short.safetensors: missing at the end: 1 byte; the tensors need 8, the file has 7, and 0 of 1 tensors are complete [data-truncated]
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
}
