//! `weigh meta get`.

use insta::assert_snapshot;
use serde_json::Value;

use crate::checkpoints::{one, set};
use crate::program::{Program, repository, shown};

#[test]
fn every_pair_is_shown_with_its_json_expanded() {
    let image = format!("data:image/png;base64,{}", "A".repeat(50_000));
    let program = one(&[
        ("format", "pt"),
        ("modelspec.title", "A model"),
        ("modelspec.date", "2024-05-01T12:00:00"),
        ("modelspec.thumbnail", &image),
        ("ss_num_epochs", "10"),
        ("ss_tag_frequency", r#"{"10_cat": {"a cat": 12, "sitting": 3}, "empty": {}}"#),
        ("lines", "one\n\ntwo"),
        ("nothing", ""),
    ]);
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors"]), @r#"
    exit 0
    -- stdout
    m.safetensors  8 pairs, claimed by the file, not verified
      format  pt
      lines
        one

        two
      modelspec.date  2024-05-01T12:00:00
      modelspec.thumbnail  data:image/png;base64,… (48.8 KiB)
      modelspec.title  A model
      nothing  ""
      ss_num_epochs  10
      ss_tag_frequency
        {
          "10_cat": {
            "a cat": 12,
            "sitting": 3
          },
          "empty": {}
        }
    -- stderr
    "#);
    let by_default = program.run(&["meta", "m.safetensors"]);
    assert_eq!(by_default, program.run(&["meta", "get", "m.safetensors"]));
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "ss_*", "format"]), @r#"
    exit 0
    -- stdout
    m.safetensors  3 of 8 pairs, claimed by the file, not verified
      format  pt
      ss_num_epochs  10
      ss_tag_frequency
        {
          "10_cat": {
            "a cat": 12,
            "sitting": 3
          },
          "empty": {}
        }
    -- stderr
    "#);
}

