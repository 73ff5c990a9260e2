//! `weigh check --format json`: the document `weigh.check/1`.

use std::io::{self, Write};

use weigh::format::Verdict;

use super::{Checked, Judge, Part, Report};
use crate::findings::Counts;
use crate::json::{self, Document};
use crate::session::Session;

pub(super) struct Json {
    judge: Judge,
    document: Option<Document>,
}

impl Json {
    pub(super) fn new(judge: Judge) -> Self {
        Self { judge, document: None }
    }
}

impl Report for Json {
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()> {
        let judge = self.judge;
        self.document = Some(Document::begin_with(&mut session.output, "weigh.check/1", |json| {
            json.key("policy")?.text(judge.policy.name())?;
            json.key("refuses")?.text(judge.refuses.name())
        })?);
        Ok(())
    }

    fn checkpoint(&mut self, session: &mut Session, checked: &Checked<'_>) -> anyhow::Result<()> {
        let Some(document) = &mut self.document else {
            return Ok(());
        };
        let survey = checked.survey;
        let mut parts = checked.files.iter().map(|(_, part)| part).peekable();
        document.checkpoint_with(
            &mut session.output,
            survey,
            |json, shard| {
                // A shard that is not there has no part.
                let part = parts.next_if(|part| part.path == shard.path());
                write_verdict(json, part.and_then(|part| part.verdict))?;
                json.key("refused")?.boolean(part.is_some_and(|part| part.refused))
            },
            |json| {
                write_verdict(json, checked.verdict)?;
                json.key("refused")?.boolean(checked.refused)?;
                json.key("counts")?.value(&survey.findings().collect::<Counts>())?;
                let dropped = checked.parts().map(Part::dropped);
                json.key("dropped")?.number(dropped.fold(0, u64::saturating_add))?;
                json.key("beside")?.array()?;
                for path in survey.beside() {
                    json.text(&path.to_string_lossy())?;
                }
                json.end_array()
            },
        )?;
        Ok(())
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        if let Some(document) = self.document.take() {
            document.end(session)?;
        }
        Ok(())
    }
}

/// The verdict, or `null` where a file could not be read.
fn write_verdict(json: &mut json::Json<impl Write>, verdict: Option<Verdict>) -> io::Result<()> {
    let json = json.key("verdict")?;
    match verdict {
        Some(verdict) => json.text(verdict.name()),
        None => json.null(),
    }
}
