//! Long work with the interpreter's lock released: Ctrl-C stops it, and a callback hears how far it is.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use weigh::Error;
use weigh::io::{Cancel, Progress};

use crate::error::exception;

/// Less than this many bytes are done sooner than anybody could press a key.
const SHORT: u64 = 32 << 20;

/// How often signals are looked for, and progress is told.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// What long work is given: what may stop it, and whom to tell.
pub(crate) struct Watched<'a> {
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync),
}

/// For work of a size that nobody knows, or that waits for others: it may take long.
pub(crate) const LONG: u64 = u64::MAX;

/// Does work of about so many bytes. `progress` is called with the bytes done and those in all, from this thread: now
/// and then, and once all bytes are done, before the work ends. What it raises stops the work, then too.
///
/// Only Python's main thread hears signals, and only while it waits: that is what this thread does, while another
/// works.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    bytes: u64,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    run_stoppable(py, bytes, progress, || {}, work)
}

/// The same of work that looks at nothing between its steps: `stop` makes it fail.
pub(crate) fn run_stoppable<T: Send>(
    py: Python<'_>,
    bytes: u64,
    progress: Option<&Bound<'_, PyAny>>,
    stop: impl Fn(),
    work: impl FnOnce(&Watched<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let cancel = Cancel::new();
    let heard = Heard::new(bytes);
    let (sender, receiver) = channel();
    let hear = |progress: Progress| heard.hear(progress, &sender);
    let silent = |_: Progress| ControlFlow::Continue(());
    let told: &(dyn Fn(Progress) -> ControlFlow<()> + Sync) =
        if progress.is_some() { &hear } else { &silent };
    let watched = Watched { cancel: &cancel, progress: told };
    if bytes < SHORT && progress.is_none() {
        return py.detach(|| work(&watched)).map_err(|error| exception(py, &error));
    }
    let tell = || match progress {
        Some(progress) => progress.call1(heard.numbers()).map(|_| ()),
        None => Ok(()),
    };
    let work = Mutex::new(Some(work));
    let sender = &sender;
    let worker = || {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(&watched)));
        // The receiver waits until this comes.
        let _told = sender.send(Message::Over);
        Some(result)
    };
    // Only to be lent to what is done without the interpreter's lock.
    let receiver = Mutex::new(receiver);
    let mut raised = Ok(());
    let result = std::thread::scope(|scope| {
        let Ok(thread) = std::thread::Builder::new().spawn_scoped(scope, worker) else {
            // Where there is no thread to be had, nobody watches.
            return py.detach(|| {
                heard.answer(ControlFlow::Continue(()));
                worker()
            });
        };
        let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
        loop {
            let message = py.detach(wait);
            if matches!(message, Ok(Message::Over) | Err(RecvTimeoutError::Disconnected)) {
                break;
            }
            if raised.is_ok() {
                raised = py.check_signals().and_then(|()| tell());
            }
            let goes_on = match &raised {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            if goes_on.is_break() {
                cancel.cancel();
                stop();
            }
            if let Ok(Message::Whole) = message {
                heard.answer(goes_on);
            }
        }
        py.detach(|| thread.join().unwrap_or_default())
    });
    raised?;
    match result {
        Some(Ok(result)) => {
            let result = result.map_err(|error| exception(py, &error))?;
            if !heard.is_whole() {
                tell()?;
            }
            Ok(result)
        }
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        None => Err(PyRuntimeError::new_err("the work was not begun")),
    }
}

/// What a worker says to the thread that waits for it.
enum Message {
    /// All bytes are done, and the worker waits for an answer before it ends.
    Whole,
    /// It has ended.
    Over,
}

/// How far the work is.
struct Heard {
    done: AtomicU64,
    total: AtomicU64,
    /// What the thread that waits says to it that all bytes are done.
    answer: Mutex<Option<ControlFlow<()>>>,
    answered: Condvar,
}

impl Heard {
    fn new(bytes: u64) -> Self {
        Self {
            done: AtomicU64::new(0),
            total: AtomicU64::new(bytes),
            answer: Mutex::new(None),
            answered: Condvar::new(),
        }
    }

    fn numbers(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    fn is_whole(&self) -> bool {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn answer(&self, goes_on: ControlFlow<()>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(goes_on);
        self.answered.notify_all();
    }

    /// What a worker is to do, after it has said how far it is.
    fn hear(&self, progress: Progress, sender: &Sender<Message>) -> ControlFlow<()> {
        self.done.store(progress.done, Ordering::Relaxed);
        self.total.store(progress.total, Ordering::Relaxed);
        if progress.done < progress.total {
            return ControlFlow::Continue(());
        }
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.is_none() && sender.send(Message::Whole).is_err() {
            return ControlFlow::Continue(());
        }
        loop {
            match *answer {
                Some(goes_on) => return goes_on,
                None => answer = self.answered.wait(answer).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
