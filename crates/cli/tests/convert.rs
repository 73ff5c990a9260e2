//! `weigh convert`, and what looks at torch checkpoints, run as a program.

#[expect(dead_code, reason = "files are those of the corpus")]
mod program;

use std::fs;

use insta::assert_snapshot;
use program::{Program, repository};

/// A folder with files of the corpus.
fn program(names: &[&str]) -> Program {
    let program = Program::new();
    for name in names {
        let from = repository("conformance/checkpoints").join(name);
        fs::copy(from, program.path(name)).unwrap();
    }
    program
}

/// What a command prints, its times left out.
fn said(program: &Program, arguments: &[&str]) -> String {
    let text = program.shown(arguments);
    let lines = text.lines().map(|line| match line.rsplit_once(" in ") {
        Some((before, time)) if time.ends_with(" s") => format!("{before} in TIME"),
        _ => line.into(),
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").replace(" read back in TIME", "").replace(" s, read", " s")
}

#[test]
fn each_tensor_is_told_in_a_dry_run_and_nothing_is_written() {
    let program = program(&["views.pt", "tied.pt", "ok_lightning.ckpt"]);
    assert_snapshot!(said(&program, &["convert", "views.pt", "-o", "out.safetensors", "--dry-run"]), @"
    exit 0
    -- stdout
    t  torch.float32 to F32  [3, 4]  48 B  copied
    tt  torch.float32 to F32  [4, 3]  48 B  gathered
    diag  torch.float32 to F32  [3]  12 B  gathered
    exp  torch.float32 to F32  [5]  20 B  gathered
    flip0  torch.float32 to F32  [3, 2]  24 B  gathered
    would write out.safetensors      488 B  5 tensors
    -- stderr
    ");
    assert_snapshot!(said(&program, &["convert", "tied.pt", "-o", "out/", "--dry-run", "--dedupe"]), @"
    exit 0
    -- stdout
    a.weight  torch.float32 to F32  [3, 3]  36 B  copied
    b.weight  same as a.weight
    would write out/model.safetensors      164 B  1 tensor
    -- stderr
    note: 1 name only in the metadata, which saves 36 B
    ");
    assert_snapshot!(said(&program, &["convert", "ok_lightning.ckpt", "-o", "o.npz", "--dry-run"]), @"
    exit 0
    -- stdout
    w  torch.float32 to F32  [4, 4]  64 B  copied
    would write o.npz      329 B  1 tensor
    -- stderr
    note: left out: epoch: an integer
    note: left out: optimizer_states: a list
    note: left out: hyper_parameters: a dictionary
    ");
    assert!(!program.path("out.safetensors").exists() && !program.path("out").exists());
}

#[test]
fn what_is_refused_says_what_to_do() {
    let program = program(&["meta.pt", "bad_zip.pt", "collide.pt"]);
    assert_snapshot!(said(&program, &["convert", "meta.pt", "-o", "out.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: meta.pt: m: on the device meta: it has no data
      help: Save the model with its weights: there are none in this file. Or leave it out with --partial.
    ");
    assert_snapshot!(said(&program, &["convert", "meta.pt", "-o", "out.safetensors", "--partial", "--dry-run"]), @"
    exit 1
    -- stdout
    would write out.safetensors       40 B  0 tensors
    -- stderr
    warning: m: left out: on the device meta: it has no data
    ");
    assert_snapshot!(said(&program, &["convert", "bad_zip.pt", "-o", "out.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: bad_zip.pt: not data alone, but call: error[unknown-global]: os.getpid would be imported, which is known to run code
      help: See what it is with `weigh scan`. With --allow-calls the tensors are converted, and nothing is called.
    ");
    assert_snapshot!(said(&program, &["convert", "collide.pt", "-o", "out.safetensors"]), @r#"
    exit 1
    -- stdout
    -- stderr
    error: collide.pt: ["a"]["b"] and ["a.b"] have one name, a.b
    "#);
    assert_snapshot!(said(&program, &["convert", "meta.pt", "-o", "-"]), @"
    exit 2
    -- stdout
    -- stderr
    error: what is converted is not written to stdout
      help: Give the path of a file or of a folder.
    ");
    assert_snapshot!(said(&program, &["convert", "none.pt", "-o", "out.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: none.pt: no such file or folder
      help: Check the spelling of the path.
    ");
    assert!(!program.path("out.safetensors").exists());
}

#[test]
fn torch_checkpoints_are_looked_at_as_they_are() {
    let program = program(&["views.pt", "meta.pt", "ok_legacy.pt", "bad_zip.pt"]);
    assert_snapshot!(said(&program, &["ls", "-l", "views.pt"]), @"
    exit 0
    -- stdout
    diag   F32  [3]         12 B   960..972    960..972   views.pt
    exp    F32  [5]         20 B  1088..1108  1088..1108  views.pt
    flip0  F32  [3, 2]      24 B   964..988    964..988   views.pt
    t      F32  [3, 4]      48 B   960..1008   960..1008  views.pt
    tt     F32  [4, 3]      48 B   960..1008   960..1008  views.pt
    -- stderr
    ");
    assert_snapshot!(said(&program, &["ls", "meta.pt", "bad_zip.pt"]), @"
    exit 1
    -- stdout
    meta.pt:
    m  ?  [3]       0 B  ! unknown dtype

    bad_zip.pt:
    -- stderr
    note: meta.pt: m: on the device meta: it has no data
    warning: bad_zip.pt: not data alone, but call: do not unpickle it
    ");
    assert_snapshot!(said(&program, &["tree", "ok_legacy.pt"]), @"
    exit 0
    -- stdout
    ok_legacy.pt     20      80 B
    ├─ b      4      16 B  F32  [4]
    └─ w     16      64 B  F32  [4, 4]
    -- stderr
    ");
    // What only looks at safetensors says what it is.
    assert_eq!(program.run(&["check", "views.pt"]).status.code(), Some(1));
}

#[test]
fn limits_are_set_by_name_for_each_command_that_reads_pickles() {
    let program = program(&["views.pt"]);
    for command in
        [&["convert", "views.pt", "-o", "o.safetensors", "--dry-run"][..], &["scan", "views.pt"]]
    {
        let with = |limit: &str| {
            let arguments = [command, &["--limit", limit, "--limit", "depth=9"]].concat();
            program.run(&arguments).status.code()
        };
        for (limit, code) in [
            ("opcodes=1000", 0),
            ("opcodes=10", 1),
            ("nodes=10", 1),
            ("stack=2", 1),
            ("string-bytes=1", 1),
            ("string-bytes=1MiB", 0),
            ("entries=2", 1),
            ("nothing=2", 2),
            ("nodes=4294967296", 2),
        ] {
            assert_eq!(with(limit), Some(code), "{command:?} {limit}");
        }
    }
}

#[test]
fn a_rule_is_named_twice_only_if_it_is_one() {
    let program = program(&["views.pt"]);
    for (rules, code) in [
        (&["--dequantize"][..], 0),
        (&["--quantized", "integers"], 0),
        (&["--sparse", "parts", "--nested", "parts"], 0),
        (&["--dequantize", "--quantized", "integers"], 2),
        (&["--sparse", "some"], 2),
    ] {
        let command = ["convert", "views.pt", "-o", "o.safetensors", "--dry-run"];
        let output = program.run(&[&command[..], rules].concat());
        assert_eq!(output.status.code(), Some(code), "{rules:?}");
    }
}

#[test]
fn what_is_read_is_never_replaced() {
    let program = program(&["ok_lightning.ckpt"]);
    let before = fs::read(program.path("ok_lightning.ckpt")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("ok_lightning.ckpt", program.path("link.safetensors")).unwrap();
    let outputs: &[&str] = if cfg!(unix) {
        &["ok_lightning.ckpt", "./ok_lightning.ckpt", "link.safetensors"]
    } else {
        &["ok_lightning.ckpt", "./ok_lightning.ckpt"]
    };
    for output in outputs {
        let arguments = ["convert", "ok_lightning.ckpt", "-o", output, "--force"];
        let shown = said(&program, &arguments);
        assert!(shown.starts_with("exit 2"), "{shown}");
        assert!(shown.contains("ok_lightning.ckpt: is the input too"), "{shown}");
    }
    assert_eq!(fs::read(program.path("ok_lightning.ckpt")).unwrap(), before);
}

#[test]
fn a_key_is_of_a_checkpoint_of_torch() {
    let program = program(&["ok_lightning.ckpt"]);
    let convert = |input, output, key: &[&str]| {
        let arguments = [&["convert", input, "-o", output][..], key].concat();
        said(&program, &arguments)
    };
    assert!(convert("ok_lightning.ckpt", "a.safetensors", &[]).starts_with("exit 0"));
    assert!(convert("ok_lightning.ckpt", "a.npz", &[]).starts_with("exit 0"));
    for input in ["a.safetensors", "a.npz"] {
        let shown = convert(input, "b.safetensors", &["--key", "state_dict"]);
        assert!(shown.starts_with("exit 1") || shown.starts_with("exit 2"), "{shown}");
        assert!(shown.contains("which only checkpoints of torch have"), "{shown}");
        assert!(!program.path("b.safetensors").exists());
    }
}
