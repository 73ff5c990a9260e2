//! Files that other processes shorten, lengthen, write to, replace and delete, before and during a load.
//!
//! On the default path, and on every other but that of maps, none of this is ever a signal. A map cannot
//! promise that: what is cut off between the moment when its pages are brought into memory and the moment when
//! they are copied ends the process with SIGBUS. So maps are read here by one thread, and the file changes
//! between two requests. Systems other than Linux, and Linux before 5.14, cannot tell beforehand at all.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use weigh_io::policy::{Backend, Choice, Direct};
use weigh_io::system::{self, Uring};
use weigh_io::{Cut, FileSource, Plan, Progress, ReadError, Reading, Source, Unit};

use crate::load::{Loaded, Mix, Wanted, choice, content, load, load_with, ways};
use crate::watch::watch;

const LEN: usize = 1_000_003;
const CUT: Cut = Cut { request_bytes: 1 << 16, scratch_bytes: 1 << 14, gap_bytes: 0 };

const LINUX: bool = cfg!(target_os = "linux");

/// What another process does to a file.
#[derive(Clone, Copy, Debug)]
enum Change {
    Cut(u64),
    Grow,
    /// Writes the byte at an offset again.
    Write(u64),
    Replace,
    Delete,
}

impl Change {
    fn make(self, path: &Path) {
        let open = || OpenOptions::new().write(true).open(path).unwrap();
        match self {
            Self::Cut(len) => open().set_len(len).unwrap(),
            Self::Grow => open().set_len(LEN as u64 + 1).unwrap(),
            Self::Write(offset) => {
                let mut file = open();
                file.seek(SeekFrom::Start(offset)).unwrap();
                let at = usize::try_from(offset).unwrap();
                file.write_all(&content(LEN)[at..=at]).unwrap();
            }
            Self::Replace => {
                let other = path.with_extension("other");
                std::fs::write(&other, content(LEN)).unwrap();
                std::fs::rename(other, path).unwrap();
            }
            Self::Delete => std::fs::remove_file(path).unwrap(),
        }
    }

    /// What comes of it, at any moment.
    fn codes(self) -> &'static [&'static str] {
        match self {
            Self::Cut(_) => &["io-changed", "io-short"],
            Self::Grow | Self::Write(_) | Self::Replace => &["io-changed"],
            Self::Delete => &["fine"],
        }
    }
}

const CHANGES: [Change; 9] = [
    Change::Cut(0),
    Change::Cut(1),
    Change::Cut(500_000),
    Change::Cut(524_288),
    Change::Cut(LEN as u64 - 1),
    Change::Grow,
    Change::Write(0),
    Change::Write(LEN as u64 - 1),
    Change::Replace,
];

/// Writes a file that was last written to long ago: some systems tell times only to some milliseconds.
fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("file");
    std::fs::write(&path, bytes).unwrap();
    age(&path);
    path
}

fn age(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
}

/// A load of every kind of request from one file.
fn wanted() -> Wanted {
    let rows = [(50, 10_000), (10, 50)];
    Wanted::nothing()
        .span(0..600_000)
        .part(0, 450_000, 7, &rows, Unit::SAME)
        .part(0, 600_000, 400_000, &[], Unit { from: 4, to: 2 })
        .span(1_000_000..LEN as u64)
}

/// Loads, and makes the change when it has been told of so many requests.
fn load_while(
    source: &FileSource,
    plan: &Plan,
    choice: &Choice,
    after: u64,
    change: &(dyn Fn() + Sync),
) -> Loaded {
    let made = AtomicBool::new(false);
    let progress = |progress: Progress| {
        if progress.done >= after && !made.swap(true, Ordering::Relaxed) {
            change();
        }
        ControlFlow::Continue(())
    };
    let (mix, source): (_, &dyn Source) = (Mix::of(plan.parts()), source);
    load_with(&Reading {
        sources: &[source],
        plan,
        choice,
        hook: Some(&mix),
        cancel: None,
        progress: Some(&progress),
    })
}

fn check(loaded: &Loaded, change: Change, path: &Path, wanted: &Wanted, case: &str) {
    assert!(change.codes().contains(&loaded.code()), "{case}: {:?}", loaded.result);
    match &loaded.result {
        Ok(_) => assert!(loaded.parts == wanted.from(&[&content(LEN)]), "{case}"),
        Err(ReadError::File(error)) => {
            assert_eq!(error.path(), path);
            assert!(error.to_string().starts_with(&path.display().to_string()));
        }
        Err(other) => panic!("{case}: {other}"),
    }
}

#[test]
fn a_change_before_a_load_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = wanted();
    let plan = wanted.plan(&CUT);
    for change in CHANGES.into_iter().chain([Change::Delete]) {
        for choice in ways(2) {
            let path = file(folder.path(), &content(LEN));
            let source = FileSource::open(&path).unwrap();
            change.make(&path);
            let loaded = load(&[&source], &plan, &choice);
            check(&loaded, change, &path, &wanted, &format!("{change:?} {choice:?}"));
            assert!(loaded.code() != "io-short", "{change:?} {choice:?}: nothing needs to be read");
        }
    }
}

