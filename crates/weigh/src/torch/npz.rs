//! numpy's `.npy` and `.npz`: read as inputs, and `.npz` laid out to be written.
//!
//! What is written is a zip archive of stored members, so that numpy and others can map it: the elements of each array
//! begin on a multiple of 64 bytes. The same tensors give the same bytes: members have the year 1980, and are in the
//! order of their names.

use std::ops::Range;

use weigh_format::{Dtype, Findings};
use weigh_io::FileSource;
use weigh_pickle::Error as PickleError;
use weigh_pickle::container::inflate::Inflater;
use weigh_pickle::container::layout::{self, Contents};
use weigh_pickle::container::npy::{self, Element, Header};
use weigh_pickle::container::torch::ByteOrder;
use weigh_pickle::container::zip::{Entry, Method};
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::transform::Transforms;

use super::convert::input::{self, Beside, Draft, Input, Opened, Unconverted};
use super::convert::{Complex, ConvertOptions};
use super::gather::{Blob, Bytes, Gathered, Make, Pattern};
use super::reading::Reading;
use crate::{Error, work};

/// Whether the first member of an archive is an array.
pub(super) fn begins_as_npz(source: &FileSource) -> Result<bool, Error> {
    let head = source.read_span(0..source.len().min(30))?;
    let Some([low, high]) = head.get(26..28) else { return Ok(false) };
    let end = 30 + u64::from(u16::from_le_bytes([*low, *high]));
    Ok(end <= source.len() && source.read_span(30..end)?.ends_with(b".npy"))
}

/// Reads the headers of all arrays of an archive.
pub(super) fn read_npz(
    into: &mut Input,
    source: FileSource,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let limits = input::limits(options);
    let mut reading = Reading::new(&source, limits);
    let layout = reading.ask(|spans| layout::open(spans, limits));
    let layout = layout.map_err(|fault| fault.of(&source))?;
    input::refuse_ambiguous(&source, &layout.findings, options.torch.ignore_crc)?;
    let Contents::Npz(archive) = &layout.contents else {
        let message = "not every member of the archive is an array of numpy";
        return Err(Error::torch(source.path(), PickleError::new("not-npz", message)));
    };
    let mut findings = Findings::new();
    for entry in archive.entries.iter().filter(|entry| !entry.is_folder()) {
        let failed = |error: PickleError| Error::torch(source.path(), error.member(&entry.name));
        let (header, head, bytes) = match entry.method {
            Method::Stored => {
                let span = entry.stored().ok_or_else(|| failed(no_bytes()))?;
                let array = reading.ask(|spans| npy::read(spans, span.clone()));
                let array = array.map_err(|fault| match fault {
                    super::reading::Fault::Content(error) => failed(error),
                    fault => fault.of(&source),
                })?;
                array.findings.list().iter().for_each(|finding| findings.push(finding.clone()));
                let end = span.start.saturating_add(array.header.len).min(span.end);
                let head = source.read_span(span.start..end)?;
                let bytes = Bytes::Stored { source: into.opened.len(), start: span.start };
                (array.header, head, bytes)
            }
            _ => {
                let header = inflated_header(&source, entry)?;
                let span = entry.span.clone().ok_or_else(|| failed(no_bytes()))?;
                let (source, entry) = (into.opened.len(), Box::new(entry.clone()));
                (header, Vec::new(), Bytes::Deflated { source, span, entry })
            }
        };
        let name = entry.name.strip_suffix(".npy").unwrap_or(&entry.name);
        let blob = Blob {
            name: entry.name.clone(),
            len: entry.size,
            bytes,
            crc: entry.crc.filter(|_| !options.torch.ignore_crc),
            head,
        };
        add(into, &source, name, &header, blob, options)?;
    }
    into.opened.push(Opened::File(source));
    Ok(())
}

/// Reads the header of an array that is a file of its own.
pub(super) fn read_npy(
    into: &mut Input,
    source: FileSource,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let mut reading = Reading::new(&source, input::limits(options));
    let array = reading.ask(|spans| npy::read(spans, 0..spans.len()));
    let array = array.map_err(|fault| fault.of(&source))?;
    let blob = Blob {
        name: String::new(),
        len: source.len(),
        bytes: Bytes::Stored { source: into.opened.len(), start: 0 },
        crc: None,
        head: Vec::new(),
    };
    let stem = source.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    add(into, &source, &stem, &array.header, blob, options)?;
    into.opened.push(Opened::File(source));
    Ok(())
}

fn no_bytes() -> PickleError {
    PickleError::new("zip-no-bytes", "it has no bytes of its own in the file")
}

