//! A checkpoint's files as memory, read when they are looked at.

use weigh_io::map::{Map, Unchanging};

use crate::array::View;
use crate::{Checkpoint, Error};

/// A checkpoint whose files are mapped: its tensors are there at once, and read page by page when they are
/// looked at. See [`weigh_io::map`] for what can happen to them.
#[derive(Debug)]
pub struct Mapped<'c> {
    checkpoint: &'c Checkpoint,
    maps: Vec<Map>,
}

impl Checkpoint {
    /// Maps all files. Reads nothing; [`load`](Self::load) is what reads.
    ///
    /// # Errors
    ///
    /// [`Error::NotAFile`]; [`Error::Io`]: some file systems cannot be mapped; or a file has changed since it was opened.
    pub fn map(&self, promise: Unchanging) -> Result<Mapped<'_>, Error> {
        let maps = self.shards().iter().map(|shard| Ok(Map::new(shard.need_file()?, promise)?));
        Ok(Mapped { checkpoint: self, maps: maps.collect::<Result<_, Error>>()? })
    }
}

impl Mapped<'_> {
    /// The tensor of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<View<'_>> {
        let (file, tensor) = self.checkpoint.find(name)?;
        let [start, end] = [tensor.span.start, tensor.span.end].map(usize::try_from);
        let bytes = self.maps.get(file)?.get(start.ok()?..end.ok()?)?;
        Some(View::new(tensor.dtype, tensor.shape, bytes))
    }
}
