//! What is read of a checkpoint's file: its pickles, run; the tensors of its object; where their storages are.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use weigh_format::{Finding, Findings};
use weigh_pickle::container::layout::{self, Contents, Layout, Place};
use weigh_pickle::container::torch::member_bytes;
use weigh_pickle::container::torch_tar::{self, Checkpoint as Tar};
use weigh_pickle::state::{Named, Options, Source, State, Why};
use weigh_pickle::storage::{Origin, Part, StorageId, Storages, inline_bytes};
use weigh_pickle::tensor::{Kind, Scales, Scheme, TarTensor, Tensor, TensorId, TensorReader};
use weigh_pickle::values::{Value, values};
use weigh_pickle::{Error as PickleError, Graph, Limits, NodeId, Program, Verdict};

use super::{LeftOut, TorchOptions};
use crate::torch::reading::{Fault, Reading, placed, placed_error};
use crate::torch::sizes::{self, Sizes};

/// What was read.
pub(super) struct Read {
    pub(super) verdict: Verdict,
    pub(super) findings: Findings,
    pub(super) named: Vec<Named>,
    pub(super) tensors: HashMap<TensorId, Tensor>,
    pub(super) storages: Storages,
    pub(super) spans: BTreeMap<String, Range<u64>>,
    pub(super) held: HashMap<StorageId, Box<[u8]>>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) left_out_count: u64,
    pub(super) names_begin: Source,
    pub(super) candidates: Vec<&'static str>,
    pub(super) fault: Option<PickleError>,
}

impl Read {
    fn new() -> Self {
        Self {
            verdict: Verdict::DataOnly,
            findings: Findings::new(),
            named: Vec::new(),
            tensors: HashMap::new(),
            storages: Storages::default(),
            spans: BTreeMap::new(),
            held: HashMap::new(),
            left_out: Vec::new(),
            left_out_count: 0,
            names_begin: Source::Root,
            candidates: Vec::new(),
            fault: None,
        }
    }
}

pub(super) fn read(
    reading: &mut Reading<'_>,
    layout: &Layout,
    options: &TorchOptions,
) -> Result<Read, Fault> {
    let limits = &options.limits;
    let mut read = Read::new();
    for finding in layout.findings.list() {
        read.findings.push(finding.clone());
    }
    let tar = match &layout.contents {
        Contents::TorchTar(archive) => {
            let mut walk = torch_tar::Walk::new(archive);
            reading.go_on(|spans| walk.go(spans, limits, sizes::of_class))?;
            Some(walk.finish())
        }
        _ => None,
    };
    let mut sizes = Sizes::new();
    for (number, pickle) in pickles(layout, reading, tar.as_ref()).iter().enumerate() {
        run(reading, layout, pickle, limits, |program, beside| {
            note(&mut read, program, beside, pickle.origin());
            if number == 0 {
                take_tensors(&mut read, program, tar.as_ref(), options);
                if matches!(layout.contents, Contents::Legacy(_)) {
                    sizes = sizes::of(program);
                }
            }
        })?;
    }
    match (&layout.contents, tar) {
        (Contents::Legacy(stream), _) => {
            let found = reading.ask(|spans| stream.storages(spans, |key| sizes.get(key).copied()));
            match found {
                Ok(storages) => {
                    read.spans = storages.by_key;
                    for finding in storages.findings.list() {
                        read.findings.push(finding.clone());
                    }
                }
                Err(Fault::Content(error)) => keep(&mut read.fault, error),
                Err(fault) => return Err(fault),
            }
        }
        (_, Some(tar)) => {
            let spans = tar.storages.into_iter().map(|storage| (storage.key, storage.span));
            read.spans = spans.collect();
        }
        _ => {}
    }
    let disagree = |finding: &Finding| {
        finding.rule.is_ambiguous && !(options.ignore_crc && finding.code() == "zip-crc")
    };
    if read.findings.list().iter().any(disagree) {
        read.verdict = read.verdict.with(Verdict::Ambiguous);
    }
    Ok(read)
}

/// The first of several faults is kept.
fn keep(fault: &mut Option<PickleError>, error: PickleError) {
    fault.get_or_insert(error);
}

