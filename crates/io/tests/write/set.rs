//! Files that are whole only together.

use std::fs;

use weigh_io::{NewFile, WriteOptions, commit_set};

use crate::folder::{Folder, KEEP, REPLACE, written};

/// New files with these names, whose content is `new` and the name.
fn new(folder: &Folder, names: &[&str], options: WriteOptions) -> Vec<NewFile> {
    let file = |name: &&str| written(folder.join(name), &format!("new {name}"), options).unwrap();
    names.iter().map(file).collect()
}

fn one(folder: &Folder, name: &str, options: WriteOptions) -> Option<NewFile> {
    new(folder, &[name], options).pop()
}

/// Names with the first word of what is in each.
fn state(folder: &Folder) -> Vec<(String, String)> {
    let word =
        |name: &String| folder.content(name).split(' ').next().unwrap_or_default().to_owned();
    folder.names().into_iter().map(|name| (name.clone(), word(&name))).collect()
}

fn is(folder: &Folder, want: &[(&str, &str)]) {
    let want: Vec<_> = want.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(state(folder), want);
}

#[test]
fn a_set_takes_the_place_of_another_and_what_is_stale_goes() {
    for sync in [true, false] {
        let options = WriteOptions { replace: true, sync };
        let folder = Folder::with(&[
            ("1", "old"),
            ("2", "old"),
            ("3", "old"),
            ("index", "old"),
            ("own", "old"),
        ]);
        let stale = ["3", "1", "gone", "index"].map(|name| folder.join(name));
        let members = new(&folder, &["2", "1", "4"], options);
        commit_set(members, one(&folder, "index", options), &stale).unwrap();
        is(&folder, &[("1", "new"), ("2", "new"), ("4", "new"), ("index", "new"), ("own", "old")]);
    }
}

#[test]
fn there_need_be_no_seal_no_member_and_nothing_stale() {
    let folder = Folder::with(&[("index", "old"), ("1", "old"), ("2", "old")]);
    commit_set(vec![], None, &[]).unwrap();
    is(&folder, &[("1", "old"), ("2", "old"), ("index", "old")]);
    commit_set(vec![], one(&folder, "index", REPLACE), &[]).unwrap();
    is(&folder, &[("1", "old"), ("2", "old"), ("index", "new")]);
    let stale = ["index", "1", "2"].map(|name| folder.join(name));
    commit_set(new(&folder, &["all"], KEEP), None, &stale).unwrap();
    is(&folder, &[("all", "new")]);
}

#[test]
fn without_leave_to_replace_one_the_set_is_not_begun() {
    for (members, seal) in [(&["1", "2"][..], "index"), (&["1", "3"], "other"), (&["3"], "index")] {
        let folder = Folder::new();
        let files = new(&folder, members, KEEP);
        let seal = one(&folder, seal, KEEP);
        // They come up while the new ones are written.
        for name in ["2", "1", "index"] {
            fs::write(folder.join(name), "old").unwrap();
        }
        let error = commit_set(files, seal, &[folder.join("1")]).unwrap_err();
        assert_eq!(error.code(), "io-exists");
        is(&folder, &[("1", "old"), ("2", "old"), ("index", "old")]);
    }
}

#[test]
fn two_files_with_one_target_are_refused() {
    let folder = Folder::with(&[("1", "old")]);
    for (members, seal) in [(&["1", "1"][..], None), (&["1", "2"], Some("2"))] {
        let seal = seal.and_then(|name| one(&folder, name, REPLACE));
        let error = commit_set(new(&folder, members, REPLACE), seal, &[]).unwrap_err();
        assert_eq!(error.code(), "io-exists");
        is(&folder, &[("1", "old")]);
    }
}

