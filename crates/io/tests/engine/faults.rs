//! Sources that end early, fail, are interrupted, dawdle, give little, claim too much, and change.

use std::io::ErrorKind as System;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weigh_io::policy::{Backend, Choice, Direct};
use weigh_io::{Cut, ErrorKind, Part, Plan, ReadError, Reading, Repeat, Runs, Source, Unit};

use crate::faulty::{Fault, Faulty, Pace};
use crate::load::{Wanted, choice, content, load, load_with};
use crate::sanitizer;
use crate::watch::watch;

const LEN: usize = 10_000;

/// Small enough for every load here to take several requests.
const CUT: Cut = Cut { request_bytes: 4096, scratch_bytes: 4096, gap_bytes: 0 };

fn with_threads(threads: usize) -> Choice {
    choice(Backend::Pread, Direct::Never, threads, 1)
}

/// One load for every path through the engine.
fn loads() -> Vec<(&'static str, Wanted)> {
    let widened = Unit { from: 2, to: 4 };
    let narrowed = Unit { from: 3, to: 2 };
    let rows = [(9, 1000), (40, 20)];
    let nothing = Wanted::nothing;
    vec![
        ("contiguous", nothing().span(100..9_900)),
        (
            "vectored, with gaps",
            nothing()
                .span(0..700)
                .span(900..2000)
                .span(2000..2500)
                .span(6000..6001)
                .span(9000..9999),
        ),
        ("gathered", nothing().part(0, 50, 6, &rows, Unit::SAME)),
        ("far apart", nothing().part(0, 3, 100, &[(2, 9000)], Unit::SAME)),
        ("converted", nothing().part(0, 10, 9000, &[], widened)),
        ("gathered and converted", nothing().part(0, 50, 6, &rows, narrowed)),
        (
            "overlapping",
            nothing()
                .part(0, 50, 6, &rows, narrowed)
                .span(0..10_000)
                .part(0, 4001, 4000, &[], widened)
                .part(0, 52, 2, &rows, Unit::SAME)
                .span(4095..4097),
        ),
    ]
}

/// A load with what it should give.
struct Case<'a> {
    name: &'a str,
    plan: &'a Plan,
    content: &'a Arc<[u8]>,
    want: Vec<Vec<u8>>,
}

/// Checks a load that had a fault from `at` on: it went well if nothing there was wanted, and else the error
/// is that of a request, and tells what there was of it.
fn check(case: &Case<'_>, fault: Fault, threads: usize) {
    let Case { name, plan, content, want } = case;
    let (Fault::Ends(at) | Fault::Fails(at, _)) = fault else { panic!("{fault:?}") };
    let ended = matches!(fault, Fault::Ends(_));
    let source = Faulty::new("models/a file", content, fault, Pace::All);
    let loaded = load(&[&source], plan, &with_threads(threads));
    let broken = plan.spans().filter(|(_, span)| span.end > at);
    let mut expected = broken.map(|(_, span)| {
        (
            span.start,
            span.end - span.start,
            at.saturating_sub(span.start).min(span.end - span.start),
        )
    });
    let case = format!("{name}, {fault:?}, {threads} threads");
    let error = match &loaded.result {
        Ok(_) => {
            assert_eq!(expected.next(), None, "{case}");
            assert!(loaded.parts == *want, "{case}");
            return;
        }
        Err(ReadError::File(error)) => error,
        Err(other) => panic!("{case}: {other:?}"),
    };
    assert_eq!(error.path(), source.path(), "{case}");
    let got = match *error.kind() {
        ErrorKind::Short { offset, wanted, got } if ended => (offset, wanted, got),
        ErrorKind::Failed { offset, wanted, got, ref error } if !ended => {
            assert_eq!(error.kind(), System::Other, "{case}");
            (offset, wanted, got)
        }
        ref other => panic!("{case}: {other:?}"),
    };
    let right =
        if threads == 1 { expected.next() == Some(got) } else { expected.any(|it| it == got) };
    assert!(right, "{case}: {got:?}");
}

#[test]
fn a_fault_at_any_offset_is_told_exactly_or_does_not_matter() {
    let _watch = watch("a_fault_at_any_offset_is_told_exactly_or_does_not_matter");
    let content = content(LEN);
    for (name, wanted) in loads() {
        let (plan, want) = (&wanted.plan(&CUT), wanted.from(&[&content]));
        let case = Case { name, plan, content: &content, want };
        let step = if sanitizer::is_there() { 7 } else { 1 };
        for at in (0..=LEN as u64).step_by(step) {
            // A thread costs more than a load.
            for (threads, one_in) in [(1, 1), (2, 50), (3, 60)] {
                if at % one_in == 0 {
                    check(&case, Fault::Ends(at), threads);
                    check(&case, Fault::Fails(at, System::Other), threads);
                }
            }
        }
    }
}

