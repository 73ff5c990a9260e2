//! Memory that bytes pass through.

use crate::{Block, OutOfMemory, arena};

/// Memory that grows to what is asked of it, and begins on a page.
#[derive(Default)]
pub(crate) struct Scratch {
    block: Option<Block>,
}

/// Less is not worth an allocation, and would not begin on a page.
const LEAST: usize = 256 << 10;

impl Scratch {
    /// So many bytes, of any content.
    pub(crate) fn get(&mut self, bytes: usize) -> Result<&mut [u8], OutOfMemory> {
        if self.block.as_ref().is_none_or(|block| block.len() < bytes) {
            self.block = None;
            let size = crate::source::to_u64(bytes.max(LEAST));
            let (blocks, _) = arena::allocate(&[size], true)?;
            self.block = blocks.into_iter().next();
        }
        let block = self.block.as_deref_mut().unwrap_or_default();
        Ok(block.get_mut(..bytes).unwrap_or_default())
    }
}
