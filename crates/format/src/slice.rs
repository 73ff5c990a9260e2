//! A slice of a tensor: which of its bytes it takes, as runs of a regular pattern.
//!
//! Indices mean what they mean in numpy's basic indexing: a number takes one place and drops the
//! dimension, a range with a step takes some places, and dimensions that no index is given for are
//! taken whole. [`Slice::new`] turns them into a shape and [`Runs`], counted from the first byte of the
//! tensor. Nothing is read here: a reader fetches the runs in order, end to end, and has the dense slice;
//! where steps were negative, [`reverse`] then turns some axes of it around.
//!
//! This is not fancy indexing: there are no masks, no lists of places and no new axes.
//!
//! Elements of under 8 bits are packed from the low bits of a byte up. They are sliced as long as no bit
//! has to be shifted: every run begins on a byte, both in the tensor and in the slice.
//!
//! # Untrusted input
//!
//! Shapes and indices may be any numbers. Nothing here panics or wraps, and memory is a few words for each
//! dimension of the shape, however many runs there are.

mod error;
mod index;
mod reverse;
mod runs;
mod spelling;

use alloc::vec::Vec;

pub use error::SliceError;
pub use index::Index;
pub use reverse::{ReverseError, reverse};
pub use runs::{Repeat, Runs, RunsIter};
pub use spelling::{Indices, SyntaxError, SyntaxErrorKind};

use crate::Dtype;
use crate::shape::{self, SizeError};
use runs::Pattern;

/// A slice of a tensor of known dtype and shape.
///
/// ```
/// use weigh_format::Dtype;
/// use weigh_format::slice::{Index, Slice};
///
/// // Rows 2, 4 and 6 of 8, and of each the last 16 of 64 elements.
/// let rows = Index::from(2..8).step(2);
/// let slice = Slice::new(Dtype::F32, &[8, 64], &[rows, Index::from(-16..)])?;
/// assert_eq!(slice.shape(), [3, 16]);
/// assert_eq!(slice.byte_len(), 192);
/// let runs: Vec<_> = slice.runs().iter().collect();
/// assert_eq!(runs, [704..768, 1216..1280, 1728..1792]);
/// # Ok::<(), weigh_format::slice::SliceError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Slice {
    shape: Vec<u64>,
    runs: Runs,
    reversed: Vec<usize>,
    is_whole: bool,
    spare_bits: u32,
}

impl Slice {
    /// The slice that `index` takes of a tensor of this dtype and shape.
    ///
    /// Dimensions that no index is given for are taken whole: those after the last index, or those that an
    /// [`Index::Ellipsis`] stands for. A slice may be empty.
    ///
    /// # Errors
    ///
    /// [`SliceError`]: the first fault, the size of the tensor coming before the number of indices and
    /// that before the indices, outermost dimension first. Elements of under 8 bits come last.
    pub fn new(dtype: Dtype, shape: &[u64], index: &[Index]) -> Result<Self, SliceError> {
        let elements = element_count(dtype, shape)?;
        let mut pattern = Pattern::default();
        let mut sliced = Vec::with_capacity(shape.len());
        let mut reversed = Vec::new();
        // Elements in one place of the dimension at hand.
        let mut unit = elements;
        let per_axis = index::for_each_axis(index, shape.len())?;
        for (axis, (&size, index)) in shape.iter().zip(per_axis).enumerate() {
            unit = unit.checked_div(size).unwrap_or(0);
            let taken = index.take(axis, size)?;
            if taken.is_reversed {
                reversed.push(sliced.len());
            }
            if taken.is_kept {
                sliced.push(taken.count);
            }
            if elements > 0 {
                pattern.take(&taken, unit).ok_or(SliceError::TooLarge)?;
            }
        }
        let taken = shape::elements(&sliced).number().ok_or(SliceError::TooLarge)?;
        if taken == 0 {
            return Ok(Self {
                shape: sliced,
                runs: Runs::default(),
                reversed: Vec::new(),
                is_whole: elements == 0,
                spare_bits: 0,
            });
        }
        let (runs, spare_bits) = pattern.runs(dtype)?;
        if let Some(axis) = reverse::inside_bytes(&sliced, &reversed, dtype) {
            return Err(SliceError::ReversedInsideByte { axis, dtype });
        }
        let is_whole = taken == elements && reversed.is_empty();
        Ok(Self { shape: sliced, runs, reversed, is_whole, spare_bits })
    }

