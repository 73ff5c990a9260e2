//! `weigh check --format json`: the document `weigh.check/1`.

use std::io::Write;

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use weigh::format::Verdict;

use super::{Checked, Judge, Part, Report};
use crate::findings::{Counts, FindingJson};
use crate::json;
use crate::session::Session;

/// Writes one checkpoint a line, as it comes.
pub(super) struct Json {
    judge: Judge,
    written: bool,
}

impl Json {
    pub(super) fn new(judge: Judge) -> Self {
        Self {
            judge,
            written: false,
        }
    }
}

impl Report for Json {
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()> {
        let (policy, refuses) = (self.judge.policy.name(), self.judge.refuses);
        write!(
            session.output.data(),
            r#"{{"schema":"weigh.check/1","policy":"{policy}","refuses":"{refuses}","checkpoints":["#
        )?;
        Ok(())
    }

    fn checkpoint(&mut self, session: &mut Session, checked: &Checked<'_>) -> anyhow::Result<()> {
        let out = session.output.data();
        out.write_all(if self.written { b",\n" } else { b"\n" })?;
        self.written = true;
        json::write(
            out,
            &CheckpointJson {
                path: &checked.survey.path().to_string_lossy(),
                kind: checked.survey.layout().name(),
                verdict: checked.verdict.map(Verdict::name),
                refused: checked.refused,
                counts: checked.survey.findings().collect(),
                dropped: checked.parts().map(Part::dropped).fold(0, u64::saturating_add),
                shards: Shards(checked),
                beside: checked
                    .survey
                    .beside()
                    .iter()
                    .map(|path| path.to_string_lossy().into_owned())
                    .collect(),
                findings: FindingsJson(checked),
            },
        )
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        let failures = std::mem::take(&mut session.failures);
        let out = session.output.data();
        out.write_all(b"\n],\"errors\":")?;
        json::write(out, &failures)?;
        out.write_all(b"}\n")?;
        Ok(())
    }
}

#[derive(Serialize)]
struct CheckpointJson<'c> {
    path: &'c str,
    kind: &'static str,
    /// `null` if a file could not be read.
    verdict: Option<&'static str>,
    refused: bool,
    counts: Counts,
    dropped: u64,
    shards: Shards<'c>,
    beside: Vec<String>,
    findings: FindingsJson<'c>,
}

/// The files, each with its verdict.
struct Shards<'c>(&'c Checked<'c>);

#[derive(Serialize)]
struct ShardJson<'c> {
    file: &'c str,
    /// Bytes; `null` if it could not be read.
    size: Option<u64>,
    tensors: Option<usize>,
    verdict: Option<&'static str>,
    refused: bool,
}

impl Serialize for Shards<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.files.iter().map(|(shard, part)| ShardJson {
            file: shard.name(),
            size: shard.inspection().map(|it| it.file_len()),
            tensors: shard.inspection().map(|it| it.len()),
            verdict: part.verdict.map(Verdict::name),
            refused: part.refused,
        }))
    }
}

/// Every finding that was kept.
struct FindingsJson<'c>(&'c Checked<'c>);

impl Serialize for FindingsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for finding in self.0.parts().flat_map(Part::list) {
            list.serialize_element(&FindingJson(finding))?;
        }
        list.end()
    }
}
