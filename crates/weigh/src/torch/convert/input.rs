//! What is converted: the tensors of checkpoints of any kind, as what is written and where its bytes are.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_format::index::{Index, is_plain_file_name};
use weigh_format::{Dtype, Finding, Policy};
use weigh_io::FileSource;
use weigh_pickle::container::torch::ByteOrder;
use weigh_pickle::container::{Kind as ContainerKind, detect};
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::state::Why;
use weigh_pickle::storage::{Origin, StorageId};
use weigh_pickle::tensor::{Dense, Kind, Quantized, Scales, Scheme, Tensor};
use weigh_pickle::values::to_json;
use weigh_pickle::{Error as PickleError, Limits, Verdict};

use super::{Complex, ConvertOptions};
use crate::survey::random_key;
use crate::torch::gather::{
    Blob, Bytes, Dequantize, Gathered, Integer, Job, Make, Pattern, Scratch,
};
use crate::torch::reading::Reading;
use crate::torch::scan::{ScanOptions, scan};
use crate::torch::{Place, TorchCheckpoint, TorchOptions, npz};
use crate::{Checkpoint, Error, Options, find};

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
    /// What it is in the input: `torch.bfloat16`, `<f4`, `BF16`.
    pub(in crate::torch) from: String,
    pub(in crate::torch) gathered: Gathered,
    /// The number of its file.
    pub(in crate::torch) file: usize,
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
    pub(super) json: Option<String>,
}

