//! What `weigh.safetensors` needs of native code: the classes whose methods are called for every tensor.
//!
//! Names, arguments and what is returned are those of the package `safetensors`; the rest of it, what is in
//! `weigh/safetensors/*.py`, is Python.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyTuple};
use weigh::Want;

use crate::checkpoint::{Checkpoint, Opened, sorted};
use crate::error::exception;
use crate::memory::Buffer;
use crate::options;
use crate::safe_slice::SafeSlice;
use crate::source::Bytes;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SafeOpen>()?;
    module.add_class::<SafeSlice>()?;
    module.add_class::<TensorMeta>()?;
    module.add_function(wrap_pyfunction!(deserialize, module)?)
}

/// The exception of the original package.
pub(crate) fn raise(py: Python<'_>, message: &str, code: &str) -> PyErr {
    let make = || {
        let class = py.import("weigh.safetensors._errors")?.getattr("SafetensorError")?;
        let error = class.call1((message,))?;
        error.setattr("code", code)?;
        PyResult::Ok(PyErr::from_value(error))
    };
    make().unwrap_or_else(|failure| failure)
}

/// An exception of this package as the original would raise it.
pub(crate) fn translated(py: Python<'_>, error: PyErr) -> PyErr {
    let make = || {
        let translate = py.import("weigh.safetensors._errors")?.getattr("translated")?;
        PyResult::Ok(PyErr::from_value(translate.call1((error.value(py),))?))
    };
    make().unwrap_or(error)
}

/// An open file, and the framework and device that its tensors are for.
pub(crate) struct Served {
    pub(crate) opened: Arc<Opened>,
    /// Makes a tensor of the framework from a buffer, for a device.
    pub(crate) convert: Py<PyAny>,
    pub(crate) device: Py<PyAny>,
    /// Whether tensors are their file's memory; then they are torch's.
    pub(crate) is_mapped: bool,
}

impl Served {
    /// The tensor of a name, or the original's word for that there is none.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<weigh::Tensor<'_>> {
        let missing = || raise(py, &format!("File does not contain tensor {name}"), "no-tensor");
        self.opened.checkpoint.get(name).ok_or_else(missing)
    }

    /// What the framework makes of a buffer, on the device.
    pub(crate) fn converted<'py>(
        &self,
        py: Python<'py>,
        buffer: Buffer,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.convert.bind(py).call1((buffer, &self.device))
    }

    /// A tensor that is its file's memory.
    pub(crate) fn mapped(&self, py: Python<'_>, name: &str) -> PyResult<Buffer> {
        let buffer = self.opened.mapped(py, &self.find(py, name)?);
        let buffer = buffer.map_err(|error| translated(py, error))?;
        buffer.ok_or_else(|| raise(py, "nothing is mapped", "internal"))
    }

    /// Tensors that are read into one allocation.
    fn read(&self, py: Python<'_>, names: &[&str]) -> PyResult<Vec<Buffer>> {
        let wants: Vec<Want<'_>> = names.iter().map(|name| Want::new(name)).collect();
        let read = self.opened.read(py, &wants, None, None, true);
        read.map_err(|error| translated(py, error))
    }
}

/// One file. Closing lets go of it; tensors and slices that were made of it stay.
#[pyclass(frozen, subclass, module = "weigh._weigh")]
struct SafeOpen {
    /// Gone when it was closed.
    served: RwLock<Option<Arc<Served>>>,
}

impl SafeOpen {
    fn served(&self, py: Python<'_>) -> PyResult<Arc<Served>> {
        let served = self.served.read().ok().and_then(|served| served.clone());
        served.ok_or_else(|| raise(py, "File is closed", "closed"))
    }
}

