//! `weigh info --json`: the document `weigh.info/1`.

use std::io::{self, Write};

use weigh::format::Verdict;
use weigh::inventory::count::DtypeTotals;
use weigh::inventory::recognize::Trait;
use weigh::inventory::{Item, Totals};

use super::Summary;
use crate::findings::Counts;
use crate::json::{Document, Json};
use crate::output::Output;

/// Writes a checkpoint of the document.
pub(super) fn write(
    document: &mut Document,
    output: &mut Output,
    summary: &Summary<'_>,
) -> io::Result<()> {
    let survey = summary.survey;
    document.checkpoint(output, survey, |json| {
        json.key("verdict")?;
        match survey.verdict() {
            // A part of a checkpoint is never called sound.
            verdict if verdict < Verdict::Invalid && survey.failures().next().is_some() => {
                json.null()?;
            }
            verdict => json.text(verdict.name())?,
        }
        json.key("counts")?.value(&survey.findings().collect::<Counts>())?;
        json.key("file_bytes")?.number(survey.file_bytes())?;
        json.key("selected")?.boolean(!summary.is_all)?;
        json.key("totals")?.object()?;
        write_totals(json, &summary.counts.total)?;
        json.key("in_no_file")?.number(summary.in_no_file)?;
        json.key("missing_bytes")?.number(summary.missing_bytes)?;
        json.end_object()?;
        write_parameters(json, summary)?;
        json.key("dtypes")?.array()?;
        for dtype in &summary.counts.dtypes {
            write_dtype(json, dtype)?;
        }
        json.end_array()?;
        json.key("traits")?.array()?;
        for found in &summary.traits {
            json.line()?;
            write_trait(json, found)?;
        }
        json.end_array()?;
        json.key("largest")?.array()?;
        for item in &summary.counts.largest {
            json.line()?;
            write_item(json, item)?;
        }
        json.end_array()?;
        if let Some(index) = survey.index() {
            json.key("index")?.object()?;
            json.key("tensors")?.number(index.len() as u64)?;
            json.key("total_size")?.number_or_null(index.total_size())?;
            json.key("total_parameters")?.number_or_null(index.total_parameters())?;
            json.end_object()?;
        }
        json.key("metadata")?.array()?;
        for (shard, key, value) in survey.metadata() {
            json.line()?;
            json.object()?;
            let file = survey.shards().get(shard).map_or("", |shard| shard.name());
            json.key("file")?.text(file)?;
            json.key("key")?.text(&key)?;
            json.key("value")?.text(&value)?;
            json.end_object()?;
        }
        json.end_array()
    })
}

fn write_totals(json: &mut Json<impl Write>, totals: &Totals) -> io::Result<()> {
    json.key("tensors")?.number(totals.tensors)?;
    json.key("elements")?.number(totals.elements)?;
    json.key("bytes")?.number(totals.bytes)?;
    json.key("unknown")?.number(totals.unknown)
}

fn write_parameters(json: &mut Json<impl Write>, summary: &Summary<'_>) -> io::Result<()> {
    let parameters = &summary.parameters;
    json.key("parameters")?.object()?;
    json.key("logical")?.number_or_null(parameters.logical)?;
    json.key("stored")?.number(parameters.stored)?;
    json.key("exact")?.boolean(parameters.exact)?;
    json.key("helpers")?.number(parameters.helpers)?;
    json.key("buffers")?.number(parameters.buffers)?;
    json.end_object()
}

fn write_dtype(json: &mut Json<impl Write>, dtype: &DtypeTotals) -> io::Result<()> {
    json.object()?;
    match dtype.dtype {
        Some(dtype) => json.key("dtype")?.text(dtype.name())?,
        None => json.key("dtype")?.null()?,
    }
    write_totals(json, &dtype.totals)?;
    json.end_object()
}

fn write_trait(json: &mut Json<impl Write>, found: &Trait) -> io::Result<()> {
    json.object()?;
    json.key("code")?.text(found.code)?;
    json.key("text")?.text(&found.text)?;
    json.key("evidence")?.array()?;
    for name in &found.evidence {
        json.text(name)?;
    }
    json.end_array()?;
    json.end_object()
}

fn write_item(json: &mut Json<impl Write>, item: &Item<'_>) -> io::Result<()> {
    json.object()?;
    json.key("name")?.text(item.name)?;
    match item.dtype {
        Some(dtype) => json.key("dtype")?.text(dtype.name())?,
        None => json.key("dtype")?.null()?,
    }
    match item.shape {
        Some(shape) => json.key("shape")?.numbers(shape)?,
        None => json.key("shape")?.null()?,
    }
    json.key("bytes")?.number(item.bytes)?;
    json.end_object()
}
