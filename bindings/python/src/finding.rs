//! Findings as Python sees them: instances of the dataclass `weigh.Finding`.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weigh::format::finding::Evidence;
use weigh::format::{Finding, Findings};
use weigh::{Options, Survey, inspect_source};

use crate::source::{Bytes, Reader};
use crate::{error, waiting, words};

/// The list of what was found.
pub(crate) fn list<'py>(py: Python<'py>, findings: &Findings) -> PyResult<Bound<'py, PyList>> {
    let all = PyList::empty(py);
    extend(&all, findings)?;
    Ok(all)
}

fn extend(all: &Bound<'_, PyList>, findings: &Findings) -> PyResult<()> {
    let class = all.py().import("weigh._errors")?.getattr("Finding")?;
    findings.list().iter().try_for_each(|finding| all.append(object(&class, finding)?))
}

fn object<'py>(class: &Bound<'py, PyAny>, finding: &Finding) -> PyResult<Bound<'py, PyAny>> {
    let evidence = PyDict::new(class.py());
    for (name, value) in &finding.evidence {
        match value {
            Evidence::Number(number) => evidence.set_item(name, number)?,
            Evidence::Text(text) => evidence.set_item(name, text)?,
        }
    }
    let place = &finding.place;
    let span = place.span.as_ref().map(|span| (span.start, span.end));
    let (file, tensor) = (place.file.as_deref(), place.tensor.as_deref());
    let (code, severity) = (finding.code(), finding.severity.name());
    let help = words::python(&finding.help);
    class.call1((code, severity, &*finding.message, help, file, tensor, span, evidence))
}

/// Everything found in the checkpoints of a path, their indexes included. A file that cannot be read is an error.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyList>> {
    let look = || -> Result<Vec<Survey>, weigh::Error> {
        let found = weigh::find(&path)?;
        found.iter().map(|found| Survey::take(found, &Options::default())).collect()
    };
    let surveys = py.detach(look).map_err(|error| error::exception(py, &error))?;
    let all = PyList::empty(py);
    for survey in &surveys {
        if let Some(error) = survey.failures().next() {
            return Err(error::of_file(py, error));
        }
        survey.findings().try_for_each(|findings| extend(&all, findings))?;
    }
    Ok(all)
}

/// The same of a file's content in memory.
#[pyfunction]
pub(crate) fn check_bytes<'py>(content: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let (py, source) = (content.py(), Bytes::new(content)?);
    let look = || inspect_source(&source, source.len(), &Options::default());
    let inspection = py.detach(look).map_err(|error| error::exception(py, &error))?;
    list(py, inspection.findings())
}

/// The same of what an object gives by `read_at(offset, length) -> bytes`.
#[pyfunction]
pub(crate) fn check_reader(
    py: Python<'_>,
    reader: Py<PyAny>,
    length: u64,
    name: PathBuf,
) -> PyResult<Bound<'_, PyList>> {
    let reader = Reader::new(reader, name);
    let inspection = waiting::run_stoppable(
        py,
        waiting::LONG,
        None,
        || reader.stop(),
        |_| inspect_source(&reader, length, &Options::default()),
    )?;
    list(py, inspection.findings())
}
