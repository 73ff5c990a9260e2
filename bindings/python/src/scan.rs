//! Scans, as Python sees them: instances of the classes in `weigh/_scan.py`.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use weigh::Error;
use weigh::torch::scan::{ScanOptions, ScanReport, WeightsOnly, scan_bytes, walk};

use crate::error::of_file;
use crate::source::Bytes;
use crate::{finding, waiting};

/// Scans a file, or all files of a folder. What of a folder cannot be read is in the list, and says so.
#[pyfunction]
pub(crate) fn scan(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Py<PyAny>>> {
    let found = py.detach(|| walk(&path));
    if let Some(error) = found.unread.iter().find(|error| error.path() == path) {
        return Err(of_file(py, error));
    }
    let classes = py.import("weigh._scan")?;
    let is_folder = path.is_dir();
    let mut scans = Vec::new();
    for file in &found.files {
        let scanned = waiting::run(py, waiting::LONG, None, |watched| {
            let cancel = Some(watched.cancel);
            match weigh::torch::scan::scan(file, &ScanOptions { cancel, ..Default::default() }) {
                Err(Error::Io(error)) if is_folder => Ok(Err(error)),
                report => report.map(Ok),
            }
        })?;
        scans.push(match scanned {
            Ok(report) => object(&classes, &report)?,
            Err(error) => unread(&classes, error.path(), &error.to_string())?,
        });
    }
    for error in &found.unread {
        scans.push(unread(&classes, error.path(), &error.to_string())?);
    }
    for skipped in &found.skipped {
        let path = skipped.path.to_string_lossy();
        let message = format!("{path}: not looked at: {}", skipped.what);
        scans.push(unread(&classes, &skipped.path, &message)?);
    }
    Ok(scans)
}

/// Scans the content of a file in memory.
#[pyfunction]
#[pyo3(name = "scan_bytes")]
pub(crate) fn scan_content(content: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let (py, source) = (content.py(), Bytes::new(content)?);
    let report = waiting::run(py, waiting::LONG, None, |watched| {
        let bytes = source.bytes().to_vec();
        scan_bytes("", bytes, &ScanOptions { cancel: Some(watched.cancel), ..Default::default() })
    })?;
    object(&py.import("weigh._scan")?, &report)
}

/// A file of which nothing is known.
fn unread(classes: &Bound<'_, PyModule>, path: &Path, message: &str) -> PyResult<Py<PyAny>> {
    let made = classes.getattr("_unread")?.call1((path.as_os_str(), message))?;
    Ok(made.unbind())
}

fn object(classes: &Bound<'_, PyModule>, report: &ScanReport) -> PyResult<Py<PyAny>> {
    let py = classes.py();
    let global = classes.getattr("Global")?;
    let globals = report.globals.iter().map(|seen| {
        let (name, member) = ((&*seen.module, &*seen.name), seen.member.as_deref());
        global.call1((name.0, name.1, member, seen.offset, seen.count, seen.known))
    });
    let call = classes.getattr("Call")?;
    let calls = report.calls.iter().map(|seen| {
        let callee = seen.callee.as_ref().map(|(module, name)| format!("{module}.{name}"));
        call.call1((callee, seen.member.as_deref(), seen.offset, seen.gadget))
    });
    let (takes, refusal) = match &report.weights_only {
        None => (None, None),
        Some(WeightsOnly::Taken) => (Some(true), None),
        Some(WeightsOnly::Refused(refused)) => (Some(false), Some(&*refused.reason)),
    };
    let made = classes.getattr("Scan")?.call1((
        report.path.as_os_str(),
        report.kind,
        report.verdict.map(weigh::torch::pickle::Verdict::name),
        report.complete,
        globals.collect::<PyResult<Vec<_>>>()?,
        calls.collect::<PyResult<Vec<_>>>()?,
        report.call_count,
        takes,
        refusal,
        finding::list(py, &report.findings)?,
        report.size,
    ))?;
    Ok(made.unbind())
}
