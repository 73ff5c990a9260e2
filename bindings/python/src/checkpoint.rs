//! Checkpoints: opened, listed, read.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use weigh::format::Dtype;
use weigh::inventory::select::Selection;
use weigh::io::Cancel;
use weigh::io::map::PrivateMap;
use weigh::{LoadOptions, Order, StreamOptions, Want};

use crate::error::{exception, of_index};
use crate::index::indices;
use crate::memory::Buffer;
use crate::source::{Bytes, Held, Reader};
use crate::stream::Stream;
use crate::tensor::Tensor;
use crate::{options, waiting};

/// A checkpoint that is open, which outlives the object that opened it as long as a tensor of it is there.
pub(crate) struct Opened {
    pub(crate) checkpoint: weigh::Checkpoint,
    /// What is asked for bytes, if that is an object of Python.
    pub(crate) reader: Option<Arc<Reader>>,
    /// The files as memory, made when that is first asked for.
    maps: OnceLock<Vec<Arc<PrivateMap>>>,
}

impl Opened {
    fn new(checkpoint: weigh::Checkpoint, reader: Option<Arc<Reader>>) -> Arc<Self> {
        Arc::new(Self { checkpoint, reader, maps: OnceLock::new() })
    }

    /// Refuses to read where that would wait for itself without end.
    fn refuse_itself(&self) -> PyResult<()> {
        self.reader.as_ref().map_or(Ok(()), |reader| reader.refuse_itself())
    }

    /// Bytes of work, for whoever waits for it; what an object of Python is asked for may take any time.
    pub(crate) fn work(&self, bytes: u64) -> u64 {
        if self.reader.is_some() { waiting::LONG } else { bytes }
    }

    /// Opens what a path stands for.
    pub(crate) fn open(
        py: Python<'_>,
        path: &PathBuf,
        options: &weigh::Options,
    ) -> PyResult<Arc<Self>> {
        let opened = py.detach(|| weigh::Checkpoint::open_with(path, options));
        Ok(Self::new(opened.map_err(|error| exception(py, &error))?, None))
    }

    /// Opens a file, and nothing but a file; maps it, if that is asked for. To put another file in its place then
    /// changes nothing.
    pub(crate) fn open_file(
        py: Python<'_>,
        path: &Path,
        options: &weigh::Options,
        is_mapped: bool,
    ) -> PyResult<Arc<Self>> {
        let opened = py.detach(|| {
            let source = Arc::new(Held::open(path)?);
            let len = source.len();
            let checkpoint =
                weigh::Checkpoint::open_source(Arc::clone(&source) as _, len, options)?;
            let map = is_mapped.then(|| crate::memory::map(source.file())).transpose()?;
            Ok((checkpoint, map))
        });
        let (checkpoint, map) = opened.map_err(|error: weigh::Error| exception(py, &error))?;
        let maps = map.map_or_else(OnceLock::new, |map| OnceLock::from(vec![map]));
        Ok(Arc::new(Self { checkpoint, reader: None, maps }))
    }

    /// A tensor in memory that is its file's: read when it is looked at.
    pub(crate) fn mapped(
        &self,
        py: Python<'_>,
        tensor: &weigh::Tensor<'_>,
    ) -> PyResult<Option<Buffer>> {
        let shards = self.checkpoint.shards();
        let maps = match self.maps.get() {
            Some(maps) => maps,
            None => {
                let map = |shard: &weigh::Shard| match shard.file() {
                    Some(file) => crate::memory::map(file),
                    None => Err(weigh::Error::NotAFile { path: shard.path().into() }),
                };
                let maps = shards.iter().map(map).collect::<Result<Vec<_>, _>>();
                let maps = maps.map_err(|error| exception(py, &error))?;
                self.maps.get_or_init(|| maps)
            }
        };
        let number = shards.iter().position(|shard| std::ptr::eq(shard, tensor.shard));
        let Some(map) = number.and_then(|number| maps.get(number)) else { return Ok(None) };
        Buffer::mapped(py, tensor.name, map, &tensor.span, tensor.dtype, tensor.shape)
    }

