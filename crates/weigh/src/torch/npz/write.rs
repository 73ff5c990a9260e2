//! An archive of arrays laid out to be written: stored members, whose elements begin on a multiple of 64 bytes, so that
//! numpy and others can map it. The same tensors give the same bytes: members have the year 1980, and are in the order
//! that they are given in.

use std::ops::Range;

use weigh_format::Dtype;

use crate::work;

/// What numpy calls elements, if it has them.
pub(in crate::torch) fn descr(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
        Dtype::BOOL => "|b1",
        Dtype::U8 => "|u1",
        Dtype::I8 => "|i1",
        Dtype::U16 => "<u2",
        Dtype::I16 => "<i2",
        Dtype::U32 => "<u4",
        Dtype::I32 => "<i4",
        Dtype::U64 => "<u8",
        Dtype::I64 => "<i8",
        Dtype::F16 => "<f2",
        Dtype::F32 => "<f4",
        Dtype::F64 => "<f8",
        Dtype::C64 => "<c8",
        _ => return None,
    })
}

/// The unsigned integers that elements which numpy has not are given as, and the shape; none for those that have no
/// whole bytes.
pub(in crate::torch) fn raw(dtype: Dtype, shape: &[u64]) -> Option<(&'static str, Vec<u64>)> {
    let mut shape = shape.to_vec();
    match dtype {
        Dtype::BF16 => Some(("<u2", shape)),
        Dtype::F4 => {
            let last = shape.last_mut().filter(|last| last.is_multiple_of(2))?;
            *last /= 2;
            Some(("|u1", shape))
        }
        _ if dtype.bits() == 8 => Some(("|u1", shape)),
        _ => None,
    }
}

/// An array that is to be written.
#[derive(Debug)]
pub(in crate::torch) struct Member {
    /// The name of the member, `.npy` included.
    name: String,
    /// The header of the array.
    npy: Vec<u8>,
    /// Where the header of the member begins.
    begin: u64,
    /// Where the array begins.
    start: u64,
    /// Where its elements are.
    pub(in crate::torch) data: Range<u64>,
}

/// What the elements of arrays begin on a multiple of.
const ALIGNMENT: u64 = 64;

/// Lays out an archive of arrays: their names, what numpy calls their elements, their shapes and their bytes.
pub(in crate::torch) fn lay_out<'a>(
    arrays: impl Iterator<Item = (&'a str, &'static str, &'a [u64], u64)>,
) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let mut begin = 0_u64;
    for (name, descr, shape, bytes) in arrays {
        let npy = npy_header(descr, shape);
        let size = work::length(&npy).saturating_add(bytes);
        let name = format!("{name}.npy");
        if name.len() > usize::from(u16::MAX) {
            return Err(name);
        }
        let fixed = 30 + work::length(name.as_bytes()) + wide_extra(size);
        // A field of padding takes four bytes at least.
        let start = begin.saturating_add(fixed + 4).next_multiple_of(ALIGNMENT);
        let first = start.saturating_add(work::length(&npy));
        let data = first..first.saturating_add(bytes);
        members.push(Member { name, npy, begin, start, data: data.clone() });
        begin = data.end;
    }
    Ok(members)
}

/// Bytes of the field of 64-bit sizes before a member, if it has one.
fn wide_extra(size: u64) -> u64 {
    if is_wide(size) { 20 } else { 0 }
}

fn is_wide(value: u64) -> bool {
    value >= u64::from(u32::MAX)
}

/// The header of an array, as long as to be followed by elements on a multiple of 64.
fn npy_header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", sizes.join(", "));
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let alignment = size_of_alignment();
    let is_long = text.len() + 11 > usize::from(u16::MAX) - alignment;
    let before = if is_long { 12 } else { 10 };
    let total = (before + text.len() + 1).next_multiple_of(alignment);
    let length = total - before;
    let mut header = b"\x93NUMPY".to_vec();
    if is_long {
        header.extend([2, 0]);
        header.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    } else {
        header.extend([1, 0]);
        header.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    }
    header.extend(text.as_bytes());
    header.resize(total - 1, b' ');
    header.push(b'\n');
    header
}

fn size_of_alignment() -> usize {
    usize::try_from(ALIGNMENT).unwrap_or(64)
}

impl Member {
    fn size(&self) -> u64 {
        self.data.end.saturating_sub(self.start)
    }

    /// What is before its elements, with its checksum. Says where it goes.
    pub(in crate::torch) fn head(&self, sum_of_data: u32) -> (u64, Vec<u8>, u32) {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.npy);
        let data = crc32fast::Hasher::new_with_initial_len(
            sum_of_data,
            self.data.end.saturating_sub(self.data.start),
        );
        hasher.combine(&data);
        let crc = hasher.finalize();
        let size = self.size();
        let wide = is_wide(size);
        let mut head = Vec::new();
        head.extend(0x0403_4b50_u32.to_le_bytes());
        head.extend(common(crc, size, wide, self.name.len()));
        let extra = self.start - self.begin - 30 - work::length(self.name.as_bytes());
        head.extend(narrow16(extra).to_le_bytes());
        head.extend(self.name.as_bytes());
        if wide {
            head.extend([1, 0, 16, 0]);
            head.extend(size.to_le_bytes());
            head.extend(size.to_le_bytes());
        }
        let padding = extra - wide_extra(size) - 4;
        // The field that torch pads with.
        head.extend(b"FB");
        head.extend(narrow16(padding).to_le_bytes());
        head.resize(head.len() + usize::from(narrow16(padding)), 0);
        head.extend(&self.npy);
        (self.begin, head, crc)
    }
}

