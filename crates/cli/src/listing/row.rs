//! A tensor of a listing.

use std::ops::Range;

use weigh::format::{Dtype, text};
use weigh::inventory::Item;
use weigh::{Survey, SurveyedShard, SurveyedTensor};

/// A tensor of a listing, in 56 bytes: there may be a million of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'s> {
    /// The name, not escaped.
    pub(crate) name: &'s str,
    /// The dimensions, if they could be read.
    pub(crate) shape: Option<&'s [u64]>,
    begin: u64,
    end: u64,
    /// The shard's place in [`Survey::shards`].
    shard: u32,
    /// Columns that the name takes when escaped; 65 535 stands for that and more.
    width: u16,
    /// The element type, if it is one of the format's.
    pub(crate) dtype: Option<Dtype>,
    state: State,
}

/// What is known of the tensor's bytes, and of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct State(u8);

impl State {
    const PLACED: u8 = 1;
    const PRESENT: u8 = 2;
    const PLAIN: u8 = 4;
    const NO_FILE: u8 = 8;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// The tensors of all shards, in the order of the headers; then those that an index maps to files that are
/// not there or could not be read.
pub(super) fn rows(survey: &Survey) -> impl Iterator<Item = Row<'_>> {
    let read = survey.tensors().map(|tensor| Row::read(&tensor));
    read.chain(lost(survey).map(|(shard, name)| Row::lost(shard, name)))
}

/// Looks at rows, their names and their shapes, so that whoever writes them next finds them in the cache.
///
/// The headers of large files are not in natural order, and so each row would be waited for four times. Here
/// nothing depends on what was loaded, and the processor waits for many rows at once.
pub(super) fn fetch<'r, 's: 'r>(rows: impl Iterator<Item = &'r Row<'s>>) {
    let mut seen = 0;
    for row in rows {
        let name = row.name.as_bytes();
        let ends = (name.first(), name.last());
        let dimension = row.shape.and_then(<[u64]>::first);
        seen ^= u64::from(*ends.0.unwrap_or(&0)) ^ u64::from(*ends.1.unwrap_or(&0));
        seen ^= dimension.unwrap_or(&0);
    }
    std::hint::black_box(seen);
}

/// The names of the same, in the same order.
pub(super) fn names(survey: &Survey) -> impl Iterator<Item = &str> {
    let read = survey.tensors().map(|tensor| tensor.tensor.name);
    read.chain(lost(survey).map(|(_, name)| name))
}

/// The tensors of shards without a header, with the shard's place.
fn lost(survey: &Survey) -> impl Iterator<Item = (usize, &str)> {
    let unread: Vec<(usize, &SurveyedShard)> = survey
        .shards()
        .iter()
        .enumerate()
        .filter(|(_, shard)| shard.inspection().is_none())
        .collect();
    let index = survey.index().filter(|_| !unread.is_empty());
    let mapped = index.into_iter().flat_map(weigh::format::index::Index::tensors);
    mapped.filter_map(move |(name, file)| {
        let (shard, _) = unread.iter().find(|(_, shard)| shard.name() == file)?;
        Some((*shard, name))
    })
}

impl<'s> Row<'s> {
    fn read(surveyed: &SurveyedTensor<'s>) -> Self {
        let tensor = &surveyed.tensor;
        let offsets = tensor.data_offsets.clone();
        let placed = u8::from(offsets.is_some()) * State::PLACED;
        let present = u8::from(tensor.is_present) * State::PRESENT;
        let offsets = offsets.unwrap_or_default();
        Self {
            shape: tensor.shape,
            begin: offsets.start,
            end: offsets.end,
            dtype: tensor.dtype,
            ..Self::named(surveyed.shard, tensor.name, placed | present)
        }
    }

    fn lost(shard: usize, name: &'s str) -> Self {
        Self::named(shard, name, State::NO_FILE)
    }

    fn named(shard: usize, name: &'s str, state: u8) -> Self {
        let plain = text::is_plain(name);
        let width = if plain { name.len() } else { escaped_width(name) };
        Self {
            name,
            shape: None,
            begin: 0,
            end: 0,
            shard: u32::try_from(shard).unwrap_or(u32::MAX),
            width: u16::try_from(width).unwrap_or(u16::MAX),
            dtype: None,
            state: State(state | if plain { State::PLAIN } else { 0 }),
        }
    }

    /// Bytes of its shard's data section.
    pub(crate) fn data_offsets(&self) -> Option<Range<u64>> {
        self.state.has(State::PLACED).then_some(self.begin..self.end)
    }

    /// Bytes it takes in the data section.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.data_offsets().map(|offsets| offsets.end.saturating_sub(offsets.start))
    }

    /// The shard it is in, or would be.
    pub(crate) fn shard<'a>(&self, survey: &'a Survey) -> Option<&'a SurveyedShard> {
        survey.shards().get(usize::try_from(self.shard).ok()?)
    }

    /// What orders it by place: its shard's rank, then its offsets, those without any last.
    pub(super) fn position(&self, shards: &[u32]) -> (u32, bool, u64, u64) {
        let shard = usize::try_from(self.shard).ok().and_then(|it| shards.get(it));
        let unplaced = !self.state.has(State::PLACED);
        (shard.copied().unwrap_or(u32::MAX), unplaced, self.begin, self.end)
    }

    /// Whether its file is not there, or lacks bytes of it.
    pub(crate) fn is_missing(&self) -> bool {
        let cut = self.state.has(State::PLACED) && !self.state.has(State::PRESENT);
        cut || self.state.has(State::NO_FILE)
    }

    /// Whether its name is printable ASCII.
    pub(crate) fn is_plain(&self) -> bool {
        self.state.has(State::PLAIN)
    }

    /// Columns that its name takes when escaped.
    pub(crate) fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// What is wrong with it as far as a listing shows, in a few words each.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &'static str> {
        let no_file = self.state.has(State::NO_FILE);
        let placed = self.state.has(State::PLACED);
        [
            (no_file, "no file"),
            (!no_file && self.dtype.is_none(), "unknown dtype"),
            (!no_file && self.shape.is_none(), "unknown shape"),
            (!no_file && !placed, "unknown offsets"),
            (placed && self.is_missing(), "missing bytes"),
        ]
        .into_iter()
        .filter_map(|(is_so, words)| is_so.then_some(words))
    }

    /// The same tensor, for counting and the module tree.
    pub(crate) fn item(&self) -> Item<'s> {
        Item {
            name: self.name,
            dtype: self.dtype,
            shape: self.shape,
            bytes: self.bytes().unwrap_or_default(),
        }
    }
}

/// Columns that a name takes when escaped: a column a character, near enough.
fn escaped_width(name: &str) -> usize {
    let width = |character: char| {
        if text::is_unsafe_to_print(character) {
            let mut utf8 = [0; 4];
            text::escaped(character.encode_utf8(&mut utf8)).to_string().len()
        } else {
            1
        }
    };
    name.chars().map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_rows_are_56_million_bytes() {
        assert_eq!(size_of::<Row<'_>>(), 56);
    }

    #[test]
    fn widths_are_those_of_the_escaped_name() {
        for name in ["", "a.b", "é", "a\u{1b}[31m", "\n\u{202e}", "\u{e0041}"] {
            let shown = text::escaped(name).to_string();
            assert_eq!(escaped_width(name), shown.chars().count(), "{shown}");
        }
    }
}
