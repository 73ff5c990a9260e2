//! Torch's first checkpoints: a tar archive of `sys_info`, `pickle`, `storages` and `tensors`.
//!
//! `storages` is the number of storages, and for each a pickle of its key, its place and its class, the number of its
//! elements, and the elements; then a pickle of those that are parts of others. `tensors` is the number of tensors,
//! and for each a pickle of its key, its storage and its class, and its geometry. `pickle` is the object, in which a
//! tensor is its key.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::fields::Fields;
use super::legacy::pickle;
use super::tar::Archive;
use crate::{Error, Graph, Limits, NodeId, Spans, Stop, run};

/// A storage.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TarStorage {
    /// Its key.
    pub key: String,
    /// The module and the name of its class.
    pub class: (String, String),
    /// How many elements it has.
    pub elements: u64,
    /// Its bytes in the file.
    pub span: Range<u64>,
}

/// A storage that is a part of another.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TarView {
    /// Its key.
    pub key: String,
    /// The key of the storage that it is a part of.
    pub of: String,
    /// The element of that where it begins.
    pub offset: i64,
    /// How many elements it has.
    pub elements: i64,
}

/// A tensor.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TarTensor {
    /// Its key, which is its persistent id in the object.
    pub key: String,
    /// The key of its storage.
    pub storage: String,
    /// The sizes of its dimensions.
    pub size: Vec<i64>,
    /// Elements from one to the next, in each dimension.
    pub stride: Vec<i64>,
    /// The element of the storage where it begins.
    pub offset: i64,
}

/// What is in the archive.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The bytes of the object's pickle.
    pub object: Range<u64>,
    /// The bytes of every other pickle that was found.
    pub pickles: Vec<Range<u64>>,
    /// Its storages.
    pub storages: Vec<TarStorage>,
    /// Its storages that are parts of others.
    pub views: Vec<TarView>,
    /// Its tensors.
    pub tensors: Vec<TarTensor>,
    /// Why the storages and tensors could not be read. The pickles are there to be scanned all the same.
    pub error: Option<Error>,
}

/// Whether an archive is such a checkpoint.
#[must_use]
pub fn is_checkpoint(archive: &Archive) -> bool {
    archive.member("pickle").is_some() && archive.member("storages").is_some()
}

/// Reads the storages and tensors of such an archive. `element_size` gives the bytes of an element of a class, by its
/// module and name. [`Walk`] goes on where it stopped.
///
/// # Errors
///
/// [`Stop::Missing`] for bytes to read, a round or more for every storage that is far from the one before.
pub fn read(
    spans: &Spans,
    archive: &Archive,
    limits: &Limits,
    element_size: impl Fn(&str, &str) -> Option<u32>,
) -> Result<Checkpoint, Stop> {
    let mut walk = Walk::new(archive);
    walk.go(spans, limits, element_size)?;
    Ok(walk.finish())
}

/// The way through the storages and tensors of an archive, one by one.
#[derive(Debug)]
pub struct Walk {
    checkpoint: Checkpoint,
    storages: Option<Range<u64>>,
    tensors: Option<Range<u64>>,
    next: Next,
    /// Where that is.
    at: u64,
    /// Bytes that were asked for last, beyond those that were needed.
    ahead: u64,
    /// The byte after what was asked for last.
    asked: u64,
}

/// What is read next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The member that has this.
    Member(Of),
    /// How many there are of these.
    Count(Of),
    /// One of so many.
    One(Of, i64),
    /// The storages that are parts of others.
    Views,
    /// There is no more.
    Nothing,
}

/// What a member has.
#[derive(Clone, Copy, Debug)]
enum Of {
    Storages,
    Tensors,
}

/// Bytes that are asked for ahead of pickles that follow closely on each other, at most.
const AHEAD: u64 = 1 << 20;

impl Walk {
    /// At the start of an archive's storages.
    #[must_use]
    pub fn new(archive: &Archive) -> Self {
        let span = |name: &str| archive.member(name).map(|member| member.span.clone());
        let checkpoint = Checkpoint {
            object: span("pickle").unwrap_or_default(),
            pickles: span("sys_info").into_iter().collect(),
            ..Checkpoint::default()
        };
        let (storages, tensors) = (span("storages"), span("tensors"));
        let next = Next::Member(Of::Storages);
        Self { checkpoint, storages, tensors, next, at: 0, ahead: 0, asked: 0 }
    }

