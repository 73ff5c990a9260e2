//! The read engine: carries out a plan, straight into memory that is there already.
//!
//! Worker threads take requests from one queue, in the order of the files. What a request reads goes where
//! it belongs without a stop on the way, unless it has to be taken apart or converted: then it passes
//! through a scratch buffer that is small enough for a core's cache, in the thread that read it.
//!
//! The engine never hands over a mixture of two versions of a file: each source is checked before the first
//! byte and after the last. The first failure ends the load, and no other is reported.

mod deliver;
mod failure;
mod pread;
mod scratch;
#[cfg(target_os = "linux")]
mod uring;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Mutex;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::map::MappedSource;
use crate::policy::{self, Backend, Choice, Direct};
use crate::source::{Source, to_u64};
#[cfg(target_os = "linux")]
use crate::system::{self, Uring};
use crate::{Part, Plan, Unit};

pub(crate) use deliver::Bound;
pub use failure::ReadError;

/// What is done with bytes between the file and their place.
pub trait Hook: Sync {
    /// Converts bytes of part number `part`, beginning `at` bytes into it, to what they become.
    ///
    /// `from` is a whole number of the part's [`Unit`](crate::Unit)s, and `to` has the length that they
    /// become. Neither need be aligned. Called from several threads at once, once for each unit.
    fn convert(&self, part: usize, at: u64, from: &[u8], to: &mut [u8]);
}

/// How far a load has come.
///
/// `done` grows from one telling to the next. Not every request is told of: the last one is, so that the last
/// telling of a load that succeeds has `done == total`. A load of nothing tells nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that have been read, gaps included.
    pub done: u64,
    /// Bytes that will have been read at the end: [`Plan::bytes_read`].
    pub total: u64,
}

