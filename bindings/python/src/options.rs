//! Words of Python as the library's types.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weigh::Options;
use weigh::format::{Dtype, Limits, Policy};

/// A dtype by its name in the format.
pub(crate) fn dtype(name: &str) -> PyResult<Dtype> {
    Dtype::from_name(name.as_bytes()).ok_or_else(|| {
        let nearest = Dtype::nearest(name).map(|dtype| format!(": did you mean {dtype}?"));
        let message = format!("there is no dtype {name:?}{}", nearest.unwrap_or_default());
        PyValueError::new_err(message)
    })
}

/// How to open: strictly or not, and the largest header in bytes.
pub(crate) fn opening(strict: bool, max_header: Option<u64>) -> Options {
    let policy = if strict { Policy::Strict } else { Policy::Compatible };
    let default = Limits::default();
    let limits = match max_header {
        Some(header_bytes) => Limits { header_bytes, ..default },
        None => default,
    };
    Options { policy, limits, ..Options::default() }
}
