//! `weigh meta set` and `unset`, and the options of all commands that change metadata.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::checkpoints::{content, names, one, owned, set};
use crate::program::Program;

const FILE: &str = "m.safetensors";

#[test]
fn set_changes_keys_and_no_tensor() {
    let program = one(&[("format", "pt"), ("title", "old")]);
    let (_, data) = content(&program.path(FILE));
    assert_snapshot!(program.shown(&["meta", "set", FILE, "title=a = b", "empty=", "author=me"]), @r#"
    exit 0
    -- stdout
    rewrote m.safetensors  header 112 → 136 bytes
      + author  me
      + empty  ""
      ~ title  old → a = b
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    "#);
    let want = [("author", "me"), ("empty", ""), ("format", "pt"), ("title", "a = b")];
    assert_eq!(content(&program.path(FILE)), (owned(&want), data));
    assert_eq!(names(program.path("")), [FILE]);
    assert_snapshot!(program.shown(&["meta", "set", FILE, "author=me"]), @"
    exit 0
    -- stdout
    nothing to change
    -- stderr
    ");
}

#[test]
fn unset_takes_globs_and_refuses_what_is_nowhere() {
    let program = one(&[("a.x", "1"), ("a.y", "2"), ("b", "3")]);
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["meta", "unset", FILE, "b", "a.z"]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: no key of the metadata matches `a.z`
      help: The nearest keys are `a.x` and `a.y`.
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
    assert_snapshot!(program.shown(&["meta", "unset", FILE, "a.*", "b"]), @"
    exit 0
    -- stdout
    rewrote m.safetensors  header 112 → 64 bytes
      - a.x  1
      - a.y  2
      - b  3
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_eq!(content(&program.path(FILE)).0, []);
}

#[test]
fn values_come_from_files_too() {
    let program = one(&[]);
    fs::write(program.path("value"), "two\nlines=\n").unwrap();
    fs::write(program.path("bytes"), b"ok\xff").unwrap();
    assert_snapshot!(program.shown(&["meta", "set", FILE, "--file", "k=value", "l=x"]), @r#"
    exit 0
    -- stdout
    rewrote m.safetensors  header 80 → 112 bytes
      + k  two\nlines=\n
      + l  x
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    "#);
    assert_eq!(content(&program.path(FILE)).0, owned(&[("k", "two\nlines=\n"), ("l", "x")]));
    assert_snapshot!(program.shown(&["meta", "set", FILE, "--file", "k=bytes"]), @"
    exit 2
    -- stdout
    -- stderr
    error: bytes: is not UTF-8 from byte 2 on
      help: Metadata is text: encode the bytes first, as in base64.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "--file", "k=-", "--file", "l=-"]), @"
    exit 2
    -- stdout
    -- stderr
    error: `l=-`: stdin is read already
      help: Give one of them a file.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "--file", "k=absent"]), @"
    exit 2
    -- stdout
    -- stderr
    error: absent: no such file or folder
      help: Check the spelling of the path.
    ");
}

#[test]
fn pairs_that_are_none_are_refused_before_anything_is_done() {
    let program = one(&[]);
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["meta", "set", FILE]), @"
    exit 2
    -- stdout
    -- stderr
    error: the following required arguments were not provided:
      <KEY=VALUE>...

    Usage: weigh meta set <PATH> <KEY=VALUE>...

    For more information, try '--help'.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "title"]), @"
    exit 2
    -- stdout
    -- stderr
    error: `title` is not KEY=VALUE
      help: Quote it if the value has spaces; an empty value is `KEY=`.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "=v"]), @"
    exit 2
    -- stdout
    -- stderr
    error: `=v` is not KEY=VALUE
      help: Quote it if the value has spaces; an empty value is `KEY=`.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=1", "k=2"]), @"
    exit 2
    -- stdout
    -- stderr
    error: the key `k` is given twice
      help: Give it one value.
    ");
    #[cfg(unix)]
    {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let pair = OsStr::from_bytes(b"k=\xff");
        assert_snapshot!(program.shown(&[OsStr::new("meta"), "set".as_ref(), FILE.as_ref(), pair]), @"
        exit 2
        -- stdout
        -- stderr
        error: `k=�` is not UTF-8
          help: Metadata is text: encode the bytes first, as in base64.
        ");
    }
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
}

