//! `weigh scan --format sarif`.

use weigh::torch::pickle::Verdict;
use weigh::torch::scan::ScanReport;

use super::Report;
use crate::findings::all_rules;
use crate::sarif::Log;
use crate::session::Session;

pub(super) struct Sarif {
    log: Log,
}

impl Default for Sarif {
    fn default() -> Self {
        Self { log: Log::new(all_rules()) }
    }
}

impl Report for Sarif {
    fn begin(&mut self, session: &mut Session) -> anyhow::Result<()> {
        self.log.begin(session)
    }

    fn file(&mut self, session: &mut Session, report: &ScanReport) -> anyhow::Result<()> {
        let findings = &report.findings;
        self.log.results(session, &report.path, findings.list().iter(), findings.dropped())?;
        self.log.artifact(&report.path, Some(report.size), report.verdict.map(Verdict::name));
        Ok(())
    }

    fn end(&mut self, session: &mut Session) -> anyhow::Result<()> {
        self.log.end(session)
    }
}
