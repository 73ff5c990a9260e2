//! A process that is killed at every call that changes anything: what it leaves is the old or the new.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use weigh_io::{FileSource, INTERRUPTED, Mended, NewFile, commit_set, mend, rewrite_head};

use crate::folder::{Folder, KEEP, REPLACE, names, write, written};
use crate::trace::{self, Traced};
use crate::user::{SOMEBODY, as_somebody, is_administrator};

/// Kills `act` at each of its calls, each time in a fresh folder, and has `check` look at what is left. At how
/// many calls it did.
fn killed_everywhere(
    traced: Traced,
    prepare: impl Fn(&Path),
    check: impl Fn(&Path, &str),
    at_least: usize,
) {
    if traced.is_child() || !trace::is_there() {
        return;
    }
    let fresh = || {
        let folder = Folder::new();
        prepare(folder.path());
        folder
    };
    let whole = fresh();
    let counts = trace::counts(&traced.calls(whole.path()));
    check(whole.path(), "the end");
    let points: usize = counts.values().sum();
    assert!(points >= at_least, "{} is killed at {points} calls only: {counts:?}", traced.name);
    for (call, count) in counts {
        for nth in 1..=count {
            let folder = fresh();
            traced.kill(folder.path(), &call, nth);
            check(folder.path(), &format!("{call} {nth} of {count}"));
        }
    }
    eprintln!("{}: killed at {points} calls", traced.name);
}

fn old() -> String {
    "old ".repeat(1000)
}

fn new() -> String {
    "new ".repeat(2000)
}

fn write_in_pieces(folder: &Path, options: weigh_io::WriteOptions) -> NewFile {
    let file = NewFile::create(folder.join("m"), &options).unwrap();
    file.reserve(new().len() as u64).unwrap();
    for (number, piece) in new().as_bytes().chunks(200).enumerate() {
        file.write_at(piece, number as u64 * 200).unwrap();
    }
    file
}

/// The file is the old or the new, and beside it there is a temporary one at most.
fn is_old_or_new(folder: &Path, before: Option<&str>, after: &str, at: &str) {
    let now = fs::read_to_string(folder.join("m")).ok();
    let is_new = now.as_deref() == Some(after);
    assert!(is_new || now.as_deref() == before, "{at}: {now:?}");
    assert!(is_new || at != "the end");
    let mut left = names(folder);
    left.retain(|name| name != "m");
    let is_temporary = |name: &String| {
        let random = name.strip_prefix(".m.weigh-").and_then(|rest| rest.strip_suffix(".tmp"));
        random.is_some_and(|random| random.len() == 8)
    };
    assert!(left.len() <= 1 && left.iter().all(is_temporary), "{at}: {left:?}");
    // The next one does not mind.
    write(folder.join("m"), "next", REPLACE).unwrap();
    assert_eq!(fs::read_to_string(folder.join("m")).unwrap(), "next");
}

#[test]
fn a_file_that_replaces_one() {
    let act = |folder: &Path| write_in_pieces(folder, REPLACE).commit().unwrap();
    let traced = Traced { name: "crash::a_file_that_replaces_one", act };
    let prepare = |folder: &Path| fs::write(folder.join("m"), old()).unwrap();
    killed_everywhere(
        traced,
        prepare,
        |folder, at| is_old_or_new(folder, Some(&old()), &new(), at),
        45,
    );
}

#[test]
fn a_file_that_replaces_one_by_a_name_it_had_before() {
    let act = |folder: &Path| {
        let mut file = write_in_pieces(folder, REPLACE);
        file.prepare().unwrap();
        file.commit().unwrap();
    };
    let traced = Traced { name: "crash::a_file_that_replaces_one_by_a_name_it_had_before", act };
    let prepare = |folder: &Path| fs::write(folder.join("m"), old()).unwrap();
    killed_everywhere(
        traced,
        prepare,
        |folder, at| is_old_or_new(folder, Some(&old()), &new(), at),
        45,
    );
}

#[test]
fn a_file_where_none_was() {
    let act = |folder: &Path| write_in_pieces(folder, KEEP).commit().unwrap();
    let traced = Traced { name: "crash::a_file_where_none_was", act };
    killed_everywhere(traced, |_| {}, |folder, at| is_old_or_new(folder, None, &new(), at), 43);
}