    /// Goes on to the end of both.
    ///
    /// # Errors
    ///
    /// See [`read`]; of every call, `element_size` has to say the same.
    pub fn go(
        &mut self,
        spans: &Spans,
        limits: &Limits,
        element_size: impl Fn(&str, &str) -> Option<u32>,
    ) -> Result<(), Stop> {
        loop {
            let (name, end, after) = match self.next {
                Next::Nothing => return Ok(()),
                Next::Member(of) => {
                    let span = match of {
                        Of::Storages => self.storages.clone(),
                        Of::Tensors => self.tensors.clone(),
                    };
                    self.next = span.as_ref().map_or_else(|| of.after(), |_| Next::Count(of));
                    self.at = span.map_or(self.at, |span| span.start);
                    continue;
                }
                Next::Views => ("storages", self.storages.clone(), Of::Storages.after()),
                Next::Count(of) | Next::One(of, _) => match of {
                    Of::Storages => ("storages", self.storages.clone(), of.after()),
                    Of::Tensors => ("tensors", self.tensors.clone(), of.after()),
                },
            };
            let end = end.map_or(self.at, |span| span.end);
            let mut reader = Reader { spans, limits, at: self.at, end, pickles: Vec::new() };
            let result = reader.next(self.next, &element_size, &mut self.checkpoint);
            match result {
                Ok(next) => (self.next, self.at) = (next, reader.at),
                Err(Stop::Fault(error)) => {
                    self.checkpoint.error.get_or_insert(error.member(name));
                    self.next = after;
                }
                Err(Stop::Missing(missing)) => return Err(self.ask(missing, spans.len())),
            }
            self.checkpoint.pickles.append(&mut reader.pickles);
        }
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> Checkpoint {
        self.checkpoint
    }

    /// Asks for more than is missing, the more the closer pickles are to each other.
    fn ask(&mut self, mut missing: Vec<Range<u64>>, len: u64) -> Stop {
        for span in &mut missing {
            let is_near = span.start <= self.asked;
            self.ahead =
                if is_near { self.ahead.saturating_mul(2).clamp(1 << 16, AHEAD) } else { 0 };
            span.end = span.end.saturating_add(self.ahead).min(len).max(span.end);
            self.asked = span.end;
        }
        Stop::Missing(missing)
    }
}

impl Of {
    /// What is read when all of these have been.
    const fn after(self) -> Next {
        match self {
            Self::Storages => Next::Member(Self::Tensors),
            Self::Tensors => Next::Nothing,
        }
    }
}

/// What is left of a member.
struct Reader<'a> {
    spans: &'a Spans,
    limits: &'a Limits,
    at: u64,
    end: u64,
    pickles: Vec<Range<u64>>,
}

