//! How much memory this process can still have, by the machine and by its cgroup.
//!
//! A container is told the memory of its machine by `/proc/meminfo`; what it may use is what its cgroup, and
//! every group above that, has left. What is read from files here is parsed by pure functions that take any
//! text, and at most a bounded part of a file is read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Memory that can still be had.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Memory {
    /// Bytes that a process can take before something has to be given up for it; the page cache does not count
    /// as that, swap space counts as memory.
    pub available: u64,
    /// What sets this limit.
    pub limited_by: LimitedBy,
}

/// What sets a limit on memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LimitedBy {
    /// What the machine has.
    System,
    /// What a cgroup of this process may use: a container, a job, a service.
    Cgroup,
}

/// How much memory can still be had; `None` where that is not known: on systems other than Linux.
#[must_use]
pub fn memory() -> Option<Memory> {
    let system = of_system(&read("/proc/meminfo".as_ref(), SMALL)?)?;
    Some(least(system, of_groups()))
}

/// The least of what the machine and each group have left.
fn least(system: u64, groups: impl IntoIterator<Item = u64>) -> Memory {
    let group = groups.into_iter().min().filter(|left| *left < system);
    match group {
        Some(available) => Memory { available, limited_by: LimitedBy::Cgroup },
        None => Memory { available: system, limited_by: LimitedBy::System },
    }
}

/// What `/proc/meminfo` says is available, with the free swap space, in bytes.
fn of_system(meminfo: &str) -> Option<u64> {
    let kibibytes = |key| {
        let value = field(meminfo, key)?;
        value.strip_suffix(" kB")?.trim_ascii().parse::<u64>().ok()?.checked_mul(1024)
    };
    let available = kibibytes("MemAvailable:")?;
    Some(available.saturating_add(kibibytes("SwapFree:").unwrap_or(0)))
}

/// What each cgroup that this process is in has left, in bytes.
fn of_groups() -> Vec<u64> {
    let (own, mounts) = ("/proc/self/cgroup".as_ref(), "/proc/self/mountinfo".as_ref());
    let (Some(own), Some(mounts)) = (read(own, SMALL), read(mounts, MOUNTS)) else {
        return Vec::new();
    };
    let mut left = Vec::new();
    for version in [Version::Two, Version::One] {
        let (Some(path), Some(mount)) = (version.path(&own), version.mount(&mounts)) else {
            continue;
        };
        for folder in mount.folders(path) {
            left.extend(version.left(|name| read(&folder.join(name), SMALL)));
        }
    }
    left
}

/// The two kinds of cgroups; a machine may have both.
#[derive(Clone, Copy, Debug)]
enum Version {
    One,
    Two,
}

impl Version {
    /// The path of this process's group below the root of the groups, by `/proc/self/cgroup`.
    fn path(self, own: &str) -> Option<&str> {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let meant = match self {
                Self::One => controllers.split(',').any(|it| it == "memory"),
                Self::Two => number == "0" && controllers.is_empty(),
            };
            meant.then_some(path)
        })
    }

    /// Where the groups are mounted, by `/proc/self/mountinfo`.
    fn mount(self, mounts: &str) -> Option<Mount> {
        mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut before = before.split(' ').skip(3);
            let (root, point) = (before.next()?, before.next()?);
            let mut after = after.split(' ');
            let (kind, options) = (after.next()?, after.nth(1)?);
            let meant = match self {
                Self::One => kind == "cgroup" && options.split(',').any(|it| it == "memory"),
                Self::Two => kind == "cgroup2",
            };
            meant.then(|| Mount { root: unescaped(root), point: unescaped(point) })
        })
    }

    /// What a group has left, by the files in its folder; `None` if it has no limit.
    fn left(self, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
        let number = |name: &str| read(name)?.trim_ascii().parse::<u64>().ok();
        let ([limit, lower_limit], used, reclaimable) = match self {
            // From `memory.high` on, a group is slowed down until it has given memory back.
            Self::Two => (
                ["memory.max", "memory.high"],
                "memory.current",
                ["inactive_file ", "active_file "],
            ),
            Self::One => (
                ["memory.limit_in_bytes"; 2],
                "memory.usage_in_bytes",
                ["total_inactive_file ", "total_active_file "],
            ),
        };
        let limit = number(limit).into_iter().chain(number(lower_limit)).min()?;
        let statistics = read("memory.stat").unwrap_or_default();
        let reclaimable = reclaimable
            .iter()
            .filter_map(|key| field(&statistics, key)?.parse::<u64>().ok())
            .fold(0, u64::saturating_add);
        let used = number(used)?.saturating_sub(reclaimable);
        Some(limit.saturating_sub(used))
    }
}

