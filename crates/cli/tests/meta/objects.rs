//! `weigh meta import`, `export` and `edit`: metadata as a JSON object.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::checkpoints::{content, names, one, owned, set};
use crate::program::{Program, shown};

const FILE: &str = "m.safetensors";

#[test]
fn what_is_exported_is_imported() {
    let pairs = [("a\u{1b}", "\u{202e}\"\\\n"), ("b", r#"{"json": 1}"#), ("é", "")];
    let program = one(&pairs);
    assert_snapshot!(program.shown(&["meta", "export", FILE]), @r#"
    exit 0
    -- stdout
    {
      "a\u001b": "\u202e\"\\\n",
      "b": "{\"json\": 1}",
      "é": ""
    }
    -- stderr
    "#);
    assert_snapshot!(program.shown(&["meta", "export", FILE, "-o", "x.json"]), @"
    exit 0
    -- stdout
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "export", FILE, "-o", "x.json"]), @"
    exit 2
    -- stdout
    -- stderr
    error: x.json: exists already
      help: Choose another name, or say that it is to be replaced (`--force`).
    ");
    assert_eq!(
        program.run(&["meta", "export", FILE, "-o", "x.json", "--force"]).status.code(),
        Some(0)
    );
    program.file("n.safetensors", r#"{"__metadata__":{"old":"x","b":"y"}}"#, 0);
    assert_snapshot!(program.shown(&["meta", "import", "n.safetensors", "x.json", "--replace"]), @r#"
    exit 0
    -- stdout
    rewrote n.safetensors  header 44 → 80 bytes
      + a\u001b  \u202e"\\n
      ~ b  y → {"json": 1}
      - old  x
      + é  ""
    no byte of a tensor is changed; 0 B were copied
    -- stderr
    "#);
    assert_eq!(content(&program.path("n.safetensors")).0, owned(&pairs));
}

#[test]
fn an_import_keeps_other_keys_unless_it_replaces_them() {
    let program = one(&[("a", "1"), ("b", "2")]);
    fs::write(program.path("x.json"), r#"{"b": "3", "c": "4"}"#).unwrap();
    assert_snapshot!(program.shown(&["meta", "import", FILE, "x.json"]), @"
    exit 0
    -- stdout
    rewrote m.safetensors  header 96 → 104 bytes
      ~ b  2 → 3
      + c  4
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_eq!(content(&program.path(FILE)).0, owned(&[("a", "1"), ("b", "3"), ("c", "4")]));
    let mut command = program.command(&["meta", "import", FILE, "-", "--replace", "--stringify"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let json = br#"{"n": 1.50, "o": {"x": [null, true]}, "s": "text"}"#;
    child.stdin.take().unwrap().write_all(json).unwrap();
    assert_snapshot!(shown(&child.wait_with_output().unwrap()), @r#"
    exit 0
    -- stdout
    rewrote m.safetensors  header 104 → 128 bytes
      - a  1
      - b  3
      - c  4
      + n  1.50
      + o  {"x":[null,true]}
      + s  text
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    "#);
    let want = [("n", "1.50"), ("o", r#"{"x":[null,true]}"#), ("s", "text")];
    assert_eq!(content(&program.path(FILE)).0, owned(&want));
}

#[test]
fn only_an_object_of_strings_is_imported() {
    let program = one(&[("a", "1")]);
    let before = fs::read(program.path(FILE)).unwrap();
    for json in [r#"{"x": 1}"#, r#"{"x": "1", "x": "2"}"#, "{\"x\":\n\"1\"", "[]", "{} {}"] {
        fs::write(program.path("x.json"), json).unwrap();
        let shown = program.shown(&["meta", "import", FILE, "x.json"]);
        assert!(shown.starts_with("exit 2\n-- stdout\n-- stderr\nerror: x.json: "), "{shown}");
    }
    fs::write(program.path("x.json"), r#"{"x": 1}"#).unwrap();
    assert_snapshot!(program.shown(&["meta", "import", FILE, "x.json"]), @"
    exit 2
    -- stdout
    -- stderr
    error: x.json: the value of `x` is a number, and metadata is text
      help: Put it in quotes; `import --stringify` does that.
    ");
    fs::write(program.path("x.json"), b"{\"\xff\": 1}").unwrap();
    assert_snapshot!(program.shown(&["meta", "import", FILE, "x.json"]), @"
    exit 2
    -- stdout
    -- stderr
    error: x.json: is not UTF-8 from byte 2 on
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
}

#[test]
fn files_that_differ_have_no_one_object() {
    let program = Program::new();
    set(&program, [&[("format", "pt"), ("k", "1")], &[("format", "pt")], &[("format", "pt")]]);
    assert_snapshot!(program.shown(&["meta", "export", "set"]), @"
    exit 1
    -- stdout
    -- stderr
    error: set: the files differ: `k` is in set/m-00001-of-00003.safetensors and not in set/m-00002-of-00003.safetensors
      help: Give one of the files; `weigh meta get` shows how they differ.
    ");
    assert_snapshot!(program.shown(&["meta", "edit", "set"]), @"
    exit 1
    -- stdout
    -- stderr
    error: set: the files differ: `k` is in set/m-00001-of-00003.safetensors and not in set/m-00002-of-00003.safetensors
      help: Give one of the files; `weigh meta get` shows how they differ.
    ");
    assert_snapshot!(program.shown(&["meta", "export", "set/m-00002-of-00003.safetensors"]), @r#"
    exit 0
    -- stdout
    {
      "format": "pt"
    }
    -- stderr
    "#);
}

/// Edits with a shell script as the editor, which gets the file as `$1`.
#[cfg(target_os = "linux")]
fn edit(program: &Program, script: &str, more: &[&str]) -> String {
    fs::write(program.path("editor.sh"), script).unwrap();
    fs::create_dir_all(program.path("tmp")).unwrap();
    let mut command = program.command(&[&["meta", "edit", FILE][..], more].concat());
    command.env("VISUAL", "sh editor.sh").env("TMPDIR", program.path("tmp")).stdin(Stdio::null());
    let shown = shown(&command.output().unwrap());
    // What is left is named.
    let left = names(program.path("tmp"));
    assert!(left.iter().all(|name| shown.contains(name)), "{script}: {left:?}");
    let folder = program.path("tmp");
    let left = left.iter().fold(shown, |shown, name| {
        fs::remove_file(folder.join(name)).unwrap();
        shown.replace(name, "NAME")
    });
    left.replace(&*folder.to_string_lossy(), "TMP")
}

#[cfg(target_os = "linux")]
#[test]
fn an_editor_changes_the_object() {
    let program = one(&[("format", "pt"), ("k", "1")]);
    let before = fs::read(program.path(FILE)).unwrap();
    // The file is nobody else's to read.
    assert_snapshot!(edit(&program, "stat -c '%a %n' \"$1\" | sed 's/tmp.weigh-meta-.*.json/NAME/; s# .*/# #'", &[]), @"
    exit 0
    -- stdout
    600 NAME
    -- stderr
    note: the metadata is as it was: nothing is done
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
    assert_snapshot!(edit(&program, "sed -i 's/pt/np/; s/\"k\"/\"l\"/' \"$1\"", &["--dry-run"]), @"
    exit 0
    -- stdout
    would rewrite m.safetensors  header 104 bytes
      ~ format  pt → np
      - k  1
      + l  1
    no byte of a tensor would be changed; 8 B would be copied
    -- stderr
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
    assert_snapshot!(edit(&program, "sed -i 's/pt/np/; s/\"k\"/\"l\"/' \"$1\"", &[]), @"
    exit 0
    -- stdout
    rewrote m.safetensors  header 104 bytes
      ~ format  pt → np
      - k  1
      + l  1
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_eq!(content(&program.path(FILE)).0, owned(&[("format", "np"), ("l", "1")]));
    // Editors that write another file in place of theirs are none the worse for it.
    assert_snapshot!(edit(&program, "echo '{}' > other; mv other \"$1\"", &[]), @"
    exit 0
    -- stdout
    rewrote m.safetensors  header 104 → 64 bytes
      - format  np
      - l  1
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_eq!(content(&program.path(FILE)).0, []);
}

#[cfg(target_os = "linux")]
#[test]
fn signals_that_are_ignored_from_the_start_stay_ignored() {
    let program = one(&[("format", "pt")]);
    let script = "kill -HUP $(cat pid); sleep 0.2; sed -i s/pt/np/ \"$1\"";
    fs::write(program.path("editor.sh"), script).unwrap();
    for (trap, code) in [("trap '' HUP", Some(0)), ("true", None)] {
        let mut command = std::process::Command::new("sh");
        command.current_dir(program.path("")).env("VISUAL", "sh editor.sh").stdin(Stdio::null());
        command.arg("-c").arg(format!("{trap}; echo $$ > pid; exec \"$0\" \"$@\""));
        command.args([env!("CARGO_BIN_EXE_weigh"), "meta", "edit", FILE]);
        let output = command.env("TMPDIR", program.path("")).output().unwrap();
        assert_eq!(output.status.code(), code, "{trap}: {output:?}");
        assert_eq!(content(&program.path(FILE)).0, owned(&[("format", "np")]), "{trap}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_edit_that_fails_changes_nothing() {
    let program = one(&[("format", "pt")]);
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(edit(&program, "printf '{\\n\"a\": }' > \"$1\"", &[]), @"
    exit 2
    -- stdout
    -- stderr
    error: the edited metadata: is not a JSON object of strings: expected value at line 2 column 6
    note: what was edited is in TMP/NAME: `weigh meta import --replace` takes it
    ");
    assert_snapshot!(edit(&program, "echo '{\"a\": 1}' > \"$1\"", &[]), @"
    exit 2
    -- stdout
    -- stderr
    error: the edited metadata: the value of `a` is a number, and metadata is text
      help: Put it in quotes; `import --stringify` does that.
    note: what was edited is in TMP/NAME: `weigh meta import --replace` takes it
    ");
    // Too late: there is something else already.
    fs::write(program.path("there"), "").unwrap();
    assert_snapshot!(edit(&program, "echo '{\"a\": \"1\"}' > \"$1\"", &["-o", "there"]), @"
    exit 2
    -- stdout
    -- stderr
    error: there: exists already
      help: Choose another name, or say that it is to be replaced (`--force`).
    note: what was edited is in TMP/NAME: `weigh meta import --replace` takes it
    ");
    assert_snapshot!(edit(&program, "printf '{\"a\": \"%99s\"}' > \"$1\"", &["--in-place"]), @"
    exit 2
    -- stdout
    -- stderr
    error: m.safetensors: the new header needs 177 bytes and there is room for 88: 89 are missing
      help: Run it without `--in-place`; with `--reserve 64K` there is room the next time.
    note: what was edited is in TMP/NAME: `weigh meta import --replace` takes it
    ");
    let gone = edit(&program, "rm \"$1\"", &[]);
    assert!(
        gone.starts_with(
            "exit 2
"
        ) && gone.contains("no such file"),
        "{gone}"
    );
    assert_snapshot!(edit(&program, "exit 3", &[]), @"
    exit 2
    -- stdout
    -- stderr
    error: the editor `sh editor.sh` ended with exit status: 3: nothing is changed
      help: Name one in the environment variable VISUAL or EDITOR.
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
    let mut command = program.command(&["meta", "edit", FILE]);
    command.env("VISUAL", "").env("EDITOR", "/no/such/editor").stdin(Stdio::null());
    assert!(shown(&command.output().unwrap()).starts_with("exit 2\n"));
}
