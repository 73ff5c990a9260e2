//! `weigh cast`.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use weigh::format::Dtype;
use weigh::values::cast::Overflow;

use crate::args::{self, Select};
use crate::session::Session;
use crate::writing::{self, Writing};

/// Convert tensors to another dtype.
///
/// Without a selector the floats of 16 bits and more are converted: integers, and the small floats of
/// quantized checkpoints, only if they are selected. Values are rounded to the nearest, ties to even. What is
/// beyond the range of the new dtype becomes infinite, or NaN where it has no infinity, or with `--saturate`
/// the largest there is. Each tensor that has such values is told of, with those that became 0 and those that
/// are NaN; the exit code is 1 if values went out of range, unless they were to be saturated, or NaN was lost.
#[derive(Args, Debug)]
pub(crate) struct Cast {
    /// A file, a folder or a shard index; `PATH:GLOB` means the tensors that the glob matches
    #[arg(value_name = "PATH[:GLOB]")]
    path: OsString,
    /// The dtype to convert to, as BF16 or `F8_E4M3`
    #[arg(long, value_name = "DTYPE", value_parser = args::parse_dtype)]
    to: Dtype,
    /// What is out of range becomes the largest or smallest value there is
    #[arg(long)]
    saturate: bool,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    writing: Writing,
}

/// What is converted unless something is selected.
const WIDE_FLOATS: [Dtype; 4] = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16];

pub(crate) fn run(args: &Cast, session: &mut Session) -> Result<()> {
    let writing = &args.writing;
    let Some((input, selector)) = writing::open(session, &args.path) else {
        return writing::finish(session, "cast", writing, &[], None);
    };
    let overflow = if args.saturate { Overflow::Saturate } else { Overflow::Natural };
    let mut changed = 0;
    let edit =
        writing::edit_some(session, &input, &args.select, selector.as_deref(), |edit, meant| {
            let by_default =
                |dtype: Option<Dtype>| dtype.is_some_and(|it| WIDE_FLOATS.contains(&it));
            changed = edit.cast(
                |item| meant.has(item) && (!meant.is_all() || by_default(item.dtype)),
                args.to,
                overflow,
            );
        });
    if edit.is_some() && changed == 0 {
        let path = input.path().display();
        session.output.note(&format!("{path}: there is no tensor to convert"));
    }
    let output = writing.output(&input);
    writing::finish(session, "cast", writing, &[&input], edit.as_ref().map(|edit| (edit, &output)))
}
