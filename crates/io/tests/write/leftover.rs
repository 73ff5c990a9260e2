//! What writers that were killed left: the next ones of the same target remove it, and nothing else.

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};

use weigh_io::{NewFile, WriteOptions};

use crate::child::in_a_child;
use crate::folder::{Folder, KEEP, REPLACE, write, written};
use crate::user::{SOMEBODY, is_administrator};

const LEFT: &str = ".m.weigh-0123abcd.tmp";

#[test]
fn what_was_left_of_a_target_goes_when_the_next_one_begins() {
    for options in [REPLACE, KEEP, WriteOptions { replace: false, sync: false }] {
        let folder = Folder::with(&[(LEFT, "left"), (".m.weigh-ffffffff.tmp", "")]);
        let file = written(folder.join("m"), "new", options).unwrap();
        assert!(!folder.join(LEFT).exists());
        drop(file);
        assert_eq!(folder.names(), [""; 0]);
    }
    // By another name of the target.
    let folder = Folder::with(&[(LEFT, "left"), ("m", "old")]);
    symlink("m", folder.join("link")).unwrap();
    write(folder.join("link"), "new", REPLACE).unwrap();
    assert_eq!(folder.names(), ["link", "m"]);
}

#[test]
fn nothing_else_goes() {
    let names = [
        ".m.weigh-0123ABCD.tmp",
        ".m.weigh-0123abc.tmp",
        ".m.weigh-0123abcd.old",
        ".m.weigh-0123abcd.tmp.1",
        ".m.weigh-journal",
        ".n.weigh-0123abcd.tmp",
        "m.weigh-0123abcd.tmp",
    ];
    let folder = Folder::with(&names.map(|name| (name, "own")));
    fs::create_dir(folder.join(".m.weigh-00000001.tmp")).unwrap();
    symlink("m.weigh-0123abcd.tmp", folder.join(".m.weigh-00000002.tmp")).unwrap();
    let before = folder.names();
    drop(NewFile::create(folder.join("m"), &KEEP).unwrap());
    assert_eq!(folder.names(), before);
}

#[test]
fn what_another_user_left_stays_unless_the_target_is_theirs() {
    if !is_administrator() {
        eprintln!("skipped: only the administrator can give a file away");
        return;
    }
    let folder = Folder::with(&[(LEFT, "left")]);
    chown(folder.join(LEFT), Some(SOMEBODY), None).unwrap();
    write(folder.join("m"), "new", KEEP).unwrap();
    assert_eq!(folder.names(), [LEFT, "m"]);
    // The administrator's writers give a new file to the owner of the old one before it gets its place.
    chown(folder.join("m"), Some(SOMEBODY), None).unwrap();
    write(folder.join("m"), "new", REPLACE).unwrap();
    assert_eq!(folder.names(), ["m"]);
}

#[test]
fn one_that_somebody_is_at_stays() {
    let folder = Folder::with(&[(LEFT, "another's")]);
    let other = File::open(folder.join(LEFT)).unwrap();
    other.lock().unwrap();
    write(folder.join("m"), "new", KEEP).unwrap();
    assert_eq!(folder.names(), [LEFT, "m"]);
    drop(other);
    write(folder.join("m"), "new", REPLACE).unwrap();
    assert_eq!(folder.names(), ["m"]);
}

#[test]
fn writers_of_one_target_leave_one_another_alone() {
    let folder = Folder::new();
    let begin = |content: &str| {
        let mut file = written(folder.join("m"), content, REPLACE).unwrap();
        file.prepare().unwrap();
        file
    };
    let (first, second) = (begin("first"), begin("second"));
    assert_eq!(folder.names().len(), 2);
    second.commit().unwrap();
    first.commit().unwrap();
    assert_eq!((folder.names(), folder.content("m")), (vec!["m".to_owned()], "first".to_owned()));
}

#[test]
fn many_files_may_be_complete_at_once() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    in_a_child("leftover::many_files_may_be_complete_at_once", || {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
        let folder = Folder::new();
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let file = |name: &String| {
            let mut file = written(folder.join(name), "new", KEEP).unwrap();
            file.prepare().unwrap();
            file
        };
        let files: Vec<NewFile> = names.iter().map(file).collect();
        weigh_io::commit_set(files, None, &[]).unwrap();
        assert_eq!(folder.names().len(), 100);
        // What was open for a lock is closed.
        files_can_be_opened(40);
    });
}

fn files_can_be_opened(count: usize) {
    let open: Vec<_> = (0..count).map(|_| File::open("/dev/null")).collect();
    assert!(open.iter().all(Result::is_ok));
}