    /// Reads tensors and slices into one new allocation.
    pub(crate) fn read(
        &self,
        py: Python<'_>,
        wants: &[Want<'_>],
        floats: Option<Dtype>,
        progress: Option<&Bound<'_, PyAny>>,
        overcommit: bool,
    ) -> PyResult<Vec<Buffer>> {
        self.refuse_itself()?;
        let mut plan = self.checkpoint.plan(wants).map_err(|error| exception(py, &error))?;
        if let Some(to) = floats {
            plan = plan.cast_floats(to).map_err(|error| exception(py, &error))?;
        }
        let loaded = waiting::run(py, self.work(plan.bytes_in_files()), progress, |watched| {
            plan.load(&LoadOptions {
                cancel: Some(watched.cancel),
                progress: Some(watched.progress),
                overcommit,
                ..LoadOptions::default()
            })
        });
        loaded?.into_iter().map(|(name, array)| Buffer::new(py, &name, array)).collect()
    }

    /// Reads one tensor or slice.
    pub(crate) fn read_one(
        &self,
        py: Python<'_>,
        want: &Want<'_>,
        overcommit: bool,
    ) -> PyResult<Buffer> {
        let read = self.read(py, std::slice::from_ref(want), None, None, overcommit)?;
        let missing = || exception(py, &weigh::Error::NoTensor { name: want.name().into() });
        read.into_iter().next().ok_or_else(missing)
    }
}

/// One or more files opened as one set of tensors, all sound.
#[pyclass(frozen, module = "weigh._weigh")]
pub(crate) struct Checkpoint {
    pub(crate) opened: Arc<Opened>,
}

impl Checkpoint {
    fn named(&self, py: Python<'_>, name: &str) -> PyResult<weigh::Tensor<'_>> {
        let missing = || exception(py, &weigh::Error::NoTensor { name: name.into() });
        self.opened.checkpoint.get(name).ok_or_else(missing)
    }

    /// The selection by globs.
    fn selection(include: &[String], exclude: &[String]) -> PyResult<Selection> {
        let builder =
            include.iter().fold(Selection::builder(), weigh::inventory::select::Builder::include);
        let builder = exclude.iter().fold(builder, weigh::inventory::select::Builder::exclude);
        builder.build().map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Checkpoint {
    /// Opens a file, a folder or a shard index. Reads headers only.
    #[staticmethod]
    #[pyo3(signature = (path, *, strict=false, max_header=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        strict: bool,
        max_header: Option<u64>,
    ) -> PyResult<Self> {
        let opened = Opened::open(py, &path, &options::opening(strict, max_header))?;
        Ok(Self { opened })
    }

    /// Opens a file's content in memory, which is looked at where it is.
    #[staticmethod]
    #[pyo3(signature = (content, *, strict=false, max_header=None))]
    fn open_bytes(
        content: &Bound<'_, PyAny>,
        strict: bool,
        max_header: Option<u64>,
    ) -> PyResult<Self> {
        let (py, source) = (content.py(), Bytes::new(content)?);
        let (len, options) = (source.len(), options::opening(strict, max_header));
        let opened = py.detach(|| weigh::Checkpoint::open_source(Arc::new(source), len, &options));
        Ok(Self { opened: Opened::new(opened.map_err(|error| exception(py, &error))?, None) })
    }

    /// Opens what an object gives by `read_at(offset, length) -> bytes`, which is called from several threads.
    #[staticmethod]
    #[pyo3(signature = (reader, length, name, *, strict=false, max_header=None))]
    fn open_reader(
        py: Python<'_>,
        reader: Py<PyAny>,
        length: u64,
        name: PathBuf,
        strict: bool,
        max_header: Option<u64>,
    ) -> PyResult<Self> {
        let reader = Arc::new(Reader::new(reader, name));
        let source = Arc::clone(&reader);
        let options = options::opening(strict, max_header);
        // What the object does may take any time, and Ctrl-C has to end it.
        let opened = waiting::run_stoppable(
            py,
            waiting::LONG,
            None,
            || reader.stop(),
            |_| weigh::Checkpoint::open_source(source, length, &options),
        )?;
        Ok(Self { opened: Opened::new(opened, Some(reader)) })
    }

    fn __len__(&self) -> usize {
        self.opened.checkpoint.len()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        let name = name.cast::<PyString>();
        name.is_ok_and(|name| {
            name.to_str().is_ok_and(|name| self.opened.checkpoint.get(name).is_some())
        })
    }

    /// The tensor of this name.
    fn tensor(&self, name: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let py = name.py();
        // No tensor is called something that is no text, or no Unicode.
        match name.cast::<PyString>().ok().and_then(|name| name.to_str().ok()) {
            Some(name) => Ok(Tensor::new(&self.opened, &self.named(py, name)?)),
            None => {
                let name = name.repr()?.to_string();
                Err(exception(py, &weigh::Error::NoTensor { name }))
            }
        }
    }

    /// The names: in natural order, in the order of the files (`"file"`), or sorted by code points (`"name"`).
    #[pyo3(signature = (order="natural"))]
    fn names<'py>(&self, py: Python<'py>, order: &str) -> PyResult<Bound<'py, PyList>> {
        let checkpoint = &self.opened.checkpoint;
        let names: Vec<&str> = py.detach(|| sorted(checkpoint, order))?;
        PyList::new(py, names)
    }

