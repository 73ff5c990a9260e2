//! Reads through `io_uring(7)`: one thread keeps many requests under way.
//!
//! Each worker has a ring of its own. Containers often forbid the system call, so what cannot be had is
//! found out before the first request is taken from the queue, and others do the work.
//!
//! The kernel writes to the memory of a request until it says that the request has ended. [`Ring`] keeps
//! both the borrow of that memory and its address for that long, whatever happens in between.
#![expect(unsafe_code, reason = "the kernel is given addresses")]

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::pread::{self, Scratches, aligned, finish, may_do_otherwise};
use super::scratch::Scratch;
use super::{Bound, Hook, Job, Queue, ReadError, Took, length, scratch_each, usize_of};
use crate::policy;
use crate::source::{MOST_BUFFERS, fill, to_u64};
use crate::system::Uring;
use crate::{Error, ErrorKind, Source};

/// Why a worker stopped.
pub(super) enum Stopped {
    /// There is no ring to be had; no request was taken.
    Unavailable(String),
    Failed(ReadError),
}

impl<E: Into<ReadError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Carries out requests until there are no more.
pub(super) fn work(job: &Job<'_>, queue: &Queue<'_>, direct: bool) -> Result<(), Stopped> {
    let available = job.uring();
    if available != Uring::Available {
        return Err(Stopped::Unavailable(available.why_not().into()));
    }
    let choice = job.reading().choice;
    let room = scratch_each(choice.request_bytes) / choice.threads.max(1);
    let room = if direct { room } else { usize::MAX };
    let depth = choice.depth.min(room).clamp(1, usize_of(policy::MOST_DEPTH));
    let mut ring = Ring::new(depth).map_err(|error| Stopped::Unavailable(error.to_string()))?;
    let mut scratches = Scratches::default();
    loop {
        while ring.has_room() {
            let Some(request) = job.next(queue) else { break };
            let source = job.source(request.file)?;
            let past_cache = if direct { source.direct() } else { None };
            if let Some(file) = past_cache.or(source.file()) {
                ring.begin(request, source, file, past_cache.is_some())?;
            } else {
                job.finished(&pread::one(job, request, direct, &mut scratches)?);
            }
        }
        if ring.is_idle() {
            return Ok(());
        }
        for (slot, result) in ring.wait()? {
            let (took, scratch) = slot.end(result, job.reading().hook, &mut scratches.dense)?;
            ring.spare.push(scratch);
            job.finished(&took);
        }
    }
}

/// A ring, and the requests that the kernel works at.
struct Ring<'d> {
    kernel: IoUring,
    /// By the number that the kernel gives back.
    slots: Vec<Option<Slot<'d>>>,
    /// Scratch memory that no request uses.
    spare: Vec<Scratch>,
    under_way: usize,
}

/// A request that was given to the kernel, with the memory that it fills.
struct Slot<'d> {
    request: Bound<'d>,
    source: &'d dyn Source,
    /// What is read: the request's span, or the blocks around it.
    span: Range<u64>,
    target: Target,
    direct: bool,
}

/// Where the kernel puts the bytes.
enum Target {
    /// Where they belong. The addresses are those of the request's pieces and of the scratch for gaps.
    Places(Vec<libc::iovec>, Scratch),
    /// Into scratch memory.
    Scratch(Scratch),
}

impl<'d> Ring<'d> {
    fn new(depth: usize) -> std::io::Result<Self> {
        let entries = u32::try_from(depth).unwrap_or(u32::MAX);
        let slots = (0..depth).map(|_| None).collect();
        Ok(Self { kernel: IoUring::new(entries)?, slots, spare: Vec::new(), under_way: 0 })
    }

    fn has_room(&self) -> bool {
        self.under_way < self.slots.len()
    }

    fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Gives a request to the kernel. There must be room. `file` is one of those of `source`.
    fn begin(
        &mut self,
        mut request: Bound<'d>,
        source: &'d dyn Source,
        file: &'d File,
        direct: bool,
    ) -> Result<(), ReadError> {
        // Not to be: there is room, and there are as many entries as slots.
        let full = || {
            let error = std::io::Error::other("the ring is full");
            ReadError::File(Error::system(source.path(), error))
        };
        let number = self.slots.iter().position(Option::is_none).ok_or_else(full)?;
        let slot = self.slots.get_mut(number).ok_or_else(full)?;
        let mut scratch = self.spare.pop().unwrap_or_default();
        let span = if direct { aligned(&request.span) } else { request.span.clone() };
        let straight = !direct && request.straight && request.pieces.len() < MOST_BUFFERS / 2;
        let target = if straight {
            let gaps = request.gaps();
            let unwanted = if gaps > 0 { scratch.get(gaps)? } else { &mut [] };
            let address = |place: &mut IoSliceMut<'_>| libc::iovec {
                iov_base: place.as_mut_ptr().cast(),
                iov_len: place.len(),
            };
            let places = request.places(unwanted).iter_mut().map(address).collect();
            Target::Places(places, scratch)
        } else {
            scratch.get(length(&span))?;
            Target::Scratch(scratch)
        };
        let slot = slot.insert(Slot { request, source, span, target, direct });
        let entry = slot.entry(file)?.user_data(to_u64(number));
        // SAFETY: the entry's addresses are of memory that the slot owns or borrows for `'d`. The slot stays
        // where it is in `slots`, untouched, until `wait` has seen the kernel's word that it is done with
        // it; `drop` waits for that, too. The descriptor is that of `file`, borrowed and so open for `'d`.
        let pushed = unsafe { self.kernel.submission().push(&entry) };
        if pushed.is_err() {
            self.slots.get_mut(number).and_then(Option::take);
            return Err(full());
        }
        self.under_way += 1;
        Ok(())
    }

    /// Waits until requests have ended, one at least, and takes them out with what the kernel says.
    fn wait(&mut self) -> Result<Vec<(Slot<'d>, i32)>, ReadError> {
        self.submit_and_wait()?;
        let mut ended = Vec::new();
        for entry in self.kernel.completion() {
            let slot = self.slots.get_mut(usize_of(entry.user_data())).and_then(Option::take);
            self.under_way = self.under_way.saturating_sub(1);
            ended.extend(slot.map(|slot| (slot, entry.result())));
        }
        Ok(ended)
    }

    fn submit_and_wait(&mut self) -> Result<(), Error> {
        loop {
            match self.kernel.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                // What has ended already may be what the kernel wants to be rid of first.
                Err(error) if is_passing(&error) => {
                    if !self.kernel.completion().is_empty() {
                        return Ok(());
                    }
                    std::thread::yield_now();
                }
                Err(error) => return Err(Error::system("io_uring".as_ref(), error)),
            }
        }
    }
}

/// Whether the same call will do later.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.wait().is_err() {
                // The kernel may still write to memory that others are about to have.
                std::process::abort();
            }
        }
    }
}

impl Slot<'_> {
    fn entry(&mut self, file: &File) -> Result<io_uring::squeue::Entry, ReadError> {
        let descriptor = types::Fd(file.as_raw_fd());
        let offset = self.span.start;
        Ok(match &mut self.target {
            Target::Places(places, _) => {
                let count = u32::try_from(places.len()).unwrap_or_default();
                opcode::Readv::new(descriptor, places.as_ptr(), count).offset(offset).build()
            }
            Target::Scratch(scratch) => {
                let buffer = scratch.get(length(&self.span))?;
                let count = u32::try_from(buffer.len()).unwrap_or_default();
                opcode::Read::new(descriptor, buffer.as_mut_ptr(), count).offset(offset).build()
            }
        })
    }

    /// Completes a request that the kernel is done with; gives back the scratch memory that it had.
    fn end(
        mut self,
        result: i32,
        hook: Option<&dyn Hook>,
        dense: &mut Scratch,
    ) -> Result<(Took, Scratch), ReadError> {
        let filled = self.filled(result)?;
        self.source.count(to_u64(filled));
        let span = to_u64(self.request.bytes());
        let mut took =
            Took { span, read: span, direct: self.direct && filled > 0, ring: filled > 0 };
        let (source, request) = (self.source, &mut self.request);
        match self.target {
            Target::Places(_, mut scratch) => {
                if filled < request.bytes() {
                    let unwanted = scratch.get(request.gaps())?;
                    let mut places = request.places(unwanted);
                    let mut rest = places.as_mut_slice();
                    IoSliceMut::advance_slices(&mut rest, filled);
                    fill(source, rest, self.span.start + to_u64(filled))?;
                }
                Ok((took, scratch))
            }
            Target::Scratch(mut scratch) => {
                let buffer = scratch.get(length(&self.span))?;
                took.read = finish(source, buffer, self.span.start, filled, request.span.end)?;
                let skip = usize_of(request.span.start - self.span.start);
                let bytes = buffer.get(skip..).unwrap_or_default();
                request.hand_out(bytes, hook, dense)?;
                Ok((took, scratch))
            }
        }
    }

    /// How many bytes the kernel has read: none where another try by other means may do.
    fn filled(&self, result: i32) -> Result<usize, Error> {
        if let Ok(filled) = usize::try_from(result) {
            return Ok(filled.min(length(&self.span)));
        }
        let error = std::io::Error::from_raw_os_error(result.saturating_neg());
        if may_do_otherwise(&error) {
            return Ok(0);
        }
        let (offset, wanted, got) = (self.span.start, to_u64(length(&self.span)), 0);
        let kind = ErrorKind::Failed { offset, wanted, got, error };
        Err(Error::new(self.source.path(), kind))
    }
}
