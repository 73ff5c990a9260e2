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
            Self::Dequantize(of) => (gathered / of.integer.bytes()).saturating_mul(4),
            Self::Copy | Self::Elements { .. } => gathered,
        }
    }

    /// Bytes that are of one element, so that none is cut.
    pub(crate) fn unit(&self) -> u64 {
        match self {
            Self::Copy => 1,
            Self::Elements { dtype, .. } => dtype.bytes(),
            Self::Dequantize(of) => of.integer.bytes(),
        }
    }

    /// Whether there are as many bytes as before.
    pub(crate) fn keeps_length(&self) -> bool {
        !matches!(self, Self::Dequantize(_))
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
        }
    }
}

/// Integers of 8 or 32 bits, and what they stand for: `(integer − zero point) × scale`, as torch computes it, in 32
/// bits.
#[derive(Clone, Debug)]
pub(crate) struct Dequantize {
    pub(crate) integer: Integer,
    /// The scale and the zero point of each channel.
    pub(crate) channels: Vec<(f32, i64)>,
    /// Elements of a channel that are next to each other.
    pub(crate) inner: u64,
}

/// An integer type that is quantized to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Integer {
    U8,
    I8,
    I32,
}

impl Integer {
    fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::I32 => 4,
        }
    }
}

impl Dequantize {
    fn apply(&self, bytes: &[u8], offset: u64, made: &mut Vec<u8>) {
        made.clear();
        let mut element = offset / self.integer.bytes();
        let mut push = |integer: i64| {
            let (scale, zero) = self.channel(element);
            #[expect(clippy::cast_precision_loss, reason = "as torch rounds")]
            let value = integer.wrapping_sub(zero) as f32 * scale;
            made.extend_from_slice(&value.to_le_bytes());
            element = element.wrapping_add(1);
        };
        match self.integer {
            Integer::U8 => bytes.iter().for_each(|byte| push((*byte).into())),
            Integer::I8 => bytes.iter().for_each(|byte| push(i8::from_le_bytes([*byte]).into())),
            Integer::I32 => {
                for number in bytes.as_chunks().0 {
                    push(i32::from_le_bytes(*number).into());
                }
            }
        }
    }

    fn channel(&self, element: u64) -> (f32, i64) {
        let count = self.channels.len().max(1) as u64;
        let channel = element / self.inner.max(1) % count;
        let channel = usize::try_from(channel).unwrap_or(usize::MAX);
        self.channels.get(channel).copied().unwrap_or((0.0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_what_they_stand_for_channel_by_channel() {
        let of = |integer, channels: &[(f32, i64)], inner| {
            Make::Dequantize(Dequantize { integer, channels: channels.to_vec(), inner })
        };
        let floats =
            |values: &[f32]| values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
        for (make, bytes, offset, want) in [
            (of(Integer::U8, &[(0.5, 128)], 9), &[128, 130, 0][..], 0, &[0.0, 1.0, -64.0][..]),
            (of(Integer::I8, &[(2.0, -1)], 1), &[0xff, 0x80], 0, &[0.0, -254.0]),
            // Two channels of two elements each, begun at the second of the first.
            (of(Integer::I8, &[(1.0, 0), (10.0, 0)], 2), &[1, 1, 1, 1], 1, &[1.0, 10.0, 10.0, 1.0]),
            (of(Integer::I32, &[(0.25, 1)], 1), &[5, 0, 0, 0], 8, &[1.0]),
        ] {
            let mut made = vec![1, 2, 3];
            assert_eq!(
                make.apply(&mut bytes.to_vec(), offset, &mut made),
                floats(want),
                "{make:?}"
            );
            assert_eq!(make.bytes(bytes.len() as u64), floats(want).len() as u64);
        }
    }
}
