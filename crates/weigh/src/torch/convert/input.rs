//! What is converted: the tensors of checkpoints of any kind, as what is written and where its bytes are.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_format::{Dtype, Finding};
use weigh_io::FileSource;
use weigh_pickle::container::{Kind as ContainerKind, detect};
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::state::{Source, Why};
use weigh_pickle::storage::StorageId;
use weigh_pickle::tensor::Tensor;
use weigh_pickle::transform::Transforms;
use weigh_pickle::values::to_json;
use weigh_pickle::{Error as PickleError, Limits, Verdict};

use super::ConvertOptions;
use super::tensors::Of;
use crate::torch::gather::{Blob, Bytes, Gathered, Make, Pattern};
use crate::torch::reading::Reading;
use crate::torch::scan::{ScanOptions, scan_opened};
use crate::torch::{TorchCheckpoint, TorchOptions, npz};
use crate::{Checkpoint, Error, find};

/// A file that bytes come from.
#[derive(Debug)]
pub(in crate::torch) enum Opened {
    Torch(Box<TorchCheckpoint>),
    File(FileSource),
    /// A shard of safetensors.
    Shard(Arc<Checkpoint>, usize),
}

impl Opened {
    pub(in crate::torch) fn file(&self) -> Result<&FileSource, Error> {
        match self {
            Self::Torch(checkpoint) => Ok(checkpoint.source()),
            Self::File(source) => Ok(source),
            Self::Shard(checkpoint, number) => {
                let shard = checkpoint.shards().get(*number);
                shard.ok_or_else(|| Error::internal("a shard that is not there"))?.need_file()
            }
        }
    }
}

/// A tensor that can be written.
#[derive(Debug)]
pub(in crate::torch) struct Draft {
    pub(in crate::torch) name: String,
    pub(in crate::torch) dtype: Dtype,
    pub(in crate::torch) shape: Vec<u64>,
    /// What it is in the input: `torch.bfloat16`, `float32`, `BF16`.
    pub(in crate::torch) from: String,
    pub(in crate::torch) gathered: Gathered,
    /// The number of its file.
    pub(in crate::torch) file: usize,
    /// If it is a part of what the input has as one tensor, what its name ends with: `"scale"`.
    pub(in crate::torch) part: Option<String>,
}

/// A tensor that cannot be written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Unconverted {
    /// Its name in the input, unescaped.
    pub name: String,
    /// Why, as a stable code: `meta`, `sparse`, `quantized`.
    pub code: &'static str,
    /// Why, in words.
    pub why: String,
    /// What can be done about it.
    pub help: &'static str,
    /// Its shape, if it is known.
    pub shape: Option<Vec<u64>>,
    /// Bytes that it takes in the input, if they are in one place.
    pub bytes: Option<u64>,
}

/// What is no tensor of the state dict.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Beside {
    /// Where it is, unescaped.
    pub name: String,
    /// Why it is left out, in a few words.
    pub why: String,
    /// Whether there are tensors in it, which are left out with it.
    pub has_tensors: bool,
    /// What it is, as JSON, if it was asked for and has no tensors.
    pub(in crate::torch) json: Option<String>,
}

/// What was read of the input.
#[derive(Debug, Default)]
pub(in crate::torch) struct Input {
    pub(in crate::torch) opened: Vec<Opened>,
    pub(in crate::torch) blobs: Vec<Blob>,
    pub(in crate::torch) drafts: Vec<Draft>,
    pub(in crate::torch) unconverted: Vec<Unconverted>,
    pub(in crate::torch) beside: Vec<Beside>,
    pub(in crate::torch) beside_count: u64,
    /// The keys of the root where state dicts are, if there are several and none was asked for.
    pub(super) candidates: Vec<&'static str>,
    /// What the metadata has to say.
    pub(super) metadata: BTreeMap<String, String>,
    /// Whether the input is a set of files.
    pub(in crate::torch) is_set: bool,
    /// What the files' names begin with.
    pub(super) stem: String,
}

