//! Torch checkpoints, read as data: loaded, and converted.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weigh::torch::{
    Complex, ConvertOptions, ConvertPlan, Format, NestedRule, QuantizedRule, SparseRule,
    TorchOptions, output_for,
};
use weigh::{Watch, WriteOptions};

use crate::error::exception;
use crate::memory::Buffer;
use crate::waiting;

/// What is wanted of a checkpoint, as both functions are told.
#[derive(FromPyObject)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Given {
    #[pyo3(item)]
    key: Option<String>,
    #[pyo3(item)]
    all: bool,
    #[pyo3(item)]
    allow_calls: bool,
    #[pyo3(item)]
    partial: bool,
    #[pyo3(item)]
    complex: String,
    #[pyo3(item)]
    quantized: String,
    #[pyo3(item)]
    sparse: String,
    #[pyo3(item)]
    nested: String,
    #[pyo3(item)]
    raw_bits: bool,
    #[pyo3(item)]
    ignore_crc: bool,
    #[pyo3(item)]
    strip: Vec<String>,
}

impl Given {
    fn options(self) -> PyResult<ConvertOptions> {
        let complex = match self.complex.as_str() {
            "refuse" => Complex::Refuse,
            "view-real" => Complex::ViewReal,
            other => return Err(no_rule(other, "\"refuse\" or \"view-real\"")),
        };
        let quantized = match self.quantized.as_str() {
            "refuse" => QuantizedRule::Refuse,
            "integers" => QuantizedRule::Integers,
            "dequantize" => QuantizedRule::Dequantize,
            other => return Err(no_rule(other, "\"refuse\", \"integers\" or \"dequantize\"")),
        };
        let sparse = match self.sparse.as_str() {
            "refuse" => SparseRule::Refuse,
            "dense" => SparseRule::Dense,
            "parts" => SparseRule::Parts,
            other => return Err(no_rule(other, "\"refuse\", \"dense\" or \"parts\"")),
        };
        let nested = match self.nested.as_str() {
            "refuse" => NestedRule::Refuse,
            "parts" => NestedRule::Parts,
            other => return Err(no_rule(other, "\"refuse\" or \"parts\"")),
        };
        let torch = TorchOptions {
            key: self.key,
            all: self.all,
            partial: self.partial,
            ignore_crc: self.ignore_crc,
            ..TorchOptions::default()
        };
        Ok(ConvertOptions {
            torch,
            allow_calls: self.allow_calls,
            strip: self.strip,
            complex,
            quantized,
            sparse,
            nested,
            raw_bits: self.raw_bits,
            ..ConvertOptions::default()
        })
    }
}

fn no_rule(given: &str, rules: &str) -> PyErr {
    PyValueError::new_err(format!("{given:?} is no rule: it is {rules}"))
}

/// Reads the tensors of a checkpoint of torch or numpy: pairs of names and buffers, in the order of the file.
#[pyfunction]
#[pyo3(signature = (path, given, progress=None))]
pub(crate) fn load_checkpoint(
    py: Python<'_>,
    path: PathBuf,
    given: Given,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(String, Buffer)>> {
    let options = given.options()?;
    let loaded = waiting::run(py, waiting::LONG, progress, |watched| {
        let watch = Watch { cancel: Some(watched.cancel), progress: Some(watched.progress) };
        weigh::torch::load(&path, &options, watch)
    })?;
    let buffers = loaded.into_iter().map(|(name, array)| {
        let buffer = Buffer::new(py, &name, array)?;
        Ok((name, buffer))
    });
    buffers.collect()
}

/// What became of a conversion: the paths that were written, the index last; names that were left out because others
/// are of the same elements, and what these are; and names of tensors that could not be converted, and why.
type Converted = (Vec<PathBuf>, Vec<(String, String)>, Vec<(String, String)>);

/// Converts a checkpoint to a file, or to a folder as files of at most so many bytes each.
#[pyfunction]
#[pyo3(signature = (path, target, given, *, most=None, stem=None, dedupe=false, tied=Vec::new(), values=None, replace=false, sync=true, verify=true, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
#[expect(clippy::fn_params_excessive_bools, reason = "keyword arguments")]
pub(crate) fn convert(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    given: Given,
    most: Option<u64>,
    stem: Option<String>,
    dedupe: bool,
    tied: Vec<String>,
    values: Option<PathBuf>,
    replace: bool,
    sync: bool,
    verify: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Converted> {
    let mut options = given.options()?;
    options.torch.values = values.is_some();
    let options = ConvertOptions {
        format: Format::of_name(&target),
        dedupe,
        tied,
        skip_verify: !verify,
        values,
        write: WriteOptions { replace, sync, ..WriteOptions::default() },
        ..options
    };
    let output = output_for(&path, &target, stem, most);
    let plan = py.detach(|| ConvertPlan::new(&path, &output, &options));
    let plan = plan.map_err(|error| exception(py, &error))?;
    waiting::run(py, plan.work(), progress, |watched| {
        let watch = Watch { cancel: Some(watched.cancel), progress: Some(watched.progress) };
        plan.write(watch)
    })?;
    let written = plan.files().map(|file| file.path);
    let paths = written.chain(plan.index().map(Into::into)).collect();
    let aliases = plan.aliases().iter().map(|(name, kept)| (name.clone(), kept.clone())).collect();
    let unconverted = plan.unconverted().iter().map(|it| (it.name.clone(), it.why.clone()));
    Ok((paths, aliases, unconverted.collect()))
}
