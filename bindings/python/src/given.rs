//! Bytes that Python gives: by the buffer protocol, or by address.
#![expect(unsafe_code, reason = "memory is taken from Python by address")]

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

/// Bytes that somebody else has, and does not change while they are looked at.
///
/// Nothing keeps Python from changing them in another thread meanwhile; then what is read of them is any mixture of
/// bytes, as with every library that writes arrays to files. No byte of them is trusted.
#[derive(Debug)]
pub(crate) struct Given {
    address: *const u8,
    len: usize,
    /// What keeps the address valid; `None` if the caller does.
    _buffer: Option<PyUntypedBuffer>,
}

// SAFETY: the address is that of plain memory, which `_buffer`, or the caller of `at`, keeps valid whatever thread
// looks; the buffer itself can be sent and shared.
unsafe impl Send for Given {}
// SAFETY: as above; it is only read.
unsafe impl Sync for Given {}

impl Given {
    /// The bytes of an object with the buffer protocol.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer is not contiguous"));
        }
        let (address, len) = (buffer.buf_ptr().cast::<u8>().cast_const(), buffer.len_bytes());
        Ok(Self { address, len, _buffer: Some(buffer) })
    }

    /// Bytes at an address.
    ///
    /// # Safety
    ///
    /// The address has to be valid for reads of so many bytes until this is dropped.
    pub(crate) unsafe fn at(address: usize, len: usize) -> PyResult<Self> {
        if isize::try_from(len).is_err() || (address == 0 && len > 0) {
            return Err(PyValueError::new_err("there can be no bytes there"));
        }
        Ok(Self { address: std::ptr::with_exposed_provenance(address), len, _buffer: None })
    }

    /// Copies them to a place of the same length, without the interpreter's lock.
    pub(crate) fn copy_to(&self, py: Python<'_>, place: &mut [u8]) -> PyResult<()> {
        let bytes = self.bytes();
        if place.len() != bytes.len() {
            return Err(PyBufferError::new_err("there is another number of bytes"));
        }
        py.detach(|| place.copy_from_slice(bytes));
        Ok(())
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len == 0 || self.address.is_null() {
            return &[];
        }
        // SAFETY: the buffer protocol, or the caller of `at`, says that the address is valid for reads of so many
        // bytes as long as this lives; they are bytes, which are aligned anywhere and may have any value. That they
        // do not change while the slice lives is the promise of whoever gives them, which `weigh.save`, `weigh.open`
        // and the functions of `weigh.safetensors` ask for in their docs: Python has no way to enforce it, and Rust
        // none to check it.
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }
}
