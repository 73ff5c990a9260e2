//! Writing a file of tensors that are made here, larger than memory if need be.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Mutex;

use weigh_format::encode::{Declaration, Encoded, Layout, encode};
use weigh_io::system::FileSystemKind;
use weigh_io::{Cancel, NewFile, Progress};

use crate::work::{self, Meter};
use crate::{Error, View};

mod coverage;
mod sharded;

use coverage::Coverage;
pub use sharded::save_sharded;

/// How to write files.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct WriteOptions {
    /// Whether a file that is there already is replaced. Otherwise it is an error.
    pub replace: bool,
    /// Whether the files are on the disk before they take their names, and the names before this returns.
    pub sync: bool,
    /// How headers are laid out.
    pub layout: Layout,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { replace: false, sync: true, layout: Layout::default() }
    }
}

impl WriteOptions {
    /// What concerns files, and not what is in them.
    pub(crate) fn of_files(&self) -> weigh_io::WriteOptions {
        weigh_io::WriteOptions { replace: self.replace, sync: self.sync }
    }
}

/// What may stop a long piece of work, and who is told how far it is.
#[derive(Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Watch<'a> {
    /// What may stop it.
    pub cancel: Option<&'a Cancel>,
    /// Told how far it is, from the threads that work, one at a time; may stop it.
    pub progress: Option<&'a (dyn Fn(Progress) -> ControlFlow<()> + Sync)>,
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// A file that is being written: its tensors are declared, their bytes come in any order, from several threads.
///
/// Nothing is at the path, or what was there before, until [`Writer::finish`]; a writer that is dropped leaves
/// nothing behind.
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh::format::{Dtype, encode::Declaration};
/// use weigh::{WriteOptions, Writer};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// let tensors = [Declaration { name: "w", dtype: Dtype::F32, shape: &[2] }];
/// let writer = Writer::create(&path, &tensors, &BTreeMap::new(), &WriteOptions::default())?;
/// writer.write(0, 4, &2.0_f32.to_le_bytes())?;
/// writer.write(0, 0, &1.0_f32.to_le_bytes())?;
/// writer.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    file: NewFile,
    header: Vec<u8>,
    names: Vec<Box<str>>,
    /// The bytes of each tensor, from the start of the file.
    spans: Vec<Range<u64>>,
    written: Vec<Mutex<Coverage>>,
}

impl Writer {
    /// Starts a file with these tensors, which are told apart by their places from here on.
    ///
    /// Writes the header, and takes the room for all of it. Whether metadata without any pair is written as `{}` is
    /// up to the layout: [`Layout::empty_metadata`].
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if readers would refuse the file, before anything is written; [`Error::Io`] if the
    /// path cannot be written to, or is there and is not to be replaced, or the disk has too little room.
    pub fn create(
        path: impl AsRef<Path>,
        tensors: &[Declaration<'_>],
        metadata: &BTreeMap<String, String>,
        options: &WriteOptions,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let Encoded { bytes: header, data_offsets, data_len, .. } =
            encode(tensors, Some(metadata), &options.layout).map_err(Error::encode(path))?;
        let file = NewFile::create(path, &options.of_files())?;
        let data_start = work::length(&header);
        file.reserve(data_start.saturating_add(data_len))?;
        file.write_at(&header, 0)?;
        let absolute = |offsets: Range<u64>| {
            data_start.saturating_add(offsets.start)..data_start.saturating_add(offsets.end)
        };
        let written = tensors.iter().map(|_| Mutex::new(Coverage::default())).collect();
        let names = tensors.iter().map(|tensor| tensor.name.into()).collect();
        let spans = data_offsets.into_iter().map(absolute).collect();
        Ok(Self { file, header, names, spans, written })
    }

    /// Starts a file with the tensors of these views.
    fn of_views<'v>(
        path: impl AsRef<Path>,
        tensors: &[(&'v str, View<'v>)],
        metadata: &BTreeMap<String, String>,
        options: &WriteOptions,
    ) -> Result<Self, Error> {
        let declare = |(name, view): &(&'v str, View<'v>)| Declaration {
            name,
            dtype: view.dtype(),
            shape: view.shape(),
        };
        let declarations: Vec<Declaration<'_>> = tensors.iter().map(declare).collect();
        Self::create(path, &declarations, metadata, options)
    }

