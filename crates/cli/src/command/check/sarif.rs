//! `weigh check --format sarif`.

use weigh::format::Verdict;
use weigh::format::header::Inspection;

use super::{Checked, Report};
use crate::findings::FORMAT_RULES;
use crate::sarif::Log;
use crate::session::Session;

pub(super) struct Sarif {
    log: Log,
}

impl Default for Sarif {
    fn default() -> Self {
        Self { log: Log::new(FORMAT_RULES.iter().copied()) }
    }
}

impl Report for Sarif {
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()> {
        self.log.begin(session)
    }

    fn checkpoint(&mut self, session: &mut Session, checked: &Checked<'_>) -> anyhow::Result<()> {
        for part in checked.parts() {
            self.log.results(session, part.path, part.list(), part.dropped())?;
        }
        // The set by its index, and the files.
        if let Some(set) = &checked.set {
            self.log.artifact(set.path, None, set.verdict.map(Verdict::name));
        }
        for (shard, part) in &checked.files {
            let length = shard.inspection().map(Inspection::file_len);
            self.log.artifact(part.path, length, part.verdict.map(Verdict::name));
        }
        Ok(())
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        self.log.end(session)
    }
}
