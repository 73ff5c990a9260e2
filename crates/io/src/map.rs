//! Files as memory: `mmap(2)`.
//!
//! # Hazards
//!
//! A map is only as steady as its file. If another process shortens the file, touching what is gone ends
//! this one with SIGBUS; if it writes to the file, the bytes change under whoever looks at them; if the disk
//! or the network fails, that is SIGBUS, too. Nothing in this process can prevent it, so whoever wants a map
//! as bytes has to vouch for the file with an [`Unchanging`]. Reading into memory of one's own has none of
//! these hazards, and is the default everywhere.
#![expect(unsafe_code, reason = "maps of files")]

use std::fmt;
use std::io::IoSliceMut;
use std::ops::Deref;
use std::path::Path;

use crate::{Error, FileSource, Source};

/// Somebody's word that files will not change while they are mapped.
#[derive(Clone, Copy, Debug)]
pub struct Unchanging(());

impl Unchanging {
    /// Gives the word.
    ///
    /// # Safety
    ///
    /// As long as a [`Map`] made with it lives, no process may write to the mapped file or shorten it. To
    /// replace a file by renaming another over it is fine.
    #[must_use]
    pub const unsafe fn promise() -> Self {
        Self(())
    }
}

/// The bytes of a file, read when they are looked at.
pub struct Map {
    map: Option<memmap2::Mmap>,
}

impl Map {
    /// Maps a file. Reads nothing.
    ///
    /// # Errors
    ///
    /// What the system reports: some file systems cannot be mapped.
    pub fn new(source: &FileSource, _: Unchanging) -> Result<Self, Error> {
        map(source).map(|map| Self { map })
    }
}

/// `None` for an empty file.
fn map(source: &FileSource) -> Result<Option<memmap2::Mmap>, Error> {
    let Ok(len) = usize::try_from(source.len()) else {
        let error = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        return Err(Error::system(source.path(), error));
    };
    if len == 0 {
        return Ok(None);
    }
    // SAFETY: whoever uses the map as bytes has promised that the file does not change (`Map::new`); the
    // other use, `MappedSource`, copies through a raw pointer and never makes a reference of it.
    let map = unsafe { memmap2::MmapOptions::new().len(len).map(source.file()) };
    map.map(Some).map_err(|error| Error::system(source.path(), error))
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.len()).finish()
    }
}

/// A file whose bytes are copied out of a map of it.
#[derive(Debug)]
pub(crate) struct MappedSource<'f> {
    file: &'f dyn Source,
    map: Option<memmap2::Mmap>,
}

impl<'f> MappedSource<'f> {
    pub(crate) fn new(file: &'f dyn Source) -> Result<Self, Error> {
        let plain = file.plain_file();
        Ok(Self { file, map: plain.map(map).transpose()?.flatten() })
    }
}

impl Source for MappedSource<'_> {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn read_some(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        let Some(map) = &self.map else { return self.file.read_some(buffers, offset) };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(map.len());
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let len = wanted.min(map.len() - start);
        // What was cut off since is an error here, where touching it would be a signal.
        #[cfg(target_os = "linux")]
        if len > 0 {
            map.advise_range(memmap2::Advice::PopulateRead, start, len).or_else(is_unknown)?;
        }
        let mut copied = 0;
        for buffer in buffers {
            let count = buffer.len().min(len - copied);
            // SAFETY: `start + copied + count` is at most the map's length.
            let from = unsafe { map.as_ptr().add(start + copied) };
            // SAFETY: `from` has `count` readable bytes, and `buffer` as many that are its own. Another
            // process may write to the file meanwhile: then the copy is any mixture, which `verify` finds.
            unsafe { std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), count) };
            copied += count;
        }
        self.file.count(crate::source::to_u64(copied));
        Ok(copied)
    }

    fn verify(&self) -> Result<(), Error> {
        self.file.verify()
    }
}

/// Kernels before 5.14 do not know `MADV_POPULATE_READ`.
#[cfg(target_os = "linux")]
fn is_unknown(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::InvalidInput { Ok(()) } else { Err(error) }
}
