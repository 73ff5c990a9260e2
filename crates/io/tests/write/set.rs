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
fn a_set_that_an_error_cuts_off_does_not_look_whole() {
    // A folder comes up where the last of the members, or the seal, is to be.
    for blocked in ["3", "index"] {
        for old in [&[][..], &["1", "2"]] {
            let folder = Folder::new();
            for name in old {
                fs::write(folder.join(name), "old").unwrap();
            }
            let members = new(&folder, &["1", "2", "3"], REPLACE);
            let seal = one(&folder, "index", REPLACE);
            fs::create_dir(folder.join(blocked)).unwrap();
            fs::write(folder.join(blocked).join("x"), "").unwrap();
            commit_set(members, seal, &[folder.join("stale")]).unwrap_err();
            let mut left = folder.names();
            left.retain(|name| name != blocked);
            match (blocked, old.len()) {
                (_, 0) => assert!(left.is_empty(), "{left:?}"),
                ("3", _) => assert!(left.is_empty() || left == ["2"], "{left:?}"),
                // The seal's place is cleared first, and cannot be: nothing has happened.
                _ => is_old(&folder, &left),
            }
        }
    }
}

fn is_old(folder: &Folder, names: &[String]) {
    assert_eq!(names, ["1", "2"]);
    for name in names {
        assert_eq!(folder.content(name), "old");
    }
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