#[test]
fn interruptions_are_overcome() {
    let content = content(LEN);
    for (name, wanted) in loads() {
        for at in (0..=LEN as u64).step_by(131) {
            for threads in 1..=3 {
                let source = Faulty::new("file", &content, Fault::Interrupts(at, 3), Pace::All);
                let loaded = load(&[&source], &wanted.plan(&CUT), &with_threads(threads));
                assert!(loaded.unwrap() == wanted.from(&[&content]), "{name} {at} {threads}");
            }
        }
    }
}

#[test]
fn a_source_that_would_block_has_failed() {
    let content = content(LEN);
    for (name, wanted) in loads() {
        let source =
            Faulty::new("file", &content, Fault::Fails(5000, System::WouldBlock), Pace::All);
        let loaded = load(&[&source], &wanted.plan(&CUT), &with_threads(1));
        assert_eq!(loaded.code(), "io-failed", "{name}");
    }
}

#[test]
fn any_count_of_bytes_at_a_time_will_do() {
    let content = content(LEN);
    let paces = [Pace::One, Pace::Random, Pace::Slow(Duration::from_millis(1))];
    for (name, wanted) in loads() {
        for (pace, threads) in paces.into_iter().flat_map(|pace| (1..=3).map(move |it| (pace, it)))
        {
            let source = Faulty::new("file", &content, Fault::Never, pace);
            let loaded = load(&[&source], &wanted.plan(&CUT), &with_threads(threads));
            assert!(loaded.unwrap() == wanted.from(&[&content]), "{name} {pace:?} {threads}");
        }
        for at in (0..=LEN as u64).step_by(997) {
            let source = Faulty::new("file", &content, Fault::Ends(at), Pace::One);
            let plan = wanted.plan(&CUT);
            let enough = plan.spans().all(|(_, span)| span.end <= at);
            let loaded = load(&[&source], &plan, &with_threads(2));
            assert_eq!(loaded.code(), if enough { "fine" } else { "io-short" }, "{name} {at}");
        }
    }
}

#[test]
fn a_source_that_claims_more_than_was_asked_for_has_failed() {
    let content = content(LEN);
    let many = (0..3000).fold(Wanted::nothing(), |all, at| all.span(3 * at..3 * at + 2));
    let loads = loads().into_iter().chain([("many places", many)]);
    for (name, wanted) in loads {
        for more in [1, 4096, usize::MAX / 2] {
            let source = Faulty::new("file", &content, Fault::Never, Pace::TooMany(more));
            let loaded = load(&[&source], &wanted.plan(&CUT), &with_threads(1));
            assert_eq!(loaded.code(), "io-failed", "{name} {more}");
        }
    }
}

#[test]
fn another_identity_is_found_before_and_after() {
    let content = content(LEN);
    for (name, wanted) in loads() {
        for (changes_at, code, looks) in
            [(1, "io-changed", 1), (2, "io-changed", 2), (3, "fine", 2)]
        {
            let mut source = Faulty::sound(&content);
            source.changes_at = Some(changes_at);
            let loaded = load(&[&source], &wanted.plan(&CUT), &with_threads(2));
            assert_eq!(loaded.code(), code, "{name} {changes_at}");
            assert_eq!(source.verified.load(Ordering::Relaxed), looks);
            assert_eq!(source.reads.load(Ordering::Relaxed) == 0, changes_at == 1);
        }
    }
}

#[test]
fn the_error_names_the_file_that_failed_and_others_do_not_matter() {
    let content = content(LEN);
    let wanted = Wanted::nothing()
        .part(2, 0, 10_000, &[], Unit::SAME)
        .part(0, 0, 10_000, &[], Unit::SAME)
        .part(1, 5, 0, &[], Unit::SAME);
    let plan = wanted.plan(&CUT);
    for backend in [Backend::Pread, Backend::Uring, Backend::Mmap] {
        for threads in 1..=3 {
            let good = Faulty::new("good", &content, Fault::Never, Pace::All);
            let mut unread = Faulty::new("unread", &content, Fault::Ends(0), Pace::All);
            unread.changes_at = Some(1);
            let bad = Faulty::new("bad", &content, Fault::Ends(7), Pace::All);
            let choice = choice(backend, Direct::Never, threads, 1);
            let Err(ReadError::File(error)) = load(&[&good, &unread, &bad], &plan, &choice).result
            else {
                panic!("{backend:?}");
            };
            assert_eq!(error.path(), bad.path());
            let loaded = load(&[&good, &unread, &good], &plan, &choice);
            assert_eq!(loaded.unwrap(), wanted.from(&[&content, &content, &content]));
        }
    }
}