/// Reads what is at a path.
pub(in crate::torch) fn read(path: &Path, options: &ConvertOptions) -> Result<Input, Error> {
    let mut input = Input { stem: "model".into(), ..Input::default() };
    let path = &torch_in_folder(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.is_dir() || name.ends_with(crate::find::INDEX_SUFFIX) {
        check_no_key(path, options)?;
        input.add_safetensors(path)?;
    } else if name.ends_with(".index.json") {
        input.add_index(path, options)?;
    } else {
        let source = FileSource::open(path)?;
        match kind(&source, options)? {
            ContainerKind::Safetensors => {
                check_no_key(path, options)?;
                input.add_safetensors(path)?;
            }
            ContainerKind::Npy => {
                check_no_key(path, options)?;
                npz::read_npy(&mut input, source, options)?;
            }
            ContainerKind::Zip if npz::begins_as_npz(&source)? => {
                check_no_key(path, options)?;
                npz::read_npz(&mut input, source, options)?;
            }
            _ => {
                drop(source);
                input.add_torch(path, options)?;
            }
        }
    }
    Ok(input)
}

/// Whether a state dict is asked for where there are none.
fn check_no_key(path: &Path, options: &ConvertOptions) -> Result<(), Error> {
    if options.torch.key.is_none() {
        return Ok(());
    }
    let message = "a key is asked for, which only checkpoints of torch have; all tensors are taken";
    Err(Error::torch(path, PickleError::new("state-key-missing", message)))
}

fn kind(source: &FileSource, options: &ConvertOptions) -> Result<ContainerKind, Error> {
    let mut reading = Reading::new(source, &options.torch.limits);
    let detection = reading.ask(detect).map_err(|fault| fault.of(source))?;
    Ok(detection.kind)
}

/// The torch checkpoint that a folder stands for; any other path is itself.
fn torch_in_folder(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() || !matches!(find(path), Err(Error::NothingFound { .. })) {
        return Ok(path.into());
    }
    let io = |error| Error::Io(weigh_io::Error::system(path, error));
    let mut indexes = Vec::new();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if name.ends_with(".bin.index.json") {
            indexes.push(path.join(name));
        } else if [".bin", ".pt", ".pth", ".ckpt", ".npz"].iter().any(|end| name.ends_with(end)) {
            files.push(path.join(name));
        }
    }
    let mut candidates = if indexes.is_empty() { files } else { indexes };
    candidates.sort();
    match candidates.as_slice() {
        [] => Err(Error::NothingFound { path: path.into(), torch_files: Vec::new() }),
        [one] => Ok(one.clone()),
        _ => Err(Error::Several { path: path.into(), candidates }),
    }
}

impl Input {
    pub(super) fn add_torch(&mut self, path: &Path, options: &ConvertOptions) -> Result<(), Error> {
        let torch = TorchOptions {
            modules: options.allow_calls,
            values: options.values.is_some(),
            ..options.torch.clone()
        };
        let checkpoint = TorchCheckpoint::open(path, &torch)?;
        checkpoint.require(options.allow_calls)?;
        require_scanned(checkpoint.source(), options)?;
        let file = self.opened.len();
        let mut storages: HashMap<StorageId, usize> = HashMap::new();
        for named in checkpoint.names() {
            let Some(tensor) = checkpoint.tensor(named.tensor) else {
                return Err(Error::internal("a name of no tensor"));
            };
            let mut of = Of { checkpoint: &checkpoint, file, storages: &mut storages, options };
            match of.drafts(self, &named.name, tensor)? {
                Ok(drafts) => self.drafts.extend(drafts),
                Err(refusal) => self.refuse(&named.name, &refusal, Some(tensor)),
            }
        }
        for left in checkpoint.left_out() {
            if let Why::Refused(refusal) = &left.why {
                self.refuse(&left.name, refusal, None);
                continue;
            }
            if let Why::Unreadable(error) = &left.why {
                self.unconverted.push(Unconverted {
                    name: left.name.clone(),
                    code: error.code,
                    why: error.to_string(),
                    help: "Look at the file with `weigh scan`.",
                    shape: None,
                    bytes: None,
                });
                continue;
            }
            self.beside.push(Beside {
                name: left.name.clone(),
                why: why(&left.why).into(),
                has_tensors: !matches!(left.why, Why::NoTensor(_)),
                json: left.values.as_deref().map(to_json),
            });
        }
        self.beside_count = self.beside_count.saturating_add(checkpoint.left_out_count());
        let is_root = *checkpoint.names_begin() == Source::Root && !options.torch.all;
        if is_root && checkpoint.candidates().len() > 1 {
            self.candidates = checkpoint.candidates().to_vec();
        }
        self.metadata.insert("format".into(), "pt".into());
        self.opened.push(Opened::Torch(Box::new(checkpoint)));
        Ok(())
    }

