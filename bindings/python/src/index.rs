//! Indices as Python writes them: numbers, slices and `...`.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use weigh::format::slice::Index;

/// The indices of `tensor[...]`, one or several; what is no index is the error that is made of a message.
pub(crate) fn indices(
    object: &Bound<'_, PyAny>,
    error: fn(String) -> PyErr,
) -> PyResult<Vec<Index>> {
    match object.cast::<PyTuple>() {
        Ok(several) => several.iter().map(|one| index(&one, error)).collect(),
        Err(_) => Ok(vec![index(object, error)?]),
    }
}

fn index(object: &Bound<'_, PyAny>, error: fn(String) -> PyErr) -> PyResult<Index> {
    if object.cast::<PyEllipsis>().is_ok() {
        return Ok(Index::Ellipsis);
    }
    if let Ok(slice) = object.cast::<PySlice>() {
        let bound = |name: &str| -> PyResult<Option<i64>> {
            let bound = slice.getattr(name)?;
            if bound.is_none() { Ok(None) } else { number(&bound).map(Some) }
        };
        let step = bound("step")?.unwrap_or(1);
        return Ok(Index::Range { start: bound("start")?, stop: bound("stop")?, step });
    }
    if object.is_instance_of::<pyo3::types::PyBool>() || !object.hasattr("__index__")? {
        let kind = object.get_type().name()?;
        let message = format!("a tensor is indexed by integers, slices and ..., not by {kind}");
        return Err(error(message));
    }
    let Ok(place) = whole(object) else {
        let kind = object.get_type().name()?;
        let message =
            format!("a tensor is indexed by integers, slices and ..., not by this {kind}");
        return Err(error(message));
    };
    place
        .extract()
        .map(Index::At)
        .map_err(|_| PyIndexError::new_err(format!("{place} is out of range")))
}

/// The integer that an object stands for.
fn whole<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object.py().import("operator")?.call_method1("index", (object,))
}

/// A bound of a slice; those beyond 2^63 are clamped, as in Python.
fn number(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !object.hasattr("__index__")? {
        let message = "the bounds and the step of a slice are integers or None";
        return Err(PyTypeError::new_err(message));
    }
    let number = whole(object)?;
    match number.extract() {
        Ok(number) => Ok(number),
        Err(_) => Ok(if number.lt(0)? { i64::MIN } else { i64::MAX }),
    }
}

/// What is taken of one dimension of a tensor, as places of the tensor itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taken {
    /// One place; the view does not have the dimension.
    Place(u64),
    /// `count` places from `start` on, `step` apart.
    Places { start: u64, step: i64, count: u64 },
}

impl Taken {
    /// All of a dimension.
    pub(crate) fn all(size: u64) -> Self {
        Self::Places { start: 0, step: 1, count: size }
    }

    /// How many places the view has, if it has the dimension.
    pub(crate) fn kept(self) -> Option<u64> {
        match self {
            Self::Place(_) => None,
            Self::Places { count, .. } => Some(count),
        }
    }

    /// As an index of the tensor itself.
    pub(crate) fn index(self) -> Index {
        let signed = |place: u64| i64::try_from(place).unwrap_or(i64::MAX);
        match self {
            Self::Place(place) => Index::At(signed(place)),
            Self::Places { count: 0, .. } => {
                Index::Range { start: Some(0), stop: Some(0), step: 1 }
            }
            Self::Places { start, step, count } => {
                let last = signed(start).saturating_add(signed(count - 1).saturating_mul(step));
                let stop = if step > 0 { last.checked_add(1) } else { last.checked_sub(1) };
                // Before the first place there is no number to stop at: −1 is the last one.
                let stop = stop.filter(|stop| *stop >= 0);
                Index::Range { start: Some(signed(start)), stop, step }
            }
        }
    }

    /// What an index takes of what is taken.
    pub(crate) fn of(self, index: Index, axis: usize) -> PyResult<Self> {
        let Self::Places { start, step, count } = self else { return Ok(self) };
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let size = signed(count);
        let from_end = |place: i64| if place < 0 { place.saturating_add(size) } else { place };
        let at = |place: i64| {
            let place = signed(start).saturating_add(place.saturating_mul(step));
            u64::try_from(place).unwrap_or(0)
        };
        match index {
            Index::At(place) => {
                let from_start = from_end(place);
                if (0..size).contains(&from_start) {
                    return Ok(Self::Place(at(from_start)));
                }
                let message =
                    format!("index {place} is out of bounds for axis {axis} with size {count}");
                Err(PyIndexError::new_err(message))
            }
            Index::Range { step: 0, .. } => {
                Err(pyo3::exceptions::PyValueError::new_err("slice step cannot be zero"))
            }
            Index::Range { start: first, stop: end, step: by } => {
                let (least, most) = if by > 0 { (0, size) } else { (-1, size - 1) };
                let clamped = |bound: Option<i64>, default: i64| {
                    bound.map_or(default, |bound| from_end(bound).clamp(least, most))
                };
                let first = clamped(first, if by > 0 { least } else { most });
                let bound = clamped(end, if by > 0 { most } else { least });
                let span =
                    if by > 0 { bound.saturating_sub(first) } else { first.saturating_sub(bound) };
                let distance = i64::try_from(by.unsigned_abs()).unwrap_or(i64::MAX);
                let count = if span <= 0 { 0 } else { (span - 1) / distance + 1 };
                let step = if count > 1 { step.saturating_mul(by) } else { 1 };
                let count = u64::try_from(count).unwrap_or(0);
                Ok(Self::Places { start: if count == 0 { 0 } else { at(first) }, step, count })
            }
            _ => Ok(self),
        }
    }
}

/// The largest dimension that can be indexed: places are signed.
const LARGEST: u64 = i64::MAX.cast_unsigned();

/// What several indices take of a view, numbers, slices and at most one `...`, by numpy's rules.
pub(crate) fn take(view: &[Taken], indices: &[Index]) -> PyResult<Vec<Taken>> {
    let too_large = view.iter().filter_map(|taken| taken.kept()).find(|size| *size > LARGEST);
    if let Some(size) = too_large {
        let message = format!("a dimension of {size} is too large for this machine");
        return Err(PyIndexError::new_err(message));
    }
    let kept = view.iter().filter(|taken| taken.kept().is_some()).count();
    let ellipses = indices.iter().filter(|index| matches!(index, Index::Ellipsis)).count();
    let given = indices.len() - ellipses;
    if ellipses > 1 {
        return Err(PyIndexError::new_err("an index can only have a single ellipsis ('...')"));
    }
    if given > kept {
        let message = format!(
            "too many indices for tensor: tensor is {kept}-dimensional, but {given} were indexed"
        );
        return Err(PyIndexError::new_err(message));
    }
    let whole = kept - given;
    let mut spread = Vec::with_capacity(kept);
    for index in indices {
        match index {
            Index::Ellipsis => spread.extend(std::iter::repeat_n(Index::ALL, whole)),
            other => spread.push(*other),
        }
    }
    spread.resize(kept, Index::ALL);
    let mut next = spread.into_iter().enumerate();
    let of_axis = |taken: &Taken| match taken.kept().and_then(|_| next.next()) {
        Some((axis, index)) => taken.of(index, axis),
        None => Ok(*taken),
    };
    view.iter().map(of_axis).collect()
}
