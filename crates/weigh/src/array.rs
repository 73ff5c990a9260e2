//! Tensors in memory.

use std::borrow::Cow;
use std::fmt;

use half::{bf16, f16};
use weigh_format::Dtype;
use weigh_format::shape::{Elements, byte_len, elements};
use weigh_io::Block;

use crate::Error;

/// A tensor, or a slice of one, in memory of its own: dense, little-endian, the last dimension fastest.
///
/// It begins on 64 bytes. Dropping a large one gives its memory back, though it was loaded with others.
#[derive(Debug)]
pub struct Array {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) block: Block,
    pub(crate) bytes_read: u64,
}

/// A look at the bytes of a tensor, with what they mean.
#[derive(Clone, Copy)]
pub struct View<'a> {
    dtype: Dtype,
    shape: &'a [u64],
    bytes: &'a [u8],
}

impl Array {
    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.block
    }

    /// Its bytes, to be changed.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block
    }

    /// Bytes that were read for it: for a load of several, those that were asked for.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// A look at it.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { dtype: self.dtype, shape: &self.shape, bytes: &self.block }
    }

    /// Its elements; see [`View::as_slice`].
    ///
    /// # Errors
    ///
    /// [`ElementError`] if they are not of this type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], ElementError> {
        self.view().as_slice()
    }

    /// Its elements, to be changed.
    ///
    /// # Errors
    ///
    /// [`ElementError`] if they are not of this type, or the machine is big-endian.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], ElementError> {
        check_type::<T>(self.dtype)?;
        check_byte_order::<T>()?;
        bytemuck::try_cast_slice_mut(&mut self.block).map_err(|_| ElementError::Alignment)
    }

    /// Its elements, copied where they cannot be looked at as they are.
    ///
    /// # Errors
    ///
    /// [`ElementError::Type`] if they are not of this type.
    pub fn values<T: Element>(&self) -> Result<Cow<'_, [T]>, ElementError> {
        self.view().values()
    }

    /// The memory.
    #[must_use]
    pub fn into_block(self) -> Block {
        self.block
    }
}

impl<'a> View<'a> {
    /// A look at bytes of the caller's: little-endian, the last dimension fastest.
    ///
    /// # Errors
    ///
    /// [`Error::ViewSize`] if there are not as many as the dtype and the shape take.
    pub fn of(dtype: Dtype, shape: &'a [u64], bytes: &'a [u8]) -> Result<Self, Error> {
        let got = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let wanted = match elements(shape) {
            Elements::Exact(elements) => byte_len(dtype, elements).ok(),
            _ => None,
        };
        if wanted == Some(got) {
            Ok(Self::new(dtype, shape, bytes))
        } else {
            Err(Error::ViewSize { wanted, got })
        }
    }

    pub(crate) fn new(dtype: Dtype, shape: &'a [u64], bytes: &'a [u8]) -> Self {
        Self { dtype, shape, bytes }
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// The bytes: little-endian, the last dimension fastest.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, where they are.
    ///
    /// # Errors
    ///
    /// [`ElementError::Type`] if they are not of this type; [`ElementError::Alignment`] if they do not
    /// begin where such elements must, which only happens in mapped files; [`ElementError::ByteOrder`] on
    /// big-endian machines. [`values`](Self::values) copies in the last two cases.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], ElementError> {
        check_type::<T>(self.dtype)?;
        check_byte_order::<T>()?;
        bytemuck::try_cast_slice(self.bytes).map_err(|_| ElementError::Alignment)
    }

    /// The elements, copied where they cannot be looked at as they are.
    ///
    /// # Errors
    ///
    /// [`ElementError::Type`] if they are not of this type.
    pub fn values<T: Element>(&self) -> Result<Cow<'a, [T]>, ElementError> {
        match self.as_slice() {
            Ok(elements) => Ok(Cow::Borrowed(elements)),
            Err(error @ ElementError::Type { .. }) => Err(error),
            Err(_) => {
                let elements = self.bytes.chunks_exact(size_of::<T>());
                Ok(Cow::Owned(elements.map(T::from_little_endian).collect()))
            }
        }
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("View");
        shown.field("dtype", &self.dtype).field("shape", &self.shape);
        shown.field("bytes", &self.bytes.len()).finish()
    }
}

