//! Runs the tests of the crates with unsafe code under the address and the thread sanitizer.
//!
//! A sanitizer that sees nothing looks like one that finds nothing. So each must
//! first report the faults that a probe (`xtask/sanitizer_probe`) commits on
//! purpose, and must keep quiet about a program that commits none.
//!
//! The address sanitizer works with the standard library as it comes. The thread
//! sanitizer does not: an order that uninstrumented code makes between threads
//! is lost on it, and it reports races where there are none. So it gets a
//! standard library built for it, and no list of reports to suppress.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::sources::SANITIZED;
use crate::toolchain::{BUILD_STD, Toolchain};
use crate::workspace::Workspace;
use crate::{files, steps};

/// The system that the sanitizers run on.
const SYSTEM: &str = "x86_64-unknown-linux-gnu";

const MANIFEST: &str = include_str!("../sanitizer_probe/Cargo.toml.in");
const PROBE: &str = include_str!("../sanitizer_probe/probe.rs");

/// What the probe does without a fault.
const SOUND: &str = "sound";

/// What the probe does to have memory reported as leaked.
const LEAK: &str = "leak";

/// What the leak check says where it may not trace its own process, as in some containers.
const CANNOT_TRACE: &str = "LeakSanitizer has encountered a fatal error";

/// Runs the tests under each sanitizer, after it has shown that it works.
///
/// # Errors
///
/// When a sanitizer or a toolchain is not there, sees too little or too much, or a
/// test fails.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        bail!("the sanitizers need Linux on x86-64 with glibc");
    }
    for mut sanitizer in [Sanitizer::address(), Sanitizer::thread()?] {
        let probe = sanitizer.build_probe(workspace)?;
        sanitizer.prove(&probe)?;
        sanitizer.test(workspace)?;
    }
    Ok(())
}

/// One sanitizer, and how a program is built and run with it.
#[derive(Debug)]
struct Sanitizer {
    /// As the compiler calls it.
    name: &'static str,
    toolchain: Toolchain,
    flags: Vec<String>,
    builds_std: bool,
    /// The environment variable with its options at run time, and these.
    options: (&'static str, &'static str),
    /// What the probe does, and words of the report that must follow.
    deeds: &'static [(&'static str, &'static str)],
}

impl Sanitizer {
    fn address() -> Self {
        Self {
            name: "address",
            toolchain: Toolchain::in_use(),
            flags: flags("address"),
            builds_std: false,
            options: ("ASAN_OPTIONS", "detect_leaks=1"),
            deeds: &[
                (LEAK, "LeakSanitizer: detected memory leaks"),
                ("past-the-end", "AddressSanitizer: heap-buffer-overflow"),
                ("freed", "AddressSanitizer: heap-use-after-free"),
            ],
        }
    }

    /// Its code at run time comes with rustup's toolchains and not with Debian's, so it is
    /// named to the linker: first, as the compiler itself would, to take precedence.
    fn thread() -> Result<Self> {
        let toolchain = Toolchain::with_std_source()?;
        let runtime = runtime(&Toolchain::in_use().path("target-libdir")?)?;
        let link = format!("-Wl,--whole-archive,{},--no-whole-archive", runtime.display());
        let mut flags = flags("thread");
        flags.extend(["-Zexternal-clangrt".to_owned(), format!("-Zpre-link-arg={link}")]);
        Ok(Self {
            name: "thread",
            toolchain,
            flags,
            builds_std: true,
            options: ("TSAN_OPTIONS", "halt_on_error=0"),
            deeds: &[("race", "ThreadSanitizer: data race")],
        })
    }

    /// A cargo command whose results lie in a folder of their own.
    fn cargo<const N: usize>(&self, workspace: &Workspace, arguments: [&str; N]) -> Command {
        let mut command = self.toolchain.cargo(workspace, arguments, &self.flags);
        command
            .args(["--target", SYSTEM, "--target-dir"])
            .arg(self.place(workspace))
            // As the tests are built, so that the probe shares their standard library.
            .envs(
                ["CARGO_PROFILE_DEV_OPT_LEVEL", "CARGO_PROFILE_TEST_OPT_LEVEL"].map(|it| (it, "1")),
            )
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            .env(self.options.0, self.options.1);
        if self.builds_std {
            command.args(BUILD_STD);
        }
        command
    }

    fn place(&self, workspace: &Workspace) -> PathBuf {
        workspace.target.join(format!("sanitize-{}", self.name))
    }