    /// Names and tensors, two lists, in natural order.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let tensors = py.detach(|| self.opened.checkpoint.tensors());
        without_collecting(py, || {
            let names = PyList::new(py, tensors.iter().map(|tensor| tensor.name))?;
            let lazy = tensors.iter().map(|tensor| Tensor::new(&self.opened, tensor));
            Ok((names, PyList::new(py, lazy)?))
        })
    }

    /// The names that globs select, in natural order: those of any of `include`, or all, without those of `exclude`.
    /// A pattern that no name has is an error.
    fn select<'py>(
        &self,
        py: Python<'py>,
        include: Vec<String>,
        exclude: Vec<String>,
    ) -> PyResult<Bound<'py, PyList>> {
        let selection = Self::selection(&include, &exclude)?;
        let checkpoint = &self.opened.checkpoint;
        let names = sorted(checkpoint, "natural")?;
        if let Some(pattern) = selection.unmatched(names.iter().copied()).first() {
            return Err(exception(py, &weigh::Error::NoTensor { name: (*pattern).into() }));
        }
        let plan = checkpoint.plan_selected(&selection);
        PyList::new(py, plan.parts().iter().map(weigh::Planned::name))
    }

    /// The metadata of all files together; of a key with several values, the first.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for shard in self.opened.checkpoint.shards() {
            for (key, value) in shard.header().metadata() {
                if !all.contains(&*key)? {
                    all.set_item(&*key, &*value)?;
                }
            }
        }
        Ok(all)
    }

    /// What the checkpoint is called.
    #[getter]
    fn path(&self) -> OsString {
        self.opened.checkpoint.path().as_os_str().to_owned()
    }

    /// The paths of its files.
    fn files(&self) -> Vec<OsString> {
        let shards = self.opened.checkpoint.shards().iter();
        shards.map(|shard| shard.path().as_os_str().to_owned()).collect()
    }

    /// Bytes of all tensors.
    #[getter]
    fn nbytes(&self) -> u64 {
        let shards = self.opened.checkpoint.shards().iter();
        let spans = shards.flat_map(weigh::Shard::tensors).map(|tensor| tensor.span);
        spans.map(|Range { start, end }| end - start).fold(0, u64::saturating_add)
    }

    /// Reads tensors and slices, each a name and what is taken of it or `None`, into one new allocation.
    #[pyo3(signature = (wants, *, floats=None, progress=None, overcommit=false))]
    fn read(
        &self,
        py: Python<'_>,
        wants: Vec<Given<'_>>,
        floats: Option<&str>,
        progress: Option<&Bound<'_, PyAny>>,
        overcommit: bool,
    ) -> PyResult<Vec<Buffer>> {
        let made = wanted(py, &wants)?;
        let floats = floats.map(options::dtype).transpose()?;
        self.opened.read(py, &made, floats, progress, overcommit)
    }

    /// A tensor in memory that is its file's: read when it is looked at, and private to this process.
    fn map(&self, py: Python<'_>, name: &str) -> PyResult<Option<Buffer>> {
        self.opened.mapped(py, &self.named(py, name)?)
    }

    /// Streams tensors and slices, given as for `read`, under a memory budget in bytes.
    #[pyo3(signature = (wants, *, budget, in_file_order=true, floats=None, patience=30.0))]
    fn stream(
        &self,
        py: Python<'_>,
        wants: Vec<Given<'_>>,
        budget: u64,
        in_file_order: bool,
        floats: Option<&str>,
        patience: f64,
    ) -> PyResult<Stream> {
        self.opened.refuse_itself()?;
        let wants = wanted(py, &wants)?;
        let failed = |error: weigh::Error| exception(py, &error);
        let mut plan = self.opened.checkpoint.plan(&wants).map_err(failed)?;
        if let Some(to) = floats {
            plan = plan.cast_floats(options::dtype(to)?).map_err(failed)?;
        }
        let order = if in_file_order { Order::File } else { Order::Given };
        let patience = std::time::Duration::try_from_secs_f64(patience)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let cancel = Some(Arc::new(Cancel::new()));
        let options = StreamOptions { order, budget, patience, cancel, ..StreamOptions::default() };
        Ok(Stream::new(&self.opened, plan.stream(&options).map_err(failed)?, options.cancel))
    }
}

