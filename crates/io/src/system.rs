//! Facts about the machine that decide how files are best read.
//!
//! Nothing here fails: what cannot be found out is unknown. [`crate::policy`] draws the conclusions.

mod memory;

use std::fs::File;
use std::num::NonZero;

use crate::FileSource;

pub use memory::{LimitedBy, Memory, memory};

/// What a file is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FileSystem {
    /// How it is reached.
    pub kind: FileSystemKind,
    /// Its name, as `ext4`; `unknown` if it is none that is known here.
    pub name: &'static str,
}

impl FileSystem {
    /// One that is not known.
    pub const UNKNOWN: Self = Self { kind: FileSystemKind::Unknown, name: "unknown" };

    /// Whether it may copy from file to file better than a program can: share blocks, or copy where they are.
    ///
    /// On the others `copy_file_range` is a loop in the kernel, which takes half as long again as a program's own
    /// when the bytes do not lie alike in their pages.
    #[cfg(target_os = "linux")]
    pub(crate) fn copies(self) -> bool {
        const ABLE: [&str; 10] =
            ["btrfs", "xfs", "bcachefs", "zfs", "ocfs2", "nfs", "smb", "cifs", "smb2", "ceph"];
        ABLE.contains(&self.name)
    }
}

/// How a file system is reached, in the order of how careful one has to be with it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum FileSystemKind {
    /// In memory: there is nothing behind the page cache.
    Memory,
    /// On a disk of this machine, or what looks like one to it.
    Local,
    /// Not known.
    Unknown,
    /// On another machine, by the kernel.
    Network,
    /// By a program of this machine, or of the host of a virtual one, that may reach anywhere.
    Fuse,
}

impl FileSystemKind {
    /// The word for it: `memory`, `local`, `unknown`, `network`, `fuse`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Local => "local",
            Self::Unknown => "unknown",
            Self::Network => "network",
            Self::Fuse => "fuse",
        }
    }
}

/// What an open file is on. Known on Linux only.
#[must_use]
pub fn file_system(source: &FileSource) -> FileSystem {
    file_system_of(source.file())
}

/// What any open file is on.
pub(crate) fn file_system_of(file: &File) -> FileSystem {
    kernel::magic(file).map_or(FileSystem::UNKNOWN, by_magic)
}

/// Processors that this process may use, by its affinity and the quota of its cgroup; at least one.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Whether `io_uring` can be had.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Uring {
    /// A ring was made.
    Available,
    /// The kernel has it and does not let this process use it, as in most containers.
    Forbidden,
    /// The kernel has none, or one without plain reads, which came with Linux 5.6.
    Absent,
    /// A ring could not be made for another reason, as a limit on locked memory.
    Failed,
}

impl Uring {
    /// What keeps it from being used; empty if nothing does.
    #[must_use]
    pub const fn why_not(self) -> &'static str {
        match self {
            Self::Available => "",
            Self::Forbidden => "it is forbidden here",
            Self::Absent => "the system has none",
            Self::Failed => "no ring could be made",
        }
    }
}

/// Finds out whether `io_uring` can be had, by making a small ring; tens of microseconds.
#[must_use]
pub fn uring() -> Uring {
    kernel::uring()
}

/// The file system by the magic number that `statfs(2)` gives.
fn by_magic(magic: u32) -> FileSystem {
    let known = MAGICS.iter().find(|(number, ..)| *number == magic);
    known.map_or(FileSystem::UNKNOWN, |&(_, kind, name)| FileSystem { kind, name })
}

