//! A tensor of a listing.

use std::fmt::{self, Write};
use std::ops::Range;

use weigh::format::header::PartialTensor;
use weigh::format::{Dtype, text};
use weigh::inventory::Item;
use weigh::{Survey, SurveyedShard};

/// A tensor of a listing, made when it is asked for: there may be a million of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'s> {
    /// The name, not escaped.
    pub(crate) name: &'s str,
    /// The dimensions, if they could be read.
    pub(crate) shape: Option<&'s [u64]>,
    begin: u64,
    end: u64,
    /// The shard's place in [`Survey::shards`].
    shard: usize,
    /// The element type, if it is one of the format's.
    pub(crate) dtype: Option<Dtype>,
    state: State,
}

/// What is known of the tensor's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct State(u8);

impl State {
    const PLACED: u8 = 1;
    const PRESENT: u8 = 2;
    const NO_FILE: u8 = 4;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl<'s> Row<'s> {
    /// A tensor of this shard.
    pub(super) fn read(shard: usize, tensor: &PartialTensor<'s>) -> Self {
        let offsets = tensor.data_offsets.clone();
        let placed = u8::from(offsets.is_some()) * State::PLACED;
        let present = u8::from(tensor.is_present) * State::PRESENT;
        let offsets = offsets.unwrap_or_default();
        Self {
            name: tensor.name,
            shape: tensor.shape,
            begin: offsets.start,
            end: offsets.end,
            shard,
            dtype: tensor.dtype,
            state: State(placed | present),
        }
    }

    /// A tensor that an index maps to this shard, whose header could not be read.
    pub(super) fn lost(shard: usize, name: &'s str) -> Self {
        let state = State(State::NO_FILE);
        Self { name, shape: None, begin: 0, end: 0, shard, dtype: None, state }
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
        survey.shards().get(self.shard)
    }

    /// What orders it by place: its shard's rank, then its offsets, those without any last.
    pub(super) fn position(&self, shards: &[u32]) -> (u32, bool, u64, u64) {
        let shard = shards.get(self.shard);
        let unplaced = !self.state.has(State::PLACED);
        (shard.copied().unwrap_or(u32::MAX), unplaced, self.begin, self.end)
    }

    /// Whether its file is not there, or lacks bytes of it.
    pub(crate) fn is_missing(&self) -> bool {
        let cut = self.state.has(State::PLACED) && !self.state.has(State::PRESENT);
        cut || self.state.has(State::NO_FILE)
    }

    /// Columns that its name takes when escaped; the name itself if that is printable ASCII.
    pub(crate) fn width(&self) -> (usize, Option<&'s str>) {
        if text::is_plain(self.name) {
            (self.name.len(), Some(self.name))
        } else {
            (escaped_width(self.name), None)
        }
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

/// Columns that text from a file takes when escaped: a column a character, near enough.
pub(crate) fn escaped_width(text: &str) -> usize {
    let mut columns = Columns(0);
    // Counting does not fail.
    let _ = write!(columns, "{}", text::escaped(text));
    columns.0
}

/// Counts the characters that are written to it.
struct Columns(usize);

impl Write for Columns {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.chars().count();
        Ok(())
    }

    fn write_char(&mut self, _: char) -> fmt::Result {
        self.0 += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_escaped_name() {
        for name in ["", "a.b", "é", "a\u{1b}[31m", "\n\u{202e}", "\u{e0041}"] {
            let shown = text::escaped(name).to_string();
            assert_eq!(escaped_width(name), shown.chars().count(), "{shown}");
        }
    }
}
