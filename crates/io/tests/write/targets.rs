//! What a file can be written to, and what not.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use weigh_io::{ErrorKind, NewFile};

use crate::folder::{Folder, KEEP, REPLACE, names, write};

fn code(path: impl AsRef<Path>) -> &'static str {
    NewFile::create(path, &REPLACE).unwrap_err().code()
}

#[test]
fn what_cannot_be_written_is_told_apart() {
    let folder = Folder::with(&[("file", "old")]);
    fs::create_dir(folder.join("folder")).unwrap();
    let _socket = UnixListener::bind(folder.join("socket")).unwrap();
    symlink("folder", folder.join("to-folder")).unwrap();
    symlink("socket", folder.join("to-socket")).unwrap();
    symlink("circle", folder.join("circle")).unwrap();
    symlink("nowhere/", folder.join("to-spelled-folder")).unwrap();
    let before = folder.names();
    for (name, want) in [
        ("folder", "io-is-folder"),
        ("folder/", "io-is-folder"),
        ("folder/.", "io-is-folder"),
        ("folder/..", "io-is-folder"),
        ("new/", "io-is-folder"),
        ("to-folder", "io-is-folder"),
        ("to-spelled-folder", "io-is-folder"),
        ("socket", "io-not-a-file"),
        ("to-socket", "io-not-a-file"),
        ("circle", "io-system"),
        ("nowhere/new", "io-missing"),
        ("file/new", "io-missing"),
        (&"x".repeat(256), "io-system"),
    ] {
        assert_eq!(code(folder.join(name)), want, "{name}");
    }
    assert_eq!(code(""), "io-missing");
    assert_eq!(code("."), "io-is-folder");
    assert_eq!(code("/"), "io-is-folder");
    assert_eq!(code("/dev/null"), "io-not-a-file");
    assert_eq!(folder.names(), before);
    assert_eq!(folder.content("file"), "old");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_refused_without_waiting() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = Folder::new();
    mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(code(folder.join("pipe")), "io-not-a-file");
}

#[test]
fn links_are_followed_and_stay() {
    let folder = Folder::with(&[("old", "old")]);
    fs::create_dir(folder.join("deep")).unwrap();
    let link = |to: &str, name: &str| symlink(to, folder.join(name)).unwrap();
    link("old", "relative");
    link(folder.join("old").to_str().unwrap(), "absolute");
    link("deep/../old", "around");
    link("../relative", "deep/up");
    link("deep/up", "chain");
    link("deep/new", "dangling");
    for (name, real) in [
        ("relative", "old"),
        ("absolute", "old"),
        ("around", "old"),
        ("deep/up", "old"),
        ("chain", "old"),
        ("dangling", "deep/new"),
        ("dangling", "deep/new"),
    ] {
        let link = fs::read_link(folder.join(name)).unwrap();
        let content = format!("by {name}");
        write(folder.join(name), &content, REPLACE).unwrap();
        assert_eq!(folder.content(real), content);
        assert_eq!(fs::read_link(folder.join(name)).unwrap(), link);
        assert!(!fs::symlink_metadata(folder.join(real)).unwrap().is_symlink());
    }
    assert_eq!(names(&folder.join("deep")), ["new", "up"]);
}

#[test]
fn chains_of_links_end_at_forty() {
    let folder = Folder::with(&[("0", "old")]);
    for number in 1..=41 {
        symlink((number - 1).to_string(), folder.join(&number.to_string())).unwrap();
    }
    write(folder.join("40"), "new", REPLACE).unwrap();
    assert_eq!(folder.content("0"), "new");
    assert_eq!(code(folder.join("41")), "io-system");
}

#[test]
fn without_leave_a_link_to_a_file_is_that_file_and_one_to_nothing_is_none() {
    let folder = Folder::with(&[("old", "old")]);
    symlink("old", folder.join("to-old")).unwrap();
    symlink("new", folder.join("to-new")).unwrap();
    let error = NewFile::create(folder.join("to-old"), &KEEP).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Exists));
    assert_eq!(error.path(), folder.join("old"));
    write(folder.join("to-new"), "new", KEEP).unwrap();
    assert_eq!(folder.content("new"), "new");
}

#[test]
fn other_names_of_a_replaced_file_keep_it() {
    let folder = Folder::with(&[("m", "old")]);
    fs::hard_link(folder.join("m"), folder.join("other")).unwrap();
    write(folder.join("m"), "new", REPLACE).unwrap();
    assert_eq!((folder.content("m"), folder.content("other")), ("new".into(), "old".into()));
}

#[test]
fn names_of_every_length_and_of_any_bytes() {
    let folder = Folder::new();
    let names: Vec<Vec<u8>> = vec![
        b"x".into(),
        b".".repeat(3),
        b" ".into(),
        b"-".into(),
        b"a\nb".into(),
        b"not utf-8 \xff\xfe".into(),
        b"\xff".repeat(255),
        b"x".repeat(255),
        "\u{1F980}".repeat(63).into(),
    ];
    for name in &names {
        let path = folder.path().join(OsStr::from_bytes(name));
        for _ in 0..2 {
            let mut file = NewFile::create(&path, &REPLACE).unwrap();
            file.prepare().unwrap();
            file.commit().unwrap();
        }
    }
    assert_eq!(folder.names().len(), names.len());
}

#[cfg(target_os = "linux")]
#[test]
fn a_target_is_the_same_when_the_working_folder_is_another() {
    crate::child::in_a_child(
        "targets::a_target_is_the_same_when_the_working_folder_is_another",
        || {
            let folder = Folder::new();
            fs::create_dir(folder.join("other")).unwrap();
            std::env::set_current_dir(folder.path()).unwrap();
            let mut file = NewFile::create("m", &KEEP).unwrap();
            assert_eq!(file.target(), Path::new("m"));
            std::env::set_current_dir("other").unwrap();
            file.prepare().unwrap();
            file.commit().unwrap();
            std::env::set_current_dir("/").unwrap();
            assert_eq!(folder.names(), ["m", "other"]);
        },
    );
}