#[test]
fn a_change_during_a_load_is_found() {
    let _watch = watch("a_change_during_a_load_is_found");
    let folder = tempfile::tempdir().unwrap();
    let wanted = wanted();
    let plan = wanted.plan(&CUT);
    for threads in [1, 2] {
        let ways = ways(threads).into_iter();
        for choice in ways.filter(|way| way.backend != Backend::Mmap || (threads == 1 && LINUX)) {
            for change in CHANGES.into_iter().chain([Change::Delete]) {
                // After the first request, in the middle, and when all has been read.
                for after in [1, plan.bytes_read() / 2, plan.bytes_read()] {
                    let path = file(folder.path(), &content(LEN));
                    let source = FileSource::open(&path).unwrap();
                    let loaded = load_while(&source, &plan, &choice, after, &|| change.make(&path));
                    let case = format!("{change:?} after {after} {choice:?}");
                    check(&loaded, change, &path, &wanted, &case);
                }
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_map_that_lost_its_end_is_a_short_read_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let choice = ways(1).pop().unwrap();
    assert_eq!(choice.backend, Backend::Mmap);
    let plan = Wanted::nothing().span(0..LEN as u64).plan(&CUT);
    for (left, short) in [(500_001, true), (524_288, true), (LEN as u64 - 1, false)] {
        let path = file(folder.path(), &content(LEN));
        let source = FileSource::open(&path).unwrap();
        let loaded = load_while(&source, &plan, &choice, 1, &|| Change::Cut(left).make(&path));
        let Err(ReadError::File(error)) = loaded.result else { panic!("{left}") };
        match error.kind() {
            weigh_io::ErrorKind::Short { offset, got, .. } if short => {
                assert_eq!(offset + got, left);
            }
            // The rest of the last page is zeros, and no fault: the look at the end finds it.
            weigh_io::ErrorKind::Changed(_) if !short => {}
            other => panic!("{left}: {other:?}"),
        }
    }
}

#[test]
fn a_map_as_bytes_is_not_made_of_a_file_that_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &content(LEN));
    let source = FileSource::open(&path).unwrap();
    let read = read_map(&source).unwrap();
    assert!(*read == *content(LEN));
    Change::Cut(1).make(&path);
    assert_eq!(read_map(&source).unwrap_err().code(), "io-changed");
    let empty = FileSource::open(file(folder.path(), b"")).unwrap();
    assert_eq!(read_map(&empty).unwrap(), b"");
}

#[expect(unsafe_code, reason = "the promise of a map")]
fn read_map(source: &FileSource) -> Result<Vec<u8>, weigh_io::Error> {
    // SAFETY: the file is the test's own, and is not written to while the map lives.
    let promise = unsafe { weigh_io::map::Unchanging::promise() };
    weigh_io::map::Map::new(source, promise).map(|map| map.to_vec())
}

#[test]
fn a_file_that_is_cut_off_and_written_again_and_again_is_neither_a_signal_nor_right() {
    let name = "a_file_that_is_cut_off_and_written_again_and_again_is_neither_a_signal_nor_right";
    let _watch = watch(name);
    let folder = tempfile::tempdir().unwrap();
    let bytes = content(LEN);
    let plan = wanted().plan(&CUT);
    for round in 0..10 {
        let ways = ways(2).into_iter();
        for choice in ways.filter(|way| way.backend != Backend::Mmap) {
            let path = file(folder.path(), &bytes);
            let source = FileSource::open(&path).unwrap();
            let [begun, written, done] = [const { AtomicBool::new(false) }; 3];
            let wait_for = |flag: &AtomicBool| {
                while !flag.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            };
            let code = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let file = OpenOptions::new().write(true).open(&path).unwrap();
                    let mut again = file.try_clone().unwrap();
                    wait_for(&begun);
                    while !done.load(Ordering::Relaxed) {
                        file.set_len(round * 100_000).unwrap();
                        again.seek(SeekFrom::Start(0)).unwrap();
                        again.write_all(&bytes).unwrap();
                        written.store(true, Ordering::Relaxed);
                    }
                });
                let loaded = load_while(&source, &plan, &choice, 1, &|| {
                    begun.store(true, Ordering::Relaxed);
                    wait_for(&written);
                });
                done.store(true, Ordering::Relaxed);
                loaded.code()
            });
            assert!(["io-changed", "io-short"].contains(&code), "{code} {choice:?}");
        }
    }
}

