//! The journal of an edit in place: what the head of a file was, and what it was to be.
//!
//! | bytes | |
//! |---|---|
//! | 16 | `weigh journal 2` and a line feed |
//! | 8 | the [`Token`] of the edit, which is in the file as well while it is edited |
//! | 8 | the length of the file, little-endian |
//! | 8 | the length of the head |
//! | … | the head, as it was |
//! | … | the head, as it was to be: as long |
//! | 8 | [`checksum`] of all that |
//!
//! The checksum tells a journal that is whole from one that was cut off or damaged; it keeps nobody from
//! writing one. [`Journal::left`] tells whether a head is one that this edit may have left. Nothing here reads or
//! writes a file.

use std::hash::{BuildHasher, RandomState};

use super::head::INTERRUPTED;
use crate::source::to_u64;

const MAGIC: &[u8; 16] = b"weigh journal 2\n";

/// Bytes of a journal beside the heads.
const FRAME: usize = MAGIC.len() + 4 * size_of::<u64>();

/// What an edit is known by.
pub(super) type Token = [u8; 8];

/// A token that nobody can foresee.
pub(super) fn new_token() -> Token {
    RandomState::new().hash_one(0_u8).to_le_bytes()
}

/// A journal as it is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Journal<'a> {
    pub(super) token: Token,
    /// Bytes of the file that was edited.
    pub(super) file_len: u64,
    /// Its first bytes as they were.
    pub(super) old: &'a [u8],
    /// What they were to be.
    pub(super) new: &'a [u8],
}

/// What an edit that was cut off left of a head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Left {
    /// All of the old one but its first bytes.
    Old,
    /// All of the new one but its first bytes.
    New,
    /// Some of each, after the edit's token.
    Mixed,
}

impl<'a> Journal<'a> {
    /// Bytes that the journal of a head has.
    pub(super) fn len(head: u64) -> u64 {
        to_u64(FRAME).saturating_add(head.saturating_mul(2))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRAME.saturating_add(2 * self.old.len()));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.token);
        bytes.extend_from_slice(&self.file_len.to_le_bytes());
        bytes.extend_from_slice(&to_u64(self.old.len()).to_le_bytes());
        bytes.extend_from_slice(self.old);
        bytes.extend_from_slice(self.new);
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        bytes
    }

    /// What a journal says, if it is whole.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk()?;
        let rest = body.strip_prefix(MAGIC)?;
        let (token, rest) = rest.split_first_chunk()?;
        let (file_len, rest) = rest.split_first_chunk()?;
        let (head_len, heads) = rest.split_first_chunk()?;
        let (old, new) = heads.split_at_checked(heads.len() / 2)?;
        let is_whole = u64::from_le_bytes(*head_len) == to_u64(old.len())
            && old.len() == new.len()
            && u64::from_le_bytes(*sum) == checksum(body);
        is_whole.then_some(Self {
            token: *token,
            file_len: u64::from_le_bytes(*file_len),
            old,
            new,
        })
    }

    /// What this edit has left, if this is a head that it may have left: the mark, then all of the old head or all
    /// of the new one, or the token and, byte by byte, one or the other.
    pub(super) fn left(&self, head: &[u8]) -> Option<Left> {
        let rest = head.strip_prefix(&INTERRUPTED)?;
        let [old, new] = [self.old, self.new].map(|head| head.get(INTERRUPTED.len()..));
        let (old, new) = (old?, new?);
        if rest == old {
            return Some(Left::Old);
        }
        if rest == new {
            return Some(Left::New);
        }
        let ours = &self.token[..self.token.len().min(rest.len())];
        let is_either = |((is, old), new): ((&u8, &u8), &u8)| is == old || is == new;
        let is_mixed = rest.len() == old.len()
            && rest.starts_with(ours)
            && rest.iter().zip(old).zip(new).skip(ours.len()).all(is_either);
        is_mixed.then_some(Left::Mixed)
    }
}

/// FNV-1a, 64 bits.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(BASIS, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        for (bytes, want) in [
            (&b""[..], 0xcbf2_9ce4_8422_2325),
            (b"a", 0xaf63_dc4c_8601_ec8c),
            (b"foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(checksum(bytes), want);
        }
    }

    fn journal<'a>(old: &'a [u8], new: &'a [u8]) -> Journal<'a> {
        Journal { token: *b"12345678", file_len: 1 << 40, old, new }
    }

    #[test]
    fn what_is_written_is_read() {
        for head in [&b""[..], b"12345678", &[7; 1000]] {
            let new = vec![1; head.len()];
            let bytes = journal(head, &new).encode();
            assert_eq!(to_u64(bytes.len()), Journal::len(to_u64(head.len())));
            assert_eq!(Journal::decode(&bytes), Some(journal(head, &new)));
        }
    }

    #[test]
    fn one_that_is_cut_off_or_changed_anywhere_is_none() {
        let whole = journal(b"0123456789", b"abcdefghij").encode();
        for length in 0..whole.len() {
            assert_eq!(Journal::decode(&whole[..length]), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            assert_eq!(Journal::decode(&changed), None, "{at}");
        }
        let mut longer = whole;
        longer.push(0);
        assert_eq!(Journal::decode(&longer), None);
        // Heads of different lengths.
        assert_eq!(Journal::decode(&journal(b"0123456789", b"abcdefghijkl").encode()), None);
        assert_eq!(Journal::decode(&journal(b"0123456789", b"abcdefghi").encode()), None);
    }

    #[test]
    fn what_an_edit_leaves_is_told_from_what_others_do() {
        let (old, new) = (b"lengthO.oldoldoldold", b"lengthN.newnewnewnew");
        let journal = journal(old, new);
        for (rest, want) in [
            (&b"oldoldoldold"[..], Some(Left::Old)),
            (b"newnewnewnew", Some(Left::New)),
            (b"12345678dold", Some(Left::Mixed)),
            (b"12345678nwld", None),
            (b"12345678wnld", Some(Left::Mixed)),
            (b"12345678wnew", Some(Left::Mixed)),
            // Neither the one nor the other, or without the token.
            (b"12345678wnex", None),
            (b"87654321wnew", None),
            (b"oldoldoldnew", None),
            (b"newnewnewold", None),
            // Of other lengths.
            (b"oldoldoldol", None),
            (b"oldoldoldold!", None),
            (b"12345678", None),
            (b"", None),
        ] {
            let head = [&INTERRUPTED[..], rest].concat();
            assert_eq!(journal.left(&head), want, "{}", rest.escape_ascii());
        }
        assert_eq!(journal.left(old), None);
        assert_eq!(journal.left(new), None);
        assert_eq!(journal.left(b""), None);
    }

    #[test]
    fn of_a_short_head_the_beginning_of_the_token_is_enough() {
        let journal = journal(b"8 bytes!abc", b"8 bytes?xyz");
        for (rest, want) in [
            ("abc", Some(Left::Old)),
            ("xyz", Some(Left::New)),
            ("123", Some(Left::Mixed)),
            ("124", None),
        ] {
            assert_eq!(journal.left(&[&INTERRUPTED[..], rest.as_bytes()].concat()), want, "{rest}");
        }
    }
}
