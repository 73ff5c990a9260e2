//! Proves that a crate builds without the standard library.
//!
//! `#![no_std]` at a crate's root binds that crate alone: a dependency may still
//! bring `std` in. So the crate is linked into a probe (`xtask/no_std_probe`)
//! that has a panic handler of its own, which the compiler refuses as soon as
//! `std` is anywhere below.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result};

use crate::files;
use crate::workspace::{Workspace, cargo_program};

/// The crates that promise to build without the standard library.
pub(crate) const PROMISED: &[&str] = &["weigh-format", "weigh-pickle"];

const MANIFEST: &str = include_str!("../no_std_probe/Cargo.toml.in");
const PROBE: &str = include_str!("../no_std_probe/probe.rs");

/// Says which of the crates that promise it do not build without std, or are not there.
///
/// # Errors
///
/// When the probe cannot be written or cargo cannot be started.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for promised in PROMISED {
        let Some(package) = workspace.packages.iter().find(|it| it.name == *promised) else {
            faults.push(format!("{promised} promises it and is no member of the workspace"));
            continue;
        };
        let place = workspace.target.join("no-std-probe").join(&package.name);
        let lock = workspace.root.join("Cargo.lock");
        let output = probe(&package.name, package.folder(), &place, Some(&lock))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            faults.push(format!("{} does not build without std:\n{said}", package.name));
        }
    }
    Ok(faults)
}

/// Builds the probe around a crate, in `place`, with the dependency versions of
/// `lock` if it is there.
fn probe(name: &str, folder: &Path, place: &Path, lock: Option<&Path>) -> Result<Output> {
    let manifest =
        MANIFEST.replace("@NAME@", name).replace("@PATH@", &folder.display().to_string());
    fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    files::write(&place.join("Cargo.toml"), &manifest)?;
    files::write(&place.join("probe.rs"), PROBE)?;
    if let Some(lock) = lock
        && lock.exists()
    {
        files::write(&place.join("Cargo.lock"), &files::text(lock)?)?;
    }
    Command::new(cargo_program())
        .args(["build", "--manifest-path"])
        .arg(place.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(place.join("target"))
        .output()
        .context("cannot start `cargo build`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_passes_without_std_and_fails_with_it() {
        let root = "#![no_std]\nextern crate alloc;\npub use alloc::string::String;\n";
        let output = probe_of(root);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let output = probe_of("#![no_std]\nextern crate std;\n");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(said.contains("duplicate lang item") && said.contains("panic_impl"), "{said}");
    }

    #[test]
    fn a_promise_of_no_member_is_a_fault() {
        let mut workspace = Workspace::load().unwrap();
        workspace.packages.retain(|package| !PROMISED.contains(&package.name.as_str()));
        let want = PROMISED
            .iter()
            .map(|name| format!("{name} promises it and is no member of the workspace"))
            .collect::<Vec<_>>();
        assert_eq!(check(&workspace).unwrap(), want);
    }

    /// Probes a crate with this text as its `lib.rs`.
    fn probe_of(root: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let subject = folder.path().join("subject");
        fs::create_dir_all(subject.join("src")).unwrap();
        fs::write(
            subject.join("Cargo.toml"),
            "[package]\nname = \"sample\"\nversion = \"0.0.0\"\nedition = \"2024\"\n",
        )
        .unwrap();
        fs::write(subject.join("src/lib.rs"), root).unwrap();
        probe("sample", &subject, &folder.path().join("probe"), None).unwrap()
    }
}