impl Progress {
    /// So many bytes of so many.
    #[must_use]
    pub const fn new(done: u64, total: u64) -> Self {
        Self { done, total }
    }
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
    /// Told how far it is, by one thread at a time, while the others go on; may stop the load, and is not
    /// told any more then.
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
    /// Whether both ways were tried, past the page cache and through it.
    pub is_probed: bool,
    /// What was found out on the way, a sentence each.
    pub notes: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl<'a> Reading<'a> {
    /// Reads part number *i* of the plan into `destinations[i]`.
    ///
    /// # Errors
    ///
    /// [`ReadError::File`] if a file cannot be read or changes meanwhile, [`ReadError::Cancelled`],
    /// [`ReadError::OutOfMemory`] for want of scratch memory; [`ReadError::Destination`],
    /// [`NoSource`](ReadError::NoSource) and [`NoHook`](ReadError::NoHook), before anything is read, if
    /// what the caller gave does not fit the plan.
    pub fn run(&self, destinations: Vec<&mut [u8]>) -> Result<Report, ReadError> {
        let began = Instant::now();
        self.fits()?;
        let requests = deliver::bind(self.plan, destinations)?;
        if self.choice.backend == Backend::Mmap {
            let files = self.files();
            let map = |(file, source): (usize, &'a &'a dyn Source)| {
                MappedSource::new(*source, files.binary_search(&file).is_ok())
            };
            let mapped = self.sources.iter().enumerate().map(map).collect::<Result<Vec<_>, _>>()?;
            let sources: Vec<&dyn Source> = mapped.iter().map(|it| it as &dyn Source).collect();
            return Reading { sources: &sources, ..*self }.carry_out(requests, began);
        }
        self.carry_out(requests, began)
    }

    /// Whether there is a source and a hook for all that is planned.
    fn fits(&self) -> Result<(), ReadError> {
        if let Some((file, _)) = self.plan.spans().find(|(file, _)| *file >= self.sources.len()) {
            return Err(ReadError::NoSource { file });
        }
        let converted = |part: &Part| part.unit != Unit::SAME && part.runs.bytes() > 0;
        match self.plan.parts().iter().position(converted) {
            Some(part) if self.hook.is_none() => Err(ReadError::NoHook { part }),
            _ => Ok(()),
        }
    }

    fn carry_out(&self, requests: Vec<Bound<'_>>, began: Instant) -> Result<Report, ReadError> {
        self.verify()?;
        let mut report = Report {
            bytes_wanted: self.plan.bytes_wanted(),
            bytes_read: 0,
            requests: requests.len(),
            threads: 0,
            backend: self.choice.backend,
            direct: false,
            is_probed: false,
            notes: Vec::new(),
            elapsed: Duration::ZERO,
        };
        self.read(requests, &mut report)?;
        self.verify()?;
        report.elapsed = began.elapsed();
        Ok(report)
    }

    /// The numbers of the files that are read, in order.
    fn files(&self) -> Vec<usize> {
        let mut files: Vec<usize> = self.plan.spans().map(|(file, _)| file).collect();
        files.dedup();
        files
    }

    fn verify(&self) -> Result<(), ReadError> {
        let mut sources = self.files().into_iter().filter_map(|file| self.sources.get(file));
        sources.try_for_each(|source| source.verify()).map_err(ReadError::File)
    }

    fn read(&self, requests: Vec<Bound<'_>>, report: &mut Report) -> Result<(), ReadError> {
        let job = Job::new(self);
        let (direct, rest) = match self.choice.direct {
            Direct::Never => (false, requests),
            Direct::Always => (true, requests),
            Direct::Probe => job.probe(requests, report)?,
        };
        job.pass(rest, direct, report)?;
        job.sum_up(report);
        Ok(())
    }
}

/// Most bytes that are read each way to see which is faster, and the share of the load.
const PROBE_BYTES: u64 = 64 << 20;
const PROBE_SHARE: u64 = 8;

/// Requests of a length that this memory has room for; one at least.
fn scratch_each(request_bytes: u64) -> usize {
    usize_of(policy::SCRATCH_BYTES / request_bytes.max(1)).max(1)
}

/// What is said of a load that was to come past the page cache.
const NOT_DIRECT: &str = "nothing here can be read past the page cache";

/// What the workers of one load share.
pub(crate) struct Job<'a> {
    reading: &'a Reading<'a>,
    stop: AtomicBool,
    failure: Mutex<Option<ReadError>>,
    /// Bytes of the requests that have been carried out.
    done: AtomicU64,
    total: u64,
    /// How many were done when that was last told. Held by the one that tells.
    told: Mutex<u64>,
    /// Bytes that were read for them, all in all, past the page cache, and through `io_uring`.
    read: AtomicU64,
    direct: AtomicU64,
    ring: AtomicU64,
    notes: Mutex<Vec<String>>,
    /// Whether there are rings to be had, once a worker has wanted one.
    #[cfg(target_os = "linux")]
    uring: OnceLock<Uring>,
}

/// How one request was carried out.
pub(crate) struct Took {
    /// Bytes of its span.
    pub(crate) span: u64,
    /// Bytes that were read for it.
    pub(crate) read: u64,
    /// Whether they came past the page cache.
    pub(crate) direct: bool,
    /// Whether they came through `io_uring`.
    pub(crate) ring: bool,
}

/// The requests of one pass, not yet begun.
pub(crate) type Queue<'d> = Mutex<std::vec::IntoIter<Bound<'d>>>;

impl<'a> Job<'a> {
    fn new(reading: &'a Reading<'a>) -> Self {
        Self {
            reading,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            done: AtomicU64::new(0),
            total: reading.plan.bytes_read(),
            told: Mutex::new(0),
            read: AtomicU64::new(0),
            direct: AtomicU64::new(0),
            ring: AtomicU64::new(0),
            notes: Mutex::new(Vec::new()),
            #[cfg(target_os = "linux")]
            uring: OnceLock::new(),
        }
    }

    /// Whether there are rings to be had: asked of the system once a load, whatever its workers and passes.
    #[cfg(target_os = "linux")]
    pub(crate) fn uring(&self) -> Uring {
        *self.uring.get_or_init(system::uring)
    }

