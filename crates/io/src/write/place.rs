//! How a file gets its name, and how that gets to the disk.
//!
//! On Linux a new file has no name until it is complete, where the file system can do that: nothing is left of
//! it then, however the process ends. Elsewhere it has a name of its own beside the target from the start.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::lock;
use super::target::Target;

/// Opens a new file for a target, and says what it is called, if it has a name.
///
/// One that has a name is locked, if that can be done: one that is not is left by a process that is no more.
///
/// It is nobody else's to read where it takes the place of a file: what that file allows comes later.
pub(super) fn open_new(target: &Target) -> io::Result<(File, Option<PathBuf>)> {
    let is_private = target.there.is_some();
    if let Some(file) = system::open_unnamed(&target.folder, is_private) {
        return Ok((file, None));
    }
    open_with_name(target, is_private).map(|(file, path)| (file, Some(path)))
}

fn open_with_name(target: &Target, is_private: bool) -> io::Result<(File, PathBuf)> {
    with_new_name(target, |path| {
        let file = open_named(path, is_private)?;
        lock::claim(&file, path).map(|()| file)
    })
}

/// Gives a file without a name one that is nobody else's, beside its target, and locks it, if that can be done.
pub(super) fn name_beside(file: &File, target: &Target) -> io::Result<PathBuf> {
    let _ = file.try_lock();
    with_new_name(target, |path| system::link(file, path)).map(|((), path)| path)
}

/// Gives a file without a name that of its target, if nothing has that.
pub(super) fn name_as_target(file: &File, target: &Target) -> io::Result<()> {
    system::link(file, &target.place)
}

/// Moves a file to its target's path, replacing what is there.
pub(super) fn replace(temporary: &Path, target: &Target) -> io::Result<()> {
    fs::rename(temporary, &target.place)
}

/// Moves a file to its target's path, if nothing is there.
///
/// Of two that do this at once one gets the path; the other gets [`io::ErrorKind::AlreadyExists`]. Only on
/// file systems that know neither a rename that replaces nothing nor hard links, both may.
pub(super) fn keep(temporary: &Path, target: &Target) -> io::Result<()> {
    if let Some(result) = system::rename_without_replacing(temporary, &target.place) {
        return result;
    }
    match fs::hard_link(temporary, &target.place) {
        Ok(()) => {
            // It is in its place; its other name is one that the next writer removes.
            let _ = fs::remove_file(temporary);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if fs::symlink_metadata(&target.place).is_ok() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Err(_) => fs::rename(temporary, &target.place),
    }
}

/// Moves what is there to a path where nothing is.
pub(super) fn set_aside(from: &Path, to: &Path) -> io::Result<()> {
    match system::rename_without_replacing(from, to) {
        Some(result) => result,
        None if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        None => fs::rename(from, to),
    }
}

/// Gives a file that much room and length; whether the file system can do that.
#[cfg(target_os = "linux")]
pub(super) fn allocate(file: &File, length: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, length)) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that are free where a file is, if there is a limit to them.
pub(super) fn free(file: &File) -> Option<u64> {
    #[cfg(unix)]
    {
        let there = rustix::fs::fstatvfs(file).ok()?;
        // Some of it is kept for the administrator.
        let is_administrator = rustix::process::geteuid().is_root();
        let blocks = if is_administrator { there.f_bfree } else { there.f_bavail };
        (there.f_blocks > 0).then(|| blocks.saturating_mul(there.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it may fail on Linux")]
pub(super) fn allocate(_file: &File, _length: u64) -> io::Result<bool> {
    Ok(false)
}

/// Whether the file that is there may be replaced, as far as that can be told: in a folder where everybody may
/// write, as `/tmp`, each may only replace their own.
pub(super) fn may_replace(target: &Target) -> io::Result<bool> {
    #[cfg(unix)]
    if let Some(there) = &target.there {
        use std::os::unix::fs::MetadataExt;
        const STICKY: u32 = 0o1000;
        let folder = fs::metadata(&target.folder)?;
        let user = rustix::process::geteuid().as_raw();
        let owners = [0, folder.uid(), there.uid()];
        return Ok(folder.mode() & STICKY == 0 || owners.contains(&user));
    }
    let _ = target;
    Ok(true)
}

/// Brings the names in a folder to the disk, where the system lets a program do that.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match open_folder(folder)?.map(|folder| folder.sync_all()) {
        // Network file systems and those of programs may know no such thing.
        Some(Err(error))
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// A folder as what can be synced, where there is such a thing.
pub(super) fn open_folder(folder: &Path) -> io::Result<Option<File>> {
    if cfg!(unix) { File::open(folder).map(Some) } else { Ok(None) }
}

/// Tries names until there is one that nothing has.
fn with_new_name<T>(
    target: &Target,
    attempt: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut tries = 0;
    loop {
        let path = target.temporary();
        match attempt(&path) {
            Ok(made) => return Ok((made, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MOST_TRIES => {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

const MOST_TRIES: usize = 100;

fn open_named(path: &Path, is_private: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode(is_private));
    #[cfg(not(unix))]
    let _ = is_private;
    options.open(path)
}

/// What a new file allows; the process's umask takes from it.
#[cfg(unix)]
const fn mode(is_private: bool) -> u32 {
    if is_private { 0o600 } else { 0o666 }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, renameat_with};
    use rustix::io::Errno;

    /// A file without a name, where the file system has that and one can be given later.
    pub(super) fn open_unnamed(folder: &Path, is_private: bool) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(folder, flags, Mode::from_raw_mode(super::mode(is_private)));
        let file = File::from(file.ok()?);
        std::fs::symlink_metadata(descriptor(&file)).is_ok().then_some(file)
    }

    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Where the file can be had without the right to search all folders, which a link by descriptor takes.
    fn descriptor(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Nothing if the system or the file system has no such thing.
    pub(super) fn rename_without_replacing(from: &Path, to: &Path) -> Option<io::Result<()>> {
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => None,
            result => Some(result.map_err(Into::into)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn open_unnamed(_folder: &Path, _is_private: bool) -> Option<File> {
        None
    }

    pub(super) fn link(_file: &File, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn rename_without_replacing(_from: &Path, _to: &Path) -> Option<io::Result<()>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::leftover;

    #[test]
    fn a_file_that_has_a_name_from_the_start_is_left_only_when_nobody_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::find(&folder.path().join("m")).unwrap();
        let (file, path) = open_with_name(&target, true).unwrap();
        leftover::remove_new(&target);
        assert!(lock::is_called(&file, &path));
        file.unlock().unwrap();
        drop(file);
        leftover::remove_new(&target);
        assert!(!path.exists());
    }
}
