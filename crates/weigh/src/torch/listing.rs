//! Torch and numpy checkpoints for looking: their tensors as a [`Survey`].

use std::path::Path;

use weigh_format::header::Inspection;
use weigh_format::listing::Listed;
use weigh_io::FileSource;
use weigh_pickle::container::{Kind, detect};
use weigh_pickle::{Limits, Verdict};

use super::convert::ConvertOptions;
use super::convert::input::{self, Draft, Opened};
use super::gather::{Blob, Bytes};
use super::reading::Reading;
use super::{TorchOptions, Unconverted};
use crate::survey::random_key;
use crate::{Error, Layout, Survey};

/// The tensors of a checkpoint of torch or numpy.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listing {
    /// The tensors. Offsets are those of the file: of what is strided or deflated, where its bytes begin.
    pub survey: Survey,
    /// What unpickling the files would come to.
    pub verdict: Verdict,
    /// Tensors that safetensors has not, with the reason.
    pub unconverted: Vec<Unconverted>,
}

/// Whether a file, by its bytes, is one that [`list`] reads, or by its name an index of such.
#[must_use]
pub fn is_listed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".bin.index.json") {
        return true;
    }
    let Ok(source) = FileSource::open(path) else { return false };
    let detection = Reading::new(&source, &Limits::default()).ask(detect);
    let kinds = [Kind::Zip, Kind::Legacy, Kind::Tar, Kind::Pickle, Kind::Npy];
    detection.is_ok_and(|detection| kinds.contains(&detection.kind))
}

/// Lists the tensors of a checkpoint of torch or numpy, without executing anything, whatever it would call.
///
/// # Errors
///
/// As [`ConvertPlan::new`](super::ConvertPlan::new), but for what calls something, or cannot be converted.
pub fn list(path: &Path) -> Result<Listing, Error> {
    let torch = TorchOptions { partial: true, ..TorchOptions::default() };
    let options = ConvertOptions { torch, allow_calls: true, ..ConvertOptions::default() };
    let input = input::read(path, &options)?;
    let key = random_key();
    let mut files = Vec::with_capacity(input.opened.len());
    let mut verdict = Verdict::DataOnly;
    for (number, opened) in input.opened.iter().enumerate() {
        if let Opened::Torch(checkpoint) = opened {
            verdict = verdict.with(checkpoint.verdict());
        }
        let source = opened.file()?;
        let own = input.drafts.iter().filter(|draft| draft.file == number);
        let others = input.unconverted.iter().filter(|_| number == 0).map(unconverted);
        let tensors = own.map(|draft| listed(draft, &input.blobs)).chain(others);
        let inspection = Inspection::listing(tensors, source.len(), key);
        files.push((source.path().to_path_buf(), inspection, source.bytes_read()));
    }
    let layout = if input.is_set { Layout::Indexed } else { Layout::File };
    let survey = Survey::listed(path.into(), layout, files, key);
    Ok(Listing { survey, verdict, unconverted: input.unconverted })
}

fn listed<'d>(draft: &'d Draft, blobs: &[Blob]) -> Listed<'d> {
    let gathered = &draft.gathered;
    let first = match blobs.get(gathered.blob).map(|blob| &blob.bytes) {
        Some(Bytes::Stored { start, .. }) => start.saturating_add(gathered.pattern.first),
        Some(Bytes::Deflated { span, .. }) => span.start,
        Some(Bytes::Held(_) | Bytes::Scattered(_)) | None => 0,
    };
    let bytes = Some(first..first.saturating_add(gathered.bytes()));
    Listed { name: &draft.name, dtype: Some(draft.dtype), shape: Some(&draft.shape), bytes }
}

fn unconverted(tensor: &Unconverted) -> Listed<'_> {
    let bytes = Some(0..tensor.bytes.unwrap_or(0));
    Listed { name: &tensor.name, dtype: None, shape: tensor.shape.as_deref(), bytes }
}