/// What is asked for: a name, and an index or `None`.
type Given<'py> = (String, Option<Bound<'py, PyAny>>);

/// The same for the library.
fn wanted<'a>(py: Python<'_>, wants: &'a [Given<'_>]) -> PyResult<Vec<Want<'a>>> {
    let made = wants.iter().map(|(name, index)| match index {
        Some(index) => {
            let indices = indices(index, PyIndexError::new_err);
            Ok(Want::new(name).slice(indices.map_err(|error| of_index(py, name, error))?))
        }
        None => Ok(Want::new(name)),
    });
    made.collect()
}

/// The names in one of the orders.
pub(crate) fn sorted<'c>(checkpoint: &'c weigh::Checkpoint, order: &str) -> PyResult<Vec<&'c str>> {
    let in_files = || checkpoint.shards().iter().flat_map(weigh::Shard::tensors);
    match order {
        "natural" => Ok(checkpoint.tensors().iter().map(|tensor| tensor.name).collect()),
        "name" => {
            let mut names: Vec<&str> = in_files().map(|tensor| tensor.name).collect();
            names.sort_unstable();
            Ok(names)
        }
        "file" => {
            let mut names = Vec::with_capacity(checkpoint.len());
            for shard in checkpoint.shards() {
                let mut tensors: Vec<weigh::Tensor<'_>> = shard.tensors().collect();
                tensors.sort_by_key(|tensor| (tensor.span.start, tensor.span.end));
                names.extend(tensors.into_iter().map(|tensor| tensor.name));
            }
            Ok(names)
        }
        other => {
            let message = format!("{other:?} is no order: it is \"natural\", \"file\" or \"name\"");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Makes many objects, none of which is garbage: the collector would walk those there are, again and again.
///
/// What it counts meanwhile it makes up for at once afterwards, once. `make` does not let other threads run.
fn without_collecting<T>(py: Python<'_>, make: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let collector = py.import("gc")?;
    let was_enabled: bool = collector.call_method0("isenabled")?.extract()?;
    if !was_enabled {
        return make();
    }
    collector.call_method0("disable")?;
    let result = make();
    collector.call_method0("enable")?;
    result
}
