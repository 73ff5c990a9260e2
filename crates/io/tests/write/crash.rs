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
    // The next one does not mind, and removes it.
    write(folder.join("m"), "next", REPLACE).unwrap();
    assert_eq!(fs::read_to_string(folder.join("m")).unwrap(), "next");
    assert_eq!(names(folder), ["m"], "{at}");
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

/// What is said of a call that fails.
const ERROR: &str = "error";

/// Writes the new set; says in a file of its own if that is an error.
fn write_set(folder: &Path) {
    let new = |name: &str| written(folder.join(name), &format!("new {name}"), REPLACE);
    let write = || {
        let members = MEMBERS.map(new).into_iter().collect::<Result<_, _>>()?;
        commit_set(members, Some(new("index")?), &[folder.join("5"), folder.join("6")])
    };
    if let Err(error) = write() {
        fs::write(folder.join(ERROR), error.to_string()).unwrap();
    }
}

/// Writes the old set: these members and a seal.
fn write_old_set(folder: &Path, old: &[&str]) {
    for name in old.iter().chain(&["index"]).filter(|_| !old.is_empty()) {
        fs::write(folder.join(name), format!("old {name}")).unwrap();
    }
}

/// Whether these files are all there, with this content, under their names or those that they have before or after.
fn survives(folder: &Path, files: &[&str], word: &str) -> bool {
    let names = names(folder);
    let is_name_of = |name: &str, file: &str| {
        let rest = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(file));
        name == file || rest.is_some_and(|rest| rest.starts_with(".weigh-"))
    };
    files.iter().chain(&["index"]).all(|file| {
        names.iter().filter(|name| is_name_of(name, file)).any(|name| {
            fs::read_to_string(folder.join(name)).is_ok_and(|it| it == format!("{word} {file}"))
        })
    })
}

