//! What holds of every new file.

use std::fs;
use std::sync::Barrier;
use std::thread;

use weigh_io::{NewFile, WriteOptions};

use crate::folder::{Folder, KEEP, REPLACE, write, written};

#[test]
fn the_default_replaces_nothing_and_syncs() {
    assert_eq!(WriteOptions::default(), KEEP);
}

#[test]
fn a_target_is_the_old_file_until_the_new_one_is_complete() {
    for sync in [true, false] {
        let options = WriteOptions { replace: true, sync };
        for before in [None, Some("old")] {
            let folder = Folder::new();
            if let Some(content) = before {
                fs::write(folder.join("m"), content).unwrap();
            }
            let seen = || fs::read_to_string(folder.join("m")).ok();
            let mut file = NewFile::create(folder.join("m"), &options).unwrap();
            assert_eq!(file.target(), folder.join("m"));
            file.reserve(3).unwrap();
            file.write_at(b"ew", 1).unwrap();
            file.write_at(b"n", 0).unwrap();
            assert_eq!(seen().as_deref(), before);
            file.prepare().unwrap();
            assert_eq!(seen().as_deref(), before);
            file.commit().unwrap();
            assert_eq!(seen().as_deref(), Some("new"));
            assert_eq!(folder.names(), ["m"]);
        }
    }
}

#[test]
fn one_that_is_dropped_leaves_nothing_whenever_that_is() {
    let folder = Folder::with(&[("m", "old")]);
    for name in ["m", "n"] {
        drop(NewFile::create(folder.join(name), &REPLACE).unwrap());
        let mut file = written(folder.join(name), "new", REPLACE).unwrap();
        file.prepare().unwrap();
        assert_eq!(folder.names().len(), 2, "the file and its temporary name");
        drop(file);
        assert_eq!(folder.names(), ["m"]);
        assert_eq!(folder.content("m"), "old");
    }
}

#[test]
fn nothing_is_written_to_one_that_is_complete() {
    let folder = Folder::new();
    let mut file = written(folder.join("m"), "new", KEEP).unwrap();
    file.prepare().unwrap();
    file.prepare().unwrap();
    assert_eq!(file.write_at(b"x", 0).unwrap_err().code(), "io-misuse");
    assert_eq!(file.reserve(9).unwrap_err().code(), "io-misuse");
    file.commit().unwrap();
    assert_eq!(folder.content("m"), "new");
}

#[test]
fn what_is_reserved_and_not_written_is_zeros() {
    let folder = Folder::new();
    for (length, at, want) in [
        (0, None, &b""[..]),
        (4, None, b"\0\0\0\0"),
        (4, Some(1), b"\0x\0\0"),
        (0, Some(2), b"\0\0x"),
        (1, Some(2), b"\0\0x"),
    ] {
        let file = NewFile::create(folder.join("m"), &REPLACE).unwrap();
        file.reserve(length).unwrap();
        if let Some(at) = at {
            file.write_at(b"x", at).unwrap();
        }
        file.write_at(b"", 99).unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(folder.join("m")).unwrap(), want, "{length} {at:?}");
    }
}

#[test]
fn several_threads_write_one_file() {
    let folder = Folder::new();
    let file = NewFile::create(folder.join("m"), &KEEP).unwrap();
    file.reserve(8 * 1000).unwrap();
    thread::scope(|scope| {
        for number in 0..8_u8 {
            let file = &file;
            scope.spawn(move || file.write_at(&[number; 1000], u64::from(number) * 1000).unwrap());
        }
    });
    file.commit().unwrap();
    let content = fs::read(folder.join("m")).unwrap();
    assert!((0..8_u8).flat_map(|number| [number; 1000]).eq(content));
}

