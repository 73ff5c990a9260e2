//! The Python package: its wheel, and the tests that install it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{files, python, steps};

/// What the tests need: the frameworks, and what builds the wheel.
const REQUIREMENTS: &str = "tests/python_package/requirements.txt";

/// Builds the wheel that is released, as one file in `target/wheels`.
///
/// # Errors
///
/// When there is no Python that will do, or anything fails.
pub(crate) fn wheel(workspace: &Workspace) -> Result<()> {
    let built = build(workspace, "wheel", &workspace.target.join("wheels"))?;
    println!("{}", built.display());
    Ok(())
}

/// Builds a wheel without optimizing it, installs it where nothing else is and where the frameworks are, and runs
/// `tests/python_package` there: all of it, or the files whose names have one of these words in them.
///
/// # Errors
///
/// When there is no Python that will do, or anything fails, or no file has such a name.
pub(crate) fn test(workspace: &Workspace, words: &[String]) -> Result<()> {
    let files = chosen(workspace, words)?;
    let wheel = build(workspace, "dev", &workspace.target.join("test-wheels"))?;
    let alone = alone(workspace, &wheel)?;
    let frameworks = python::environment(workspace, "package-python", REQUIREMENTS)?;
    install(&frameworks, &wheel)?;
    for file in files {
        // In a process of its own: not all frameworks can be in one.
        let mut pytest = Command::new(&frameworks);
        pytest
            .current_dir(&workspace.root)
            .args(["-m", "pytest", "--config-file", "tests/python_package/pytest.ini"])
            .args(["--rootdir", "."])
            .arg(file)
            .env("WEIGH_WHEEL", &wheel)
            .env("WEIGH_ALONE", &alone)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        steps::run_allowing(pytest, NOTHING_RUN)?;
    }
    if words.is_empty() {
        checkpoints(workspace, &frameworks)?;
    }
    Ok(())
}

/// What the program makes of checkpoints that torch makes, which is in the environment of the frameworks.
fn checkpoints(workspace: &Workspace, python: &Path) -> Result<()> {
    steps::run(workspace.cargo(["build", "--package", "weigh-cli"]))?;
    let mut pytest = Command::new(python);
    pytest
        .current_dir(&workspace.root)
        .args(["-m", "pytest", "-c", "tests/torch_checkpoints/pytest.ini"])
        .arg("tests/torch_checkpoints")
        .env("WEIGH_BIN", workspace.target.join("debug").join("weigh"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    steps::run(pytest)
}

/// What pytest ends with where a framework is not to be had on this system, and its file was skipped as a whole:
/// it prints why.
const NOTHING_RUN: i32 = 5;

/// The files of tests whose names have one of these words in them; all, if there are no words.
fn chosen(workspace: &Workspace, words: &[String]) -> Result<Vec<PathBuf>> {
    let mut files = files::with_extension(&workspace.root.join("tests/python_package"), "py")?;
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_named = words.is_empty() || words.iter().any(|word| name.contains(&**word));
        name.starts_with("test_") && is_named
    });
    if files.is_empty() {
        bail!("no file in tests/python_package has one of these in its name: {}", words.join(" "));
    }
    Ok(files)
}

/// Builds the wheel that is released and measures it beside its peers.
///
/// # Errors
///
/// When there is no Python that will do, or anything fails.
pub(crate) fn bench(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let wheel = build(workspace, "wheel", &workspace.target.join("wheels"))?;
    steps::run(workspace.cargo(["build", "--release", "--package", "weigh-cli"]))?;
    let python = python::environment(workspace, "bench-python", "benches/python/requirements.txt")?;
    install(&python, &wheel)?;
    let mut run = Command::new(python);
    run.current_dir(&workspace.root).arg("benches/python/run.py").args(arguments);
    run.env("WEIGH_BIN", workspace.target.join("release/weigh"));
    steps::run(run)
}

/// Builds a wheel in an empty folder, and returns its path.
fn build(workspace: &Workspace, profile: &str, folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let requirements = "bindings/python/requirements-build.txt";
    let python = python::environment(workspace, "build-python", requirements)?;
    let mut maturin = Command::new(&python);
    maturin
        .current_dir(&workspace.root)
        .args(["-m", "maturin", "build", "--manifest-path", "bindings/python/Cargo.toml"])
        .args(["--profile", profile, "--interpreter"])
        .arg(&python)
        .arg("--out")
        .arg(folder)
        .env("CARGO_TARGET_DIR", &workspace.target);
    if cfg!(target_os = "linux") {
        // For this machine: one for all distributions is built in an image that is old enough.
        maturin.args(["--compatibility", "linux"]);
    }
    steps::run(maturin)?;
    let mut wheels = Vec::new();
    for entry in fs::read_dir(folder)? {
        wheels.push(entry?.path());
    }
    match wheels.as_slice() {
        [wheel] => Ok(wheel.clone()),
        _ => bail!("{} has {} files, and one wheel was built", folder.display(), wheels.len()),
    }
}

/// A virtual environment with the wheel and nothing else; returns its Python.
fn alone(workspace: &Workspace, wheel: &Path) -> Result<PathBuf> {
    let folder = workspace.target.join("alone-python");
    let (interpreter, _) = python::interpreter()?;
    let mut venv = Command::new(interpreter);
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    steps::run(venv)?;
    let python = python::python_in(&folder);
    install(&python, wheel)?;
    Ok(python)
}

/// Installs the wheel, whatever was installed before it.
fn install(python: &Path, wheel: &Path) -> Result<()> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--force-reinstall", "--no-index"])
        .arg(wheel)
        .env_remove("PYTHONPATH");
    steps::run(pip)
}
