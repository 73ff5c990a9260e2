//! Where the directory of a zip archive is: its end record, and the 64-bit one.

use alloc::format;
use core::ops::Range;

use weigh_format::{Finding, Findings};

use super::super::fields::{Fields, len};
use super::super::rules;
use crate::{Error, Spans, Stop};

/// Bytes of an end record without its comment.
const RECORD: u64 = 22;
/// Bytes of a locator of a 64-bit end record.
const LOCATOR: u64 = 20;
/// Bytes of a 64-bit end record.
const RECORD_64: u64 = 56;

/// The bytes of a file in which an archive's end record may be, and its 64-bit one.
pub(crate) fn tail(file_len: u64) -> Range<u64> {
    let most = RECORD.saturating_add(u64::from(u16::MAX)).saturating_add(LOCATOR + RECORD_64);
    file_len.saturating_sub(most)..file_len
}

/// An end record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Where it is.
    at: u64,
    disk: u16,
    directory_disk: u16,
    entries_here: u16,
    entries: u16,
    size: u32,
    offset: u32,
    comment: u16,
}

/// What the end records say.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// The directory's bytes.
    pub(super) span: Range<u64>,
    /// How many entries it should have.
    pub(super) entries: u64,
    /// What is added to every offset that the archive gives.
    pub(super) base: u64,
}

/// The last end record in the tail of a file.
pub(crate) fn find(tail: &[u8], tail_start: u64) -> Option<End> {
    let file_end = tail_start.saturating_add(len(tail));
    records(tail, tail_start).find(|end| end.plausible(file_end))
}

/// Everything in the tail of a file that begins as an end record does, the last first.
fn records(tail: &[u8], tail_start: u64) -> impl Iterator<Item = End> + '_ {
    let starts = tail.windows(4).enumerate().rev();
    starts.filter(|(_, window)| *window == b"PK\x05\x06").filter_map(move |(position, _)| {
        let at = tail_start.checked_add(u64::try_from(position).ok()?)?;
        End::parse(tail.get(position..)?, at)
    })
}

impl End {
    fn parse(bytes: &[u8], at: u64) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        fields.u32()?;
        Some(Self {
            at,
            disk: fields.u16()?,
            directory_disk: fields.u16()?,
            entries_here: fields.u16()?,
            entries: fields.u16()?,
            size: fields.u32()?,
            offset: fields.u32()?,
            comment: fields.u16()?,
        })
    }

    /// Where its comment ends.
    pub(crate) fn end(&self) -> u64 {
        self.at.saturating_add(RECORD).saturating_add(u64::from(self.comment))
    }

    /// Whether the directory that it speaks of could be there. Four bytes alone may be a coincidence.
    fn plausible(&self, file_end: u64) -> bool {
        let fits = u64::from(self.size).saturating_add(u64::from(self.offset)) <= self.at;
        self.end() <= file_end
            && (self.disk == 0 || self.disk == u16::MAX)
            && (fits || self.size == u32::MAX || self.offset == u32::MAX)
    }
}

/// Finds the directory.
pub(super) fn directory(spans: &Spans, findings: &mut Findings) -> Result<Directory, Stop> {
    let span = tail(spans.len());
    let tail = spans.get(span.clone())?;
    let end = find(tail, span.start).ok_or_else(|| {
        Error::new("zip-no-end", "the archive has no end record: it is cut off, or no archive")
    })?;
    look_around(&end, tail, span.start, spans.len(), findings);
    let (mut entries, mut size, mut offset) =
        (u64::from(end.entries), u64::from(end.size), u64::from(end.offset));
    let mut spanned = end.disk != end.directory_disk || end.entries_here != end.entries;
    let mut directory_end = end.at;
    if let Some(wide) = wide(&end, spans, findings)? {
        let told = |narrow: u64, most: u64, wide: u64| narrow == most || narrow == wide;
        if !(told(entries, u16::MAX.into(), wide.entries)
            && told(size, u32::MAX.into(), wide.size)
            && told(offset, u32::MAX.into(), wide.offset))
        {
            findings.report(&rules::ZIP_ZIP64, || {
                let message = format!(
                    "the end record has {entries} entries in {size} bytes at {offset}, the 64-bit one {} in {} at {}",
                    wide.entries, wide.size, wide.offset
                );
                Finding::new(&rules::ZIP_ZIP64, message).at(wide.at..end.at)
            });
        }
        spanned = wide.spanned;
        directory_end = wide.at;
        (entries, size, offset) = (wide.entries, wide.size, wide.offset);
    }
    if spanned {
        return Err(Error::new("zip-spanned", "the archive is one part of several")
            .at(end.at)
            .into());
    }
    place(spans, findings, directory_end, entries, size, offset)
}

