//! Tests that need a process of their own: limits are the whole process's.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Says to a process which test it is there for.
const CHILD: &str = "WEIGH_IO_TEST_CHILD";

/// Runs `test` in a process of its own. `name` is that of the caller, with its module.
pub(crate) fn in_a_child(name: &str, test: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some_and(|child| child == name) {
        return test();
    }
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, name);
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "{name} names no test\n{out}");
    for line in err.lines().filter(|line| line.starts_with("skipped")) {
        eprintln!("{line}");
    }
}

/// Sees to it that no file can be opened any more, or that some can again.
pub(crate) fn no_more_files(none: bool) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let next = File::open("/dev/null").map_or(0, |file| file.as_raw_fd());
    let current = if none { u64::try_from(next).ok() } else { maximum };
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

/// Limits addresses to so many bytes more than there are.
pub(crate) fn limit_addresses(more: u64) {
    let (taken, _) = memory_use();
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(taken + more), maximum }).unwrap();
}

/// Bytes of addresses and of memory that this process has.
pub(crate) fn memory_use() -> (u64, u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: Vec<u64> = statm.split(' ').take(2).map(|it| it.parse().unwrap()).collect();
    let page = rustix::param::page_size() as u64;
    (pages[0] * page, pages[1] * page)
}