#[test]
fn what_all_files_have_is_shown_once_and_the_rest_with_its_file() {
    let program = Program::new();
    set(
        &program,
        [
            &[("format", "pt"), ("title", "x")],
            &[("format", "pt"), ("title", "x")],
            &[("format", "pt"), ("title", "y"), ("only", "here")],
        ],
    );
    assert_snapshot!(program.shown(&["meta", "get", "set"]), @"
    exit 0
    -- stdout
    set  4 pairs, claimed by the file, not verified
      format  pt
      only  here  (in m-00003-of-00003.safetensors)
      title  x  (in 2 of 3 files)
      title  y  (in m-00003-of-00003.safetensors)
    -- stderr
    ");
    let document = program.run(&["meta", "get", "--json", "set", "format", "title"]);
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["schema"], "weigh.meta/1");
    assert_snapshot!(document["checkpoints"][0]["metadata"].to_string(), @r#"[{"key":"format","value":"pt"},{"files":["m-00001-of-00003.safetensors","m-00002-of-00003.safetensors"],"key":"title","value":"x"},{"files":["m-00003-of-00003.safetensors"],"key":"title","value":"y"}]"#);
    assert_snapshot!(program.shown(&["meta", "get", "set/m-00003-of-00003.safetensors", "only"]), @"
    exit 0
    -- stdout
    set/m-00003-of-00003.safetensors  1 of 3 pairs, claimed by the file, not verified
      only  here
    -- stderr
    ");
}

#[test]
fn several_checkpoints_come_one_after_the_other() {
    let program = one(&[("format", "pt")]);
    program.file("n.safetensors", "{}", 0);
    assert_snapshot!(program.shown(&["meta", "get", "."]), @"
    exit 0
    -- stdout
    ./m.safetensors  1 pair, claimed by the file, not verified
      format  pt

    ./n.safetensors  none
    -- stderr
    ");
}

#[test]
fn a_key_that_is_not_there_is_a_finding() {
    let program = one(&[("modelspec.title", "A model"), ("modelspec.author", "me")]);
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "modelspec.titel", "author", "modelspec.a*"]), @"
    exit 1
    -- stdout
    m.safetensors  1 of 2 pairs, claimed by the file, not verified
      modelspec.author  me
    -- stderr
    error: m.safetensors: no key of the metadata matches `modelspec.titel`
      help: The nearest keys are `modelspec.title` and `modelspec.author`.
    error: m.safetensors: no key of the metadata matches `author`
      help: A selector matches whole keys; 1 key contains it: try `*author*`.
    ");
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "x*"]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: no key of the metadata matches `x*`
    ");
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "["]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: glob "[" at byte 0: [ without a closing ]
      help: Put a backslash before a character that is meant as itself.
    "#);
    assert_snapshot!(program.shown(&["meta", "get", "--raw", "m.safetensors", "x"]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: no key of the metadata matches `x`
    ");
}

#[test]
fn raw_is_the_value_byte_for_byte() {
    let value = " a\n\u{1b}[31m\u{202e}é\r\n ";
    let program = one(&[("k", value), ("k2", "")]);
    let output = program.run(&["meta", "get", "m.safetensors", "k", "--raw"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), value.as_bytes()));
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "k2", "--raw"]), @"
    exit 0
    -- stdout
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "k*", "--raw"]), @"
    exit 2
    -- stdout
    -- stderr
    error: m.safetensors: 2 keys match
      help: Name one of them.
    ");
    assert_snapshot!(program.shown(&["meta", "get", "m.safetensors", "--raw"]), @"
    exit 2
    -- stdout
    -- stderr
    error: the following required arguments were not provided:
      <KEY>...

    Usage: weigh meta get --raw <PATH> <KEY>...

    For more information, try '--help'.
    ");
    set(&program, [&[("k", "x")], &[("k", "y")], &[("k", "x"), ("own", "z")]]);
    assert_snapshot!(program.shown(&["meta", "get", "set", "k", "--raw"]), @"
    exit 2
    -- stdout
    -- stderr
    error: set: files have different values for `k`
      help: Give one of the files.
    ");
    assert_snapshot!(program.shown(&["meta", "get", "set", "own", "--raw"]), @"
    exit 0
    -- stdout
    z-- stderr
    ");
    program.file("n.safetensors", "{}", 0);
    assert_snapshot!(program.shown(&["meta", "get", ".", "k", "--raw"]), @"
    exit 2
    -- stdout
    -- stderr
    error: ./m.safetensors: is one of several checkpoints
      help: Give one of them.
    error: ./n.safetensors: is one of several checkpoints
      help: Give one of them.
    error: ./n.safetensors: no key of the metadata matches `k`
    ");
}

#[test]
fn words_that_are_commands_are_files_too() {
    let program = one(&[("format", "pt")]);
    for name in ["get", "set", "-x"] {
        std::fs::copy(program.path("m.safetensors"), program.path(name)).unwrap();
    }
    for arguments in [
        &["meta", "get", "get"][..],
        &["meta", "get", "set"],
        &["meta", "./set"],
        &["meta", "--", "set"],
        &["meta", "get", "--", "-x"],
        &["meta", "--", "-x", "format"],
        &["meta", "--color", "never", "m.safetensors"],
    ] {
        let output = program.run(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.ends_with("\n  format  pt\n"), "{arguments:?}: {text}");
    }
}

#[test]
fn without_a_verb_the_verbs_are_listed() {
    let program = Program::new();
    assert_snapshot!(program.shown(&["meta"]), @"
    exit 2
    -- stdout
    -- stderr
    Show and change metadata: the pairs of text that files carry beside their tensors

    Usage: weigh meta [OPTIONS] <COMMAND>

    Commands:
      get     Show metadata: what the files claim of themselves, with JSON in values expanded
      set     Set keys to values, in every file of a checkpoint
      unset   Remove keys, from every file of a checkpoint
      edit    Change metadata in an editor, as JSON
      import  Set the keys of a JSON object, in every file of a checkpoint
      export  Write metadata as a JSON object of strings, its keys sorted
      help    Print this message or the help of the given subcommand(s)

    Options:
          --color <WHEN>        When to use colour; `auto` is on a terminal, unless `NO_COLOR` is set
                                [default: auto] [possible values: auto, always, never]
          --max-header <BYTES>  The largest header to read, in bytes; above the default, as many tensors
                                as it has room for [default: 100000000]
      -h, --help                Print help (see more with '--help')
    ");
    assert_snapshot!(program.shown(&["meta", "set", "--help"]), @"
    exit 0
    -- stdout
    Set keys to values, in every file of a checkpoint.

    Other keys, and every byte of the tensors, stay as they are.

    Usage: weigh meta set [OPTIONS] <PATH> [KEY=VALUE]...

    Arguments:
      <PATH>
              A file, a folder or a shard index

      [KEY=VALUE]...
              What to set; all that comes after the first `=` is the value, which may be empty

    Options:
          --color <WHEN>
              When to use colour; `auto` is on a terminal, unless `NO_COLOR` is set
              
              [default: auto]
              [possible values: auto, always, never]

          --file <KEY=FILE>
              Set a key to what a file has, to its last byte; `-` is stdin, once. May be repeated

          --max-header <BYTES>
              The largest header to read, in bytes; above the default, as many tensors as it has room
              for
              
              [default: 100000000]

      -h, --help
              Print help (see a summary with '-h')

    Writing:
      -o, --output <PATH>
              Write elsewhere: a file, or for a checkpoint of several a folder, which gets the index
              too. By default each file is written anew and takes its own place

          --force
              Replace what is there, if written elsewhere

          --in-place
              Overwrite the header where it is, under an undo journal, if it has room for the new one

          --reserve <BYTES>
              Room to leave in the header, for edits in place, as 4096 or 64K. By default it keeps what
              it has; 0 gives that up

          --dry-run
              Only say what would change, and how many bytes would be moved

          --json
              Print one document, `weigh.meta/1`

          --no-sync
              Do not wait until the files are on the disk
    -- stderr
    ");
}

#[test]
fn tensors_cannot_be_selected() {
    let program = one(&[("format", "pt")]);
    for arguments in [["get", "m.safetensors:a", ""], ["set", "m.safetensors:a", "k=v"]] {
        let arguments = [&["meta"], &arguments[..]].concat();
        let arguments: Vec<_> = arguments.into_iter().filter(|it| !it.is_empty()).collect();
        let shown = program.shown(&arguments);
        assert!(shown.starts_with("exit 2"), "{shown}");
        assert!(shown.contains("metadata is that of files, not of the tensors `a`"), "{shown}");
    }
}

#[test]
fn damaged_files_show_what_can_be_read() {
    let program = Program::new();
    program.file(
        "short.safetensors",
        r#"{"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}"#,
        1,
    );
    assert_snapshot!(program.shown(&["meta", "get", "short.safetensors"]), @"
    exit 1
    -- stdout
    short.safetensors  1 pair, claimed by the file, not verified
      k  v
    -- stderr
    error: short.safetensors: missing at the end: 8 bytes; the tensors need 9, the file has 1, and 0 of 1 tensors are complete [data-truncated]
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    assert_snapshot!(program.shown(&["meta", "get", "absent.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: absent.safetensors: no such file or folder
      help: Check the spelling of the path.
    ");
    let mut command = program.command(&["meta", "tiny"]);
    assert_snapshot!(shown(&command.current_dir(repository("examples")).output().unwrap()), @"
    exit 0
    -- stdout
    tiny  1 pair, claimed by the file, not verified
      format  pt
    -- stderr
    ");
}
