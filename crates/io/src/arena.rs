//! One allocation for a whole load, and the blocks that it is cut into.
//!
//! Fresh memory costs one page fault for every 4 KiB, which is most of the time of a load from the page
//! cache. An arena asks for memory that begins on 2 MiB and for huge pages under it, so that there are
//! 512 times fewer. Where the system has none to give, or is slow to make them, it goes on with small ones.
//!
//! A [`Block`] owns its bytes alone. When a large one is dropped, its pages go back to the system at once,
//! though other blocks of the arena live on.

mod memory;

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

pub use memory::Block;
use memory::Memory;

/// Every block begins on a multiple of this many bytes.
pub const ALIGNMENT: usize = 64;

/// A page of memory that cannot be told to be otherwise.
pub(crate) const PAGE: usize = 4096;

/// A huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Blocks of this size begin on a page, so that their pages can be given back.
const LARGE: usize = 16 * PAGE;

/// What is told of memory that is given back: how many bytes.
pub type Release = Box<dyn Fn(usize) + Send + Sync>;

/// There is not that much memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OutOfMemory {
    /// Bytes that were wanted.
    pub wanted: u64,
}

/// What pages a load got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pages {
    /// Huge pages were asked for, and came at a good rate.
    Huge,
    /// Huge pages were not asked for, or the memory is smaller than one.
    Small,
    /// The system has no huge pages.
    NoHuge,
    /// Making huge pages was slower than making small ones: the rest is small ones.
    SlowHuge,
}

/// Cuts one allocation into a block for each size, in order. All bytes are zero.
///
/// # Errors
///
/// [`OutOfMemory`] if the system gives no memory of that size.
pub fn allocate(sizes: &[u64], huge_pages: bool) -> Result<(Vec<Block>, Pages), OutOfMemory> {
    allocate_with(sizes, huge_pages, Box::new(|_| ()))
}

/// The same, telling `release` of the bytes as they are given back: in all, the
/// [`allocation_bytes`] of the sizes. If nothing is allocated, nothing is told.
///
/// # Errors
///
/// As [`allocate`].
pub fn allocate_with(
    sizes: &[u64],
    huge_pages: bool,
    release: Release,
) -> Result<(Vec<Block>, Pages), OutOfMemory> {
    let wanted = sizes.iter().copied().fold(0, u64::saturating_add);
    let (spans, total) = places(sizes).ok_or(OutOfMemory { wanted })?;
    let alignment = if total < HUGE_PAGE { PAGE } else { HUGE_PAGE };
    let mut memory = Memory::new(total, alignment, release).ok_or(OutOfMemory { wanted })?;
    let pages = if huge_pages && total >= HUGE_PAGE {
        ask_for_huge_pages(&mut memory)
    } else {
        Pages::Small
    };
    Ok((memory.cut(&spans), pages))
}

/// Bytes that an arena for these sizes takes; `None` if there are no such addresses.
#[must_use]
pub fn allocation_bytes(sizes: &[u64]) -> Option<u64> {
    places(sizes).and_then(|(_, total)| u64::try_from(total).ok())
}

/// The most bytes of an allocation that a block of this size adds, with what it takes to align it.
#[must_use]
pub fn most_bytes(size: u64) -> u64 {
    let page = u64::try_from(PAGE).unwrap_or(u64::MAX);
    let large = u64::try_from(LARGE).unwrap_or(u64::MAX);
    let alignment = u64::try_from(ALIGNMENT).unwrap_or(u64::MAX);
    if size < large {
        size.checked_next_multiple_of(alignment).unwrap_or(u64::MAX)
    } else {
        size.checked_next_multiple_of(page).unwrap_or(u64::MAX).saturating_add(page)
    }
}

/// Where blocks of these sizes lie, and the bytes of all.
fn places(sizes: &[u64]) -> Option<(Vec<Range<usize>>, usize)> {
    let mut end = 0_usize;
    let mut spans = Vec::with_capacity(sizes.len());
    for size in sizes {
        let size = usize::try_from(*size).ok()?;
        let start = end.checked_next_multiple_of(if size < LARGE { ALIGNMENT } else { PAGE })?;
        end = start.checked_add(size)?;
        spans.push(start..end);
    }
    // What no allocation can have.
    isize::try_from(end).ok()?;
    Some((spans, end))
}

/// Huge pages that are made to see how fast that is: 8 MiB.
const TRIED: usize = 4;

/// Making four huge pages takes about 1 ms; it is worth a look at the alternative from here on.
const SLOW: Duration = Duration::from_millis(20);

