//! Tensors one after another, under a memory budget.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::checkpoint::Opened;
use crate::error::exception;
use crate::memory::Buffer;

/// An iterator of `(name, buffer, shape, (first, end), is_last)`: whole tensors, or pieces of those that are larger
/// than the budget.
#[pyclass(frozen, module = "weigh._weigh")]
pub(crate) struct Stream {
    opened: Arc<Opened>,
    /// Gone when it was closed.
    stream: Mutex<Option<weigh::Stream>>,
}

impl Stream {
    pub(crate) fn new(opened: Arc<Opened>, stream: weigh::Stream) -> Self {
        Self { opened, stream: Mutex::new(Some(stream)) }
    }
}

type Item = (String, Buffer, Vec<u64>, (u64, u64), bool);

#[pymethods]
impl Stream {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Item>> {
        py.check_signals()?;
        let next = py.detach(|| {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            stream.as_mut().and_then(Iterator::next)
        });
        let Some(next) = next else { return Ok(None) };
        let item = next.map_err(|error| self.opened.better(exception(py, &error)))?;
        let elements = (item.elements.start, item.elements.end);
        Ok(Some((item.name, Buffer::new(item.array)?, item.shape, elements, item.is_last)))
    }

    /// Ends the reading. What has been handed out stays.
    fn close(&self, py: Python<'_>) {
        let close = || self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(py.detach(close));
    }
}