/// Where a hierarchy of groups is mounted.
#[derive(Debug, Eq, PartialEq)]
struct Mount {
    /// The group that is at the mount point.
    root: String,
    point: String,
}

impl Mount {
    /// The folders of a group and of each above it, as far as they are mounted here.
    fn folders(&self, group: &str) -> Vec<PathBuf> {
        let mut folders = vec![PathBuf::from(&self.point)];
        // A group outside of what is mounted: the limits at the mount point hold all the same.
        let below = group.strip_prefix(self.root.trim_end_matches('/')).unwrap_or_default();
        let is_below = below.is_empty() || below.starts_with('/');
        let names = below.split('/').filter(|name| is_below && !name.is_empty());
        for name in names.take(DEPTH).take_while(|name| !matches!(*name, "." | "..")) {
            let folder = folders.last().map(|above| above.join(name));
            folders.extend(folder);
        }
        folders
    }
}

/// Groups that are looked at above one another.
const DEPTH: usize = 64;

/// Bytes that are read of a file that describes one thing.
const SMALL: u64 = 1 << 16;

/// Bytes that are read of the list of mounts, which has a line for each container of a host.
const MOUNTS: u64 = 1 << 20;

/// The beginning of a file; `None` if it cannot be read.
fn read(path: &Path, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rest of the first line that begins with `key`.
fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim_ascii)
}