#[test]
fn a_file_that_is_copied_over_its_source() {
    let act = |folder: &Path| {
        let source = FileSource::open(folder.join("m")).unwrap();
        let file = NewFile::create(folder.join("m"), &REPLACE).unwrap();
        file.reserve(8000).unwrap();
        file.write_at("new ".repeat(1000).as_bytes(), 0).unwrap();
        file.copy_at(&source, 0..4000, 4000, None, &|_| {}).unwrap();
        file.commit().unwrap();
    };
    let traced = Traced { name: "crash::a_file_that_is_copied_over_its_source", act };
    let prepare = |folder: &Path| fs::write(folder.join("m"), old()).unwrap();
    let after = "new ".repeat(1000) + &old();
    let check = |folder: &Path, at: &str| is_old_or_new(folder, Some(&old()), &after, at);
    killed_everywhere(traced, prepare, check, 6);
}

const MEMBERS: [&str; 4] = ["1", "2", "3", "4"];

fn write_set(folder: &Path) {
    let new = |name: &str| written(folder.join(name), "new", REPLACE).unwrap();
    let seal = Some(new("index"));
    commit_set(MEMBERS.map(new).into(), seal, &[folder.join("5"), folder.join("6")]).unwrap();
}

/// What the set is: `old`, `new`, or nothing that looks whole.
fn is_set_whole(folder: &Path, old: &[&str], at: &str) {
    let content = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let all = |names: &[&str], want: &str| {
        names.iter().all(|name| content(name).is_some_and(|content| content == want))
    };
    match content("index").as_deref() {
        Some("new") => assert!(all(&MEMBERS, "new"), "{at}"),
        Some("old") => assert!(all(old, "old"), "{at}"),
        Some(other) => panic!("{at}: {other}"),
        // Without an index, what is there under all the names is one set.
        None => {
            assert!(at != "the end");
            let both: Vec<&str> = old.iter().copied().filter(|it| MEMBERS.contains(it)).collect();
            let is_there = both.iter().all(|name| content(name).is_some());
            assert!(!is_there || all(&both, "old") || all(&both, "new"), "{at}");
            // The new set is all there only with nothing old in it.
            let is_there = MEMBERS.iter().all(|name| content(name).is_some());
            assert!(!is_there || all(&MEMBERS, "old") || all(&MEMBERS, "new"), "{at}");
        }
    }
    if at == "the end" {
        assert_eq!(names(folder), ["1", "2", "3", "4", "index"]);
    }
}

#[test]
fn a_set_that_replaces_one() {
    let traced = Traced { name: "crash::a_set_that_replaces_one", act: write_set };
    if traced.is_child() {
        return;
    }
    for old in [&["1", "2", "3", "5", "6"][..], &["2", "3"], &["1"], &["1", "2", "3", "4"]] {
        let prepare = |folder: &Path| {
            for name in old.iter().chain(&["index"]) {
                fs::write(folder.join(name), "old").unwrap();
            }
        };
        killed_everywhere(traced, prepare, |folder, at| is_set_whole(folder, old, at), 30);
    }
}

#[test]
fn a_set_where_none_was() {
    let traced = Traced { name: "crash::a_set_where_none_was", act: write_set };
    killed_everywhere(traced, |_| {}, |folder, at| is_set_whole(folder, &[], at), 25);
}

const OLD_HEAD: &[u8] = b"the old head";
const NEW_HEAD: &[u8] = b"some new one";

fn headed(head: &[u8]) -> Vec<u8> {
    [head, b" and the body"].concat()
}

fn edit(folder: &Path) {
    rewrite_head(&folder.join("m"), OLD_HEAD, NEW_HEAD).unwrap();
}

/// The file is the old, or the new, or marked and mended to be the old.
fn is_sound_or_mended(folder: &Path, at: &str) {
    let path = folder.join("m");
    let now = fs::read(&path).unwrap();
    let is_marked = now.starts_with(&INTERRUPTED);
    assert!(is_marked || now == headed(OLD_HEAD) || now == headed(NEW_HEAD), "{at}: {now:?}");
    let mended = mend(&path).unwrap();
    assert_eq!(matches!(mended, Mended::RolledBack { .. }), is_marked, "{at}");
    let want = if is_marked { headed(OLD_HEAD) } else { now };
    assert_eq!(fs::read(&path).unwrap(), want, "{at}");
    assert_eq!(names(folder), ["m"], "{at}");
    assert_eq!(mend(&path).unwrap(), Mended::Nothing);
}

