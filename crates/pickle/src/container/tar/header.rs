//! A header of a tar archive: one block.

use alloc::vec::Vec;

/// What a header is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    File,
    Folder,
    /// The name of the next member, as GNU writes it.
    LongName,
    /// The target of the next member, as GNU writes it.
    LongLink,
    /// Fields of the next member.
    Pax,
    /// Fields of all members.
    PaxGlobal,
    /// A link or a device, which has no bytes.
    Other,
    /// A file with holes, as GNU writes it.
    Sparse,
    /// A type that is not known: readers take it for a file, or have a meaning of their own for it.
    Unknown,
}

/// A header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) size: u64,
    pub(super) kind: Kind,
    pub(super) type_flag: u8,
    /// Whether there is a prefix of the name where only some readers look for one.
    pub(super) odd_prefix: bool,
}

/// Whether a file that begins with this block is an archive: one with the magic, or with a checksum that is right.
pub(crate) fn is_header(block: &[u8]) -> bool {
    let named = block.first().is_some_and(|byte| *byte != 0);
    let magic = block.get(257..262) == Some(b"ustar");
    magic || named && block.len() >= 512 && checksum_holds(block)
}

impl Header {
    pub(super) fn parse(block: &[u8]) -> Result<Self, &'static str> {
        if !checksum_holds(block) {
            return Err("the checksum of a header is wrong");
        }
        let field = |from: usize, to: usize| block.get(from..to).unwrap_or_default();
        let size = number(field(124, 136)).ok_or("the size in a header is no number")?;
        let type_flag = *block.get(156).unwrap_or(&0);
        let name = text(field(0, 100));
        let prefix = text(field(345, 500));
        // GNU has times where POSIX has a prefix, and not every reader knows.
        let is_posix = field(257, 263) == b"ustar\0";
        let odd_prefix = !is_posix && !prefix.is_empty();
        let name = if is_posix && !prefix.is_empty() {
            [prefix, b"/", name].concat()
        } else {
            name.to_vec()
        };
        let kind = match type_flag {
            0 if name.ends_with(b"/") => Kind::Folder,
            0 | b'0' | b'7' => Kind::File,
            b'5' => Kind::Folder,
            b'L' => Kind::LongName,
            b'K' => Kind::LongLink,
            b'x' | b'X' => Kind::Pax,
            b'g' => Kind::PaxGlobal,
            b'1'..=b'4' | b'6' => Kind::Other,
            b'S' => Kind::Sparse,
            _ => Kind::Unknown,
        };
        Ok(Self { name, size, kind, type_flag, odd_prefix })
    }
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether the sum of all bytes is the one that is stored, its own field counting as spaces.
fn checksum_holds(block: &[u8]) -> bool {
    let Some(stored) = block.get(148..156).and_then(number) else { return false };
    let sum = |signed: bool| {
        block.iter().enumerate().take(512).fold(0_i64, |sum, (position, byte)| {
            let byte = if (148..156).contains(&position) { b' ' } else { *byte };
            let value = if signed { i64::from(byte.cast_signed()) } else { i64::from(byte) };
            sum.saturating_add(value)
        })
    };
    // Some old writers took bytes as signed.
    let stored = i64::try_from(stored).unwrap_or(i64::MAX);
    stored == sum(false) || stored == sum(true)
}

/// A number in octal digits, or in base 256 where the first bit is set.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if *first == 0x80 {
        return rest.iter().try_fold(0_u64, |number, byte| {
            number.checked_mul(256)?.checked_add(u64::from(*byte))
        });
    }
    let digits = field.trim_ascii_start();
    let end = digits.iter().position(|byte| *byte == 0 || *byte == b' ').unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    if rest.iter().any(|byte| *byte != 0 && *byte != b' ') {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        number.checked_mul(8)?.checked_add(u64::from(digit))
    })
}
