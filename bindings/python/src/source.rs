//! Checkpoints that are no files: content in memory, and objects of Python that are read at offsets.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Error, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weigh::io::{Change, ErrorKind, FileSource, Source};

/// An open file, which stays what it is when another takes its path: programs write over what they read.
#[derive(Debug)]
pub(crate) struct Held(FileSource);

impl Held {
    pub(crate) fn open(path: &Path) -> Result<Self, weigh::io::Error> {
        FileSource::open(path).map(Self)
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// The file itself, which does tell when another took its path.
    pub(crate) fn file(&self) -> &FileSource {
        &self.0
    }
}

impl Source for Held {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        self.0.read_some(buffers, offset)
    }

    fn verify(&self) -> Result<(), weigh::io::Error> {
        match self.0.verify() {
            Err(error) if matches!(error.kind(), ErrorKind::Changed(Change::Replaced)) => Ok(()),
            other => other,
        }
    }

    fn count(&self, bytes: u64) {
        self.0.count(bytes);
    }

    fn plain_file(&self) -> Option<&FileSource> {
        self.0.plain_file()
    }

    fn file(&self) -> Option<&File> {
        Source::file(&self.0)
    }

    fn direct(&self) -> Option<&File> {
        self.0.direct()
    }
}

/// A file's content in memory.
#[derive(Debug)]
pub(crate) struct Bytes {
    name: PathBuf,
    content: crate::given::Given,
}

impl Bytes {
    /// The content of an object with the buffer protocol, which has to be contiguous.
    pub(crate) fn new(content: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = PathBuf::from("<bytes>");
        Ok(Self { name, content: crate::given::Given::new(content)? })
    }

    /// The content.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.content.bytes().len()).unwrap_or(u64::MAX)
    }
}

impl Source for Bytes {
    fn path(&self) -> &Path {
        &self.name
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        let bytes = self.content.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(scatter(bytes.get(start..).unwrap_or_default(), buffers))
    }

    fn verify(&self) -> Result<(), weigh::io::Error> {
        Ok(())
    }
}

/// An object of Python that is read at offsets: it has `read_at(offset, length) -> bytes`.
///
/// It is asked by several threads, each with the interpreter's lock. What it raises is in the error: see
/// `error::exception`.
pub(crate) struct Reader {
    name: PathBuf,
    object: Py<PyAny>,
    /// Whether nobody waits for what it reads any more.
    is_stopped: AtomicBool,
}

/// How many threads are asking objects of Python, or about to.
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter is about to end, and no thread may ask any more.
static ENDS: AtomicBool = AtomicBool::new(false);

/// How long the end of the interpreter waits for threads that ask objects.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets no thread ask an object of Python from here on, and waits for those that do.
///
/// A thread that waits for the interpreter's lock while the interpreter ends never gets it: it would be killed, or
/// wait for ever. `atexit` calls this before that.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    ENDS.store(true, Ordering::SeqCst);
    let began = Instant::now();
    py.detach(|| {
        while ASKING.load(Ordering::SeqCst) > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// After a fork: the threads that were asking are not in this process.
#[pyfunction]
pub(crate) fn forked() {
    ASKING.store(0, Ordering::SeqCst);
}

/// A thread that asks, as long as this lives.
struct Asking;

impl Asking {
    fn begin() -> std::io::Result<Self> {
        ASKING.fetch_add(1, Ordering::SeqCst);
        let asking = Self;
        if ENDS.load(Ordering::SeqCst) {
            return Err(Error::other("the interpreter ends"));
        }
        Ok(asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // A fork may have begun to count anew.
        let _counted =
            ASKING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |asking| asking.checked_sub(1));
    }
}

thread_local! {
    /// The readers that are being asked in this thread, by their addresses.
    static ASKED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Reader {
    pub(crate) fn new(object: Py<PyAny>, name: PathBuf) -> Self {
        Self { name, object, is_stopped: AtomicBool::new(false) }
    }

    /// Reads nothing more: whoever wanted it is interrupted.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether this is called while it is asked, by what it asks.
    pub(crate) fn is_asked_here(&self) -> bool {
        let address = std::ptr::from_ref(self).addr();
        ASKED.with_borrow(|asked| asked.contains(&address))
    }

    /// Refuses what the object does itself while it is asked: it would wait for itself without end.
    pub(crate) fn refuse_itself(&self) -> PyResult<()> {
        if !self.is_asked_here() {
            return Ok(());
        }
        let name = self.name.display();
        let message = format!("{name}: a source cannot use its own checkpoint while it is read");
        Err(PyRuntimeError::new_err(message))
    }

    fn asked<T>(&self, ask: impl FnOnce() -> T) -> T {
        ASKED.with_borrow_mut(|asked| asked.push(std::ptr::from_ref(self).addr()));
        let answer = ask();
        ASKED.with_borrow_mut(Vec::pop);
        answer
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source for Reader {
    fn path(&self) -> &Path {
        &self.name
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(Error::other("nobody waits for it any more"));
        }
        let _asking = Asking::begin()?;
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let read = Python::attach(|py| {
            let object = self.object.bind(py);
            let answer = self.asked(|| object.call_method1("read_at", (offset, wanted)))?;
            if let Ok(bytes) = answer.cast::<PyBytes>() {
                return Ok(scatter(bytes.as_bytes(), buffers));
            }
            Ok(scatter(&PyBuffer::<u8>::get(&answer)?.to_vec(py)?, buffers))
        });
        read.map_err(|raised: PyErr| Error::other(raised))
    }

    /// Asks the object, if it can tell.
    fn verify(&self) -> Result<(), weigh::io::Error> {
        let failed = |error| weigh::io::Error::new(&self.name, ErrorKind::System(error));
        let _asking = Asking::begin().map_err(failed)?;
        Python::attach(|py| {
            let object = self.object.bind(py);
            let verify = object.getattr_opt("verify")?;
            verify.map_or(Ok(()), |verify| self.asked(|| verify.call0()).map(|_| ()))
        })
        .map_err(|raised: PyErr| failed(Error::other(raised)))
    }
}

/// Copies bytes into buffers, as many as there is room for; says how many there were.
fn scatter(bytes: &[u8], buffers: &mut [IoSliceMut<'_>]) -> usize {
    let mut rest = bytes;
    for buffer in buffers {
        let (now, later) = rest.split_at(rest.len().min(buffer.len()));
        if let Some(place) = buffer.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        rest = later;
    }
    bytes.len() - rest.len()
}
