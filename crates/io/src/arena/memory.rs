//! The memory under an arena. All of its unsafe code is here.
//!
//! What the proofs rest on: [`Memory`] owns `len` bytes at `base` until it is dropped, no more than
//! `isize::MAX`, since the system or the allocator gave them in one piece; they are
//! initialized, since the system hands out zeros; and they are reached only by the `Memory` itself before
//! it is cut, and after that only by [`Block`]s, whose ranges lie inside and do not overlap.
#![expect(unsafe_code, reason = "memory with huge pages, cut into blocks that are owned apart")]

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Release;

/// Zeroed memory that begins on a multiple of an alignment.
pub(super) struct Memory {
    base: NonNull<u8>,
    len: usize,
    /// What the system was asked for: `base` is inside.
    mapping: system::Mapping,
    release: Release,
    /// Bytes that were given back before the end.
    returned: AtomicUsize,
}

/// Bytes of an arena, cut off from all others: nobody else has these.
pub struct Block {
    memory: Arc<Memory>,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: `Memory` owns plain bytes, and nothing in it is bound to a thread.
unsafe impl Send for Memory {}
// SAFETY: a shared `Memory` gives no access to its bytes; the counter is atomic.
unsafe impl Sync for Memory {}
// SAFETY: a `Block` owns plain bytes that nothing else reaches.
unsafe impl Send for Block {}
// SAFETY: a shared `Block` gives shared access to plain bytes and nothing else.
unsafe impl Sync for Block {}

impl Memory {
    /// `None` if the system has no such memory. `alignment` is a power of two.
    pub(super) fn new(len: usize, alignment: usize, release: Release) -> Option<Self> {
        let (mapping, base) = system::Mapping::new(len, alignment)?;
        Some(Self { base, len, mapping, release, returned: AtomicUsize::new(0) })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the module's header: `len` initialized bytes at `base` are ours, and no block is cut
        // yet, since `cut` takes `self`.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Says whether huge pages are wanted from `from` on. `false` if the system will not have it.
    pub(super) fn prefer_huge(&mut self, from: usize, huge: bool) -> bool {
        let rest = self.bytes_mut().get_mut(from..).unwrap_or_default();
        system::prefer_huge(rest, huge)
    }

    /// Cuts it into blocks. The spans must be in order, apart, and inside; others get nothing.
    pub(super) fn cut(self, spans: &[Range<usize>]) -> Vec<Block> {
        let memory = Arc::new(self);
        let mut end = 0;
        let mut block = |span: &Range<usize>| {
            let inside = end <= span.start && span.start <= span.end && span.end <= memory.len;
            debug_assert!(inside, "{span:?} after {end} of {}", memory.len);
            let span = if inside { span.clone() } else { end..end };
            end = span.end;
            // SAFETY: `span.start` is at most `len`, so this stays in the allocation or one past it.
            let base = unsafe { memory.base.add(span.start) };
            Block { memory: Arc::clone(&memory), base, len: span.end - span.start }
        };
        spans.iter().map(&mut block).collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.mapping.free();
        (self.release)(self.len.saturating_sub(*self.returned.get_mut()));
    }
}

impl Block {
    /// Shortens the block. The bytes after `len` stay taken.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `cut` made this block of initialized bytes inside the memory, apart from every other
        // block; the `Arc` keeps them; the borrow of `self` keeps off whoever would change them.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the unique borrow of `self` keeps off all others.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.len < super::LARGE {
            return;
        }
        let given = system::give_back(self);
        if given > 0 {
            self.memory.returned.fetch_add(given, Ordering::Relaxed);
            (self.memory.release)(given);
        }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(unix)]
mod system {
    use std::ffi::c_void;
    use std::ptr::NonNull;

    #[cfg(target_os = "linux")]
    use rustix::mm::{Advice, madvise};
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// Anonymous memory of the system.
    pub(super) struct Mapping {
        start: *mut c_void,
        len: usize,
    }

    impl Mapping {
        pub(super) fn new(len: usize, alignment: usize) -> Option<(Self, NonNull<u8>)> {
            let whole = len.max(1).checked_add(alignment)?;
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            // SAFETY: a new private mapping at an address of the system's choice touches no memory that
            // is in use (mmap(2)).
            let start =
                unsafe { mmap_anonymous(std::ptr::null_mut(), whole, protection, flags) }.ok()?;
            let skip = start.addr().next_multiple_of(alignment) - start.addr();
            // SAFETY: `skip` is less than `alignment`, so `len` bytes from there are inside `whole`.
            let base = unsafe { start.cast::<u8>().add(skip) };
            Some((Self { start, len: whole }, NonNull::new(base)?))
        }

        /// To be called once, at the end.
        pub(super) fn free(&mut self) {
            // SAFETY: the range is what `new` mapped; its owner is being dropped, after every block.
            let unmapped = unsafe { munmap(self.start, self.len) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn prefer_huge(bytes: &mut [u8], huge: bool) -> bool {
        let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: neither advice changes what the memory holds (madvise(2)).
        unsafe { madvise(bytes.as_mut_ptr().cast(), bytes.len(), advice) }.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn prefer_huge(_: &mut [u8], _: bool) -> bool {
        false
    }

    /// Gives back the whole pages of bytes that nobody will read again; how many bytes that were.
    #[cfg(target_os = "linux")]
    pub(super) fn give_back(bytes: &mut [u8]) -> usize {
        let page = rustix::param::page_size();
        let start = bytes.as_ptr().addr();
        let skip = start.next_multiple_of(page) - start;
        let whole = bytes.get_mut(skip..).unwrap_or_default();
        let len = whole.len() / page * page;
        // SAFETY: the range is inside `bytes`, whole pages of private anonymous memory: they read as zeros
        // from now on, initialized still (madvise(2), MADV_DONTNEED).
        match unsafe { madvise(whole.as_mut_ptr().cast(), len, Advice::LinuxDontNeed) } {
            Ok(()) => len,
            Err(_) => 0,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn give_back(_: &mut [u8]) -> usize {
        0
    }
}

#[cfg(not(unix))]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    /// Memory of the global allocator.
    pub(super) struct Mapping {
        start: NonNull<u8>,
        layout: Layout,
    }

    impl Mapping {
        pub(super) fn new(len: usize, alignment: usize) -> Option<(Self, NonNull<u8>)> {
            let layout = Layout::from_size_align(len.max(1), alignment).ok()?;
            // SAFETY: the layout's size is not zero.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            Some((Self { start, layout }, start))
        }

        /// To be called once, at the end.
        pub(super) fn free(&mut self) {
            // SAFETY: `new` got this memory from the same allocator with the same layout; its owner is
            // being dropped, after every block.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }

    pub(super) fn prefer_huge(_: &mut [u8], _: bool) -> bool {
        false
    }

    pub(super) fn give_back(_: &mut [u8]) -> usize {
        0
    }
}