#[test]
fn a_file_of_any_length_is_read_to_its_last_byte_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = [1, 2, 511, 512, 513, 4095, 4096, 4097, 8191, 8192, 8193, 100_001];
    for len in lengths {
        let bytes = content(len);
        let path = file(folder.path(), &bytes);
        let end = len as u64;
        for choice in ways(2) {
            let source = FileSource::open(&path).unwrap();
            let starts = [0, end / 2, end - 1];
            for start in starts {
                let wanted = Wanted::nothing().span(start..end);
                let loaded = load(&[&source], &wanted.plan(&CUT), &choice);
                assert!(loaded.unwrap() == wanted.from(&[&bytes]), "{start}..{end} {choice:?}");
            }
            // Direct reads are of whole blocks: that more comes than was asked for is no harm.
            let wanted = Wanted::nothing().span(0..1).part(0, 0, 1, &[], Unit { from: 1, to: 3 });
            let loaded = load(&[&source], &wanted.plan(&CUT), &choice);
            assert!(loaded.unwrap() == wanted.from(&[&bytes]), "{choice:?}");
            for start in starts.into_iter().chain([end, end + 1, end + 10_000]) {
                let plan = Wanted::nothing().span(start..end + 20_000).plan(&CUT);
                assert_short(&source, &plan, &choice, end);
            }
        }
    }
}

#[test]
fn an_empty_file_has_nothing_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    File::create(&path).unwrap();
    let source = FileSource::open(&path).unwrap();
    for choice in ways(1) {
        assert_eq!(
            load(&[&source], &Wanted::nothing().span(0..0).plan(&CUT), &choice).code(),
            "fine"
        );
        assert_short(&source, &Wanted::nothing().span(0..1).plan(&CUT), &choice, 0);
    }
}

/// Checks that a load met the end of its file, and knows where that is.
fn assert_short(source: &FileSource, plan: &Plan, choice: &Choice, end: u64) {
    let loaded = load(&[source], plan, choice);
    let case = format!("{:?} of {end}, {choice:?}", plan.spans().collect::<Vec<_>>());
    let Err(ReadError::File(error)) = &loaded.result else { panic!("{case}: {:?}", loaded.result) };
    let weigh_io::ErrorKind::Short { offset, wanted, got } = *error.kind() else {
        panic!("{case}: {error}");
    };
    // Where a request begins past the end, nothing was got.
    assert!(offset + got == end || (offset > end && got == 0), "{case}: {error}");
    assert!(got < wanted, "{case}: {error}");
    // Direct reads begin on a block, and tell of what they still wanted.
    let asked = |span: &Range<u64>| offset + 4096 > span.start && offset + wanted == span.end;
    assert!(plan.spans().any(|(_, span)| asked(&span)), "{case}: {error}");
}

#[test]
fn both_ways_are_tried_where_there_is_enough_to_read() {
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    let mut file = File::create(&path).unwrap();
    // Requests of 64 MiB, of which the first and the last byte are wanted.
    let ends = (0..6).flat_map(|number| [number * 200 * MIB, number * 200 * MIB + 64 * MIB - 1]);
    let ends: Vec<u64> = ends.collect();
    for (end, value) in ends.iter().zip(1..) {
        file.seek(SeekFrom::Start(*end)).unwrap();
        file.write_all(&[value]).unwrap();
    }
    let wanted = ends.iter().fold(Wanted::nothing(), |all, end| all.span(*end..end + 1));
    let cut = Cut { request_bytes: 64 * MIB, scratch_bytes: 4096, gap_bytes: 64 * MIB };
    let plan = wanted.plan(&cut);
    assert_eq!(plan.requests(), 6);
    for backend in [Backend::Pread, Backend::Uring, Backend::Mmap] {
        let source = FileSource::open(&path).unwrap();
        let choice = choice(backend, Direct::Probe, 1, 1);
        let loaded = load(&[&source], &plan, &choice);
        let direct = backend != Backend::Mmap && source.direct().is_some();
        let notes = &loaded.result.as_ref().unwrap().notes;
        let tried = notes.iter().filter(|note| note.starts_with("tried: ")).count();
        assert_eq!(tried, usize::from(direct), "{backend:?}: {notes:?}");
        assert!(loaded.unwrap().into_iter().flatten().eq(1..=12), "{backend:?}");
    }
}

#[test]
fn a_report_says_what_was_really_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), &content(LEN));
    let memory = crate::faulty::Faulty::sound(&content(LEN));
    let plan = Wanted::nothing().span(1..LEN as u64 - 1).plan(&CUT);
    for choice in ways(2) {
        let source = FileSource::open(&path).unwrap();
        let always = choice.direct == Direct::Always;
        let direct = always && source.direct().is_some();
        let report = load(&[&source], &plan, &choice).result.unwrap();
        let ring = choice.backend != Backend::Uring || system::uring() == Uring::Available;
        assert_eq!(report.backend == choice.backend, ring, "{choice:?}");
        assert_eq!(report.direct, direct, "{choice:?}");
        assert_eq!(report.notes.is_empty(), ring && direct == always, "{:?}", report.notes);
        assert_eq!(report.bytes_wanted, LEN as u64 - 2);
        assert!(report.bytes_read >= report.bytes_wanted);
        assert_eq!(source.bytes_read(), report.bytes_read, "{choice:?}");
        assert_eq!((report.requests, report.threads), (plan.requests(), 2));
        // What is no file is read by its own means.
        let report = load(&[&memory], &plan, &choice).result.unwrap();
        assert!(!report.direct && report.backend != Backend::Uring, "{choice:?}");
    }
}