    fn refuse(&mut self, name: &str, refusal: &Refusal, tensor: Option<&Tensor>) {
        self.unconverted.push(Unconverted {
            name: name.into(),
            code: refusal.code(),
            why: refusal.to_string(),
            help: refusal.help(),
            shape: tensor.map(|tensor| tensor.shape.clone()),
            bytes: tensor.and_then(Tensor::dense).map(|dense| dense.view.byte_len()),
        });
    }

    fn add_safetensors(&mut self, path: &Path) -> Result<(), Error> {
        let checkpoint = Arc::new(Checkpoint::open(path)?);
        self.stem = checkpoint.stem().into();
        self.is_set = checkpoint.shards().len() > 1;
        for (number, shard) in checkpoint.shards().iter().enumerate() {
            let file = self.opened.len();
            for tensor in shard.tensors() {
                let len = tensor.span.end.saturating_sub(tensor.span.start);
                let blob = self.add_blob(Blob {
                    name: tensor.name.into(),
                    len,
                    bytes: Bytes::Stored { source: file, start: tensor.span.start },
                    crc: None,
                    head: Vec::new(),
                });
                // Readers of numpy take a byte for a boolean as it is.
                let make = match tensor.dtype {
                    Dtype::BOOL => Make::of(TorchDtype::Bool, Transforms::default()),
                    _ => Make::Copy,
                };
                self.drafts.push(Draft {
                    name: tensor.name.into(),
                    dtype: tensor.dtype,
                    shape: tensor.shape.to_vec(),
                    from: tensor.dtype.name().into(),
                    gathered: Gathered { blob, pattern: Pattern::span(0..len), make },
                    file,
                    part: None,
                });
            }
            self.metadata.extend(shard.header().metadata());
            self.opened.push(Opened::Shard(Arc::clone(&checkpoint), number));
        }
        Ok(())
    }

    pub(in crate::torch) fn add_blob(&mut self, blob: Blob) -> usize {
        self.blobs.push(blob);
        self.blobs.len() - 1
    }
}

/// Why something was left out, for people.
fn why(why: &Why) -> &'static str {
    match why {
        Why::NoTensor(kind) => kind,
        Why::Optimizer => "the state of an optimizer, a scheduler or a generator",
        Why::Beside => "beside the state dict",
        Why::NotPersistent => "a buffer that is not to be saved",
        Why::Attribute => "an attribute of a module",
        _ => "left out",
    }
}

/// Refuses what two programs read differently.
pub(in crate::torch) fn refuse_ambiguous(
    source: &FileSource,
    findings: &weigh_format::Findings,
    ignore_crc: bool,
) -> Result<(), Error> {
    let is_meant = |finding: &&Finding| {
        finding.rule.is_ambiguous && !(ignore_crc && finding.code() == "zip-crc")
    };
    match findings.list().iter().find(is_meant) {
        Some(finding) => Err(Error::TorchRefused {
            path: source.path().into(),
            verdict: weigh_pickle::Verdict::Ambiguous,
            finding: Some(Box::new(finding.clone())),
        }),
        None => Ok(()),
    }
}

/// What may be spent on a file.
pub(in crate::torch) fn limits(options: &ConvertOptions) -> &Limits {
    &options.torch.limits
}

/// Whether a scan of the whole file, with all that is in it beside the state dict, says that it may be converted.
fn require_scanned(source: &FileSource, options: &ConvertOptions) -> Result<(), Error> {
    let scanned = ScanOptions { limits: options.torch.limits, ..ScanOptions::default() };
    let report = scan_opened(source, &scanned)?;
    let is_allowed = match report.verdict {
        Some(Verdict::DataOnly) => report.complete,
        Some(Verdict::UnknownGlobal | Verdict::Call) => options.allow_calls && report.complete,
        _ => false,
    };
    if is_allowed {
        return Ok(());
    }
    let worst = report.findings.worst();
    let finding = report.findings.list().iter().find(|finding| Some(finding.severity) == worst);
    Err(Error::TorchRefused {
        path: source.path().into(),
        verdict: report.verdict.unwrap_or(Verdict::Error),
        finding: finding.cloned().map(Box::new),
    })
}
