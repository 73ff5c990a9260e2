//! The Python side of the tests: a virtual environment, and pytest in it.
//!
//! An environment lives under the build folder and is made again when its
//! requirements or the interpreter change. Nothing is installed anywhere else.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{files, steps};

/// The oldest Python that the pinned requirements install on.
const OLDEST: (u32, u32) = (3, 11);

/// Names the interpreter to use instead of `python3` or `python`.
const INTERPRETER: &str = "PYTHON";

/// Builds the programs that they need, then runs `tests/python` and `conformance` against it.
///
/// # Errors
///
/// When there is no Python that will do, or anything fails.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let python = environment(workspace, "test-python", "tests/python/requirements.txt")?;
    steps::run(workspace.cargo(["build", "--package", "weigh-cli", "--bin", "weigh"]))?;
    steps::run(workspace.cargo(["build", "--package", "weigh-format", "--example", "encode"]))?;
    let built = |name: &str| {
        workspace.target.join("debug").join(format!("{name}{}", env::consts::EXE_SUFFIX))
    };
    let mut pytest = Command::new(python);
    pytest
        .current_dir(&workspace.root)
        .args(["-m", "pytest", "--config-file", "tests/python/pytest.ini", "--rootdir", "."])
        .args(["tests/python", "conformance"])
        .env("WEIGH_BIN", built("weigh"))
        .env("WEIGH_ENCODE_BIN", built("examples/encode"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    steps::run(pytest)
}

/// Makes a virtual environment under the build folder unless it is there, and returns its Python.
pub(crate) fn environment(
    workspace: &Workspace,
    name: &str,
    requirements: &str,
) -> Result<PathBuf> {
    let requirements = workspace.root.join(requirements);
    let wanted = files::text(&requirements)?;
    let (interpreter, version) = interpreter()?;
    let stamp_text = format!("{version}\n{wanted}");

    let folder = workspace.target.join(name);
    let python = python_in(&folder);
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == stamp_text) {
        return Ok(python);
    }
    let mut venv = Command::new(&interpreter);
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    steps::run(venv).context(
        "cannot make a virtual environment; on Debian and Ubuntu install the package python3-venv",
    )?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(&requirements);
    steps::run(pip)?;
    fs::write(&stamp, stamp_text).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

/// The Python of a virtual environment.
pub(crate) fn python_in(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") }
}

/// Finds a Python that is new enough; returns its program and what it says of
/// its version.
pub(crate) fn interpreter() -> Result<(OsString, String)> {
    let names = match env::var_os(INTERPRETER) {
        Some(name) => vec![name],
        None => vec!["python3".into(), "python".into()],
    };
    for name in &names {
        let Ok(output) = Command::new(name).arg("--version").output() else {
            continue;
        };
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match version(&said) {
            Some(found) if found >= OLDEST => return Ok((name.clone(), said)),
            _ => {}
        }
    }
    let (major, minor) = OLDEST;
    bail!(
        "no Python {major}.{minor} or newer as {}: install one, or name it in the environment \
         variable {INTERPRETER}",
        names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(" or ")
    )
}

/// Major and minor version in what `python --version` prints.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("Python ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        for (said, want) in [
            ("Python 3.11.7", Some((3, 11))),
            ("Python 3.9.0", Some((3, 9))),
            ("Python 3.14.0rc1", Some((3, 14))),
            ("Python", None),
            ("", None),
            ("Microsoft Store", None),
        ] {
            assert_eq!(version(said), want, "{said:?}");
        }
        assert!(version("Python 3.9.0") < Some(OLDEST));
    }
}
