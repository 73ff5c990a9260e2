//! A tensor of a checkpoint, or a view of one, that is read when it is asked for.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use weigh::Want;
use weigh::format::Dtype;
use weigh::format::shape::{Elements, byte_len, elements};
use weigh::format::text::{escaped, shortened};

use crate::checkpoint::Opened;
use crate::error::of_index;
use crate::given::Given;
use crate::index::{Taken, indices, take};
use crate::memory::Buffer;
use crate::options;

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
            Elements::NoneBesideOverflow => 0,
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
        slf: &Bound<'py, Self>,
        framework: &str,
        device: Option<&Bound<'py, PyAny>>,
        to: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let frameworks = slf.py().import("weigh._frameworks")?;
        frameworks.getattr("converted")?.call1((framework, slf, to, device))
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
            Elements::NoneBesideOverflow => 0,
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
    fn file(&self) -> std::ffi::OsString {
        let tensor = self.opened.checkpoint.get(&self.name);
        tensor.map(|tensor| tensor.shard.path().as_os_str().to_owned()).unwrap_or_default()
    }

    /// Where in that file its bytes are, the start and the end; of a view, those of the whole tensor.
    #[getter]
    fn span(&self) -> (u64, u64) {
        let tensor = self.opened.checkpoint.get(&self.name);
        tensor.map(|tensor| (tensor.span.start, tensor.span.end)).unwrap_or_default()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.sizes().first().copied();
        let first =
            first.ok_or_else(|| PyTypeError::new_err("len() of a tensor without dimensions"))?;
        Ok(usize::try_from(first).unwrap_or(usize::MAX))
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "whether a tensor in a file is true is not known: compare with None, or read it",
        ))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let rows = slf.get().sizes().first().copied();
        let rows =
            rows.ok_or_else(|| PyTypeError::new_err("iteration over a tensor without dimensions"))?;
        let builtins = py.import("builtins")?;
        let places = builtins.getattr("range")?.call1((rows,))?;
        builtins.getattr("map")?.call1((slf.getattr("__getitem__")?, places))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __reduce__(&self) -> PyResult<()> {
        let message = "a tensor that is in a file is not pickled: pickle what .numpy() reads, or the checkpoint and the name";
        Err(PyTypeError::new_err(message))
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
        let py = index.py();
        let taken = indices(index, PyIndexError::new_err).and_then(|index| take(view, &index));
        let view = taken.map_err(|error| of_index(py, &self.name, error))?;
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
    fn read(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Buffer> {
        let to = match dtype {
            Some(dtype) => {
                let floats = py.import("weigh._frameworks")?.getattr("floats")?.call1((dtype,))?;
                floats.extract::<Option<String>>()?.as_deref().map(options::dtype).transpose()?
            }
            None => None,
        };
        self.opened.read_one(py, &self.want(to), false)
    }

    /// Its bytes: little-endian, the last dimension fastest.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let buffer = self.read(py, None)?.into_pyobject(py)?;
        let given = Given::new(&buffer)?;
        PyBytes::new_with(py, given.bytes().len(), |place| given.copy_to(py, place))
    }

    /// Reads it as a numpy array that looks at memory of its own. `BF16` and the floats of 8 bits and fewer are types
    /// of `ml_dtypes`; those of under 8 bits take a byte an element.
    ///
    /// Args:
    ///     dtype: a float dtype of the format that it is converted to, as `"F32"`.
    ///
    /// Raises:
    ///     `OSError`: the file could not be read, or was changed.
    ///     `WeighError`: it is no float, and cannot be converted.
    ///     `ImportError`: numpy or `ml_dtypes` is not there.
    #[pyo3(signature = (*, dtype=None))]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::in_framework(slf, "numpy", None, dtype)
    }

    /// Reads it as a torch tensor with memory of its own. `F4` comes two elements a byte, as torch has it.
    ///
    /// Args:
    ///     device: as torch names it, `"cuda:0"`; the CPU by default.
    ///     dtype: as for `numpy`.
    ///
    /// Raises: as `numpy`; `TypeError`: torch has no such dtype.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn torch<'py>(
        slf: &Bound<'py, Self>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::in_framework(slf, "torch", device, dtype)
    }

    /// Reads it as a jax array. Without `jax_enable_x64`, 64-bit types become 32-bit ones.
    ///
    /// Args:
    ///     device: one of jax's, or `"cpu"`, `"gpu:1"`, …; jax's own choice by default.
    ///     dtype: as for `numpy`.
    ///
    /// Raises: as `numpy`; `OverflowError`: integers that 32 bits cannot hold.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn jax<'py>(
        slf: &Bound<'py, Self>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::in_framework(slf, "jax", device, dtype)
    }

    /// Reads it as an mlx array.
    ///
    /// Args:
    ///     dtype: as for `numpy`.
    ///
    /// Raises: as `numpy`; `TypeError`: mlx has no such dtype.
    #[pyo3(signature = (*, dtype=None))]
    fn mlx<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::in_framework(slf, "mlx", None, dtype)
    }

    /// Reads it as a tensorflow tensor.
    ///
    /// Args:
    ///     device: as tensorflow names it, `"gpu:0"`; its own choice by default.
    ///     dtype: as for `numpy`.
    ///
    /// Raises: as `numpy`; `TypeError`: tensorflow has no such dtype.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn tensorflow<'py>(
        slf: &Bound<'py, Self>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::in_framework(slf, "tensorflow", device, dtype)
    }

    /// Reads it as a paddle tensor.
    ///
    /// Args:
    ///     device: as paddle names it, `"gpu:0"`; its own choice by default.
    ///     dtype: as for `numpy`.
    ///
    /// Raises: as `numpy`; `TypeError`: paddle has no such dtype.
    #[pyo3(signature = (device=None, *, dtype=None))]
    fn paddle<'py>(
        slf: &Bound<'py, Self>,
        device: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::in_framework(slf, "paddle", device, dtype)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            let message = "a tensor that is in a file cannot be an array without being copied";
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        let array = Self::in_framework(slf, "numpy", None, None)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    fn __repr__(&self) -> String {
        let name = shortened(&self.name);
        let name = escaped(&name);
        format!("<weigh.Tensor '{name}' {} {:?}>", self.dtype, self.sizes())
    }
}
