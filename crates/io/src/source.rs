//! Where bytes come from.

use std::fmt::Debug;
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::path::Path;

use crate::policy::Choice;
use crate::system::cores;
use crate::{Error, ErrorKind, FileSource, Part, Plan, ReadError, Reading, Runs, Unit};

/// Bytes that are read at offsets, from several threads at once.
pub trait Source: Debug + Send + Sync {
    /// What it is called.
    fn path(&self) -> &Path;

    /// Reads some bytes at `offset` into the buffers, in order, as `preadv(2)` does: as many as it likes,
    /// but one at least unless the source ends there.
    ///
    /// # Errors
    ///
    /// What the system reports. [`Interrupted`](std::io::ErrorKind::Interrupted) is tried again, as often
    /// as it comes.
    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize>;

    /// Checks that it is still what it was when it was opened.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Changed`] if it is not.
    fn verify(&self) -> Result<(), Error>;

    /// Counts bytes that were read from its [`direct`](Self::direct) file, or by other means.
    fn count(&self, _bytes: u64) {}

    /// The source as a file on disk, if it is one.
    fn plain_file(&self) -> Option<&FileSource> {
        None
    }

    /// The file, for what needs a descriptor of one.
    fn file(&self) -> Option<&File> {
        None
    }

    /// The same file, read past the page cache, where the system can do that.
    fn direct(&self) -> Option<&File> {
        None
    }
}

/// Fills the buffers, in order, with the bytes at `offset`.
///
/// # Errors
///
/// [`ErrorKind::Short`] if the source ends before that, [`ErrorKind::Failed`] if the system reports an
/// error.
pub(crate) fn fill(
    source: &dyn Source,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> Result<(), Error> {
    fill_while(source, buffers, offset, || true).map(|_| ())
}

/// The same as long as it is to go on, which is asked before each read: says whether the buffers are filled. Of some
/// sources each read is a wait.
///
/// # Errors
///
/// Those of [`fill`].
pub(crate) fn fill_while(
    source: &dyn Source,
    mut buffers: &mut [IoSliceMut<'_>],
    offset: u64,
    goes_on: impl Fn() -> bool,
) -> Result<bool, Error> {
    let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut filled = 0;
    while filled < wanted {
        if !goes_on() {
            return Ok(false);
        }
        let some = buffers.len().min(MOST_BUFFERS);
        let some = buffers.get_mut(..some).unwrap_or_default();
        let asked: usize = some.iter().map(|buffer| buffer.len()).sum();
        let result = source.read_some(some, offset.saturating_add(to_u64(filled)));
        let (wanted, got) = (to_u64(wanted), to_u64(filled));
        match result {
            Ok(0) => {
                return Err(Error::new(source.path(), ErrorKind::Short { offset, wanted, got }));
            }
            Ok(count) if count <= asked => {
                filled += count;
                IoSliceMut::advance_slices(&mut buffers, count);
            }
            Ok(_) => {
                let error =
                    std::io::Error::other("more bytes are said to be read than were asked for");
                let kind = ErrorKind::Failed { offset, wanted, got, error };
                return Err(Error::new(source.path(), kind));
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let kind = ErrorKind::Failed { offset, wanted, got, error };
                return Err(Error::new(source.path(), kind));
            }
        }
    }
    Ok(true)
}

/// Fills a buffer with the bytes at `offset` of a source.
///
/// # Errors
///
/// [`ErrorKind::Short`] if the source ends before that, [`ErrorKind::Failed`] for what the system reports.
pub fn read_exact(source: &dyn Source, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
    fill(source, &mut [IoSliceMut::new(buffer)], offset)
}

/// Reads the bytes of `span` of a source into memory of their own.
///
/// The caller has bounded the length: that much is allocated.
///
/// # Errors
///
/// [`ErrorKind::Short`] if the source ends before that, [`ErrorKind::Failed`] for what the system reports.
pub fn read_span(source: &dyn Source, span: Range<u64>) -> Result<Vec<u8>, Error> {
    let too_long = || {
        let error = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        Error::new(source.path(), ErrorKind::System(error))
    };
    let length = span.end.saturating_sub(span.start);
    let length = usize::try_from(length).map_err(|_| too_long())?;
    // Asked for first: what follows would end the process where there is not enough.
    Vec::<u8>::new().try_reserve_exact(length).map_err(|_| too_long())?;
    // Fresh memory from the system is zero already: this costs no pass over it.
    let mut bytes = vec![0; length];
    if length < PART {
        fill(source, &mut [IoSliceMut::new(&mut bytes)], span.start)?;
        return Ok(bytes);
    }
    // Most of the time goes into the kernel's making memory for it, which several threads do sooner.
    let choice = Choice { threads: cores().min(THREADS), ..Choice::plain(to_u64(PART)) };
    let part = Part { file: 0, runs: Runs::span(span), unit: Unit::SAME };
    let plan = Plan::new(vec![part], &choice.cut()).map_err(|_| too_long())?;
    let (sources, choice): ([&dyn Source; 1], _) = ([source], &choice);
    let (hook, cancel, progress) = (None, None, None);
    let reading = Reading { sources: &sources, plan: &plan, choice, hook, cancel, progress };
    match reading.run(vec![&mut bytes]) {
        Ok(_) => Ok(bytes),
        Err(ReadError::File(error)) => Err(error),
        Err(_) => Err(too_long()),
    }
}

/// Bytes that are worth a thread.
const PART: usize = 4 << 20;

/// Threads that read one span, at most.
const THREADS: usize = 4;

/// Buffers that the system takes in one call.
pub(crate) const MOST_BUFFERS: usize = 1024;

pub(crate) fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
