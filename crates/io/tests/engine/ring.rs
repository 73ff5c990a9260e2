//! `io_uring`: depths, places, and systems that do not give it.

use std::fs::File;
use std::io::IoSliceMut;
use std::path::Path;
use std::time::Duration;

use weigh_io::policy::{Backend, Direct};
use weigh_io::system::{Uring, uring};
use weigh_io::{Cut, Error, ErrorKind, FileSource, ReadError, Reading, Source, Unit};

use crate::child::{in_a_child, no_more_files};
use crate::faulty::Faulty;
use crate::load::{Wanted, choice, content, load, ways};
use crate::seccomp::forbid;
use crate::watch::watch;

const LEN: usize = 100_003;
const CUT: Cut = Cut { request_bytes: 4096, scratch_bytes: 4096, gap_bytes: 0 };

fn file(folder: &tempfile::TempDir) -> FileSource {
    let path = folder.path().join("file");
    std::fs::write(&path, content(LEN)).unwrap();
    FileSource::open(&path).unwrap()
}

#[test]
fn any_depth_and_any_number_of_threads_will_do() {
    let _watch = watch("any_depth_and_any_number_of_threads_will_do");
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    let few = Wanted::nothing().span(10..9000);
    let many =
        Wanted::nothing().span(1..LEN as u64).part(0, 0, 50_000, &[], Unit { from: 2, to: 1 });
    for wanted in [few, many] {
        for depth in [0, 1, 2, 7, 25, 26, 256, 1000, usize::MAX] {
            for threads in [0, 1, 3, usize::MAX] {
                for direct in [Direct::Never, Direct::Always, Direct::Probe] {
                    let choice = choice(Backend::Uring, direct, threads, depth);
                    let loaded = load(&[&source], &wanted.plan(&CUT), &choice);
                    assert!(loaded.unwrap() == wanted.from(&[&content(LEN)]), "{choice:?}");
                }
            }
        }
    }
}

#[test]
fn any_number_of_places_in_one_request_will_do() {
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    for count in [1, 2, 510, 511, 512, 513, 1022, 1023, 1024, 1025, 2047, 2048, 2049, 20_000] {
        for gap in [0, 1] {
            let place = |all: Wanted, at: u64| all.span(at * (4 + gap)..at * (4 + gap) + 4);
            let wanted = (0..count).fold(Wanted::nothing(), place);
            let plan = wanted.plan(&Cut { request_bytes: 1 << 20, ..CUT });
            assert_eq!(plan.requests(), 1);
            for choice in ways(1) {
                let loaded = load(&[&source], &plan, &choice);
                assert!(
                    loaded.unwrap() == wanted.from(&[&content(LEN)]),
                    "{count} {gap} {choice:?}"
                );
            }
        }
    }
}

/// A source whose file ends before it does: the ring, and direct reads, get too little.
#[derive(Debug)]
struct Stub {
    whole: Faulty,
    file: File,
    direct: Option<File>,
}

impl Source for Stub {
    fn path(&self) -> &Path {
        self.whole.path()
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        self.whole.read_some(buffers, offset)
    }

    fn verify(&self) -> Result<(), Error> {
        Ok(())
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn direct(&self) -> Option<&File> {
        self.direct.as_ref()
    }
}

#[test]
fn what_the_ring_leaves_is_read_by_other_means() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let rows = [(20, 500), (10, 20)];
    let places = (0..300).fold(Wanted::nothing(), |all, at| all.span(20 * at + 7..20 * at + 19));
    let wanted = places.span(8000..16_000).part(0, 20_001, 6, &rows, Unit::SAME).part(
        0,
        30_003,
        9000,
        &[],
        Unit { from: 3, to: 2 },
    );
    let plan = wanted.plan(&CUT);
    for there in (0..40_000).step_by(397).chain([4096, 8192, LEN]) {
        std::fs::write(&path, &content(LEN)[..there]).unwrap();
        for way in ways(2) {
            let source = FileSource::open(&path).unwrap();
            let stub = Stub {
                whole: Faulty::sound(&content(LEN)),
                file: File::open(&path).unwrap(),
                direct: source.direct().map(|file| file.try_clone().unwrap()),
            };
            let loaded = load(&[&stub], &plan, &way);
            assert!(loaded.unwrap() == wanted.from(&[&content(LEN)]), "{there} {way:?}");
        }
    }
}

