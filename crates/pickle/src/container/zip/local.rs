//! The headers before the members' bytes, and the records after them, compared with the directory.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use weigh_format::{Finding, Findings};

use super::super::fields::{Fields, len};
use super::super::rules::{self, report};
use super::directory::{Record, Sizes, extras, flag_findings};
use crate::spans::Batch;
use crate::{Spans, Stop};

/// Bytes of a header without its name and extra fields.
const FIXED: u64 = 30;
/// Bytes of extra fields that are read with a header at first: torch pads with them to 64.
const EXTRA: u64 = 128;
/// Bytes of the longest record after a member's bytes.
const DESCRIPTOR: u64 = 24;

/// What a header says.
struct Header<'a> {
    flags: u16,
    method: u16,
    crc: u32,
    sizes: Sizes,
    name: &'a [u8],
    extra: &'a [u8],
}

impl<'a> Header<'a> {
    /// The header of these bytes; `Err` has how many it needs.
    fn parse(bytes: &'a [u8]) -> Result<Option<Self>, u64> {
        let mut fields = Fields::new(bytes);
        let fixed = |fields: &mut Fields<'_>| {
            let signature = fields.u32()?;
            fields.u16()?;
            let (flags, method) = (fields.u16()?, fields.u16()?);
            fields.u32()?;
            let crc = fields.u32()?;
            let (compressed_size, size) = (fields.u32()?.into(), fields.u32()?.into());
            let lens = (fields.u16()?, fields.u16()?);
            let sizes = Sizes { size, compressed_size, header: None, known: None };
            Some((signature, flags, method, crc, sizes, lens))
        };
        let Some((0x0403_4b50, flags, method, crc, sizes, (name_len, extra_len))) =
            fixed(&mut fields)
        else {
            return Ok(None);
        };
        let needed = FIXED.saturating_add(name_len.into()).saturating_add(extra_len.into());
        let (Some(name), Some(extra)) =
            (fields.take(name_len.into()), fields.take(extra_len.into()))
        else {
            return Err(needed);
        };
        Ok(Some(Self { flags, method, crc, sizes, name, extra }))
    }

    fn len(&self) -> u64 {
        FIXED.saturating_add(len(self.name)).saturating_add(len(self.extra))
    }
}

/// Where each member's bytes are: `None` if they are not its own.
pub(super) fn check(
    spans: &Spans,
    records: &[Record],
    base: u64,
    directory: &Range<u64>,
    findings: &mut Findings,
) -> Result<Vec<Option<Range<u64>>>, Stop> {
    let headers = headers(spans, records, directory)?;
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|position| records.get(*position).map(|record| record.header));
    let is_there = |position: &&usize| headers.get(**position).is_some_and(Option::is_some);
    let starts: Vec<u64> = order
        .iter()
        .filter(is_there)
        .filter_map(|position| Some(records.get(*position)?.header))
        .collect();
    // What follows the bytes of each member, in the order of the file, once all of it was read.
    let mut after = Batch::default();
    let mut checked: Vec<Option<(Range<u64>, &[u8])>> = vec![None; records.len()];
    for position in &order {
        let (Some(record), Some(Some(header))) = (records.get(*position), headers.get(*position))
        else {
            continue;
        };
        let start = record.header.saturating_add(header.len());
        let Some(end) =
            start.checked_add(record.compressed_size).filter(|end| *end <= directory.start)
        else {
            continue;
        };
        let room = if Record::has_descriptor(header.flags | record.flags) { DESCRIPTOR } else { 0 };
        let next = starts.get(starts.partition_point(|start| *start < end));
        let next = next.copied().unwrap_or(directory.start).min(directory.start);
        let room = end..end.saturating_add(room).min(next).max(end);
        if let (Some(bytes), Some(checked)) = (after.get(spans, room)?, checked.get_mut(*position))
        {
            *checked = Some((start..end, bytes));
        }
    }
    after.finish()?;
    let mut places = vec![None; records.len()];
    let mut cursor = 0;
    for position in order {
        let Some(record) = records.get(position) else { continue };
        let Some(Some(header)) = headers.get(position) else {
            report(findings, &rules::ZIP_LOCAL_MISSING, &record.name, || {
                format!("no header is at {}", record.header)
            });
            continue;
        };
        compare(record, header, findings);
        let Some(Some((span, after))) = checked.get(position) else {
            report(findings, &rules::ZIP_LOCAL_MISSING, &record.name, || {
                let Record { compressed_size, header, .. } = record;
                format!("{compressed_size} bytes from {header} on do not end before the directory")
            });
            continue;
        };
        if record.header < cursor {
            report(findings, &rules::ZIP_OVERLAP, &record.name, || {
                format!("begins at {}, where another member ends at {cursor}", record.header)
            });
            cursor = cursor.max(span.end);
            continue;
        }
        gap(cursor.max(base)..record.header, findings);
        let tail = descriptor(record, header, after, findings);
        cursor = span.end.saturating_add(tail);
        if let Some(place) = places.get_mut(position) {
            *place = Some(span.clone());
        }
    }
    gap(cursor.max(base)..directory.start, findings);
    Ok(places)
}