#[test]
fn keys_and_values_may_be_anything_that_is_text() {
    let program = one(&[]);
    let pairs = ["a b=c d", "\u{1b}[31m=\u{202e}", "--=-", "-k=v", "__metadata__=x", "ключ=鍵"];
    let shown = program.shown(&[&["meta", "set", FILE, "--"][..], &pairs].concat());
    assert_snapshot!(shown, @r#"
    exit 0
    -- stdout
    rewrote m.safetensors  header 80 → 168 bytes
      + \u001b[31m  \u202e
      + --  -
      + -k  v
      + __metadata__  x
      + a b  c d
      + ключ  鍵
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    "#);
    let mut want: Vec<_> = pairs.iter().map(|pair| pair.split_once('=').unwrap()).collect();
    want.sort_unstable();
    assert_eq!(content(&program.path(FILE)).0, owned(&want));
}

#[test]
fn a_dry_run_says_what_would_be_done() {
    let program = one(&[("format", "pt"), ("title", "old")]);
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["meta", "set", FILE, "title=new", "--dry-run"]), @"
    exit 0
    -- stdout
    would rewrite m.safetensors  header 112 bytes
      ~ title  old → new
    no byte of a tensor would be changed; 8 B would be copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "unset", FILE, "title", "--dry-run", "--in-place"]), @"
    exit 0
    -- stdout
    would change in place m.safetensors  header 112 bytes
      - title  old
    no byte of a tensor would be changed, and none moved
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "title=new", "--dry-run", "-o", "n"]), @"
    exit 0
    -- stdout
    would write n  header 112 bytes
      ~ title  old → new
    no byte of a tensor would be changed; 8 B would be copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "title=new", "--dry-run", "--json"]), @r#"
    exit 0
    -- stdout
    {"schema":"weigh.meta/1","action":"set","dry_run":true,"written":false,"files_written":0,"in_place":false,"bytes_copied":8,"removed":[],"files":[
    {"path":"m.safetensors","target":"m.safetensors","header_bytes_before":112,"header_bytes":112,"bytes_copied":8,"changes":[
    {"key":"title","before":"old","after":"new"}]}
    ],"errors":[]}
    -- stderr
    "#);
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
    assert_eq!(names(program.path("")), [FILE]);
}

