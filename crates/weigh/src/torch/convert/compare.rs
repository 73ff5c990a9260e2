//! What was written, compared with what the descriptors say.
//!
//! Tensors that are not in one run are looked at in another way than they were written: every element is taken from the
//! storage in the order of the storage, with the place in the tensor that it has to have, and every element of the
//! output in the order of the output. Two sums of keyed hashes of places and elements are the same, or something is not
//! where it belongs. So a fault of what gathers is found too.

use std::hash::{BuildHasher, RandomState};

use weigh_io::NewFile;

use crate::Error;
use crate::torch::gather::{Gathered, Job, lost, resized, size};
use crate::work::{self, Meter};

/// Bytes that are looked at at a time.
const WINDOW: u64 = 1 << 20;

/// Elements further apart than this are read one by one.
const FAR: u64 = 64 << 10;

/// Whether a tensor of a job is in the output from this byte on.
pub(super) fn is_written(
    job: &Job<'_>,
    gathered: &Gathered,
    new: &NewFile,
    at: u64,
    meter: &Meter<'_>,
) -> Result<bool, Error> {
    let key = Key::new();
    let wanted = of_storage(job, gathered, &key, meter)?;
    let found = of_output(gathered, new, at, &key, meter)?;
    Ok(wanted == found)
}

/// Whether a tensor is compared in that way.
pub(super) fn is_strided(gathered: &Gathered) -> bool {
    !gathered.pattern.dims.is_empty() && gathered.bytes() > 0
}

/// The sum of the elements of the storage.
fn of_storage(
    job: &Job<'_>,
    gathered: &Gathered,
    key: &Key,
    meter: &Meter<'_>,
) -> Result<u64, Error> {
    let pattern = &gathered.pattern;
    let unit = unit(gathered);
    // The places of each dimension: in the storage, and in the tensor, gathered.
    let mut dims: Vec<Dim> = Vec::with_capacity(pattern.dims.len());
    let mut own = pattern.run;
    for (count, stride) in pattern.dims.iter().rev() {
        dims.push(Dim { count: *count, stride: *stride, own, place: 0 });
        own = own.saturating_mul(*count);
    }
    // In the order of the storage, outermost first.
    dims.sort_by_key(|dim| std::cmp::Reverse(dim.stride));
    let is_far = dims.last().is_some_and(|dim| dim.stride > FAR);
    let mut window = Window { start: 0, bytes: Vec::new(), least: if is_far { 1 } else { WINDOW } };
    let (mut run, mut made) = (Vec::new(), Vec::new());
    let mut sum = 0_u64;
    let mut checked = 0_u64;
    loop {
        let (mut from, mut to) = (pattern.first, 0_u64);
        for dim in &dims {
            from = from.saturating_add(dim.place.saturating_mul(dim.stride));
            to = to.saturating_add(dim.place.saturating_mul(dim.own));
        }
        let mut done = 0;
        while done < pattern.run {
            let len = (pattern.run - done).min(WINDOW);
            let own = resized(&mut run, len)?;
            window.read(job, gathered.blob, from.saturating_add(done), own)?;
            let out = gathered.make.apply(own, to.saturating_add(done), &mut made);
            sum = key.add(sum, gathered.make.bytes(to.saturating_add(done)), out, unit);
            done = done.saturating_add(len);
        }
        checked = checked.saturating_add(pattern.run);
        if checked >= WINDOW {
            checked = 0;
            meter.check()?;
        }
        if !next(&mut dims) {
            return Ok(sum);
        }
    }
}

/// The sum of the elements of the output.
fn of_output(
    gathered: &Gathered,
    new: &NewFile,
    at: u64,
    key: &Key,
    meter: &Meter<'_>,
) -> Result<u64, Error> {
    let (len, unit) = (gathered.bytes(), unit(gathered));
    let mut buffer = Vec::new();
    let (mut done, mut sum) = (0, 0);
    while done < len {
        let piece = resized(&mut buffer, (len - done).min(WINDOW))?;
        new.read_exact_at(piece, at.saturating_add(done))?;
        sum = key.add(sum, done, piece, unit);
        let bytes = work::length(piece);
        done = done.saturating_add(bytes);
        meter.add(bytes)?;
    }
    Ok(sum)
}

