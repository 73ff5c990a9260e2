//! Errors of the library as exceptions of Python.
//!
//! What the system reports is an `OSError` with its number, so that `except FileNotFoundError` works. Too little
//! memory is a `MemoryError`, and all else one of the classes in `weigh/_errors.py`, which are `ValueError`s. What an
//! object of Python raised when it was asked for bytes is raised again, as it was.

use pyo3::exceptions::{PyIndexError, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use weigh::Error;
use weigh::format::Findings;
use weigh::format::text::{escaped, shortened};
use weigh::io::ErrorKind;

use crate::{finding, words};

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Io(error) => of_file(py, error),
        Error::NoTensor { name } => {
            let short = Error::NoTensor { name: shortened(name).into_owned() };
            ours(py, &short).unwrap_or_else(|failure| failure)
        }
        Error::NotEnoughMemory { .. } | Error::OutOfMemory { .. } => {
            PyMemoryError::new_err(error.to_string())
        }
        other => ours(py, other).unwrap_or_else(|failure| failure),
    }
}

/// What is wrong with an index, by numpy's kinds: an `IndexError`, or a `ValueError` for a step of zero, is a
/// `SliceError`, which is both. `TypeError` stays as it is.
pub(crate) fn of_index(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyIndexError>(py) && !error.is_instance_of::<PyValueError>(py) {
        return error;
    }
    let message = format!("{}: {}", shortened(name), error.value(py));
    make(py, "SliceError", &message, "slice", None, PyList::empty(py))
        .unwrap_or_else(|failure| failure)
}

/// One of the package's own classes.
fn ours(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = match error {
        Error::Refused(_) => "FormatError",
        Error::NoTensor { .. } => "TensorNotFoundError",
        Error::Slice { .. } => "SliceError",
        Error::Cancelled => "CancelledError",
        _ => "WeighError",
    };
    let findings = match error {
        Error::Refused(findings) => finding::list(py, findings)?,
        Error::TorchRefused { finding: Some(finding), .. } => {
            let mut findings = Findings::new();
            findings.report(finding.rule, || (**finding).clone());
            finding::list(py, &findings)?
        }
        _ => PyList::empty(py),
    };
    make(py, class, &error.to_string(), error.code(), error.help(), findings)
}

/// The exception for a failure with a file.
pub(crate) fn of_file(py: Python<'_>, error: &weigh::io::Error) -> PyErr {
    if let Some(raised) = raised(error) {
        return raised.clone_ref(py);
    }
    os_error(error).unwrap_or_else(|| {
        let (help, nothing) = (error.help().map(String::from), PyList::empty(py));
        make(py, "WeighError", &error.to_string(), error.code(), help, nothing)
            .unwrap_or_else(|failure| failure)
    })
}

/// Something that the package refuses although the library would not.
pub(crate) fn refusal(py: Python<'_>, message: &str, code: &str) -> PyErr {
    make(py, "WeighError", message, code, None, PyList::empty(py)).unwrap_or_else(|failure| failure)
}

fn make(
    py: Python<'_>,
    class: &str,
    message: &str,
    code: &str,
    help: Option<String>,
    findings: Bound<'_, PyList>,
) -> PyResult<PyErr> {
    let class = py.import("weigh._errors")?.getattr(class)?;
    let help = help.map(|help| words::python(&help));
    // A message may quote a name from a file.
    let message = escaped(message).to_string();
    Ok(PyErr::from_value(class.call1((message, code, help, findings))?))
}

/// What an object of Python raised, if that is why.
fn raised(error: &weigh::io::Error) -> Option<&PyErr> {
    std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

/// What the system reported, or would have; `None` for what is no system's business.
fn os_error(error: &weigh::io::Error) -> Option<PyErr> {
    let path = error.path().as_os_str().to_os_string();
    let whole = error.to_string();
    let said = whole.strip_prefix(&format!("{}: ", error.path().display())).unwrap_or(&whole);
    let said = said.to_owned();
    let mut of_windows = None;
    let mut reported = |error: &std::io::Error| {
        let number = error.raw_os_error();
        if cfg!(windows) {
            // Python makes its own number of it.
            of_windows = number;
        }
        number.unwrap_or(errno::EIO)
    };
    let number = match error.kind() {
        ErrorKind::Missing => errno::ENOENT,
        ErrorKind::Denied => errno::EACCES,
        ErrorKind::IsFolder => errno::EISDIR,
        ErrorKind::Exists => errno::EEXIST,
        ErrorKind::NoSpace { .. } => errno::ENOSPC,
        ErrorKind::Quota { .. } => errno::EDQUOT,
        ErrorKind::TooLarge { .. } => errno::EFBIG,
        ErrorKind::ReadOnly => errno::EROFS,
        ErrorKind::Locked => errno::EAGAIN,
        ErrorKind::NotAFile => errno::EINVAL,
        ErrorKind::NotAFolder => errno::ENOTDIR,
        ErrorKind::Short { .. } | ErrorKind::Changed(_) => errno::EIO,
        // What no system was asked: a path with a zero byte in it.
        ErrorKind::System(error)
            if error.kind() == std::io::ErrorKind::InvalidInput
                && error.raw_os_error().is_none() =>
        {
            return Some(PyValueError::new_err(whole));
        }
        ErrorKind::Failed { error, .. }
        | ErrorKind::WriteFailed { error, .. }
        | ErrorKind::SyncFailed(error)
        | ErrorKind::StaleJournal(error)
        | ErrorKind::System(error) => reported(error),
        _ => return None,
    };
    Some(match of_windows {
        Some(of_windows) => PyOSError::new_err((number, said, path, of_windows)),
        None => PyOSError::new_err((number, said, path)),
    })
}

/// Numbers of errors, as Linux, macOS and Windows' C library have them.
mod errno {
    pub(super) const ENOENT: i32 = 2;
    pub(super) const EIO: i32 = 5;
    pub(super) const EAGAIN: i32 = if cfg!(target_os = "macos") { 35 } else { 11 };
    pub(super) const EACCES: i32 = 13;
    pub(super) const EEXIST: i32 = 17;
    pub(super) const ENOTDIR: i32 = 20;
    pub(super) const EISDIR: i32 = 21;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const EFBIG: i32 = 27;
    pub(super) const ENOSPC: i32 = 28;
    pub(super) const EROFS: i32 = 30;
    pub(super) const EDQUOT: i32 = if cfg!(target_os = "macos") { 69 } else { 122 };
}
