//! Several pickles one after the other, and what is behind the last.

use alloc::format;
use alloc::vec::Vec;

use weigh_format::Finding;

use crate::decode::wide;
use crate::machine::{Failure, Program, at, run_with};
use crate::{Error, Limits, rules};

/// Pickles of one file that are run.
const PICKLES: usize = 10_000;

/// Runs the pickle that a file begins with, and those that follow it. Offsets count from the start of the file.
///
/// What follows is taken for a pickle if it can be run to its `STOP`, or names something before it fails; the rest of
/// the file is trailing bytes. Both are findings, the last of the last program. There is at least one program.
/// `limits` are those of each pickle, but for the opcodes, which are of all together.
#[must_use]
pub fn run_all<'a>(bytes: &'a [u8], limits: &Limits) -> Vec<Program<'a>> {
    let first = run_with(bytes, 0, limits, Failure::GoesOn);
    let len = wide(bytes.len());
    let (mut end, mut failed) = (first.end(), first.error.is_some());
    let mut opcodes = limits.opcodes.saturating_sub(first.opcodes);
    let mut programs = alloc::vec![first];
    while !failed && end < len {
        if programs.len() >= PICKLES {
            if let Some(last) = programs.last_mut() {
                let message = format!("more than {PICKLES} pickles follow each other");
                last.error = Some(Error::new("limit-pickles", message).at(end));
            }
            return programs;
        }
        let program = run_with(bytes, end, &Limits { opcodes, ..*limits }, Failure::Ends);
        failed = program.error.is_some();
        if failed && program.globals.is_empty() {
            break;
        }
        opcodes = opcodes.saturating_sub(program.opcodes);
        end = program.end();
        programs.push(program);
    }
    let count = programs.len();
    if let Some(last) = programs.last_mut() {
        if count > 1 {
            let message = format!("{count} pickles follow each other");
            last.findings.push(Finding::new(&rules::SEVERAL_PICKLES, message).at(at(last.start)));
        }
        if last.error.is_none()
            && let Some(finding) = trailing(end, len)
        {
            last.findings.push(finding);
        }
    }
    programs
}

/// The finding that bytes follow `STOP`, if any do.
#[must_use]
pub fn trailing(end: u64, len: u64) -> Option<Finding> {
    let left = len.checked_sub(end).filter(|left| *left > 0)?;
    let message = format!("{left} bytes follow the pickle");
    Some(Finding::new(&rules::TRAILING_BYTES, message).at(end..len).with("bytes", left))
}
