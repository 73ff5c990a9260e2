//! A file opened as what it is: where its pickles are, and where the bytes of a storage.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use weigh_format::Findings;

use super::inflate::{Content, content};
use super::zip::{self, Entry, Method};
use super::{Kind, Wrapper, detect, legacy, npy, tar, torch, torch_tar};
use crate::{Limits, Spans, Stop};

/// A file, opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Layout {
    /// What it begins as.
    pub kind: Kind,
    /// What is in it.
    pub contents: Contents,
    /// An archive that ends where the file ends, though the file does not begin as one.
    pub behind: Option<Box<zip::Archive>>,
    /// What is odd about the file and its container.
    pub findings: Findings,
}

/// What is in a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Contents {
    /// A checkpoint of torch since 1.6.
    TorchZip {
        /// Its archive.
        archive: zip::Archive,
        /// What torch has there.
        root: torch::Root,
    },
    /// A checkpoint of torch up to 1.5.
    Legacy(legacy::Stream),
    /// A checkpoint of torch before 0.1.10; [`torch_tar::read`] opens it.
    TorchTar(tar::Archive),
    /// Arrays of numpy, `.npz`.
    Npz(zip::Archive),
    /// Another zip archive.
    Zip(zip::Archive),
    /// Another tar archive.
    Tar(tar::Archive),
    /// One or several pickles, from the start of the file.
    Pickle,
    /// An array of numpy.
    Npy(npy::Array),
    /// A file that is packed as a whole.
    Wrapper(Wrapper),
    /// Something that this crate does not open.
    Other,
}

/// A pickle of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pickle {
    /// The member of an archive that it is.
    pub member: Option<String>,
    /// Where it is.
    pub place: Place,
}

/// Where a pickle is.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Place {
    /// These bytes of the file.
    Span(Range<u64>),
    /// The member at this position of the zip archive.
    Entry(usize),
}

/// Where the bytes of a storage are.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stored {
    /// Its bytes in the file.
    pub span: Range<u64>,
    /// Whether they are deflated: then an [`super::inflate::Inflater`] reads them.
    pub deflated: bool,
    /// Bytes that it has, inflated.
    pub size: u64,
    /// The CRC-32 of these, if it is stored.
    pub crc: Option<u32>,
}

/// Opens a file.
///
/// # Errors
///
/// [`Stop::Missing`] for bytes to read, [`Stop::Fault`] where the container cannot be read.
pub fn open(spans: &Spans, limits: &Limits) -> Result<Layout, Stop> {
    let detection = detect(spans)?;
    let kind = detection.kind;
    let mut findings = detection.findings;
    let mut behind = None;
    if findings.first(super::rules::POLYGLOT.code).is_some() && kind != Kind::Zip {
        match zip::read(spans, limits) {
            Ok(archive) => {
                add(&mut findings, &archive.findings);
                behind = Some(Box::new(archive));
            }
            Err(Stop::Fault(_)) => {}
            Err(missing) => return Err(missing),
        }
    }
    let contents = match kind {
        Kind::Zip => zip_contents(spans, limits, &mut findings)?,
        Kind::Legacy => Contents::Legacy(legacy::read(spans, limits)?),
        Kind::Tar => {
            let archive = tar::read(spans, limits)?;
            add(&mut findings, &archive.findings);
            if torch_tar::is_checkpoint(&archive) {
                Contents::TorchTar(archive)
            } else {
                Contents::Tar(archive)
            }
        }
        Kind::Pickle => Contents::Pickle,
        Kind::Npy => {
            let array = npy::read(spans, 0..spans.len())?;
            add(&mut findings, &array.findings);
            Contents::Npy(array)
        }
        Kind::Wrapper(wrapper) => Contents::Wrapper(wrapper),
        _ => Contents::Other,
    };
    Ok(Layout { kind, contents, behind, findings })
}

fn zip_contents(spans: &Spans, limits: &Limits, findings: &mut Findings) -> Result<Contents, Stop> {
    let archive = zip::read(spans, limits)?;
    add(findings, &archive.findings);
    if let Some(root) = torch::root(spans, &archive, limits)? {
        add(findings, &root.findings);
        return Ok(Contents::TorchZip { archive, root });
    }
    let mut files = archive.entries.iter().filter(|entry| !entry.is_folder()).peekable();
    let any = files.peek().is_some();
    let arrays = any && files.all(|entry| entry.name.strip_suffix(".npy").is_some());
    Ok(if arrays { Contents::Npz(archive) } else { Contents::Zip(archive) })
}