/// The fields of both headers of a member from the version to the length of its name: stored, UTF-8, of the first of
/// January 1980.
fn common(crc: u32, size: u64, wide: bool, name: usize) -> Vec<u8> {
    let mut fields = Vec::new();
    let version: u16 = if wide { 45 } else { 20 };
    fields.extend(version.to_le_bytes());
    fields.extend(0x0800_u16.to_le_bytes());
    fields.extend([0, 0]);
    fields.extend([0, 0, 0x21, 0]);
    fields.extend(crc.to_le_bytes());
    fields.extend(narrow32(size).to_le_bytes());
    fields.extend(narrow32(size).to_le_bytes());
    fields.extend(u16::try_from(name).unwrap_or(u16::MAX).to_le_bytes());
    fields
}

fn narrow16(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn narrow32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The directory of an archive, which begins at `start`: all that is after the last array.
pub(in crate::torch) fn directory(members: &[(&Member, u32)], start: u64) -> Vec<u8> {
    let mut directory = Vec::new();
    for (member, crc) in members {
        let (size, begin) = (member.size(), member.begin);
        let mut extra = Vec::new();
        if is_wide(size) {
            extra.extend(size.to_le_bytes());
            extra.extend(size.to_le_bytes());
        }
        if is_wide(begin) {
            extra.extend(begin.to_le_bytes());
        }
        let wide = !extra.is_empty();
        let version: u16 = if wide { 45 } else { 20 };
        directory.extend(0x0201_4b50_u32.to_le_bytes());
        directory.extend(version.to_le_bytes());
        directory.extend(common(*crc, size, wide, member.name.len()));
        let extra_len = if wide { extra.len() + 4 } else { 0 };
        directory.extend(u16::try_from(extra_len).unwrap_or_default().to_le_bytes());
        // No comment, the first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend(narrow32(begin).to_le_bytes());
        directory.extend(member.name.as_bytes());
        if wide {
            directory.extend([1, 0]);
            directory.extend(u16::try_from(extra.len()).unwrap_or_default().to_le_bytes());
            directory.extend(extra);
        }
    }
    let (count, length) = (members.len() as u64, work::length(&directory));
    if count >= u64::from(u16::MAX) || is_wide(length) || is_wide(start) {
        let end = start.saturating_add(length);
        directory.extend(0x0606_4b50_u32.to_le_bytes());
        directory.extend(44_u64.to_le_bytes());
        directory.extend([45, 0, 45, 0]);
        directory.extend([0; 8]);
        for field in [count, count, length, start] {
            directory.extend(field.to_le_bytes());
        }
        directory.extend(0x0706_4b50_u32.to_le_bytes());
        directory.extend([0; 4]);
        directory.extend(end.to_le_bytes());
        directory.extend(1_u32.to_le_bytes());
    }
    directory.extend(0x0605_4b50_u32.to_le_bytes());
    directory.extend([0; 4]);
    directory.extend(narrow16(count).to_le_bytes());
    directory.extend(narrow16(count).to_le_bytes());
    directory.extend(narrow32(length).to_le_bytes());
    directory.extend(narrow32(start).to_le_bytes());
    directory.extend([0, 0]);
    directory
}

/// Whether the name of a tensor is one that readers of archives take for what it is.
pub(in crate::torch) fn is_plain_name(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !name.chars().any(|character| character.is_control() || character == '\\')
        && name.split('/').all(is_plain)
        && name.as_bytes().get(1) != Some(&b':')
}

#[cfg(test)]
mod tests {
    use weigh_pickle::container::npy;

    use super::*;

    #[test]
    fn headers_are_as_numpy_writes_them() {
        for (shape, want) in [(&[][..], "()"), (&[3], "(3,)"), (&[2, 3], "(2, 3)")] {
            let header = npy_header("<f4", shape);
            assert_eq!(header.len() % 64, 0);
            let text = String::from_utf8(header[10..].to_vec()).unwrap();
            let want = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {want}, }}");
            assert_eq!(text.trim_end(), want);
            let read = npy::header(&header).unwrap();
            assert_eq!((read.shape.as_slice(), read.len), (shape, header.len() as u64));
        }
        let long = npy_header("<f4", &vec![1; 30_000]);
        assert_eq!((long[6], npy::header_len(&long).unwrap()), (2, long.len() as u64));
    }

    #[test]
    fn elements_begin_on_multiples_of_64_however_large_members_are() {
        let large = 5_u64 << 30;
        let arrays = [("a", 3), ("b", large), ("c", 0), ("d", 1)];
        let shapes = arrays.map(|(_, bytes)| [bytes]);
        let arrays = arrays
            .iter()
            .zip(&shapes)
            .map(|((name, bytes), shape)| (*name, "|u1", shape.as_slice(), *bytes));
        let members = lay_out(arrays).unwrap();
        let mut end = 0;
        for member in &members {
            assert_eq!(member.begin, end);
            assert_eq!(member.data.start % 64, 0);
            let (at, head, _) = member.head(0);
            assert_eq!((at, at + head.len() as u64), (member.begin, member.data.start));
            end = member.data.end;
        }
        let ends: Vec<(&Member, u32)> = members.iter().map(|member| (member, 0)).collect();
        assert!(directory(&ends, end).windows(4).any(|it| it == 0x0606_4b50_u32.to_le_bytes()));
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_plain_names() {
        for (name, plain) in [
            ("a", true),
            ("a.b/c", true),
            ("..a", true),
            ("", false),
            ("/a", false),
            ("a/../b", false),
            ("a\\b", false),
            ("a\0", false),
            ("c:a", false),
        ] {
            assert_eq!(is_plain_name(name), plain, "{name:?}");
        }
    }
}
