//! Where the elements of a tensor are in its storage, and the byte runs to gather them by.

use alloc::vec::Vec;
use core::ops::Range;

use crate::storage::StorageId;

pub use weigh_format::slice::{Repeat, Runs, RunsIter};

/// Elements of a storage, by size and stride. Every element is inside the storage: whoever makes one checks that.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// The storage.
    pub storage: StorageId,
    /// Bytes from the beginning of the storage to the first element. A multiple of `element_bytes`, unless an old
    /// file has a view of a storage of another kind.
    pub first: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The size of each dimension; none is a scalar.
    pub shape: Vec<u64>,
    /// Elements from one place of a dimension to the next. 0 repeats.
    pub strides: Vec<u64>,
}

impl View {
    /// How many elements there are.
    #[must_use]
    pub fn elements(&self) -> u64 {
        // The checks of whoever made it are that the product, and the bytes, can be counted.
        self.shape.iter().fold(1, |product: u64, &size| product.saturating_mul(size))
    }

    /// Bytes of all elements, gathered.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.elements().saturating_mul(self.element_bytes)
    }

    /// Whether the elements are one after the other in C order, so that they are one run of bytes.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut wanted = 1_u64;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size == 0 {
                return true;
            }
            if size > 1 && stride != wanted {
                return self.shape.contains(&0);
            }
            wanted = wanted.saturating_mul(size);
        }
        true
    }

    /// The bytes of the storage from the first that is an element's to the last, those between included.
    #[must_use]
    pub fn span_in_storage(&self) -> Range<u64> {
        self.runs().span()
    }

    /// The byte runs of the elements in C order.
    #[must_use]
    pub fn runs(&self) -> Runs {
        if self.elements() == 0 {
            return Runs::new(self.first, 0, Vec::new());
        }
        let mut dims: Vec<Repeat> = Vec::new();
        for (&count, &stride) in self.shape.iter().zip(&self.strides) {
            if count == 1 {
                continue;
            }
            let stride = stride.saturating_mul(self.element_bytes);
            match dims.last_mut() {
                Some(outer) if count.checked_mul(stride) == Some(outer.stride) => {
                    *outer = Repeat::new(outer.count.saturating_mul(count), stride);
                }
                _ => dims.push(Repeat::new(count, stride)),
            }
        }
        let mut run = self.element_bytes;
        if let Some(inner) = dims.pop_if(|inner| inner.stride == self.element_bytes) {
            run = run.saturating_mul(inner.count);
        }
        Runs::new(self.first, run, dims)
    }
}

#[cfg(test)]
mod tests;
