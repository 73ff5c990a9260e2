//! Tar archives: the members' names and where their bytes are.
//!
//! The formats of POSIX (ustar, pax) and GNU, and the one before them. Torch wrote its first checkpoints as such an
//! archive; other checkpoints are sometimes packed into one.

mod header;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use weigh_format::{Finding, Findings};

use super::rules::{self, report};
use super::zip::path_fault;
use crate::{Error, Limits, Spans, Stop};

pub(crate) use header::is_header;
use header::{Header, Kind};

/// Bytes of a block.
const BLOCK: u64 = 512;
/// Bytes that are read with a header, for the small members that may follow.
const AHEAD: u64 = 8 << 10;
/// Bytes of a long name, or of the fields of pax, at most.
const EXTENSION: u64 = 64 << 10;

/// A member that is a file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The byte of the file where its header is.
    pub header: u64,
    /// Its bytes in the file.
    pub span: Range<u64>,
}

/// An archive.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Archive {
    /// Its files, in order.
    pub members: Vec<Member>,
    /// What is odd about it.
    pub findings: Findings,
}

impl Archive {
    /// The member of this name; the last of several, as readers take it that unpack all.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        let plain =
            |member: &Member| member.name.strip_prefix("./").unwrap_or(&member.name) == name;
        self.members.iter().rev().find(|member| plain(member))
    }
}

/// Reads an archive; a long one has a round for every header that is far from the one before. [`Walk`] goes on where
/// it stopped.
///
/// # Errors
///
/// [`Stop::Missing`] for bytes to read, [`Stop::Fault`] for a header that is none, or a member past the file's end.
pub fn read(spans: &Spans, limits: &Limits) -> Result<Archive, Stop> {
    let mut walk = Walk::default();
    walk.go(spans, limits)?;
    Ok(walk.finish())
}

/// The way through an archive, header by header.
#[derive(Debug, Default)]
pub struct Walk {
    at: u64,
    archive: Archive,
    long_name: Option<Vec<u8>>,
    pax: Pax,
    names: alloc::collections::BTreeSet<String>,
    done: bool,
}

