//! What a file that takes another's place keeps of it: mode, owner, group and extended attributes.
//!
//! Only the owner of a file, and the administrator, may give it away. Where the owner or the group stays
//! another, the mode gives nobody more than they had.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Gives a new file what the one at `path` has.
pub(super) fn keep(file: &File, path: &Path, there: &Metadata) -> io::Result<()> {
    keep_access(file, path, there, 0o7777)?;
    #[cfg(target_os = "linux")]
    extended::copy(file, path);
    Ok(())
}

/// Gives a new file the owner and the group of the one at `path`, as far as they may be given, and as much of its
/// access list and of these bits of its mode as gives nobody more than they had.
pub(super) fn keep_access(file: &File, path: &Path, there: &Metadata, bits: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let mode = there.mode();
        #[cfg(target_os = "linux")]
        let list = extended::access_list(path)?;
        #[cfg(target_os = "linux")]
        let mode = list.as_ref().map_or(mode, |list| super::access::without_list(mode, list));
        // What the folder has given it would come into force with the mode.
        #[cfg(target_os = "linux")]
        extended::drop_access_list(file)?;
        let kept = give(file, there)?;
        // The mode comes after the owner: a file that is given away loses its set-user-ID bit.
        file.set_permissions(Permissions::from_mode(allowed(mode, kept) & bits))?;
        #[cfg(target_os = "linux")]
        if let Some(list) = list.filter(|_| kept != Kept::Neither) {
            extended::set_access_list(file, &list);
        }
    }
    #[cfg(not(unix))]
    let _ = (file, there, bits);
    #[cfg(not(target_os = "linux"))]
    let _ = path;
    Ok(())
}

/// What a new file could be given.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kept {
    OwnerAndGroup,
    Group,
    Neither,
}

#[cfg(unix)]
fn give(file: &File, there: &Metadata) -> io::Result<Kept> {
    use rustix::fs::{Gid, Uid, fchown};
    use std::os::unix::fs::MetadataExt;
    let now = file.metadata()?;
    let (owner, group) = (Uid::from_raw(there.uid()), Gid::from_raw(there.gid()));
    let (is_owners, is_groups) = (now.uid() == there.uid(), now.gid() == there.gid());
    if is_owners && is_groups {
        return Ok(Kept::OwnerAndGroup);
    }
    if !is_owners && fchown(file, Some(owner), Some(group)).is_ok() {
        return Ok(Kept::OwnerAndGroup);
    }
    let is_groups = is_groups || fchown(file, None, Some(group)).is_ok();
    Ok(match (is_owners, is_groups) {
        (true, true) => Kept::OwnerAndGroup,
        (false, true) => Kept::Group,
        (_, false) => Kept::Neither,
    })
}

/// What of a mode is kept: bits that run a program as its owner or group only where that is the same, and where
/// the group is another, no more for it than for everybody, nor for everybody, as the old group is by then, than
/// for the old group.
#[cfg(unix)]
const fn allowed(mode: u32, kept: Kept) -> u32 {
    match kept {
        Kept::OwnerAndGroup => mode & 0o7777,
        Kept::Group => mode & 0o3777,
        Kept::Neither => {
            let both = mode & mode >> 3 & 0o007;
            mode & 0o1700 | both << 3 | both
        }
    }
}

#[cfg(target_os = "linux")]
mod extended {
    use std::ffi::CStr;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, lgetxattr, llistxattr};
    use rustix::io::Errno;

    use crate::write::access;

    /// Bytes that Linux lets the list of names, and each value, have.
    const MOST_BYTES: usize = 64 << 10;

    /// The access list of a file, if it has one and is still there.
    pub(super) fn access_list(path: &Path) -> io::Result<Option<Vec<u8>>> {
        let mut list = vec![0; MOST_BYTES];
        match lgetxattr(path, access::NAME, list.as_mut_slice()) {
            Ok(length) => {
                list.truncate(length);
                Ok(Some(list))
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes away the access list that the folder gives to new files.
    pub(super) fn drop_access_list(file: &File) -> io::Result<()> {
        match fremovexattr(file, access::NAME) {
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Gives a file an access list, if it can have one. Without it, the mode stands.
    pub(super) fn set_access_list(file: &File, list: &[u8]) {
        let _ = fsetxattr(file, access::NAME, list, XattrFlags::empty());
    }

    /// Copies the attributes that users may set.
    ///
    /// As far as it can be done: a file system may have none.
    pub(super) fn copy(file: &File, path: &Path) {
        let mut names = vec![0; MOST_BYTES];
        let Ok(length) = llistxattr(path, names.as_mut_slice()) else { return };
        let names = names.get(..length).unwrap_or_default();
        let mut value = vec![0; if names.is_empty() { 0 } else { MOST_BYTES }];
        for name in names.split_inclusive(|byte| *byte == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            if !name.to_bytes().starts_with(b"user.") {
                continue;
            }
            if let Ok(length) = lgetxattr(path, name, value.as_mut_slice())
                && let Some(value) = value.get(..length)
            {
                let _ = fsetxattr(file, name, value, XattrFlags::empty());
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_allowed_more_than_before() {
        for (mode, kept, want) in [
            (0o100_644, Kept::OwnerAndGroup, 0o644),
            (0o106_755, Kept::OwnerAndGroup, 0o6755),
            (0o106_755, Kept::Group, 0o2755),
            (0o106_755, Kept::Neither, 0o755),
            (0o100_660, Kept::Neither, 0o600),
            (0o100_664, Kept::Neither, 0o644),
            // The old group is everybody by then.
            (0o100_604, Kept::Neither, 0o600),
            (0o100_646, Kept::Neither, 0o644),
            (0o100_676, Kept::Neither, 0o666),
            (0o100_000, Kept::Neither, 0),
        ] {
            assert_eq!(allowed(mode, kept), want, "{mode:o} {kept:?}");
        }
    }
}