#[pymethods]
impl SafeOpen {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        convert: Py<PyAny>,
        device: Py<PyAny>,
        is_mapped: bool,
    ) -> PyResult<Self> {
        let opened = Opened::open_file(py, &path, &options::opening(false, None), is_mapped)?;
        let served = Served { opened, convert, device, is_mapped };
        Ok(Self { served: RwLock::new(Some(Arc::new(served))) })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        _exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        if let Ok(mut served) = self.served.write() {
            *served = None;
        }
    }

    /// The file as this package's own `Checkpoint` has it.
    fn _checkpoint(&self, py: Python<'_>) -> PyResult<Checkpoint> {
        Ok(Checkpoint { opened: Arc::clone(&self.served(py)?.opened) })
    }

    /// The names, sorted by code points.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, sorted(&self.served(py)?.opened.checkpoint, "name")?)
    }

    /// The names, in the order of their bytes.
    fn offset_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, sorted(&self.served(py)?.opened.checkpoint, "file")?)
    }

    /// The metadata; `None` if the file has none.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let served = self.served(py)?;
        let Some(shard) = served.opened.checkpoint.shards().first() else { return Ok(None) };
        let header = shard.header();
        if !header.has_metadata() {
            return Ok(None);
        }
        let pairs = PyDict::new(py);
        for (key, value) in header.metadata() {
            pairs.set_item(&*key, &*value)?;
        }
        Ok(Some(pairs))
    }

    /// One tensor.
    fn get_tensor<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let served = self.served(py)?;
        served.find(py, name)?;
        let buffer = if served.is_mapped {
            served.mapped(py, name)?
        } else {
            let read = served.opened.read_one(py, &Want::new(name), true);
            read.map_err(|error| translated(py, error))?
        };
        served.converted(py, buffer)
    }

    /// All tensors, by name.
    fn get_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let served = self.served(py)?;
        let names = sorted(&served.opened.checkpoint, "file")?;
        let all = PyDict::new(py);
        if served.is_mapped {
            for name in names {
                all.set_item(name, served.converted(py, served.mapped(py, name)?)?)?;
            }
            return Ok(all);
        }
        let buffers = served.read(py, &names)?;
        for (name, buffer) in names.into_iter().zip(buffers) {
            all.set_item(name, served.converted(py, buffer)?)?;
        }
        Ok(all)
    }

    /// A tensor to take slices of.
    fn get_slice(&self, py: Python<'_>, name: &str) -> PyResult<SafeSlice> {
        let served = self.served(py)?;
        let tensor = served.find(py, name)?;
        let (dtype, shape) = (tensor.dtype, tensor.shape.to_vec());
        Ok(SafeSlice::new(&served, name, dtype, shape))
    }

    /// What the header says of a tensor.
    fn get_tensor_meta(&self, py: Python<'_>, name: &str) -> PyResult<TensorMeta> {
        let served = self.served(py)?;
        let tensor = served.find(py, name)?;
        let start = tensor.shard.header().data_start();
        let data_offsets = (tensor.span.start - start, tensor.span.end - start);
        let (dtype, shape) = (tensor.dtype.name(), tensor.shape.to_vec());
        Ok(TensorMeta { dtype, shape, data_offsets })
    }
}

/// What the header says of a tensor.
#[pyclass(frozen, get_all, module = "weigh.safetensors")]
struct TensorMeta {
    dtype: &'static str,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

#[pymethods]
impl TensorMeta {
    fn __repr__(&self) -> String {
        let Self { dtype, shape, data_offsets: (start, end) } = self;
        format!("TensorMeta(dtype='{dtype}', shape={shape:?}, data_offsets=({start}, {end}))")
    }
}

/// The tensors of a file's content: `[(name, {"dtype", "shape", "data"}), …]`, in the order of their bytes.
#[pyfunction]
fn deserialize<'py>(bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyList>> {
    let (py, source) = (bytes.py(), Bytes::new(bytes)?);
    let (len, options) = (source.len(), options::opening(false, None));
    let source = Arc::new(source);
    let opened =
        py.detach(|| weigh::Checkpoint::open_source(Arc::clone(&source) as _, len, &options));
    let checkpoint = opened.map_err(|error| exception(py, &error))?;
    let all = PyList::empty(py);
    for name in sorted(&checkpoint, "file")? {
        let Some(tensor) = checkpoint.get(name) else { continue };
        let [start, end] = [tensor.span.start, tensor.span.end].map(usize::try_from);
        let (Ok(start), Ok(end)) = (start, end) else { continue };
        let data = source.bytes().get(start..end).unwrap_or_default();
        let data = PyByteArray::new_with(py, data.len(), |place| {
            py.detach(|| place.copy_from_slice(data));
            Ok(())
        })?;
        let entry = PyDict::new(py);
        entry.set_item("shape", PyList::new(py, tensor.shape)?)?;
        entry.set_item("dtype", tensor.dtype.name())?;
        entry.set_item("data", data)?;
        all.append(PyTuple::new(py, [name.into_pyobject(py)?.into_any(), entry.into_any()])?)?;
    }
    Ok(all)
}
