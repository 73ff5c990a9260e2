//! Bytes of tensors that Python holds: the buffer protocol and `DLPack`.
//!
//! A [`Buffer`] and everything that was made of it share one count of references: memory lives as long as an array
//! or tensor that looks at it, however short the life of the checkpoint, or of the file, it came from.
#![expect(unsafe_code, reason = "memory is handed to Python by address")]

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

use dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLManagedTensor, DLManagedTensorVersioned,
};
use dlpark::metadata::Dynamic;
use dlpark::python::{DlpackExporter, ExportRequest, export_dlpack};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use weigh::Array;
use weigh::format::Dtype;
use weigh::format::text::shortened;
use weigh::io::map::{PrivateMap, Unchanging};
use weigh::io::{Block, FileSource};

use crate::error::refusal;

/// What owns the bytes.
enum Owner {
    Block { _block: Block },
    Map { _map: Arc<PrivateMap> },
}

/// An address, and what keeps it valid.
struct Memory {
    address: *mut u8,
    len: usize,
    _owner: Owner,
}

// SAFETY: the address is that of memory which `_owner` keeps and which is not bound to a thread: a block of an
// arena, or a map. Rust makes no reference to it once it is in here. Those that Python's world makes of it are
// plain memory to it, in which it has to order reads and writes itself, as with any array there.
unsafe impl Send for Memory {}
// SAFETY: as above; nothing but the address and the length can be had through a shared reference.
unsafe impl Sync for Memory {}

/// The bytes of a tensor: dense, little-endian, the last dimension fastest. Writable.
#[pyclass(frozen, module = "weigh")]
pub(crate) struct Buffer {
    memory: Arc<Memory>,
    dtype: Dtype,
    shape: Vec<u64>,
    /// As the buffer protocol and `DLPack` want them.
    sizes: Box<[isize]>,
    strides: Box<[isize]>,
}

impl Buffer {
    /// An array that was read.
    pub(crate) fn new(py: Python<'_>, name: &str, array: Array) -> PyResult<Self> {
        let (dtype, shape) = (array.dtype(), array.shape().to_vec());
        let mut block = array.into_block();
        let (address, len) = (block.as_mut_ptr(), block.len());
        let memory = Memory { address, len, _owner: Owner::Block { _block: block } };
        Self::of(py, name, memory, dtype, shape)
    }

    /// A span of a mapped file; `None` if it has no such bytes.
    pub(crate) fn mapped(
        py: Python<'_>,
        name: &str,
        map: &Arc<PrivateMap>,
        span: &Range<u64>,
        dtype: Dtype,
        shape: &[u64],
    ) -> PyResult<Option<Self>> {
        let place = [span.start, span.end].map(usize::try_from);
        let [Ok(start), Ok(end)] = place else { return Ok(None) };
        if start > end || end > map.len() {
            return Ok(None);
        }
        // `start` is at most the length of the map: the address is in it or at its end.
        let address = map.as_ptr().wrapping_add(start);
        let memory =
            Memory { address, len: end - start, _owner: Owner::Map { _map: Arc::clone(map) } };
        Self::of(py, name, memory, dtype, shape.to_vec()).map(Some)
    }

    fn of(
        py: Python<'_>,
        name: &str,
        memory: Memory,
        dtype: Dtype,
        shape: Vec<u64>,
    ) -> PyResult<Self> {
        let too_large = |_| {
            let name = shortened(name);
            let message =
                format!("{name}: {shape:?} has a dimension that is too large for this machine");
            refusal(py, &message, "dimension-too-large")
        };
        let typed = Form::of(dtype);
        let sizes: Vec<isize> = match typed.code {
            Some(_) => shape.iter().map(|size| isize::try_from(*size)).collect::<Result<_, _>>(),
            None => isize::try_from(memory.len).map(|len| vec![len]),
        }
        .map_err(too_large)?;
        let mut stride = typed.bytes;
        let mut strides = vec![0; sizes.len()];
        for (own, size) in strides.iter_mut().zip(&sizes).rev() {
            *own = stride;
            stride = stride.saturating_mul(*size);
        }
        let (sizes, strides) = (sizes.into(), strides.into());
        Ok(Self { memory: Arc::new(memory), dtype, shape, sizes, strides })
    }

    /// The tensor for `DLPack`: of its own type where all libraries know that, else of bytes.
    fn managed<M: ManagedTensorBase>(&self, py: Python<'_>) -> PyResult<Managed<M>> {
        let form = Form::of(self.dtype);
        let sizes: Vec<i64> = match form.dlpack {
            Some(_) => self.shape.iter().map(|it| i64::try_from(*it).unwrap_or(i64::MAX)).collect(),
            None => vec![i64::try_from(self.memory.len).unwrap_or(i64::MAX)],
        };
        // Also of no elements: strides are products of dimensions.
        let strided = sizes.iter().try_fold(1_i64, |product, size| product.checked_mul(*size));
        if strided.is_none() {
            let message = format!("{:?} is too large for this machine", self.shape);
            return Err(refusal(py, &message, "dimension-too-large"));
        }
        let tensor = Dynamic::compact(&*sizes).initialize_as::<M>(Arc::clone(&self.memory));
        let mut tensor = tensor.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        tensor.set_data(self.memory.address.cast::<c_void>());
        tensor.set_device(DLDevice::CPU);
        tensor.set_dtype(form.dlpack.unwrap_or(DLDataType::U8));
        // SAFETY: the address is valid for reads and writes of as many bytes as the sizes and the type make, which
        // `weigh` has checked against the header, as long as the context, a count of the memory, lives; the strides
        // are those of dense rows, and the flags say nothing that is not so.
        Ok(unsafe { tensor.finish() })
    }
}

