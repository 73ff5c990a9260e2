//! Finding, building and installing the programs to time.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A peer's program that lists a file.
#[derive(Debug)]
pub(crate) struct Peer {
    package: &'static str,
    version: &'static str,
    /// What comes before the file. All print names, dtypes and shapes.
    arguments: &'static [&'static str],
}

/// The fastest of those that list a file of 100 000 tensors correctly.
pub(crate) const PEERS: [Peer; 2] = [
    Peer { package: "stprobe", version: "0.2.3", arguments: &[] },
    Peer { package: "safetensors-cli", version: "0.1.0", arguments: &["list", "--detailed"] },
];

impl Peer {
    /// Its name and version.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.version)
    }

    pub(crate) fn arguments<'a>(&self, file: &'a Path) -> Vec<&'a OsStr> {
        let words = self.arguments.iter().map(OsStr::new);
        words.chain([file.as_os_str()]).collect()
    }

    /// Where its program is; installed there first if it is not.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let root = target()?.join("peers");
        let program = root.join("bin").join(self.package);
        if !program.exists() {
            let (package, version) = (self.package, self.version);
            eprintln!("installing {package} {version}, once");
            let wanted = format!("{package}@{version}");
            cargo(
                ["install", "--locked", "--quiet", "--root"],
                [root.as_os_str(), wanted.as_ref()],
            )?;
        }
        ensure!(program.exists(), "no `{}`", program.display());
        Ok(program)
    }
}

/// The program `weigh`: the one that `WEIGH_BIN` names, or one built now.
pub(crate) fn weigh() -> Result<PathBuf> {
    built("WEIGH_BIN", "weigh-cli", "weigh")
}

/// The program `weigh-load`: the one that `WEIGH_LOAD_BIN` names, or one built now.
#[cfg(target_os = "linux")]
pub(crate) fn weigh_load() -> Result<PathBuf> {
    built("WEIGH_LOAD_BIN", "weigh-benches", "weigh-load")
}

/// The program `weigh-save`: the one that `WEIGH_SAVE_BIN` names, or one built now.
#[cfg(target_os = "linux")]
pub(crate) fn weigh_save() -> Result<PathBuf> {
    built("WEIGH_SAVE_BIN", "weigh-benches", "weigh-save")
}

fn built(variable: &str, package: &str, name: &str) -> Result<PathBuf> {
    if let Some(program) = env::var_os(variable) {
        return Ok(program.into());
    }
    cargo(["build", "--release", "--package", package, "--bin", name], [])?;
    let program = target()?.join("release").join(name);
    ensure!(program.exists(), "no `{}` was built", program.display());
    Ok(program)
}

fn cargo<const N: usize, const M: usize>(words: [&str; N], more: [&OsStr; M]) -> Result<()> {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.args(words).args(more);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("`cargo {}` failed: {status}", words.join(" "));
    }
    Ok(())
}

/// Where cargo builds: this program is in a folder there, named for its profile.
fn target() -> Result<PathBuf> {
    let this = env::current_exe().context("cannot find this program")?;
    let folder = this.parent().and_then(Path::parent);
    Ok(folder.context("this program is in no folder")?.to_owned())
}