#[test]
fn what_does_not_fit_the_plan_is_refused_before_anything_is_read() {
    let source = Faulty::sound(&content(LEN));
    let wanted = Wanted::nothing().span(0..10).part(1, 0, 10, &[], Unit { from: 2, to: 4 });
    let plan = wanted.plan(&CUT);
    let choice = with_threads(1);
    let read = |sources: &[&dyn Source], lengths: &[usize], hook: bool| {
        let mut memory: Vec<Vec<u8>> = lengths.iter().map(|len| vec![0; *len]).collect();
        let mix = crate::load::Mix::of(plan.parts());
        let hook = hook.then_some(&mix as _);
        let reading =
            Reading { sources, plan: &plan, choice: &choice, hook, cancel: None, progress: None };
        reading.run(memory.iter_mut().map(Vec::as_mut_slice).collect()).map_err(|it| it.to_string())
    };
    let two: &[&dyn Source] = &[&source, &source];
    for (sources, lengths, hook, message) in [
        (two, vec![10], true, "part 1 has 10 bytes, and the memory for it 0"),
        (two, vec![10, 20, 5], true, "part 2 has 0 bytes, and the memory for it 5"),
        (two, vec![9, 20], true, "part 0 has 10 bytes, and the memory for it 9"),
        (two, vec![10, 10], true, "part 1 has 20 bytes, and the memory for it 10"),
        (&two[..1], vec![10, 20], true, "there is no source for file 1"),
        (two, vec![10, 20], false, "there is nothing to convert part 1 with"),
    ] {
        assert_eq!(read(sources, &lengths, hook).unwrap_err(), message);
    }
    assert_eq!(source.reads.load(Ordering::Relaxed), 0);
    read(two, &[10, 20], true).unwrap();
}

#[test]
fn a_load_of_nothing_is_fine() {
    let source = Faulty::new("unread", &content(0), Fault::Ends(0), Pace::All);
    let empty = |unit| Part {
        file: 0,
        runs: Runs::strided(9, 4, &[Repeat { count: 0, stride: 1 }]).unwrap(),
        unit,
    };
    for parts in [vec![], vec![empty(Unit::SAME), empty(Unit { from: 4, to: 2 })]] {
        let plan = Plan::new(parts, &CUT).unwrap();
        for backend in [Backend::Pread, Backend::Uring, Backend::Mmap] {
            let choice = choice(backend, Direct::Probe, 3, 8);
            let report = load_with(&Reading {
                sources: &[&source],
                plan: &plan,
                choice: &choice,
                hook: None,
                cancel: None,
                progress: None,
            });
            let report = report.result.unwrap();
            assert_eq!((report.bytes_read, report.requests, report.backend), (0, 0, backend));
        }
    }
    assert_eq!(source.verified.load(Ordering::Relaxed), 0);
}

#[test]
fn a_piece_that_is_converted_in_several_calls_is_whole() {
    let content = content(2_000_000);
    let unit = Unit { from: 3, to: 2 };
    let wanted =
        Wanted::nothing().part(0, 1, 1_500_000, &[], unit).part(0, 2, 600, &[(1900, 1000)], unit);
    let cut = Cut { request_bytes: 4096, scratch_bytes: 1 << 20, gap_bytes: 0 };
    let loaded = load(&[&Faulty::sound(&content)], &wanted.plan(&cut), &with_threads(2));
    assert!(loaded.unwrap() == wanted.from(&[&content]));
}

#[test]
fn a_hook_that_panics_ends_the_load_with_its_panic() {
    struct Panics;
    impl weigh_io::Hook for Panics {
        fn convert(&self, _: usize, _: u64, _: &[u8], _: &mut [u8]) {
            panic!("converted");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(100_000)).unwrap();
    let file = weigh_io::FileSource::open(&path).unwrap();
    let memory = Faulty::sound(&content(100_000));
    let plan = Wanted::nothing().part(0, 0, 90_000, &[], Unit { from: 2, to: 4 }).plan(&CUT);
    for (source, backend) in [(&memory as &dyn Source, Backend::Pread), (&file, Backend::Uring)] {
        for threads in 1..=3 {
            let choice = choice(backend, Direct::Never, threads, 4);
            let (plan, hook) = (&plan, Some(&Panics as _));
            let load = std::panic::AssertUnwindSafe(|| {
                let sources = &[source][..];
                load_with(&Reading {
                    sources,
                    plan,
                    choice: &choice,
                    hook,
                    cancel: None,
                    progress: None,
                })
            });
            assert!(std::panic::catch_unwind(load).is_err());
        }
    }
    assert_eq!(file.read_span(0..100_000).unwrap(), *content(100_000));
}