    /// All of a tensor: what [`Slice::new`] gives without an index.
    ///
    /// # Errors
    ///
    /// [`SliceError::TooLarge`] if the tensor is over 2^64 − 1 elements or bytes.
    pub fn whole(dtype: Dtype, shape: &[u64]) -> Result<Self, SliceError> {
        Self::new(dtype, shape, &[])
    }

    /// The dimensions of the slice, outermost first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes to read, in the order of the file.
    #[must_use]
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Bytes of the dense slice: of all runs together.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.runs.byte_len()
    }

    /// The axes of the slice, ascending, that come in the order of the file and have to be turned around
    /// by [`reverse`], because their step is negative.
    #[must_use]
    pub fn reversed(&self) -> &[usize] {
        &self.reversed
    }

    /// Whether this is every byte of the tensor as it is in the file: at most one run, nothing to reverse.
    ///
    /// Its shape is the tensor's, or lacks some dimensions of size 1.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// How many of the high bits of the last byte do not belong to the slice: 0, 2, 4 or 6.
    ///
    /// They hold what comes next in the tensor. A reader clears them.
    #[must_use]
    pub fn spare_bits(&self) -> u32 {
        self.spare_bits
    }
}

/// The number of elements of a tensor, if both they and their bytes can be counted.
fn element_count(dtype: Dtype, shape: &[u64]) -> Result<u64, SliceError> {
    let elements = shape::elements(shape).number().ok_or(SliceError::TooLarge)?;
    match shape::byte_len(dtype, elements) {
        Err(SizeError::Overflow) => Err(SliceError::TooLarge),
        // A file has no such tensor; a slice of one is sound all the same.
        Ok(_) | Err(SizeError::NotBytes { .. }) => Ok(elements),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn slice(shape: &[u64], index: &str) -> Slice {
        let index: Indices = index.parse().unwrap();
        Slice::new(Dtype::U8, shape, &index).unwrap()
    }

    /// The runs of a slice: where they begin, their bytes, and how they repeat.
    fn pattern(slice: &Slice) -> (u64, u64, Vec<(u64, u64)>) {
        let Runs { first, run, dims } = slice.runs();
        (*first, *run, dims.iter().map(|repeat| (repeat.count, repeat.stride)).collect())
    }

    #[test]
    fn what_is_contiguous_is_one_run_and_what_is_regular_one_dimension() {
        for (index, want) in [
            // All of the inner dimensions, and a range of the outermost.
            (":,:,:", (0, 120, vec![])),
            ("1:3", (30, 60, vec![])),
            ("1:4:2", (30, 30, vec![(2, 60)])),
            // A range inside, repeated by all that is outside.
            (":,1:3", (6, 12, vec![(4, 30)])),
            (":,:,1:3", (1, 2, vec![(20, 6)])),
            (":,:,::2", (0, 1, vec![(60, 2)])),
            (":,:,::4", (0, 1, vec![(20, 6), (2, 4)])),
            (":,::2,:", (0, 6, vec![(4, 30), (3, 12)])),
            ("::2,::2,::5", (0, 1, vec![(2, 60), (3, 12), (2, 5)])),
            // A dimension of one place leaves no trace but its offset.
            ("2", (60, 30, vec![])),
            (":,3", (18, 6, vec![(4, 30)])),
            (":,:,-1", (5, 1, vec![(20, 6)])),
            ("1,2,3", (45, 1, vec![])),
            ("1:2,4:5,5:9", (59, 1, vec![])),
            // Backwards is read forwards.
            ("::-1", (0, 120, vec![])),
            ("3:0:-2,::-1", (30, 30, vec![(2, 60)])),
            ("...,::-2", (1, 1, vec![(60, 2)])),
            // Nothing.
            ("4:", (0, 0, vec![])),
            ("2,:,3:3", (0, 0, vec![])),
        ] {
            assert_eq!(pattern(&slice(&[4, 5, 6], index)), want, "{index}");
        }
    }

    #[test]
    fn a_shape_lacks_the_dimensions_that_one_place_is_taken_of() {
        for (index, shape, reversed) in [
            ("...", &[4, 5, 6][..], &[][..]),
            ("0", &[5, 6], &[]),
            ("...,0", &[4, 5], &[]),
            ("0,...,0", &[5], &[]),
            ("0,0,0,...", &[], &[]),
            ("0:1,0,::-1", &[1, 6], &[1]),
            ("::-1,::2,::-3", &[4, 3, 2], &[0, 2]),
            // One place is the same in both directions, and so is none.
            ("0::-1,::-5,::-7", &[1, 1, 1], &[]),
            ("::-1,0:0", &[4, 0, 6], &[]),
        ] {
            let slice = slice(&[4, 5, 6], index);
            assert_eq!((slice.shape(), slice.reversed()), (shape, reversed), "{index}");
        }
    }

    #[test]
    fn whole_means_every_byte_in_its_order() {
        for (shape, index, is_whole) in [
            (&[4, 5][..], "...", true),
            (&[4, 5], "0:4,-5:", true),
            (&[1, 5], "0", true),
            (&[4, 5], "1:", false),
            (&[4, 5], "::-1", false),
            (&[1, 5], "::-1", true),
            (&[], "...", true),
            (&[0, 5], ":,1", true),
            (&[4, 5], "4:", false),
        ] {
            assert_eq!(slice(shape, index).is_whole(), is_whole, "{shape:?} {index}");
        }
        let whole = Slice::whole(Dtype::F32, &[4, 5]).unwrap();
        assert_eq!(whole.byte_len(), 80);
        assert!(whole.is_whole());
    }

    #[test]
    fn what_is_contiguous_takes_no_memory_but_its_shape() {
        for index in ["...", "1:3", "2,1", "2,1:3,::-1"] {
            let slice = slice(&[4, 5, 6], index);
            assert_eq!(slice.runs.dims.capacity(), 0, "{index}");
        }
        assert_eq!(slice(&[4, 5, 6], "1:3").reversed.capacity(), 0);
    }

    #[test]
    fn runs_of_small_elements_begin_on_bytes() {
        // The end of a single run, and no other place, may be inside a byte.
        for (dtype, shape, index, want) in [
            (Dtype::F4, &[8][..], "2:4", Ok((1, 1, 0))),
            (Dtype::F4, &[8], "2:5", Ok((1, 2, 4))),
            (Dtype::F4, &[8], "2", Ok((1, 1, 4))),
            (Dtype::F4, &[8], "3:4", Err((3, false))),
            (Dtype::F4, &[8], "::2", Err((2, true))),
            (Dtype::F4, &[8], "::3", Err((3, false))),
            (Dtype::F4, &[8], "::8", Ok((0, 1, 4))),
            (Dtype::F4, &[2, 3], "0", Ok((0, 2, 4))),
            (Dtype::F4, &[2, 3], "1", Err((3, false))),
            (Dtype::F4, &[2, 3], ":", Ok((0, 3, 0))),
            (Dtype::F4, &[2, 3], ":,:2", Err((3, false))),
            (Dtype::F4, &[3, 4], ":,:2", Ok((0, 1, 0))),
            (Dtype::F4, &[3, 4], ":,2:3", Err((6, true))),
            (Dtype::F4, &[2, 3, 2], ":,::2", Ok((0, 1, 0))),
            (Dtype::F4, &[3], "1:1", Ok((0, 0, 0))),
            (Dtype::F6_E2M3, &[8], "4:5", Ok((3, 1, 2))),
            (Dtype::F6_E2M3, &[8], "4:6", Ok((3, 2, 4))),
            (Dtype::F6_E2M3, &[8], "4:7", Ok((3, 3, 6))),
            (Dtype::F6_E2M3, &[8], "4:8", Ok((3, 3, 0))),
            (Dtype::F6_E3M2, &[8], "2:4", Err((2, false))),
            (Dtype::F6_E3M2, &[3, 8], "::2,4:8", Ok((3, 3, 0))),
            (Dtype::F6_E3M2, &[3, 8], "::2,4:6", Err((20, true))),
        ] {
            let index: Indices = index.parse().unwrap();
            let got = Slice::new(dtype, shape, &index);
            let got = got.map(|it| (it.runs().first, it.runs().run, it.spare_bits()));
            let want = want.map_err(|(element, in_slice)| SliceError::InsideByte {
                dtype,
                element,
                in_slice,
            });
            assert_eq!(got, want, "{dtype} {shape:?} {index}");
        }
    }

    #[test]
    fn small_elements_are_reversed_by_whole_bytes() {
        for (dtype, shape, index, axis) in [
            (Dtype::F4, &[4, 4][..], "::-1", None),
            (Dtype::F4, &[4, 3], "::-1", Some(0)),
            (Dtype::F4, &[4, 4], ":,::-1", Some(1)),
            (Dtype::F4, &[4, 4], "::-1,0:4:-1", None),
            (Dtype::F4, &[4, 4], ":,0::-1", Some(0)),
            (Dtype::F6_E2M3, &[3, 4], "::-1", None),
            (Dtype::F6_E2M3, &[4, 2], "::-1", Some(0)),
            (Dtype::F6_E2M3, &[4, 2, 2], "::-1", None),
        ] {
            let index: Indices = index.parse().unwrap();
            let got = Slice::new(dtype, shape, &index);
            match (axis, got) {
                (Some(_), Err(SliceError::InsideByte { .. })) | (None, Ok(_)) => {}
                (Some(want), Err(SliceError::ReversedInsideByte { axis, .. })) => {
                    assert_eq!(axis, want, "{dtype} {shape:?} {index}");
                }
                (_, got) => panic!("{dtype} {shape:?} {index}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_tensor_is_counted_in_64_bits() {
        let max = u64::MAX;
        for (dtype, shape, is_error) in [
            (Dtype::U8, &[max][..], false),
            (Dtype::U8, &[max, 2], true),
            (Dtype::U8, &[max, 2, 0], false),
            (Dtype::U16, &[max / 2], false),
            (Dtype::U16, &[max / 2 + 1], true),
            (Dtype::F4, &[max], false),
        ] {
            let got = Slice::whole(dtype, shape);
            let want = if is_error { Some(SliceError::TooLarge) } else { None };
            assert_eq!(got.err(), want, "{dtype} {shape:?}");
        }
        let far = slice(&[max], "::-9223372036854775808");
        assert_eq!(far.shape(), [2]);
        assert_eq!(far.runs().span(), max / 2 - 1..max);
        assert_eq!(far.runs().iter().last(), Some(max - 1..max));
    }

    #[test]
    fn every_fault_says_what_and_where() {
        for (dtype, index, code, message, help) in [
            (
                Dtype::U8,
                "0,0,...,0",
                "slice-too-many-indices",
                "too many indices: 3 for a tensor of 2 dimensions",
                None,
            ),
            (
                Dtype::U8,
                "...,0,...",
                "slice-two-ellipses",
                "an index can have only one `...`",
                Some("Write `:` for each whole dimension instead."),
            ),
            (
                Dtype::U8,
                "0,5",
                "slice-out-of-range",
                "index 5 is out of range for dimension 1 of size 5",
                None,
            ),
            (
                Dtype::U8,
                "-7,::0",
                "slice-out-of-range",
                "index -7 is out of range for dimension 0 of size 6",
                None,
            ),
            (
                Dtype::U8,
                "...,3:4:0",
                "slice-step-zero",
                "the step of dimension 1 is 0",
                Some("Give one place alone to take it: `3`, not `3:4:0`."),
            ),
            (
                Dtype::F4,
                "1",
                "slice-inside-byte",
                "element 5 would begin a run inside a byte of the tensor: F4 has 4 bits",
                Some("Two elements share a byte: begin and end ranges at even places."),
            ),
            (
                Dtype::F6_E2M3,
                "::4,:1",
                "slice-inside-byte",
                "element 20 would begin a run inside a byte of the slice: F6_E2M3 has 6 bits",
                Some("Four elements share three bytes: begin and end ranges at multiples of 4."),
            ),
            (
                Dtype::F4,
                "0,::-1",
                "slice-reversed-inside-byte",
                "dimension 0 of the slice cannot be reversed inside bytes: F4 has 4 bits",
                Some("Take the range with a positive step, and reverse it after decoding."),
            ),
        ] {
            let index: Indices = index.parse().unwrap();
            let error = Slice::new(dtype, &[6, 5], &index).unwrap_err();
            let got = (error.code(), error.to_string());
            assert_eq!(got, (code, message.to_string()), "{index}");
            assert_eq!(error.help(), help, "{index}");
        }
        let error = Slice::new(Dtype::U8, &[0], &[Index::At(0)]).unwrap_err();
        assert_eq!(error.to_string(), "index 0 is out of range for dimension 0 of size 0");
        assert_eq!(error.help(), Some("Take a range: the dimension is empty."));
        let error = Slice::whole(Dtype::U8, &[u64::MAX, 2]).unwrap_err();
        assert_eq!(error.code(), "size-overflow");
        assert_eq!(error.to_string(), "the tensor is over 2^64 - 1 elements or bytes");
    }
}
