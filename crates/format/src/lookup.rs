//! Finding names in constant time, whoever chose them.
//!
//! The hash is multilinear (Lemire and Kaser, "Strongly universal string hashing is fast"): a sum of
//! products of secret keys and 32-bit words of the name. For two different names, chosen without
//! knowing the key, the chance of equal 32-bit hashes is about 2^−32, so that nobody can write a file
//! whose names all collide.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// The secret of a hash table. Choose it at random, once a process.
#[derive(Clone, Copy)]
pub struct HashKey(u64, u64);

impl HashKey {
    /// A key made of 128 bits, which should be random and kept from whoever writes files.
    #[must_use]
    pub const fn new(high: u64, low: u64) -> Self {
        Self(high, low)
    }
}

impl core::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HashKey(…)")
    }
}

/// Words of a name that are hashed with one round of keys: 256 bytes.
const BLOCK: usize = 64;

/// A keyed hash function.
#[derive(Clone)]
pub(crate) struct Hasher {
    keys: Box<[u64; BLOCK]>,
    chain: u64,
}

impl Hasher {
    pub(crate) fn new(key: HashKey) -> Self {
        let mut state = key.0;
        let mut next = || {
            // SplitMix64 (Steele, Lea, Flood 2014), whitened with the other half of the key.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state ^ key.1.rotate_left(29);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31) ^ key.1
        };
        let mut keys = Box::new([0; BLOCK]);
        for slot in keys.iter_mut() {
            *slot = next();
        }
        Self { keys, chain: next() | 1 }
    }

    /// The hash of a name.
    #[inline]
    pub(crate) fn hash(&self, name: &[u8]) -> u32 {
        let mut sum = 0_u64;
        for block in name.chunks(4 * BLOCK) {
            // Blocks are chained as a polynomial; the length tells padded names apart.
            sum = (sum ^ (sum >> 32)).wrapping_mul(self.chain);
            sum = sum.wrapping_add(self.block(block));
        }
        high(sum)
    }

    #[inline]
    fn block(&self, block: &[u8]) -> u64 {
        let length = u64::try_from(block.len()).unwrap_or(u64::MAX);
        let (words, rest) = block.as_chunks::<8>();
        let (pairs, _) = self.keys.as_chunks::<2>();
        let mut sum = self.chain.wrapping_mul(length.wrapping_add(1));
        for (word, &[first, second]) in words.iter().zip(pairs) {
            sum = sum.wrapping_add(product(u64::from_le_bytes(*word), first, second));
        }
        if !rest.is_empty()
            && let Some(&[first, second]) = pairs.get(words.len())
        {
            let word = block.last_chunk().copied().unwrap_or_else(|| padded(rest));
            sum = sum.wrapping_add(product(u64::from_le_bytes(word), first, second));
        }
        sum
    }
}

/// A short name as one word.
fn padded(name: &[u8]) -> [u8; 8] {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(name) {
        *to = *from;
    }
    word
}

/// Multilinear-HM: the product of two keyed halves.
#[inline]
fn product(word: u64, first: u64, second: u64) -> u64 {
    first.wrapping_add(word & 0xffff_ffff).wrapping_mul(second.wrapping_add(word >> 32))
}

#[inline]
fn high(sum: u64) -> u32 {
    u32::try_from(sum >> 32).unwrap_or_default()
}

/// A set of numbered names: the hash table that finds a number by name.
#[derive(Clone)]
pub(crate) struct Lookup {
    hasher: Hasher,
    /// Hash in the upper half, number + 1 in the lower; 0 is free.
    slots: Vec<u64>,
    used: usize,
}

impl core::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Lookup({} names)", self.used)
    }
}

impl Lookup {
    /// A table with room for `names` names.
    pub(crate) fn with_room(key: HashKey, names: usize) -> Self {
        let slots = names.saturating_mul(3).div_ceil(2).max(8).next_power_of_two();
        Self { hasher: Hasher::new(key), slots: vec![0; slots], used: 0 }
    }