/// A path of `/proc/self/mountinfo`, where `\040` is a space.
fn unescaped(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_what_is_available_and_free_swap() {
        for (text, want) in [
            ("MemTotal:  9 kB\nMemFree:  1 kB\nMemAvailable:    5 kB\n", Some(5 * 1024)),
            ("MemAvailable: 5 kB\nSwapTotal: 4 kB\nSwapFree:        3 kB\n", Some(8 * 1024)),
            ("MemAvailable: 5 kB\nSwapFree: many kB\n", Some(5 * 1024)),
            ("MemAvailable: 0 kB\n", Some(0)),
            ("MemAvailable: 18014398509481983 kB\n", Some(u64::MAX - 1023)),
            ("MemAvailable: 18014398509481983 kB\nSwapFree: 9 kB", Some(u64::MAX)),
            // Hostile, or of a kernel that is too old.
            ("", None),
            ("MemFree: 5 kB\n", None),
            ("MemAvailable: 5\n", None),
            ("MemAvailable: 5 MB\n", None),
            ("MemAvailable: -5 kB\n", None),
            ("MemAvailable: 18014398509481984 kB\n", None),
            ("MemAvailable: 99999999999999999999999 kB\n", None),
            ("MemAvailable:", None),
        ] {
            assert_eq!(of_system(text), want, "{text:?}");
        }
    }

    #[test]
    fn the_least_limit_counts() {
        for (system, groups, available, limited_by) in [
            (10, &[][..], 10, LimitedBy::System),
            (10, &[20, 30], 10, LimitedBy::System),
            (10, &[10], 10, LimitedBy::System),
            (10, &[20, 9, 30], 9, LimitedBy::Cgroup),
            (10, &[0], 0, LimitedBy::Cgroup),
        ] {
            let want = Memory { available, limited_by };
            assert_eq!(least(system, groups.iter().copied()), want, "{system} {groups:?}");
        }
    }

    #[test]
    fn the_own_group_is_found_among_others() {
        let both =
            "11:cpu,cpuacct:/c\n4:hugetlb,memory:/job/7\n1:name=systemd:/s\n0::/user.slice/a:b\n";
        for (text, one, two) in [
            (both, Some("/job/7"), Some("/user.slice/a:b")),
            ("0::/\n", None, Some("/")),
            ("4:memory:/\n", Some("/"), None),
            ("4:memory2:/x\n1::/y\n", None, None),
            ("4:memory\n0:\n\n:::\n", None, None),
            ("", None, None),
        ] {
            assert_eq!((Version::One.path(text), Version::Two.path(text)), (one, two), "{text:?}");
        }
    }

    #[test]
    fn mounts_are_found_with_whatever_options_they_have() {
        let mount =
            |root: &str, point: &str| Some(Mount { root: root.into(), point: point.into() });
        for (text, one, two) in [
            (
                "25 21 0:22 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw\n",
                None,
                mount("/", "/sys/fs/cgroup"),
            ),
            (
                "30 21 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 33 21 0:29 /docker/7 /sys/fs/cgroup/a\\040b\\134 rw - cgroup cgroup rw,memory\n\
                 34 21 0:30 / /sys/fs/cgroup/unified rw - cgroup2 none rw,nsdelegate\n",
                mount("/docker/7", "/sys/fs/cgroup/a b\\"),
                mount("/", "/sys/fs/cgroup/unified"),
            ),
            ("30 21 0:26 / /memory rw - tmpfs cgroup rw,memory\n", None, None),
            // Hostile.
            ("", None, None),
            (" - cgroup2 x y\n", None, None),
            ("1 2 3 / - cgroup2 x y\n", None, None),
            ("1 2 3 / /p rw - cgroup2\n", None, None),
            ("1 2 3 /\\9 /\\04\\777 rw - cgroup2 x y\n", None, mount("/\\9", "/\\04\\777")),
        ] {
            let found = (Version::One.mount(text), Version::Two.mount(text));
            assert_eq!(found, (one, two), "{text:?}");
        }
    }

    #[test]
    fn every_group_above_is_looked_at_and_none_outside() {
        let folders = |root: &str, group: &str| -> Vec<String> {
            let mount = Mount { root: root.into(), point: "/m".into() };
            let folders = mount.folders(group);
            folders.iter().map(|it| it.to_str().unwrap().to_owned()).collect()
        };
        for (root, group, want) in [
            ("/", "/", &["/m"][..]),
            ("/", "/a/b", &["/m", "/m/a", "/m/a/b"]),
            ("/a", "/a/b", &["/m", "/m/b"]),
            ("/a/", "/a", &["/m"]),
            ("/a", "/ab/c", &["/m"]),
            ("/a", "/b", &["/m"]),
            ("/", "", &["/m"]),
            ("/", "/a/../../etc", &["/m", "/m/a"]),
            ("/", "//a//b/", &["/m", "/m/a", "/m/a/b"]),
            ("/", "/../..", &["/m"]),
        ] {
            assert_eq!(folders(root, group), want, "{group:?} mounted at {root:?}");
        }
        assert_eq!(folders("/", &"/a".repeat(5000)).len(), DEPTH + 1);
    }

    #[test]
    fn a_group_has_its_limit_less_what_it_cannot_give_back() {
        let left = |version: Version, files: &[(&str, &str)]| {
            version.left(|name| {
                let found = files.iter().find(|(own, _)| *own == name);
                found.map(|(_, text)| (*text).to_owned())
            })
        };
        let statistics =
            ("memory.stat", "anon 9\nfile 30\ninactive_file 10\nactive_file 20\nslab 5\n");
        for (max, high, current, statistics, want) in [
            ("100\n", "max\n", "50\n", statistics, Some(80)),
            ("100\n", "90\n", "50\n", statistics, Some(70)),
            ("100\n", "max\n", "200\n", statistics, Some(0)),
            ("100\n", "max\n", "20\n", statistics, Some(100)),
            ("100\n", "max\n", "50\n", ("memory.stat", ""), Some(50)),
            ("100\n", "max\n", "50\n", ("memory.stat", "inactive_file -1\n"), Some(50)),
            (
                "100\n",
                "max\n",
                "50\n",
                ("memory.stat", "inactive_file 18446744073709551615\nactive_file 9\n"),
                Some(100),
            ),
            ("max\n", "max\n", "50\n", statistics, None),
            ("", "", "50\n", statistics, None),
            ("-1\n", "1e9\n", "50\n", statistics, None),
            ("100\n", "max\n", "", statistics, None),
        ] {
            let files = [
                ("memory.max", max),
                ("memory.high", high),
                ("memory.current", current),
                statistics,
            ];
            assert_eq!(left(Version::Two, &files), want, "{files:?}");
        }
        assert_eq!(left(Version::Two, &[]), None, "the root group has no limit");
        let files = [
            ("memory.limit_in_bytes", "100\n"),
            ("memory.usage_in_bytes", "50\n"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 10\ntotal_active_file 20\n"),
        ];
        assert_eq!(left(Version::One, &files), Some(80));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_linux_machine_has_some() {
        assert!(memory().unwrap().available > 0);
    }
}