/// How a dtype is told to others.
struct Form {
    /// The format of Python's `struct`; `None` for dtypes that it does not have.
    code: Option<&'static CStr>,
    /// Bytes of one item of that format, or 1.
    bytes: isize,
    /// The type in `DLPack`; `None` where libraries disagree on it.
    dlpack: Option<DLDataType>,
}

impl Form {
    const BYTES: Self = Self { code: None, bytes: 1, dlpack: None };

    const fn of(dtype: Dtype) -> Self {
        let (code, bytes, dlpack) = match dtype {
            Dtype::BOOL => (c"?", 1, DLDataType::BOOL),
            Dtype::U8 => (c"B", 1, DLDataType::U8),
            Dtype::I8 => (c"b", 1, DLDataType::I8),
            Dtype::U16 => (c"H", 2, DLDataType::U16),
            Dtype::I16 => (c"h", 2, DLDataType::I16),
            Dtype::U32 => (c"I", 4, DLDataType::U32),
            Dtype::I32 => (c"i", 4, DLDataType::I32),
            Dtype::U64 => (c"Q", 8, DLDataType::U64),
            Dtype::I64 => (c"q", 8, DLDataType::I64),
            Dtype::F16 => (c"e", 2, DLDataType::scalar(DLDataTypeCode::FLOAT, 16)),
            Dtype::F32 => (c"f", 4, DLDataType::F32),
            Dtype::F64 => (c"d", 8, DLDataType::F64),
            Dtype::C64 => (c"Zf", 8, DLDataType::C64),
            Dtype::BF16 => {
                let dlpack = Some(DLDataType::scalar(DLDataTypeCode::BFLOAT, 16));
                return Self { dlpack, ..Self::BYTES };
            }
            _ => return Self::BYTES,
        };
        Self { code: Some(code), bytes, dlpack: Some(dlpack) }
    }
}

#[pymethods]
impl Buffer {
    /// The dtype, by its name in the format.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The dimensions, in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Its length in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.memory.len
    }

    /// The address of the first byte.
    #[getter]
    fn address(&self) -> usize {
        self.memory.address.addr()
    }

    /// Whether the first element is where such elements may be; only those of mapped files may not be.
    #[getter]
    fn is_aligned(&self) -> bool {
        let bytes = usize::try_from(self.dtype.bits().div_ceil(8)).unwrap_or(1).max(1);
        self.memory.address.addr().is_multiple_of(if self.dtype == Dtype::C64 { 4 } else { bytes })
    }

    fn __reduce__(&self) -> PyResult<()> {
        let message = "a buffer is not pickled: pickle a tensor made of it, or bytes(buffer)";
        Err(pyo3::exceptions::PyTypeError::new_err(message))
    }

    fn __repr__(&self) -> String {
        format!("<weigh.Buffer {} {:?}>", self.dtype, self.shape)
    }

    fn __len__(&self) -> usize {
        self.memory.len
    }

    /// A `DLPack` capsule, to be used once, of the oldest kind, which every library takes.
    fn capsule(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.managed::<DLManagedTensor>(py)?.into_pyobject(py)?.unbind())
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        export_dlpack(self, py, ExportRequest::parse(stream, max_version, dl_device, copy)?)
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        (DLDevice::CPU.device_type.0, DLDevice::CPU.device_id)
    }

    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is nowhere to describe the buffer"));
        }
        let form = Form::of(slf.dtype);
        let wants = |flag: c_int| flags & flag == flag;
        let in_rows = slf.sizes.iter().filter(|size| **size > 1).count() > 1 && slf.memory.len > 0;
        if wants(ffi::PyBUF_F_CONTIGUOUS) && in_rows {
            return Err(PyBufferError::new_err("the last dimension is the fastest, not the first"));
        }
        let code = form.code.unwrap_or(c"B");
        let described = ffi::Py_buffer {
            buf: slf.memory.address.cast::<c_void>(),
            obj: std::ptr::null_mut(),
            len: isize::try_from(slf.memory.len).unwrap_or(isize::MAX),
            itemsize: form.bytes,
            readonly: 0,
            ndim: c_int::try_from(slf.sizes.len()).unwrap_or(c_int::MAX),
            format: if wants(ffi::PyBUF_FORMAT) {
                code.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            },
            shape: if wants(ffi::PyBUF_ND) {
                slf.sizes.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            },
            strides: if wants(ffi::PyBUF_STRIDES) {
                slf.strides.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            },
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        };
        let described = ffi::Py_buffer { obj: slf.into_ptr(), ..described };
        // SAFETY: the caller, Python, gives a place for one `Py_buffer`; it is not null. The description holds a
        // reference to this object, which keeps the bytes, the sizes and the strides, none of which ever change.
        unsafe { view.write(described) };
        Ok(())
    }
}

/// A file as memory.
pub(crate) fn map(file: &FileSource) -> Result<Arc<PrivateMap>, weigh::Error> {
    // SAFETY: this is the word of whoever asks for mapped tensors, as `weigh.safetensors` says they do: that nobody
    // writes to the file or shortens it while a tensor of it lives. No reference to the memory is made here.
    let promise = unsafe { Unchanging::promise() };
    Ok(Arc::new(PrivateMap::new(file, promise)?))
}

impl DlpackExporter for Buffer {
    fn device(&self) -> DLDevice {
        DLDevice::CPU
    }

    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }

    fn prepare_export(&self, _: Python<'_>, _: &ExportRequest<'_>) -> PyResult<()> {
        Ok(())
    }

    fn export_legacy(&self, py: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.managed(py)
    }

    fn export_versioned(&self, py: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed(py)
    }
}
