//! `weigh convert`.

mod report;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use weigh::torch::pickle::Limits;
use weigh::torch::{Complex, ConvertOptions, ConvertPlan, ConvertReport, Format, TorchOptions};
use weigh::{Error, Output, Shards, Watch};

use crate::bar::Bar;
use crate::interrupt;
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
    /// Write integers with scales as the floats that they stand for
    #[arg(long, help_heading = "Elements")]
    dequantize: bool,
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

impl Convert {
    fn format(&self) -> Format {
        let is_npz = self.writing.output.extension().is_some_and(|end| end == "npz");
        match self.to {
            Some(FormatName::Npz) => Format::Npz,
            None if is_npz => Format::Npz,
            Some(FormatName::Safetensors) | None => Format::Safetensors,
        }
    }

    /// One file, or a folder.
    fn output(&self) -> Output {
        let path = &self.writing.output;
        let shards = self.max_shard_size.map(Shards::Most);
        let is_index = self.path.to_string_lossy().ends_with(".index.json");
        let is_file_name = path.extension().is_some_and(|it| it == "safetensors" || it == "npz");
        let is_folder = writing::is_folder(path);
        if shards.is_some() || is_folder || (is_index && !is_file_name) {
            self.writing.folder(self.name.clone(), shards.unwrap_or(Shards::Keep))
        } else {
            Output::File(path.clone())
        }
    }

    fn options(&self, output: &Output) -> Result<ConvertOptions, Failure> {
        let limits = Limits { expansion: self.max_expand, ..Limits::default() };
        let torch = TorchOptions {
            key: self.key.clone(),
            all: self.all,
            partial: self.partial,
            values: self.values.is_some(),
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
            dequantize: self.dequantize,
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
    if let Some(values) = &args.values
        && fs::canonicalize(values)
            .is_ok_and(|path| Some(path) == fs::canonicalize(&args.path).ok())
    {
        let error = Error::SameFile { path: values.clone() };
        session.failed(&error);
        return None;
    }
    let output = args.output();
    let options = args.options(&output).map_err(|failure| session.failed(failure)).ok()?;
    let plan = ConvertPlan::new(&args.path, &output, &options);
    plan.map_err(|error| {
        let Error::Unconvertible { path, tensors } = &error else {
            return writing::report_error(session, &error);
        };
        report::refused(session, path, tensors);
    })
    .ok()
}

fn carry_out(plan: &ConvertPlan) -> Result<ConvertReport, Error> {
    let bar = Bar::new(plan.work());
    let progress = bar.follow();
    plan.write(Watch { cancel: Some(interrupt::cancel()), progress: Some(&progress) })
}

#[cfg(test)]
mod tests {
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
