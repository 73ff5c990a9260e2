//! The keys of one object, to notice one that comes twice.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Cursor, RawString};
use crate::lookup::Hasher;
use crate::table::position;

/// The keys of one object, as they come: 8 bytes a key.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// A key's hash in the upper half, the place of its opening quote in the lower.
    seen: Vec<u64>,
}

impl Keys {
    pub(crate) fn add(&mut self, hasher: &Hasher, key: RawString<'_>) {
        let hash = hasher.hash(key.text(&mut String::new()).as_bytes());
        self.seen.push((u64::from(hash) << 32) | u64::from(position(key.at)));
    }

    /// The keys that repeat an earlier one, each with the first of those; `text` is what they were read from.
    ///
    /// Sorting once at the end of the object costs less than a table that grows with it.
    pub(crate) fn repeated(mut self, text: &str) -> Vec<Repeated<'_>> {
        self.seen.sort_unstable();
        let mut repeated = Vec::new();
        for group in self.seen.chunk_by(|one, other| one >> 32 == other >> 32) {
            let [_, _, ..] = group else { continue };
            // Different names with one hash are rare, so nearly always there is one here.
            let mut firsts: Vec<(String, RawString<'_>)> = Vec::new();
            for key in group.iter().filter_map(|seen| key_at(text, *seen)) {
                let mut name = String::new();
                key.unescape_onto(&mut name);
                match firsts.iter().find(|(first, _)| *first == name) {
                    Some((_, first)) => repeated.push(Repeated { first: first.at, key }),
                    None => firsts.push((name, key)),
                }
            }
        }
        repeated.sort_unstable_by_key(|repeated| repeated.key.at);
        repeated
    }
}

/// A key that repeats an earlier one.
#[derive(Debug)]
pub(crate) struct Repeated<'t> {
    /// Where the first one's opening quote is.
    pub(crate) first: usize,
    pub(crate) key: RawString<'t>,
}

/// A key, read again.
fn key_at(text: &str, seen: u64) -> Option<RawString<'_>> {
    let mut cursor = Cursor::new(text);
    cursor.advance(usize::try_from(seen & 0xffff_ffff).ok()?);
    cursor.string("a string").ok()
}