#[test]
fn what_the_ring_fails_at_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(LEN)).unwrap();
    let unreadable = || File::options().write(true).open(&path).unwrap();
    let plan = Wanted::nothing().span(5000..9000).plan(&CUT);
    for direct in [None, Some(unreadable())] {
        let stub = Stub { whole: Faulty::sound(&content(LEN)), file: unreadable(), direct };
        for (backend, past_cache) in
            [(Backend::Uring, true), (Backend::Uring, false), (Backend::Pread, true)]
        {
            let direct = if past_cache { Direct::Always } else { Direct::Never };
            let loaded = load(&[&stub], &plan, &choice(backend, direct, 1, 2));
            // Where neither the ring nor a direct file is asked, nothing fails.
            if loaded.result.is_ok() {
                assert!(uring() != Uring::Available || backend == Backend::Pread);
                continue;
            }
            let Err(ReadError::File(error)) = loaded.result else { panic!("{:?}", loaded.result) };
            assert_eq!(error.path(), stub.path());
            let place = match *error.kind() {
                ErrorKind::Failed { offset, wanted, got, .. } => (offset, wanted, got),
                _ => panic!("{error}"),
            };
            let blocks = past_cache && stub.direct.is_some();
            assert_eq!(place, if blocks { (4096, 8192, 0) } else { (5000, 4000, 0) });
        }
    }
}

#[test]
fn nothing_is_written_to_memory_once_a_load_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; 8 << 20]).unwrap();
    let source = FileSource::open(&path).unwrap();
    source.file().unwrap().sync_all().unwrap();
    let unreadable = File::options().write(true).open(&path).unwrap();
    let broken = Stub { whole: Faulty::sound(&content(1)), file: unreadable, direct: None };
    let wanted = Wanted::nothing().span(0..1).part(1, 0, 8 << 20, &[], Unit::SAME);
    let plan = wanted.plan(&Cut { request_bytes: 256 << 10, ..CUT });
    let mut memory = vec![0; 8 << 20];
    for _ in 0..3 {
        // Cold, so that the disk is still at work when the first request has failed.
        let advice = rustix::fs::Advice::DontNeed;
        rustix::fs::fadvise(source.file().unwrap(), 0, None, advice).unwrap();
        let choice = choice(Backend::Uring, Direct::Never, 1, 64);
        let sources: &[&dyn Source] = &[&broken, &source];
        let (plan, choice) = (&plan, &choice);
        let reading = Reading { sources, plan, choice, hook: None, cancel: None, progress: None };
        let result = reading.run(vec![&mut [0], &mut memory]);
        memory.fill(5);
        assert!(result.is_err() || uring() != Uring::Available);
        std::thread::sleep(Duration::from_millis(30));
        assert!(memory.iter().all(|byte| *byte == 5));
    }
}

/// Loads with three threads through `io_uring`, which is not to be had.
fn load_without(why: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    let wanted = Wanted::nothing().span(1..LEN as u64);
    let plan = wanted.plan(&CUT);
    no_more_files(why == TOO_MANY);
    for direct in [Direct::Never, Direct::Always] {
        let loaded = load(&[&source], &plan, &choice(Backend::Uring, direct, 3, 8));
        let report = loaded.result.unwrap();
        assert!(loaded.parts == wanted.from(&[&content(LEN)]));
        assert_eq!(report.backend, Backend::Pread);
        let notes: Vec<_> = report.notes.iter().filter(|it| it.contains("io_uring")).collect();
        assert_eq!(notes.len(), 1, "{:?}", report.notes);
        assert!(notes[0].contains(why) && notes[0].contains("pread"), "{notes:?}");
    }
    no_more_files(false);
}

const TOO_MANY: &str = Uring::Failed.why_not();

const RING_CALLS: [libc::c_long; 2] = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter];

#[test]
fn a_later_ring_that_cannot_be_had_is_told_of_once() {
    in_a_child("ring::a_later_ring_that_cannot_be_had_is_told_of_once", || {
        if uring() == Uring::Available {
            load_without(TOO_MANY);
            assert_eq!(uring(), Uring::Available);
        }
    });
}

#[test]
fn a_first_ring_that_cannot_be_had_for_now_is_told_of_once_and_asked_for_again() {
    let name = "ring::a_first_ring_that_cannot_be_had_for_now_is_told_of_once_and_asked_for_again";
    in_a_child(name, || {
        no_more_files(true);
        let answer = uring();
        no_more_files(false);
        if answer == Uring::Failed {
            load_without(TOO_MANY);
            assert_eq!(uring(), Uring::Available);
        }
    });
}

#[test]
fn a_container_that_forbids_io_uring_is_told_of_once() {
    in_a_child("ring::a_container_that_forbids_io_uring_is_told_of_once", || {
        if forbid(RING_CALLS, libc::EPERM) {
            assert_eq!(uring(), Uring::Forbidden);
            load_without(Uring::Forbidden.why_not());
        }
    });
}

#[test]
fn a_kernel_without_io_uring_is_told_of_once() {
    in_a_child("ring::a_kernel_without_io_uring_is_told_of_once", || {
        if forbid(RING_CALLS, libc::ENOSYS) {
            load_without(Uring::Absent.why_not());
        }
    });
}
