//! The read engine: carries out a plan, straight into memory that is there already.
//!
//! Worker threads take requests from one queue, in the order of the files. What a request reads goes where
//! it belongs without a stop on the way, unless it has to be taken apart or converted: then it passes
//! through a scratch buffer that is small enough for a core's cache, in the thread that read it.
//!
//! The engine never hands over a mixture of two versions of a file: each source is checked before the first
//! byte and after the last. The first failure ends the load, and no other is reported.

mod deliver;
mod pread;
mod scratch;
#[cfg(target_os = "linux")]
mod uring;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::map::MappedSource;
use crate::policy::{Backend, Choice, Direct};
use crate::source::Source;
use crate::{Error, OutOfMemory, Plan};

pub(crate) use deliver::Bound;

/// What is done with bytes between the file and their place.
pub trait Hook: Sync {
    /// Converts bytes of part number `part`, beginning `at` bytes into it, to what they become.
    ///
    /// `from` is a whole number of the part's [`Unit`](crate::Unit)s, and `to` has the length that they
    /// become. Called from several threads at once.
    fn convert(&self, part: usize, at: u64, from: &[u8], to: &mut [u8]);
}

/// How far a load has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that have been read.
    pub done: u64,
    /// Bytes that will have been read at the end.
    pub total: u64,
}

/// Asks loads to stop.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Nothing is cancelled yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Stops every load that was given this, after the requests that are under way.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether loads are to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One load, about to be done.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by literal")]
pub struct Reading<'a> {
    /// The files, by the numbers that the plan uses.
    pub sources: &'a [&'a dyn Source],
    /// What is read.
    pub plan: &'a Plan,
    /// How it is read.
    pub choice: &'a Choice,
    /// What converts the parts whose unit is not [`Unit::SAME`](crate::Unit::SAME).
    pub hook: Option<&'a dyn Hook>,
    /// What may stop it.
    pub cancel: Option<&'a Cancel>,
    /// Told after each request, by one thread at a time; may stop the load.
    pub progress: Option<&'a (dyn Fn(Progress) -> ControlFlow<()> + Sync)>,
}

/// What a load did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Bytes that were asked for.
    pub bytes_wanted: u64,
    /// Bytes that were read, gaps and alignment included.
    pub bytes_read: u64,
    /// Requests that read them.
    pub requests: usize,
    /// Threads that did it.
    pub threads: usize,
    /// What read most of them.
    pub backend: Backend,
    /// Whether most of them came past the page cache.
    pub direct: bool,
    /// What was found out on the way, a sentence each.
    pub notes: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Why a load came to nothing. What is in its memory is of no use.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// A file could not be read, or changed.
    File(Error),
    /// There is not enough memory.
    OutOfMemory(OutOfMemory),
    /// It was asked to stop.
    Cancelled,
    /// The caller's memory does not fit the plan: another number of parts, or other lengths.
    Destination {
        /// The number of the part.
        part: usize,
        /// Bytes of it.
        wanted: u64,
        /// Bytes of memory for it.
        got: u64,
    },
}