/// Bytes that are hashed together: they divide every run, as it is written.
fn unit(gathered: &Gathered) -> usize {
    let run = gathered.make.bytes(gathered.pattern.run);
    [8, 4, 2].into_iter().find(|unit| run.is_multiple_of(*unit)).map_or(1, size)
}

/// A dimension that is walked.
struct Dim {
    count: u64,
    stride: u64,
    /// Bytes from one place to the next in the tensor.
    own: u64,
    place: u64,
}

/// The next place, the last dimension first; whether there is one.
fn next(dims: &mut [Dim]) -> bool {
    for dim in dims.iter_mut().rev() {
        dim.place = dim.place.saturating_add(1);
        if dim.place < dim.count {
            return true;
        }
        dim.place = 0;
    }
    false
}

/// Bytes of a storage that were read.
struct Window {
    start: u64,
    bytes: Vec<u8>,
    /// Bytes that are read at least, if there are so many.
    least: u64,
}

impl Window {
    fn read(&mut self, job: &Job<'_>, blob: usize, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let wanted = work::length(into);
        let end = self.start.saturating_add(work::length(&self.bytes));
        if at < self.start || at.saturating_add(wanted) > end {
            let len = job.blobs.get(blob).ok_or_else(lost)?.len;
            let rest = len.checked_sub(at).ok_or_else(lost)?;
            self.bytes.resize(size(rest.min(self.least.max(wanted))), 0);
            job.read(blob, at, &mut self.bytes)?;
            self.start = at;
        }
        let own = self.bytes.get(size(at.saturating_sub(self.start))..);
        let own = own.and_then(|rest| rest.get(..into.len())).ok_or_else(lost)?;
        into.copy_from_slice(own);
        Ok(())
    }
}

/// What hashes are made with: nobody can know it beforehand.
struct Key([u64; 2]);

impl Key {
    fn new() -> Self {
        let state = RandomState::new();
        Self([state.hash_one(0_u8), state.hash_one(1_u8)])
    }

    /// Adds the hashes of elements to a sum, `place` being where the first is.
    fn add(&self, sum: u64, place: u64, bytes: &[u8], unit: usize) -> u64 {
        let places = (0_u64..).map(|number| place.wrapping_add(number.wrapping_mul(unit as u64)));
        bytes.chunks_exact(unit.max(1)).zip(places).fold(sum, |sum, (element, place)| {
            let mut value = [0; 8];
            if let Some(into) = value.get_mut(..element.len()) {
                into.copy_from_slice(element);
            }
            sum.wrapping_add(self.hash(place, u64::from_le_bytes(value)))
        })
    }

    fn hash(&self, place: u64, value: u64) -> u64 {
        let [first, second] = self.0;
        let place = mixed(place ^ first);
        mixed(value ^ place.rotate_left(32) ^ second).wrapping_mul(place | 1)
    }
}

/// Every bit of the result depends on every bit of the number.
fn mixed(number: u64) -> u64 {
    let once = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let twice = (once ^ once >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    twice ^ twice >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_elements_at_their_places_in_any_order() {
        let key = Key::new();
        let bytes: Vec<u8> = (0..64).collect();
        for unit in [1, 2, 4, 8] {
            let whole = key.add(0, 0, &bytes, unit);
            let parts = key.add(key.add(0, 32, &bytes[32..], unit), 0, &bytes[..32], unit);
            assert_eq!(whole, parts);
            // Two elements that changed places.
            let mut other = bytes.clone();
            (0..unit).for_each(|byte| other.swap(byte, 16 + byte));
            assert_ne!(key.add(0, 0, &other, unit), whole);
            // One that is another.
            let mut other = bytes.clone();
            other[63] ^= 1;
            assert_ne!(key.add(0, 0, &other, unit), whole);
        }
    }
}
