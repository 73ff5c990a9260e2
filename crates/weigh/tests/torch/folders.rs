use std::fs;
use std::path::Path;

use weigh::torch::scan::{ScanOptions, scan, walk};

fn names(folder: &Path) -> Vec<String> {
    let name = |path: &std::path::PathBuf| {
        path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/")
    };
    walk(folder).files.iter().map(name).collect()
}

#[test]
fn every_file_is_found_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("b/.hidden")).unwrap();
    for name in ["a10.pt", "a9.pt", "b/c.pkl", "b/.hidden/d", ".e"] {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let mut found = names(folder.path());
    let a9 = found.iter().position(|name| name == "a9.pt").unwrap();
    assert_eq!(found[a9 + 1], "a10.pt");
    found.sort();
    assert_eq!(found, [".e", "a10.pt", "a9.pt", "b/.hidden/d", "b/c.pkl"]);
    assert_eq!(walk(&folder.path().join("a9.pt")).files.len(), 1);
    assert_eq!(walk(&folder.path().join("none")).unread.len(), 1);
}

#[cfg(unix)]
#[test]
fn links_are_followed_within_the_folder_and_never_in_circles() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("blob"), b"").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/a.pt"), b"").unwrap();
    symlink(folder.path(), folder.path().join("sub/circle")).unwrap();
    symlink(outside.path(), folder.path().join("out")).unwrap();
    symlink(outside.path().join("blob"), folder.path().join("link.pt")).unwrap();
    symlink("nowhere", folder.path().join("broken")).unwrap();
    assert_eq!(names(folder.path()), ["link.pt", "sub/a.pt"]);
    let walk = walk(folder.path());
    let skipped: Vec<_> = walk.skipped.iter().map(|it| (it.path.clone(), it.what)).collect();
    let what = "a link to a folder outside of the one that is scanned";
    assert_eq!(skipped, [(folder.path().join("out"), what)]);
    assert_eq!(walk.unread.len(), 1);
}

#[test]
fn what_lies_beside_weights_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, want) in [
        ("modeling_x.py", &b"class X:\n    pass\n"[..], &["custom-code"][..]),
        ("config.json", br#"{"auto_map": {"AutoModel": "modeling_x.X"}}"#, &["auto-map"]),
        ("tokenizer_config.json", br#"{"chat_template": "{{ x }}"}"#, &["chat-template"]),
        ("chat_template.jinja", b"{{ x }}", &["chat-template"]),
        ("lib.so", b"\x7fELF\x02\x01\x01", &["executable"]),
        ("run", b"#!/bin/sh\n", &["custom-code"]),
        ("config.json", br#"{"hidden_size": 8}"#, &[]),
        ("readme.md", b"# Model", &[]),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let report = scan(&path, &ScanOptions::default()).unwrap();
        let codes: Vec<_> =
            report.findings.list().iter().map(weigh::format::Finding::code).collect();
        assert_eq!((codes.as_slice(), report.verdict), (want, None), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_told_and_never_opened() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.pt")).unwrap();
    let pipe = folder.path().join("pipe.pt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let walk = walk(folder.path());
    let what: Vec<_> = walk.skipped.iter().map(|skipped| skipped.what).collect();
    assert_eq!(what, ["a named pipe", "a socket", "a device"]);
    assert!(walk.files.is_empty() && walk.unread.is_empty());
    // Given by name it is an error, at once.
    assert!(scan(&pipe, &ScanOptions::default()).is_err());
}
