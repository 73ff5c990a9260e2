//! Links one crate into a program that has no standard library.
//!
//! The standard library brings a panic handler of its own. There can be only one,
//! so this does not compile if the subject, or anything below it, links `std`.
//! Nothing here ever runs.

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr;

use subject as _;

struct NoMemory;

// SAFETY: a null pointer is how `GlobalAlloc::alloc` says that it has no memory;
// so `dealloc` has nothing to free.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn dealloc(&self, _pointer: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}