/// Adds an array.
fn add(
    into: &mut Input,
    source: &FileSource,
    name: &str,
    header: &Header,
    blob: Blob,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let failed = |error: PickleError| Error::torch(source.path(), error.member(&blob.name));
    let mut shape = header.shape.clone();
    let (torch, dtype, swap) = match element(&header.element, options) {
        Ok(element) => element,
        Err(refusal)
            if is_no_number(&header.element) && !options.torch.all && !blob.name.is_empty() =>
        {
            into.beside_count = into.beside_count.saturating_add(1);
            into.beside.push(Beside {
                name: name.into(),
                why: refusal.to_string(),
                has_tensors: false,
                json: None,
            });
            return Ok(());
        }
        Err(refusal) => {
            into.unconverted.push(Unconverted {
                name: name.into(),
                code: refusal.code(),
                why: refusal.to_string(),
                help: refusal.help(),
                shape: Some(shape),
                bytes: None,
            });
            return Ok(());
        }
    };
    let element = torch.bytes();
    let elements = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
    };
    let end = elements
        .and_then(|elements| elements.checked_mul(element))
        .and_then(|bytes| header.len.checked_add(bytes))
        .filter(|end| *end <= blob.len);
    if let Some(end) = end.filter(|end| *end < blob.len) {
        // Arrays that were saved to one file one after the other, of which numpy gives one at a time.
        let message = format!(
            "the array ends at byte {end} of {}: {} bytes follow, maybe of other arrays",
            blob.len,
            blob.len.saturating_sub(end)
        );
        let error = PickleError::new("npy-trailing-bytes", message);
        let is_alone = blob.name.is_empty();
        return Err(if is_alone { Error::torch(source.path(), error) } else { failed(error) });
    }
    let Some(end) = end else {
        let message = format!("the elements do not end before byte {}", blob.len);
        return Err(failed(PickleError::new("npy-truncated", message)));
    };
    let pattern = if header.fortran_order {
        Pattern::fortran(header.len, element, &shape)
    } else {
        Pattern::span(header.len..end)
    };
    if torch.is_complex() && dtype != Dtype::C64 {
        shape.push(2);
    }
    let transforms = Transforms { swap, ..Transforms::default() };
    let file = into.opened.len();
    let blob = into.add_blob(blob);
    into.drafts.push(Draft {
        name: name.into(),
        dtype,
        shape,
        from: torch.name().into(),
        gathered: Gathered { blob, pattern, make: Make::of(torch, transforms) },
        file,
        part: None,
    });
    Ok(())
}

/// Whether elements are text, dates or objects, so that an array of them is no tensor.
fn is_no_number(element: &Element) -> bool {
    let is_text = |name: &str| {
        let plain = name.trim_start_matches(['<', '>', '=', '|']);
        plain.starts_with(['U', 'S', 'a', 'M', 'm'])
    };
    match element {
        Element::Object => true,
        Element::Other { name } => is_text(name),
        _ => false,
    }
}

/// The elements, what they are written as, and whether their bytes are the other way round.
fn element(
    element: &Element,
    options: &ConvertOptions,
) -> Result<(TorchDtype, Dtype, bool), Refusal> {
    match element {
        Element::Number { dtype, byte_order } => {
            let torch = TorchDtype::ALL.iter().find(|it| it.safetensors() == Ok(*dtype));
            let torch = torch.ok_or_else(|| Refusal::Numpy(dtype.name().into()))?;
            Ok((*torch, *dtype, *byte_order == ByteOrder::Big))
        }
        Element::Object => Err(Refusal::Objects),
        Element::Other { name } => match name.as_str() {
            "<c16" | ">c16" if options.complex == Complex::ViewReal => {
                Ok((TorchDtype::Complex128, Dtype::F64, name.starts_with('>')))
            }
            "<c16" | ">c16" => Err(Refusal::Complex(TorchDtype::Complex128)),
            _ => Err(Refusal::Numpy(name.clone())),
        },
        _ => Err(Refusal::Numpy("unknown".into())),
    }
}

/// The header of an array that is deflated.
fn inflated_header(source: &FileSource, entry: &Entry) -> Result<Header, Error> {
    let failed = |error: PickleError| Error::torch(source.path(), error.member(&entry.name));
    let mut span = entry.span.clone().ok_or_else(|| failed(no_bytes()))?;
    let mut inflater = Inflater::new(entry);
    let (mut head, mut wanted) = (Vec::new(), npy::PREFIX);
    let (mut raw, mut used) = (Vec::new(), 0);
    let mut piece = [0; 4096];
    loop {
        if work::length(&head) >= wanted {
            let len = npy::header_len(&head).map_err(failed)?;
            if work::length(&head) >= len {
                return npy::header(&head).map_err(failed);
            }
            wanted = len;
        }
        if used == raw.len() && !span.is_empty() {
            let end = span.end.min(span.start.saturating_add(4096));
            raw = source.read_span(span.start..end)?;
            (used, span.start) = (0, end);
        }
        let rest = raw.get(used..).unwrap_or_default();
        let step = inflater.step(rest, &mut piece).map_err(failed)?;
        if step.taken == 0 && step.given == 0 {
            let message = "the file ends in the header";
            return Err(failed(PickleError::new("npy-header", message)));
        }
        used += step.taken;
        head.extend_from_slice(piece.get(..step.given).unwrap_or_default());
    }
}

/// What numpy calls elements, if it has them.
pub(super) fn descr(dtype: Dtype) -> Option<&'static str> {
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
pub(super) fn raw(dtype: Dtype, shape: &[u64]) -> Option<(&'static str, Vec<u64>)> {
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
pub(super) struct Member {
    /// The name of the member, `.npy` included.
    name: String,
    /// The header of the array.
    npy: Vec<u8>,
    /// Where the header of the member begins.
    begin: u64,
    /// Where the array begins.
    start: u64,
    /// Where its elements are.
    pub(super) data: Range<u64>,
}

/// What the elements of arrays begin on a multiple of.
const ALIGNMENT: u64 = 64;

/// Lays out an archive of arrays: their names, what numpy calls their elements, their shapes and their bytes.
pub(super) fn lay_out<'a>(
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
    pub(super) fn head(&self, sum_of_data: u32) -> (u64, Vec<u8>, u32) {
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
pub(super) fn directory(members: &[(&Member, u32)], start: u64) -> Vec<u8> {
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
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !name.chars().any(|character| character.is_control() || character == '\\')
        && name.split('/').all(is_plain)
        && name.as_bytes().get(1) != Some(&b':')
}

#[cfg(test)]
mod tests {
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
