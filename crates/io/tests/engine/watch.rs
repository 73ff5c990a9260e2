//! Ends the tests where one hangs.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Far more than any of these tests takes, with every sanitizer.
const LIMIT: Duration = Duration::from_mins(5);

/// While this lives, somebody watches.
pub(crate) struct Watch(#[expect(dead_code, reason = "its end is what is watched")] Sender<()>);

/// Ends the process, saying so, unless what is returned is dropped in time.
pub(crate) fn watch(test: &'static str) -> Watch {
    let (alive, ended) = channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            std::process::abort();
        }
    });
    Watch(alive)
}
