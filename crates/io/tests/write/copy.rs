//! Bytes of other files.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use weigh_io::{Cancel, FileSource, NewFile, ReadError, Source};

use crate::folder::{Folder, KEEP, REPLACE};

const LENGTH: usize = 300_000;

fn content() -> Vec<u8> {
    (0..LENGTH / 4).flat_map(|number| u32::try_from(number).unwrap().to_le_bytes()).collect()
}

fn source(folder: &Folder) -> FileSource {
    fs::write(folder.join("from"), content()).unwrap();
    FileSource::open(folder.join("from")).unwrap()
}

/// Copies all kinds of spans, and checks every byte.
fn spans_are_copied(source: &FileSource, folder: &Folder) {
    let content = content();
    for span in [0..0, 0..1, 0..4096, 1..4096, 4095..4097, 5000..LENGTH - 1, 0..LENGTH] {
        for offset in [0, 1, 4096, 4097, 5000, 8192] {
            let file = NewFile::create(folder.join("to"), &REPLACE).unwrap();
            file.reserve((offset + span.len()) as u64).unwrap();
            let told = AtomicU64::new(0);
            let tell = |bytes| {
                told.fetch_add(bytes, Ordering::Relaxed);
            };
            let before = source.bytes_read();
            let bytes = span.start as u64..span.end as u64;
            file.copy_at(source, bytes, offset as u64, None, &tell).unwrap();
            file.commit().unwrap();
            let copied = fs::read(folder.join("to")).unwrap();
            assert!(copied[..offset].iter().all(|byte| *byte == 0), "{span:?} {offset}");
            assert!(copied[offset..] == content[span.clone()], "{span:?} {offset}");
            assert_eq!(told.into_inner(), span.len() as u64);
            assert_eq!(source.bytes_read() - before, span.len() as u64);
        }
    }
    source.verify().unwrap();
}

#[test]
fn spans_are_copied_to_any_offset() {
    let folder = Folder::new();
    spans_are_copied(&source(&folder), &folder);
}

#[cfg(target_os = "linux")]
#[test]
fn spans_are_copied_between_file_systems() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no /dev/shm");
        return;
    };
    let folder = Folder::new();
    fs::write(memory.path().join("from"), content()).unwrap();
    spans_are_copied(&FileSource::open(memory.path().join("from")).unwrap(), &folder);
}

#[cfg(target_os = "linux")]
#[test]
fn spans_are_copied_where_the_kernel_does_not() {
    for (name, error) in [
        ("EXDEV", libc::EXDEV),
        ("EINVAL", libc::EINVAL),
        ("ENOSYS", libc::ENOSYS),
        ("EPERM", libc::EPERM),
    ] {
        crate::child::in_a_child("copy::spans_are_copied_where_the_kernel_does_not", || {
            let folder = Folder::new();
            let source = source(&folder);
            if crate::seccomp::forbid([libc::SYS_copy_file_range, libc::SYS_sendfile], error) {
                spans_are_copied(&source, &folder);
            } else {
                eprintln!("skipped: {name}: there are no filters for system calls");
            }
        });
    }
}

#[test]
fn several_threads_copy_into_one_file() {
    let folder = Folder::new();
    let (source, content) = (source(&folder), content());
    let file = NewFile::create(folder.join("to"), &KEEP).unwrap();
    file.reserve(LENGTH as u64).unwrap();
    thread::scope(|scope| {
        for part in 0..4 {
            let (file, source) = (&file, &source);
            let quarter = LENGTH as u64 / 4;
            let span = part * quarter..(part + 1) * quarter;
            scope.spawn(move || {
                file.copy_at(source, span.clone(), span.start, None, &|_| {}).unwrap();
            });
        }
    });
    file.commit().unwrap();
    assert!(fs::read(folder.join("to")).unwrap() == content);
}

#[test]
fn a_source_that_ends_before_the_span_is_an_error() {
    let folder = Folder::new();
    let source = source(&folder);
    for (span, offset) in [(1..LENGTH as u64 + 1, 0), (LENGTH as u64..LENGTH as u64 + 1, 5)] {
        let file = NewFile::create(folder.join("to"), &KEEP).unwrap();
        match file.copy_at(&source, span, offset, None, &|_| {}).unwrap_err() {
            ReadError::File(error) => {
                assert_eq!((error.code(), error.path()), ("io-short", source.path()));
            }
            error => panic!("{error}"),
        }
    }
    assert_eq!(folder.names(), ["from"]);
}

#[test]
fn a_copy_that_is_cancelled_ends() {
    let folder = Folder::new();
    let source = source(&folder);
    let file = NewFile::create(folder.join("to"), &KEEP).unwrap();
    let cancel = Cancel::new();
    let told = Mutex::new(0);
    // The first block, which is not a whole one, is a piece of its own.
    let tell = |bytes| {
        *told.lock().unwrap() += bytes;
        cancel.cancel();
    };
    let result = file.copy_at(&source, 96..LENGTH as u64, 96, Some(&cancel), &tell);
    assert!(matches!(result, Err(ReadError::Cancelled)), "{result:?}");
    assert_eq!(*told.lock().unwrap(), 4000);
}
