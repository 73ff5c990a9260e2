//! What files may be packed into as a whole, by their first bytes.

use super::Wrapper;

/// What begins with these bytes.
pub(super) fn recognize(head: &[u8]) -> Option<Wrapper> {
    let found = SIGNATURES.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, wrapper)) = found {
        return Some(*wrapper);
    }
    match head {
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
            if rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
        {
            Some(Wrapper::Bzip2)
        }
        // A frame that readers skip.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Wrapper::Zstd),
        // Its properties, the size of its window, and that of its content or none.
        [0x5d, 0, 0, _, _, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..]
        | [0x5d, 0, 0, _, _, _, _, _, _, _, 0, 0, 0, ..] => Some(Wrapper::Lzma),
        [first, second, ..] if first & 0x8f == 0x08 => {
            let check = u16::from_be_bytes([*first, *second]);
            (check % 31 == 0 && second & 0x20 == 0 && *first == 0x78).then_some(Wrapper::Zlib)
        }
        _ => None,
    }
}

const SIGNATURES: [(&[u8], Wrapper); 7] = [
    (b"\x1f\x8b\x08", Wrapper::Gzip),
    (b"\xfd7zXZ\0", Wrapper::Xz),
    (b"\x28\xb5\x2f\xfd", Wrapper::Zstd),
    (b"\x04\x22\x4d\x18", Wrapper::Lz4),
    (b"ZF0x", Wrapper::JoblibZ),
    (b"7z\xbc\xaf\x27\x1c", Wrapper::SevenZip),
    (b"Rar!\x1a\x07", Wrapper::Rar),
];