fn add(findings: &mut Findings, others: &Findings) {
    for finding in others.list() {
        findings.push(finding.clone());
    }
}

impl Layout {
    /// The zip archive that the file is.
    #[must_use]
    pub fn archive(&self) -> Option<&zip::Archive> {
        match &self.contents {
            Contents::TorchZip { archive, .. }
            | Contents::Npz(archive)
            | Contents::Zip(archive) => Some(archive),
            _ => None,
        }
    }

    /// The pickles of the file: the object first, then others that torch or numpy would load. Members of other archives
    /// are not looked into, and may be pickles too.
    #[must_use]
    pub fn pickles(&self, spans: &Spans) -> Vec<Pickle> {
        let span = |span: &Range<u64>| Pickle { member: None, place: Place::Span(span.clone()) };
        match &self.contents {
            Contents::TorchZip { archive, root } => {
                let entries = root.pickles.iter();
                entries
                    .filter_map(|position| {
                        let member = Some(archive.entries.get(*position)?.name.clone());
                        Some(Pickle { member, place: Place::Entry(*position) })
                    })
                    .collect()
            }
            Contents::Legacy(stream) => {
                let others = stream.pickles.iter().filter(|pickle| **pickle != stream.object);
                core::iter::once(&stream.object).chain(others).map(span).collect()
            }
            Contents::TorchTar(archive) => archive
                .member("pickle")
                .map(|member| Pickle {
                    member: Some(member.name.clone()),
                    place: Place::Span(member.span.clone()),
                })
                .into_iter()
                .collect(),
            Contents::Pickle => alloc::vec![span(&(0..spans.len()))],
            Contents::Npy(array) if array.header.element == npy::Element::Object => {
                alloc::vec![span(&array.data)]
            }
            _ => Vec::new(),
        }
    }

    /// The bytes of a pickle.
    ///
    /// # Errors
    ///
    /// [`Stop::Missing`], and what [`content`] and [`torch::member_bytes`] say.
    pub fn pickle_bytes<'a>(
        &self,
        spans: &'a Spans,
        pickle: &Pickle,
        limits: &Limits,
    ) -> Result<Content<'a>, Stop> {
        match &pickle.place {
            Place::Span(span) => {
                let len = span.end.saturating_sub(span.start);
                let end = span.start.saturating_add(len.min(limits.pickle_bytes));
                let bytes = spans.get(span.start..end)?;
                Ok(Content { bytes: Cow::Borrowed(bytes), damage: None })
            }
            Place::Entry(position) => {
                let entry = self.archive().and_then(|archive| archive.entries.get(*position));
                let Some(entry) = entry else {
                    return Ok(Content { bytes: Cow::Borrowed(&[]), damage: None });
                };
                Ok(content(entry, torch::member_bytes(spans, entry, limits)?, limits)?)
            }
        }
    }

    /// Where the bytes of a storage of a zip checkpoint are, by its key. Those of a legacy file follow from its object:
    /// [`legacy::Stream::storages`].
    #[must_use]
    pub fn storage(&self, key: &str) -> Option<Stored> {
        match &self.contents {
            Contents::TorchZip { archive, root } => Stored::of(root.storage(archive, key)?),
            _ => None,
        }
    }

    /// The order of the bytes of the storages' numbers.
    #[must_use]
    pub fn byte_order(&self) -> torch::ByteOrder {
        match &self.contents {
            Contents::TorchZip { root, .. } => root.byte_order,
            _ => torch::ByteOrder::Little,
        }
    }
}

impl Stored {
    /// Where the content of a member is; `None` if it cannot be read.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Self> {
        let deflated = match entry.method {
            Method::Stored => false,
            Method::Deflated => true,
            Method::Other(_) => return None,
        };
        let span = if deflated { entry.span.clone()? } else { entry.stored()? };
        Some(Self { span, deflated, size: entry.size, crc: entry.crc })
    }
}
