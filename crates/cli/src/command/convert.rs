//! `weigh convert`.

mod report;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use weigh::torch::pickle::{Limits, Verdict};
use weigh::torch::{
    Complex, ConvertOptions, ConvertPlan, ConvertReport, Format, NestedRule, QuantizedRule,
    SparseRule, TorchOptions, output_for,
};
use weigh::{Error, Output, Watch};

use crate::bar::Bar;
use crate::interrupt;
use crate::limits::LimitArgs;
use crate::session::{Failure, Outcome, Session};
use crate::text;
use crate::writing::{self, Writing};
use report::Report;

/// Convert a checkpoint of torch or numpy to safetensors, or any of these to `.npz`. Nothing in it is executed.
///
/// What the input is is told by its bytes: a checkpoint of torch (`.pt`, `.pth`, `.bin`, `.ckpt`), the index of several
/// (`pytorch_model.bin.index.json`), a folder of these, an `.npz` or `.npy`, or safetensors. The state dict is found in
/// whatever is around it, and what is left out is listed. A file that would do more than hold data when it is unpickled
/// is refused.
///
/// What was written is read back and compared before it takes its place.
#[derive(Args, Debug)]
#[command(mut_arg("output", |output| output.help("Where to write: a file, or a folder")))]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Convert {
    /// A file, an index or a folder
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    writing: Writing,
    /// What to write [default: by the name of the output]
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<FormatName>,
    /// To several files of at most so many bytes of tensors, with an index, as 5GB
    #[arg(long, value_name = "BYTES", value_parser = writing::parse_size)]
    max_shard_size: Option<u64>,
    /// What the names of the files begin with [default: model]
    #[arg(long, value_name = "NAME", value_parser = writing::parse_stem)]
    name: Option<String>,
    /// Where the state dict is: a key, or keys with dots between
    #[arg(long, help_heading = "Tensors", value_name = "KEY")]
    key: Option<String>,
    /// Every tensor, the optimizer's too
    #[arg(long, help_heading = "Tensors", conflicts_with = "key")]
    all: bool,
    /// Take this off the front of names. May be repeated: the first that fits is taken
    #[arg(long, help_heading = "Tensors", value_name = "PREFIX")]
    strip_prefix: Vec<String>,
    /// Write one of several names of the same elements; the metadata says which name is which
    #[arg(long, help_heading = "Tensors")]
    dedupe: bool,
    /// Whose names to drop when several are of the same elements: a config with `_tied_weights_keys` or
    /// `tie_word_embeddings`
    #[arg(long, help_heading = "Tensors", requires = "dedupe", value_name = "CONFIG")]
    tied_keys_from: Option<PathBuf>,
    /// Leave out what cannot be converted, and list it; the exit code is 1 then
    #[arg(long, help_heading = "Tensors")]
    partial: bool,
    /// What becomes of complex numbers that the output has not
    #[arg(long, help_heading = "Elements", value_enum, default_value_t = ComplexName::Refuse, value_name = "RULE")]
    complex: ComplexName,
    /// What becomes of integers with scales
    #[arg(long, help_heading = "Elements", value_enum, default_value_t = QuantizedName::Refuse, value_name = "RULE")]
    quantized: QuantizedName,
    /// The same as `--quantized dequantize`
    #[arg(long, help_heading = "Elements", conflicts_with = "quantized")]
    dequantize: bool,
    /// What becomes of sparse tensors
    #[arg(long, help_heading = "Elements", value_enum, default_value_t = SparseName::Refuse, value_name = "RULE")]
    sparse: SparseName,
    /// What becomes of nested tensors
    #[arg(long, help_heading = "Elements", value_enum, default_value_t = NestedName::Refuse, value_name = "RULE")]
    nested: NestedName,
    /// Write elements that the output has not as unsigned integers: torch's `bits`, and for `.npz` BF16 and F8
    #[arg(long, help_heading = "Elements")]
    raw_bits: bool,
    /// Where what is no tensor goes, as JSON
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Convert a file that calls something when it is unpickled. It is not called; what it would make stays opaque
    #[arg(long, help_heading = "Safety")]
    allow_calls: bool,
    /// Convert bytes that do not have their checksum
    #[arg(long, help_heading = "Safety")]
    ignore_crc: bool,
    /// Do not read back what was written
    #[arg(long, help_heading = "Safety")]
    no_verify: bool,
    /// How many times the bytes of their storages tensors may take
    #[arg(long, help_heading = "Safety", default_value_t = Limits::default().expansion, value_name = "TIMES")]
    max_expand: u32,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum FormatName {
    /// safetensors
    Safetensors,
    /// An archive of numpy's arrays, each where it can be mapped
    Npz,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum ComplexName {
    /// They are refused
    Refuse,
    /// A last dimension of two has the real and the imaginary part
    ViewReal,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum QuantizedName {
    /// They are refused
    Refuse,
    /// As integers, with `NAME.scale` and `NAME.zero_point` beside them
    Integers,
    /// As the floats that they stand for
    Dequantize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum SparseName {
    /// They are refused
    Refuse,
    /// With all their zeros, as far as `--max-expand` goes
    Dense,
    /// As `NAME.indices`, `NAME.values` and `NAME.size`; compressed ones as `NAME.crow_indices` and the like
    Parts,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum NestedName {
    /// They are refused
    Refuse,
    /// As `NAME.values`, `NAME.sizes`, `NAME.strides` and `NAME.offsets`
    Parts,
}

impl Convert {
    fn format(&self) -> Format {
        match self.to {
            Some(FormatName::Npz) => Format::Npz,
            Some(FormatName::Safetensors) => Format::Safetensors,
            None => Format::of_name(&self.writing.output),
        }
    }

    fn output(&self) -> Output {
        output_for(&self.path, &self.writing.output, self.name.clone(), self.max_shard_size)
    }

    fn options(&self, output: &Output) -> Result<ConvertOptions, Failure> {
        let limits = Limits { expansion: self.max_expand, ..Limits::default() };
        let limits = self.limits.over(limits);
        let torch = TorchOptions {
            key: self.key.clone(),
            all: self.all,
            partial: self.partial,
            ignore_crc: self.ignore_crc,
            limits,
            ..TorchOptions::default()
        };
        Ok(ConvertOptions {
            torch,
            allow_calls: self.allow_calls,
            format: self.format(),
            dedupe: self.dedupe,
            tied: self.tied_keys_from.as_deref().map_or(Ok(Vec::new()), tied_keys)?,
            strip: self.strip_prefix.clone(),
            complex: match self.complex {
                ComplexName::Refuse => Complex::Refuse,
                ComplexName::ViewReal => Complex::ViewReal,
            },
            quantized: match self.quantized {
                _ if self.dequantize => QuantizedRule::Dequantize,
                QuantizedName::Refuse => QuantizedRule::Refuse,
                QuantizedName::Integers => QuantizedRule::Integers,
                QuantizedName::Dequantize => QuantizedRule::Dequantize,
            },
            sparse: match self.sparse {
                SparseName::Refuse => SparseRule::Refuse,
                SparseName::Dense => SparseRule::Dense,
                SparseName::Parts => SparseRule::Parts,
            },
            nested: match self.nested {
                NestedName::Refuse => NestedRule::Refuse,
                NestedName::Parts => NestedRule::Parts,
            },
            raw_bits: self.raw_bits,
            skip_verify: self.no_verify,
            values: self.values.clone(),
            write: self.writing.options_for(output)?,
        })
    }
}

/// The names that a config says are tied to others.
fn tied_keys(path: &Path) -> Result<Vec<String>, Failure> {
    let json = text::read(path)?;
    let config: serde_json::Value = serde_json::from_str(&json).map_err(|error| {
        let shown = path.to_string_lossy().into_owned();
        let message = format!("{shown}: {error}");
        Failure { path: shown, code: "config-json", message, help: None }
    })?;
    let mut tied: Vec<String> = Vec::new();
    match config.get("_tied_weights_keys") {
        Some(serde_json::Value::Array(names)) => {
            tied.extend(names.iter().filter_map(|name| name.as_str().map(String::from)));
        }
        Some(serde_json::Value::Object(names)) => tied.extend(names.keys().cloned()),
        _ => {}
    }
    if config.get("tie_word_embeddings") == Some(&serde_json::Value::Bool(true)) {
        tied.push("lm_head.weight".into());
    }
    Ok(tied)
}

pub(crate) fn run(args: &Convert, session: &mut Session) -> Result<()> {
    session.gives_verdict = true;
    let plan = plan(args, session);
    let mut written = None;
    if let Some(plan) = plan.as_ref().filter(|_| !args.writing.dry_run) {
        match carry_out(plan) {
            Ok(done) => written = Some(done),
            Err(error) => writing::report_error(session, &error),
        }
    }
    if plan.as_ref().is_some_and(|plan| !plan.unconverted().is_empty()) {
        session.came_to(Outcome::Finding);
    }
    let report = Report { plan: plan.as_ref(), written: written.as_ref() };
    report.tell(session);
    if args.writing.json {
        report.write_json(session)?;
    } else if args.writing.dry_run || written.is_some() {
        report.write_text(session.output.data(), args.writing.dry_run)?;
    }
    Ok(())
}

/// What would be written; nothing, reported, if that cannot be.
fn plan(args: &Convert, session: &mut Session) -> Option<ConvertPlan> {
    if args.writing.is_stdout() {
        session.failed(Failure {
            path: "-".into(),
            code: "stdout-unsupported",
            message: "what is converted is not written to stdout".into(),
            help: Some("Give the path of a file or of a folder.".into()),
        });
        return None;
    }
    let output = args.output();
    let options = args.options(&output).map_err(|failure| session.failed(failure)).ok()?;
    session.mend(&args.path);
    let mut plan = ConvertPlan::new(&args.path, &output, &options);
    if matches!(plan, Err(Error::Refused(_))) && mend(&args.path, session) {
        plan = ConvertPlan::new(&args.path, &output, &options);
    }
    plan.map_err(|error| match &error {
        Error::Unconvertible { path, tensors } => report::refused(session, path, tensors),
        Error::TorchRefused { verdict: Verdict::Call | Verdict::UnknownGlobal, .. }
            if !args.allow_calls =>
        {
            let help = "See what it is with `weigh scan`. With --allow-calls the tensors are \
                        converted, and nothing is called.";
            session.found(Failure { help: Some(help.into()), ..Failure::from(&error) });
        }
        _ => writing::report_error(session, &error),
    })
    .ok()
}

/// Undoes edits that left files of a set of safetensors half done. Whether none is left.
fn mend(path: &Path, session: &mut Session) -> bool {
    let found = weigh::find(path).unwrap_or_default();
    let mut is_mended = false;
    for found in found {
        if let Ok(survey) = session.survey(&found) {
            is_mended |= survey.interrupted_edits().next().is_none();
        }
    }
    is_mended
}

fn carry_out(plan: &ConvertPlan) -> Result<ConvertReport, Error> {
    let bar = Bar::new(plan.work());
    let progress = bar.follow();
    plan.write(Watch { cancel: Some(interrupt::cancel()), progress: Some(&progress) })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_config_names_what_is_tied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for (config, want) in [
            (r"{}", &[][..]),
            (r#"{"tie_word_embeddings": true}"#, &["lm_head.weight"]),
            (r#"{"tie_word_embeddings": false}"#, &[]),
            (r#"{"_tied_weights_keys": ["a", "b"]}"#, &["a", "b"]),
            (r#"{"_tied_weights_keys": {"a": "b"}}"#, &["a"]),
        ] {
            fs::write(&path, config).unwrap();
            assert_eq!(tied_keys(&path).unwrap(), want, "{config}");
        }
        fs::write(&path, "{").unwrap();
        assert_eq!(tied_keys(&path).unwrap_err().code, "config-json");
    }
}
