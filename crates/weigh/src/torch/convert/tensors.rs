//! What the tensors of a checkpoint of torch are written as: as they are, or by a rule that was chosen.

use std::collections::HashMap;

use weigh_format::Dtype;
use weigh_io::FileSource;
use weigh_pickle::Error as PickleError;
use weigh_pickle::container::torch::ByteOrder;
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::storage::{Origin, StorageId};
use weigh_pickle::tensor::{Dense, Kind, Tensor};

use super::input::{Draft, Input};
use super::{Complex, ConvertOptions, NestedRule, QuantizedRule, SparseRule};
use crate::Error;
use crate::torch::gather::{Blob, Bytes, Gathered, Job, Make, Pattern, Scratch, unpack};
use crate::torch::{Place, TorchCheckpoint};

/// The file that tensors are of.
pub(super) struct Of<'o> {
    pub(super) checkpoint: &'o TorchCheckpoint,
    pub(super) file: usize,
    /// The blobs that storages are.
    pub(super) storages: &'o mut HashMap<StorageId, usize>,
    pub(super) options: &'o ConvertOptions,
}

/// What is written of a tensor: all of it, or a part that has a name of its own.
pub(super) struct Part {
    /// What its name ends with, after a dot; of the tensor itself nothing.
    pub(super) end: Option<&'static str>,
    /// What it is in the input.
    pub(super) from: TorchDtype,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<u64>,
    pub(super) gathered: Gathered,
}

/// The parts of a tensor; inside, why it is not written.
pub(super) type Parts = Result<Result<Vec<Part>, Refusal>, Error>;