/// Asks for huge pages, sees how fast the first are made, and asks for small ones if those are faster.
///
/// Nobody can tell beforehand. A machine whose memory is in small pieces has to move pages about for each
/// huge one, and small ones are then made sooner; a virtual machine that has handed its free memory back to
/// its host is as slow with either. What is touched here would be touched by the load in any case.
fn ask_for_huge_pages(memory: &mut Memory) -> Pages {
    let tries = [0, 1, 2, 3].map(|number| number * TRIED * HUGE_PAGE);
    if !memory.prefer_huge(0, true) {
        return Pages::NoHuge;
    }
    let [start, second, third, end] = tries;
    if memory.len() < end {
        return Pages::Huge;
    }
    let mut huge = touch(memory, start..second);
    if huge < SLOW {
        return Pages::Huge;
    }
    memory.prefer_huge(second, false);
    let small = touch(memory, second..third);
    if small.saturating_mul(2) < huge {
        // It may have been something else that took long: small pages have to win twice.
        memory.prefer_huge(third, true);
        huge = touch(memory, third..end);
        memory.prefer_huge(end, false);
        if small.saturating_mul(2) < huge {
            return Pages::SlowHuge;
        }
    }
    memory.prefer_huge(third, true);
    Pages::Huge
}

/// Makes the pages of a range, and says how long that took.
fn touch(memory: &mut Memory, range: Range<usize>) -> Duration {
    let began = Instant::now();
    let bytes = memory.bytes_mut().get_mut(range).unwrap_or_default();
    for byte in bytes.iter_mut().step_by(PAGE) {
        *std::hint::black_box(byte) = 0;
    }
    began.elapsed()
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no memory for {} bytes", self.wanted)
    }
}

impl std::error::Error for OutOfMemory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_apart_and_zero() {
        let sizes = [1, 0, 65, 65_535, 65_536, 3 << 20, 7];
        for huge_pages in [false, true] {
            let (mut blocks, _) = allocate(&sizes, huge_pages).unwrap();
            for (number, block) in blocks.iter_mut().enumerate() {
                assert_eq!(block.len() as u64, sizes[number]);
                assert_eq!(block.as_ptr().addr() % ALIGNMENT, 0);
                assert!(block.len() < LARGE || block.as_ptr().addr().is_multiple_of(PAGE));
                assert!(block.iter().all(|byte| *byte == 0));
                block.fill(u8::try_from(number).unwrap() + 1);
            }
            for (number, block) in blocks.iter().enumerate() {
                assert!(block.iter().all(|byte| usize::from(*byte) == number + 1));
            }
        }
    }

    #[test]
    fn a_large_block_gives_its_pages_back_and_no_others() {
        let (mut blocks, _) = allocate(&[100, 5 << 20, 100, 6 << 20, 70_001, 100], true).unwrap();
        for block in &mut blocks {
            block.fill(7);
        }
        let dropped = [4, 1].map(|number| blocks.remove(number).len());
        assert_eq!(dropped, [70_001, 5 << 20]);
        assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == 7)));
    }

    #[test]
    fn all_that_was_taken_is_told_of_when_it_is_given_back() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};
        let returned = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&returned);
        let release = Box::new(move |bytes| {
            count.fetch_add(bytes, Ordering::Relaxed);
        });
        let sizes = [100, 1 << 20, 70_001];
        let (mut blocks, _) = allocate_with(&sizes, false, release).unwrap();
        drop(blocks.remove(1));
        let early = returned.load(Ordering::Relaxed);
        assert!(!cfg!(target_os = "linux") || early == 1 << 20, "{early}");
        drop(blocks);
        let all = usize::try_from(allocation_bytes(&sizes).unwrap()).unwrap();
        assert_eq!(returned.load(Ordering::Relaxed), all);
    }

    #[test]
    fn what_no_memory_can_hold_is_an_error() {
        for sizes in [vec![u64::MAX], vec![u64::MAX, u64::MAX], vec![1 << 62], vec![1 << 50]] {
            assert!(allocate(&sizes, true).is_err(), "{sizes:?}");
        }
        assert!(allocate(&[], true).unwrap().0.is_empty());
        assert!(allocate(&[0, 0], true).unwrap().0.iter().all(|block| block.is_empty()));
    }

    #[test]
    fn a_shortened_block_keeps_its_first_bytes() {
        let (mut blocks, _) = allocate(&[10], false).unwrap();
        blocks[0].copy_from_slice(b"0123456789");
        blocks[0].truncate(4);
        blocks[0].truncate(20);
        assert_eq!(*blocks[0], *b"0123");
    }
}
