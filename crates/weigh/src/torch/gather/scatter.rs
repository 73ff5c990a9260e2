//! Sparse tensors made dense: values added to zeros, where their indices say.
//!
//! Nothing of it is in memory as a whole, if it is large: the parts and what becomes of them are in files without
//! names, and are looked at through windows.

use std::path::Path;

use half::{bf16, f16};
use weigh_io::{FileSource, NewFile};
use weigh_pickle::Error as PickleError;
use weigh_pickle::dtype::TorchDtype;

use super::unpack::{HELD, Unpacked, unpack};
use super::{Blob, Gathered, Job, Scratch, lost, size};
use crate::{Error, work};

/// Bytes that are looked at at a time.
const WINDOW: u64 = 32 << 10;

/// A tensor that is made of indices and values.
#[derive(Debug)]
pub(crate) struct Scatter {
    /// The order in which indices and values are.
    layout: Layout,
    /// The dense shape, and for each dimension the elements from one place to the next.
    shape: Vec<u64>,
    strides: Vec<u64>,
    indices: Vec<Scattered>,
    values: Scattered,
}

/// A part of it.
#[derive(Debug)]
pub(crate) struct Scattered {
    pub(crate) gathered: Gathered,
    pub(crate) shape: Vec<u64>,
    pub(crate) dtype: TorchDtype,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Layout {
    /// Coordinates: as many dimensions of `indices` as they have rows; the others are dense.
    Coordinates { sparse: usize },
    /// Lines of blocks, after dimensions of a batch: the dimension that lines are along is compressed.
    Lines { batch: usize, by_columns: bool, block: [u64; 2] },
}

/// Whether elements can be added, as torch does it.
pub(crate) fn can_add(dtype: TorchDtype) -> bool {
    use TorchDtype as T;
    let integers = [T::UInt8, T::Int8, T::Int16, T::Int32, T::Int64, T::Bool];
    let floats = [T::Float16, T::BFloat16, T::Float32, T::Float64, T::Complex64, T::Complex128];
    integers.contains(&dtype) || floats.contains(&dtype)
}

impl Scatter {
    /// Of a layout of torch's, of these parts. `None` if they do not go together.
    pub(crate) fn new(
        layout: &str,
        shape: &[u64],
        indices: Vec<Scattered>,
        values: Scattered,
    ) -> Option<Self> {
        let is_index =
            |part: &Scattered| matches!(part.dtype, TorchDtype::Int64 | TorchDtype::Int32);
        if !indices.iter().all(is_index) {
            return None;
        }
        let mut strides = vec![1_u64; shape.len()];
        let mut stride = 1_u64;
        for (own, count) in strides.iter_mut().zip(shape).rev() {
            *own = stride;
            stride = stride.checked_mul((*count).max(1))?;
        }
        let layout = match (layout, indices.as_slice()) {
            ("sparse_coo", [indices]) => {
                let [sparse, count] = *indices.shape.as_slice() else { return None };
                let sparse = usize::try_from(sparse).ok()?;
                let (own, dense) = values.shape.split_first()?;
                let fits = *own == count && shape.get(sparse..)? == dense;
                fits.then_some(Layout::Coordinates { sparse })?
            }
            (layout, [lines, plain]) => {
                let by_columns = matches!(layout, "sparse_csc" | "sparse_bsc");
                let (line_count, batch) = lines.shape.split_last()?;
                let (count, plain_batch) = plain.shape.split_last()?;
                let values_batch = values.shape.get(..batch.len())?;
                let rest = values.shape.get(batch.len()..)?;
                let (own, mut rest) = rest.split_first()?;
                let mut block = [1, 1];
                if matches!(layout, "sparse_bsr" | "sparse_bsc") {
                    let [rows, columns, dense @ ..] = rest else { return None };
                    (block, rest) = ([*rows, *columns], dense);
                }
                let dims = shape.get(batch.len()..)?;
                let [rows, columns, dense @ ..] = dims else { return None };
                let compressed = if by_columns { (columns, block[1]) } else { (rows, block[0]) };
                let fits = plain_batch == batch
                    && values_batch == batch
                    && shape.get(..batch.len())? == batch
                    && own == count
                    && rest == dense
                    && !block.contains(&0)
                    && rows.is_multiple_of(block[0])
                    && columns.is_multiple_of(block[1])
                    && line_count.checked_sub(1)? == compressed.0 / compressed.1;
                fits.then_some(Layout::Lines { batch: batch.len(), by_columns, block })?
            }
            _ => return None,
        };
        Some(Self { layout, shape: shape.to_vec(), strides, indices, values })
    }

