//! Does one thing that a sanitizer must report, or must not.
//!
//! The first argument says which. What is named after a fault commits it on
//! purpose; `sound` does much that looks like a race where the standard library
//! was built without the sanitizer, and is none.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::{env, mem, thread};

fn main() {
    match env::args().nth(1).as_deref() {
        Some("sound") => sound(),
        Some("past-the-end") => past_the_end(),
        Some("freed") => freed(),
        Some("leak") => leak(),
        Some("race") => race(),
        other => panic!("no deed {other:?}"),
    }
    println!("done");
}

/// Hands memory from thread to thread by each means that the standard library has.
fn sound() {
    static FIRST: OnceLock<Vec<u8>> = OnceLock::new();
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let threads = 4;
    for number in 0..threads {
        let (sender, shared) = (sender.clone(), Arc::clone(&shared));
        // Not joined: the channel and the reference count are all that orders them.
        thread::spawn(move || {
            let first = FIRST.get_or_init(|| vec![number; 64]);
            shared.0.lock().unwrap().push(first[0]);
            shared.1.notify_all();
            sender.send(vec![number; 64]).unwrap();
        });
    }
    let all = |pushed: &mut Vec<u8>| pushed.len() < usize::from(threads);
    drop(shared.1.wait_while(shared.0.lock().unwrap(), all).unwrap());
    for _ in 0..threads {
        let sent = receiver.recv().unwrap();
        assert!(sent.iter().all(|byte| *byte == sent[0]));
    }
    let mut borrowed = vec![0; 64];
    thread::scope(|scope| {
        for part in borrowed.chunks_mut(16) {
            scope.spawn(|| part.fill(1));
        }
    });
    assert_eq!(borrowed.iter().sum::<i32>(), 64);
}

/// Reads the byte behind an allocation.
fn past_the_end() {
    let bytes = black_box(vec![0_u8; 16]);
    // SAFETY: none; it must be reported.
    unsafe { black_box(bytes.as_ptr().add(bytes.len()).read_volatile()) };
}

/// Reads an allocation that is no more.
fn freed() {
    let bytes = black_box(vec![0_u8; 16]);
    let pointer = bytes.as_ptr();
    drop(bytes);
    // SAFETY: none; it must be reported.
    unsafe { black_box(pointer.read_volatile()) };
}

/// Forgets memory.
fn leak() {
    // On a thread that ends, so that no register or stack keeps the address.
    thread::spawn(|| mem::forget(black_box(vec![0_u8; 4096]))).join().unwrap();
}

/// Writes from two threads that nothing orders.
fn race() {
    struct Cell(UnsafeCell<u64>);
    // SAFETY: none; it must be reported.
    unsafe impl Sync for Cell {}

    static CELL: Cell = Cell(UnsafeCell::new(0));
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let threads = 2;
    thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || {
                // Starting a thread and ending one take a lock, so one that ended before
                // the other began would be ordered. A relaxed counter orders nothing.
                STARTED.fetch_add(1, Ordering::Relaxed);
                while STARTED.load(Ordering::Relaxed) < threads {
                    thread::yield_now();
                }
                for _ in 0..1000 {
                    // SAFETY: none; it must be reported.
                    unsafe { CELL.0.get().write_volatile(number) };
                }
            });
        }
    });
}
