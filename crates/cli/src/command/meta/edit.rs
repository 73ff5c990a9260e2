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
use super::{common, object, open};
use crate::interrupt;
use crate::session::{Failure, Session};
use crate::text;

/// Change metadata in an editor, as JSON.
///
/// The editor is `$VISUAL`, else `$EDITOR`, else `vi`. The files of a checkpoint have to agree on their
/// metadata, and get what comes out of the editor. If nothing has changed, nothing is done; if it cannot be
/// done, what was edited is kept in a file, which is named.
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
    let Some((checkpoint, before)) = checkpoint.as_ref().zip(before) else {
        return changing::finish(session, "edit", &args.changing, None);
    };
    let mut draft = Draft::new(&before)?;
    let after = draft.edit(session).map_err(|failure| session.failed(failure)).ok();
    if after.as_ref() == Some(&before) {
        session.output.note("the metadata is as it was: nothing is done");
        return changing::finish(session, "edit", &args.changing, None);
    }
    let plan = after.as_ref().and_then(|after| {
        args.changing.plan(session, checkpoint, |metadata| metadata.clone_from(after))
    });
    let finished = changing::finish(session, "edit", &args.changing, plan.as_ref());
    if session.exit_code() != 0 {
        draft.keep(session);
    }
    finished
}

/// Metadata in a file for an editor. Only its owner may read it; it is removed in the end, unless there is work in it.
struct Draft {
    file: NamedTempFile,
    /// Whether an editor has done its work.
    is_edited: bool,
}

impl Draft {
    fn new(metadata: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let mut json = Vec::new();
        let file = object::write(&mut json, metadata).and_then(|()| {
            let mut file =
                tempfile::Builder::new().prefix("weigh-meta-").suffix(".json").tempfile()?;
            file.write_all(&json)?;
            Ok(file)
        });
        let failed = |error| Failure::from(&weigh::io::Error::system(&env::temp_dir(), error));
        Ok(Self { file: file.map_err(failed)?, is_edited: false })
    }

    /// What somebody makes of it in an editor.
    ///
    /// # Errors
    ///
    /// If there is no editor, it fails, or what it leaves is no metadata and is not mended.
    fn edit(&mut self, session: &mut Session) -> Result<BTreeMap<String, String>, Failure> {
        // An editor may put another file in its place: it is read again by its path.
        let path = self.file.path();
        loop {
            run_editor(path)?;
            self.is_edited = true;
            let fault = match text::read(path) {
                Ok(text) => match object::parse(&text, false) {
                    Ok(metadata) => return Ok(metadata),
                    Err(fault) => fault.failure("the edited metadata"),
                },
                Err(failure) => failure,
            };
            if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
                return Err(fault);
            }
            session.output.error(&fault.message, fault.help.as_deref());
            if !wants_to_go_on() {
                let message = "nothing is changed".into();
                let path = String::new();
                return Err(Failure { path, code: "cancelled", message, help: None });
            }
        }
    }

    /// Leaves what was edited where it is, and says so: it may have taken an hour.
    fn keep(self, session: &mut Session) {
        if !self.is_edited || !self.file.path().exists() {
            return;
        }
        if let Ok((_, path)) = self.file.keep() {
            let path = path.display();
            session.output.note(&format!(
                "what was edited is in {path}: `weigh meta import --replace` takes it"
            ));
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
fn wants_to_go_on() -> bool {
    eprint!("edit again? [Y/n] ");
    let (sender, receiver) = mpsc::channel();
    // A read from a terminal goes on after a signal: it is left behind in a thread of its own.
    let ask = move || {
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0).then_some(answer));
    };
    if thread::Builder::new().name("weigh-answer".into()).spawn(ask).is_err() {
        return false;
    }
    let cancel = interrupt::cancel();
    loop {
        if cancel.is_cancelled() {
            eprintln!();
            return false;
        }
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => {
                let is_yes = |answer: String| !answer.trim().to_ascii_lowercase().starts_with('n');
                return answer.is_some_and(is_yes);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
        }
    }
}
