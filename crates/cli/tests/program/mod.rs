//! Runs the program as its users do, on files in a temporary folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The program, run in a folder of its own.
pub(crate) struct Program {
    folder: TempDir,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file: the length of a header, the header, and so many bytes of data.
    pub(crate) fn file(&self, name: impl AsRef<Path>, header: &str, data: usize) -> PathBuf {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weigh"));
        command.current_dir(self.folder.path()).args(arguments).env_remove("NO_COLOR");
        command
    }

    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Exit code, stdout and stderr in one text.
    pub(crate) fn shown(&self, arguments: &[impl AsRef<OsStr>]) -> String {
        shown(&self.run(arguments))
    }
}

/// Exit code, stdout and stderr in one text.
pub(crate) fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().unwrap();
    format!("exit {code}\n-- stdout\n{out}-- stderr\n{err}")
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