/// File systems by the magic numbers of `statfs(2)`, `linux/magic.h` and the sources of those that are not in Linux.
///
/// Those of virtual machines' shared folders count as network: the other machine is the host.
#[rustfmt::skip]
const MAGICS: &[(u32, FileSystemKind, &str)] = &[
    (0x0102_1994, FileSystemKind::Memory, "tmpfs"),
    (0x8584_58F6, FileSystemKind::Memory, "ramfs"),
    (0x9584_58F6, FileSystemKind::Memory, "hugetlbfs"),
    (0x0000_EF53, FileSystemKind::Local, "ext4"),
    (0x5846_5342, FileSystemKind::Local, "xfs"),
    (0x9123_683E, FileSystemKind::Local, "btrfs"),
    (0x2FC1_2FC1, FileSystemKind::Local, "zfs"),
    (0xCA45_1A4E, FileSystemKind::Local, "bcachefs"),
    (0xF2F5_2010, FileSystemKind::Local, "f2fs"),
    (0x794C_7630, FileSystemKind::Local, "overlayfs"),
    (0x6175_6673, FileSystemKind::Local, "aufs"),
    (0x7371_7368, FileSystemKind::Local, "squashfs"),
    (0xE0F5_E1E2, FileSystemKind::Local, "erofs"),
    (0x0000_F15F, FileSystemKind::Local, "ecryptfs"),
    (0x5265_4973, FileSystemKind::Local, "reiserfs"),
    (0x3153_464A, FileSystemKind::Local, "jfs"),
    (0x0000_3434, FileSystemKind::Local, "nilfs"),
    (0x2405_1905, FileSystemKind::Local, "ubifs"),
    (0x0000_9660, FileSystemKind::Local, "iso9660"),
    (0x1501_3346, FileSystemKind::Local, "udf"),
    (0x0000_4D44, FileSystemKind::Local, "vfat"),
    (0x2011_BAB0, FileSystemKind::Local, "exfat"),
    (0x7366_746E, FileSystemKind::Local, "ntfs3"),
    (0x5346_544E, FileSystemKind::Local, "ntfs"),
    (0x0000_482B, FileSystemKind::Local, "hfs+"),
    (0x0001_1954, FileSystemKind::Local, "ufs"),
    (0xA501_FCF5, FileSystemKind::Local, "vxfs"),
    (0x0000_6969, FileSystemKind::Network, "nfs"),
    (0x0000_517B, FileSystemKind::Network, "smb"),
    (0xFF53_4D42, FileSystemKind::Network, "cifs"),
    (0xFE53_4D42, FileSystemKind::Network, "smb2"),
    (0x0BD0_0BD0, FileSystemKind::Network, "lustre"),
    (0x00C3_6400, FileSystemKind::Network, "ceph"),
    (0x4750_4653, FileSystemKind::Network, "gpfs"),
    (0x1983_0326, FileSystemKind::Network, "beegfs"),
    (0x5346_414F, FileSystemKind::Network, "afs"),
    (0x6B41_4653, FileSystemKind::Network, "afs"),
    (0x2003_0528, FileSystemKind::Network, "orangefs"),
    (0x0102_1997, FileSystemKind::Network, "9p"),
    (0x7375_7245, FileSystemKind::Network, "coda"),
    (0x0000_564C, FileSystemKind::Network, "ncp"),
    (0x0116_1970, FileSystemKind::Network, "gfs2"),
    (0x7461_636F, FileSystemKind::Network, "ocfs2"),
    (0xAAD7_AAEA, FileSystemKind::Network, "panfs"),
    (0xBEEF_DEAD, FileSystemKind::Network, "snfs"),
    (0x0131_11A8, FileSystemKind::Network, "ibrix"),
    (0x6163_6673, FileSystemKind::Network, "acfs"),
    (0xBACB_ACBC, FileSystemKind::Network, "vmhgfs"),
    (0x786F_4256, FileSystemKind::Network, "vboxsf"),
    (0x7C7C_6673, FileSystemKind::Network, "prl_fs"),
    (0x6573_5546, FileSystemKind::Fuse, "fuse"),
];

#[cfg(target_os = "linux")]
mod kernel {
    use std::fs::File;

    use super::Uring;
    use crate::sys;

    pub(super) fn magic(file: &File) -> Option<u32> {
        let magic = rustix::fs::fstatfs(file).ok()?.f_type;
        // The field's width and sign differ among architectures; the numbers have 32 bits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        Some(magic as u32)
    }

    pub(super) fn uring() -> Uring {
        match sys::try_io_uring() {
            Ok(true) => Uring::Available,
            Ok(false) => Uring::Absent,
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOSYS) => Uring::Absent,
                Some(libc::EPERM | libc::EACCES) => Uring::Forbidden,
                _ => Uring::Failed,
            },
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::fs::File;

    use super::Uring;

    pub(super) fn magic(_file: &File) -> Option<u32> {
        None
    }

    pub(super) fn uring() -> Uring {
        Uring::Absent
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn file_systems_are_told_by_their_magic_numbers() {
        for (magic, kind, name) in [
            (0x0102_1994, FileSystemKind::Memory, "tmpfs"),
            (0xEF53, FileSystemKind::Local, "ext4"),
            (0x794C_7630, FileSystemKind::Local, "overlayfs"),
            (0x6969, FileSystemKind::Network, "nfs"),
            (0xFF53_4D42, FileSystemKind::Network, "cifs"),
            (0x6573_5546, FileSystemKind::Fuse, "fuse"),
            (0, FileSystemKind::Unknown, "unknown"),
            (0x0102_1995, FileSystemKind::Unknown, "unknown"),
            (u32::MAX, FileSystemKind::Unknown, "unknown"),
        ] {
            assert_eq!(by_magic(magic), FileSystem { kind, name }, "{magic:#x}");
        }
        let numbers: HashSet<u32> = MAGICS.iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers.len(), MAGICS.len(), "no number is there twice");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_knows_what_it_is_on() {
        let Ok(file) = tempfile::NamedTempFile::new_in("/dev/shm") else {
            return;
        };
        let source = FileSource::open(file.path()).unwrap();
        // A container may have its own idea of /dev/shm.
        assert_ne!(file_system(&source).kind, FileSystemKind::Network);
        let source = FileSource::open("/proc/self/status").unwrap();
        assert_eq!(file_system(&source), FileSystem::UNKNOWN);
    }

    #[test]
    fn there_is_always_a_core_and_an_answer() {
        assert!(cores() >= 1);
        assert_eq!(uring().why_not().is_empty(), uring() == Uring::Available);
    }
}
