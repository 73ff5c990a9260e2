//! What would be converted, and what has been.

use std::io::{self, Write};
use std::path::Path;

use weigh::format::text::escaped;
use weigh::torch::{ConvertPlan, ConvertReport, Converted, ConvertedFile, Unconverted};

use crate::json::{Document, Json};
use crate::output::Style;
use crate::session::{Failure, Session};
use crate::units;

/// Things of one kind that are told one by one.
const SHOWN: usize = 10;

/// What a conversion has come to, as far as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'r> {
    pub(super) plan: Option<&'r ConvertPlan>,
    /// What was done; nothing has been if there is none.
    pub(super) written: Option<&'r ConvertReport>,
}

/// Reports the tensors that cannot be converted.
pub(super) fn refused(session: &mut Session, path: &Path, tensors: &[Unconverted]) {
    let path = path.to_string_lossy().into_owned();
    for tensor in tensors {
        let rule = rule(tensor.code).map_or(String::new(), |rule| format!(" {rule} does that."));
        let help = format!("{}{rule} Or leave it out with --partial.", tensor.help);
        let message = format!("{path}: {}: {}", escaped(&tensor.name), tensor.why);
        session.found(Failure { path: path.clone(), code: tensor.code, message, help: Some(help) });
    }
}

/// The options that convert what is refused with this code.
fn rule(code: &str) -> Option<&'static str> {
    Some(match code {
        "complex" => "--complex view-real",
        "bits" => "--raw-bits",
        "quantized" => "--quantized dequantize, or integers,",
        "sparse" => "--sparse parts, or dense,",
        "nested" => "--nested parts",
        _ => return None,
    })
}

impl Report<'_> {
    /// Says on stderr what is not in the output, and what names of the same elements cost.
    pub(super) fn tell(&self, session: &mut Session) {
        let Some(plan) = self.plan else { return };
        let output = &mut session.output;
        for tensor in plan.unconverted().iter().take(SHOWN) {
            let message = format!("{}: left out: {}", tensor.name, tensor.why);
            output.message("warning", Style::Yellow, &message, None);
        }
        let more = plan.unconverted().len().saturating_sub(SHOWN) as u64;
        if more > 0 {
            output.note(&format!("{} more cannot be converted", units::plural(more, "tensor")));
        }
        for beside in plan.beside().iter().take(SHOWN) {
            let tensors = if beside.has_tensors { ", with tensors" } else { "" };
            output.note(&format!("left out: {}: {}{tensors}", beside.name, beside.why));
        }
        let more = plan.beside_count().saturating_sub(SHOWN.min(plan.beside().len()) as u64);
        let more = more.saturating_sub(plan.unconverted().len() as u64);
        if more > 0 {
            output.note(&format!("{} more left out; --json lists them", units::exact(more)));
        }
        if let [first, .., last] = plan.candidates() {
            output.note(&format!(
                "there are state dicts at {first} and {last}, so names begin at the root; --key takes one"
            ));
        }
        let same = plan.tensors().iter().filter(|tensor| tensor.same_as.is_some()).count();
        let cost = plan.cost();
        if same > 0 {
            let again = units::bytes(cost.every_name.saturating_sub(cost.once));
            let names = units::plural(same as u64, "name");
            output.note(&format!(
                "{names} of elements that another name has too: {again} more; --dedupe writes them once"
            ));
        }
        if !plan.aliases().is_empty() {
            let saved = units::bytes(cost.every_name.saturating_sub(cost.once));
            let names = units::plural(plan.aliases().len() as u64, "name");
            output.note(&format!("{names} only in the metadata, which saves {saved}"));
        }
    }

    /// Lines for people: in a dry run one for each tensor, then one for each file.
    pub(super) fn write_text(&self, out: &mut impl Write, dry: bool) -> io::Result<()> {
        let Some(plan) = self.plan else { return Ok(()) };
        if dry {
            for tensor in plan.tensors() {
                writeln!(out, "{}", line(tensor))?;
            }
            for (name, kept) in plan.aliases() {
                writeln!(out, "{}  same as {}", escaped(name), escaped(kept))?;
            }
        }
        let is_done = self.written.is_some();
        let files: Vec<ConvertedFile> = plan.files().collect();
        let shown = |file: &ConvertedFile| escaped(&file.path.to_string_lossy()).to_string();
        let width = files.iter().map(|file| shown(file).chars().count()).max().unwrap_or(0);
        for file in &files {
            let verb = match (is_done, file.replaces && !is_done) {
                (true, _) => "wrote",
                (false, true) => "would replace",
                (false, false) => "would write",
            };
            let tensors = units::plural(file.tensors as u64, "tensor");
            let bytes = units::bytes(file.bytes);
            writeln!(out, "{verb} {:width$}  {bytes:>9}  {tensors}", shown(file))?;
        }
        if let Some(index) = plan.index() {
            let verb = if is_done { "wrote" } else { "would write" };
            writeln!(out, "{verb} {}", escaped(&index.to_string_lossy()))?;
        }
        for path in plan.removed() {
            let verb = if is_done { "removed" } else { "would remove" };
            writeln!(out, "{verb} {}", escaped(&path.to_string_lossy()))?;
        }
        if let Some(written) = self.written {
            let bytes = units::bytes(written.bytes);
            write!(out, "{bytes} in {:.2} s", written.elapsed.as_secs_f64())?;
            match written.verified {
                Some(time) => writeln!(out, ", read back in {:.2} s", time.as_secs_f64())?,
                None => writeln!(out, ", not read back")?,
            }
        }
        Ok(())
    }

    /// One JSON document, with the failures so far.
    pub(super) fn write_json(&self, session: &mut Session) -> io::Result<()> {
        let Self { plan, written } = *self;
        let output = &mut session.output;
        let mut document = Document::begin_list(
            output,
            "weigh.convert/1",
            |json| {
                json.key("written")?.boolean(written.is_some())?;
                if let Some(written) = written {
                    json.key("seconds")?.value(&written.elapsed.as_secs_f64())?;
                    let verified = written.verified.map(|time| time.as_secs_f64());
                    json.key("verify_seconds")?.value(&verified)?;
                }
                plan.map_or(Ok(()), |plan| write_plan(json, plan))
            },
            "tensors",
        )?;
        for tensor in plan.map(ConvertPlan::tensors).unwrap_or_default() {
            document.item(output, |json| {
                json.key("name")?.text(&tensor.name)?;
                json.key("from")?.text(&tensor.from)?;
                json.key("dtype")?.text(tensor.dtype.name())?;
                json.key("shape")?.numbers(&tensor.shape)?;
                json.key("bytes")?.number(tensor.bytes)?;
                json.key("how")?.text(&tensor.how)?;
                json.key("file")?.number(tensor.file as u64)?;
                match &tensor.same_as {
                    Some(same) => json.key("same_as")?.text(same),
                    None => Ok(()),
                }
            })?;
        }
        document.end(session)
    }
}