    /// The blobs that its parts are in.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = usize> {
        self.indices.iter().chain([&self.values]).map(|part| part.gathered.blob)
    }

    /// Makes it dense, in memory or in a file without a name beside `output`.
    pub(super) fn unpack(
        &self,
        sources: &[&FileSource],
        blobs: &[Blob],
        len: u64,
        output: &Path,
    ) -> Result<Unpacked, Error> {
        // Of no bytes there may be any number of values.
        if len == 0 {
            return zeros(0, output);
        }
        let whole = |part: &Scattered| collect(sources, blobs, &part.gathered, output);
        let indices = self.indices.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
        let values = whole(&self.values)?;
        let mut dense = zeros(len, output)?;
        let failed = || {
            let path = sources.first().map_or(Path::new(""), |source| source.path());
            let message = "an index of a sparse tensor is outside its shape";
            Error::torch(path, PickleError::new("sparse-index", message))
        };
        let mut into = Into {
            dense: Window::new(Lent::Written(&mut dense), len),
            values: Window::new(Lent::Read(&values), self.values.gathered.bytes()),
            dtype: self.values.dtype,
            from: Vec::new(),
        };
        match self.layout {
            Layout::Coordinates { sparse } => {
                self.coordinates(sparse, &indices, &mut into)?.ok_or_else(failed)?;
            }
            Layout::Lines { batch, by_columns, block } => {
                self.lines(batch, by_columns, block, &indices, &mut into)?.ok_or_else(failed)?;
            }
        }
        into.dense.flush()?;
        Ok(dense)
    }

    /// Adds values by their coordinates. `None` for such as are outside.
    fn coordinates(
        &self,
        sparse: usize,
        indices: &[Unpacked],
        into: &mut Into<'_>,
    ) -> Result<Option<()>, Error> {
        let ([all], [of]) = (indices, self.indices.as_slice()) else { return Err(lost()) };
        let count = of.shape.last().copied().unwrap_or(0);
        let dense = self.shape.iter().skip(sparse).fold(1_u64, |all, it| all.saturating_mul(*it));
        // Each coordinate in a window of its own: they are far apart.
        let windows = (0..sparse).map(|_| Numbers::new(all, of));
        let mut windows: Vec<Numbers<'_>> = windows.collect();
        for number in 0..count {
            let mut place = 0_u64;
            for (row, (window, (size, stride))) in
                (0_u64..).zip(windows.iter_mut().zip(self.shape.iter().zip(&self.strides)))
            {
                let index = window.get(row.saturating_mul(count).saturating_add(number))?;
                let Some(index) = u64::try_from(index).ok().filter(|index| index < size) else {
                    return Ok(None);
                };
                place = place.saturating_add(index.saturating_mul(*stride));
            }
            into.add(number.saturating_mul(dense), place, dense)?;
        }
        Ok(Some(()))
    }

