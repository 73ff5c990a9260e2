//! The peers in Python: which versions are installed, and running the scripts that use them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

/// Packages and their versions; `None` for one that is not installed.
pub(crate) type Versions = BTreeMap<String, Option<String>>;

const REQUIREMENTS: &str = include_str!("../load/requirements.txt");

/// A script of a benchmark, by its path here.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Asks this Python what it has of the packages that a script needs.
pub(crate) fn versions(python: &Path, name: &str) -> Result<Versions> {
    let mut command = Command::new(python);
    command.arg(script(name)).arg("versions").env("PYTHONDONTWRITEBYTECODE", "1");
    let asked = command.output();
    let found = asked.ok().filter(|output| output.status.success());
    let found: Option<Versions> =
        found.and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let missing = match &found {
        None => String::from("numpy and the rest"),
        Some(found) => {
            let missing = found.iter().filter(|(_, version)| version.is_none());
            missing.map(|(package, _)| package.as_str()).collect::<Vec<_>>().join(", ")
        }
    };
    match found {
        Some(found) if missing.is_empty() => Ok(found),
        _ => bail!(
            "`{}` does not have {missing}: install benches/load/requirements.txt into a virtual \
             environment and name its Python with --python",
            python.display()
        ),
    }
}

/// The versions in a line, with a warning where they are not those that are asked for.
pub(crate) fn shown(versions: &Versions) -> String {
    let found = versions.iter().map(|(package, version)| (package, version.as_deref()));
    let found = found.map(|(package, version)| (package, version.unwrap_or_default()));
    let mut text =
        found.clone().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>();
    for (name, version) in found {
        let pinned = pinned(name).unwrap_or_default();
        // A build for one kind of machine says so after a plus.
        if version.split('+').next() != Some(pinned) {
            text.push(format!("warning: {name} should be {pinned}"));
        }
    }
    text.join("; ")
}

fn pinned(package: &str) -> Option<&'static str> {
    REQUIREMENTS.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix("=="))
}

/// Runs a script of a benchmark for what it writes.
pub(crate) fn run(python: &Path, name: &str, arguments: &[&std::ffi::OsStr]) -> Result<()> {
    let mut command = Command::new(python);
    command.arg(script(name)).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    let status = command.status().with_context(|| format!("cannot start {}", python.display()))?;
    if !status.success() {
        bail!("{name} failed: {status}");
    }
    Ok(())
}

/// The line of JSON that a program ended with.
pub(crate) fn last_line<T: DeserializeOwned>(output: &Output) -> Result<T> {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    if !output.status.success() {
        bail!("{}: {last}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("it prints no figures: {line:.80}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_than_the_pinned_are_warned_of() {
        for (version, want) in [
            ("2.15.0", "torch 2.15.0"),
            ("2.15.0+cpu", "torch 2.15.0+cpu"),
            ("2.15.1", "torch 2.15.1; warning: torch should be 2.15.0"),
        ] {
            let versions = Versions::from([("torch".into(), Some(version.into()))]);
            assert_eq!(shown(&versions), want);
        }
    }
}
