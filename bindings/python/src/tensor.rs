//! A tensor of a checkpoint, or a view of one, that is read when it is asked for.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use weigh::format::Dtype;
use weigh::format::shape::{Elements, byte_len, elements};
use weigh::{LoadOptions, Want};

use crate::checkpoint::Opened;
use crate::index::{Taken, indices, take};
use crate::memory::Buffer;
use crate::{options, waiting};

/// A tensor, or a view of one: its name, dtype and shape are known, and its bytes stay in the file until they are
/// asked for.
#[pyclass(frozen, module = "weigh")]
pub(crate) struct Tensor {
    opened: Arc<Opened>,
    name: Box<str>,
    dtype: Dtype,
    /// Of the tensor in the file.
    shape: Box<[u64]>,
    /// What of it is meant; nothing if that is all of it.
    view: Option<Box<[Taken]>>,
}

impl Tensor {
    pub(crate) fn new(opened: &Arc<Opened>, tensor: &weigh::Tensor<'_>) -> Self {
        Self {
            opened: Arc::clone(opened),
            name: tensor.name.into(),
            dtype: tensor.dtype,
            shape: tensor.shape.into(),
            view: None,
        }
    }

    fn sizes(&self) -> Vec<u64> {
        match &self.view {
            None => self.shape.to_vec(),
            Some(view) => view.iter().filter_map(|taken| taken.kept()).collect(),
        }
    }

    fn bytes(&self) -> u64 {
        match elements(&self.sizes()) {
            Elements::Exact(count) => byte_len(self.dtype, count)
                .unwrap_or_else(|_| count.saturating_mul(self.dtype.bits().into()).div_ceil(8)),
            _ => u64::MAX,
        }
    }

    pub(crate) fn want(&self, to: Option<Dtype>) -> Want<'_> {
        let mut want = Want::new(&self.name);
        if let Some(view) = &self.view {
            want = want.slice(view.iter().map(|taken| taken.index()));
        }
        match to {
            Some(to) => want.cast(to),
            None => want,
        }
    }

    /// The tensor in the way of a framework.
    fn in_framework<'py>(
        &self,
        py: Python<'py>,
        framework: &str,
        device: Option<&Bound<'py, PyAny>>,
        to: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let buffer = self.read(py, to)?;
        let frameworks = py.import("weigh._frameworks")?;
        frameworks.getattr("converter")?.call1((framework,))?.call1((buffer, device))
    }
}

#[pymethods]
impl Tensor {
    /// The name, as it is in the file.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The dtype, by its name in the format.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The dimensions, in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.view {
            None => PyTuple::new(py, self.shape.iter()),
            Some(_) => PyTuple::new(py, self.sizes()),
        }
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        match &self.view {
            None => self.shape.len(),
            Some(view) => view.iter().filter(|taken| taken.kept().is_some()).count(),
        }
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> u64 {
        match elements(&self.sizes()) {
            Elements::Exact(count) => count,
            _ => u64::MAX,
        }
    }

    /// Bytes that it takes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.bytes()
    }

    /// The path of the file that it is in.
    #[getter]
    fn file(&self) -> std::path::PathBuf {
        let tensor = self.opened.checkpoint.get(&self.name);
        tensor.map(|tensor| tensor.shard.path().to_path_buf()).unwrap_or_default()
    }

    /// Where in that file its bytes are, the start and the end; of a view, those of the whole tensor.
    #[getter]
    fn span(&self) -> (u64, u64) {
        let tensor = self.opened.checkpoint.get(&self.name);
        tensor.map(|tensor| (tensor.span.start, tensor.span.end)).unwrap_or_default()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.sizes().first().copied();
        let first = first.ok_or_else(|| {
            pyo3::exceptions::PyTypeError::new_err("len() of a tensor without dimensions")
        })?;
        Ok(usize::try_from(first).unwrap_or(usize::MAX))
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let whole: Vec<Taken>;
        let view = match &self.view {
            Some(view) => view,
            None => {
                whole = self.shape.iter().map(|size| Taken::all(*size)).collect();
                &*whole
            }
        };
        let view = take(view, &indices(index)?)?;
        Ok(Self {
            opened: Arc::clone(&self.opened),
            name: self.name.clone(),
            dtype: self.dtype,
            shape: self.shape.clone(),
            view: Some(view.into()),
        })
    }

    /// Reads it into memory, as a float of another dtype if one is given.
    #[pyo3(signature = (dtype=None))]
    fn read(&self, py: Python<'_>, dtype: Option<&str>) -> PyResult<Buffer> {
        let to = dtype.map(options::dtype).transpose()?;
        let read = waiting::run(py, self.bytes(), None, |watched| {
            let plan = self.opened.checkpoint.plan([&self.want(to)])?;
            let load = LoadOptions {
                cancel: Some(watched.cancel),
                progress: Some(watched.progress),
                ..LoadOptions::default()
            };
            let array = plan.load(&load)?.into_iter().next().map(|(_, array)| array);
            array.ok_or_else(|| weigh::Error::NoTensor { name: self.name.to_string() })
        });
        Buffer::new(read.map_err(|error| self.opened.better(error))?)
    }

    /// Its bytes: little-endian, the last dimension fastest.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        let buffer = self.read(py, None)?.into_pyobject(py)?;
        let given = crate::given::Given::new(&buffer)?;
        Ok(pyo3::types::PyBytes::new(py, given.bytes()))
    }

    /// As a numpy array.
    #[pyo3(signature = (*, dtype=None))]
    fn numpy<'py>(&self, py: Python<'py>, dtype: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.in_framework(py, "numpy", None, dtype)
    }

    /// As a torch tensor.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn torch<'py>(
        &self,
        py: Python<'py>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_framework(py, "torch", device, dtype)
    }

    /// As a jax array.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn jax<'py>(
        &self,
        py: Python<'py>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_framework(py, "jax", device, dtype)
    }

    /// As an mlx array.
    #[pyo3(signature = (*, dtype=None))]
    fn mlx<'py>(&self, py: Python<'py>, dtype: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.in_framework(py, "mlx", None, dtype)
    }

    /// As a tensorflow tensor.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn tensorflow<'py>(
        &self,
        py: Python<'py>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_framework(py, "tensorflow", device, dtype)
    }

    /// As a paddle tensor.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn paddle<'py>(
        &self,
        py: Python<'py>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_framework(py, "paddle", device, dtype)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            let message = "a tensor that is in a file cannot be an array without being copied";
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        let array = self.in_framework(py, "numpy", None, None)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    fn __repr__(&self) -> String {
        let name = weigh::format::text::escaped(&self.name);
        format!("<weigh.Tensor '{name}' {} {:?}>", self.dtype, self.sizes())
    }
}