/// What a pax header says of the member after it.
#[derive(Debug, Default)]
struct Pax {
    /// Whether there was such a header.
    is_there: bool,
    /// Whether it makes the member a file with holes.
    sparse: bool,
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Walk {
    /// Goes on to the end of the archive.
    ///
    /// # Errors
    ///
    /// See [`read`].
    pub fn go(&mut self, spans: &Spans, limits: &Limits) -> Result<(), Stop> {
        while !self.done {
            self.step(spans, limits)?;
        }
        Ok(())
    }

    /// The archive, as far as it was read.
    #[must_use]
    pub fn finish(self) -> Archive {
        self.archive
    }

    fn step(&mut self, spans: &Spans, limits: &Limits) -> Result<(), Stop> {
        let at = self.at;
        if at >= spans.len() {
            // Readers take an archive without its two blocks of zeros.
            self.done = true;
            return Ok(());
        }
        let block_end = at.checked_add(BLOCK).filter(|end| *end <= spans.len());
        let Some(block_end) = block_end else {
            return Err(Error::new("tar-truncated", "the file ends in a header").at(at).into());
        };
        let block = ahead(spans, at..block_end)?;
        if block.iter().all(|byte| *byte == 0) {
            return self.end(spans, block_end);
        }
        let header =
            Header::parse(block).map_err(|wrong| Error::new("tar-header", wrong).at(at))?;
        if header.kind == Kind::Sparse {
            return Err(Error::new("tar-sparse", "files with holes are not read").at(at).into());
        }
        let claimed = match header.kind {
            Kind::LongName | Kind::LongLink | Kind::Pax | Kind::PaxGlobal => header.size,
            _ => self.pax.size.unwrap_or(header.size),
        };
        let has_bytes = !matches!(header.kind, Kind::Folder | Kind::Other);
        let size = if has_bytes { claimed } else { 0 };
        if size < claimed {
            self.differ(at, "a folder, a link or a device has a size");
        }
        if header.odd_prefix {
            self.differ(at, "a name has a prefix in a header that is not of POSIX");
        }
        let end =
            block_end.checked_add(size).filter(|end| *end <= spans.len()).ok_or_else(|| {
                let message = format!("a member of {size} bytes ends after the file");
                Error::new("tar-truncated", message).at(at)
            })?;
        let span = block_end..end;
        let next = end.checked_next_multiple_of(BLOCK).unwrap_or(end);
        match header.kind {
            Kind::LongName | Kind::Pax | Kind::PaxGlobal | Kind::LongLink if size > EXTENSION => {
                let message =
                    format!("a name or its fields have {size} bytes, the limit is {EXTENSION}");
                return Err(Error::new("limit-name", message).at(at).into());
            }
            Kind::LongName => {
                let bytes = spans.get(span)?;
                let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
                if self.long_name.replace(name).is_some() || self.pax.is_there {
                    self.differ(at, "a member has a name or fields twice");
                }
            }
            Kind::Pax | Kind::PaxGlobal => {
                let fields = pax(spans.get(span)?).ok_or_else(|| {
                    Error::new("tar-header", "the fields of a pax header are malformed").at(at)
                })?;
                if fields.sparse {
                    let message = "files with holes are not read";
                    return Err(Error::new("tar-sparse", message).at(at).into());
                }
                if header.kind == Kind::PaxGlobal {
                    // Other fields, as a comment, are of no concern.
                    if fields.path.is_some() || fields.size.is_some() {
                        self.differ(at, "a name or a size is that of all members");
                    }
                } else {
                    if self.pax.is_there || self.long_name.is_some() {
                        self.differ(at, "a member has a name or fields twice");
                    }
                    self.pax = fields;
                }
            }
            Kind::LongLink => {}
            Kind::File | Kind::Folder | Kind::Other | Kind::Unknown | Kind::Sparse => {
                self.member(&header, at, span, limits)?;
            }
        }
        self.at = next.min(spans.len());
        Ok(())
    }

    /// Records that not every reader takes what is at a byte as it is taken here.
    fn differ(&mut self, at: u64, what: &str) {
        let finding = Finding::new(&rules::TAR_READERS, what);
        self.archive
            .findings
            .report(&rules::TAR_READERS, || finding.at(at..at.saturating_add(BLOCK)));
    }

    fn member(
        &mut self,
        header: &Header,
        at: u64,
        span: Range<u64>,
        limits: &Limits,
    ) -> Result<(), Error> {
        let pax = core::mem::take(&mut self.pax);
        if pax.path.as_ref().is_some_and(|path| path.is_empty() || path.ends_with(b"/"))
            && header.kind != Kind::Folder
        {
            self.differ(at, "a name is empty, or that of a folder");
        }
        let name = pax.path.or(self.long_name.take()).unwrap_or_else(|| header.name.clone());
        let limit = limits.name_bytes;
        if name.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
            let message = format!("a name has {} bytes, the limit is {limit}", name.len());
            return Err(Error::new("limit-name", message).at(at));
        }
        let utf8 = core::str::from_utf8(&name).is_ok();
        let name = String::from_utf8_lossy(&name).into_owned();
        let findings = &mut self.archive.findings;
        let fault = if utf8 { path_fault(&name) } else { Some("bytes in it that are not UTF-8") };
        if let Some(wrong) = fault {
            report(findings, &rules::TAR_PATH, &name, || format!("the name has {wrong}"));
        }
        match header.kind {
            Kind::Folder => return Ok(()),
            Kind::Other | Kind::Unknown => {
                report(findings, &rules::TAR_KIND, &name, || {
                    format!("the member is of type {:?}", char::from(header.type_flag))
                });
                if header.kind == Kind::Other {
                    return Ok(());
                }
                let what = "a member is of a type that readers take for different things";
                self.differ(at, what);
            }
            _ => {}
        }
        if u32::try_from(self.archive.members.len()).unwrap_or(u32::MAX) >= limits.entries {
            let message =
                format!("the archive has more members than the limit of {}", limits.entries);
            return Err(Error::new("limit-entries", message).at(at));
        }
        if !self.names.insert(name.clone()) {
            report(&mut self.archive.findings, &rules::TAR_DUPLICATE, &name, || {
                String::from("the name comes twice")
            });
        }
        self.archive.members.push(Member { name, header: at, span });
        Ok(())
    }

    /// At the zeros that end an archive: what follows must be zeros too. As much is looked at as writers pad.
    fn end(&mut self, spans: &Spans, from: u64) -> Result<(), Stop> {
        let end = spans.len().min(from.saturating_add(64 << 10));
        let rest = spans.get(from..end)?;
        if end < spans.len() || rest.iter().any(|byte| *byte != 0) {
            self.archive.findings.report(&rules::TAR_TAIL, || {
                let count = spans.len().saturating_sub(from);
                let message = format!("{count} bytes follow the end of the archive");
                Finding::new(&rules::TAR_TAIL, message).at(from..spans.len())
            });
        }
        self.done = true;
        Ok(())
    }
}

/// These bytes, asking for more that may be needed next.
fn ahead(spans: &Spans, span: Range<u64>) -> Result<&[u8], Stop> {
    match spans.get(span.clone()) {
        Err(Stop::Missing(_)) => {
            let end = span.end.saturating_add(AHEAD).min(spans.len());
            Err(Stop::Missing(alloc::vec![span.start..end]))
        }
        other => other,
    }
}

/// The fields that matter of a pax header: records `length key=value\n`.
fn pax(mut bytes: &[u8]) -> Option<Pax> {
    let mut pax = Pax { is_there: true, ..Pax::default() };
    while !bytes.is_empty() && bytes.first() != Some(&0) {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let length: usize = core::str::from_utf8(bytes.get(..space)?).ok()?.parse().ok()?;
        let (record, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        let field = record.get(space.checked_add(1)?..)?.strip_suffix(b"\n")?;
        let equals = field.iter().position(|byte| *byte == b'=')?;
        let value = field.get(equals.checked_add(1)?..)?;
        match field.get(..equals)? {
            b"path" => pax.path = Some(value.to_vec()),
            key if key.starts_with(b"GNU.sparse.") => pax.sparse = true,
            b"size" => pax.size = Some(core::str::from_utf8(value).ok()?.parse().ok()?),
            _ => {}
        }
    }
    Some(pax)
}