/// What was read of the input.
#[derive(Debug, Default)]
pub(in crate::torch) struct Input {
    pub(in crate::torch) opened: Vec<Opened>,
    pub(in crate::torch) blobs: Vec<Blob>,
    pub(in crate::torch) drafts: Vec<Draft>,
    pub(in crate::torch) unconverted: Vec<Unconverted>,
    pub(super) beside: Vec<Beside>,
    pub(super) beside_count: u64,
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
        input.add_safetensors(path, options)?;
    } else if name.ends_with(".index.json") {
        input.add_index(path, options)?;
    } else {
        let source = FileSource::open(path)?;
        match kind(&source, options)? {
            ContainerKind::Safetensors => input.add_safetensors(path, options)?,
            ContainerKind::Npy => npz::read_npy(&mut input, source, options)?,
            ContainerKind::Zip if npz::begins_as_npz(&source)? => {
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
    /// Adds all files of an index, which has to name the tensors that they have, each in its file.
    fn add_index(&mut self, path: &Path, options: &ConvertOptions) -> Result<(), Error> {
        let source = FileSource::open(path)?;
        let limit = Options::default().index_bytes;
        if source.len() > limit {
            let message = format!("the index is {} bytes, the limit is {limit}", source.len());
            return Err(Error::torch(path, PickleError::new("limit-index", message)));
        }
        let (index, mut findings) = Index::read(&source.read_span(0..source.len())?, random_key());
        findings.in_file(&path.to_string_lossy());
        if findings.refused_by(Policy::Compatible) {
            return Err(Error::Refused(Box::new(findings)));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in index.files().iter().filter(|file| is_plain_file_name(file)) {
            let first = self.drafts.len();
            let unconverted = self.unconverted.len();
            self.add_torch(&folder.join(file), options)?;
            let drafts = self.drafts.iter().skip(first).map(|draft| draft.name.as_str());
            let others = self.unconverted.iter().skip(unconverted).map(|it| it.name.as_str());
            let has: std::collections::BTreeSet<&str> = drafts.chain(others).collect();
            let wants = index.tensors().filter(|(_, own)| own == file).map(|(name, _)| name);
            if let Some(missing) = wants.into_iter().find(|name| !has.contains(name)) {
                let message = format!("the index has tensor {missing} in {file}, which has it not");
                return Err(Error::torch(path, PickleError::new("index-tensor-missing", message)));
            }
            if let Some(more) = has.iter().find(|name| index.get(name) != Some(file.as_str())) {
                let message = format!("{file} has tensor {more}, the index has it not in there");
                return Err(Error::torch(path, PickleError::new("index-tensor-unnamed", message)));
            }
        }
        self.is_set = true;
        Ok(())
    }

    fn add_torch(&mut self, path: &Path, options: &ConvertOptions) -> Result<(), Error> {
        let torch = TorchOptions { modules: options.allow_calls, ..options.torch.clone() };
        let checkpoint = TorchCheckpoint::open(path, &torch)?;
        checkpoint.require(options.allow_calls)?;
        require_scanned(path, options)?;
        let file = self.opened.len();
        let mut storages: HashMap<StorageId, usize> = HashMap::new();
        for named in checkpoint.names() {
            let Some(tensor) = checkpoint.tensor(named.tensor) else {
                return Err(Error::internal("a name of no tensor"));
            };
            let mut of = Of { checkpoint: &checkpoint, file, storages: &mut storages, options };
            match of.draft(self, &named.name, tensor)? {
                Ok(draft) => self.drafts.push(draft),
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

    fn add_safetensors(&mut self, path: &Path, _: &ConvertOptions) -> Result<(), Error> {
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
                self.drafts.push(Draft {
                    name: tensor.name.into(),
                    dtype: tensor.dtype,
                    shape: tensor.shape.to_vec(),
                    from: tensor.dtype.name().into(),
                    gathered: Gathered { blob, pattern: Pattern::span(0..len), make: Make::Copy },
                    file,
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

/// The file that tensors are of.
struct Of<'o> {
    checkpoint: &'o TorchCheckpoint,
    file: usize,
    storages: &'o mut HashMap<StorageId, usize>,
    options: &'o ConvertOptions,
}

impl Of<'_> {
    /// What a tensor is written as; inside, why it is not.
    fn draft(
        &mut self,
        input: &mut Input,
        name: &str,
        tensor: &Tensor,
    ) -> Result<Result<Draft, Refusal>, Error> {
        let made = match tensor.plain() {
            Ok(plain) => {
                let gathered = self.gathered(input, tensor.dtype, plain.dense)?;
                gathered.map(|gathered| (plain.dtype, plain.shape, gathered))
            }
            Err(refusal) => self.by_rule(input, tensor, refusal)?,
        };
        Ok(made.map(|(dtype, shape, gathered)| Draft {
            name: name.into(),
            dtype,
            shape,
            from: format!("torch.{}", tensor.dtype),
            gathered,
            file: self.file,
        }))
    }

    /// What a tensor that safetensors has not is written as by a rule that was chosen.
    #[expect(clippy::type_complexity, reason = "one place")]
    fn by_rule(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        refusal: Refusal,
    ) -> Result<Result<(Dtype, Vec<u64>, Gathered), Refusal>, Error> {
        let (dtype, options) = (tensor.dtype, self.options);
        let mut shape = tensor.shape.clone();
        match (&refusal, &tensor.kind) {
            (Refusal::Complex(_), Kind::Dense(dense) | Kind::Array(dense))
                if options.complex == Complex::ViewReal =>
            {
                shape.push(2);
                let gathered = self.gathered(input, dtype, dense)?;
                Ok(gathered.map(|gathered| (dtype.components(), shape, gathered)))
            }
            (Refusal::Bits(_), Kind::Dense(dense) | Kind::Array(dense)) if options.raw_bits => {
                let gathered = self.gathered(input, dtype, dense)?;
                Ok(gathered.map(|gathered| (dtype.components(), shape, gathered)))
            }
            (Refusal::Quantized(_), Kind::Quantized(quantized)) if options.dequantize => {
                let integer = match dtype {
                    TorchDtype::QUInt8 => Integer::U8,
                    TorchDtype::QInt8 => Integer::I8,
                    TorchDtype::QInt32 => Integer::I32,
                    _ => return Ok(Err(refusal)),
                };
                let gathered = match self.gathered(input, dtype, &quantized.integers)? {
                    Ok(gathered) if matches!(gathered.make, Make::Copy) => gathered,
                    _ => return Ok(Err(refusal)),
                };
                let Some(of) = self.channels(input, tensor, quantized, integer)? else {
                    return Ok(Err(refusal));
                };
                let make = Make::Dequantize(of);
                Ok(Ok((Dtype::F32, shape, Gathered { make, ..gathered })))
            }
            _ => Ok(Err(refusal)),
        }
    }

    /// The bytes of elements in a storage.
    fn gathered(
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

    /// The scales of a quantized tensor; nothing if they do not go with it.
    fn channels(
        &mut self,
        input: &mut Input,
        tensor: &Tensor,
        quantized: &Quantized,
        integer: Integer,
    ) -> Result<Option<Dequantize>, Error> {
        #[expect(clippy::cast_possible_truncation, reason = "torch computes in 32 bits")]
        let narrow = |scale: f64| scale as f32;
        match &quantized.scheme {
            Scheme::PerTensor { scale, zero_point } => {
                let channels = vec![(narrow(*scale), *zero_point)];
                Ok(Some(Dequantize { integer, channels, inner: u64::MAX }))
            }
            Scheme::PerChannel { scales, zero_points, axis } => {
                let axis = usize::try_from(*axis).unwrap_or(usize::MAX);
                let Some(count) = tensor.shape.get(axis) else { return Ok(None) };
                let inner = tensor.shape.iter().skip(axis + 1).product();
                let scales = self.numbers(input, scales)?;
                let zero_points = self.numbers(input, zero_points)?;
                let (Some(scales), Some(zeros)) = (scales, zero_points) else { return Ok(None) };
                let fits = |numbers: &Vec<f64>| numbers.len() as u64 == *count;
                if !fits(&scales) || !fits(&zeros) || zeros.iter().any(|zero| zero.fract() != 0.0) {
                    return Ok(None);
                }
                #[expect(clippy::cast_possible_truncation, reason = "it is whole")]
                let pair = |(scale, zero): (f64, f64)| (narrow(scale), zero as i64);
                let channels = scales.into_iter().zip(zeros).map(pair).collect();
                Ok(Some(Dequantize { integer, channels, inner }))
            }
            _ => Ok(None),
        }
    }

    /// The numbers of scales or zero points; nothing for such that torch would not take.
    fn numbers(&mut self, input: &mut Input, scales: &Scales) -> Result<Option<Vec<f64>>, Error> {
        let id = match scales {
            Scales::Numbers(numbers) => return Ok(Some(numbers.clone())),
            Scales::Tensor(id) => *id,
        };
        let Some(tensor) = self.checkpoint.tensor(id) else { return Ok(None) };
        let Some(dense) = tensor.dense() else { return Ok(None) };
        if dense.view.byte_len() > MOST_SCALES {
            return Ok(None);
        }
        let Ok(gathered) = self.gathered(input, tensor.dtype, dense)? else { return Ok(None) };
        let source = self.checkpoint.source();
        // The files before this one are not looked at.
        let sources = vec![source; self.file + 1];
        let bytes = bytes_of(&gathered, &sources, &input.blobs)?;
        let chunks4 = || bytes.as_chunks::<4>().0.iter().copied();
        let chunks8 = || bytes.as_chunks::<8>().0.iter().copied();
        #[expect(clippy::cast_precision_loss, reason = "zero points are small")]
        let numbers = match tensor.dtype {
            TorchDtype::Float64 => chunks8().map(f64::from_le_bytes).collect(),
            TorchDtype::Float32 => chunks4().map(|it| f32::from_le_bytes(it).into()).collect(),
            TorchDtype::Int64 => chunks8().map(|it| i64::from_le_bytes(it) as f64).collect(),
            TorchDtype::Int32 => chunks4().map(|it| i32::from_le_bytes(it).into()).collect(),
            _ => return Ok(None),
        };
        Ok(Some(numbers))
    }
}

/// Bytes of scales, at most.
const MOST_SCALES: u64 = 64 << 20;

/// All bytes of a small tensor.
fn bytes_of(
    gathered: &Gathered,
    sources: &[&FileSource],
    blobs: &[Blob],
) -> Result<Vec<u8>, Error> {
    let path = sources.first().map_or(Path::new(""), |source| source.path());
    let unpacked = crate::torch::gather::unpack(sources, blobs, std::iter::once(gathered), path)?;
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

/// Refuses what two programs read differently.
pub(in crate::torch) fn refuse_ambiguous(
    source: &FileSource,
    findings: &weigh_format::Findings,
    ignore_crc: bool,
) -> Result<(), Error> {
    let is_meant = |finding: &&Finding| {
        weigh_pickle::container::rules::is_ambiguous(finding.rule)
            && !(ignore_crc && finding.code() == "zip-crc")
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
fn require_scanned(path: &Path, options: &ConvertOptions) -> Result<(), Error> {
    let scanned = ScanOptions { limits: options.torch.limits, ..ScanOptions::default() };
    let report = scan(path, &scanned)?;
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
        path: path.into(),
        verdict: report.verdict.unwrap_or(Verdict::Error),
        finding: finding.cloned().map(Box::new),
    })
}
