//! Full disks, limits, folders that may not be written to: an error that says which, and nothing has happened.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weigh_io::{Error, ErrorKind, FileSource, NewFile, ReadError, mend, rewrite_head};

use crate::child::in_a_child;
use crate::folder::{Folder, KEEP, REPLACE, names, write};
use crate::user::as_somebody;

const MIB: u64 = 1 << 20;

/// A small file system in memory. Where other threads start processes, what they hold open for a moment is room
/// that is not free: so each has a process of its own.
struct Mount(Folder);

impl Mount {
    /// Nothing, and a word about it, if it cannot be had.
    fn new(options: &str) -> Option<Self> {
        let folder = Folder::new();
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped: mount: {error}");
                None
            }
        }
    }

    fn remount(&self, options: &str) {
        let mut command = Command::new("mount");
        let status =
            command.args(["-o", &format!("remount,{options}")]).arg(self.0.path()).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn wanted(error: &Error) -> (&'static str, u64) {
    match error.kind() {
        ErrorKind::NoSpace { wanted }
        | ErrorKind::Quota { wanted }
        | ErrorKind::TooLarge { wanted } => (error.code(), *wanted),
        _ => panic!("{error}"),
    }
}

#[test]
fn a_full_disk_is_an_error_with_the_bytes_and_the_old_file_is_whole() {
    in_a_child("room::a_full_disk_is_an_error_with_the_bytes_and_the_old_file_is_whole", || {
        let Some(mount) = Mount::new("size=1M") else { return };
        let folder = &mount.0;
        fs::write(folder.join("m"), "old").unwrap();
        let from = Folder::with(&[("large", &"x".repeat(3 << 20))]);
        let source = FileSource::open(from.join("large")).unwrap();
        let large = vec![1; 3 << 20];
        for target in ["m", "new"] {
            let file = NewFile::create(folder.join(target), &REPLACE).unwrap();
            assert_eq!(wanted(&file.reserve(3 * MIB).unwrap_err()), ("io-no-space", 3 * MIB));
            // What was reserved in vain is there again.
            file.reserve(MIB / 2).unwrap();
            drop(file);

            let file = NewFile::create(folder.join(target), &REPLACE).unwrap();
            let (code, more) = wanted(&file.write_at(&large, 0).unwrap_err());
            assert!(code == "io-no-space" && (2 * MIB..3 * MIB).contains(&more), "{code} {more}");
            drop(file);

            let file = NewFile::create(folder.join(target), &REPLACE).unwrap();
            match file.copy_at(&source, 0..3 * MIB, 0, None, &|_| {}).unwrap_err() {
                ReadError::File(error) => assert_eq!(wanted(&error).0, "io-no-space"),
                error => panic!("{error}"),
            }
            drop(file);
            assert_eq!(folder.names(), ["m"]);
            assert_eq!(folder.content("m"), "old");
        }
        write(folder.join("m"), "new", REPLACE).unwrap();
        assert_eq!(folder.content("m"), "new");
    });
}

#[test]
fn an_edit_in_place_that_the_journal_has_no_room_for_is_not_begun() {
    in_a_child("room::an_edit_in_place_that_the_journal_has_no_room_for_is_not_begun", || {
        let Some(mount) = Mount::new("size=64k") else { return };
        let folder = &mount.0;
        let (old, new) = (vec![1; 40_000], vec![2; 40_000]);
        fs::write(folder.join("m"), &old).unwrap();
        let error = rewrite_head(&folder.join("m"), &old, &new).unwrap_err();
        assert_eq!(error.code(), "io-no-space");
        assert_eq!(folder.names(), ["m"]);
        assert!(fs::read(folder.join("m")).unwrap() == old);
    });
}

#[test]
fn a_file_that_no_number_is_left_for_is_an_error() {
    in_a_child("room::a_file_that_no_number_is_left_for_is_an_error", || {
        let Some(mount) = Mount::new("size=1M,nr_inodes=2") else { return };
        fs::write(mount.0.join("m"), "old").unwrap();
        let error = write(mount.0.join("m"), "new", REPLACE).unwrap_err();
        assert_eq!(error.code(), "io-no-space", "{error}");
        assert_eq!(mount.0.content("m"), "old");
    });
}

#[test]
fn a_limit_of_the_process_is_an_error_not_its_end() {
    in_a_child("room::a_limit_of_the_process_is_an_error_not_its_end", || {
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: Some(MIB), maximum }).unwrap();
        let folder = Folder::with(&[("m", "old")]);
        let source = FileSource::open(folder.join("m")).unwrap();
        let file = NewFile::create(folder.join("m"), &REPLACE).unwrap();
        assert_eq!(wanted(&file.reserve(MIB + 1).unwrap_err()), ("io-too-large", MIB + 1));
        file.reserve(MIB).unwrap();
        file.write_at(b"x", MIB - 1).unwrap();
        assert_eq!(wanted(&file.write_at(b"xy", MIB - 1).unwrap_err()), ("io-too-large", MIB + 1));
        match file.copy_at(&source, 0..3, MIB - 2, None, &|_| {}).unwrap_err() {
            ReadError::File(error) => assert_eq!(wanted(&error), ("io-too-large", MIB + 1)),
            error => panic!("{error}"),
        }
        drop(file);
        assert_eq!((folder.names(), folder.content("m")), (vec!["m".into()], "old".into()));
    });
}