fn gap(span: Range<u64>, findings: &mut Findings) {
    if span.start < span.end {
        findings.report(&rules::ZIP_GAP, || {
            let count = span.end.saturating_sub(span.start);
            let message = format!("{count} bytes belong to no member");
            Finding::new(&rules::ZIP_GAP, message).at(span)
        });
    }
}

/// The header of every record; `None` where none is.
fn headers<'a>(
    spans: &'a Spans,
    records: &[Record],
    directory: &Range<u64>,
) -> Result<Vec<Option<Header<'a>>>, Stop> {
    let mut wanted = Batch::default();
    let mut headers = Vec::new();
    for record in records {
        let rest = directory.start.saturating_sub(record.header);
        if rest < FIXED {
            headers.push(None);
            continue;
        }
        let mut size = FIXED.saturating_add(len(record.name_bytes())).min(rest);
        let header = loop {
            let span = record.header..record.header.saturating_add(size);
            match spans.get(span.clone()) {
                Ok(bytes) => match Header::parse(bytes) {
                    Ok(header) => break header,
                    Err(needed) if needed > size && needed <= rest => size = needed,
                    Err(_) => break None,
                },
                Err(Stop::Missing(_)) => {
                    // With what may follow the member before, and extra fields as they usually are.
                    let from = record.header.saturating_sub(DESCRIPTOR);
                    let end = span.end.saturating_add(EXTRA).min(directory.start);
                    wanted.get(spans, from..end)?;
                    break None;
                }
                Err(fault) => return Err(fault),
            }
        };
        headers.push(header);
    }
    if !records.is_empty() {
        wanted.get(spans, directory.start.saturating_sub(DESCRIPTOR)..directory.start)?;
    }
    wanted.finish()?;
    Ok(headers)
}

fn compare(record: &Record, header: &Header<'_>, findings: &mut Findings) {
    let name = &record.name;
    if header.name != record.name_bytes() {
        report(findings, &rules::ZIP_LOCAL_NAME, name, || {
            format!(
                "its header has the name {}",
                alloc::string::String::from_utf8_lossy(header.name)
            )
        });
    }
    if header.flags != record.flags {
        report(findings, &rules::ZIP_LOCAL_HEADER, name, || {
            format!(
                "its header has the flags {:#06x}, the directory {:#06x}",
                header.flags, record.flags
            )
        });
        flag_findings(header.flags, "header", name, findings);
    }
    if header.method != record.method {
        report(findings, &rules::ZIP_LOCAL_HEADER, name, || {
            format!("its header has the method {}, the directory {}", header.method, record.method)
        });
    }
    // Where sizes follow the bytes, those before are zero, or what they will be.
    let follows = Record::has_descriptor(header.flags);
    let mut sizes = header.sizes;
    sizes.known = follows.then_some([record.size, record.compressed_size, record.header]);
    let extra = extras(header.extra, header.name, &mut sizes);
    let full = u64::from(u32::MAX);
    if let Err(wrong) = extra
        && !(follows && (sizes.size == full || sizes.compressed_size == full))
    {
        report(findings, &rules::ZIP_EXTRA, name, || {
            format!("the extra fields of the header at {}: {wrong}", record.header)
        });
    }
    let told =
        |local: u64, central: u64| local == central || follows && (local == 0 || local == full);
    let crc = u64::from(header.crc);
    if !told(sizes.size, record.size) || !told(sizes.compressed_size, record.compressed_size) {
        report(findings, &rules::ZIP_LOCAL_HEADER, name, || {
            format!(
                "its header has {} bytes as {}, the directory {} as {}",
                sizes.size, sizes.compressed_size, record.size, record.compressed_size
            )
        });
    }
    if crc != u64::from(record.crc) && !(follows && crc == 0) {
        report(findings, &rules::ZIP_CRC, name, || {
            format!("its header has the checksum {crc:08x}, the directory {:08x}", record.crc)
        });
    }
}

/// How many bytes the record after a member's bytes has.
fn descriptor(record: &Record, header: &Header<'_>, after: &[u8], findings: &mut Findings) -> u64 {
    if !Record::has_descriptor(header.flags) {
        return 0;
    }
    let Record { crc, compressed_size, size, name, .. } = record;
    let signed = after.starts_with(b"PK\x07\x08");
    // With a signature or without, the sizes of 64 bits or 32.
    let matches = |signature: usize, wide: bool| {
        let mut fields = Fields::new(after);
        fields.take(signature)?;
        let found = fields.u32()?;
        let sizes = if wide {
            (fields.u64()?, fields.u64()?)
        } else {
            (fields.u32()?.into(), fields.u32()?.into())
        };
        (found == *crc && sizes == (*compressed_size, *size))
            .then_some(len(after).saturating_sub(len(fields.rest())))
    };
    let shapes = [(4, true), (4, false), (0, true), (0, false)];
    let found: Vec<u64> = shapes
        .into_iter()
        .filter(|(signature, _)| *signature == 0 || signed)
        .filter_map(|(signature, wide)| matches(signature, wide))
        .collect();
    let exact = found.iter().copied().find(|found| *found == len(after));
    exact.or(found.first().copied()).unwrap_or_else(|| {
        report(findings, &rules::ZIP_DESCRIPTOR, name, || {
            format!("{} bytes after its bytes are not what the directory says", after.len())
        });
        // As long as it may be, so that one fault is not told as two.
        if signed && after.len() < 24 { len(after).min(16) } else { len(after) }
    })
}