#[test]
fn the_document_of_a_result_is_that_of_its_plan_and_more() {
    let program = one(&[("format", "pt"), ("title", "old")]);
    let run = |more: &[&str]| -> Value {
        let arguments = [&["meta", "set", FILE, "title=new", "--json"], more].concat();
        serde_json::from_slice(&program.run(&arguments).stdout).unwrap()
    };
    let (mut plan, mut result) = (run(&["--dry-run"]), run(&[]));
    assert!(result["seconds"].as_f64().unwrap() >= 0.0);
    for (key, [planned, done]) in [("dry_run", [true, false]), ("written", [false, true])] {
        assert_eq!((&plan[key], &result[key]), (&planned.into(), &done.into()));
    }
    for document in [&mut plan, &mut result] {
        let object = document.as_object_mut().unwrap();
        for key in ["dry_run", "written", "files_written", "seconds"] {
            object.remove(key);
        }
    }
    assert_eq!(plan, result);
    let nothing = run(&[]);
    assert_eq!((&nothing["written"], &nothing["bytes_copied"]), (&false.into(), &0.into()));
    let refused = program.run(&["meta", "unset", FILE, "absent", "--json"]);
    assert_snapshot!(String::from_utf8(refused.stdout).unwrap(), @r#"
    {"schema":"weigh.meta/1","action":"unset","dry_run":false,"written":false,"files_written":0,"files":[],"errors":[
    {"path":"m.safetensors","code":"no-key","message":"m.safetensors: no key of the metadata matches `absent`"}]}
    "#);
}

#[test]
fn in_place_the_header_needs_room() {
    let program = one(&[("format", "pt")]);
    let long = format!("title={}", "x".repeat(50));
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["meta", "set", FILE, &long, "--in-place"]), @"
    exit 2
    -- stdout
    -- stderr
    error: m.safetensors: the new header needs 146 bytes and there is room for 88: 58 are missing
      help: Run it without `--in-place`; with `--reserve 64K` there is room the next time.
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
    assert_snapshot!(program.shown(&["meta", "set", FILE, "a=b", "--reserve", "1K"]), @"
    exit 0
    -- stdout
    rewrote m.safetensors  header 96 → 1 128 bytes
      + a  b
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    let (_, data) = content(&program.path(FILE));
    let len = fs::metadata(program.path(FILE)).unwrap().len();
    assert_snapshot!(program.shown(&["meta", "set", FILE, &long, "--in-place"]), @"
    exit 0
    -- stdout
    changed in place m.safetensors  header 1 128 bytes
      + title  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    no byte of a tensor is changed, and none was moved
    -- stderr
    ");
    assert_eq!(content(&program.path(FILE)).1, data);
    assert_eq!(fs::metadata(program.path(FILE)).unwrap().len(), len);
    assert_eq!(names(program.path("")), [FILE]);
    for option in [&["-o", "n"][..], &["--reserve", "9"], &["--no-sync"]] {
        let arguments = [&["meta", "set", FILE, "a=c", "--in-place"], option].concat();
        assert_eq!(program.run(&arguments).status.code(), Some(2), "{option:?}");
    }
}

#[test]
fn elsewhere_nothing_is_replaced_unasked() {
    let program = one(&[("format", "pt")]);
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=v", "-o", "n.safetensors", "--no-sync"]), @"
    exit 0
    -- stdout
    wrote n.safetensors  header 96 → 104 bytes
      + k  v
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_eq!(content(&program.path("n.safetensors")).0, owned(&[("format", "pt"), ("k", "v")]));
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=w", "-o", "n.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: n.safetensors: exists already
      help: Choose another name, or say that it is to be replaced (`--force`).
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=w", "-o", "n.safetensors", "--force"]), @"
    exit 0
    -- stdout
    wrote n.safetensors  header 96 → 104 bytes
      + k  w
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_eq!(content(&program.path("n.safetensors")).0, owned(&[("format", "pt"), ("k", "w")]));
    fs::create_dir(program.path("folder")).unwrap();
    assert_snapshot!(program.shown(&["meta", "unset", FILE, "format", "-o", "folder"]), @"
    exit 0
    -- stdout
    wrote folder/m.safetensors  header 96 → 64 bytes
      - format  pt
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=v", "-o", "-"]), @"
    exit 2
    -- stdout
    -- stderr
    error: metadata is not changed on the way to stdout
      help: Give a file or a folder.
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
}

#[test]
fn a_set_is_changed_in_every_file() {
    let program = Program::new();
    set(&program, [&[("k", "1")], &[("k", "1")], &[("k", "2"), ("own", "x")]]);
    let index = fs::read(program.path("set/m.safetensors.index.json")).unwrap();
    assert_snapshot!(program.shown(&["meta", "set", "set", "k=1"]), @"
    exit 0
    -- stdout
    unchanged set/m-00001-of-00003.safetensors
    unchanged set/m-00002-of-00003.safetensors
    rewrote set/m-00003-of-00003.safetensors  header 104 bytes
      ~ k  2 → 1
    no byte of a tensor is changed; 8 B were copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "set", "set", "k=3", "l=4"]), @"
    exit 0
    -- stdout
    rewrote set/m-00001-of-00003.safetensors  header 88 → 96 bytes
    rewrote set/m-00002-of-00003.safetensors  header 88 → 96 bytes
    rewrote set/m-00003-of-00003.safetensors  header 104 → 112 bytes
      ~ k  1 → 3
      + l  4
    no byte of a tensor is changed; 24 B were copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "unset", "set", "own", "k"]), @"
    exit 0
    -- stdout
    rewrote set/m-00001-of-00003.safetensors  header 96 → 88 bytes
    rewrote set/m-00002-of-00003.safetensors  header 96 → 88 bytes
      - k  3
    rewrote set/m-00003-of-00003.safetensors  header 112 → 88 bytes
      - k  3
      - own  x
    no byte of a tensor is changed; 24 B were copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "get", "set"]), @"
    exit 0
    -- stdout
    set  1 pair, claimed by the file, not verified
      l  4
    -- stderr
    ");
    assert_eq!(fs::read(program.path("set/m.safetensors.index.json")).unwrap(), index);
    assert_eq!(names(program.path("set")).len(), 4);
}

