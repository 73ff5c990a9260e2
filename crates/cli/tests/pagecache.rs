//! `weigh pagecache`, run as a program.
//!
//! What is in the page cache is the system's to decide: files here are small and just written, or just dropped.
//! Other systems than Linux do not tell.
#![cfg(target_os = "linux")]

mod program;

use std::fs::File;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;

const HEADER: &str = r#"{"a":{"dtype":"U8","shape":[9000],"data_offsets":[0,9000]}}"#;

/// A file with nothing of it left to be written to the disk.
fn file(program: &Program, name: &str) {
    let path = program.file(name, HEADER, 9000);
    File::open(path).unwrap().sync_all().unwrap();
}

/// A folder with a checkpoint in two files, its index naming the second first.
fn two() -> Program {
    let program = Program::new();
    let names = ["m-00002-of-00002.safetensors", "m-00001-of-00002.safetensors"];
    for name in names {
        file(&program, &format!("two/{name}"));
    }
    let index = format!(r#"{{"weight_map":{{"a":"{}","b":"{}"}}}}"#, names[0], names[1]);
    std::fs::write(program.path("two/m.safetensors.index.json"), index).unwrap();
    program
}

/// Whether the folder of the program is in memory, where nothing can be dropped.
fn is_in_memory(program: &Program, name: &str) -> bool {
    use weigh::io::system::{FileSystemKind, file_system};
    let source = weigh::io::FileSource::open(program.path(name)).unwrap();
    file_system(&source).kind == FileSystemKind::Memory
}

#[test]
fn each_file_has_a_line_and_the_last_adds_them_up() {
    let program = two();
    std::fs::write(program.path("notes.txt"), b"").unwrap();
    assert_snapshot!(program.shown(&["pagecache", "status", "two", "notes.txt"]), @"
    exit 0
    -- stdout
    two/m-00001-of-00002.safetensors: 100% cached, 8.85 KiB of 8.85 KiB
    two/m-00002-of-00002.safetensors: 100% cached, 8.85 KiB of 8.85 KiB
    notes.txt: 100% cached, 0 B of 0 B
    3 files: 100% cached, 17.7 KiB of 17.7 KiB
    -- stderr
    ");
    assert_snapshot!(program.shown(&["pagecache", "status", "two/m-00002*"]), @"
    exit 0
    -- stdout
    two/m-00002-of-00002.safetensors: 100% cached, 8.85 KiB of 8.85 KiB
    -- stderr
    ");
}

#[test]
fn what_is_dropped_is_gone_and_what_is_warmed_is_there() {
    let program = two();
    if is_in_memory(&program, "two/m-00001-of-00002.safetensors") {
        return;
    }
    assert_snapshot!(program.shown(&["pagecache", "drop", "two/m.safetensors.index.json"]), @"
    exit 0
    -- stdout
    two/m-00001-of-00002.safetensors: 0% cached, 0 B of 8.85 KiB, 8.85 KiB dropped
    two/m-00002-of-00002.safetensors: 0% cached, 0 B of 8.85 KiB, 8.85 KiB dropped
    2 files: 0% cached, 0 B of 17.7 KiB
    -- stderr
    ");
    assert_snapshot!(program.shown(&["pagecache", "status", "two"]), @"
    exit 0
    -- stdout
    two/m-00001-of-00002.safetensors: 0% cached, 0 B of 8.85 KiB
    two/m-00002-of-00002.safetensors: 0% cached, 0 B of 8.85 KiB
    2 files: 0% cached, 0 B of 17.7 KiB
    -- stderr
    ");
    assert_snapshot!(program.shown(&["pagecache", "warm", "two/m-00001-of-00002.safetensors"]), @"
    exit 0
    -- stdout
    two/m-00001-of-00002.safetensors: 100% cached, 8.85 KiB of 8.85 KiB, 8.85 KiB added
    -- stderr
    ");
    assert_snapshot!(program.shown(&["pagecache", "warm", "two"]), @"
    exit 0
    -- stdout
    two/m-00001-of-00002.safetensors: 100% cached, 8.85 KiB of 8.85 KiB, 0 B added
    two/m-00002-of-00002.safetensors: 100% cached, 8.85 KiB of 8.85 KiB, 8.85 KiB added
    2 files: 100% cached, 17.7 KiB of 17.7 KiB
    -- stderr
    ");
}

#[test]
fn what_stays_is_a_finding() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let program = Program::new();
    let path = folder.path().join("file");
    std::fs::write(&path, b"0123456789").unwrap();
    std::os::unix::fs::symlink(&path, program.path("link")).unwrap();
    if !is_in_memory(&program, "link") {
        return;
    }
    assert_snapshot!(program.shown(&["pagecache", "drop", "link"]), @"
    exit 1
    -- stdout
    link: 100% cached, 10 B of 10 B, 0 B dropped
    -- stderr
    note: link: 10 B stayed: a file on tmpfs is in memory and nowhere else
    ");
}

#[test]
fn what_is_not_there_is_reported_and_the_rest_is_done() {
    let program = Program::new();
    file(&program, "a.safetensors");
    let index = r#"{"weight_map":{"a":"../a.safetensors"}}"#;
    std::fs::write(program.path("evil.safetensors.index.json"), index).unwrap();
    let index = r#"{"weight_map":{"a":"a.safetensors","b":"b.safetensors"}}"#;
    std::fs::write(program.path("half.safetensors.index.json"), index).unwrap();
    std::fs::create_dir(program.path("empty")).unwrap();
    let shown = program.shown(&[
        "pagecache",
        "warm",
        "absent\u{1b}",
        "evil.safetensors.index.json",
        "empty",
        "a.safetensors:a*",
        "half.safetensors.index.json",
    ]);
    let (head, errors) = shown.split_once("-- stderr\n").unwrap();
    assert!(head.starts_with("exit 2\n-- stdout\na.safetensors: "), "{head}");
    assert_snapshot!(errors, @r"
    error: absent\u001b: no such file or folder
      help: Check the spelling of the path.
    error: empty: no safetensors file in this folder
      help: Give a .safetensors file, a folder with some, or a shard index.
    error: evil.safetensors.index.json: error[index-path]: the index names `../a.safetensors`, which is not a plain file name
      help: A name that leaves the folder reads or fetches somebody else's file: do not use this index.
    error: a.safetensors: whole files are cached, not the tensors `a*`
      help: Give the path alone.
    error: b.safetensors: no such file or folder
      help: Check the spelling of the path.
    ");
}

#[test]
fn the_document_has_exact_numbers() {
    let program = two();
    if is_in_memory(&program, "two/m-00001-of-00002.safetensors") {
        return;
    }
    let document = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&program.run(arguments).stdout).unwrap()
    };
    let dropped = document(&["pagecache", "drop", "two", "absent", "--json"]);
    assert_eq!(dropped["schema"], "weigh.pagecache/1");
    assert_eq!(dropped["action"], "drop");
    assert_eq!(dropped["errors"][0]["code"], "io-missing");
    let first = &dropped["files"][0];
    assert_eq!(first["path"], "two/m-00001-of-00002.safetensors");
    assert_eq!(first["bytes"], 9067);
    assert_eq!((&first["cached_before"], &first["cached"]), (&9067.into(), &0.into()));
    let status = document(&["pagecache", "status", "two", "--json"]);
    let first = status["files"][0].as_object().unwrap();
    assert!(!first.contains_key("cached_before"));
    assert_eq!((&first["cached"], &first["file_system_kind"]), (&0.into(), &"local".into()));
}

#[test]
fn a_folder_stands_for_the_files_of_all_its_checkpoints() {
    let program = Program::new();
    let mut command = program.command(&["pagecache", "status", "--json", "."]);
    let output = command.current_dir(repository("examples")).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = document["files"].as_array().unwrap();
    let paths: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "./lora/adapter_model.safetensors",
            "./quantized/model.safetensors",
            "./tiny/model-00001-of-00003.safetensors",
            "./tiny/model-00002-of-00003.safetensors",
            "./tiny/model-00003-of-00003.safetensors",
        ]
    );
}

#[test]
fn an_action_is_needed() {
    let program = Program::new();
    for arguments in [&["pagecache"][..], &["pagecache", "status"], &["pagecache", "a"]] {
        assert_eq!(program.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