    /// Builds the probe and returns the program.
    fn build_probe(&self, workspace: &Workspace) -> Result<PathBuf> {
        let place = self.place(workspace);
        let source = place.join("probe");
        fs::create_dir_all(&source).with_context(|| format!("cannot make {}", source.display()))?;
        files::write(&source.join("probe.rs"), PROBE)?;
        let manifest = source.join("Cargo.toml");
        files::write(&manifest, MANIFEST)?;
        let mut command = self.cargo(workspace, ["build"]);
        command.arg("--manifest-path").arg(&manifest);
        steps::run(command)?;
        Ok(place.join(SYSTEM).join("debug").join("sanitizer-probe"))
    }

    /// Demands a report of each fault of the probe, and none where it has no fault.
    fn prove(&mut self, probe: &Path) -> Result<()> {
        let mut faults = Vec::new();
        for (deed, report) in self.deeds {
            let output = self.run(probe, deed)?;
            if *deed == LEAK && said(&output).contains(CANNOT_TRACE) {
                eprintln!(
                    "+ sanitize: leaks cannot be looked for here: no process may trace another"
                );
                self.options.1 = "detect_leaks=0";
                continue;
            }
            faults.extend(fault_in(deed, Some(report), &output));
        }
        faults.extend(fault_in(SOUND, None, &self.run(probe, SOUND)?));
        steps::report(&format!("the {} sanitizer's probe", self.name), &faults)
    }

    fn run(&self, probe: &Path, deed: &str) -> Result<Output> {
        let mut command = Command::new(probe);
        command.arg(deed).env(self.options.0, self.options.1);
        command.output().with_context(|| format!("cannot start {}", probe.display()))
    }

    fn test(&self, workspace: &Workspace) -> Result<()> {
        let mut command = self.cargo(workspace, ["test", "--all-features"]);
        for package in SANITIZED {
            command.args(["--package", package]);
        }
        steps::run(command)
    }
}

/// What the compiler is told for a sanitizer.
///
/// A system call that rustix makes by itself is one that a sanitizer does not see: it
/// watches those of libc.
fn flags(name: &str) -> Vec<String> {
    vec![format!("-Zsanitizer={name}"), "--cfg=rustix_use_libc".to_owned()]
}

/// The thread sanitizer's code at run time, among a toolchain's libraries.
fn runtime(libraries: &Path) -> Result<PathBuf> {
    let listing = fs::read_dir(libraries);
    for entry in listing.with_context(|| format!("cannot list {}", libraries.display()))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with("_rt.tsan.a") {
            return Ok(path);
        }
    }
    bail!(
        "{} holds no runtime of the thread sanitizer: use a toolchain of rustup's",
        libraries.display()
    )
}

/// What is wrong with how a sanitizer took a deed of the probe, if anything is.
fn fault_in(deed: &str, report: Option<&str>, output: &Output) -> Option<String> {
    let said = said(output);
    let fault = match report {
        Some(report) if output.status.success() || !said.contains(report) => {
            format!("`{deed}` should have been reported as `{report}`")
        }
        None if !output.status.success() => format!("`{deed}` should have passed"),
        _ => return None,
    };
    Some(format!("{fault}; {}\n{said}", output.status))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_report_counts_only_with_a_failure_and_the_words() {
        let report = Some("data race");
        for (deed, wanted, code, said, passes) in [
            ("race", report, 66, "WARNING: data race", true),
            ("race", report, 0, "WARNING: data race", false),
            ("race", report, 66, "cannot map memory", false),
            ("race", report, 0, "", false),
            ("sound", None, 0, "", true),
            ("sound", None, 66, "WARNING: data race", false),
        ] {
            let status = ExitStatus::from_raw(code << 8);
            let output = Output { status, stdout: Vec::new(), stderr: said.into() };
            let fault = fault_in(deed, wanted, &output);
            assert_eq!(fault.is_none(), passes, "{deed}, {code}, {said:?}: {fault:?}");
        }
    }

    #[test]
    fn the_runtime_is_found_by_the_end_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("librustc-stable_rt.asan.a"), "").unwrap();
        let error = runtime(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no runtime of the thread sanitizer"), "{error}");
        let there = folder.path().join("librustc-stable_rt.tsan.a");
        fs::write(&there, "").unwrap();
        assert_eq!(runtime(folder.path()).unwrap(), there);
    }

    #[test]
    fn the_probe_knows_every_deed() {
        let deeds = Sanitizer::address().deeds.iter().map(|(deed, _)| *deed);
        for deed in deeds.chain(["race", SOUND]) {
            assert!(PROBE.contains(&format!("Some(\"{deed}\") =>")), "{deed}");
        }
    }
}