    /// Reads some each way, where there is enough to do so; which way was faster, and what is left.
    fn probe<'d>(
        &self,
        mut requests: Vec<Bound<'d>>,
        report: &mut Report,
    ) -> Result<(bool, Vec<Bound<'d>>), ReadError> {
        let wanted = PROBE_BYTES.min(self.total / PROBE_SHARE);
        let mut bytes = 0;
        let enough = requests.iter().position(|request| {
            bytes += to_u64(request.bytes());
            bytes >= wanted
        });
        let Some(count) = enough.map(|last| last + 1).filter(|it| requests.len() / 4 >= *it) else {
            self.note(
                "too few requests to see whether reads past the page cache are faster".into(),
            );
            return Ok((false, requests));
        };
        let rest = requests.split_off(2 * count);
        let second = requests.split_off(count);
        let direct = self.timed(requests, true, report)?;
        if self.direct.load(Ordering::Relaxed) == 0 {
            self.note(NOT_DIRECT.into());
            return Ok((false, second.into_iter().chain(rest).collect()));
        }
        let buffered = self.timed(second, false, report)?;
        report.is_probed = true;
        self.note(format!(
            "tried: past the page cache {:.0} MB/s, through it {:.0} MB/s",
            direct.recip() / 1e6,
            buffered.recip() / 1e6
        ));
        Ok((direct < buffered, rest))
    }

    /// Seconds a byte.
    fn timed(
        &self,
        requests: Vec<Bound<'_>>,
        direct: bool,
        report: &mut Report,
    ) -> Result<f64, ReadError> {
        let bytes: u64 = requests.iter().map(|it| to_u64(it.bytes())).sum();
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
        let room = if direct { scratch_each(choice.request_bytes) } else { usize::MAX };
        let threads =
            choice.threads.min(room).min(requests.len()).clamp(1, usize_of(policy::MOST_THREADS));
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
        match self.failure.lock().ok().and_then(|mut failure| failure.take()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn work(&self, queue: &Queue<'_>, direct: bool) -> Result<(), ReadError> {
        // What a ring has to fetch through the page cache, it hands to threads of the kernel's: where both ways
        // are tried, that is no way to try.
        #[cfg(target_os = "linux")]
        if self.reading.choice.backend == Backend::Uring
            && (direct || self.reading.choice.direct != Direct::Probe)
        {
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
        self.reading.sources.get(file).copied().ok_or(ReadError::NoSource { file })
    }

    /// Whether nobody has cancelled the load.
    pub(crate) fn goes_on(&self) -> bool {
        !self.reading.cancel.is_some_and(Cancel::is_cancelled)
    }

    /// The next request, unless the load is to stop.
    pub(crate) fn next<'d>(&self, queue: &Queue<'d>) -> Option<Bound<'d>> {
        if !self.goes_on() {
            self.fail(ReadError::Cancelled);
        }
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        queue.lock().ok()?.next()
    }

    /// Says that a request has been carried out.
    pub(crate) fn finished(&self, took: &Took) {
        self.read.fetch_add(took.read, Ordering::Relaxed);
        for (counter, counts) in [(&self.direct, took.direct), (&self.ring, took.ring)] {
            counter.fetch_add(if counts { took.read } else { 0 }, Ordering::Relaxed);
        }
        let done = self.done.fetch_add(took.span, Ordering::Relaxed).saturating_add(took.span);
        let Some(progress) = self.reading.progress else { return };
        // Whoever comes while another tells leaves it to a later one, but for the last.
        let told =
            if done >= self.total { self.told.lock().ok() } else { self.told.try_lock().ok() };
        let Some(mut told) = told else { return };
        // The others have gone on meanwhile, and may have told of this.
        let done = self.done.load(Ordering::Relaxed);
        if done <= *told || self.stop.load(Ordering::Relaxed) {
            return;
        }
        *told = done;
        if progress(Progress { done, total: self.total }).is_break() {
            self.fail(ReadError::Cancelled);
        }
    }

    /// What most bytes came through.
    fn sum_up(&self, report: &mut Report) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let read = count(&self.read);
        report.bytes_read = read;
        report.direct = count(&self.direct) > read / 2;
        if self.reading.choice.direct == Direct::Always && count(&self.direct) == 0 && read > 0 {
            self.note(NOT_DIRECT.into());
        }
        if report.backend == Backend::Uring && count(&self.ring) <= read / 2 && read > 0 {
            report.backend = Backend::Pread;
        }
        if let Ok(notes) = self.notes.lock() {
            report.notes.clone_from(&notes);
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

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn length(span: &std::ops::Range<u64>) -> usize {
    usize_of(span.end.saturating_sub(span.start))
}
