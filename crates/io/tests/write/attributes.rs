//! What a new file has of the process, and of the file that it replaces.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{Mode, XattrFlags, lgetxattr, setxattr};
use weigh_io::NewFile;

use crate::child::in_a_child;
use crate::folder::{Folder, KEEP, REPLACE, write, written};
use crate::user::{SOMEBODY, as_somebody, is_administrator};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_new_file_has_what_the_umask_leaves() {
    in_a_child("attributes::a_new_file_has_what_the_umask_leaves", || {
        let folder = Folder::new();
        for (umask, want) in
            [(0, 0o666), (0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o777, 0)]
        {
            rustix::process::umask(Mode::from_raw_mode(umask));
            for is_prepared in [false, true] {
                let mut file = NewFile::create(folder.join("m"), &KEEP).unwrap();
                if is_prepared {
                    file.prepare().unwrap();
                }
                file.commit().unwrap();
                assert_eq!(mode(&folder.join("m")), want, "{umask:o}");
                fs::remove_file(folder.join("m")).unwrap();
            }
        }
    });
}

#[test]
fn a_replaced_file_gives_its_mode_whatever_the_umask() {
    in_a_child("attributes::a_replaced_file_gives_its_mode_whatever_the_umask", || {
        rustix::process::umask(Mode::from_raw_mode(0o077));
        let folder = Folder::with(&[("m", "old")]);
        for want in [0o644, 0o600, 0o444, 0o777, 0o4755, 0o2755, 0o1644] {
            fs::set_permissions(folder.join("m"), Permissions::from_mode(want)).unwrap();
            write(folder.join("m"), "new", REPLACE).unwrap();
            assert_eq!(mode(&folder.join("m")), want, "{want:o}");
        }
    });
}

#[test]
fn a_mode_that_changes_meanwhile_is_kept_as_it_is_by_then() {
    let folder = Folder::with(&[("m", "old")]);
    fs::set_permissions(folder.join("m"), Permissions::from_mode(0o644)).unwrap();
    let file = written(folder.join("m"), "new", REPLACE).unwrap();
    fs::set_permissions(folder.join("m"), Permissions::from_mode(0o600)).unwrap();
    file.commit().unwrap();
    assert_eq!(mode(&folder.join("m")), 0o600);
}

#[test]
fn user_attributes_are_kept() {
    let folder = Folder::with(&[("m", "old")]);
    let large = [7; 2000];
    for (name, value) in
        [("user.origin", &b"here"[..]), ("user.empty", b""), ("user.large", &large)]
    {
        if let Err(error) = setxattr(folder.join("m"), name, value, XattrFlags::empty()) {
            eprintln!("skipped: the file system has no such attributes ({error})");
            return;
        }
    }
    write(folder.join("m"), "new", REPLACE).unwrap();
    for (name, want) in [("user.origin", &b"here"[..]), ("user.empty", b""), ("user.large", &large)]
    {
        let mut value = vec![0; 4096];
        let length = lgetxattr(folder.join("m"), name, value.as_mut_slice()).unwrap();
        assert_eq!(&value[..length], want, "{name}");
    }
}

/// An access list as setfacl(1) writes it: the version; then what the owner, one more user, the group, the others
/// of those and everybody else may.
fn access_list(owner: u16, user: u16, group: u16, mask: u16, others: u16) -> Vec<u8> {
    let mut list = vec![2, 0, 0, 0];
    for (tag, allowed, id) in [
        (1_u16, owner, u32::MAX),
        (2, user, ANOTHER),
        (4, group, u32::MAX),
        (0x10, mask, u32::MAX),
        (0x20, others, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes().into_iter().chain(allowed.to_le_bytes()));
        list.extend(id.to_le_bytes());
    }
    list
}

const ANOTHER: u32 = SOMEBODY + 7;
const LIST: &str = "system.posix_acl_access";
const DEFAULT_LIST: &str = "system.posix_acl_default";