impl Of<'_> {
    /// What a tensor is written as; inside, why it is not.
    pub(super) fn drafts(
        &mut self,
        input: &mut Input,
        name: &str,
        tensor: &Tensor,
    ) -> Result<Result<Vec<Draft>, Refusal>, Error> {
        let file = self.file;
        let draft = |part: Part| Draft {
            name: part.end.map_or_else(|| name.into(), |end| format!("{name}.{end}")),
            dtype: part.dtype,
            shape: part.shape,
            from: format!("torch.{}", part.from),
            gathered: part.gathered,
            file,
            part: part.end.map(String::from),
        };
        let parts = match self.alone(input, tensor)? {
            Ok(part) => Ok(vec![part]),
            Err(refusal) => self.by_rule(input, tensor, refusal)?,
        };
        Ok(parts.map(|parts| parts.into_iter().map(draft).collect()))
    }

    /// A tensor that has its elements in a storage, as it is or as one of another dtype.
    pub(super) fn alone(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
    ) -> Result<Result<Part, Refusal>, Error> {
        let from = tensor.dtype;
        let part = |dtype, shape, gathered| Part { end: None, from, dtype, shape, gathered };
        let refusal = match tensor.plain() {
            Ok(plain) => {
                let gathered = self.gathered(input, from, plain.dense)?;
                return Ok(gathered.map(|gathered| part(plain.dtype, plain.shape, gathered)));
            }
            Err(refusal) => refusal,
        };
        let (Kind::Dense(dense) | Kind::Array(dense)) = &tensor.kind else {
            return Ok(Err(refusal));
        };
        let mut shape = tensor.shape.clone();
        match &refusal {
            Refusal::Complex(_) if self.options.complex == Complex::ViewReal => shape.push(2),
            Refusal::Bits(_) if self.options.raw_bits => {}
            _ => return Ok(Err(refusal)),
        }
        let gathered = self.gathered(input, from, dense)?;
        Ok(gathered.map(|gathered| part(from.components(), shape, gathered)))
    }

    /// What a tensor is written as that is more than elements.
    fn by_rule(&mut self, input: &mut Input, tensor: &Tensor, refusal: Refusal) -> Parts {
        let options = self.options;
        match &tensor.kind {
            Kind::Quantized(quantized) => match options.quantized {
                QuantizedRule::Refuse => Ok(Err(refusal)),
                QuantizedRule::Integers => self.integers(input, tensor, quantized),
                QuantizedRule::Dequantize => self.dequantized(input, tensor, quantized),
            },
            Kind::Sparse(sparse) => match options.sparse {
                SparseRule::Refuse => Ok(Err(refusal)),
                SparseRule::Parts => self.sparse_parts(input, tensor, sparse),
                SparseRule::Dense => self.densified(input, tensor, sparse),
            },
            Kind::Nested { buffer, rows } if options.nested == NestedRule::Parts => {
                let ends = ["values", "sizes", "strides", "offsets"];
                let ids = std::iter::once(buffer).chain(rows);
                self.named_parts(input, ends.into_iter().zip(ids.copied()))
            }
            _ => Ok(Err(refusal)),
        }
    }

    /// The bytes of elements in a storage.
    pub(super) fn gathered(
        &mut self,
        input: &mut Input,
        dtype: TorchDtype,
        dense: &Dense,
    ) -> Result<Result<Gathered, Refusal>, Error> {
        let mut transforms = dense.transforms;
        let runs = dense.view.runs();
        if dense.view.byte_len() == 0 {
            let held = Bytes::Held(Box::default());
            let blob =
                Blob { name: String::new(), len: 0, bytes: held, crc: None, head: Vec::new() };
            let blob = input.add_blob(blob);
            let make = Make::of(dtype, transforms);
            return Ok(Ok(Gathered { blob, pattern: Pattern::span(0..0), make }));
        }
        let id = dense.view.storage;
        let storage = self.checkpoint.storages().get(id);
        let is_in_file = storage.is_some_and(|storage| storage.origin == Origin::Key);
        if is_in_file && self.checkpoint.byte_order() == ByteOrder::Big {
            transforms.swap = !transforms.swap;
        }
        let blob = match self.storages.get(&id) {
            Some(blob) => *blob,
            None => {
                let Some(place) = self.checkpoint.stored(id) else { return Ok(Err(Refusal::Meta)) };
                let name = storage.map(|storage| storage.key.clone()).unwrap_or_default();
                let blob = input.add_blob(self.blob(name, place));
                self.storages.insert(id, blob);
                blob
            }
        };
        let pattern = Pattern::from(&runs);
        let len = input.blobs.get(blob).map_or(0, |blob| blob.len);
        if runs.span().end > len {
            let message =
                format!("a tensor ends at byte {}, its storage at {len}", runs.span().end);
            let error = PickleError::new("tensor-bounds", message);
            return Err(Error::torch(self.checkpoint.source().path(), error));
        }
        Ok(Ok(Gathered { blob, pattern, make: Make::of(dtype, transforms) }))
    }

    fn blob(&self, name: String, place: Place<'_>) -> Blob {
        let source = self.file;
        match place {
            Place::File { start, end, entry: Some(entry), deflated, .. } => {
                let crc = entry.crc.filter(|_| !self.options.torch.ignore_crc);
                let bytes = if deflated {
                    let entry = Box::new(entry.clone());
                    Bytes::Deflated { source, span: start..end, entry }
                } else {
                    Bytes::Stored { source, start }
                };
                Blob { name: entry.name.clone(), len: entry.size, bytes, crc, head: Vec::new() }
            }
            Place::File { start, end, .. } => {
                let len = end.saturating_sub(start);
                let bytes = Bytes::Stored { source, start };
                Blob { name, len, bytes, crc: None, head: Vec::new() }
            }
            Place::Held(held) => {
                let len = held.len() as u64;
                Blob { name, len, bytes: Bytes::Held(held.into()), crc: None, head: Vec::new() }
            }
        }
    }
}

/// Numbers that are in no storage, as a tensor.
pub(super) fn held(input: &mut Input, bytes: Vec<u8>) -> Gathered {
    let len = bytes.len() as u64;
    let bytes = Bytes::Held(bytes.into());
    let blob = Blob { name: String::new(), len, bytes, crc: None, head: Vec::new() };
    let blob = input.add_blob(blob);
    Gathered { blob, pattern: Pattern::span(0..len), make: Make::Copy }
}

/// All bytes of a small tensor.
pub(super) fn bytes_of(
    gathered: &Gathered,
    sources: &[&FileSource],
    blobs: &[Blob],
) -> Result<Vec<u8>, Error> {
    // What is too large to be inflated in memory is, for a while, in a file that has no name for long.
    let aside = std::env::temp_dir().join("weigh");
    let unpacked = unpack(sources, blobs, std::iter::once(gathered), &aside)?;
    let (tensors, sums) = (vec![(gathered, 0)], None);
    let job = Job { sources, blobs, unpacked: &unpacked, tensors, sums };
    let mut bytes = vec![0; usize::try_from(gathered.bytes()).unwrap_or(usize::MAX)];
    let mut scratch = Scratch::default();
    for work in &job.works() {
        job.run(work, &mut scratch, &mut |at, part| {
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            let into = bytes.get_mut(start..).and_then(|rest| rest.get_mut(..part.len()));
            into.map(|into| into.copy_from_slice(part))
                .ok_or_else(|| Error::internal("bytes of no tensor"))
        })?;
    }
    Ok(bytes)
}
