//! What is made of gathered bytes before they are written.

use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::transform::{Transforms, apply};

/// What is made of the bytes of a tensor.
#[derive(Clone, Debug)]
pub(crate) enum Make {
    /// Nothing: they are copied.
    Copy,
    /// Elements that are swapped or negated, or booleans that are 0 or 1 afterwards.
    Elements {
        /// What they are.
        dtype: TorchDtype,
        /// What is done to them.
        transforms: Transforms,
    },
    /// Floats, of integers with scales.
    Dequantize(Dequantize),
    /// Bytes, of integers of less than a byte.
    Unpack(Integers),
}

impl Make {
    /// What is to be made of elements of a dtype.
    pub(crate) fn of(dtype: TorchDtype, transforms: Transforms) -> Self {
        if transforms.is_none() && !dtype.is_bool() {
            Self::Copy
        } else {
            Self::Elements { dtype, transforms }
        }
    }

    /// Bytes that so many gathered ones become.
    pub(crate) fn bytes(&self, gathered: u64) -> u64 {
        match self {
            Self::Dequantize(of) => of.integers.count(gathered).saturating_mul(4),
            Self::Unpack(of) => of.count(gathered),
            Self::Copy | Self::Elements { .. } => gathered,
        }
    }

    /// Bytes that are of one element, so that none is cut.
    pub(crate) fn unit(&self) -> u64 {
        match self {
            Self::Copy | Self::Unpack(_) => 1,
            Self::Elements { dtype, .. } => dtype.bytes(),
            Self::Dequantize(of) => of.integers.integer.bytes(),
        }
    }

    /// The blobs that it has numbers of, beside the one that is gathered from.
    pub(crate) fn blobs(&self) -> &[usize] {
        match self {
            Self::Dequantize(of) => &of.blobs,
            _ => &[],
        }
    }

    /// Whether there are as many bytes as before.
    pub(crate) fn keeps_length(&self) -> bool {
        !matches!(self, Self::Dequantize(_) | Self::Unpack(_))
    }

    /// What it does, for whoever compares it with that of another tensor.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Copy => String::new(),
            other => format!("{other:?}"),
        }
    }

    /// What it does, in words.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        match self {
            Self::Copy => Vec::new(),
            Self::Elements { dtype, transforms } => [
                (transforms.swap, "byte-swapped"),
                (transforms.conjugate, "conjugated"),
                (transforms.negate, "negated"),
                (dtype.is_bool(), "made 0 or 1"),
            ]
            .into_iter()
            .filter_map(|(is_so, words)| is_so.then_some(words))
            .collect(),
            Self::Dequantize(_) => vec!["dequantized"],
            Self::Unpack(_) => vec!["unpacked"],
        }
    }

    /// Makes it of whole elements, `offset` bytes of the tensor being before them. `made` has what is longer.
    pub(crate) fn apply<'b>(
        &self,
        bytes: &'b mut [u8],
        offset: u64,
        made: &'b mut Vec<u8>,
    ) -> &'b [u8] {
        match self {
            Self::Copy => bytes,
            Self::Elements { dtype, transforms } => {
                apply(bytes, *dtype, *transforms);
                bytes
            }
            Self::Dequantize(of) => {
                of.apply(bytes, offset, made);
                made
            }
            Self::Unpack(of) => {
                made.clear();
                let mut push = |integer: i64| made.push(integer.to_le_bytes()[0]);
                of.each(bytes, offset, &mut push);
                made
            }
        }
    }
}

/// The integers of a quantized tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers {
    pub(crate) integer: Integer,
    /// How many there are: the last byte may have room for more.
    pub(crate) elements: u64,
    /// Whether the highest byte comes first.
    pub(crate) swap: bool,
}

/// An integer type that is quantized to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Integer {
    U8,
    I8,
    I32,
    /// Two in a byte, the first in the lower bits.
    U4,
    /// Four in a byte.
    U2,
}

impl Integer {
    /// The integers of a quantized dtype.
    pub(crate) fn of(dtype: TorchDtype) -> Option<Self> {
        Some(match dtype {
            TorchDtype::QUInt8 => Self::U8,
            TorchDtype::QInt8 => Self::I8,
            TorchDtype::QInt32 => Self::I32,
            TorchDtype::QUInt4x2 => Self::U4,
            TorchDtype::QUInt2x4 => Self::U2,
            _ => return None,
        })
    }

    /// Bytes of the least that is not cut.
    fn bytes(self) -> u64 {
        if self == Self::I32 { 4 } else { 1 }
    }

    /// Whether a byte has several.
    pub(crate) fn is_packed(self) -> bool {
        matches!(self, Self::U4 | Self::U2)
    }
}

impl Integers {
    /// How many are in the first bytes of a tensor.
    fn count(&self, bytes: u64) -> u64 {
        let count = match self.integer {
            Integer::I32 => bytes / 4,
            Integer::U8 | Integer::I8 => bytes,
            Integer::U4 => bytes.saturating_mul(2),
            Integer::U2 => bytes.saturating_mul(4),
        };
        count.min(self.elements)
    }