    /// Adds blocks, line after line. `None` for such as are outside.
    fn lines(
        &self,
        batch: usize,
        by_columns: bool,
        block: [u64; 2],
        indices: &[Unpacked],
        into: &mut Into<'_>,
    ) -> Result<Option<()>, Error> {
        let ([all_lines, all_plain], [of_lines, of_plain]) = (indices, self.indices.as_slice())
        else {
            return Err(lost());
        };
        let product =
            |sizes: &[u64]| sizes.iter().fold(1_u64, |all, size| all.saturating_mul(*size));
        let batches = product(self.shape.get(..batch).unwrap_or_default());
        let ends = of_lines.shape.last().copied().unwrap_or(0);
        let count = of_plain.shape.last().copied().unwrap_or(0);
        let dims = (self.shape.get(batch..), self.strides.get(batch..));
        let (Some([rows, columns, dense @ ..]), Some([row_stride, column_stride, ..])) = dims
        else {
            return Err(lost());
        };
        let dense = product(dense);
        let plain_count =
            if by_columns { rows / block[0].max(1) } else { columns / block[1].max(1) };
        let (mut lines, mut plain) =
            (Numbers::new(all_lines, of_lines), Numbers::new(all_plain, of_plain));
        let matrix = rows.saturating_mul(*row_stride);
        for number in 0..batches {
            let base = number.saturating_mul(matrix);
            for line in 0..ends.saturating_sub(1) {
                let at = number.saturating_mul(ends).saturating_add(line);
                let [begin, end] = [lines.get(at)?, lines.get(at.saturating_add(1))?];
                let (Ok(begin), Ok(end)) = (u64::try_from(begin), u64::try_from(end)) else {
                    return Ok(None);
                };
                if begin > end || end > count {
                    return Ok(None);
                }
                for own in begin..end {
                    let own = number.saturating_mul(count).saturating_add(own);
                    let index = u64::try_from(plain.get(own)?).ok();
                    let Some(index) = index.filter(|index| *index < plain_count) else {
                        return Ok(None);
                    };
                    let (row, column) = if by_columns { (index, line) } else { (line, index) };
                    let [row, column] = [row * block[0], column * block[1]];
                    for inner in 0..block[0] {
                        let run = block[1].saturating_mul(dense);
                        let from = (own * block[0]).saturating_add(inner).saturating_mul(run);
                        let to = base
                            .saturating_add((row + inner).saturating_mul(*row_stride))
                            .saturating_add(column.saturating_mul(*column_stride));
                        into.add(from, to, run)?;
                    }
                }
            }
        }
        Ok(Some(()))
    }
}

/// The bytes of a part, made as they are to be.
fn collect(
    sources: &[&FileSource],
    blobs: &[Blob],
    gathered: &Gathered,
    output: &Path,
) -> Result<Unpacked, Error> {
    let unpacked = unpack(sources, blobs, std::iter::once(gathered), output)?;
    let job = Job { sources, blobs, unpacked: &unpacked, tensors: vec![(gathered, 0)], sums: None };
    let mut whole = zeros(gathered.bytes(), output)?;
    let mut scratch = Scratch::default();
    for piece in &job.works() {
        job.run(piece, &mut scratch, &mut |at, bytes| whole.write(at, bytes))?;
    }
    Ok(whole)
}

/// Zeros, in memory or in a file without a name beside `output`.
fn zeros(len: u64, output: &Path) -> Result<Unpacked, Error> {
    if len <= HELD {
        return Ok(Unpacked::Held(vec![0; size(len)]));
    }
    let options = weigh_io::WriteOptions { replace: true, sync: false };
    let file = NewFile::create(output, &options)?;
    file.reserve(len)?;
    Ok(Unpacked::Spilled(Box::new(file)))
}

/// Where values are added.
struct Into<'w> {
    dense: Window<'w>,
    values: Window<'w>,
    dtype: TorchDtype,
    from: Vec<u8>,
}

impl Into<'_> {
    /// Adds so many elements, by their numbers.
    fn add(&mut self, from: u64, to: u64, count: u64) -> Result<(), Error> {
        let bytes = self.dtype.bytes();
        let [mut from, mut to, mut left] = [from, to, count].map(|it| it.saturating_mul(bytes));
        while left > 0 {
            let values = self.values.at(from, left)?;
            self.from.clear();
            self.from.extend_from_slice(values);
            let wanted = work::length(&self.from);
            let into = self.dense.at(to, wanted)?;
            let done = work::length(into).min(wanted);
            add(self.dtype, into, &self.from);
            self.dense.is_changed = true;
            from = from.saturating_add(done);
            to = to.saturating_add(done);
            left = left.saturating_sub(done);
        }
        Ok(())
    }
}

