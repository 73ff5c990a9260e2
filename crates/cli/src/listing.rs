//! The tensors of a survey that are meant, in the order that was asked for.

mod each;
mod lines;
mod meant;
pub(crate) mod nearest;
mod row;
mod tensors;

use std::cmp::Reverse;

use clap::{Args, ValueEnum};
use weigh::Survey;

pub(crate) use each::each_meant;
pub(crate) use meant::Meant;
pub(crate) use meant::by_flags;
pub(crate) use row::{Row, escaped_width};
pub(crate) use tensors::Tensors;

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
    all: Tensors<'s>,
    /// Places in `all`.
    order: Vec<u32>,
    /// How many tensors are meant, whether or not the limit leaves them out.
    pub(crate) tensors: u64,
    /// Their bytes, as far as they are known.
    pub(crate) bytes: u64,
}

impl<'s> Listing<'s> {
    /// Reads the tensors of a survey that are meant, and sorts them.
    pub(crate) fn take(survey: &'s Survey, meant: &Meant<'_>, order: &Order) -> Self {
        let all = Tensors::of(survey);
        let mut bytes = 0_u64;
        let mut places = Vec::with_capacity(if meant.is_all() { all.len() } else { 0 });
        for (place, row) in (0_u32..).zip(all.iter()) {
            if meant.is_all() || meant.has(&row.item()) {
                places.push(place);
                bytes = bytes.saturating_add(row.bytes().unwrap_or(0));
            }
        }
        let row = |place: &u32| all.get(usize::try_from(*place).ok()?);
        if order.sort != Sort::Offset {
            let names: Vec<&str> =
                places.iter().map(|place| row(place).map_or("", |row| row.name)).collect();
            let natural = survey.natural_order(&names);
            let place = |number: u32| places.get(usize::try_from(number).ok()?).copied();
            places = natural.into_iter().filter_map(place).collect();
        }
        match order.sort {
            Sort::Name => {}
            Sort::Size => {
                places.sort_by_cached_key(|place| Reverse(row(place).and_then(|row| row.bytes())));
            }
            Sort::Offset => {
                let shards = shard_ranks(survey);
                places.sort_by_cached_key(|place| row(place).map(|row| row.position(&shards)));
            }
            Sort::Dtype => places.sort_by_cached_key(|place| {
                let dtype = row(place).and_then(|row| row.dtype);
                (dtype.is_none(), dtype)
            }),
        }
        if order.reverse {
            places.reverse();
        }
        let tensors = u64::try_from(places.len()).unwrap_or(u64::MAX);
        places.truncate(order.limit.unwrap_or(usize::MAX));
        Self { all, order: places, tensors, bytes }
    }

    /// Whether no tensor is meant.
    pub(crate) fn is_empty(&self) -> bool {
        self.tensors == 0
    }

    /// How many tensors the limit lets through.
    pub(crate) fn shown(&self) -> u64 {
        u64::try_from(self.order.len()).unwrap_or(u64::MAX)
    }

    /// The tensors that the limit lets through, in whatever order is quickest.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'s>> {
        let is_whole = self.order.len() == self.all.len();
        let all = self.all.iter().take(if is_whole { usize::MAX } else { 0 });
        let some = self.order.iter().take(if is_whole { 0 } else { usize::MAX });
        all.chain(some.filter_map(|place| self.all.get(usize::try_from(*place).ok()?)))
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

/// The tensors that are meant, in the order of the headers.
pub(crate) fn meant_rows<'s>(
    all: &Tensors<'s>,
    meant: &Meant<'_>,
) -> impl Iterator<Item = Row<'s>> {
    all.iter().filter(|row| meant.is_all() || meant.has(&row.item()))
}
