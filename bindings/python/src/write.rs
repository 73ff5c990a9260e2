//! Tensors of Python written to files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weigh::format::Dtype;
use weigh::format::encode::{Declaration, Encoded, Layout, encode as encode_header};
use weigh::format::text::escaped;
use weigh::{View, Watch, WriteOptions};

use crate::error::exception;
use crate::given::Given;
use crate::{options, waiting};

/// A tensor that Python gives: its name, dtype and shape, and its bytes, little-endian, row after row.
pub(crate) struct Entry {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    bytes: Given,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Entry {
    type Error = PyErr;

    /// From `(name, dtype, shape, bytes)`, the last being an object with the buffer protocol, or an address and a
    /// length that the caller vouches for.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (name, dtype, shape, bytes) =
            object.extract::<(String, String, Vec<u64>, Bound<'py, PyAny>)>()?;
        let bytes = match bytes.extract::<(usize, usize)>() {
            Ok((address, len)) => given_at(address, len)?,
            Err(_) => Given::new(&bytes)?,
        };
        Ok(Self { name, dtype: options::dtype(&dtype)?, shape, bytes })
    }
}

#[expect(
    unsafe_code,
    reason = "the interface of Python's frameworks to a tensor's bytes is an address"
)]
fn given_at(address: usize, len: usize) -> PyResult<Given> {
    // SAFETY: that the address is valid until the call returns is what the callers in `weigh`'s Python code, and
    // those of `serialize`, have to see to: they hold the tensor meanwhile. Python has no way to prove it.
    unsafe { Given::at(address, len) }
}

impl Entry {
    fn view(&self) -> PyResult<(&str, View<'_>)> {
        let view = View::of(self.dtype, &self.shape, self.bytes.bytes());
        let failed = |error| PyValueError::new_err(format!("{}: {error}", escaped(&self.name)));
        Ok((&*self.name, view.map_err(failed)?))
    }
}

fn views(entries: &[Entry]) -> PyResult<Vec<(&str, View<'_>)>> {
    entries.iter().map(Entry::view).collect()
}

/// How a header is laid out.
fn layout(name: &str, has_metadata: bool) -> PyResult<Layout> {
    match name {
        "default" => Ok(Layout::default()),
        "reference" => Ok(Layout { empty_metadata: has_metadata, ..Layout::reference() }),
        other => {
            let message = format!("{other:?} is no layout: it is \"default\" or \"reference\"");
            Err(PyValueError::new_err(message))
        }
    }
}

