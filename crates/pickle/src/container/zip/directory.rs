//! The records of the central directory.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::{Finding, Findings};

use super::super::fields::{Fields, len};
use super::super::rules::{self, report};
use super::end::Directory;
use crate::{Error, Limits, Spans, Stop};

/// A record, with the 64-bit sizes put in.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: String,
    /// The bytes of the name, where they are not UTF-8.
    pub(super) raw_name: Option<Vec<u8>>,
    pub(super) method: u16,
    pub(super) flags: u16,
    pub(super) crc: u32,
    pub(super) compressed_size: u64,
    pub(super) size: u64,
    pub(super) header: u64,
}

impl Record {
    pub(super) fn name_bytes(&self) -> &[u8] {
        self.raw_name.as_deref().unwrap_or(self.name.as_bytes())
    }

    /// Whether a record follows its bytes that has its sizes.
    pub(super) fn has_descriptor(flags: u16) -> bool {
        flags & 0x8 != 0
    }
}

/// Reads every record.
pub(super) fn read(
    spans: &Spans,
    directory: &Directory,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<Vec<Record>, Stop> {
    let span = directory.span.clone();
    let size = span.end.saturating_sub(span.start);
    let limit = u64::from(limits.entries);
    if directory.entries > limit {
        let message =
            format!("the archive has {} members, the limit is {limit}", directory.entries);
        return Err(Error::new("limit-entries", message).at(span.start).into());
    }
    if size > limits.pickle_bytes {
        let message =
            format!("the directory has {size} bytes, the limit is {}", limits.pickle_bytes);
        return Err(Error::new("limit-pickle-bytes", message).at(span.start).into());
    }
    let mut fields = Fields::new(spans.get(span.clone())?);
    let mut records = Vec::new();
    while !fields.rest().is_empty() {
        let at = span.end.saturating_sub(len(fields.rest()));
        if !fields.rest().starts_with(b"PK\x01\x02") && len_of(&records) == directory.entries {
            let rest = len(fields.rest());
            findings.report(&rules::ZIP_COUNT, || {
                let message = format!("{rest} bytes of the directory are no record");
                Finding::new(&rules::ZIP_COUNT, message).at(at..span.end)
            });
            break;
        }
        let record = parse(&mut fields, at, directory.base, findings).ok_or_else(|| {
            Error::new("zip-directory", "no record of the directory begins here, or it is cut off")
                .at(at)
        })?;
        if len(record.name_bytes()) > u64::from(limits.name_bytes) {
            let message = format!(
                "a name has {} bytes, the limit is {}",
                record.name_bytes().len(),
                limits.name_bytes
            );
            return Err(Error::new("limit-name", message).at(at).into());
        }
        records.push(record);
        if len_of(&records) > limit {
            let message = format!("the archive has more members than the limit of {limit}");
            return Err(Error::new("limit-entries", message).at(at).into());
        }
    }
    if len_of(&records) != directory.entries {
        findings.report(&rules::ZIP_COUNT, || {
            let (has, says) = (records.len(), directory.entries);
            let message = format!("the directory has {has} members, the end record says {says}");
            Finding::new(&rules::ZIP_COUNT, message).at(span.clone())
        });
    }
    Ok(records)
}

fn len_of(records: &[Record]) -> u64 {
    u64::try_from(records.len()).unwrap_or(u64::MAX)
}

fn parse(fields: &mut Fields<'_>, at: u64, base: u64, findings: &mut Findings) -> Option<Record> {
    if fields.u32()? != 0x0201_4b50 {
        return None;
    }
    let _versions = fields.u32()?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    let _time = fields.u32()?;
    let crc = fields.u32()?;
    let (compressed_size, size) = (fields.u32()?, fields.u32()?);
    let (name_len, extra_len, comment_len) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let disk = fields.u16()?;
    let (_internal, _external) = (fields.u16()?, fields.u32()?);
    let header = fields.u32()?;
    let raw_name = fields.take(name_len.into())?;
    let extra = fields.take(extra_len.into())?;
    fields.take(comment_len.into())?;
    let name = String::from_utf8_lossy(raw_name);
    let raw_name = match name {
        Cow::Borrowed(_) => None,
        Cow::Owned(_) => Some(raw_name.to_vec()),
    };
    let name = name.into_owned();
    if raw_name.is_some() {
        report(findings, &rules::ZIP_NAME, &name, || String::from("the name is not UTF-8"));
    } else if !name.is_ascii() && flags & 0x800 == 0 {
        report(findings, &rules::ZIP_NAME_ENCODING, &name, || {
            String::from("the name is not marked as UTF-8")
        });
    }
    if comment_len > 0 {
        report(findings, &rules::ZIP_COMMENT, &name, || {
            format!("the member has a comment of {comment_len} bytes")
        });
    }
    let mut sizes = Sizes {
        size: size.into(),
        compressed_size: compressed_size.into(),
        header: Some(header.into()),
        known: None,
    };
    let name_now = raw_name.as_deref().unwrap_or(name.as_bytes());
    if let Err(wrong) = extras(extra, name_now, &mut sizes) {
        report(findings, &rules::ZIP_EXTRA, &name, || {
            format!("the extra fields of the record at {at}: {wrong}")
        });
    }
    if disk != 0 && disk != u16::MAX {
        report(findings, &rules::ZIP_EXTRA, &name, || format!("the member is on disk {disk}"));
    }
    flag_findings(flags, "directory", &name, findings);
    if method != 0 && method != 8 {
        report(findings, &rules::ZIP_METHOD, &name, || format!("the method is {method}"));
    }
    if method == 0 && sizes.size != sizes.compressed_size {
        report(findings, &rules::ZIP_STORED_SIZE, &name, || {
            let Sizes { size, compressed_size, .. } = sizes;
            format!("{size} bytes are stored as {compressed_size}")
        });
    }
    Some(Record {
        name,
        raw_name,
        method,
        flags,
        crc,
        compressed_size: sizes.compressed_size,
        size: sizes.size,
        header: sizes.header.unwrap_or(0).saturating_add(base),
    })
}

/// Reports flags that a checkpoint's members do not have.
pub(super) fn flag_findings(flags: u16, place: &str, name: &str, findings: &mut Findings) {
    // Encrypted, strongly so, or with its header masked.
    if flags & 0x2041 != 0 {
        report(findings, &rules::ZIP_ENCRYPTED, name, || {
            format!("the flags in the {place} are {flags:#06x}: encrypted")
        });
    }
    // Not the two of deflate's speed, a descriptor, UTF-8.
    if flags & !0x2041 & !0x080e != 0 {
        report(findings, &rules::ZIP_FLAGS, name, || {
            format!("the flags in the {place} are {flags:#06x}")
        });
    }
}

/// The fields that may be wider in an extra field.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) size: u64,
    pub(super) compressed_size: u64,
    /// Not in the header before a member.
    pub(super) header: Option<u64>,
    /// The sizes and the offset, where the sizes follow the member's bytes: only these may be in the extra field.
    pub(super) known: Option<[u64; 3]>,
}

