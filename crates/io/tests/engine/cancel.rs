//! Loads that are stopped, and how far they say they are.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weigh_io::policy::{Backend, Choice, Direct};
use weigh_io::{Cancel, Cut, FileSource, Plan, Progress, Reading, Source};

use crate::faulty::{Fault, Faulty, Pace};
use crate::load::{Wanted, choice, content, load_with, ways};
use crate::watch::watch;

const LEN: usize = 600_001;
const CUT: Cut = Cut { request_bytes: 8192, scratch_bytes: 8192, gap_bytes: 0 };

/// Two stretches that begin and end on no block.
fn plan() -> Plan {
    Wanted::nothing().span(5..300_001).span(400_123..600_001).plan(&CUT)
}

fn reading<'a>(source: &'a &'a dyn Source, plan: &'a Plan, choice: &'a Choice) -> Reading<'a> {
    let sources = std::slice::from_ref(source);
    Reading { sources, plan, choice, hook: None, cancel: None, progress: None }
}

/// Every way to read a file, and one to read what is none, with some threads.
fn with_every_way(threads: usize, mut test: impl FnMut(&dyn Source, &Choice)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(LEN)).unwrap();
    for way in ways(threads) {
        test(&FileSource::open(&path).unwrap(), &way);
    }
    let memory = Faulty::sound(&content(LEN));
    test(&memory, &choice(Backend::Pread, Direct::Never, threads, 1));
}

#[test]
fn progress_grows_and_ends_at_the_total() {
    let plan = plan();
    for threads in [1, 2, 3, 8] {
        with_every_way(threads, |source, choice| {
            let told = Mutex::new(Vec::new());
            let progress = |progress: Progress| {
                assert_eq!(progress.total, plan.bytes_read());
                told.lock().unwrap().push(progress.done);
                ControlFlow::Continue(())
            };
            let progress = Some(&progress as _);
            load_with(&Reading { progress, ..reading(&source, &plan, choice) }).result.unwrap();
            let told = told.into_inner().unwrap();
            assert!(told.is_sorted_by(|first, next| first < next), "{choice:?}: {told:?}");
            assert_eq!(told.last(), Some(&plan.bytes_read()), "{choice:?}");
            assert!(threads > 1 || told.len() == plan.requests(), "{choice:?}");
        });
    }
}

#[test]
fn progress_can_stop_a_load_at_any_telling_and_is_told_no_more() {
    let plan = plan();
    for threads in 1..=3 {
        with_every_way(threads, |source, choice| {
            for last in [1, 2, 7] {
                let told = AtomicUsize::new(0);
                let progress = |_: Progress| {
                    let number = 1 + told.fetch_add(1, Ordering::Relaxed);
                    if number < last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                let progress = Some(&progress as _);
                let loaded = load_with(&Reading { progress, ..reading(&source, &plan, choice) });
                // With many threads, there may be few tellings.
                if threads == 1 || told.load(Ordering::Relaxed) == last {
                    assert_eq!(loaded.code(), "cancelled", "{choice:?}");
                }
                assert!(told.load(Ordering::Relaxed) <= last, "{choice:?}");
            }
        });
    }
}

#[test]
fn a_load_that_is_cancelled_before_it_begins_reads_nothing() {
    let plan = plan();
    let cancel = Cancel::new();
    cancel.cancel();
    with_every_way(2, |source, choice| {
        let told = |_: Progress| -> ControlFlow<()> { panic!("nothing was read") };
        let (cancel, progress) = (Some(&cancel), Some(&told as _));
        let loaded = load_with(&Reading { cancel, progress, ..reading(&source, &plan, choice) });
        assert_eq!(loaded.code(), "cancelled", "{choice:?}");
        assert!(loaded.parts.iter().flatten().all(|byte| *byte == 0xa5));
    });
}

#[test]
fn a_load_is_cancelled_by_what_is_told_of_it() {
    let plan = plan();
    for threads in 1..=3 {
        with_every_way(threads, |source, choice| {
            let cancel = Cancel::new();
            let progress = |_: Progress| {
                cancel.cancel();
                ControlFlow::Continue(())
            };
            let (cancel, progress) = (Some(&cancel), Some(&progress as _));
            let loaded =
                load_with(&Reading { cancel, progress, ..reading(&source, &plan, choice) });
            assert_eq!(loaded.code(), "cancelled", "{choice:?}");
        });
    }
}

#[test]
fn a_load_is_cancelled_from_another_thread_within_a_request() {
    let _watch = watch("a_load_is_cancelled_from_another_thread_within_a_request");
    let plan = plan();
    let pace = Pace::Slow(Duration::from_millis(20));
    for threads in 1..=3 {
        let slow = Faulty::new("slow", &content(LEN), Fault::Never, pace);
        let cancel = Cancel::new();
        let choice = choice(Backend::Pread, Direct::Never, threads, 1);
        let loaded = std::thread::scope(|scope| {
            scope.spawn(|| {
                while slow.reads.load(Ordering::Relaxed) < 4 {
                    std::thread::yield_now();
                }
                cancel.cancel();
            });
            let cancel = Some(&cancel);
            load_with(&Reading { cancel, ..reading(&(&slow as &dyn Source), &plan, &choice) })
        });
        assert_eq!(loaded.code(), "cancelled");
        // All of it would have taken half a second with three threads, and more with fewer.
        let reads = slow.reads.load(Ordering::Relaxed);
        assert!(reads < plan.requests(), "{reads} of {}", plan.requests());
    }
}

#[test]
fn the_first_failure_stops_the_others() {
    let pace = Pace::Slow(Duration::from_millis(5));
    let plan = plan();
    for threads in 1..=3 {
        let broken = Faulty::new("broken", &content(LEN), Fault::Ends(20_000), pace);
        let choice = choice(Backend::Pread, Direct::Never, threads, 1);
        let loaded = load_with(&reading(&(&broken as &dyn Source), &plan, &choice));
        assert_eq!(loaded.code(), "io-short");
        assert!(broken.reads.load(Ordering::Relaxed) < plan.requests() / 2);
    }
}