#[test]
fn an_offset_past_every_file_is_an_error() {
    let folder = Folder::new();
    let file = NewFile::create(folder.join("m"), &KEEP).unwrap();
    for offset in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1] {
        assert_eq!(file.write_at(b"xx", offset).unwrap_err().code(), "io-too-large", "{offset}");
    }
    assert_eq!(file.reserve(u64::MAX).unwrap_err().code(), "io-too-large");
}

#[test]
fn without_leave_nothing_is_replaced() {
    let folder = Folder::with(&[("m", "old")]);
    assert_eq!(NewFile::create(folder.join("m"), &KEEP).unwrap_err().code(), "io-exists");
    for is_prepared in [false, true] {
        // One that comes up while the new one is written.
        let mut file = written(folder.join("n"), "new", KEEP).unwrap();
        if is_prepared {
            file.prepare().unwrap();
        }
        fs::write(folder.join("n"), "other").unwrap();
        assert_eq!(file.commit().unwrap_err().code(), "io-exists");
        assert_eq!(folder.content("n"), "other");
        fs::remove_file(folder.join("n")).unwrap();
    }
    assert_eq!(folder.names(), ["m"]);
    assert_eq!(folder.content("m"), "old");
}

#[test]
fn with_leave_what_came_up_or_went_meanwhile_does_not_matter() {
    let folder = Folder::with(&[("gone", "old")]);
    let files = ["gone", "came"].map(|name| written(folder.join(name), "new", REPLACE).unwrap());
    fs::remove_file(folder.join("gone")).unwrap();
    fs::write(folder.join("came"), "old").unwrap();
    for file in files {
        file.commit().unwrap();
    }
    assert_eq!(folder.names(), ["came", "gone"]);
    assert_eq!((folder.content("came"), folder.content("gone")), ("new".into(), "new".into()));
}

#[test]
fn of_writers_to_one_target_exactly_one_wins() {
    for is_prepared in [false, true] {
        for _ in 0..20 {
            let folder = Folder::new();
            let together = Barrier::new(4);
            let write = |content: &str| {
                let mut file = written(folder.join("m"), content, KEEP).unwrap();
                if is_prepared {
                    file.prepare().unwrap();
                }
                together.wait();
                file.commit().map_err(|error| error.code())
            };
            let results = thread::scope(|scope| {
                let write = &write;
                let writers = ["a", "b", "c", "d"].map(|it| (it, scope.spawn(move || write(it))));
                writers.map(|(content, writer)| (content, writer.join().unwrap()))
            });
            let won: Vec<_> = results.iter().filter(|(_, result)| result.is_ok()).collect();
            assert_eq!(won.len(), 1, "{results:?}");
            assert_eq!(folder.content("m"), won[0].0);
            let lost = results.iter().filter(|(_, result)| *result == Err("io-exists"));
            assert_eq!(lost.count(), 3, "{results:?}");
            assert_eq!(folder.names(), ["m"]);
        }
    }
}

#[test]
fn of_writers_that_replace_the_last_wins_and_each_is_whole() {
    let folder = Folder::with(&[("m", "old")]);
    let contents = ["a", "b", "c", "d"].map(|it| it.repeat(100_000));
    thread::scope(|scope| {
        for content in &contents {
            scope.spawn(|| write(folder.join("m"), content, REPLACE).unwrap());
        }
    });
    assert!(contents.contains(&folder.content("m")));
    assert_eq!(folder.names(), ["m"]);
}

#[test]
fn whoever_has_the_old_file_keeps_it() {
    use weigh_io::FileSource;
    let folder = Folder::with(&[("m", "old")]);
    let source = FileSource::open(folder.join("m")).unwrap();
    let file = NewFile::create(folder.join("m"), &REPLACE).unwrap();
    file.copy_at(&source, 0..3, 2, None, &|_| {}).unwrap();
    file.write_at(b"my", 0).unwrap();
    file.commit().unwrap();
    assert_eq!(folder.content("m"), "myold");
    assert_eq!(source.read_span(0..3).unwrap(), b"old");
}
