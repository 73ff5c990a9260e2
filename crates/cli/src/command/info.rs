//! `weigh info`: one screen that says what a checkpoint is.
//!
//! Everything on it is counted or proven from the headers, except the metadata, which is what the file says of
//! itself and is marked so.

mod bar;
mod json;
mod screen;

use clap::Args;
use weigh::Survey;
use weigh::inventory::Item;
use weigh::inventory::count::{Counts, Parameters};
use weigh::inventory::quantization::Siblings;
use weigh::inventory::recognize::{Trait, recognize_with};

use crate::args::{Paths, Select};
use crate::listing::{Meant, Tensors, each_meant, meant_rows};
use crate::session::Session;

/// Show on one screen what a checkpoint is.
///
/// Size, tensors, parameters, dtypes, what names and shapes prove it to be, the largest tensors, the metadata
/// that it claims, and whether its structure is sound. Only headers are read.
#[derive(Args, Debug)]
pub(crate) struct Info {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    select: Select,
    /// Show all metadata, with JSON inside of strings expanded, as `weigh meta get` does
    #[arg(long)]
    metadata: bool,
    /// Print one document, `weigh.info/1`
    #[arg(long, conflicts_with = "metadata")]
    json: bool,
}

/// What there is to say of a checkpoint's tensors.
struct Summary<'s> {
    survey: &'s Survey,
    /// What was selected, if not all: the selector of the address.
    selector: Option<&'s str>,
    is_all: bool,
    counts: Counts<'s>,
    parameters: Parameters,
    traits: Vec<Trait>,
    /// Tensors that are in a file that is not there or could not be read, as the index says.
    in_no_file: u64,
    /// Tensors that the file has not, or not all, of the bytes of.
    missing_bytes: u64,
}

/// How many of the largest tensors are named.
const LARGEST: usize = 5;

impl<'s> Summary<'s> {
    fn new(survey: &'s Survey, meant: &Meant<'s>) -> Self {
        let (mut in_no_file, mut missing_bytes) = (0, 0);
        let room = if meant.is_all() { survey.len() } else { 0 };
        let mut items: Vec<Item<'_>> = Vec::with_capacity(room);
        items.extend(meant_rows(&Tensors::of(survey), meant).map(|row| {
            if row.is_missing() {
                let shard = row.shard(survey);
                let has_file = shard.is_some_and(|shard| shard.inspection().is_some());
                *(if has_file { &mut missing_bytes } else { &mut in_no_file }) += 1;
            }
            row.item()
        }));
        let siblings = Siblings::new(&items);
        Self {
            survey,
            selector: meant.selector,
            is_all: meant.is_all(),
            counts: Counts::of(&items, LARGEST),
            parameters: Parameters::with(&items, &siblings),
            traits: recognize_with(&items, &siblings),
            in_no_file,
            missing_bytes,
        }
    }
}

pub(crate) fn run(args: &Info, session: &mut Session) -> anyhow::Result<()> {
    let mut is_first = true;
    let schema = args.json.then_some("weigh.info/1");
    each_meant(session, &args.paths, &args.select, schema, |session, document, survey, meant| {
        let summary = Summary::new(survey, meant);
        if let Some(document) = document {
            json::write(document, &mut session.output, &summary)?;
        } else {
            screen::write(&mut session.output, &summary, args.metadata, is_first)?;
            is_first = false;
        }
        Ok(summary.counts.total.tensors == 0 && !meant.is_all())
    })
}