/// What the set is: `old`, `new`, or nothing that looks whole; and nothing is lost.
fn is_set_whole(folder: &Path, old: &[&str], at: &str) {
    let content = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let all = |names: &[&str], want: &str| {
        names.iter().all(|name| content(name).is_some_and(|it| it == format!("{want} {name}")))
    };
    match content("index").as_deref() {
        Some("new index") => assert!(all(&MEMBERS, "new"), "{at}"),
        Some("old index") => assert!(all(old, "old"), "{at}"),
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
    let has_old = !old.is_empty() && survives(folder, old, "old");
    let is_lost = !old.is_empty() && !has_old && !survives(folder, &MEMBERS, "new");
    assert!(!is_lost, "{at}: {:?}", names(folder));
    if at == "the end" {
        is_new_set(folder, at);
    }
}

fn is_new_set(folder: &Path, at: &str) {
    assert_eq!(names(folder), ["1", "2", "3", "4", "index"], "{at}");
    for name in names(folder) {
        assert_eq!(fs::read_to_string(folder.join(&name)).unwrap(), format!("new {name}"), "{at}");
    }
}

/// What the sets that are replaced have, beside a seal.
const OLD_SETS: [&[&str]; 5] =
    [&["1", "2", "3", "5", "6"], &["2", "3"], &["1"], &["5", "6"], &["1", "2", "3", "4"]];

#[test]
fn a_set_that_replaces_one() {
    let traced = Traced { name: "crash::a_set_that_replaces_one", act: write_set };
    if traced.is_child() {
        return;
    }
    for old in OLD_SETS {
        let prepare = |folder: &Path| write_old_set(folder, old);
        let check = |folder: &Path, at: &str| {
            is_set_whole(folder, old, at);
            // The next one is whole, and removes what the first left.
            write_set(folder);
            is_new_set(folder, at);
        };
        killed_everywhere(traced, prepare, check, 30);
    }
}

#[test]
fn a_set_where_none_was() {
    let traced = Traced { name: "crash::a_set_where_none_was", act: write_set };
    let check = |folder: &Path, at: &str| {
        is_set_whole(folder, &[], at);
        write_set(folder);
        is_new_set(folder, at);
    };
    killed_everywhere(traced, |_| {}, check, 25);
}

#[test]
fn a_set_that_an_error_cuts_off_is_as_it_was() {
    let name = "crash::a_set_that_an_error_cuts_off_is_as_it_was";
    let traced = Traced { name, act: write_set };
    if traced.is_child() || !trace::is_there() {
        return;
    }
    let mut undone = 0;
    for old in OLD_SETS.into_iter().chain([&[][..]]) {
        let begun = || {
            let folder = Folder::new();
            write_old_set(folder.path(), old);
            folder
        };
        let before = begun();
        let before: Vec<_> =
            before.names().into_iter().map(|it| (before.content(&it), it)).collect();
        for (call, count) in trace::counts(&traced.calls(begun().path())) {
            for nth in 1..=count {
                let (folder, at) = (begun(), format!("{call} {nth} of {count}"));
                traced.fail(folder.path(), &call, nth);
                let Ok(error) = fs::read_to_string(folder.join(ERROR)) else {
                    // It is of no consequence, as of a lock.
                    is_new_set(folder.path(), &at);
                    continue;
                };
                fs::remove_file(folder.join(ERROR)).unwrap();
                if ["/5: ", "/6: ", ".old: "].iter().any(|path| error.contains(path)) {
                    // What is stale or was set aside stays; the new set is whole without that.
                    is_set_whole(folder.path(), old, &at);
                    assert_eq!(folder.content("index"), "new index", "{at}");
                    continue;
                }
                let left: Vec<_> =
                    folder.names().into_iter().map(|it| (folder.content(&it), it)).collect();
                assert_eq!(left, before, "{at}");
                undone += 1;
            }
        }
    }
    eprintln!("undone {undone} times");
    assert!(undone > 100, "{undone}");
}

#[test]
fn a_set_that_is_being_put_back_when_it_is_killed_loses_nothing() {
    let name = "crash::a_set_that_is_being_put_back_when_it_is_killed_loses_nothing";
    let traced = Traced { name, act: write_set };
    if traced.is_child() || !trace::is_there() {
        return;
    }
    let mut killed = 0;
    for old in OLD_SETS {
        let begun = || {
            let folder = Folder::new();
            write_old_set(folder.path(), old);
            folder
        };
        // The last step fails: all of it has to be put back.
        let counts = trace::counts(&traced.calls(begun().path()));
        let failing = ("fsync", counts["fsync"]);
        for call in ["rename", "renameat2", "unlink"] {
            for nth in 1.. {
                let folder = begun();
                let is_killed = traced.fail_and_kill(folder.path(), failing, (call, nth));
                let at = format!("{old:?} {call} {nth}");
                if !is_killed {
                    fs::remove_file(folder.join(ERROR)).unwrap();
                    assert!(survives(folder.path(), old, "old"), "{at}");
                    assert_eq!(folder.names().len(), old.len() + 1, "{at}");
                    break;
                }
                is_set_whole(folder.path(), old, &at);
                write_set(folder.path());
                is_new_set(folder.path(), &at);
                killed += 1;
            }
        }
    }
    assert!(killed > 50, "{killed}");
}

const OLD_HEAD: &[u8] = b"the old head of it, which was";
const NEW_HEAD: &[u8] = b"some new one, which is to be.";

fn headed(head: &[u8]) -> Vec<u8> {
    [head, b" and the body"].concat()
}

fn edit(folder: &Path) {
    rewrite_head(&folder.join("m"), OLD_HEAD, NEW_HEAD).unwrap();
}

/// The file is the old, or the new, or marked and mended to be the old, or the new if only its mark was left.
fn is_sound_or_mended(folder: &Path, at: &str) {
    let path = folder.join("m");
    let now = fs::read(&path).unwrap();
    let is_marked = now.starts_with(&INTERRUPTED);
    assert!(is_marked || now == headed(OLD_HEAD) || now == headed(NEW_HEAD), "{at}: {now:?}");
    let is_complete = is_marked && now[8..] == headed(NEW_HEAD)[8..];
    let (want, want_mended) = match (is_complete, is_marked) {
        (true, _) => (headed(NEW_HEAD), Mended::Completed { head: 29 }),
        (false, true) => (headed(OLD_HEAD), Mended::RolledBack { head: 29 }),
        (false, false) => (now, Mended::Nothing),
    };
    let mended = mend(&path).unwrap();
    assert!(mended == want_mended || (!is_marked && mended == Mended::JournalRemoved), "{at}");
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
    killed_everywhere(traced, prepare, check, 15);
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
        let folder = Folder::with(&[("m", "the old head of it, which was and the body")]);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        chown(folder.join("m"), Some(owner), Some(group)).unwrap();
        fs::set_permissions(folder.join("m"), Permissions::from_mode(mode)).unwrap();
        traced.kill(folder.path(), "fdatasync", 1);
        let journal = fs::metadata(folder.join(".m.weigh-journal")).unwrap();
        let is = (journal.uid(), journal.gid(), journal.mode() & 0o7777);
        assert_eq!(is, want, "{owner} {group} {mode:o}");
    }
}
