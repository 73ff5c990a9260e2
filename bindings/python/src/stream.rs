//! Tensors one after another, under a memory budget.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use weigh::io::Cancel;

use crate::checkpoint::Opened;
use crate::error::exception;
use crate::memory::Buffer;
use crate::source::Reader;
use crate::waiting::LOOK;

/// An iterator of `(name, buffer, shape, (first, end), is_last)`: whole tensors, or pieces of those that are larger
/// than the budget.
#[pyclass(frozen, module = "weigh._weigh")]
pub(crate) struct Stream {
    reader: Option<Arc<Reader>>,
    cancel: Option<Arc<Cancel>>,
    /// The process that it was made in: the thread that reads is in no other.
    process: u32,
    /// Gone when it was closed.
    reading: Mutex<Option<weigh::Stream>>,
}

impl Stream {
    pub(crate) fn new(opened: &Opened, stream: weigh::Stream, cancel: Option<Arc<Cancel>>) -> Self {
        let (reader, process) = (opened.reader.clone(), std::process::id());
        Self { reader, cancel, process, reading: Mutex::new(Some(stream)) }
    }

    /// Whether this process was forked from the one that it was made in.
    fn is_strange(&self) -> bool {
        std::process::id() != self.process
    }

    /// Ends the reading, and waits for that, where there is a thread to wait for.
    fn end(&self, stream: Option<weigh::Stream>) {
        // Nor can a thread wait for itself.
        let is_asked = self.reader.as_ref().is_some_and(|reader| reader.is_asked_here());
        if self.is_strange() || is_asked {
            std::mem::forget(stream);
        } else {
            drop(stream);
        }
    }
}

type Item = (String, Buffer, Vec<u64>, (u64, u64), bool);

#[pymethods]
impl Stream {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Item>> {
        if self.is_strange() {
            let message = "a stream is read by the process that made it: make another after a fork";
            return Err(PyRuntimeError::new_err(message));
        }
        if let Some(reader) = &self.reader {
            reader.refuse_itself()?;
        }
        let next = loop {
            py.check_signals()?;
            let next = py.detach(|| {
                let mut stream = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
                match stream.as_mut() {
                    Some(stream) => stream.next_within(LOOK),
                    None => Poll::Ready(None),
                }
            });
            if let Poll::Ready(next) = next {
                break next;
            }
        };
        let Some(next) = next else { return Ok(None) };
        let item = next.map_err(|error| {
            let raised = exception(py, &error);
            if !raised.is_instance_of::<PyStopIteration>(py) {
                return raised;
            }
            // It would be taken for the end.
            let own = PyRuntimeError::new_err("a source raised StopIteration");
            own.set_cause(py, Some(raised));
            own
        })?;
        let elements = (item.elements.start, item.elements.end);
        let buffer = Buffer::new(py, &item.name, item.array)?;
        Ok(Some((item.name, buffer, item.shape, elements, item.is_last)))
    }

    /// Ends the reading, at once and in whatever thread somebody waits for the next tensor. What has been handed out
    /// stays.
    fn close(&self, py: Python<'_>) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
        if self.is_strange() {
            return;
        }
        py.detach(|| {
            let stream = self.reading.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.end(stream);
        });
    }
}

impl Drop for Stream {
    /// The thread that reads may be asking an object of Python, and is waited for: not with the interpreter's lock.
    fn drop(&mut self) {
        let stream = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
        Python::attach(|py| py.detach(|| self.end(stream)));
    }
}
