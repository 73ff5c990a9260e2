//! `weigh meta edit`.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use tempfile::NamedTempFile;

use super::changing::{self, Changing};
use super::{common, object, open, text};
use crate::interrupt;
use crate::session::{Failure, Session};

/// Change metadata in an editor, as JSON.
///
/// The editor is `$VISUAL`, else `$EDITOR`, else `vi`. The files of a checkpoint have to agree on their
/// metadata, and get what comes out of the editor. If nothing has changed, nothing is done.
#[derive(Args, Debug)]
pub(super) struct Edit {
    /// A file, a folder or a shard index
    #[arg(value_name = "PATH")]
    path: OsString,
    #[command(flatten)]
    changing: Changing,
}

pub(super) fn run(args: &Edit, session: &mut Session) -> Result<()> {
    let checkpoint = open(session, &args.path);
    let before = checkpoint.as_ref().and_then(|checkpoint| common(session, checkpoint));
    let after = match &before {
        Some(before) => Some(edited(session, before)?),
        None => None,
    };
    if before.is_some() && before == after {
        session.output.note("the metadata is as it was: nothing is done");
        return changing::finish(session, "edit", &args.changing, None);
    }
    let plan = checkpoint.as_ref().zip(after.as_ref()).and_then(|(checkpoint, after)| {
        args.changing.plan(session, checkpoint, |metadata| metadata.clone_from(after))
    });
    changing::finish(session, "edit", &args.changing, plan.as_ref())
}

/// What somebody makes of metadata in an editor.
///
/// # Errors
///
/// If there is no editor, it fails, or what it leaves is no metadata and is not mended.
fn edited(
    session: &mut Session,
    before: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    // Only its owner may read it, and it is gone however this ends.
    let mut file = tempfile::Builder::new().prefix("weigh-meta-").suffix(".json").tempfile()?;
    let mut json = Vec::new();
    object::write(&mut json, before)?;
    file.write_all(&json)?;
    // An editor may put another file in its place: it is read again by its path.
    let file: NamedTempFile = file;
    loop {
        run_editor(file.path())?;
        let path = file.path();
        let fault = match text::read(path) {
            Ok(text) => match object::parse(&text, false) {
                Ok(metadata) => return Ok(metadata),
                Err(fault) => fault.failure("the edited metadata"),
            },
            Err(failure) => failure,
        };
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(fault.into());
        }
        session.output.error(&fault.message, fault.help.as_deref());
        if !wants_to_go_on()? {
            let message = "nothing is changed".into();
            return Err(
                Failure { path: String::new(), code: "cancelled", message, help: None }.into()
            );
        }
    }
}

/// Lets an editor have a file and the terminal.
fn run_editor(path: &Path) -> Result<(), Failure> {
    let named = |variable| env::var_os(variable).filter(|editor| !editor.is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".into());
    let failed = |what: String| Failure {
        path: String::new(),
        code: "editor",
        message: format!("the editor `{}` {what}: nothing is changed", editor.to_string_lossy()),
        help: Some("Name one in the environment variable VISUAL or EDITOR.".into()),
    };
    let ended = interrupt::leave_terminal(|| start(&editor, path));
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("ended with {status}"))),
        Err(error) => Err(failed(format!("cannot be run: {error}"))),
    }
}

/// Runs an editor, which may have arguments: `code --wait`.
#[cfg(unix)]
fn start(editor: &OsString, path: &Path) -> io::Result<ExitStatus> {
    let mut script = editor.clone();
    script.push(" \"$@\"");
    Command::new("sh").arg("-c").arg(script).arg(editor).arg(path).status()
}

/// Runs an editor, which may have arguments: `code --wait`.
#[cfg(not(unix))]
fn start(editor: &OsString, path: &Path) -> io::Result<ExitStatus> {
    let words = editor.to_string_lossy();
    let mut words = words.split_whitespace();
    Command::new(words.next().unwrap_or_default()).args(words).arg(path).status()
}

/// Asks on the terminal whether to go on editing.
fn wants_to_go_on() -> io::Result<bool> {
    eprint!("edit again? [Y/n] ");
    let (sender, receiver) = mpsc::channel();
    // A read from a terminal goes on after a signal: it is left behind in a thread of its own.
    thread::Builder::new().name("weigh-answer".into()).spawn(move || {
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0).then_some(answer));
    })?;
    let cancel = interrupt::cancel();
    loop {
        if cancel.is_cancelled() {
            eprintln!();
            return Ok(false);
        }
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => {
                let is_yes = |answer: String| !answer.trim().to_ascii_lowercase().starts_with('n');
                return Ok(answer.is_some_and(is_yes));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(false),
        }
    }
}
