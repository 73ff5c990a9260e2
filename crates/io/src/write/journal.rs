//! The journal of an edit in place: what the head of a file was.
//!
//! | bytes | |
//! |---|---|
//! | 16 | `weigh journal 1` and a line feed |
//! | 8 | the length of the file, little-endian |
//! | 8 | the length of the head |
//! | … | the head, as it was |
//! | 8 | [`checksum`] of all that |
//!
//! The checksum tells a journal that is whole from one that was cut off or damaged; it keeps nobody from
//! writing one. Nothing here reads or writes a file.

use crate::source::to_u64;

const MAGIC: &[u8; 16] = b"weigh journal 1\n";

/// Bytes of a journal beside the head.
const FRAME: usize = MAGIC.len() + 3 * size_of::<u64>();

/// A journal as it is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Journal<'a> {
    /// Bytes of the file that was edited.
    pub(super) file_len: u64,
    /// Its first bytes.
    pub(super) head: &'a [u8],
}

impl<'a> Journal<'a> {
    /// Bytes that the journal of a head has.
    pub(super) fn len(head: usize) -> u64 {
        to_u64(FRAME).saturating_add(to_u64(head))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRAME.saturating_add(self.head.len()));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.file_len.to_le_bytes());
        bytes.extend_from_slice(&to_u64(self.head.len()).to_le_bytes());
        bytes.extend_from_slice(self.head);
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        bytes
    }

    /// What a journal says, if it is whole.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk()?;
        let rest = body.strip_prefix(MAGIC)?;
        let (file_len, rest) = rest.split_first_chunk()?;
        let (head_len, head) = rest.split_first_chunk()?;
        let is_whole = u64::from_le_bytes(*head_len) == to_u64(head.len())
            && u64::from_le_bytes(*sum) == checksum(body);
        is_whole.then_some(Self { file_len: u64::from_le_bytes(*file_len), head })
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

    #[test]
    fn what_is_written_is_read() {
        for head in [&b""[..], b"12345678", &[7; 1000]] {
            let journal = Journal { file_len: 1 << 40, head };
            let bytes = journal.encode();
            assert_eq!(to_u64(bytes.len()), Journal::len(head.len()));
            assert_eq!(Journal::decode(&bytes), Some(journal));
        }
    }

    #[test]
    fn one_that_is_cut_off_or_changed_anywhere_is_none() {
        let whole = Journal { file_len: 20, head: b"0123456789" }.encode();
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
    }
}
