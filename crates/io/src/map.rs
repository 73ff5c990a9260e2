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
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, MmapMut, MmapOptions, MmapRaw};

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
    map: Option<Mmap>,
}

impl Map {
    /// Maps a file. Reads nothing.
    ///
    /// # Errors
    ///
    /// What the system reports: some file systems cannot be mapped. [`ErrorKind::Changed`] if the file is
    /// not what it was when it was opened.
    ///
    /// [`ErrorKind::Changed`]: crate::ErrorKind::Changed
    pub fn new(source: &FileSource, _: Unchanging) -> Result<Self, Error> {
        let map = map(source, |options, file| {
            // SAFETY: whoever made the `Unchanging` has promised that the file does not change while this
            // map lives.
            unsafe { options.map(file) }
        })?;
        // The map is as long as the file was when it was opened: that it still is, or touching it is a signal.
        source.verify()?;
        Ok(Self { map })
    }
}

/// Maps as much of a file as there was when it was opened; `None` for an empty file.
fn map<M>(
    source: &FileSource,
    make: impl FnOnce(&MmapOptions, &File) -> std::io::Result<M>,
) -> Result<Option<M>, Error> {
    let Ok(len) = usize::try_from(source.len()) else {
        let error = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        return Err(Error::system(source.path(), error));
    };
    if len == 0 {
        return Ok(None);
    }
    let map = make(MmapOptions::new().len(len), source.file());
    map.map(Some).map_err(|error| Error::system(source.path(), error))
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

/// The bytes of a file as memory that may be written to: what is written stays in this process.
///
/// It is for code that has its own idea of memory, such as that of other languages: only the address is
/// given out, and never a reference. A page is read when it is touched, and copied when it is written to.
pub struct PrivateMap {
    map: Option<MmapMut>,
}

impl PrivateMap {
    /// Maps a file. Reads nothing.
    ///
    /// # Errors
    ///
    /// As [`Map::new`].
    pub fn new(source: &FileSource, _: Unchanging) -> Result<Self, Error> {
        let map = map(source, |options, file| {
            // SAFETY: whoever made the `Unchanging` has promised that the file does not change while this
            // map lives.
            unsafe { options.map_copy(file) }
        })?;
        source.verify()?;
        Ok(Self { map })
    }

    /// The address of the first byte, valid for reads and writes of [`len`](Self::len) bytes as long as the
    /// map lives. It is aligned to a page; dangling for an empty file.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        let map = self.map.as_ref();
        map.map_or(std::ptr::dangling_mut(), |map| map.as_ptr().cast_mut())
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for PrivateMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateMap").field("len", &self.len()).finish()
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.len()).finish()
    }
}

/// A file whose bytes are copied out of a map of it.
///
/// No promise is asked for. The bytes are reached through a raw pointer: no reference says that they stay
/// what they are. What was cut off before a read is an error of that read on Linux; what is cut off during
/// one, and anything elsewhere, is a signal.
#[derive(Debug)]
pub(crate) struct MappedSource<'f> {
    file: &'f dyn Source,
    map: Option<MmapRaw>,
}

impl<'f> MappedSource<'f> {
    /// Maps a file, if it is one and `wanted`.
    pub(crate) fn new(file: &'f dyn Source, wanted: bool) -> Result<Self, Error> {
        let plain = file.plain_file().filter(|_| wanted);
        let map = plain.map(|plain| map(plain, |options, file| options.map_raw_read_only(file)));
        Ok(Self { file, map: map.transpose()?.flatten() })
    }

    /// Brings bytes of the map into memory; how many of them the file still has, from the first on.
    #[cfg(target_os = "linux")]
    fn populate(&self, map: &MmapRaw, start: usize, len: usize) -> std::io::Result<usize> {
        let populate = |len| map.advise_range(memmap2::Advice::PopulateRead, start, len);
        let error = match populate(len) {
            Ok(()) => return Ok(len),
            // Kernels before 5.14 do not know it.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => return Ok(len),
            Err(error) => error,
        };
        let now = self.file.file().and_then(|file| file.metadata().ok());
        let now = now.map_or(usize::MAX, |now| usize::try_from(now.len()).unwrap_or(usize::MAX));
        match now.saturating_sub(start) {
            0 => Ok(0),
            left if left < len => populate(left).map(|()| left),
            _ => Err(error),
        }
    }

    /// Nothing is known of bytes that have not been touched.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "Linux knows more")]
    fn populate(&self, _: &MmapRaw, _: usize, len: usize) -> std::io::Result<usize> {
        Ok(len)
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
        let mut len = wanted.min(map.len() - start);
        if len > 0 {
            // What was cut off since is an error here, where touching it would be a signal.
            len = self.populate(map, start, len)?;
        }
        let mut copied = 0;
        for buffer in buffers {
            let count = buffer.len().min(len - copied);
            // SAFETY: `start + copied + count` is at most `start + len`, which is at most the map's length.
            let from = unsafe { map.as_ptr().add(start + copied) };
            // SAFETY: `from` has `count` bytes of a map that lives as long as `self`, and `buffer` as many
            // that are its own: nothing else is mapped there. Another process may write to the file
            // meanwhile: then the copy is any mixture of plain bytes, which `verify` finds.
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