/// Gives a file or a folder an access list; says so if it can have none.
fn set_list(path: &Path, name: &str, list: &[u8]) -> bool {
    let set = setxattr(path, name, list, XattrFlags::empty());
    if let Err(error) = &set {
        eprintln!("skipped: the file system has no access lists ({error})");
    }
    set.is_ok()
}

fn list_of(path: &Path) -> Option<Vec<u8>> {
    let mut list = vec![0; 4096];
    let length = lgetxattr(path, LIST, list.as_mut_slice()).ok()?;
    list.truncate(length);
    Some(list)
}

#[test]
fn an_access_list_is_kept() {
    let folder = Folder::with(&[("m", "old")]);
    let list = access_list(6, 4, 0, 4, 0);
    if !set_list(&folder.join("m"), LIST, &list) {
        return;
    }
    write(folder.join("m"), "new", REPLACE).unwrap();
    assert_eq!(list_of(&folder.join("m")), Some(list));
    assert_eq!(mode(&folder.join("m")), 0o640);
}

#[test]
fn a_file_without_an_access_list_gets_none_from_its_folder() {
    for mode_before in [0o600, 0o640, 0o660, 0o664] {
        let folder = Folder::with(&[("m", "old")]);
        fs::set_permissions(folder.join("m"), Permissions::from_mode(mode_before)).unwrap();
        let list = access_list(7, 7, 7, 7, 0);
        if !set_list(folder.path(), DEFAULT_LIST, &list) {
            return;
        }
        write(folder.join("m"), "new", REPLACE).unwrap();
        assert_eq!(list_of(&folder.join("m")), None);
        assert_eq!(mode(&folder.join("m")), mode_before);
        // A new one has what the folder gives.
        write(folder.join("n"), "new", KEEP).unwrap();
        assert!(list_of(&folder.join("n")).is_some());
    }
}

#[test]
fn the_mask_of_an_access_list_is_not_given_to_the_group() {
    if !is_administrator() {
        eprintln!("skipped: only the administrator can give a file away");
        return;
    }
    // The mask lets one more user in, the group may nothing.
    let list = access_list(6, 6, 0, 6, 0);
    for (group, want_mode, want_list) in [(SOMEBODY, 0o660, Some(&list)), (0, 0o600, None)] {
        let folder = Folder::with(&[("m", "old")]);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        chown(folder.join("m"), Some(0), Some(group)).unwrap();
        if !set_list(&folder.join("m"), LIST, &list) {
            return;
        }
        as_somebody(|| {
            write(folder.join("m"), "new", REPLACE).unwrap();
            assert_eq!(fs::metadata(folder.join("m")).unwrap().uid(), SOMEBODY);
            assert_eq!(mode(&folder.join("m")), want_mode, "{group}");
            assert_eq!(list_of(&folder.join("m")).as_ref(), want_list, "{group}");
        });
    }
}

#[test]
fn the_administrator_gives_a_file_back_to_its_owner() {
    if !is_administrator() {
        eprintln!("skipped: only the administrator can give a file away");
        return;
    }
    let folder = Folder::with(&[("m", "old")]);
    chown(folder.join("m"), Some(SOMEBODY), Some(SOMEBODY + 1)).unwrap();
    fs::set_permissions(folder.join("m"), Permissions::from_mode(0o6750)).unwrap();
    write(folder.join("m"), "new", REPLACE).unwrap();
    let now = fs::metadata(folder.join("m")).unwrap();
    assert_eq!((now.uid(), now.gid()), (SOMEBODY, SOMEBODY + 1));
    assert_eq!(mode(&folder.join("m")), 0o6750);
}

#[test]
fn nobody_gets_more_by_a_file_that_cannot_be_given_back() {
    let folder = Folder::with(&[("m", "old")]);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(folder.join("m"), Permissions::from_mode(0o6764)).unwrap();
    as_somebody(|| {
        write(folder.join("m"), "new", REPLACE).unwrap();
        let now = fs::metadata(folder.join("m")).unwrap();
        assert_eq!((now.uid(), now.gid()), (SOMEBODY, SOMEBODY));
        assert_eq!(mode(&folder.join("m")), 0o744);
    });
}
