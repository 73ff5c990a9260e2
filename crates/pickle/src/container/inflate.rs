//! The content of an archive's members: checked, and inflated under limits.
//!
//! A pickle is had as a whole by [`content`]. A storage may have gigabytes: an [`Inflater`] is fed pieces and gives
//! pieces, in constant memory.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use weigh_format::Finding;

use super::fields::len;
use super::rules::{self, about};
use super::zip::{Entry, Method};
use crate::{Error, Limits};

/// What a member has.
#[derive(Debug)]
#[non_exhaustive]
pub struct Content<'a> {
    /// Its bytes.
    pub bytes: Cow<'a, [u8]>,
    /// That they do not have the checksum that is stored. Torch does not look, so the bytes are what it would load.
    pub damage: Option<Finding>,
}

/// Members that inflate to this or less are no bombs.
const HARMLESS: u64 = 1 << 20;

/// The content of a member that is to be had as a whole, a pickle, from its bytes in the file.
///
/// # Errors
///
/// `limit-pickle-bytes` or `limit-ratio` if it is, or claims to be, larger than the limits allow; `zip-method`,
/// `inflate` or `inflate-size` if it cannot be inflated to the size that the directory claims.
pub fn content<'a>(entry: &Entry, raw: &'a [u8], limits: &Limits) -> Result<Content<'a>, Error> {
    admit(entry, limits)?;
    let bytes = match entry.method {
        Method::Stored => Cow::Borrowed(raw),
        Method::Deflated => Cow::Owned(inflated(entry, raw)?),
        Method::Other(_) => return Err(unknown_method(entry)),
    };
    let damage = (entry.method == Method::Deflated || len(&bytes) == entry.size)
        .then(|| checksum_fault(entry, crc32fast::hash(&bytes)))
        .flatten();
    Ok(Content { bytes, damage })
}

/// Whether the limits allow to have a member as a whole, by what its directory claims.
///
/// # Errors
///
/// `limit-pickle-bytes` or `limit-ratio`.
pub fn admit(entry: &Entry, limits: &Limits) -> Result<(), Error> {
    let Entry { size, compressed_size, name, .. } = entry;
    let most = (*size).max(*compressed_size);
    if most > limits.pickle_bytes {
        let message = format!("it has {most} bytes, the limit is {}", limits.pickle_bytes);
        return Err(Error::new("limit-pickle-bytes", message).member(name));
    }
    let allowed = compressed_size.saturating_mul(limits.ratio.into()).max(HARMLESS);
    if entry.method == Method::Deflated && *size > allowed {
        let message =
            format!("{compressed_size} bytes become {size}, the limit is {} to one", limits.ratio);
        return Err(Error::new("limit-ratio", message).member(name));
    }
    Ok(())
}

fn inflated(entry: &Entry, raw: &[u8]) -> Result<Vec<u8>, Error> {
    let mut inflater = Inflater::new(entry);
    let mut bytes = Vec::new();
    let mut piece = alloc::vec![0; 64 << 10];
    let mut rest = raw;
    loop {
        let step = inflater.step(rest, &mut piece)?;
        rest = rest.get(step.taken..).unwrap_or_default();
        bytes.extend_from_slice(piece.get(..step.given).unwrap_or_default());
        if step.taken == 0 && step.given == 0 {
            inflater.finish()?;
            return Ok(bytes);
        }
    }
}

fn unknown_method(entry: &Entry) -> Error {
    let message = format!("it is neither stored nor deflated but {:?}", entry.method);
    Error::new("zip-method", message).member(&entry.name)
}

fn checksum_fault(entry: &Entry, found: u32) -> Option<Finding> {
    let expected = entry.crc.filter(|crc| *crc != found)?;
    let message = format!("the content has the checksum {found:08x}, {expected:08x} is stored");
    Some(about(&rules::ZIP_CRC, &entry.name, message))
}

/// What an [`Inflater`] did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the two numbers of a step")]
pub struct Step {
    /// Bytes of the input that were taken.
    pub taken: usize,
    /// Bytes of the output that were given.
    pub given: usize,
}

/// The content of a member in pieces, deflated or stored, of any size: at most what the directory claims.
pub struct Inflater {
    entry: Entry,
    state: Option<Box<InflateState>>,
    checksum: crc32fast::Hasher,
    taken: u64,
    given: u64,
    ended: bool,
}

impl core::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { entry, taken, given, .. } = self;
        f.debug_struct("Inflater")
            .field("name", &entry.name)
            .field("taken", taken)
            .field("given", given)
            .finish_non_exhaustive()
    }
}

impl Inflater {
    /// The content of a member, nothing of it yet.
    #[must_use]
    pub fn new(entry: &Entry) -> Self {
        let deflated = entry.method == Method::Deflated;
        Self {
            entry: entry.clone(),
            state: deflated.then(|| InflateState::new_boxed(DataFormat::Raw)),
            checksum: crc32fast::Hasher::new(),
            taken: 0,
            given: 0,
            ended: !deflated,
        }
    }

    /// Takes some of the input and fills some of the output. Where it does neither, it wants more input, or is done.
    ///
    /// # Errors
    ///
    /// `inflate` if the bytes are not deflated, `inflate-size` if there are more than the directory claims.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Error> {
        let step = match &mut self.state {
            Some(_) if self.ended => Step { taken: 0, given: 0 },
            Some(state) => {
                let result = inflate(state, input, output, MZFlush::None);
                match result.status {
                    Ok(MZStatus::StreamEnd) => self.ended = true,
                    Ok(_) | Err(MZError::Buf) => {}
                    Err(_) => {
                        let message = "the bytes are not what deflate makes";
                        return Err(Error::new("inflate", message).member(&self.entry.name));
                    }
                }
                Step { taken: result.bytes_consumed, given: result.bytes_written }
            }
            None if self.entry.method != Method::Stored => return Err(unknown_method(&self.entry)),
            None => {
                let count = input.len().min(output.len());
                if let (Some(from), Some(to)) = (input.get(..count), output.get_mut(..count)) {
                    to.copy_from_slice(from);
                }
                Step { taken: count, given: count }
            }
        };
        let add =
            |sum: u64, count: usize| sum.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        self.taken = add(self.taken, step.taken);
        self.given = add(self.given, step.given);
        if self.given > self.entry.size {
            return Err(self.size_fault());
        }
        self.checksum.update(output.get(..step.given).unwrap_or_default());
        Ok(step)
    }

    /// What is wrong with the checksum, all input having been taken.
    ///
    /// # Errors
    ///
    /// `inflate` if the bytes end early, or go on after the end; `inflate-size` if there are fewer than the directory
    /// claims.
    pub fn finish(self) -> Result<Option<Finding>, Error> {
        if !self.ended || self.taken != self.entry.compressed_size {
            let message = format!(
                "the deflated bytes end at {} of {}{}",
                self.taken,
                self.entry.compressed_size,
                if self.ended { "" } else { ", in the middle" }
            );
            return Err(Error::new("inflate", message).member(&self.entry.name));
        }
        if self.given != self.entry.size {
            return Err(self.size_fault());
        }
        Ok(checksum_fault(&self.entry, self.checksum.finalize()))
    }

    fn size_fault(&self) -> Error {
        let (given, size) = (self.given, self.entry.size);
        let message = if given > size {
            format!("there are more than the {size} bytes that the directory claims")
        } else {
            format!("there are {given} bytes, the directory claims {size}")
        };
        Error::new("inflate-size", message).member(&self.entry.name)
    }
}