/// Reads extra fields: the 64-bit sizes, and whatever would give the member another name.
pub(super) fn extras(extra: &[u8], name: &[u8], sizes: &mut Sizes) -> Result<(), &'static str> {
    let mut fields = Fields::new(extra);
    let mut wide = false;
    // Fewer than four bytes at the end are padding.
    while fields.rest().len() >= 4 {
        let (Some(id), Some(size)) = (fields.u16(), fields.u16()) else { break };
        let data = fields.take(size.into()).ok_or("a field is cut off")?;
        match id {
            0x0001 if wide => return Err("the 64-bit sizes come twice"),
            0x0001 => {
                wide = true;
                widen(data, sizes).ok_or("the 64-bit sizes are cut off, or differ")?;
            }
            0x7075 if data.get(5..).is_some_and(|other| other != name) => {
                return Err("another name, in Unicode");
            }
            _ => {}
        }
    }
    let narrow = u64::from(u32::MAX);
    let saturated =
        sizes.size == narrow || sizes.compressed_size == narrow || sizes.header == Some(narrow);
    if saturated && !wide { Err("the 64-bit sizes are not there") } else { Ok(()) }
}

/// Fields that are full are in the extra field, in this order. Some writers put all there: then they are the same.
fn widen(data: &[u8], sizes: &mut Sizes) -> Option<()> {
    let narrow = u64::from(u32::MAX);
    let mut fields = Fields::new(data);
    let full = |value: u64| value == narrow;
    if full(sizes.size) || full(sizes.compressed_size) || sizes.header.is_some_and(full) {
        if full(sizes.size) {
            sizes.size = fields.u64()?;
        }
        if full(sizes.compressed_size) {
            sizes.compressed_size = fields.u64()?;
        }
        if sizes.header.is_some_and(full) {
            sizes.header = Some(fields.u64()?);
        }
        return Some(());
    }
    let header = sizes.header.unwrap_or(0);
    // Torch leaves zeros in the header before a member, and has whichever of the three is large here.
    let known = sizes.known.filter(|_| sizes.size == 0 && sizes.compressed_size == 0);
    for narrow in [sizes.size, sizes.compressed_size, header] {
        match (fields.u64(), known) {
            (Some(value), Some(known)) if value != 0 && !known.contains(&value) => return None,
            (Some(value), None) if value != narrow => return None,
            _ => {}
        }
    }
    Some(())
}