/// The pickles of a file, the object first.
fn pickles(layout: &Layout, reading: &Reading<'_>, tar: Option<&Tar>) -> Vec<Found> {
    let mut all: Vec<_> = layout.pickles(&reading.spans).into_iter().map(Found::from).collect();
    if let Some(tar) = tar {
        all.extend(tar.pickles.iter().map(|span| Found {
            member: None,
            place: Place::Span(span.clone()),
            alone: false,
        }));
    }
    if matches!(layout.contents, Contents::Legacy(_)) {
        for found in &mut all {
            found.alone = false;
        }
    }
    all
}

/// A pickle that is to be run.
struct Found {
    member: Option<String>,
    place: Place,
    /// Whether nothing else belongs into its bytes.
    alone: bool,
}

impl Found {
    /// The member that offsets count in, or where the pickle begins in the file.
    fn origin(&self) -> (Option<&str>, u64) {
        match &self.place {
            Place::Span(span) if self.member.is_none() => (None, span.start),
            _ => (self.member.as_deref(), 0),
        }
    }
}

impl From<layout::Pickle> for Found {
    fn from(pickle: layout::Pickle) -> Self {
        Self { member: pickle.member, place: pickle.place, alone: true }
    }
}

/// Runs a pickle, and gives it to `take`.
fn run(
    reading: &mut Reading<'_>,
    layout: &Layout,
    pickle: &Found,
    limits: &Limits,
    take: impl FnOnce(&Program<'_>, Vec<Finding>),
) -> Result<(), Fault> {
    let (span, bytes, damage) = match &pickle.place {
        Place::Span(span) => {
            let len = span.end.saturating_sub(span.start).min(limits.pickle_bytes);
            let span = span.start..span.start.saturating_add(len);
            reading.ask(|spans| spans.get(span.clone()).map(drop))?;
            let bytes = reading.spans.get(span.clone()).unwrap_or_default();
            (span, Cow::Borrowed(bytes), None)
        }
        Place::Entry(position) => {
            let archive = layout.archive();
            let Some(entry) = archive.and_then(|archive| archive.entries.get(*position)) else {
                return Ok(());
            };
            reading.ask(|spans| member_bytes(spans, entry, limits).map(drop))?;
            let Ok(raw) = member_bytes(&reading.spans, entry, limits) else { return Ok(()) };
            let content = weigh_pickle::container::inflate::content(entry, raw, limits)?;
            (entry.span.clone().unwrap_or(0..0), content.bytes, content.damage)
        }
        _ => return Ok(()),
    };
    let program = weigh_pickle::run(&bytes, limits);
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let trailing = (pickle.alone && program.error.is_none())
        .then(|| weigh_pickle::stream::trailing(program.end(), len))
        .flatten();
    take(&program, damage.into_iter().chain(trailing).collect());
    drop(program);
    drop(bytes);
    reading.forget(&span);
    Ok(())
}

/// Takes the verdict and the findings of a program.
fn note(
    read: &mut Read,
    program: &Program<'_>,
    beside: Vec<Finding>,
    (member, start): (Option<&str>, u64),
) {
    read.verdict = read.verdict.with(program.verdict());
    let of_program = program.findings.list().iter().cloned();
    for finding in of_program.chain(beside) {
        read.findings.push(placed(finding, member, start));
    }
    if let Some(error) = &program.error {
        keep(&mut read.fault, placed_error(error.clone(), member, start));
    }
}

/// Reads the tensors of the object.
fn take_tensors(read: &mut Read, program: &Program<'_>, tar: Option<&Tar>, options: &TorchOptions) {
    let Some(root) = program.root else { return };
    let limits = &options.limits;
    let mut reader = TensorReader::new(&program.graph, limits);
    if let Some(tar) = tar
        && let Err(error) = add_tar(&mut reader, tar)
    {
        return keep(&mut read.fault, error);
    }
    let wanted = Options {
        key: options.key.as_deref(),
        all: options.all,
        modules: options.modules,
        partial: options.partial,
    };
    let state = match State::read(&mut reader, root, &wanted, limits) {
        Ok(state) => state,
        Err(error) => return keep(&mut read.fault, error),
    };
    let mut values_left = *limits;
    for left_out in state.left_out {
        let has_values = options.values && matches!(left_out.why, Why::NoTensor(_));
        let values = has_values.then(|| values_of(&program.graph, left_out.node, &mut values_left));
        read.left_out.push(LeftOut { name: left_out.name, why: left_out.why, values });
    }
    read.left_out_count = state.left_out_count;
    read.names_begin = state.source;
    read.candidates = state.candidates;
    let mut wanted: Vec<TensorId> = state.tensors.iter().map(|named| named.tensor).collect();
    while let Some(id) = wanted.pop() {
        let Some(tensor) = reader.get(id) else { continue };
        if read.tensors.contains_key(&id) {
            continue;
        }
        parts(tensor, &mut wanted);
        read.tensors.insert(id, tensor.clone());
    }
    read.named = state.tensors;
    read.storages = reader.storages().clone();
    for tensor in read.tensors.values() {
        let Some(dense) = tensor.dense() else { continue };
        let id = dense.view.storage;
        if let Some(Origin::Pickle(node)) = read.storages.get(id).map(|storage| storage.origin)
            && !read.held.contains_key(&id)
            && let Some(bytes) = inline_bytes(&program.graph, node)
        {
            read.held.insert(id, bytes.into());
        }
    }
}

/// The values of what was left out, as far as the limits for all of them go.
fn values_of(graph: &Graph<'_>, node: NodeId, left: &mut Limits) -> Vec<Value> {
    match values(graph, node, left) {
        Ok(values) => {
            let text = |value: &Value| match value {
                Value::Text(text) | Value::Long(text) | Value::Other(text) => text.len(),
                _ => 0,
            };
            let cost: usize = values.iter().map(|value| text(value).saturating_add(1)).sum();
            let cost = u64::try_from(cost).unwrap_or(u64::MAX);
            left.string_bytes = left.string_bytes.saturating_sub(cost);
            values
        }
        Err(_) => vec![Value::Other("more values than the limits allow".into())],
    }
}

/// The tensors that a tensor is made of.
fn parts(tensor: &Tensor, parts: &mut Vec<TensorId>) {
    match &tensor.kind {
        Kind::Sparse(sparse) => {
            parts.extend(&sparse.indices);
            parts.push(sparse.values);
        }
        Kind::Nested { buffer, rows } => {
            parts.push(*buffer);
            parts.extend(rows);
        }
        Kind::Quantized(quantized) => {
            if let Scheme::PerChannel { scales, zero_points, .. } = &quantized.scheme {
                for scales in [scales, zero_points] {
                    if let Scales::Tensor(id) = scales {
                        parts.push(*id);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Adds the storages and tensors of a tar file.
fn add_tar(reader: &mut TensorReader<'_>, tar: &Tar) -> Result<(), PickleError> {
    if let Some(error) = &tar.error {
        return Err(error.clone());
    }
    let storages = reader.storages_mut();
    for storage in &tar.storages {
        let dtype = sizes::dtype_of_class(&storage.class.0, &storage.class.1);
        storages.add(&storage.key, dtype, storage.elements, "cpu")?;
    }
    let counts = |key: &str, numbers: &[i64]| {
        let counts = numbers.iter().map(|number| u64::try_from(*number).ok());
        counts.collect::<Option<Vec<u64>>>().ok_or_else(|| {
            PickleError::new("tensor-shape", format!("{key} has a size or an offset below 0"))
        })
    };
    for view in &tar.views {
        let [offset, elements] = [view.offset, view.elements];
        let counted = counts(&view.key, &[offset, elements])?;
        let [offset, elements] = counted.as_slice() else { continue };
        storages.add_part(&view.of, Part::new(&view.key, *offset, *elements))?;
    }
    for tensor in &tar.tensors {
        let offset = counts(&tensor.key, &[tensor.offset])?;
        reader.add_tar_tensor(TarTensor {
            key: &tensor.key,
            storage: &tensor.storage,
            offset: offset.first().copied().unwrap_or(0),
            shape: counts(&tensor.key, &tensor.size)?,
            strides: counts(&tensor.key, &tensor.stride)?,
        })?;
    }
    Ok(())
}