#[test]
fn a_set_is_written_elsewhere_with_its_index() {
    let program = Program::new();
    set(&program, [&[("k", "1")], &[], &[]]);
    assert_snapshot!(program.shown(&["meta", "set", "set", "l=v", "-o", "there"]), @"
    exit 0
    -- stdout
    wrote there/m-00001-of-00003.safetensors  header 88 → 96 bytes
    wrote there/m-00002-of-00003.safetensors  header 88 bytes
    wrote there/m-00003-of-00003.safetensors  header 88 bytes
      + l  v
    wrote there/m.safetensors.index.json
    no byte of a tensor is changed; 24 B were copied
    -- stderr
    ");
    assert_eq!(names(program.path("there")), names(program.path("set")));
    assert_snapshot!(program.shown(&["check", "there"]), @"
    exit 0
    -- stdout
    there/m.safetensors.index.json: valid
    there/m-00001-of-00003.safetensors: valid
    there/m-00002-of-00003.safetensors: valid
    there/m-00003-of-00003.safetensors: valid
    3 files: 3 valid
    -- stderr
    ");
    assert_snapshot!(program.shown(&["meta", "set", "set", "l=v", "-o", "there"]), @"
    exit 2
    -- stdout
    -- stderr
    error: there/m-00001-of-00003.safetensors: exists already
      help: Choose another name, or say that it is to be replaced (`--force`).
    ");
    assert_snapshot!(program.shown(&["meta", "set", "set", "l=v", "-o", "one.safetensors"]), @"
    exit 2
    -- stdout
    -- stderr
    error: one.safetensors: 3 files cannot be written as one
      help: Give a folder, or join them with `weigh join` first.
    ");
    // Without an index it gets one.
    fs::remove_file(program.path("set/m.safetensors.index.json")).unwrap();
    assert_snapshot!(program.shown(&["meta", "set", "set", "l=w", "-o", "there", "--force"]), @"
    exit 0
    -- stdout
    wrote there/m-00001-of-00003.safetensors  header 88 → 96 bytes
    wrote there/m-00002-of-00003.safetensors  header 88 bytes
    wrote there/m-00003-of-00003.safetensors  header 88 bytes
      + l  w
    replaced there/m.safetensors.index.json
    no byte of a tensor is changed; 24 B were copied
    -- stderr
    ");
    assert_snapshot!(program.shown(&["check", "there"]), @"
    exit 0
    -- stdout
    there/m.safetensors.index.json: valid
    there/m-00001-of-00003.safetensors: valid
    there/m-00002-of-00003.safetensors: valid
    there/m-00003-of-00003.safetensors: valid
    3 files: 3 valid
    -- stderr
    ");
}

#[test]
fn files_that_are_not_sound_are_left_alone() {
    let program = Program::new();
    program.file(
        "short.safetensors",
        r#"{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}"#,
        1,
    );
    assert_snapshot!(program.shown(&["meta", "set", "short.safetensors", "k=v"]), @"
    exit 1
    -- stdout
    -- stderr
    error: short.safetensors: error[data-truncated]: missing at the end: 8 bytes; the tensors need 9, the file has 1, and 0 of 1 tensors are complete
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    assert_snapshot!(program.shown(&["meta", "set", "absent.safetensors", "k=v", "--json"]), @r#"
    exit 2
    -- stdout
    {"schema":"weigh.meta/1","action":"set","dry_run":false,"written":false,"files_written":0,"files":[],"errors":[
    {"path":"absent.safetensors","code":"io-missing","message":"absent.safetensors: no such file or folder","help":"Check the spelling of the path."}]}
    -- stderr
    error: absent.safetensors: no such file or folder
      help: Check the spelling of the path.
    "#);
}

#[cfg(unix)]
#[test]
fn links_and_modes_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let program = one(&[]);
    fs::set_permissions(program.path(FILE), fs::Permissions::from_mode(0o640)).unwrap();
    symlink(FILE, program.path("link.safetensors")).unwrap();
    assert_eq!(program.run(&["meta", "set", "link.safetensors", "k=v"]).status.code(), Some(0));
    assert!(fs::symlink_metadata(program.path("link.safetensors")).unwrap().is_symlink());
    assert_eq!(content(&program.path(FILE)).0, owned(&[("k", "v")]));
    let mode = fs::metadata(program.path(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn what_is_a_key_means_that_key_whatever_it_looks_like() {
    let program = one(&[("ds[0]", "list"), ("ds0", "plain"), ("a[", "open"), ("*", "star")]);
    for (key, value) in [("ds[0]", "list"), ("a[", "open"), ("*", "star")] {
        let shown = program.shown(&["meta", "get", FILE, key, "--raw"]);
        assert_eq!(shown, format!("exit 0\n-- stdout\n{value}-- stderr\n"), "{key}");
    }
    // A glob that is no key means what it matches.
    let shown = program.shown(&["meta", "unset", FILE, "ds*"]);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    let shown = program.shown(&["meta", "unset", FILE, "*"]);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    assert_eq!(
        program.shown(&["meta", "get", FILE, "a[", "--raw"]),
        "exit 0\n-- stdout\nopen-- stderr\n"
    );
    let shown = program.shown(&["meta", "get", FILE, "b["]);
    assert!(shown.starts_with("exit 2\n") && shown.contains("without a closing"), "{shown}");
}

#[test]
fn fields_that_are_dropped_are_told() {
    let program = one(&[]);
    let file = fs::read(program.path(FILE)).unwrap();
    let length = usize::try_from(u64::from_le_bytes(file[..8].try_into().unwrap())).unwrap();
    let header = str::from_utf8(&file[8..8 + length]).unwrap();
    let header = header.trim_end().replacen("\"dtype\"", "\"note\":[1,2],\"dtype\"", 1);
    let header = format!("{header:width$}", width = header.len().next_multiple_of(8));
    let with_note =
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &file[8 + length..]].concat();
    fs::write(program.path(FILE), with_note).unwrap();
    let shown = program.shown(&["meta", "set", FILE, "k=v"]);
    assert!(
        shown.contains("fields that the format does not have were dropped, of 1 tensor"),
        "{shown}"
    );
}
