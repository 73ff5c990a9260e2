//! SHA-256 (FIPS 180-4), to compare with the digests of the corpus.

use std::fmt::Write;

pub(crate) fn sha256(message: &[u8]) -> String {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    let primes: Vec<u64> =
        (2..312_u64).filter(|n| (2..*n).all(|divisor| n % divisor != 0)).collect();
    // The first 32 bits of the fractional parts of square and cube roots.
    let keys: Vec<u32> = primes[..64].iter().map(|prime| low(cube_root(*prime))).collect();
    let square_root = |prime: &u64| (u128::from(*prime) << 64).isqrt();
    let mut hash: Vec<u32> = primes[..8].iter().map(|prime| low(square_root(prime))).collect();
    for block in padded.chunks(64) {
        let mut words: Vec<u32> =
            block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
        for place in 16..64 {
            let (a, b) = (words[place - 15], words[place - 2]);
            let first = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let second = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            let sum = words[place - 16].wrapping_add(first).wrapping_add(words[place - 7]);
            words.push(sum.wrapping_add(second));
        }
        let mut state = hash.clone();
        for (word, key) in words.iter().zip(&keys) {
            let (a, e) = (state[0], state[4]);
            let choice = (e & state[5]) ^ (!e & state[6]);
            let majority = (a & state[1]) ^ (a & state[2]) ^ (state[1] & state[2]);
            let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let one = [high, choice, *key, *word].iter().fold(state[7], |s, n| s.wrapping_add(*n));
            let two = low.wrapping_add(majority);
            state.rotate_right(1);
            state[4] = state[4].wrapping_add(one);
            state[0] = one.wrapping_add(two);
        }
        for (hash, state) in hash.iter_mut().zip(state) {
            *hash = hash.wrapping_add(state);
        }
    }
    hash.iter().flat_map(|word| word.to_be_bytes()).fold(String::new(), |mut digest, byte| {
        write!(digest, "{byte:02x}").unwrap();
        digest
    })
}

/// The lowest 32 bits, which of a root are those of its fraction.
fn low(root: u128) -> u32 {
    u32::try_from(root & 0xffff_ffff).unwrap()
}

/// A cube root times 2^32, rounded down.
fn cube_root(prime: u64) -> u128 {
    let scaled = u128::from(prime) << 96;
    let (mut low, mut high) = (0_u128, 1 << 40);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if middle * middle * middle <= scaled { low = middle } else { high = middle }
    }
    low
}

#[test]
fn the_digest_of_abc_is_that_of_the_standard() {
    let want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256(b"abc"), want);
}
