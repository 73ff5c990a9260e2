//! Parts of tests in a process whose system calls are traced, and which is killed at one of them or has
//! it fail.
//!
//! Done with strace(1), which can send a signal as a call begins, or give an error: the call is not made then.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::sanitizer;

/// Says to a process which test it is there for, and where.
const CHILD: &str = "WEIGH_IO_TRACED_TEST";
const FOLDER: &str = "WEIGH_IO_TRACED_FOLDER";

/// The calls that change what is in a folder, or bring it to the disk. Those that a machine does not have are
/// passed over.
const CALLS: &[&str] = &[
    "?chmod",
    "?chown",
    "?copy_file_range",
    "?fallocate",
    "?fchmod",
    "?fchmodat",
    "?fchown",
    "?fchownat",
    "?fdatasync",
    "?flock",
    "?fsetxattr",
    "?fsync",
    "?ftruncate",
    "?link",
    "?linkat",
    "?pwrite64",
    "?pwritev",
    "?rename",
    "?renameat",
    "?renameat2",
    "?unlink",
    "?unlinkat",
];

/// What is done in the traced process.
#[derive(Clone, Copy)]
pub(crate) struct Traced {
    /// The test that does it, with its module.
    pub(crate) name: &'static str,
    pub(crate) act: fn(&Path),
}

impl Traced {
    /// Does it, if this is the traced process.
    pub(crate) fn is_child(&self) -> bool {
        let is_child = std::env::var_os(CHILD).is_some_and(|name| name == self.name);
        if is_child {
            (self.act)(&PathBuf::from(std::env::var_os(FOLDER).unwrap()));
        }
        is_child
    }

    /// The calls that it makes, a line each, with the paths of descriptors.
    pub(crate) fn calls(&self, folder: &Path) -> Vec<String> {
        let log = tempfile::NamedTempFile::new().unwrap();
        let status = self.run(folder, &[], log.path());
        assert!(status.success(), "{}: {status}", self.name);
        let text = fs::read_to_string(log.path()).unwrap();
        // Each line begins with the number of the process.
        let call = |line: &str| line.split_once(' ').map(|(_, call)| call.trim_start().to_owned());
        text.lines().filter_map(call).filter(|call| call.contains('(')).collect()
    }

    /// Kills it as it makes that call for the `nth` time.
    pub(crate) fn kill(&self, folder: &Path, call: &str, nth: usize) {
        let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
        let status = self.run(folder, &["-e", &inject], Path::new("/dev/null"));
        assert_eq!(status.signal(), Some(9), "{} {call} {nth}: {status}", self.name);
    }

    /// Has that call fail the `nth` time it makes it.
    pub(crate) fn fail(&self, folder: &Path, call: &str, nth: usize) {
        let inject = format!("inject={call}:error=EIO:when={nth}");
        let status = self.run(folder, &["-e", &inject], Path::new("/dev/null"));
        assert!(status.success(), "{} {call} {nth}: {status}", self.name);
    }

    /// Has one call fail, and kills it at another, if it makes that; whether it did. They are two calls.
    pub(crate) fn fail_and_kill(
        &self,
        folder: &Path,
        failing: (&str, usize),
        killing: (&str, usize),
    ) -> bool {
        let fail = format!("inject={}:error=EIO:when={}", failing.0, failing.1);
        let kill = format!("inject={}:signal=SIGKILL:when={}", killing.0, killing.1);
        let status = self.run(folder, &["-e", &fail, "-e", &kill], Path::new("/dev/null"));
        assert!(status.success() || status.signal() == Some(9), "{} {status}", self.name);
        !status.success()
    }

    fn run(&self, folder: &Path, more: &[&str], log: &Path) -> ExitStatus {
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-qq", "-e", "signal=none", "-e"]);
        command.arg(format!("trace={}", CALLS.join(","))).args(more).arg("-o").arg(log);
        command.arg(std::env::current_exe().unwrap());
        command.args([self.name, "--exact", "--test-threads=1"]);
        command.env(CHILD, self.name).env(FOLDER, folder);
        command.output().unwrap().status
    }
}

/// Whether calls can be traced here. Says why not.
pub(crate) fn is_there() -> bool {
    if sanitizer::is_there() {
        eprintln!("skipped: sanitizers trace the process themselves");
        return false;
    }
    let traced = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    match traced {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
            false
        }
        Err(error) => {
            eprintln!("skipped: strace: {error}");
            false
        }
    }
}

/// How often each call is made.
pub(crate) fn counts(calls: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        let name = call.split('(').next().unwrap_or_default();
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}
