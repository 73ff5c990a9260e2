//! What a loader has to give: which part of a tensor, and a checksum over all of them.
//!
//! The checksum depends on each tensor's name and bytes, and not on the order of the tensors:
//!
//! 1. The *word sum* of a tensor is the sum of its bytes taken eight at a time as little-endian
//!    64-bit words, modulo 2^64. Where the last word is not whole, zeros follow its bytes.
//! 2. The *weight* of a name is the 64-bit FNV-1a hash of its UTF-8 bytes, made odd: bit 0 is set.
//! 3. The checksum is the sum, over the tensors, of word sum times weight, modulo 2^64.
//!
//! It is there so that nobody wins by not reading, or by giving the bytes of another tensor. It
//! does not see words that changed places within a tensor.
//!
//! The bytes of a slice are its own, in row-major order, not those of the tensor around it.
//! `benches/load/answer.py` is the same in Python; both are tested with one example.

use std::fmt;
use std::ops::Range;

/// The checksum of the tensors added so far, with their count and bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Checksum {
    value: u64,
    pub(crate) tensors: u64,
    pub(crate) bytes: u64,
}

impl Checksum {
    /// Adds a tensor.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) {
        let product = word_sum(bytes).wrapping_mul(weight(name));
        self.value = self.value.wrapping_add(product);
        self.tensors += 1;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    }
}

/// As it stands in JSON: hexadecimal, for not every reader keeps 64 bits of a number.
impl fmt::Display for Checksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.value)
    }
}

/// The sum of the little-endian 64-bit words of `bytes`, zeros after their end.
fn word_sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let whole = words.iter().map(|&word| u64::from_le_bytes(word));
    whole.fold(u64::from_le_bytes(last), u64::wrapping_add)
}

/// The FNV-1a hash of a name, made odd so that no word sum is lost.
fn weight(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash | 1
}

/// The indices that a slice takes of a dimension of this length.
pub(crate) const fn middle_eighth(length: usize) -> Range<usize> {
    length * 7 / 16..length * 9 / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/python/test_load_benchmark.py` has the same.
    #[test]
    fn the_example_gives_what_it_gives_in_python() {
        let counting: Vec<u8> = (0..=255).collect();
        let mut checksum = Checksum::default();
        for (name, bytes, want) in [
            ("", &[][..], "0000000000000000"),
            ("a", &[1], "af63dc4c8601ec8d"),
            ("a", &[0, 0, 0, 0, 0, 0, 0, 0, 1], "5ec7b8990c03d91a"),
            ("weights.été", &[255; 17], "3fff3a33978e0793"),
            ("model.layers.0.weight", &counting, "05cc0bad233c9e13"),
        ] {
            checksum.add(name, bytes);
            assert_eq!(checksum.to_string(), want, "after {name:?}");
        }
        assert_eq!((checksum.tensors, checksum.bytes), (5, 283));
    }

    #[test]
    fn an_eighth_in_the_middle() {
        for (length, want) in [
            (0, 0..0),
            (1, 0..0),
            (2, 0..1),
            (15, 6..8),
            (16, 7..9),
            (64, 28..36),
            (8192, 3584..4608),
        ] {
            assert_eq!(middle_eighth(length), want, "{length}");
        }
    }
}