    /// Gives each integer, `offset` bytes of the tensor being before them.
    fn each(&self, bytes: &[u8], offset: u64, give: &mut impl FnMut(i64)) {
        let mut packed = |bits: u32| {
            let per_byte = 8 / bits;
            let left = self.elements.saturating_sub(self.count(offset));
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let parts = bytes.iter().flat_map(|byte| {
                (0..per_byte).map(move |place| (byte >> (place * bits)) & ((1 << bits) - 1))
            });
            parts.take(left).for_each(|integer| give(integer.into()));
        };
        match self.integer {
            Integer::U4 => packed(4),
            Integer::U2 => packed(2),
            Integer::U8 => bytes.iter().for_each(|byte| give((*byte).into())),
            Integer::I8 => bytes.iter().for_each(|byte| give(i8::from_le_bytes([*byte]).into())),
            Integer::I32 => {
                let turn = if self.swap { i32::from_be_bytes } else { i32::from_le_bytes };
                bytes.as_chunks().0.iter().for_each(|number| give(turn(*number).into()));
            }
        }
    }
}

/// Integers and what they stand for: `(integer - zero point) * scale`, rounded as torch rounds it.
#[derive(Clone, Debug)]
pub(crate) struct Dequantize {
    pub(crate) integers: Integers,
    pub(crate) steps: Steps,
    /// Elements of a channel that are next to each other.
    pub(crate) inner: u64,
    /// The blobs that the scales are in.
    pub(crate) blobs: Vec<usize>,
}

/// Scales and zero points. torch computes with each kind in its own way, and rounds at other places.
#[derive(Clone, Debug)]
pub(crate) enum Steps {
    /// One for all elements: the difference is one of integers, the product one of 32 bits.
    All { scale: f32, zero: i64 },
    /// One for each channel: the difference is in 32 bits, the product in 64.
    Channels(Vec<(f64, f32)>),
    /// One for each channel, all in 32 bits.
    Floats(Vec<(f32, f32)>),
}

impl Dequantize {
    fn apply(&self, bytes: &[u8], offset: u64, made: &mut Vec<u8>) {
        made.clear();
        let mut element = self.integers.count(offset);
        self.integers.each(bytes, offset, &mut |integer| {
            made.extend_from_slice(&self.value(integer, element).to_le_bytes());
            element = element.wrapping_add(1);
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "as torch rounds")]
    #[expect(clippy::cast_possible_truncation, reason = "as torch rounds")]
    fn value(&self, integer: i64, element: u64) -> f32 {
        match &self.steps {
            Steps::All { scale, zero } => integer.wrapping_sub(*zero) as f32 * scale,
            Steps::Channels(channels) => {
                let (scale, zero) = self.channel(channels, element).unwrap_or_default();
                (f64::from(integer as f32 - zero) * scale) as f32
            }
            Steps::Floats(channels) => {
                let (scale, zero) = self.channel(channels, element).unwrap_or_default();
                (integer as f32 - zero) * scale
            }
        }
    }

    fn channel<T: Copy>(&self, channels: &[T], element: u64) -> Option<T> {
        let channel = element / self.inner.max(1) % (channels.len().max(1) as u64);
        channels.get(usize::try_from(channel).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_what_they_stand_for_channel_by_channel() {
        let of = |integer, steps: Steps, inner| {
            let integers = Integers { integer, elements: 5, swap: false };
            Make::Dequantize(Dequantize { integers, steps, inner, blobs: Vec::new() })
        };
        let all = |scale, zero| Steps::All { scale, zero };
        let channels = || Steps::Channels(vec![(1.0, 0.0), (10.0, 0.0)]);
        let floats =
            |values: &[f32]| values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
        for (make, bytes, offset, want) in [
            (of(Integer::U8, all(0.5, 128), 9), &[128, 130, 0][..], 0, &[0.0, 1.0, -64.0][..]),
            (of(Integer::I8, all(2.0, -1), 1), &[0xff, 0x80], 0, &[0.0, -254.0]),
            // Two channels of two elements each, begun at the second of the first.
            (of(Integer::I8, channels(), 2), &[1, 1, 1, 1], 1, &[1.0, 10.0, 10.0, 1.0]),
            (of(Integer::I32, all(0.25, 1), 1), &[5, 0, 0, 0], 8, &[1.0]),
            // The lower bits come first, and of the last byte only as many as there are elements.
            (of(Integer::U4, all(1.0, 0), 1), &[0x21, 0x43, 0x65], 0, &[1.0, 2.0, 3.0, 4.0, 5.0]),
            (of(Integer::U4, channels(), 2), &[0x43, 0x65], 1, &[30.0, 40.0, 5.0]),
            (of(Integer::U2, all(1.0, 0), 1), &[0b1110_0100, 0b11], 0, &[0.0, 1.0, 2.0, 3.0, 3.0]),
            (of(Integer::U8, Steps::Floats(vec![(2.0, 0.5)]), 1), &[3], 0, &[5.0]),
        ] {
            let mut made = vec![1, 2, 3];
            assert_eq!(
                make.apply(&mut bytes.to_vec(), offset, &mut made),
                floats(want),
                "{make:?}"
            );
            let before = make.bytes(offset);
            assert_eq!(make.bytes(offset + bytes.len() as u64) - before, floats(want).len() as u64);
        }
    }

    #[test]
    fn integers_of_less_than_a_byte_become_bytes() {
        let make = Make::Unpack(Integers { integer: Integer::U4, elements: 3, swap: false });
        let mut bytes = Vec::new();
        assert_eq!(make.apply(&mut [0xf1, 0xe2], 0, &mut bytes), [1, 15, 2]);
        assert_eq!((make.bytes(1), make.bytes(2)), (2, 3));
    }
}