/// A Rust type that is the element of a dtype.
pub trait Element: bytemuck::Pod + private::Sealed {
    /// The dtype.
    const DTYPE: Dtype;

    /// The element of these bytes, as many as it has.
    #[doc(hidden)]
    fn from_little_endian(bytes: &[u8]) -> Self;
}

mod private {
    #[expect(unnameable_types, reason = "nobody else is to name it")]
    pub trait Sealed {}
}

/// The bytes of an element, of a slice that has exactly as many.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

macro_rules! elements {
    ($($type:ty, $dtype:ident;)*) => {$(
        impl private::Sealed for $type {}
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;

            fn from_little_endian(bytes: &[u8]) -> Self {
                Self::from_le_bytes(array(bytes))
            }
        }
    )*};
}

elements! {
    u8, U8; i8, I8; u16, U16; i16, I16; u32, U32; i32, I32; u64, U64; i64, I64;
    f16, F16; bf16, BF16; f32, F32; f64, F64;
}

impl private::Sealed for [f32; 2] {}

/// A complex number: the real part, then the imaginary.
impl Element for [f32; 2] {
    const DTYPE: Dtype = Dtype::C64;

    fn from_little_endian(bytes: &[u8]) -> Self {
        let (real, imaginary) = bytes.split_at_checked(4).unwrap_or_default();
        [real, imaginary].map(f32::from_little_endian)
    }
}

/// Why bytes cannot be looked at as elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ElementError {
    /// The tensor has other elements.
    Type {
        /// The dtype of the type that was asked for.
        wanted: Dtype,
        /// The dtype of the tensor.
        found: Dtype,
    },
    /// They do not begin where such elements must.
    Alignment,
    /// The machine has the bytes of a number the other way around.
    ByteOrder,
}

impl ElementError {
    /// The stable code of what is wrong.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Type { .. } => "element-type",
            Self::Alignment => "element-alignment",
            Self::ByteOrder => "element-byte-order",
        }
    }
}

impl fmt::Display for ElementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { wanted, found } => write!(f, "the elements are {found}, not {wanted}"),
            Self::Alignment => f.write_str("the elements are not aligned: copy them"),
            Self::ByteOrder => f.write_str("the elements are little-endian: copy them"),
        }
    }
}

impl std::error::Error for ElementError {}

fn check_type<T: Element>(found: Dtype) -> Result<(), ElementError> {
    if found == T::DTYPE { Ok(()) } else { Err(ElementError::Type { wanted: T::DTYPE, found }) }
}

fn check_byte_order<T>() -> Result<(), ElementError> {
    let fits = cfg!(target_endian = "little") || size_of::<T>() == 1;
    if fits { Ok(()) } else { Err(ElementError::ByteOrder) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_looked_at_where_they_may_be_and_copied_elsewhere() {
        let bytes: Vec<u8> = [1.5_f32, -2.0, 3.25].into_iter().flat_map(f32::to_le_bytes).collect();
        let mut shifted = [0; 64];
        for shift in 0..8 {
            let span = shift..shift + bytes.len();
            shifted[span.clone()].copy_from_slice(&bytes);
            let view = View::new(Dtype::F32, &[3], &shifted[span]);
            assert_eq!(*view.values::<f32>().unwrap(), [1.5, -2.0, 3.25]);
            let is_aligned = view.bytes().as_ptr().addr().is_multiple_of(4);
            assert_eq!(view.as_slice::<f32>().is_ok(), is_aligned);
        }
    }

    #[test]
    fn elements_of_another_type_are_refused() {
        let view = View::new(Dtype::BF16, &[2], &[0, 0, 0x80, 0x3f]);
        assert_eq!(*view.values::<bf16>().unwrap(), [bf16::ZERO, bf16::ONE]);
        let error = view.values::<f16>().unwrap_err();
        assert_eq!(error.to_string(), "the elements are BF16, not F16");
        assert_eq!(view.as_slice::<u16>().unwrap_err().code(), "element-type");
    }

    #[test]
    fn a_complex_number_is_two_floats() {
        let bytes: Vec<u8> = [1.0_f32, 2.0].into_iter().flat_map(f32::to_le_bytes).collect();
        let [real, imaginary] = <[f32; 2]>::from_little_endian(&bytes);
        assert_eq!((real.to_bits(), imaginary.to_bits()), (1_f32.to_bits(), 2_f32.to_bits()));
    }
}