#[test]
fn a_file_system_that_is_not_written_to_says_so() {
    in_a_child("room::a_file_system_that_is_not_written_to_says_so", || {
        let Some(mount) = Mount::new("size=1M") else { return };
        let folder = &mount.0;
        fs::write(folder.join("m"), "old head").unwrap();
        fs::write(folder.join(".m.weigh-journal"), "stale").unwrap();
        mount.remount("ro");
        for (name, options) in [("m", &REPLACE), ("new", &KEEP)] {
            let error = NewFile::create(folder.join(name), options).unwrap_err();
            assert_eq!(error.code(), "io-read-only", "{name}");
        }
        let path = folder.join("m");
        assert_eq!(
            rewrite_head(&path, b"old head", b"new head").unwrap_err().code(),
            "io-read-only"
        );
        // There is nothing to undo: whoever only reads need not know.
        assert_eq!(mend(&path).unwrap(), weigh_io::Mended::Nothing);
    });
}

#[test]
fn a_folder_that_may_not_be_written_to_is_denied() {
    let folder = Folder::with(&[("m", "old head"), ("locked", "old head")]);
    fs::set_permissions(folder.join("m"), Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    as_somebody(|| {
        for (name, options) in [("m", &REPLACE), ("new", &KEEP)] {
            let error = NewFile::create(folder.join(name), options).unwrap_err();
            assert_eq!(error.code(), "io-denied", "{name}");
        }
        for name in ["m", "locked"] {
            let error = rewrite_head(&folder.join(name), b"old head", b"new head").unwrap_err();
            assert_eq!(error.code(), "io-denied", "{name}");
        }
    });
    assert_eq!(
        (folder.content("m"), folder.content("locked")),
        ("old head".into(), "old head".into())
    );
    assert_eq!(names(folder.path()), ["locked", "m"]);
}

#[test]
fn in_a_folder_for_everybody_each_replaces_their_own() {
    let folder = Folder::with(&[("theirs", "old")]);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    as_somebody(|| {
        let error = NewFile::create(folder.join("theirs"), &REPLACE).unwrap_err();
        assert_eq!(error.code(), "io-denied");
        for content in ["first", "second"] {
            write(folder.join("own"), content, REPLACE).unwrap();
        }
        assert_eq!(folder.content("own"), "second");
    });
}

#[test]
fn a_folder_that_is_gone_by_the_end_is_missing() {
    let folder = Folder::new();
    let deep = folder.join("deep");
    fs::create_dir(&deep).unwrap();
    let mut file = NewFile::create(deep.join("m"), &KEEP).unwrap();
    fs::rename(&deep, folder.join("moved")).unwrap();
    assert_eq!(file.prepare().unwrap_err().code(), "io-missing");
    drop(file);
    assert_eq!(names(Path::new(&folder.join("moved"))), Vec::<String>::new());
}
