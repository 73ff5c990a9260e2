//! Memory that is held, and who waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may be held at a time.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    held: u64,
    /// Since when somebody waits for bytes.
    waiting: Option<Instant>,
    is_closed: bool,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Nothing in here panics while it holds the lock, so its state is sound whoever else panicked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many bytes are free, and holds them. `false` if it was closed instead.
    ///
    /// What is more than the limit is held when nothing else is.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let mut state = self.state();
        while !state.is_closed && state.held > 0 && state.held.saturating_add(bytes) > self.limit {
            state.waiting.get_or_insert_with(Instant::now);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting = None;
        state.held = state.held.saturating_add(bytes);
        !state.is_closed
    }

    pub(super) fn give_back(&self, bytes: u64) {
        let mut state = self.state();
        state.held = state.held.saturating_sub(bytes);
        // Whoever waits may have to wait on, but not for nothing.
        state.waiting = state.waiting.map(|_| Instant::now());
        drop(state);
        self.changed.notify_all();
    }

    /// Ends all waiting, now and later.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// The bytes held, if somebody has waited for others to be given back for so long.
    pub(super) fn stuck_for(&self, patience: Duration) -> Option<u64> {
        let state = self.state();
        state.waiting.filter(|since| since.elapsed() >= patience).map(|_| state.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_held_up_to_the_limit_and_waited_for_beyond() {
        let budget = Budget::new(100);
        assert!(budget.take(60) && budget.take(40));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.take(30));
            while budget.stuck_for(Duration::ZERO).is_none() {
                std::thread::yield_now();
            }
            assert_eq!(budget.stuck_for(Duration::ZERO), Some(100));
            assert_eq!(budget.stuck_for(Duration::from_hours(1)), None);
            budget.give_back(20);
            budget.give_back(20);
            assert!(waiter.join().unwrap());
        });
        assert_eq!(budget.stuck_for(Duration::ZERO), None);
    }

    #[test]
    fn what_is_over_the_limit_is_held_alone() {
        let budget = Budget::new(100);
        assert!(budget.take(500));
        budget.give_back(500);
        assert!(budget.take(500));
    }

    #[test]
    fn closing_ends_all_waiting() {
        let budget = Budget::new(1);
        assert!(budget.take(1));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.take(1));
            budget.close();
            assert!(!waiter.join().unwrap());
        });
        assert!(budget.is_closed() && !budget.take(1));
    }
}
