//! A compiler for what the one in use cannot do alone: build the standard library.
//!
//! Another system, or a sanitizer, needs a standard library built for it. That
//! takes the library's source, and the source fits the very compiler that it
//! was released with and no other. So a toolchain is taken whole: the one in
//! use if it has the source, else that of Debian's packages.
//!
//! Building it is an unstable option of a stable compiler, which
//! `RUSTC_BOOTSTRAP` allows: of [`Toolchain::cargo`] alone, never of the builds
//! that people use.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, cargo_program};

/// Where Debian's packages put their programs.
const DEBIAN: &str = "/usr/bin";

/// Where a toolchain keeps the source of the standard library: what cargo looks for.
const SOURCE: &str = "lib/rustlib/src/rust/library/Cargo.lock";

/// What has cargo build the standard library: without backtraces, whose crates take long
/// and change neither what compiles nor what is found.
pub(crate) const BUILD_STD: [&str; 2] = ["-Zbuild-std", "-Zbuild-std-features=panic-unwind"];

const NO_SOURCE: &str = "\
no toolchain here has the source of the standard library
on Debian: apt-get install cargo-web rustc-web rust-web-src
with rustup: rustup component add rust-src";

/// A cargo, and the compiler that it runs.
#[derive(Debug)]
pub(crate) struct Toolchain {
    cargo: PathBuf,
    /// The folder that `rustc` and `rustdoc` are in, unless they are found as usual.
    programs: Option<PathBuf>,
}

impl Toolchain {
    /// The toolchain that runs us.
    pub(crate) fn in_use() -> Self {
        Self { cargo: cargo_program(), programs: None }
    }

    /// A toolchain that can build the standard library.
    ///
    /// # Errors
    ///
    /// When there is none; the message says what to install.
    pub(crate) fn with_std_source() -> Result<Self> {
        for toolchain in [Self::in_use(), Self::at(Path::new(DEBIAN))] {
            if toolchain.is_whole() {
                return Ok(toolchain);
            }
        }
        bail!(NO_SOURCE)
    }

    fn at(programs: &Path) -> Self {
        Self { cargo: programs.join("cargo"), programs: Some(programs.to_owned()) }
    }

    /// A folder of the compiler's, by what `rustc --print` calls it.
    ///
    /// # Errors
    ///
    /// When the compiler cannot be run or does not know the name.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf> {
        let mut rustc = Command::new(self.program("rustc"));
        let output = rustc.args(["--print", name]).output().context("cannot start rustc")?;
        if !output.status.success() {
            bail!("`rustc --print {name}` failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
    }

    /// A cargo command at the root of the workspace that may use unstable options. The
    /// flags are the compiler's, for all that is built for the `--target` that is asked for.
    pub(crate) fn cargo<const N: usize>(
        &self,
        workspace: &Workspace,
        arguments: [&str; N],
        flags: &[String],
    ) -> Command {
        let flags = flags.join("\x1f");
        let mut command = Command::new(&self.cargo);
        command
            .args(arguments)
            .current_dir(&workspace.root)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", &flags)
            .env("CARGO_ENCODED_RUSTDOCFLAGS", &flags);
        if self.programs.is_some() {
            command.env("RUSTC", self.program("rustc")).env("RUSTDOC", self.program("rustdoc"));
        }
        command
    }

    /// Whether the cargo, the compiler and the source are all there.
    fn is_whole(&self) -> bool {
        (self.programs.is_none() || self.cargo.is_file())
            && self.path("sysroot").is_ok_and(|sysroot| sysroot.join(SOURCE).is_file())
    }

    fn program(&self, name: &str) -> PathBuf {
        self.programs.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_the_one_beside_the_cargo() {
        assert_eq!(Toolchain::in_use().program("rustc"), Path::new("rustc"));
        let debian = Toolchain::at(Path::new(DEBIAN));
        assert_eq!(debian.cargo, Path::new("/usr/bin/cargo"));
        assert_eq!(debian.program("rustdoc"), Path::new("/usr/bin/rustdoc"));
    }

    #[test]
    fn the_compiler_tells_its_folders() {
        assert!(Toolchain::in_use().path("sysroot").unwrap().is_dir());
        let error = Toolchain::in_use().path("no-such-thing").unwrap_err().to_string();
        assert!(error.starts_with("`rustc --print no-such-thing` failed"), "{error}");
        assert!(Toolchain::at(Path::new("/no/such/folder")).path("sysroot").is_err());
    }
}