fn total(views: &[(&str, View<'_>)]) -> u64 {
    let bytes = views.iter().map(|(_, view)| u64::try_from(view.bytes().len()).unwrap_or(u64::MAX));
    bytes.fold(0, u64::saturating_add)
}

/// Writes tensors to one file, which is there whole or not at all.
#[pyfunction]
#[pyo3(signature = (path, entries, metadata=None, *, replace=true, sync=true, layout="default", progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn save(
    py: Python<'_>,
    path: PathBuf,
    entries: Vec<Entry>,
    metadata: Option<BTreeMap<String, String>>,
    replace: bool,
    sync: bool,
    layout: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let layout = self::layout(layout, metadata.is_some())?;
    let options = WriteOptions { replace, sync, layout };
    let views = views(&entries)?;
    let metadata = metadata.unwrap_or_default();
    waiting::run(py, total(&views), progress, |watched| {
        let watch = Watch { cancel: Some(watched.cancel), progress: Some(watched.progress) };
        weigh::save_watched(&path, views.iter().copied(), &metadata, &options, watch)
    })
}

fn declarations<'v>(views: &'v [(&str, View<'_>)]) -> Vec<Declaration<'v>> {
    let declare = |(name, view): &'v (&str, View<'_>)| Declaration {
        name,
        dtype: view.dtype(),
        shape: view.shape(),
    };
    views.iter().map(declare).collect()
}

/// Writes tensors to a folder: one file, or several of at most so many bytes each and their index. Returns the paths
/// of the files, the index last.
#[pyfunction]
#[pyo3(signature = (folder, entries, most, metadata=None, *, stem="model", replace=true, sync=true, layout="default", progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn save_sharded(
    py: Python<'_>,
    folder: PathBuf,
    entries: Vec<Entry>,
    most: u64,
    metadata: Option<BTreeMap<String, String>>,
    stem: &str,
    replace: bool,
    sync: bool,
    layout: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<PathBuf>> {
    let layout = self::layout(layout, metadata.is_some())?;
    let options = WriteOptions { replace, sync, layout };
    let (views, metadata) = (views(&entries)?, metadata.unwrap_or_default());
    waiting::run(py, total(&views), progress, |watched| {
        let watch = Watch { cancel: Some(watched.cancel), progress: Some(watched.progress) };
        weigh::save_sharded(&folder, stem, most, &views, &metadata, &options, watch)
    })
}

/// A file's header, and where the tensors' bytes go after it.
fn encoded(
    py: Python<'_>,
    views: &[(&str, View<'_>)],
    metadata: Option<&BTreeMap<String, String>>,
    layout: &str,
) -> PyResult<Encoded> {
    let layout = self::layout(layout, metadata.is_some())?;
    let encoded = encode_header(&declarations(views), metadata, &layout);
    encoded.map_err(|error| exception(py, &weigh::Error::Encode { path: "<bytes>".into(), error }))
}

/// A file's content, as bytes.
#[pyfunction]
#[pyo3(signature = (entries, metadata=None, *, layout="default"))]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    entries: Vec<Entry>,
    metadata: Option<BTreeMap<String, String>>,
    layout: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let views = views(&entries)?;
    let Encoded { bytes: header, data_offsets, data_len, .. } =
        encoded(py, &views, metadata.as_ref(), layout)?;
    let len = usize::try_from(data_len).ok().and_then(|data| data.checked_add(header.len()));
    let len = len.ok_or_else(|| pyo3::exceptions::PyMemoryError::new_err("too large"))?;
    PyBytes::new_with(py, len, |content| {
        py.detach(|| {
            let (head, data) = content.split_at_mut(header.len());
            head.copy_from_slice(&header);
            for (offsets, (_, view)) in data_offsets.iter().zip(&views) {
                let [start, end] = [offsets.start, offsets.end].map(usize::try_from);
                if let (Ok(start), Ok(end)) = (start, end)
                    && let Some(place) = data.get_mut(start..end)
                {
                    place.copy_from_slice(view.bytes());
                }
            }
        });
        Ok(())
    })
}

/// Gives a file's content to `write(bytes)`, in order and a piece of at most 16 MiB at a time. Returns how many bytes
/// there were.
#[pyfunction]
#[pyo3(signature = (entries, write, metadata=None, *, layout="default", progress=None))]
pub(crate) fn send(
    py: Python<'_>,
    entries: Vec<Entry>,
    write: &Bound<'_, PyAny>,
    metadata: Option<BTreeMap<String, String>>,
    layout: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let views = views(&entries)?;
    let Encoded { bytes: header, data_offsets, .. } =
        encoded(py, &views, metadata.as_ref(), layout)?;
    let mut order: Vec<_> = data_offsets.iter().zip(&views).collect();
    order.sort_by_key(|(offsets, _)| (offsets.start, offsets.end));
    let all = std::iter::once(&*header).chain(order.into_iter().map(|(_, (_, view))| view.bytes()));
    let (mut done, total) = (0_u64, total(&views));
    let mut told = std::time::Instant::now();
    for piece in all.flat_map(|bytes| bytes.chunks(SENT)) {
        let bytes = PyBytes::new_with(py, piece.len(), |place| {
            py.detach(|| place.copy_from_slice(piece));
            Ok(())
        })?;
        write.call1((bytes,))?;
        py.check_signals()?;
        done = done.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        let sent = done.saturating_sub(u64::try_from(header.len()).unwrap_or(u64::MAX));
        if let Some(progress) = progress
            && (told.elapsed() >= waiting::LOOK || sent == total)
        {
            told = std::time::Instant::now();
            progress.call1((sent, total))?;
        }
    }
    Ok(done)
}

/// Bytes that are given away at a time.
const SENT: usize = 16 << 20;