/// Integers of a part, by number.
struct Numbers<'w> {
    window: Window<'w>,
    is_wide: bool,
}

impl<'w> Numbers<'w> {
    fn new(of: &'w Unpacked, part: &Scattered) -> Self {
        let window = Window::new(Lent::Read(of), part.gathered.bytes());
        Self { window, is_wide: part.dtype == TorchDtype::Int64 }
    }

    fn get(&mut self, number: u64) -> Result<i64, Error> {
        if self.is_wide {
            let bytes = self.window.at(number.saturating_mul(8), 8)?;
            let number = bytes.first_chunk::<8>().ok_or_else(lost)?;
            return Ok(i64::from_le_bytes(*number));
        }
        let bytes = self.window.at(number.saturating_mul(4), 4)?;
        let number = bytes.first_chunk::<4>().ok_or_else(lost)?;
        Ok(i32::from_le_bytes(*number).into())
    }
}

/// Bytes that a window is of.
enum Lent<'w> {
    Read(&'w Unpacked),
    Written(&'w mut Unpacked),
}

/// A part of bytes that are in memory or in a file. It begins on a multiple of its size, so that no element is cut.
struct Window<'w> {
    of: Lent<'w>,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
    is_changed: bool,
}

impl<'w> Window<'w> {
    fn new(of: Lent<'w>, len: u64) -> Self {
        Self { of, len, start: 0, bytes: Vec::new(), is_changed: false }
    }

    /// Bytes from a place on: as many as are wanted, or those up to the end of the window.
    fn at(&mut self, at: u64, wanted: u64) -> Result<&mut [u8], Error> {
        let end = self.start.saturating_add(work::length(&self.bytes));
        if !(self.start..end).contains(&at) {
            self.flush()?;
            self.start = at - at % WINDOW;
            let len = self.len.checked_sub(self.start).ok_or_else(lost)?.min(WINDOW);
            self.bytes.resize(size(len), 0);
            match &self.of {
                Lent::Read(of) => of.read(self.start, &mut self.bytes)?,
                Lent::Written(of) => of.read(self.start, &mut self.bytes)?,
            }
        }
        let rest = self.bytes.get_mut(size(at - self.start)..).ok_or_else(lost)?;
        let len = rest.len().min(size(wanted));
        let part = rest.get_mut(..len).filter(|part| !part.is_empty());
        part.ok_or_else(lost)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if let (true, Lent::Written(of)) = (std::mem::take(&mut self.is_changed), &mut self.of) {
            of.write(self.start, &self.bytes)?;
        }
        Ok(())
    }
}

/// Adds elements to others, as torch rounds; booleans are either.
fn add(dtype: TorchDtype, into: &mut [u8], from: &[u8]) {
    macro_rules! each {
        ($type:ty, $bytes:literal, $sum:expr) => {
            for (into, from) in
                into.as_chunks_mut::<$bytes>().0.iter_mut().zip(from.as_chunks::<$bytes>().0)
            {
                let sum: fn($type, $type) -> $type = $sum;
                *into =
                    sum(<$type>::from_le_bytes(*into), <$type>::from_le_bytes(*from)).to_le_bytes();
            }
        };
    }
    match dtype {
        TorchDtype::Float64 | TorchDtype::Complex128 => each!(f64, 8, |one, other| one + other),
        TorchDtype::Float32 | TorchDtype::Complex64 => each!(f32, 4, |one, other| one + other),
        TorchDtype::Float16 => {
            each!(f16, 2, |one, other| f16::from_f32(one.to_f32() + other.to_f32()));
        }
        TorchDtype::BFloat16 => {
            each!(bf16, 2, |one, other| bf16::from_f32(one.to_f32() + other.to_f32()));
        }
        TorchDtype::Int64 => each!(i64, 8, i64::wrapping_add),
        TorchDtype::Int32 => each!(i32, 4, i32::wrapping_add),
        TorchDtype::Int16 => each!(i16, 2, i16::wrapping_add),
        TorchDtype::Bool => each!(u8, 1, |one, other| one | other),
        _ => each!(u8, 1, u8::wrapping_add),
    }
}
