//! Checkpoints of random content, and what slices of them are, element by element.

use std::path::Path;

use tempfile::TempDir;
use weigh::format::Dtype;
use weigh::format::encode::{Declaration, Layout, encode};
use weigh::format::slice::Index;

/// A sequence of numbers that looks random (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from((self.next() >> 11) % limit as u64).unwrap()
    }

    /// An index into a dimension of this size that is not out of range.
    pub(crate) fn index(&mut self, size: u64) -> Index {
        let size = i64::try_from(size).unwrap();
        let within = |random: &mut Self| {
            let span = usize::try_from(3 * size + 3).unwrap();
            i64::try_from(random.below(span)).unwrap() - size - size / 2 - 1
        };
        match self.below(6) {
            0 => Index::ALL,
            1 if size > 0 => Index::At(within(self).rem_euclid(size)),
            2 => Index::ALL.step([-3, -1, 2, 5][self.below(4)]),
            _ => {
                let step = [1, 1, 1, 2, 3, -1, -2][self.below(7)];
                let [start, end] = [Some(within(self)), Some(within(self))];
                Index::Range { start, stop: end, step }
            }
        }
    }
}

/// A tensor with its bytes.
pub(crate) struct MadeTensor {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// A checkpoint on disk, of several shards.
pub(crate) struct Made {
    folder: TempDir,
    pub(crate) tensors: Vec<MadeTensor>,
}

/// Those of whole bytes: slices of others are the format crate's to test.
const DTYPES: [Dtype; 12] = [
    Dtype::BOOL,
    Dtype::U8,
    Dtype::F8_E4M3,
    Dtype::F8_E5M2,
    Dtype::F8_E8M0,
    Dtype::I16,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
    Dtype::C64,
    Dtype::I64,
];

impl Made {
    pub(crate) fn new(random: &mut Random) -> Self {
        let count = 1 + random.below(10);
        let shapes = (0..count).map(|_| {
            let dimensions = random.below(5);
            let most = [200_000, 40_000, 300, 40, 14][dimensions];
            (0..dimensions).map(|_| random.below(most) as u64).collect()
        });
        let shapes: Vec<Vec<u64>> = shapes.collect();
        Self::of(shapes, random)
    }

    /// Some tensors of several MB.
    pub(crate) fn large(random: &mut Random) -> Self {
        let shapes = (0..3).map(|_| vec![500 + random.below(500) as u64, 2, 1001]).collect();
        Self::of(shapes, random)
    }

    fn of(shapes: Vec<Vec<u64>>, random: &mut Random) -> Self {
        let tensor = |(number, shape): (usize, Vec<u64>)| {
            let dtype = DTYPES[random.below(DTYPES.len())];
            let elements: u64 = shape.iter().product();
            let bytes =
                (0..elements * u64::from(dtype.bits() / 8)).map(|_| random.next().to_be_bytes()[0]);
            let bytes = bytes.collect();
            MadeTensor { name: format!("t{number}"), dtype, shape, bytes }
        };
        let tensors: Vec<MadeTensor> = shapes.into_iter().enumerate().map(tensor).collect();
        let folder = tempfile::tempdir().unwrap();
        let shards = 1 + random.below(3.min(tensors.len()));
        for shard in 0..shards {
            let own: Vec<&MadeTensor> = tensors.iter().skip(shard).step_by(shards).collect();
            let name = match shards {
                1 => "model.safetensors".to_owned(),
                _ => format!("model-{:05}-of-{shards:05}.safetensors", shard + 1),
            };
            write(&folder.path().join(name), &own);
        }
        Self { folder, tensors }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn tensor(&self, name: &str) -> &MadeTensor {
        self.tensors.iter().find(|tensor| tensor.name == name).unwrap()
    }
}

/// Writes a file of these tensors.
pub(crate) fn write(path: &Path, tensors: &[&MadeTensor]) {
    let declared: Vec<Declaration<'_>> = tensors
        .iter()
        .map(|it| Declaration { name: &it.name, dtype: it.dtype, shape: &it.shape })
        .collect();
    let encoded = encode(&declared, None, &Layout::default()).unwrap();
    let mut bytes = encoded.bytes;
    let start = bytes.len();
    bytes.resize(start + usize::try_from(encoded.data_len).unwrap(), 0);
    for (tensor, offsets) in tensors.iter().zip(&encoded.data_offsets) {
        let from = start + usize::try_from(offsets.start).unwrap();
        bytes[from..from + tensor.bytes.len()].copy_from_slice(&tensor.bytes);
    }
    std::fs::write(path, bytes).unwrap();
}

impl MadeTensor {
    /// The shape and the bytes of a slice: Python's rule for each dimension, one element at a time.
    pub(crate) fn sliced(&self, index: &[Index]) -> (Vec<u64>, Vec<u8>) {
        let size = usize::try_from(self.dtype.bits() / 8).unwrap();
        let mut places: Vec<usize> = vec![0];
        let mut shape = Vec::new();
        for (axis, length) in self.shape.iter().enumerate() {
            let taken = taken(*length, index.get(axis).copied().unwrap_or(Index::ALL));
            if !matches!(index.get(axis), Some(Index::At(_))) {
                shape.push(taken.len() as u64);
            }
            let length = usize::try_from(*length).unwrap();
            places = places
                .iter()
                .flat_map(|place| taken.iter().map(move |at| place * length + at))
                .collect();
        }
        let bytes = places.iter().flat_map(|place| &self.bytes[place * size..][..size]);
        (shape, bytes.copied().collect())
    }
}

/// The places of one dimension that an index takes, in its order.
fn taken(length: u64, index: Index) -> Vec<usize> {
    let length = i64::try_from(length).unwrap();
    let (start, end, step) = match index {
        Index::At(at) => {
            let at = if at < 0 { at + length } else { at };
            (Some(at), Some(at + 1), 1)
        }
        Index::Range { start, stop, step } => (start, stop, step),
        other => panic!("{other:?}"),
    };
    let from_end = |at: i64| if at < 0 { at + length } else { at };
    let places: Vec<i64> = if step > 0 {
        let start = start.map_or(0, from_end).clamp(0, length);
        let end = end.map_or(length, from_end).clamp(0, length);
        (start..end).step_by(usize::try_from(step).unwrap()).collect()
    } else {
        let start = start.map_or(length - 1, from_end).clamp(-1, length - 1);
        let end = end.map_or(-1, from_end).clamp(-1, length - 1);
        let down = (end + 1..=start).rev();
        down.step_by(usize::try_from(-step).unwrap()).collect()
    };
    places.into_iter().map(|at| usize::try_from(at).unwrap()).collect()
}
