//! What is wanted of a checkpoint.

use weigh_format::Dtype;
use weigh_format::slice::Index;

use crate::Tensor;

/// A tensor, or a slice of one, as a float of another width if need be.
///
/// ```
/// use weigh::Want;
/// use weigh::format::{Dtype, slice::Index};
///
/// let rows = Want::new("wte.weight").slice([Index::from(0..1000)]).cast(Dtype::BF16);
/// # let _ = rows;
/// ```
#[derive(Clone, Debug)]
pub struct Want<'n> {
    pub(crate) name: &'n str,
    pub(crate) index: Vec<Index>,
    pub(crate) cast: Option<Dtype>,
}

impl<'n> Want<'n> {
    /// The whole tensor of this name.
    #[must_use]
    pub fn new(name: &'n str) -> Self {
        Self { name, index: Vec::new(), cast: None }
    }

    /// Only what these indices take, by numpy's rules; dimensions after the last are whole.
    #[must_use]
    pub fn slice(mut self, index: impl IntoIterator<Item = impl Into<Index>>) -> Self {
        self.index = index.into_iter().map(Into::into).collect();
        self
    }

    /// Converted to F64, F32, F16 or BF16 while it is read. The tensor has to be of a float dtype.
    #[must_use]
    pub fn cast(mut self, to: Dtype) -> Self {
        self.cast = Some(to);
        self
    }

    /// The name of the tensor.
    #[must_use]
    pub fn name(&self) -> &'n str {
        self.name
    }
}

impl<'c> Tensor<'c> {
    /// The part of one rank of several, cut along a dimension: the way of tensor parallelism.
    ///
    /// The parts are as equal as can be, the first ones being longer by one where the dimension does not
    /// divide. A dimension that the tensor does not have leaves it whole: every rank has all of it.
    ///
    /// Ranks count from 0; `None` if there is no such rank.
    #[must_use]
    pub fn part(&self, dimension: usize, rank: u64, ranks: u64) -> Option<Want<'c>> {
        if rank >= ranks {
            return None;
        }
        let want = Want::new(self.name);
        let Some(&size) = self.shape.get(dimension) else { return Some(want) };
        let (each, longer) = (size / ranks, size % ranks);
        let start =
            |rank: u64| each.saturating_mul(rank).saturating_add(rank.min(longer)).min(size);
        let place = |at: u64| Some(i64::try_from(at).unwrap_or(i64::MAX));
        let (start, stop) = (place(start(rank)), place(start(rank.saturating_add(1))));
        let cut = Index::Range { start, stop, step: 1 };
        Some(want.slice(std::iter::repeat_n(Index::ALL, dimension).chain([cut])))
    }
}