#[test]
fn an_edit_in_place() {
    let traced = Traced { name: "crash::an_edit_in_place", act: edit };
    let prepare = |folder: &Path| fs::write(folder.join("m"), headed(OLD_HEAD)).unwrap();
    let check = |folder: &Path, at: &str| {
        is_sound_or_mended(folder, at);
        assert!(at != "the end" || fs::read(folder.join("m")).unwrap() == headed(NEW_HEAD));
    };
    killed_everywhere(traced, prepare, check, 11);
}

#[test]
fn an_edit_that_is_undone_after_it_was_cut_off_anywhere() {
    let name = "crash::an_edit_that_is_undone_after_it_was_cut_off_anywhere";
    let undo = |folder: &Path| {
        mend(&folder.join("m")).unwrap();
    };
    let traced = Traced { name, act: undo };
    if traced.is_child() || !trace::is_there() {
        return;
    }
    let edit = Traced { name: "crash::an_edit_in_place", act: edit };
    let begun = || {
        let folder = Folder::new();
        fs::write(folder.join("m"), headed(OLD_HEAD)).unwrap();
        folder
    };
    let mut marked = 0;
    for (call, count) in trace::counts(&edit.calls(begun().path())) {
        for nth in 1..=count {
            let folder = begun();
            edit.kill(folder.path(), &call, nth);
            let left: Vec<_> = names(folder.path())
                .into_iter()
                .map(|it| (fs::read(folder.join(&it)).unwrap(), it))
                .collect();
            if left.len() < 2 {
                continue;
            }
            let prepare = |folder: &Path| {
                for (content, name) in &left {
                    fs::write(folder.join(name), content).unwrap();
                }
            };
            marked += usize::from(fs::read(folder.join("m")).unwrap().starts_with(&INTERRUPTED));
            killed_everywhere(traced, prepare, is_sound_or_mended, 2);
        }
    }
    assert!(marked >= 4, "{marked}");
}

#[test]
fn nobody_may_read_more_of_a_journal_than_of_its_file() {
    let name = "crash::nobody_may_read_more_of_a_journal_than_of_its_file";
    let act = |folder: &Path| {
        let is_theirs = fs::metadata(folder.join("m")).unwrap().uid() == SOMEBODY;
        if is_theirs { edit(folder) } else { as_somebody(|| edit(folder)) }
    };
    let traced = Traced { name, act };
    if traced.is_child() || !trace::is_there() {
        return;
    }
    if !is_administrator() {
        eprintln!("skipped: only the administrator can give a file away");
        return;
    }
    for (owner, group, mode, want) in [
        // The administrator edits somebody's file: the journal is theirs.
        (SOMEBODY, SOMEBODY + 1, 0o640, (SOMEBODY, SOMEBODY + 1, 0o640)),
        (SOMEBODY, SOMEBODY + 1, 0o755, (SOMEBODY, SOMEBODY + 1, 0o644)),
        // Somebody edits another's file, in a group of theirs and in one that is none.
        (0, SOMEBODY, 0o660, (SOMEBODY, SOMEBODY, 0o660)),
        (0, 0, 0o606, (SOMEBODY, SOMEBODY, 0o600)),
        (0, 0, 0o646, (SOMEBODY, SOMEBODY, 0o644)),
    ] {
        let folder = Folder::with(&[("m", "the old head and the body")]);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        chown(folder.join("m"), Some(owner), Some(group)).unwrap();
        fs::set_permissions(folder.join("m"), Permissions::from_mode(mode)).unwrap();
        traced.kill(folder.path(), "fdatasync", 1);
        let journal = fs::metadata(folder.join(".m.weigh-journal")).unwrap();
        let is = (journal.uid(), journal.gid(), journal.mode() & 0o7777);
        assert_eq!(is, want, "{owner} {group} {mode:o}");
    }
}