/// Where the directory is that should be at `offset` and end at `directory_end`.
fn place(
    spans: &Spans,
    findings: &mut Findings,
    directory_end: u64,
    entries: u64,
    size: u64,
    offset: u64,
) -> Result<Directory, Stop> {
    let outside = || {
        let message = format!(
            "the directory of {size} bytes at {offset} does not end before its end record at {directory_end}"
        );
        Stop::from(Error::new("zip-directory", message).at(directory_end))
    };
    let end = offset.checked_add(size).filter(|end| *end <= directory_end).ok_or_else(outside)?;
    if end == directory_end {
        return Ok(Directory { span: offset..end, entries, base: 0 });
    }
    // Either something is before the archive, and all its offsets are off by that, or after its directory. torch
    // does not know the first.
    let there =
        size == 0 || size >= 4 && spans.get(offset..offset.saturating_add(4))? == b"PK\x01\x02";
    if there {
        findings.report(&rules::ZIP_GAP, || {
            let message =
                format!("{} bytes follow the directory", directory_end.saturating_sub(end));
            Finding::new(&rules::ZIP_GAP, message).at(end..directory_end)
        });
        return Ok(Directory { span: offset..end, entries, base: 0 });
    }
    let base = directory_end.saturating_sub(end);
    findings.report(&rules::ZIP_PREFIX, || {
        let message = format!("the archive begins at byte {base} of the file");
        Finding::new(&rules::ZIP_PREFIX, message).at(0..base)
    });
    let start = offset.saturating_add(base);
    Ok(Directory { span: start..directory_end, entries, base })
}

fn look_around(end: &End, tail: &[u8], tail_start: u64, file_len: u64, findings: &mut Findings) {
    if end.end() < file_len {
        findings.report(&rules::ZIP_TAIL, || {
            let message =
                format!("{} bytes follow the archive", file_len.saturating_sub(end.end()));
            Finding::new(&rules::ZIP_TAIL, message).at(end.end()..file_len)
        });
    }
    if end.comment > 0 {
        findings.report(&rules::ZIP_COMMENT, || {
            let message = format!("the archive has a comment of {} bytes", end.comment);
            Finding::new(&rules::ZIP_COMMENT, message).at(end.at.saturating_add(RECORD)..end.end())
        });
    }
    // Another one that reaches the end of the file, or lies in the comment of this.
    let other = records(tail, tail_start)
        .find(|other| other.at != end.at && (other.end() == file_len || other.at >= end.at));
    if let Some(other) = other {
        findings.report(&rules::ZIP_TWO_ENDS, || {
            let message = format!("end records at {} and {}", other.at, end.at);
            Finding::new(&rules::ZIP_TWO_ENDS, message).at(other.at.min(end.at)..file_len)
        });
    }
}

/// A 64-bit end record.
struct Wide {
    at: u64,
    spanned: bool,
    entries: u64,
    size: u64,
    offset: u64,
}

fn wide(end: &End, spans: &Spans, findings: &mut Findings) -> Result<Option<Wide>, Stop> {
    let Some(locator_at) = end.at.checked_sub(LOCATOR) else { return Ok(None) };
    let mut locator = Fields::new(spans.get(locator_at..end.at)?);
    let (signature, _disk) = (locator.u32(), locator.u32());
    let (Some(0x0706_4b50), Some(claimed)) = (signature, locator.u64()) else { return Ok(None) };
    let near = locator_at.checked_sub(RECORD_64);
    for at in [Some(claimed), near].into_iter().flatten() {
        let Some(record_end) = at.checked_add(RECORD_64).filter(|end| *end <= locator_at) else {
            continue;
        };
        let Some(wide) = parse_wide(spans.get(at..record_end)?, at) else { continue };
        let (wide, size) = wide;
        let follows = at.saturating_add(12).saturating_add(size) == locator_at;
        if at != claimed || !follows {
            findings.report(&rules::ZIP_ZIP64, || {
                let message = format!(
                    "the locator at {locator_at} points to {claimed}, the 64-bit end record of {size} bytes is at {at}"
                );
                Finding::new(&rules::ZIP_ZIP64, message).at(at..locator_at)
            });
        }
        return Ok(Some(wide));
    }
    let message = format!("no 64-bit end record is at {claimed}, where its locator points");
    Err(Error::new("zip-directory", message).at(locator_at).into())
}

fn parse_wide(bytes: &[u8], at: u64) -> Option<(Wide, u64)> {
    let mut fields = Fields::new(bytes);
    if fields.u32()? != 0x0606_4b50 {
        return None;
    }
    let size = fields.u64()?;
    let _versions = fields.u32()?;
    let (disk, directory_disk) = (fields.u32()?, fields.u32()?);
    let (entries_here, entries) = (fields.u64()?, fields.u64()?);
    let spanned = disk != directory_disk || entries_here != entries;
    Some((Wide { at, spanned, entries, size: fields.u64()?, offset: fields.u64()? }, size))
}
