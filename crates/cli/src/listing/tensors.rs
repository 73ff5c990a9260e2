//! The tensors of a survey by their places: nothing is kept but where each shard's begin.

use std::collections::HashMap;

use weigh::format::header::Inspection;
use weigh::{Survey, SurveyedShard};

use super::Row;

/// The tensors of all shards, in the order of the headers; then those that an index maps to files that are
/// not there or could not be read.
#[derive(Debug)]
pub(crate) struct Tensors<'s> {
    shards: &'s [SurveyedShard],
    /// The place of each shard's first tensor.
    starts: Vec<usize>,
    /// How many could be read.
    read: usize,
    lost: Vec<Row<'s>>,
}

impl<'s> Tensors<'s> {
    pub(crate) fn of(survey: &'s Survey) -> Self {
        let mut read = 0;
        let starts = survey.shards().iter().map(|shard| {
            let start = read;
            read += shard.inspection().map_or(0, Inspection::len);
            start
        });
        let starts = starts.collect();
        let lost = lost(survey).map(|(shard, name)| Row::lost(shard, name)).collect();
        Self { shards: survey.shards(), starts, read, lost }
    }

    pub(crate) fn len(&self) -> usize {
        self.read + self.lost.len()
    }

    /// The tensor at a place.
    pub(crate) fn get(&self, place: usize) -> Option<Row<'s>> {
        if place >= self.read {
            return self.lost.get(place - self.read).copied();
        }
        let (shard, inspection, place) = self.find(place)?;
        Some(Row::read(shard, &inspection.entry(place)?))
    }

    /// Looks at what the tensor at a place is made of: see [`Inspection::touch`].
    pub(crate) fn touch(&self, place: usize) -> u64 {
        self.find(place).map_or(0, |(_, inspection, place)| inspection.touch(place))
    }

    /// The shard of the tensor at a place, and its place there.
    fn find(&self, place: usize) -> Option<(usize, &'s Inspection, usize)> {
        // Shards without tensors start where the next one does: the last of those has this one.
        let shard = self.starts.partition_point(|start| *start <= place).checked_sub(1)?;
        let inspection = self.shards.get(shard)?.inspection()?;
        Some((shard, inspection, place - self.starts.get(shard)?))
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'s>> {
        let shards = self.shards.iter().enumerate();
        let read = shards.flat_map(|(number, shard)| {
            let entries = shard.inspection().map(Inspection::entries);
            entries.into_iter().flatten().map(move |tensor| Row::read(number, &tensor))
        });
        read.chain(self.lost.iter().copied())
    }
}

/// The tensors of shards without a header, with the shard's place.
fn lost(survey: &Survey) -> impl Iterator<Item = (usize, &str)> {
    let shards = survey.shards().iter().enumerate();
    let unread: HashMap<&str, usize> = shards
        .filter(|(_, shard)| shard.inspection().is_none())
        .map(|(number, shard)| (shard.name(), number))
        .collect();
    let index = survey.index().filter(|_| !unread.is_empty());
    let mapped = index.into_iter().flat_map(weigh::format::index::Index::tensors);
    mapped.filter_map(move |(name, file)| Some((*unread.get(file)?, name)))
}