impl Reading<'_> {
    /// Reads part number *i* of the plan into `destinations[i]`.
    ///
    /// # Errors
    ///
    /// [`ReadError::File`] if a file cannot be read or changes meanwhile, [`ReadError::Cancelled`],
    /// [`ReadError::OutOfMemory`] for want of scratch memory, [`ReadError::Destination`] if the memory does
    /// not fit the plan.
    pub fn run(&self, destinations: Vec<&mut [u8]>) -> Result<Report, ReadError> {
        let began = Instant::now();
        let requests = deliver::bind(self.plan, destinations)?;
        if self.choice.backend == Backend::Mmap {
            let mapped = self.sources.iter().map(|source| MappedSource::new(*source));
            let mapped = mapped.collect::<Result<Vec<_>, _>>()?;
            let sources: Vec<&dyn Source> = mapped.iter().map(|it| it as &dyn Source).collect();
            return Reading { sources: &sources, ..*self }.carry_out(requests, began);
        }
        self.carry_out(requests, began)
    }

    fn carry_out(&self, requests: Vec<Bound<'_>>, began: Instant) -> Result<Report, ReadError> {
        self.verify()?;
        let mut report = Report {
            bytes_wanted: self.plan.bytes_wanted(),
            bytes_read: 0,
            requests: requests.len(),
            threads: 0,
            backend: self.choice.backend,
            direct: self.choice.direct == Direct::Always,
            notes: Vec::new(),
            elapsed: Duration::ZERO,
        };
        self.read(requests, &mut report)?;
        self.verify()?;
        report.elapsed = began.elapsed();
        Ok(report)
    }

    fn verify(&self) -> Result<(), ReadError> {
        let mut files: Vec<usize> = self.plan.spans().map(|(file, _)| file).collect();
        files.dedup();
        let mut sources = files.into_iter().filter_map(|file| self.sources.get(file));
        sources.try_for_each(|source| source.verify()).map_err(ReadError::File)
    }

    fn read(&self, mut requests: Vec<Bound<'_>>, report: &mut Report) -> Result<(), ReadError> {
        let job = Job::new(self);
        if self.choice.direct == Direct::Probe {
            let enough = |requests: &[Bound<'_>]| {
                let mut bytes = 0;
                let long = |request: &Bound<'_>| {
                    bytes += request.span.end - request.span.start;
                    bytes >= PROBE_BYTES
                };
                requests.iter().position(long).map(|last| last + 1)
            };
            if let Some(count) = enough(&requests).filter(|count| requests.len() >= 4 * count) {
                let rest = requests.split_off(2 * count);
                let second = requests.split_off(count);
                let direct = job.timed(requests, true, report)?;
                let buffered = job.timed(second, false, report)?;
                report.direct = direct < buffered;
                job.note(format!(
                    "tried: past the page cache {:.0} MB/s, through it {:.0} MB/s",
                    direct.recip() / 1e6,
                    buffered.recip() / 1e6
                ));
                requests = rest;
            }
        }
        let direct = report.direct;
        job.pass(requests, direct, report)?;
        report.bytes_read = job.read.load(Ordering::Relaxed);
        Ok(())
    }
}

/// Bytes that are read each way to see which is faster.
const PROBE_BYTES: u64 = 64 << 20;

/// Memory that the requests under way may take, of those that are read elsewhere first. With what the
/// allocator and threads take it stays below the 64 MiB that a load may use beside its own memory.
const SCRATCH_BYTES: u64 = 40 << 20;

/// Requests of a length that this memory has room for; one at least.
fn scratch_each(request_bytes: u64) -> usize {
    usize_of(SCRATCH_BYTES / request_bytes.max(1)).max(1)
}

/// Threads that one load starts, whatever is asked for.
const MOST_THREADS: usize = 256;

/// What the workers of one load share.
pub(crate) struct Job<'a> {
    reading: &'a Reading<'a>,
    stop: AtomicBool,
    failure: Mutex<Option<ReadError>>,
    /// Bytes that requests have read.
    read: AtomicU64,
    /// Held by the one that tells how far it is.
    telling: Mutex<()>,
    total: u64,
    notes: Mutex<Vec<String>>,
}

/// The requests of one pass, not yet begun.
pub(crate) type Queue<'d> = Mutex<std::vec::IntoIter<Bound<'d>>>;

impl<'a> Job<'a> {
    fn new(reading: &'a Reading<'a>) -> Self {
        Self {
            reading,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            read: AtomicU64::new(0),
            telling: Mutex::new(()),
            total: reading.plan.bytes_read(),
            notes: Mutex::new(Vec::new()),
        }
    }

    /// Seconds a byte.
    fn timed(
        &self,
        requests: Vec<Bound<'_>>,
        direct: bool,
        report: &mut Report,
    ) -> Result<f64, ReadError> {
        let bytes: u64 = requests.iter().map(|it| it.span.end - it.span.start).sum();
        let began = Instant::now();
        self.pass(requests, direct, report)?;
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        Ok(began.elapsed().as_secs_f64().max(1e-9) / (bytes as f64).max(1.0))
    }

