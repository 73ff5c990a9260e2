//! Slices of tensors, for `weigh.safetensors`.
//!
//! What is read is indexed by numbers, slices of positive steps and one `...`, as in `safetensors`, with numpy's
//! rules for what is out of range. A tensor that is mapped is torch's, and indexed by torch.

use std::sync::Arc;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyList, PySlice, PyTuple};
use weigh::Want;
use weigh::format::Dtype;
use weigh::format::slice::Index;

use crate::drop_in::{Served, raise, translated};
use crate::index::{Taken, take};

/// A tensor to take slices of.
#[pyclass(frozen, name = "PySafeSlice", module = "weigh.safetensors")]
pub(crate) struct SafeSlice {
    served: Arc<Served>,
    name: Box<str>,
    dtype: Dtype,
    shape: Vec<u64>,
}

impl SafeSlice {
    pub(crate) fn new(served: &Arc<Served>, name: &str, dtype: Dtype, shape: Vec<u64>) -> Self {
        Self { served: Arc::clone(served), name: name.into(), dtype, shape }
    }

    /// What torch takes of the mapped tensor: a view where it can be one.
    fn of_mapped<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let buffer = self.served.mapped(py, &self.name)?;
        let whole = self.served.convert.bind(py).call1((buffer, py.None()))?;
        let part = whole.get_item(tamed(index, &self.shape)?)?;
        let device = self.served.device.bind(py);
        if device.is_none() || device.extract::<&str>().is_ok_and(|name| name == "cpu") {
            return Ok(part);
        }
        part.call_method1("to", (device,))
    }

    /// What is taken of each dimension.
    fn taken(&self, index: &Bound<'_, PyAny>) -> PyResult<Vec<Taken>> {
        let (py, shape) = (index.py(), &self.shape);
        let indices = spelled(index, shape)?;
        let refused = |what: &str, code: &str| {
            let spelling = spelling(&indices);
            raise(
                py,
                &format!("Error during slicing {spelling} with shape {shape:?}: {what}"),
                code,
            )
        };
        if indices.len() > shape.len() {
            return Err(refused(
                "more slicing indexes than dimensions in tensor",
                "slice-too-many-indices",
            ));
        }
        for (axis, (index, size)) in indices.iter().zip(shape).enumerate() {
            if let Index::At(place) = index
                && u64::try_from(*place).is_ok_and(|place| place >= *size)
            {
                let what = format!(
                    "index {place} out of bounds for tensor dimension #{axis} of size {size}"
                );
                return Err(refused(&what, "slice-out-of-range"));
            }
        }
        let whole: Vec<Taken> = shape.iter().map(|size| Taken::all(*size)).collect();
        let taken = take(&whole, &indices);
        taken.map_err(|error| refused(&error.value(py).to_string(), "slice-out-of-range"))
    }
}

#[pymethods]
impl SafeSlice {
    /// The dimensions of the whole tensor, in elements.
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.shape)
    }

    /// The dtype, by its name in the format.
    fn get_dtype(&self) -> &'static str {
        self.dtype.name()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Those of several elements a byte are indexed by elements, which torch does not see.
        if self.served.is_mapped && self.dtype.bits() >= 8 {
            return self.of_mapped(py, index);
        }
        let taken = self.taken(index)?;
        let want = Want::new(&self.name).slice(taken.iter().map(|taken| taken.index()));
        let read = self.served.opened.read_one(py, &want, true);
        self.served.converted(py, read.map_err(|error| translated(py, error))?)
    }
}

/// The same index with slices whose numbers torch can add: what is beyond every dimension is just beyond.
fn tamed<'py>(index: &Bound<'py, PyAny>, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    let most = shape.iter().max().copied().unwrap_or(0);
    let most = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let tame = |item: &Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
        let Ok(slice) = item.cast::<PySlice>() else { return Ok(item.clone()) };
        let mut numbers = [const { None }; 3];
        for (number, name) in numbers.iter_mut().zip(["start", "stop", "step"]) {
            let given = slice.getattr(name)?;
            if given.is_none() {
                continue;
            }
            // What is no integer is torch's to refuse.
            let Ok(place) = clamped(&given) else { return Ok(item.clone()) };
            *number = Some(place.clamp(-most, most));
        }
        let kind = item.py().get_type::<PySlice>();
        kind.call1(<(_, _, _)>::from(numbers))
    };
    match index.cast::<PyTuple>() {
        Ok(several) => {
            let items = several.iter().map(|item| tame(&item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(index.py(), items)?.into_any())
        }
        Err(_) => tame(index),
    }
}

/// The indices of `slice[…]`, with `...` written out and places counted from the start.
fn spelled(object: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Vec<Index>> {
    let py = object.py();
    let items: Vec<Bound<'_, PyAny>> = if let Ok(several) = object.cast::<PyTuple>() {
        several.iter().collect()
    } else if let Ok(list) = object.cast::<PyList>() {
        if list.is_empty() {
            return Ok(vec![Index::Range { start: Some(0), stop: Some(0), step: 1 }]);
        }
        return Err(raise(py, "Non empty lists are not implemented", "slice-kind"));
    } else {
        vec![object.clone()]
    };
    let is_ellipsis = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyEllipsis>();
    let ellipses = items.iter().filter(|item| is_ellipsis(item)).count();
    if ellipses > 1 {
        let message = "Only one ellipsis (...) is allowed in slice index";
        return Err(raise(py, message, "slice-two-ellipses"));
    }
    let whole = shape.len().saturating_sub(items.len() - ellipses);
    let mut indices = Vec::with_capacity(shape.len());
    for item in items {
        if is_ellipsis(&item) {
            indices.extend(std::iter::repeat_n(Index::ALL, whole));
        } else if let Ok(slice) = item.cast::<PySlice>() {
            indices.push(range(slice)?);
        } else {
            let axis = indices.len();
            let Some(place) = number(&item)? else {
                let message = format!(
                    "Unsupported slice index at position {axis}: expected slice, int, or ellipsis"
                );
                return Err(raise(py, &message, "slice-kind"));
            };
            let size = shape.get(axis).copied().unwrap_or(0);
            let from_end = place.saturating_add(i64::try_from(size).unwrap_or(i64::MAX));
            if from_end < 0 {
                let message = format!("Invalid index {place} for dimension {axis} of size {size}");
                return Err(raise(py, &message, "slice-out-of-range"));
            }
            indices.push(Index::At(if place < 0 { from_end } else { place }));
        }
    }
    Ok(indices)
}

fn range(slice: &Bound<'_, PySlice>) -> PyResult<Index> {
    let bound = |name: &str| -> PyResult<Option<i64>> {
        let bound = slice.getattr(name)?;
        if bound.is_none() { Ok(None) } else { clamped(&bound).map(Some) }
    };
    let (start, stop) = (bound("start")?, bound("stop")?);
    let by = bound("step")?.unwrap_or(1);
    if by < 1 {
        let message = format!("Slice step must be a positive integer, got {by}");
        return Err(raise(slice.py(), &message, "slice-step"));
    }
    Ok(Index::Range { start, stop, step: by })
}

/// An integer; `None` for what is none.
fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    match clamped(object) {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(object.py()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// An integer; those beyond 2^63 are clamped.
fn clamped(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    match object.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            Ok(if object.lt(0)? { i64::MIN } else { i64::MAX })
        }
        other => other,
    }
}

/// Indices as Python writes them.
fn spelling(indices: &[Index]) -> String {
    let each: Vec<String> = indices.iter().map(Index::to_string).collect();
    format!("[{}]", each.join(", "))
}