    /// Writes all bytes of the views that it was started with.
    fn write_views(&self, tensors: &[(&str, View<'_>)], meter: &Meter<'_>) -> Result<(), Error> {
        let mut pieces = Vec::new();
        for (tensor, (_, view)) in tensors.iter().enumerate() {
            let mut offset = 0;
            for piece in view.bytes().chunks(PIECE) {
                pieces.push((tensor, offset, piece));
                offset += work::length(piece);
            }
        }
        let write = |&(tensor, offset, bytes): &(usize, u64, &[u8])| {
            meter.check()?;
            self.write(tensor, offset, bytes)?;
            meter.add(work::length(bytes))
        };
        // The kernel lets one thread at a time write to a file, unless it is a server's.
        match self.file.file_system().kind {
            FileSystemKind::Memory | FileSystemKind::Local => pieces.iter().try_for_each(write),
            _ => work::spread(&pieces, |piece, (): &mut ()| write(piece)),
        }
    }

    /// The length field, the JSON and its padding: the file up to its data section.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Where in the file the bytes of a tensor go, by its place among the declarations.
    #[must_use]
    pub fn span(&self, tensor: usize) -> Option<Range<u64>> {
        self.spans.get(tensor).cloned()
    }

    /// Writes some bytes of a tensor, little-endian, row after row; `offset` counts from the tensor's first byte.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] if the tensor has no such bytes, or there is no such tensor; [`Error::Io`].
    pub fn write(&self, tensor: usize, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let at = self.place(tensor, offset, work::length(bytes))?;
        self.file.write_at(bytes, at)?;
        self.wrote(tensor, offset, work::length(bytes));
        Ok(())
    }

    /// The first tensor of which some bytes were never written, by its place among the declarations, and the first
    /// such bytes; `None` if [`Writer::finish`] has all it needs.
    #[must_use]
    pub fn first_missing(&self) -> Option<(usize, Range<u64>)> {
        let tensors = self.spans.iter().zip(&self.written).enumerate();
        tensors.into_iter().find_map(|(tensor, (span, written))| {
            let bytes = span.end.saturating_sub(span.start);
            Some((tensor, work::lock(written).first_missing(bytes)?))
        })
    }

    /// Puts the file in its place. What was written is lost if that fails: [`Writer::first_missing`] tells before
    /// whether something was forgotten.
    ///
    /// # Errors
    ///
    /// [`Error::Incomplete`] if some bytes were never written; [`Error::Io`]. What was at the path before
    /// is still there then.
    pub fn finish(self) -> Result<(), Error> {
        Ok(self.complete()?.commit()?)
    }

    /// The file, all of whose bytes are written, before it is in its place.
    fn complete(self) -> Result<NewFile, Error> {
        if let Some((tensor, missing)) = self.first_missing() {
            let name = self.names.get(tensor).map(ToString::to_string).unwrap_or_default();
            return Err(Error::Incomplete { name, missing });
        }
        Ok(self.file)
    }

    /// The offset in the file of some bytes of a tensor.
    fn place(&self, tensor: usize, offset: u64, len: u64) -> Result<u64, Error> {
        let span = self.span(tensor).unwrap_or_default();
        let start = span.start.checked_add(offset);
        let end = start.and_then(|start| start.checked_add(len));
        start.filter(|_| end.is_some_and(|end| end <= span.end)).ok_or_else(|| Error::Outside {
            name: self.names.get(tensor).map(ToString::to_string),
            span: offset..offset.saturating_add(len),
            bytes: span.end.saturating_sub(span.start),
        })
    }

    fn wrote(&self, tensor: usize, offset: u64, len: u64) {
        if let Some(written) = self.written.get(tensor) {
            work::lock(written).add(offset..offset.saturating_add(len));
        }
    }
}

/// Writes tensors that are in memory to a file.
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh::{View, WriteOptions, format::Dtype};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// let w = View::of(Dtype::U8, &[2, 2], &[1, 2, 3, 4])?;
/// weigh::save(&path, [("w", w)], &BTreeMap::new(), &WriteOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Those of [`Writer::create`] and [`Writer::finish`].
pub fn save<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'a str, View<'a>)>,
    metadata: &BTreeMap<String, String>,
    options: &WriteOptions,
) -> Result<(), Error> {
    save_watched(path, tensors, metadata, options, Watch::default())
}

/// The same, and may be stopped.
///
/// # Errors
///
/// Those of [`save`], and [`Error::Cancelled`].
pub fn save_watched<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'a str, View<'a>)>,
    metadata: &BTreeMap<String, String>,
    options: &WriteOptions,
    watch: Watch<'_>,
) -> Result<(), Error> {
    let tensors: Vec<(&str, View<'_>)> = tensors.into_iter().collect();
    let writer = Writer::of_views(path, &tensors, metadata, options)?;
    let meter = Meter::new(bytes_of(&tensors), watch);
    writer.write_views(&tensors, &meter)?;
    writer.finish()
}

/// Bytes of all tensors together.
fn bytes_of(tensors: &[(&str, View<'_>)]) -> u64 {
    let bytes = tensors.iter().map(|(_, view)| work::length(view.bytes()));
    bytes.fold(0, u64::saturating_add)
}

/// Bytes that are written at a time: so many that a call's own cost does not count.
const PIECE: usize = 8 << 20;
