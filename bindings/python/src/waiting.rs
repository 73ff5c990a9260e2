//! Long work with the interpreter's lock released: Ctrl-C stops it, and a callback hears how far it is.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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

/// Does work of about so many bytes. `progress` is called with the bytes done and those in all, from this thread.
///
/// Only Python's main thread hears signals, and only while it waits: that is what this thread does, while another
/// works.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    bytes: u64,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let cancel = Cancel::new();
    let [done, total] = [AtomicU64::new(0), AtomicU64::new(bytes)];
    let hear = |progress: Progress| {
        done.store(progress.done, Ordering::Relaxed);
        total.store(progress.total, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let watched = Watched { cancel: &cancel, progress: &hear };
    if bytes < SHORT && progress.is_none() {
        return py.detach(|| work(&watched)).map_err(|error| exception(py, &error));
    }
    let tell = || match progress {
        Some(progress) => {
            let numbers = (done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
            progress.call1(numbers).map(|_| ())
        }
        None => Ok(()),
    };
    let (sender, receiver) = channel();
    // Only to be lent to what is done without the interpreter's lock.
    let receiver = Mutex::new(receiver);
    let mut raised = Ok(());
    let result = std::thread::scope(|scope| {
        let watched = &watched;
        let worker = scope.spawn(move || {
            let result = work(watched);
            // The receiver waits until this comes, or the sender is gone.
            let _told = sender.send(());
            result
        });
        let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
        while let Err(RecvTimeoutError::Timeout) = py.detach(wait) {
            if raised.is_ok() {
                raised = py.check_signals().and_then(|()| tell());
                if raised.is_err() {
                    cancel.cancel();
                }
            }
        }
        py.detach(|| worker.join())
    });
    raised?;
    match result {
        Ok(result) => {
            let result = result.map_err(|error| exception(py, &error))?;
            tell()?;
            Ok(result)
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
