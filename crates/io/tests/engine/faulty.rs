//! A source in memory that fails where it is told to.

use std::io::{Error as SystemError, ErrorKind as SystemKind, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use weigh_io::{Change, Error, ErrorKind, Source};

/// A source, what is wrong with it, and what it has been asked.
#[derive(Debug)]
pub(crate) struct Faulty {
    path: PathBuf,
    bytes: Arc<[u8]>,
    fault: Fault,
    pace: Pace,
    /// Which look at its identity finds another, counted from one.
    pub(crate) changes_at: Option<usize>,
    pub(crate) verified: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    interrupted: AtomicUsize,
    random: AtomicU64,
}

/// What happens at an offset. Reads that begin before it end there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Never,
    /// The source ends.
    Ends(u64),
    /// Every read fails.
    Fails(u64, SystemKind),
    /// So many reads are interrupted, and the next goes on.
    Interrupts(u64, usize),
}

/// How many of the bytes that are asked for are given by one read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    All,
    One,
    Random,
    /// All, after a while.
    Slow(Duration),
    /// So many more than were asked for are claimed.
    TooMany(usize),
}

impl Faulty {
    pub(crate) fn new(path: &str, bytes: &Arc<[u8]>, fault: Fault, pace: Pace) -> Self {
        Self {
            path: path.into(),
            bytes: Arc::clone(bytes),
            fault,
            pace,
            changes_at: None,
            verified: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            interrupted: AtomicUsize::new(0),
            random: AtomicU64::new(1),
        }
    }

    pub(crate) fn sound(bytes: &Arc<[u8]>) -> Self {
        Self::new("sound", bytes, Fault::Never, Pace::All)
    }

    /// Where reads from `offset` on have to end, or what happens to them.
    fn end(&self, offset: u64) -> std::io::Result<u64> {
        let all = self.bytes.len() as u64;
        match self.fault {
            Fault::Fails(at, kind) if offset >= at => Err(kind.into()),
            Fault::Interrupts(at, times) if offset >= at => {
                let before = self.interrupted.fetch_add(1, Ordering::Relaxed);
                if before < times { Err(SystemKind::Interrupted.into()) } else { Ok(all) }
            }
            Fault::Ends(at) | Fault::Fails(at, _) | Fault::Interrupts(at, _) => Ok(at.min(all)),
            Fault::Never => Ok(all),
        }
    }

    /// A number below `most`, or zero.
    fn random(&self, most: usize) -> usize {
        let step = |it: u64| Some(it.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let last = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        usize::try_from(last.unwrap() >> 33).unwrap() % most.max(1)
    }
}

impl Source for Faulty {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize, SystemError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let end = self.end(offset)?;
        let asked: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        assert!(asked > 0 && buffers.len() <= 1024, "{asked} bytes in {} buffers", buffers.len());
        let there = usize::try_from(end.saturating_sub(offset)).unwrap().min(asked);
        let given = match self.pace {
            Pace::One => there.min(1),
            Pace::Random if there > 0 => 1 + self.random(there),
            Pace::Slow(while_) => {
                std::thread::sleep(while_);
                there
            }
            Pace::All | Pace::Random | Pace::TooMany(_) => there,
        };
        let start = usize::try_from(offset).unwrap().min(self.bytes.len());
        let mut rest = &self.bytes[start..start + given];
        for buffer in buffers {
            let (now, later) = rest.split_at(rest.len().min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
        }
        Ok(if let Pace::TooMany(more) = self.pace { asked + more } else { given })
    }

    fn verify(&self) -> Result<(), Error> {
        let look = 1 + self.verified.fetch_add(1, Ordering::Relaxed);
        if self.changes_at.is_some_and(|at| look >= at) {
            return Err(Error::new(&self.path, ErrorKind::Changed(Change::Written)));
        }
        Ok(())
    }
}