/// What is told of a plan beside its tensors.
fn write_plan(json: &mut Json<impl Write>, plan: &ConvertPlan) -> io::Result<()> {
    json.key("bytes")?.number(plan.bytes())?;
    let cost = plan.cost();
    json.key("storage_bytes")?.number(cost.storages)?;
    json.key("bytes_every_name")?.number(cost.every_name)?;
    json.key("bytes_once")?.number(cost.once)?;
    json.key("files")?.array()?;
    for file in plan.files() {
        json.line()?;
        json.object()?;
        json.key("path")?.text(&file.path.to_string_lossy())?;
        json.key("bytes")?.number(file.bytes)?;
        json.key("tensors")?.number(file.tensors as u64)?;
        json.end_object()?;
    }
    json.end_array()?;
    if let Some(index) = plan.index() {
        json.key("index")?.text(&index.to_string_lossy())?;
    }
    json.key("removed")?.array()?;
    for path in plan.removed() {
        json.text(&path.to_string_lossy())?;
    }
    json.end_array()?;
    json.key("aliases")?.value(plan.aliases())?;
    json.key("unconverted")?.array()?;
    for tensor in plan.unconverted() {
        json.line()?;
        json.object()?;
        json.key("name")?.text(&tensor.name)?;
        json.key("code")?.text(tensor.code)?;
        json.key("why")?.text(&tensor.why)?;
        json.end_object()?;
    }
    json.end_array()?;
    json.key("left_out_count")?.number(plan.beside_count())?;
    json.key("left_out")?.array()?;
    for beside in plan.beside() {
        json.line()?;
        json.object()?;
        json.key("name")?.text(&beside.name)?;
        json.key("why")?.text(&beside.why)?;
        json.key("tensors")?.boolean(beside.has_tensors)?;
        json.end_object()?;
    }
    json.end_array()
}

fn line(tensor: &Converted) -> String {
    let Converted { name, from, dtype, shape, bytes, how, same_as, .. } = tensor;
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let same = same_as.as_ref().map(|same| format!(", same as {}", escaped(same)));
    format!(
        "{}  {} to {dtype}  [{}]  {}  {how}{}",
        escaped(name),
        escaped(from),
        sizes.join(", "),
        units::bytes(*bytes),
        same.unwrap_or_default()
    )
}
