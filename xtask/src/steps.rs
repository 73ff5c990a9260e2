//! A step: one command or one check, announced, and fatal when it fails.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command with the terminal as its own, so that what it prints arrives
/// unchanged.
///
/// # Errors
///
/// When it cannot be started, or does not exit with 0.
pub(crate) fn run(command: Command) -> Result<()> {
    run_allowing(command, 0)
}

/// The same of a command that may also exit with another code.
///
/// # Errors
///
/// When it cannot be started, or exits with neither.
pub(crate) fn run_allowing(mut command: Command, code: i32) -> Result<()> {
    let line = shown(&command);
    eprintln!("+ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() && status.code() != Some(code) {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs a command as [`run`] does, and returns what it prints on stdout.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>> {
    let line = shown(&command);
    eprintln!("+ {line}");
    command.stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", output.status);
    }
    Ok(output.stdout)
}

/// Says how a check ended.
///
/// # Errors
///
/// When there are faults; they are printed first, one a line.
pub(crate) fn report(check: &str, faults: &[String]) -> Result<()> {
    if faults.is_empty() {
        eprintln!("+ {check}: ok");
        return Ok(());
    }
    for fault in faults {
        eprintln!("{check}: {fault}");
    }
    bail!("{check}: {} found", count(faults.len(), "fault"))
}

/// A number with its noun: `1 fault`, `2 faults`.
fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// A command as one would type it: the program without its folder.
fn shown(command: &Command) -> String {
    let program = command.get_program();
    let program = Path::new(program).file_name().unwrap_or(program);
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_fails_as_its_command_does() {
        let mut good = Command::new("cargo");
        good.arg("--version").stdout(Stdio::null());
        assert!(run(good).is_ok());

        let mut bad = Command::new("cargo");
        bad.arg("no-such-command").stderr(Stdio::null());
        let error = run(bad).unwrap_err().to_string();
        assert!(error.starts_with("`cargo no-such-command` failed"), "{error}");

        let mut printing = Command::new("cargo");
        printing.arg("--version");
        assert!(output(printing).unwrap().starts_with(b"cargo "));

        let absent = run(Command::new("no-such-program")).unwrap_err().to_string();
        assert_eq!(absent, "cannot start `no-such-program`");
    }

    #[test]
    fn faults_are_counted() {
        assert!(report("check", &[]).is_ok());
        for (faults, want) in [
            (vec!["one".to_owned()], "check: 1 fault found"),
            (vec!["one".to_owned(), "two".to_owned()], "check: 2 faults found"),
        ] {
            assert_eq!(report("check", &faults).unwrap_err().to_string(), want);
        }
    }
}
