//! Type-checks the workspace for the systems that its tests do not run on.
//!
//! Libraries and programs, with warnings as errors: what only one system calls
//! stands behind a `cfg`, and what the others call in its place is there. Nothing
//! is linked or run.

use anyhow::Result;

use crate::steps;
use crate::toolchain::{BUILD_STD, Toolchain};
use crate::workspace::Workspace;

/// The systems that the program builds for, beside Linux.
const SYSTEMS: &[&str] = &["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// The members that are not checked, with the reason.
const LEFT_OUT: &[(&str, &str)] =
    &[("weigh-benches", "it measures on Linux, where its figures come from, against peers")];

/// Type-checks every member for every system.
///
/// # Errors
///
/// When something does not pass, or no toolchain can build the standard library.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let toolchain = Toolchain::with_std_source()?;
    // Cargo builds the standard library even where it only checks what uses it. The
    // backend that makes no code saves a third of the time, and Windows' dlltool.
    let flags = ["-Dwarnings", "-Zcodegen-backend=dummy"].map(str::to_owned);
    for system in SYSTEMS {
        let mut command = toolchain.cargo(
            workspace,
            ["check", "--workspace", "--all-features", "--target", system],
            &flags,
        );
        command.args(BUILD_STD);
        for (package, _) in LEFT_OUT {
            command.args(["--exclude", package]);
        }
        command.arg("--target-dir").arg(workspace.target.join("systems"));
        steps::run(command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_a_member() {
        let workspace = Workspace::load().unwrap();
        for (name, _) in LEFT_OUT {
            assert!(workspace.packages.iter().any(|package| package.name == *name), "{name}");
        }
    }
}