    /// Carries out requests with several threads.
    fn pass(
        &self,
        requests: Vec<Bound<'_>>,
        direct: bool,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        let choice = self.reading.choice;
        let room = if direct { scratch_each(choice.request_bytes) } else { MOST_THREADS };
        let threads = choice.threads.min(room).min(requests.len()).clamp(1, MOST_THREADS);
        let queue = Mutex::new(requests.into_iter());
        let work = || {
            if let Err(error) = self.work(&queue, direct) {
                self.fail(error);
            }
        };
        std::thread::scope(|scope| {
            // Where the system gives no thread, those there are do it all.
            let another = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).map_while(another).collect();
            report.threads = report.threads.max(others.len() + 1);
            work();
        });
        if let Ok(notes) = self.notes.lock() {
            report.notes.clone_from(&notes);
        }
        match self.failure.lock().ok().and_then(|mut failure| failure.take()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn work(&self, queue: &Queue<'_>, direct: bool) -> Result<(), ReadError> {
        #[cfg(target_os = "linux")]
        if self.reading.choice.backend == Backend::Uring {
            match uring::work(self, queue, direct) {
                Ok(()) => return Ok(()),
                Err(uring::Stopped::Failed(error)) => return Err(error),
                Err(uring::Stopped::Unavailable(why)) => {
                    self.note(format!("io_uring cannot be had ({why}): pread instead"));
                }
            }
        }
        pread::work(self, queue, direct)
    }

    pub(crate) fn reading(&self) -> &Reading<'a> {
        self.reading
    }

    pub(crate) fn source(&self, file: usize) -> Result<&'a dyn Source, ReadError> {
        let missing = ReadError::Destination { part: file, wanted: 0, got: 0 };
        self.reading.sources.get(file).copied().ok_or(missing)
    }

    /// The next request, unless the load is to stop.
    pub(crate) fn next<'d>(&self, queue: &Queue<'d>) -> Option<Bound<'d>> {
        if self.reading.cancel.is_some_and(Cancel::is_cancelled) {
            self.fail(ReadError::Cancelled);
        }
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        queue.lock().ok()?.next()
    }

    /// Says that a request has been carried out, for which so many bytes were read.
    pub(crate) fn finished(&self, bytes: u64) {
        let done = self.read.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let Some(progress) = self.reading.progress else { return };
        // Whoever comes while another is told leaves it to a later one, but for the last.
        let turn = if done >= self.total {
            self.telling.lock().ok()
        } else {
            self.telling.try_lock().ok()
        };
        if turn.is_some() && progress(Progress { done, total: self.total }).is_break() {
            self.fail(ReadError::Cancelled);
        }
    }

    /// Keeps the first failure, and stops the others.
    fn fail(&self, error: ReadError) {
        self.stop.store(true, Ordering::Relaxed);
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }

    /// Says something once.
    pub(crate) fn note(&self, note: String) {
        if let Ok(mut notes) = self.notes.lock()
            && !notes.contains(&note)
        {
            notes.push(note);
        }
    }
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Reading");
        shown.field("sources", &self.sources).field("plan", &self.plan);
        shown.field("choice", &self.choice).finish_non_exhaustive()
    }
}

impl ReadError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::OutOfMemory(_) => "out-of-memory",
            Self::Cancelled => "cancelled",
            Self::Destination { .. } => "destination",
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::OutOfMemory(error) => error.fmt(f),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Destination { part, wanted, got } => {
                write!(f, "part {part} has {wanted} bytes, and the memory for it {got}")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::OutOfMemory(error) => Some(error),
            Self::Cancelled | Self::Destination { .. } => None,
        }
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}

impl From<OutOfMemory> for ReadError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn length(span: &std::ops::Range<u64>) -> usize {
    usize_of(span.end.saturating_sub(span.start))
}
