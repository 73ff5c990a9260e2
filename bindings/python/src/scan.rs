//! Scans, as Python sees them: instances of the classes in `weigh/_scan.py`.

use std::path::PathBuf;

use pyo3::prelude::*;
use weigh::torch::scan::{ScanOptions, ScanReport, WeightsOnly, walk};

use crate::error::of_file;
use crate::{finding, waiting};

/// Scans a file, or all files of a folder.
#[pyfunction]
pub(crate) fn scan(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Py<PyAny>>> {
    let (found, options) = (py.detach(|| walk(&path)), ScanOptions::default());
    if let Some(error) = found.unread.first() {
        return Err(of_file(py, error));
    }
    let classes = py.import("weigh._scan")?;
    let reports = found.files.iter().map(|file| {
        let report =
            waiting::run(py, waiting::LONG, None, |_| weigh::torch::scan::scan(file, &options))?;
        object(&classes, &report)
    });
    reports.collect()
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
    ))?;
    Ok(made.unbind())
}
