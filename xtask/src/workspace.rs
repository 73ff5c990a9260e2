//! The workspace as `cargo metadata` describes it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Where the workspace is, and which packages are its own.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Where cargo builds, and where the checks keep what they make.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    /// The members, not what they depend on.
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One line of a member's dependency tables.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for an ordinary dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// One thing that cargo builds from a member: a library, a program, a test.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace that this program was built from.
    ///
    /// # Errors
    ///
    /// When cargo cannot be run or does not understand a manifest.
    pub(crate) fn load() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let output = Command::new(cargo_program())
            .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"])
            .arg(manifest)
            .output()
            .context("cannot start `cargo metadata`")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("cannot read what `cargo metadata` printed")
    }

    /// A cargo command at the root of the workspace.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new(cargo_program());
        command.args(arguments).current_dir(&self.root);
        command
    }
}

impl Package {
    /// The folder of the package's `Cargo.toml`.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    /// The file at which the package's library, or else its program, begins.
    pub(crate) fn entry_file(&self) -> Option<&Path> {
        let of_kind = |wanted: &[&str]| {
            let target = self
                .targets
                .iter()
                .find(|target| target.kind.iter().any(|kind| wanted.contains(&kind.as_str())));
            target.map(|target| target.src_path.as_path())
        };
        of_kind(&["lib", "rlib", "cdylib", "staticlib", "proc-macro"]).or_else(|| of_kind(&["bin"]))
    }
}

/// The cargo that runs us, else the one on the path.
pub(crate) fn cargo_program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_holds_this_package() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.root.join("Cargo.toml").is_file());
        let xtask = workspace.packages.iter().find(|package| package.name == "xtask").unwrap();
        assert_eq!(xtask.folder(), workspace.root.join("xtask"));
        assert_eq!(xtask.entry_file(), Some(&*workspace.root.join("xtask/src/main.rs")));
        assert!(xtask.dependencies.iter().any(|dependency| dependency.name == "anyhow"));
    }
}
