//! How much memory a piece of code holds at its worst: the allocator of this program, counting.
//!
//! It counts only inside [`peak`], so that a timing pays a branch for it and nothing more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The system's allocator, counting.
#[derive(Debug)]
pub(crate) struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
/// Bytes allocated less bytes freed since counting began.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// The most that [`LIVE`] has been.
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// Runs `work`; gives what it returns and the most bytes it had allocated at one time.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    LIVE.store(0, Ordering::Relaxed);
    PEAK.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    let result = work();
    COUNTS.store(false, Ordering::Relaxed);
    let peak = PEAK.load(Ordering::Relaxed);
    (result, u64::try_from(peak).unwrap_or_default())
}

fn count(more: usize, fewer: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        // No allocation is over isize::MAX bytes.
        let change = more.cast_signed().wrapping_sub(fewer.cast_signed());
        let live = LIVE.fetch_add(change, Ordering::Relaxed) + change;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

// SAFETY: every method hands its arguments to `System` and gives back what that returns; counting
// neither allocates nor unwinds.
#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: `memory` came from `System`, with this layout, as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // A large block is remapped, not copied: the old one and the new are not held at once.
        count(size, layout.size());
        // SAFETY: `memory` came from `System`, with this layout, as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}