    pub(crate) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Adds a name by its hash, or returns the number of the equal name that is there.
    ///
    /// `equals` says whether the name of a number is this one.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        number: u32,
        equals: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if self.used.saturating_mul(3) >= self.slots.len().saturating_mul(2) {
            self.grow();
        }
        let mut position = self.start(hash);
        loop {
            let slot = self.slots.get_mut(position)?;
            if *slot == 0 {
                *slot = entry(hash, number);
                self.used = self.used.saturating_add(1);
                return None;
            }
            if let Some(found) = matching(*slot, hash)
                && equals(found)
            {
                return Some(found);
            }
            position = self.next(position);
        }
    }

    /// The number of a name.
    #[inline]
    pub(crate) fn find(&self, name: &[u8], equals: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hasher.hash(name);
        let mut position = self.start(hash);
        loop {
            let slot = *self.slots.get(position)?;
            if slot == 0 {
                return None;
            }
            if let Some(found) = matching(slot, hash)
                && equals(found)
            {
                return Some(found);
            }
            position = self.next(position);
        }
    }

    #[inline]
    fn start(&self, hash: u32) -> usize {
        usize::try_from(hash).unwrap_or_default() & self.mask()
    }

    #[inline]
    fn next(&self, position: usize) -> usize {
        position.wrapping_add(1) & self.mask()
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    fn grow(&mut self) {
        let doubled = vec![0; self.slots.len().saturating_mul(2)];
        let old = core::mem::replace(&mut self.slots, doubled);
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            let mut position = self.start(high(slot));
            while self.slots.get(position).is_some_and(|&slot| slot != 0) {
                position = self.next(position);
            }
            if let Some(free) = self.slots.get_mut(position) {
                *free = slot;
            }
        }
    }
}

#[inline]
fn entry(hash: u32, number: u32) -> u64 {
    (u64::from(hash) << 32) | u64::from(number.wrapping_add(1))
}

/// The number in `slot` if its hash is `hash`.
#[inline]
fn matching(slot: u64, hash: u32) -> Option<u32> {
    let number = u32::try_from(slot & 0xffff_ffff).unwrap_or_default();
    (high(slot) == hash).then(|| number.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn every_name_is_found_once() {
        let names: Vec<String> = (0..10_000).map(|number| format!("layers.{number}.w")).collect();
        let mut lookup = Lookup::with_room(HashKey::new(1, 2), 4);
        for (number, name) in names.iter().enumerate() {
            let hash = lookup.hasher().hash(name.as_bytes());
            let equals = |other: u32| names[other as usize] == *name;
            let number = u32::try_from(number).unwrap();
            assert_eq!(lookup.insert(hash, number, equals), None);
            assert_eq!(lookup.insert(hash, number + 1, equals), Some(number));
        }
        for (number, name) in names.iter().enumerate() {
            let found = lookup.find(name.as_bytes(), |other| names[other as usize] == *name);
            assert_eq!(found, u32::try_from(number).ok());
        }
        assert_eq!(lookup.find(b"absent", |_| false), None);
    }

    #[test]
    fn hashes_spread_and_depend_on_the_key() {
        let (one, two) = (Hasher::new(HashKey::new(1, 2)), Hasher::new(HashKey::new(1, 3)));
        let mut hashes: Vec<u32> = Vec::new();
        let mut same_under_both = 0;
        for length in 0..600 {
            for fill in [0, b'a', 0xff] {
                let name = vec![fill; length];
                hashes.push(one.hash(&name));
                same_under_both += usize::from(one.hash(&name) == two.hash(&name));
            }
        }
        hashes.sort_unstable();
        hashes.dedup();
        // The three empty names are one.
        assert_eq!(hashes.len(), 1798);
        assert!(same_under_both <= 3, "{same_under_both}");
    }

    #[test]
    fn names_with_one_long_prefix_do_not_collide() {
        let hasher = Hasher::new(HashKey::new(0x1234, 0x5678));
        let mut low: Vec<u32> = (0..100_000)
            .map(|number| hasher.hash(format!("{}{number}", "x".repeat(300)).as_bytes()) & 0x3ffff)
            .collect();
        low.sort_unstable();
        let longest = low.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
        assert!(longest < Some(12), "{longest:?}");
    }
}
