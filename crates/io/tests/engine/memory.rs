//! Memory that is given back while neighbours live on, and systems that have none to give.

use weigh_io::policy::{Backend, Direct};
use weigh_io::{Cut, ReadError, Unit, arena};

use crate::child::{in_a_child, limit_addresses, memory_use};
use crate::faulty::{Fault, Faulty, Pace};
use crate::load::{Wanted, choice, content, load};
use crate::sanitizer;
use crate::seccomp::forbid;

const MIB: u64 = 1 << 20;

#[test]
fn a_large_block_that_is_dropped_leaves_the_process_and_its_neighbours_stay() {
    if sanitizer::is_there() {
        return;
    }
    let name = "memory::a_large_block_that_is_dropped_leaves_the_process_and_its_neighbours_stay";
    in_a_child(name, || {
        for huge_pages in [false, true] {
            // The middle one begins and ends on no huge page, and the last byte is on a page of its own.
            let sizes = [20 * MIB + 100, 64 * MIB + 1, 30 * MIB];
            let (_, before) = memory_use();
            let (mut blocks, _) = arena::allocate(&sizes, huge_pages).unwrap();
            for (block, byte) in blocks.iter_mut().zip(1..) {
                block.fill(byte);
            }
            let (_, full) = memory_use();
            assert!(full - before >= 114 * MIB, "{before} {full}");
            drop(blocks.remove(1));
            let (_, after) = memory_use();
            assert!(full - after >= 63 * MIB, "{full} {after}");
            assert!(blocks[0].iter().all(|byte| *byte == 1));
            assert!(blocks[1].iter().all(|byte| *byte == 3));
            drop(blocks);
            let (_, end) = memory_use();
            assert!(end <= before + 2 * MIB, "{before} {end}");
        }
    });
}

#[test]
fn an_arena_that_there_is_no_memory_for_is_an_error() {
    if sanitizer::is_there() {
        return;
    }
    in_a_child("memory::an_arena_that_there_is_no_memory_for_is_an_error", || {
        limit_addresses(64 * MIB);
        for huge_pages in [false, true] {
            let error = arena::allocate(&[100 * MIB, 156 * MIB], huge_pages).unwrap_err();
            assert_eq!(error.wanted, 256 * MIB);
            // What is there can still be had.
            let (blocks, _) = arena::allocate(&[32 * MIB], huge_pages).unwrap();
            assert_eq!(blocks[0].len() as u64, 32 * MIB);
        }
    });
}

#[test]
fn a_load_that_there_is_no_scratch_memory_for_is_an_error() {
    if sanitizer::is_there() {
        return;
    }
    in_a_child("memory::a_load_that_there_is_no_scratch_memory_for_is_an_error", || {
        let source = Faulty::new("large", &content(0), Fault::Never, Pace::All);
        let unit = Unit { from: 1 << 28, to: 1 };
        let wanted = Wanted::nothing().part(0, 0, 0, &[], unit);
        let mut parts = wanted.parts;
        parts[0].runs = weigh_io::Runs::span(0..1 << 28);
        let cut = Cut { request_bytes: 4096, scratch_bytes: 4096, gap_bytes: 0 };
        let plan = weigh_io::Plan::new(parts, &cut).unwrap();
        limit_addresses(64 * MIB);
        let loaded = load(&[&source], &plan, &choice(Backend::Pread, Direct::Never, 1, 1));
        let Err(ReadError::OutOfMemory(error)) = loaded.result else {
            panic!("{:?}", loaded.result);
        };
        assert_eq!(error.wanted, 1 << 28);
    });
}

#[test]
fn a_load_that_gets_no_threads_is_done_by_the_one_there_is() {
    in_a_child("memory::a_load_that_gets_no_threads_is_done_by_the_one_there_is", || {
        let bytes = content(200_000);
        let source = Faulty::sound(&bytes);
        let wanted = Wanted::nothing().span(0..200_000);
        let cut = Cut { request_bytes: 8192, scratch_bytes: 8192, gap_bytes: 0 };
        if forbid([libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN) {
            let choice = choice(Backend::Pread, Direct::Never, 8, 1);
            let loaded = load(&[&source], &wanted.plan(&cut), &choice);
            assert_eq!(loaded.result.unwrap().threads, 1);
            assert!(loaded.parts == wanted.from(&[&bytes]));
        }
    });
}