impl Reader<'_> {
    fn fault(&self, message: &str) -> Stop {
        Error::new("torch-tar", message).at(self.at).into()
    }

    /// Reads this, and says what comes after it.
    fn next(
        &mut self,
        next: Next,
        element_size: impl Fn(&str, &str) -> Option<u32>,
        checkpoint: &mut Checkpoint,
    ) -> Result<Next, Stop> {
        Ok(match next {
            Next::Count(of) => Next::One(of, self.count()?),
            Next::One(Of::Storages, 0) => Next::Views,
            Next::One(of, 0) => of.after(),
            Next::One(of, left) => {
                match of {
                    Of::Storages => checkpoint.storages.push(self.storage(element_size)?),
                    Of::Tensors => checkpoint.tensors.push(self.tensor()?),
                }
                Next::One(of, left.saturating_sub(1))
            }
            Next::Views => {
                checkpoint.views = self.views()?;
                Of::Storages.after()
            }
            Next::Member(_) | Next::Nothing => next,
        })
    }

    /// The next pickle, as what `take` makes of it.
    fn pickle<T>(
        &mut self,
        take: impl FnOnce(&Graph<'_>, NodeId) -> Option<T>,
        what: &str,
    ) -> Result<T, Stop> {
        let found = pickle(self.spans, self.at, self.end, self.limits)?;
        let program = run(self.spans.get(found.span.clone())?, self.limits);
        self.pickles.push(found.span.clone());
        if let Some(error) = found.error {
            return Err(error.into());
        }
        if let Some(error) = program.error {
            return Err(error.into());
        }
        let value = program.root.and_then(|root| take(&program.graph, root));
        let value = value.ok_or_else(|| self.fault(&format!("a pickle is no {what}")))?;
        self.at = found.span.end;
        Ok(value)
    }

    fn bytes(&mut self, count: u64) -> Result<Fields<'_>, Stop> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.end);
        let end = end.ok_or_else(|| self.fault("the member ends early"))?;
        let bytes = self.spans.get(self.at..end)?;
        self.at = end;
        Ok(Fields::new(bytes))
    }

    fn count(&mut self) -> Result<i64, Stop> {
        let limit = self.limits.tensors;
        let count =
            self.pickle(|graph, root| graph.integer(root).filter(|count| *count >= 0), "count")?;
        if count > i64::from(limit) {
            let message = format!("there are {count}, the limit is {limit}");
            return Err(Error::new("limit-tensors", message).at(self.at).into());
        }
        Ok(count)
    }

    fn storage(
        &mut self,
        element_size: impl Fn(&str, &str) -> Option<u32>,
    ) -> Result<TarStorage, Stop> {
        let (key, class) = self.pickle(
            |graph, root| {
                let [key, _location, class] = *graph.sequence(root)? else { return None };
                let (module, name) = graph.global(class)?;
                Some((self::key(graph, key)?, (module.to_string(), name.to_string())))
            },
            "key, location and class of a storage",
        )?;
        let elements = self.bytes(8)?.u64().unwrap_or(0);
        let size = element_size(&class.0, &class.1).ok_or_else(|| {
            self.fault(&format!("the size of an element of {}.{} is not known", class.0, class.1))
        })?;
        let start = self.at;
        let end = elements
            .checked_mul(size.into())
            .and_then(|bytes| start.checked_add(bytes))
            .filter(|end| *end <= self.end)
            .ok_or_else(|| self.fault("a storage ends after its member"))?;
        self.at = end;
        Ok(TarStorage { key, class, elements, span: start..end })
    }

    fn views(&mut self) -> Result<Vec<TarView>, Stop> {
        self.pickle(
            |graph, root| {
                let view = |view: &NodeId| {
                    let [key, of, offset, elements] = *graph.sequence(*view)? else { return None };
                    Some(TarView {
                        key: self::key(graph, key)?,
                        of: self::key(graph, of)?,
                        offset: graph.integer(offset)?,
                        elements: graph.integer(elements)?,
                    })
                };
                graph.sequence(root)?.iter().map(view).collect::<Option<Vec<_>>>()
            },
            "list of views",
        )
    }

    fn tensor(&mut self) -> Result<TarTensor, Stop> {
        let (key, storage) = self.pickle(
            |graph, root| {
                let [key, storage, _class] = *graph.sequence(root)? else { return None };
                Some((self::key(graph, key)?, self::key(graph, storage)?))
            },
            "key, storage and class of a tensor",
        )?;
        let rank = self.bytes(8)?.u32().unwrap_or(0);
        if rank > 64 {
            return Err(self.fault("a tensor has more than 64 dimensions"));
        }
        let geometry = u64::from(rank).saturating_mul(16).saturating_add(8);
        let mut fields = self.bytes(geometry)?;
        let mut numbers = || (0..rank).map(|_| fields.i64().unwrap_or(0)).collect();
        let (size, stride) = (numbers(), numbers());
        let offset = fields.i64().unwrap_or(0);
        Ok(TarTensor { key, storage, size, stride, offset })
    }
}

/// A key: a number, or text.
fn key(graph: &Graph<'_>, node: NodeId) -> Option<String> {
    match graph.integer(node) {
        Some(number) => Some(number.to_string()),
        None => graph.text(node).map(ToString::to_string),
    }
}
