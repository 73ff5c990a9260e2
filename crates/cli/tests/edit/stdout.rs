//! Checkpoints that go to stdout.

use std::fs;

use insta::{Settings, assert_snapshot};

use crate::checkpoint::{program, said};
use crate::program::shown;

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

/// Runs a command as a shell does, the program being `$0` and the command `$@`.
#[cfg(target_os = "linux")]
fn in_shell(program: &crate::program::Program, script: &str, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("sh");
    command.current_dir(program.path("")).arg("-c").arg(script);
    command.arg(env!("CARGO_BIN_EXE_weigh")).args(arguments);
    shown(&command.output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_stdout_that_does_not_take_the_checkpoint_is_a_failure() {
    let program = program();
    let join = ["join", "model.safetensors", "-o", "-"];
    for (redirection, message, code) in [
        (">/dev/full", "stdout: writing failed: No space left on device (os error 28)", "stream"),
        (">&-", "stdout goes nowhere", "stdout-closed"),
    ] {
        let shown = in_shell(&program, &format!("\"$0\" \"$@\" {redirection}"), &join);
        assert!(shown.starts_with("exit 2\n") && shown.contains(message), "{shown}");
        assert_eq!(shown.matches("error:").count(), 1, "{shown}");
        let shown = in_shell(
            &program,
            &format!("\"$0\" \"$@\" {redirection} 2>error; code=$?; tail -n +2 error; exit $code"),
            &[&join[..], &["--json"]].concat(),
        );
        assert!(shown.starts_with("exit 2\n") && shown.contains(code), "{shown}");
    }
    assert_eq!(
        in_shell(&program, "\"$0\" \"$@\" 2>&1 >/dev/null | wc -l", &join).lines().nth(2),
        Some("2")
    );
    // Whoever reads wants a part; whoever writes says that it is not the whole.
    program.file(
        "large.safetensors",
        r#"{"a":{"dtype":"U8","shape":[9000000],"data_offsets":[0,9000000]}}"#,
        9_000_000,
    );
    let script = "{ \"$0\" \"$@\"; echo $? >code; } | head -c 10 >/dev/null; exit $(cat code)";
    assert_snapshot!(in_shell(&program, script, &["join", "large.safetensors", "-o", "-"]), @"
    exit 2
    -- stdout
    -- stderr
    error: stdout: writing failed: Broken pipe (os error 32)
    ");
    // What was written to a file is written, whoever reads the report.
    let script = "{ sleep 0.2; \"$0\" \"$@\"; echo $? >code; } | true; exit $(cat code)";
    assert_snapshot!(in_shell(&program, script, &["join", "large.safetensors", "-o", "n.safetensors"]), @"
    exit 0
    -- stdout
    -- stderr
    ");
    assert_snapshot!(in_shell(&program, "\"$0\" \"$@\" | cat", &["join", "model.safetensors", "-o", "/dev/stdout", "--force"]), @"
    exit 0
    -- stdout
    -- stderr
    error: /dev/stdout: is not a regular file
      help: Give the path of a regular file; `-o -` writes to stdout.
    ");
    assert_snapshot!(in_shell(&program, "\"$0\" \"$@\" >/dev/full", &["ls", "model.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: stdout: writing failed: No space left on device (os error 28)
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn the_document_of_what_went_to_stdout_is_on_stderr() {
    let program = program();
    let script = "\"$0\" \"$@\" 2>&1 >out | sed 's/\"seconds\":[^,]*/TIME/'";
    let cast = ["cast", "model.safetensors:*.w", "--to", "f16", "-o", "-", "--json"];
    assert_snapshot!(in_shell(&program, script, &cast), @r#"
    exit 0
    -- stdout
    {"schema":"weigh.write/1","command":"cast","written":true,"bytes":375,"bytes_copied":7,"bytes_converted":48,TIME,"removed":[],"casts":[
    {"name":"h.0.w","from":"F32","to":"F16","values":4,"overflow":0,"underflow":0,"nan":0,"nan_lost":0,"imaginary_lost":0},
    {"name":"h.1.w","from":"F32","to":"F16","values":4,"overflow":0,"underflow":0,"nan":0,"nan_lost":0,"imaginary_lost":0},
    {"name":"h.2.w","from":"F32","to":"F16","values":4,"overflow":0,"underflow":0,"nan":0,"nan_lost":0,"imaginary_lost":0}],"files":[
    {"path":"-","bytes":375,"header_bytes":344,"tensors":5,"replaces":false}
    ],"errors":[]}
    -- stderr
    "#);
    let refused = ["cast", "model.safetensors:absent", "--to", "f16", "-o", "-", "--json"];
    assert_snapshot!(in_shell(&program, script, &refused), @r#"
    exit 0
    -- stdout
    error: model.safetensors: no tensor name matches `absent`
    {"schema":"weigh.write/1","command":"cast","written":false,"files":[],"errors":[
    {"path":"model.safetensors","code":"no-match","message":"model.safetensors: no tensor name matches `absent`"}]}
    -- stderr
    "#);
}