#[test]
fn a_set_that_an_error_cuts_off_leaves_what_was_there() {
    // A folder comes up where the first or the last of the members, or the seal, is to be.
    for blocked in ["1", "3", "index"] {
        for old in [&[][..], &["1", "2"], &["2", "3"], &["1", "2", "3", "index"], &["index"]] {
            let folder = Folder::new();
            for name in old.iter().filter(|name| **name != blocked) {
                fs::write(folder.join(name), "old").unwrap();
            }
            fs::write(folder.join("stale"), "old").unwrap();
            let members = new(&folder, &["1", "2", "3"], REPLACE);
            let seal = one(&folder, "index", REPLACE);
            fs::create_dir(folder.join(blocked)).unwrap();
            fs::write(folder.join(blocked).join("x"), "").unwrap();
            let error = commit_set(members, seal, &[folder.join("stale")]).unwrap_err();
            assert_eq!((error.code(), error.path()), ("io-is-folder", &*folder.join(blocked)));
            fs::remove_dir_all(folder.join(blocked)).unwrap();
            let mut want: Vec<_> = old.iter().filter(|name| **name != blocked).collect();
            want.sort();
            let want: Vec<_> = want.into_iter().map(|name| (*name, "old")).collect();
            is(&folder, &[&want[..], &[("stale", "old")]].concat());
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_member_that_cannot_be_replaced_leaves_all_of_them() {
    use std::process::Command;
    let chattr = |flag: &str, path: &std::path::Path| {
        let status = Command::new("chattr").arg(flag).arg(path).output();
        status.is_ok_and(|output| output.status.success())
    };
    for fixed in ["1", "2", "3", "stale", "index"] {
        let names = ["1", "2", "3", "index", "stale"];
        let folder = Folder::with(&names.map(|name| (name, "old")));
        let members = new(&folder, &["1", "2", "3"], REPLACE);
        let seal = one(&folder, "index", REPLACE);
        if !chattr("+i", &folder.join(fixed)) {
            eprintln!("skipped: no file can be made one that does not change");
            return;
        }
        let result = commit_set(members, seal, &[folder.join("stale")]);
        assert!(chattr("-i", &folder.join(fixed)));
        assert_eq!(result.unwrap_err().code(), "io-denied", "{fixed}");
        let word = if fixed == "stale" { "new" } else { "old" };
        let want = names.map(|name| (name, if name == "stale" { "old" } else { word }));
        is(&folder, &want);
    }
}

#[cfg(unix)]
#[test]
fn two_sets_are_not_put_in_one_folder_at_once() {
    let folder = Folder::with(&[("1", "old"), ("index", "old")]);
    // As another that is at it holds it.
    let other = fs::File::open(folder.path()).unwrap();
    other.lock().unwrap();
    let write = || {
        let members = new(&folder, &["1", "2"], REPLACE);
        commit_set(members, one(&folder, "index", REPLACE), &[])
    };
    let error = write().unwrap_err();
    assert_eq!((error.code(), error.path()), ("io-locked", folder.path()));
    // One file is no set: whoever puts one into the folder need not wait for a set.
    commit_set(new(&folder, &["alone"], REPLACE), None, &[]).unwrap();
    fs::remove_file(folder.join("alone")).unwrap();
    is(&folder, &[("1", "old"), ("index", "old")]);
    other.unlock().unwrap();
    write().unwrap();
    is(&folder, &[("1", "new"), ("2", "new"), ("index", "new")]);
}

#[cfg(unix)]
#[test]
fn of_sets_that_come_at_once_the_files_are_never_mixed() {
    let names = ["1", "2", "3", "4"];
    let folder = Folder::new();
    let write = |word: &str| {
        for _ in 0..30 {
            let file = |name: &&str| written(folder.join(name), word, REPLACE).unwrap();
            let members = names.iter().map(file).collect();
            let seal = Some(written(folder.join("index"), word, REPLACE).unwrap());
            match commit_set(members, seal, &[]) {
                Ok(()) => {}
                Err(error) => assert_eq!(error.code(), "io-locked", "{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        for word in ["a", "b", "c"] {
            scope.spawn(move || write(word));
        }
    });
    let word = folder.content("index");
    is(&folder, &["1", "2", "3", "4", "index"].map(|name| (name, word.as_str())));
}

#[cfg(unix)]
#[test]
fn what_a_run_that_was_killed_set_aside_goes_when_another_set_is_whole_and_not_before() {
    let begun = || {
        let folder = Folder::with(&[
            // All of the run that had set the old seal aside.
            (".index.weigh-0123abcd.old", "old"),
            (".5.weigh-0123abcd.old", "old"),
            // Of other runs, of which nothing is known, and files with other names.
            (".5.weigh-0123abce.old", "old"),
            (".index.weigh-0123.old", "own"),
            ("index.weigh-0123abcd.old", "own"),
        ]);
        fs::create_dir(folder.join(".6.weigh-0123abcd.old")).unwrap();
        folder
    };
    let left = [
        (".5.weigh-0123abce.old", "old"),
        (".index.weigh-0123.old", "own"),
        ("1", "new"),
        ("2", "new"),
        ("index", "new"),
        ("index.weigh-0123abcd.old", "own"),
    ];
    for (options, is_removed) in [(REPLACE, true), (KEEP, false)] {
        let folder = begun();
        let members = new(&folder, &["1", "2"], options);
        let seal = one(&folder, "index", options);
        assert!(folder.names().contains(&".index.weigh-0123abcd.old".to_owned()));
        commit_set(members, seal, &[]).unwrap();
        fs::remove_dir(folder.join(".6.weigh-0123abcd.old")).unwrap();
        if is_removed {
            is(&folder, &left);
        } else {
            assert_eq!(folder.names().len(), left.len() + 2);
        }
    }
    // An error is no set that is whole.
    let folder = begun();
    let before = folder.names();
    let members = new(&folder, &["1", "2"], REPLACE);
    fs::create_dir(folder.join("2")).unwrap();
    commit_set(members, one(&folder, "index", REPLACE), &[]).unwrap_err();
    fs::remove_dir(folder.join("2")).unwrap();
    assert_eq!(folder.names(), before);
}

#[test]
fn one_that_cannot_be_removed_is_an_error_and_the_set_is_whole() {
    let folder = Folder::with(&[("1", "old"), ("index", "old")]);
    fs::create_dir(folder.join("stale")).unwrap();
    let stale = [folder.join("stale")];
    commit_set(new(&folder, &["1"], REPLACE), one(&folder, "index", REPLACE), &stale).unwrap_err();
    fs::remove_dir(folder.join("stale")).unwrap();
    is(&folder, &[("1", "new"), ("index", "new")]);
}

#[cfg(unix)]
#[test]
fn members_may_be_behind_links_and_in_other_folders() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with(&[("index", "old")]);
    fs::create_dir(folder.join("blobs")).unwrap();
    fs::write(folder.join("blobs/a"), "old").unwrap();
    symlink("blobs/a", folder.join("1")).unwrap();
    symlink("blobs/b", folder.join("stale")).unwrap();
    fs::write(folder.join("blobs/b"), "old").unwrap();
    // The link to what is a target, and the target by its own name, are passed over; a stale link goes, and
    // what it points to stays.
    let stale = ["1", "blobs/a", "stale"].map(|name| folder.join(name));
    commit_set(new(&folder, &["1"], REPLACE), one(&folder, "index", REPLACE), &stale).unwrap();
    assert_eq!(folder.names(), ["1", "blobs", "index"]);
    assert_eq!(folder.content("blobs/a"), "new 1");
    assert_eq!(folder.content("blobs/b"), "old");
}
