//! The tensors of a survey that are meant, in the order that was asked for.

mod lines;
mod meant;
pub(crate) mod nearest;
mod row;

use std::cmp::Reverse;

use clap::{Args, ValueEnum};
use weigh::Survey;

pub(crate) use meant::{Meant, by_flags};
pub(crate) use row::Row;

/// In which order tensors come, and how many of them.
#[derive(Args, Debug)]
pub(crate) struct Order {
    /// What to sort by
    #[arg(long, value_enum, default_value_t = Sort::Name, value_name = "KEY")]
    sort: Sort,
    /// Sort the other way round
    #[arg(long, short)]
    reverse: bool,
    /// Only the first so many tensors
    #[arg(long, short = 'n', value_name = "NUMBER")]
    limit: Option<usize>,
}

/// What tensors are sorted by; what is equal then stays in natural order of names.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Sort {
    /// Natural order: `layers.2` before `layers.10`
    Name,
    /// Largest first
    Size,
    /// Where the bytes are: by shard, then by offset
    Offset,
    /// In the order of the format's own list, from BOOL to U64
    Dtype,
}

/// Tensors of a survey, in an order.
#[derive(Debug)]
pub(crate) struct Listing<'s> {
    /// In the order of the headers.
    rows: Vec<Row<'s>>,
    /// Places in `rows`.
    order: Vec<u32>,
    /// How many tensors are meant, whether or not the limit leaves them out.
    pub(crate) tensors: u64,
    /// Their bytes, as far as they are known.
    pub(crate) bytes: u64,
}

impl<'s> Listing<'s> {
    /// Reads the tensors of a survey that are meant, and sorts them.
    pub(crate) fn take(survey: &'s Survey, meant: &Meant<'_>, order: &Order) -> Self {
        let (rows, mut numbers) = match order.sort {
            Sort::Offset => {
                let rows = collected(survey, meant);
                let numbers = (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).collect();
                (rows, numbers)
            }
            Sort::Name | Sort::Size | Sort::Dtype => in_natural_order(survey, meant),
        };
        let row = |number: &u32| rows.get(usize::try_from(*number).ok()?);
        match order.sort {
            Sort::Name => {}
            Sort::Size => numbers.sort_by_key(|number| Reverse(row(number).and_then(Row::bytes))),
            Sort::Offset => {
                let shards = shard_ranks(survey);
                numbers.sort_by_key(|number| row(number).map(|row| row.position(&shards)));
            }
            Sort::Dtype => numbers.sort_by_key(|number| {
                let dtype = row(number).and_then(|row| row.dtype);
                (dtype.is_none(), dtype)
            }),
        }
        if order.reverse {
            numbers.reverse();
        }
        numbers.truncate(order.limit.unwrap_or(usize::MAX));
        let bytes = rows.iter().filter_map(Row::bytes);
        Self {
            tensors: u64::try_from(rows.len()).unwrap_or(u64::MAX),
            bytes: bytes.fold(0, u64::saturating_add),
            rows,
            order: numbers,
        }
    }

    /// Whether no tensor is meant.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many tensors the limit lets through.
    pub(crate) fn shown(&self) -> u64 {
        u64::try_from(self.order.len()).unwrap_or(u64::MAX)
    }

    /// The tensors that the limit lets through, in whatever order is quickest.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row<'s>> {
        let is_whole = self.order.len() == self.rows.len();
        let all = self.rows.iter().take(if is_whole { usize::MAX } else { 0 });
        let some = self.order.iter().take(if is_whole { 0 } else { usize::MAX });
        all.chain(some.filter_map(|number| self.rows.get(usize::try_from(*number).ok()?)))
    }
}

/// For each shard, its rank in natural order of names: an index may name them in any.
fn shard_ranks(survey: &Survey) -> Vec<u32> {
    let names: Vec<&str> = survey.shards().iter().map(weigh::SurveyedShard::name).collect();
    let mut ranks = vec![0; names.len()];
    for (rank, shard) in (0..).zip(survey.natural_order(&names)) {
        if let Some(slot) = usize::try_from(shard).ok().and_then(|it| ranks.get_mut(it)) {
            *slot = rank;
        }
    }
    ranks
}

/// The tensors that are meant, and their places in natural order.
fn in_natural_order<'s>(survey: &'s Survey, meant: &Meant<'_>) -> (Vec<Row<'s>>, Vec<u32>) {
    if meant.is_all() {
        // Names alone first: what sorting them takes is given back before there are rows.
        let mut names = Vec::with_capacity(survey.len());
        names.extend(row::names(survey));
        let order = survey.natural_order(&names);
        drop(names);
        return (collected(survey, meant), order);
    }
    let rows = collected(survey, meant);
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let order = survey.natural_order(&names);
    (rows, order)
}

fn collected<'s>(survey: &'s Survey, meant: &Meant<'_>) -> Vec<Row<'s>> {
    let room = if meant.is_all() { survey.len() } else { 0 };
    let mut rows = Vec::with_capacity(room);
    rows.extend(meant_rows(survey, meant));
    rows
}

/// The tensors that are meant, in the order of the headers.
pub(crate) fn meant_rows<'s>(
    survey: &'s Survey,
    meant: &Meant<'_>,
) -> impl Iterator<Item = Row<'s>> {
    let all = meant.is_all();
    row::rows(survey).filter(move |row| all || meant.has(row))
}
