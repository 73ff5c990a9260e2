//! Ctrl-C while something is written: the work stops, cleans up, and only then the program ends.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use weigh::io::Cancel;

/// Cancelled by the first signal.
static CANCEL: Cancel = Cancel::new();

/// The signal that came first; 0 if none has.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Whether Ctrl-C is for another program on the terminal.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// What is cancelled when a signal asks the program to end. A second signal ends it at once.
pub(crate) fn cancel() -> &'static Cancel {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Without a handler the program ends at once: nothing is lost but the cleaning up.
        let _installed = system::watch(|signal| {
            if signal == system::CTRL_C && ELSEWHERE.load(Ordering::Relaxed) {
                return false;
            }
            CANCEL.cancel();
            SIGNAL.swap(signal, Ordering::Relaxed) != 0
        });
    });
    &CANCEL
}

/// Waits for another program that has the terminal: Ctrl-C is for that one alone.
pub(crate) fn leave_terminal<T>(wait: impl FnOnce() -> T) -> T {
    cancel();
    ELSEWHERE.store(true, Ordering::Relaxed);
    let ended = wait();
    ELSEWHERE.store(false, Ordering::Relaxed);
    ended
}

/// Ends the program as the signal that came would have, so that whoever started it sees that; returns if none has.
pub(crate) fn end() {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        system::end(signal);
    }
}

#[cfg(unix)]
mod system {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    pub(super) const CTRL_C: i32 = SIGINT;

    /// Calls `came` with each signal; the program ends if it says so.
    pub(super) fn watch(came: impl Fn(i32) -> bool + Send + 'static) -> std::io::Result<()> {
        let ignored = ignored();
        let watched = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let mut signals = Signals::new(watched.filter(|signal| ignored >> (signal - 1) & 1 == 0))?;
        let wait = move || {
            for signal in signals.forever() {
                if came(signal) {
                    end(signal);
                }
            }
        };
        std::thread::Builder::new().name("weigh-signals".into()).spawn(wait)?;
        Ok(())
    }

    /// The signals that whoever started the program had it ignore, as `nohup` does, a bit each from 1 on: they stay
    /// ignored. Known on Linux alone.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    }

    pub(super) fn end(signal: i32) {
        let _ended = emulate_default_handler(signal);
    }
}

#[cfg(windows)]
mod system {
    /// What Windows says of a program that Ctrl-C ended, `STATUS_CONTROL_C_EXIT`.
    const ENDED: i32 = 0xC000_013A_u32.cast_signed();

    pub(super) const CTRL_C: i32 = 1;

    pub(super) fn watch(came: impl Fn(i32) -> bool + Send + 'static) -> Result<(), ctrlc::Error> {
        ctrlc::set_handler(move || {
            if came(CTRL_C) {
                end(CTRL_C);
            }
        })
    }

    pub(super) fn end(_: i32) {
        std::process::exit(ENDED)
    }
}
