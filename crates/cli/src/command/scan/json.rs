//! `weigh scan --format json`: the document `weigh.scan/1`.

use std::io::{self, Write};

use weigh::torch::scan::{ScanReport, SeenCall, SeenGlobal, SeenPickle, WeightsOnly};

use super::Report;
use crate::findings::{Counts, finding_json};
use crate::json::{self, Document};
use crate::session::Session;

#[derive(Default)]
pub(super) struct Json {
    document: Option<Document>,
}

impl Report for Json {
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()> {
        let output = &mut session.output;
        self.document = Some(Document::begin_list(output, "weigh.scan/1", |_| Ok(()), "files")?);
        Ok(())
    }

    fn file(&mut self, session: &mut Session, report: &ScanReport) -> anyhow::Result<()> {
        let Some(document) = &mut self.document else {
            return Ok(());
        };
        Ok(document.item(&mut session.output, |json| write_file(json, report))?)
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        if let Some(document) = self.document.take() {
            document.end(session)?;
        }
        Ok(())
    }
}

fn write_file(json: &mut json::Json<impl Write>, report: &ScanReport) -> io::Result<()> {
    json.key("path")?.text(&report.path.to_string_lossy())?;
    json.key("size")?.number(report.size)?;
    json.key("kind")?.text(report.kind)?;
    match report.verdict {
        Some(verdict) => json.key("verdict")?.text(verdict.name())?,
        None => json.key("verdict")?.null()?,
    }
    json.key("complete")?.boolean(report.complete)?;
    json.key("clean")?.boolean(report.is_clean())?;
    json.key("weights_only")?;
    write_weights_only(json, report.weights_only.as_ref())?;
    json.key("pickles")?.array()?;
    for pickle in &report.pickles {
        json.line()?;
        write_pickle(json, pickle)?;
    }
    json.end_array()?;
    json.key("globals")?.array()?;
    for global in &report.globals {
        json.line()?;
        write_global(json, global)?;
    }
    json.end_array()?;
    json.key("calls")?.array()?;
    for call in &report.calls {
        json.line()?;
        write_call(json, call)?;
    }
    json.end_array()?;
    json.key("call_count")?.number(report.call_count)?;
    json.key("counts")?.value(&std::iter::once(&report.findings).collect::<Counts>())?;
    json.key("dropped")?.number(report.findings.dropped())?;
    json.key("findings")?.array()?;
    for finding in report.findings.list() {
        json.line()?;
        json.value(&finding_json(finding))?;
    }
    json.end_array()
}

fn write_weights_only(
    json: &mut json::Json<impl Write>,
    weights_only: Option<&WeightsOnly>,
) -> io::Result<()> {
    let refused = match weights_only {
        None => return json.null(),
        Some(WeightsOnly::Taken) => None,
        Some(WeightsOnly::Refused(refused)) => Some(refused),
    };
    json.object()?;
    json.key("taken")?.boolean(refused.is_none())?;
    if let Some(refused) = refused {
        json.key("reason")?.text(&refused.reason)?;
        write_member(json, refused.member.as_deref())?;
        if let Some(offset) = refused.offset {
            json.key("offset")?.number(offset)?;
        }
        if let Some(opcode) = refused.opcode {
            json.key("opcode")?.text(opcode)?;
        }
        if let Some(name) = &refused.name {
            json.key("name")?.text(name)?;
        }
    }
    json.end_object()
}

fn write_pickle(json: &mut json::Json<impl Write>, pickle: &SeenPickle) -> io::Result<()> {
    json.object()?;
    write_member(json, pickle.member.as_deref())?;
    json.key("offset")?.number(pickle.offset)?;
    json.key("length")?.number(pickle.len)?;
    json.key("protocol")?.number_or_null(pickle.protocol.map(u64::from))?;
    json.key("opcodes")?.number(pickle.opcodes)?;
    json.key("verdict")?.text(pickle.verdict.name())?;
    json.end_object()
}

fn write_global(json: &mut json::Json<impl Write>, global: &SeenGlobal) -> io::Result<()> {
    json.object()?;
    write_member(json, global.member.as_deref())?;
    json.key("module")?.text(&global.module)?;
    json.key("name")?.text(&global.name)?;
    json.key("offset")?.number(global.offset)?;
    json.key("count")?.number(global.count)?;
    json.key("known")?.boolean(global.known)?;
    json.key("depth")?.number(global.depth.into())?;
    json.end_object()
}

fn write_call(json: &mut json::Json<impl Write>, call: &SeenCall) -> io::Result<()> {
    json.object()?;
    write_member(json, call.member.as_deref())?;
    if let Some((module, name)) = &call.callee {
        json.key("module")?.text(module)?;
        json.key("name")?.text(name)?;
    }
    if let Some(kind) = call.kind {
        json.key("opcode")?.text(kind.opcode())?;
    }
    json.key("offset")?.number(call.offset)?;
    json.key("gadget")?.boolean(call.gadget)?;
    json.key("depth")?.number(call.depth.into())?;
    json.end_object()
}

fn write_member(json: &mut json::Json<impl Write>, member: Option<&str>) -> io::Result<()> {
    match member {
        Some(member) => json.key("member")?.text(member),
        None => Ok(()),
    }
}
