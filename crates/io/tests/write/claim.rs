//! Files that are read to be replaced, and that nobody else edits meanwhile.

use std::fs;

use weigh_io::{Claims, FileSource, INTERRUPTED, mend, rewrite_head};

use crate::folder::{Folder, REPLACE, write};

fn code<T>(result: Result<T, weigh_io::Error>) -> &'static str {
    result.err().map_or("done", |error| error.code())
}

#[test]
fn what_is_claimed_is_edited_by_nobody_else() {
    let folder = Folder::with(&[("m", "old head"), ("other", "old head")]);
    let (path, other) = (folder.join("m"), folder.join("other"));
    let sources = [&path, &other].map(|path| FileSource::open(path).unwrap());
    let again = FileSource::open(&path).unwrap();
    let targets = || [path.as_path()];
    let claims = Claims::of_replaced(&sources, targets()).unwrap();
    // By the same source, by another, and in place.
    assert_eq!(code(Claims::of_replaced(&sources, targets())), "io-locked");
    assert_eq!(code(Claims::of_replaced([&again], targets())), "io-locked");
    assert_eq!(code(rewrite_head(&path, b"old head", b"new head")), "io-locked");
    // What is not replaced is not claimed, nor is it locked for readers.
    assert_eq!(code(rewrite_head(&other, b"old head", b"new head")), "done");
    assert_eq!(code(Claims::of_replaced([&again], [folder.join("absent").as_path()])), "done");
    claims.verify().unwrap();
    drop(claims);
    assert_eq!(code(Claims::of_replaced([&again], targets())), "done");
    assert_eq!(code(rewrite_head(&path, b"old head", b"new head")), "done");
}

#[cfg(unix)]
#[test]
fn a_target_is_known_whatever_its_path() {
    let folder = Folder::with(&[("m", "old head")]);
    std::os::unix::fs::symlink("m", folder.join("link")).unwrap();
    fs::hard_link(folder.join("m"), folder.join("other name")).unwrap();
    let source = FileSource::open(folder.join("m")).unwrap();
    for target in ["link", "other name"] {
        let claims = Claims::of_replaced([&source], [folder.join(target).as_path()]).unwrap();
        assert_eq!(code(rewrite_head(&folder.join("m"), b"old head", b"new head")), "io-locked");
        drop(claims);
    }
}

#[test]
fn what_changed_before_is_not_claimed_and_what_changes_after_is_told() {
    let folder = Folder::with(&[("m", "old head")]);
    let path = folder.join("m");
    let source = FileSource::open(&path).unwrap();
    let claims = Claims::of_replaced([&source], [path.as_path()]).unwrap();
    write(path.clone(), "another file", REPLACE).unwrap();
    assert_eq!(code(claims.verify()), "io-changed");
    drop(claims);
    // Of which there is no need if it is not there any more.
    assert_eq!(code(Claims::of_replaced([&source], [path.as_path()])), "done");

    let source = FileSource::open(&path).unwrap();
    fs::write(&path, "a longer one by now").unwrap();
    assert_eq!(code(Claims::of_replaced([&source], [path.as_path()])), "io-changed");
}

#[test]
fn a_journal_goes_unless_its_edit_was_cut_off() {
    let folder = Folder::with(&[("m", "old head"), (".m.weigh-journal", "stale")]);
    let path = folder.join("m");
    let source = FileSource::open(&path).unwrap();
    drop(Claims::of_replaced([&source], [path.as_path()]).unwrap());
    assert_eq!(folder.names(), ["m"]);

    fs::write(&path, [&INTERRUPTED[..], b"head"].concat()).unwrap();
    fs::write(folder.join(".m.weigh-journal"), "the only one").unwrap();
    let source = FileSource::open(&path).unwrap();
    assert_eq!(code(Claims::of_replaced([&source], [path.as_path()])), "io-changed");
    assert_eq!(folder.names(), [".m.weigh-journal", "m"]);
    assert_eq!(code(mend(&path)), "io-interrupted-edit");
}
