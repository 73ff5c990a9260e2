//! `weigh repair`.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use weigh::format::Finding;
use weigh::{Error, Output, RepairPlan};

use crate::session::{Failure, Session};
use crate::units;
use crate::writing::{self, Report, Writing};

/// Write a damaged file anew, with what is wrong with its layout put right.
///
/// Mends padding, white space and rubbish in the header, metadata that is no string, bytes that belong to no
/// tensor, tensors that share bytes, and data that is misaligned. The bytes of tensors stay what they are, and
/// so does the damaged file. What is left out is told: something may be hidden there. A file of which part is
/// missing, or whose meaning is in doubt, cannot be mended: the exit code is 1, and nothing is written. Nor is a
/// file written that has nothing to mend, unless to stdout; the exit code is 0 then.
#[derive(Args, Debug)]
pub(crate) struct Repair {
    /// A file
    #[arg(value_name = "FILE")]
    path: OsString,
    #[command(flatten)]
    writing: Writing,
}

/// How many times as long the mended file may be, unless it is forced: of tensors that share bytes each gets its own.
const GROWTH: u64 = 4;

/// Bytes of what is left out that are shown.
const SHOWN: u64 = 16;

/// Findings and spans that are told one by one.
const TOLD: usize = 10;

pub(crate) fn run(args: &Repair, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let path = Path::new(&args.path);
    let output = &writing.output;
    let report = Report::of("repair");
    let options = match writing.options_for(&Output::File(output.clone())) {
        Ok(options) => options,
        Err(failure) => {
            session.failed(failure);
            return writing::write(session, writing, report);
        }
    };
    let plan = |session: &Session| RepairPlan::new(path, output, &session.options, &options);
    let plan = plan(session).or_else(|error| match error {
        // What an edit in place left half done is undone first: that may be all that was wrong.
        Error::Refused(_) if is_looked_at(session, path) => plan(session),
        error => Err(error),
    });
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            writing::report_error_at(session, output, &error);
            return writing::write(session, writing, report);
        }
    };
    let path = path.to_string_lossy();
    if plan.mended().is_empty() {
        // Whoever reads stdout waits for a sound file.
        let what =
            if writing.is_stdout() { "it is written as it is" } else { "nothing is written" };
        session.output.note(&format!("{path}: there is nothing to mend: {what}"));
        if !writing.is_stdout() {
            return writing::write(session, writing, report);
        }
    }
    let (before, after) = (plan.file_len(), plan.write_plan().bytes());
    if after > before.saturating_mul(GROWTH) && !writing.force {
        let (before, after) = (units::bytes(before), units::bytes(after));
        session.found(Failure {
            message: format!("{path}: is {before}, and would be {after}: its tensors share bytes"),
            path: path.into_owned(),
            code: "repair-grows",
            help: Some("Give --force if that is meant.".into()),
        });
        return writing::write(session, writing, report);
    }
    tell(session, &path, &plan)?;
    let plan = Some(&plan);
    let write_plan = plan.map(RepairPlan::write_plan);
    writing::write(session, writing, Report { plan: write_plan, repair: plan, ..report })
}

/// Surveys the file, which mends it if it can be; whether that could be done.
fn is_looked_at(session: &mut Session, path: &Path) -> bool {
    let found = weigh::find(path).ok().and_then(|found| found.into_iter().next());
    found.is_some_and(|found| session.survey(&found).is_ok())
}

/// Says what is mended, and what is left out.
fn tell(session: &mut Session, path: &str, plan: &RepairPlan) -> Result<()> {
    for Finding { message, .. } in plan.mended().iter().take(TOLD) {
        session.output.note(&format!("{path}: mends: {message}"));
    }
    for span in plan.dropped().iter().take(TOLD) {
        let (start, end) = (span.start, span.end);
        let first = plan.read(start..end.min(start.saturating_add(SHOWN)));
        let first = first.map_err(|error| Failure::from(&error))?;
        let all_zero = first.iter().all(|byte| *byte == 0);
        let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
        let (bytes, more) = (end - start, if end - start > SHOWN { " …" } else { "" });
        let begins = if all_zero { "zeros".into() } else { hex.join(" ") };
        let bytes = units::plural(bytes, "byte");
        let message = format!("{path}: leaves out {bytes} at {start}: {begins}{more}");
        session.output.note(&message);
    }
    let more = plan.mended().len().saturating_sub(TOLD) + plan.dropped().len().saturating_sub(TOLD);
    if more > 0 {
        session.output.note(&format!("{path}: and {} more", units::exact(more as u64)));
    }
    Ok(())
}
