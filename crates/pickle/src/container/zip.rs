//! Zip archives, by their central directory, strictly.
//!
//! Torch writes names, sizes and checksums into the central directory; before a member's bytes it writes a header
//! that has only some of them. So the directory counts, as it does for torch, and everything that another reader may
//! take from elsewhere is compared with it: each difference is a finding of the rules `ST-ZIP-…`. An archive is refused
//! only where its directory cannot be read, so that a scanner may look into every member of an archive that is odd.
//!
//! Nothing is inflated here: see [`super::inflate`].

mod directory;
pub(crate) mod end;
mod local;
mod names;

pub(crate) use names::path_fault;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use weigh_format::{Finding, Findings};

use super::rules;
use crate::{Limits, Spans, Stop};

/// How the bytes of a member are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// As they are.
    Stored,
    /// Deflated.
    Deflated,
    /// In another way, by its number: not read.
    Other(u16),
}

impl Method {
    fn new(number: u16) -> Self {
        match number {
            0 => Self::Stored,
            8 => Self::Deflated,
            other => Self::Other(other),
        }
    }
}

/// A member of an archive, as the central directory has it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// How its bytes are kept.
    pub method: Method,
    /// Its general purpose flags.
    pub flags: u16,
    /// The CRC-32 of its content; `None` where checksums were turned off for the whole archive.
    pub crc: Option<u32>,
    /// Bytes that it takes in the file.
    pub compressed_size: u64,
    /// Bytes of its content, as the directory claims.
    pub size: u64,
    /// The byte of the file where its header is.
    pub header: u64,
    /// Its bytes in the file; `None` if it has none that are its own (a finding says why).
    pub span: Option<Range<u64>>,
}

impl Entry {
    /// Whether it is a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.name.ends_with('/') && self.size == 0
    }

    /// Where its content is in the file as it is, if it is stored.
    #[must_use]
    pub fn stored(&self) -> Option<Range<u64>> {
        let span = self.span.clone()?;
        (self.method == Method::Stored && self.size == self.compressed_size).then_some(span)
    }
}

/// An archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Archive {
    /// Its members, in the order of the directory.
    pub entries: Vec<Entry>,
    /// Whether it has no checksums.
    pub crc_off: bool,
    /// The bytes of the file that are its directory.
    pub directory: Range<u64>,
    /// What is odd about it.
    pub findings: Findings,
    /// Positions of the members, by name.
    by_name: Vec<usize>,
}

impl Archive {
    /// The member of this name, exactly; the last of several.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let name_of =
            |position: &usize| self.entries.get(*position).map_or("", |entry| &entry.name);
        let end = self.by_name.partition_point(|position| name_of(position) <= name);
        let position = self.by_name.get(end.checked_sub(1)?)?;
        self.entries.get(*position).filter(|entry| entry.name == name)
    }
}

/// Reads the directory of an archive, and the header of every member.
///
/// It takes the tail of the file, then the directory, then all headers at once: three rounds, unless the archive is
/// odd.
///
/// # Errors
///
/// [`Stop::Missing`] for bytes to read, [`Stop::Fault`] if the directory cannot be read or is over a limit.
pub fn read(spans: &Spans, limits: &Limits) -> Result<Archive, Stop> {
    let mut findings = Findings::new();
    let found = end::directory(spans, &mut findings)?;
    let records = directory::read(spans, &found, limits, &mut findings)?;
    let directory = found.span;
    let crc_off = records.iter().all(|record| record.crc == 0)
        && records.iter().any(|record| record.size > 0);
    if crc_off {
        findings.report(&rules::ZIP_CRC_OFF, || {
            Finding::new(&rules::ZIP_CRC_OFF, "no member has a checksum")
        });
    }
    let places = local::check(spans, &records, found.base, &directory, &mut findings)?;
    let by_name = names::sorted(&records, &mut findings);
    let entries: Vec<Entry> = records
        .into_iter()
        .zip(places)
        .map(|(record, span)| Entry {
            name: record.name,
            method: Method::new(record.method),
            flags: record.flags,
            crc: (!crc_off).then_some(record.crc),
            compressed_size: record.compressed_size,
            size: record.size,
            header: record.header,
            span,
        })
        .collect();
    if entries.iter().any(|entry| entry.method == Method::Deflated && entry.size > 0) {
        let deflated = entries.iter().filter(|entry| entry.method == Method::Deflated).count();
        findings.push(Finding::new(
            &rules::ZIP_DEFLATED,
            alloc::format!("{deflated} of {} members are deflated", entries.len()),
        ));
    }
    Ok(Archive { entries, crc_off, directory, findings, by_name })
}
