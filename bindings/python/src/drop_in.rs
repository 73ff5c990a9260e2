//! What `weigh.safetensors` needs of native code: the classes whose methods are called for every tensor.
//!
//! Names, arguments and what is returned are those of the package `safetensors`; the rest of it, what is in
//! `weigh/safetensors/*.py`, is Python.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList, PyTuple};
use weigh::format::Dtype;
use weigh::format::shape::{Elements, byte_len, elements};
use weigh::{LoadOptions, Want};

use crate::checkpoint::{Opened, sorted};
use crate::error::exception;
use crate::index::{Taken, indices, take};
use crate::memory::Buffer;
use crate::source::Bytes;
use crate::{options, waiting};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SafeOpen>()?;
    module.add_class::<SafeSlice>()?;
    module.add_class::<TensorMeta>()?;
    module.add_function(wrap_pyfunction!(deserialize, module)?)
}

/// The exception of the original package.
fn raise(py: Python<'_>, message: &str, code: &str) -> PyErr {
    let make = || {
        let class = py.import("weigh.safetensors._errors")?.getattr("SafetensorError")?;
        PyResult::Ok(PyErr::from_value(class.call1((message, code))?))
    };
    make().unwrap_or_else(|failure| failure)
}

/// One file, and the framework and device that its tensors are for.
#[pyclass(frozen, subclass, module = "weigh._weigh")]
struct SafeOpen {
    /// Gone when it was closed.
    opened: RwLock<Option<Arc<Opened>>>,
    /// Makes a tensor of the framework from a buffer, for a device.
    convert: Py<PyAny>,
    device: Py<PyAny>,
    /// Whether tensors are their file's memory.
    is_mapped: bool,
}

impl SafeOpen {
    fn opened(&self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        let opened = self.opened.read().ok().and_then(|opened| opened.clone());
        opened.ok_or_else(|| raise(py, "File is closed", "closed"))
    }

    fn converted<'py>(&self, py: Python<'py>, buffer: Buffer) -> PyResult<Bound<'py, PyAny>> {
        self.convert.bind(py).call1((buffer, &self.device))
    }
}

/// The tensor of a name, or the original's word for that there is none.
fn find<'c>(py: Python<'_>, opened: &'c Opened, name: &str) -> PyResult<weigh::Tensor<'c>> {
    let missing = || raise(py, &format!("File does not contain tensor {name}"), "no-tensor");
    opened.checkpoint.get(name).ok_or_else(missing)
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
        let opened = Opened::open_file(py, &path, &options::opening(false, None))?;
        Ok(Self { opened: RwLock::new(Some(opened)), convert, device, is_mapped })
    }

    /// Lets go of the file. Tensors that were made of it stay.
    fn _close(&self) {
        if let Ok(mut opened) = self.opened.write() {
            *opened = None;
        }
    }

    /// The names, sorted by code points.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, sorted(&self.opened(py)?.checkpoint, "name")?)
    }

    /// The names, in the order of their bytes.
    fn offset_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, sorted(&self.opened(py)?.checkpoint, "file")?)
    }

    /// The metadata; `None` if the file has none.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let opened = self.opened(py)?;
        let Some(shard) = opened.checkpoint.shards().first() else { return Ok(None) };
        let pairs = PyDict::new(py);
        for (key, value) in shard.header().metadata() {
            pairs.set_item(&*key, &*value)?;
        }
        Ok(shard.header().has_metadata().then_some(pairs))
    }

    /// One tensor.
    fn get_tensor<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.opened(py)?;
        let tensor = find(py, &opened, name)?;
        if self.is_mapped
            && let Some(buffer) = opened.mapped(py, &tensor)?
        {
            return self.converted(py, buffer);
        }
        let read = opened.read(py, &[Want::new(name)], None, None, true)?;
        let buffer = read.into_iter().next();
        let buffer = buffer.ok_or_else(|| raise(py, "nothing was read", "internal"))?;
        self.converted(py, buffer)
    }

    /// All tensors, by name.
    fn get_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let opened = self.opened(py)?;
        let names = sorted(&opened.checkpoint, "file")?;
        let all = PyDict::new(py);
        if self.is_mapped {
            for name in names {
                let buffer = opened.mapped(py, &find(py, &opened, name)?)?;
                let buffer = buffer.ok_or_else(|| raise(py, "nothing is mapped", "internal"))?;
                all.set_item(name, self.converted(py, buffer)?)?;
            }
            return Ok(all);
        }
        let wants: Vec<Want<'_>> = names.iter().map(|name| Want::new(name)).collect();
        let buffers = opened.read(py, &wants, None, None, true)?;
        for (name, buffer) in names.into_iter().zip(buffers) {
            all.set_item(name, self.converted(py, buffer)?)?;
        }
        Ok(all)
    }

    /// A tensor to take slices of.
    fn get_slice(slf: PyRef<'_, Self>, name: &str) -> PyResult<SafeSlice> {
        let py = slf.py();
        let opened = slf.opened(py)?;
        let tensor = find(py, &opened, name)?;
        let (dtype, shape) = (tensor.dtype, tensor.shape.to_vec());
        Ok(SafeSlice { open: slf.into_pyobject(py)?.unbind(), name: name.into(), dtype, shape })
    }

    /// What the header says of a tensor.
    fn get_tensor_meta(&self, py: Python<'_>, name: &str) -> PyResult<TensorMeta> {
        let opened = self.opened(py)?;
        let tensor = find(py, &opened, name)?;
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

/// A tensor to take slices of.
#[pyclass(frozen, name = "PySafeSlice", module = "weigh.safetensors")]
struct SafeSlice {
    open: Py<SafeOpen>,
    name: Box<str>,
    dtype: Dtype,
    shape: Vec<u64>,
}

#[pymethods]
impl SafeSlice {
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.shape)
    }

    fn get_dtype(&self) -> &'static str {
        self.dtype.name()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let open = self.open.get();
        let opened = open.opened(py)?;
        let whole: Vec<Taken> = self.shape.iter().map(|size| Taken::all(*size)).collect();
        let taken = take(&whole, &indices(index)?)?;
        let sizes: Vec<u64> = taken.iter().filter_map(|taken| taken.kept()).collect();
        let bytes = match elements(&sizes) {
            Elements::Exact(count) => byte_len(self.dtype, count).unwrap_or(0),
            _ => 0,
        };
        let want = Want::new(&self.name).slice(taken.iter().map(|taken| taken.index()));
        let array = waiting::run(py, bytes, None, |watched| {
            let load = LoadOptions {
                cancel: Some(watched.cancel),
                overcommit: true,
                ..LoadOptions::default()
            };
            let loaded = opened.checkpoint.plan([&want])?.load(&load)?;
            let array = loaded.into_iter().next().map(|(_, array)| array);
            array.ok_or_else(|| weigh::Error::NoTensor { name: self.name.to_string() })
        })?;
        open.converted(py, Buffer::new(array)?)
    }
}

/// The tensors of a file's content: `[(name, {"dtype", "shape", "data"}), …]`, in the order of their bytes.
#[pyfunction]
fn deserialize<'py>(bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
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
        let entry = PyDict::new(py);
        entry.set_item("shape", PyList::new(py, tensor.shape)?)?;
        entry.set_item("dtype", tensor.dtype.name())?;
        entry.set_item("data", PyByteArray::new(py, data))?;
        all.append(PyTuple::new(py, [name.into_pyobject(py)?.into_any(), entry.into_any()])?)?;
    }
    Ok(all)
}
