//! Plans: every wanted byte once, requests within their limits, and no numbers that cost more than they say.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use weigh_io::policy::{Backend, Direct};
use weigh_io::{Cut, MOST_PIECES, Part, Plan, PlanError, Reading, Repeat, Runs, Source, Unit};

use crate::faulty::Faulty;
use crate::load::{Mix, Wanted, choice, content, load_with};

const PAGE: u64 = 4096;

/// Longest file that the parts below are of.
const LEN: u64 = 120_000;

/// A part: file, first byte, run in units, (count, gap) from the innermost out, unit.
type Shape = (usize, u64, u64, Vec<(u64, u64)>, Unit);

fn shape() -> impl Strategy<Value = Shape> {
    const UNITS: [(u32, u32); 6] = [(1, 1), (2, 4), (4, 2), (3, 1), (1, 2), (4, 4)];
    let unit = prop::sample::select(&UNITS[..]).prop_map(|(from, to)| Unit { from, to });
    let gap = prop_oneof![Just(0_u64), 0..20_u64, 4000..4200_u64, 0..12_000_u64];
    let levels = prop::collection::vec((0..6_u64, gap), 0..3);
    let run = prop_oneof![0..9_u64, 0..300_u64, 0..9000_u64];
    (0..3_usize, 0..30_000_u64, run, levels, unit)
}

/// The parts of those shapes that end within the files.
fn wanted(shapes: Vec<Shape>) -> Wanted {
    shapes.into_iter().fold(Wanted::nothing(), |wanted, (file, first, units, gaps, unit)| {
        let run = units * u64::from(unit.from);
        let (mut extent, mut levels) = (run, Vec::new());
        for (count, gap) in gaps {
            let stride = extent + gap;
            let next = stride * count.saturating_sub(1) + extent;
            if first + next > LEN {
                break;
            }
            extent = next;
            levels.insert(0, (count, stride));
        }
        wanted.part(file, first, run, &levels, unit)
    })
}

fn cut() -> impl Strategy<Value = Cut> {
    let limit = prop_oneof![0..20_000_u64, Just(PAGE), Just(1 << 20), Just(u64::MAX)];
    let gap = prop_oneof![Just(0), Just(PAGE), Just(PAGE + 1), 0..20_000_u64, Just(u64::MAX)];
    (limit.clone(), limit, gap).prop_map(|(request_bytes, scratch_bytes, gap_bytes)| Cut {
        request_bytes,
        scratch_bytes,
        gap_bytes,
    })
}

/// The stretches of a span that nothing wants.
fn holes(span: &Range<u64>, wanted: &[u64]) -> Vec<u64> {
    let first = wanted.partition_point(|at| *at < span.start);
    let last = wanted.partition_point(|at| *at < span.end);
    let inside = &wanted[first..last];
    assert_eq!(inside.first(), Some(&span.start), "{span:?} begins with something wanted");
    assert_eq!(inside.last(), Some(&(span.end - 1)), "{span:?} ends with something wanted");
    inside.windows(2).map(|two| two[1] - two[0] - 1).filter(|hole| *hole > 0).collect()
}

fn check(wanted: &Wanted, cut: &Cut) {
    let plan = wanted.plan(cut);
    let gap = cut.gap_bytes.max(PAGE);
    let unit = wanted.parts.iter().map(|part| u64::from(part.unit.from)).max().unwrap_or(1);
    let limit = cut.request_bytes.max(cut.scratch_bytes).max(PAGE).max(unit);
    let spans: Vec<_> = plan.spans().collect();
    assert_eq!(spans.len(), plan.requests());
    assert!(spans.is_sorted_by_key(|(file, span)| (*file, span.start)));
    let mut read = 0;
    let mut offsets = BTreeMap::new();
    for (file, span) in &spans {
        read += span.end - span.start;
        assert!(span.end - span.start <= limit, "{span:?} is over {limit}");
        let offsets = &*offsets.entry(*file).or_insert_with(|| wanted.offsets(*file));
        let widest = holes(span, offsets).into_iter().max();
        assert!(widest <= Some(gap), "{span:?} reads over {widest:?}, and may over {gap}");
    }
    assert_eq!(read, plan.bytes_read());
    assert_eq!(plan.bytes_wanted(), wanted.parts.iter().map(|part| part.runs.bytes()).sum());
    // Where no byte is wanted twice and limits do not matter, nothing is read twice, and no more requests
    // are made than there are wide gaps.
    let same = wanted.parts.iter().all(|part| part.unit == Unit::SAME);
    let single = (0..3).map(|file| wanted.offsets(file).len() as u64).sum::<u64>();
    if single == plan.bytes_wanted() && same {
        for files in 0..3 {
            let offsets = wanted.offsets(files);
            let cover = offsets.last().map_or(0, |last| last + 1 - offsets[0]);
            let spans = spans.iter().filter(|(file, _)| *file == files);
            assert!(spans.map(|(_, span)| span.end - span.start).sum::<u64>() <= cover);
        }
    }
    load_and_compare(wanted, &plan);
}

/// Loads the parts: each byte has its place, and each unit is converted once.
fn load_and_compare(wanted: &Wanted, plan: &Plan) {
    let files: [_; 3] = std::array::from_fn(|file| content(usize::try_from(LEN).unwrap() + file));
    let sources = files.each_ref().map(Faulty::sound);
    let sources = sources.each_ref().map(|source| source as &dyn Source);
    let mix = Mix::of(&wanted.parts);
    let loaded = load_with(&Reading {
        sources: &sources,
        plan,
        choice: &choice(Backend::Pread, Direct::Never, 1, 1),
        hook: Some(&mix),
        cancel: None,
        progress: None,
    });
    assert!(loaded.unwrap() == wanted.from(&files.each_ref().map(|bytes| &bytes[..])));
    let mut calls = mix.calls.into_inner().unwrap();
    calls.sort_unstable();
    for (number, part) in
        wanted.parts.iter().enumerate().filter(|(_, part)| part.unit != Unit::SAME)
    {
        let calls = calls.iter().filter(|(part, ..)| *part == number);
        let end = calls.fold(0, |end, (_, at, len)| {
            assert_eq!(*at, end, "part {number}: each unit once");
            end + *len as u64
        });
        assert_eq!(end, part.runs.bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn any_parts_are_read_whole_once_and_within_the_limits(
        shapes in prop::collection::vec(shape(), 0..8),
        cut in cut(),
    ) {
        check(&wanted(shapes), &cut);
    }

    #[test]
    fn the_same_part_many_times_is_read_whole(
        shape in shape(),
        times in 2..5_usize,
        cut in cut(),
    ) {
        check(&wanted(vec![shape; times]), &cut);
    }

    #[test]
    fn near_parts_share_requests(
        gaps in prop::collection::vec((1..3000_u64, 0..9000_u64), 1..12),
        request_bytes in 0..40_000_u64,
        gap_bytes in prop_oneof![Just(0), 0..9000_u64],
    ) {
        let mut at = 0;
        let spans = gaps.into_iter().map(|(len, gap)| {
            let start = at + gap;
            at = start + len;
            start..at
        });
        let wanted = spans.fold(Wanted::nothing(), Wanted::span);
        let cut = Cut { request_bytes, scratch_bytes: 4096, gap_bytes };
        check(&wanted, &cut);
        let spans: Vec<_> = wanted.plan(&cut).spans().map(|(_, span)| span).collect();
        for two in spans.windows(2) {
            let far = two[1].start - two[0].end > gap_bytes.max(PAGE);
            let long = two[1].end - two[0].start > request_bytes.max(PAGE);
            prop_assert!(far || long, "{two:?} could be one");
        }
    }
}

#[test]
fn spans_are_cut_joined_and_kept_apart_at_their_limits() {
    let cut = Cut { request_bytes: 10_000, scratch_bytes: 5000, gap_bytes: 6000 };
    let same = Unit::SAME;
    let other = Unit { from: 2, to: 4 };
    let nothing = Wanted::nothing;
    for (wanted, spans) in [
        (nothing().span(0..10_000), vec![(0, 10_000)]),
        (nothing().span(7..10_008), vec![(7, 10_007), (10_007, 10_008)]),
        // Near enough, or not; together short enough, or not.
        (nothing().span(0..10).span(6010..6020), vec![(0, 6020)]),
        (nothing().span(0..10).span(6011..6020), vec![(0, 10), (6011, 6020)]),
        (nothing().span(0..5000).span(6000..10_000), vec![(0, 10_000)]),
        (nothing().span(0..5000).span(6000..10_001), vec![(0, 5000), (6000, 10_001)]),
        // What is converted is cut to whole units that fit the scratch, and joins its like.
        (nothing().part(0, 1, 10_000, &[], other), vec![(1, 5001), (5001, 10_001)]),
        (nothing().part(0, 0, 2000, &[], other).part(0, 2500, 2500, &[], other), vec![(0, 5000)]),
        (nothing().part(0, 0, 2000, &[], other).span(2500..4000), vec![(0, 2000), (2500, 4000)]),
        // Runs that fit the scratch are gathered in it, as many as fit; those that do not are contiguous.
        (nothing().part(0, 0, 1000, &[(5, 1500)], same), vec![(0, 4000), (4500, 7000)]),
        (nothing().part(0, 0, 5001, &[(2, 5500)], same), vec![(0, 5001), (5500, 10_501)]),
        (nothing().part(0, 0, 5000, &[(2, 5500)], same), vec![(0, 5000), (5500, 10_500)]),
        (nothing().part(0, 0, 4990, &[(2, 4995)], same), vec![(0, 9985)]),
        (nothing().part(0, 0, 5003, &[(2, 5004)], same), vec![(0, 5003), (5004, 10_007)]),
        (
            nothing().part(0, 0, 4998, &[(3, 5000)], other),
            vec![(0, 4998), (5000, 9998), (10_000, 14_998)],
        ),
        // So are those that do not fit by twos, and have gaps that are read over.
        (nothing().part(0, 0, 100, &[(3, 4900)], same), vec![(0, 5000), (9800, 9900)]),
        (nothing().part(0, 0, 100, &[(3, 4901)], same), vec![(0, 9902)]),
        (nothing().part(0, 0, 100, &[(3, 5101)], same), vec![(0, 5201), (10_202, 10_302)]),
        (nothing().part(0, 0, 100, &[(2, 6101)], same), vec![(0, 100), (6101, 6201)]),
        // The same bytes twice: once, where they fit the scratch.
        (nothing().span(0..5000).span(0..5000), vec![(0, 5000)]),
        (nothing().span(0..5001).span(0..5001), vec![(0, 5001), (0, 5001)]),
        (nothing().part(1, 0, 5, &[], same).span(0..5), vec![(0, 5), (0, 5)]),
    ] {
        let got: Vec<_> =
            wanted.plan(&cut).spans().map(|(_, span)| (span.start, span.end)).collect();
        assert_eq!(got, spans, "{:?}", wanted.parts);
    }
}

#[test]
fn units_that_do_not_divide_the_runs_are_refused() {
    let cut = Cut { request_bytes: 4096, scratch_bytes: 4096, gap_bytes: 0 };
    for (run, from, to, fine) in [
        (12, 4, 2, true),
        (12, 5, 2, false),
        (12, 0, 2, false),
        (12, 0, 0, false),
        (12, 4, 0, false),
        (0, 4, 2, true),
        (0, 0, 1, false),
        (12, 13, 1, false),
        (u64::from(u32::MAX), u32::MAX, 1, true),
    ] {
        let good = Part { file: 0, runs: Runs::span(5..9), unit: Unit::SAME };
        let part = Part { file: 0, runs: Runs::span(3..3 + run), unit: Unit { from, to } };
        let plan = Plan::new(vec![good, part], &cut);
        assert_eq!(plan.err(), (!fine).then_some(PlanError::Unit { part: 1 }), "{run} {from} {to}");
    }
}

#[test]
fn numbers_of_any_size_are_planned_or_refused_at_once() {
    let level = |count, stride| Repeat { count, stride };
    let runs = |first, run, levels: &[Repeat]| Runs::strided(first, run, levels).unwrap();
    let deep: Vec<_> = (0..40).rev().map(|it| level(2, 20 << it)).collect();
    let parts = [
        runs(0, u64::MAX, &[]),
        runs(u64::MAX - 1, 1, &[]),
        runs(u64::MAX - 10_000, 9_999, &[]),
        runs(0, 1, &[level(1 << 40, 1 << 20)]),
        runs(0, 1, &[level(1 << 40, 8192)]),
        runs(0, 1, &[level(1 << 40, 4097)]),
        runs(0, 1, &[level(1 << 40, 4096)]),
        runs(0, 1, &[level(1 << 62, 2)]),
        runs(7, 3, &[level(u64::MAX / 4 - 1, 4)]),
        runs(0, 1, &[level(2, u64::MAX - 1)]),
        runs(0, 1 << 50, &[level(1 << 12, 1 << 51)]),
        runs(0, 5, &[level(1 << 30, 1 << 33), level(1 << 10, 1 << 22), level(1 << 10, 10)]),
        runs(0, 1, &deep),
    ];
    let sizes = [0, PAGE + 1, 1 << 18, 1 << 45, u64::MAX];
    let began = Instant::now();
    for runs in parts {
        for (request_bytes, gap_bytes) in sizes.iter().flat_map(|it| sizes.map(|gap| (*it, gap))) {
            for unit in [Unit::SAME, Unit { from: 1, to: u32::MAX }] {
                let cut = Cut { request_bytes, scratch_bytes: request_bytes, gap_bytes };
                let part = Part { file: usize::MAX, runs: runs.clone(), unit };
                match Plan::new(vec![part], &cut) {
                    Ok(plan) => {
                        assert!(plan.requests() <= MOST_PIECES);
                        assert!(plan.bytes_read() >= runs.bytes());
                    }
                    Err(PlanError::TooManyPieces { part: 0 }) => {}
                    Err(error) => {
                        assert_eq!(error, PlanError::Unit { part: 0 });
                        assert!(unit.apply(runs.bytes()).is_none());
                    }
                }
            }
        }
    }
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[test]
fn the_limit_of_pieces_is_for_all_parts_together() {
    let cut = Cut { request_bytes: 4096, scratch_bytes: 4096, gap_bytes: 0 };
    let most = MOST_PIECES as u64;
    let far = |count| Runs::strided(0, 1, &[Repeat { count, stride: 8192 }]).unwrap();
    let part = |runs| Part { file: 0, runs, unit: Unit::SAME };
    let new = |parts: Vec<Runs>| Plan::new(parts.into_iter().map(part).collect(), &cut);
    let too_many = |part| Some(PlanError::TooManyPieces { part });
    assert_eq!(new(vec![far(most + 1)]).err(), too_many(0));
    assert_eq!(new(vec![far(100_000), far(most - 99_999)]).err(), too_many(1));
    assert_eq!(new(vec![Runs::span(0..4096 * most + 1)]).err(), too_many(0));
    assert_eq!(new(vec![far(100_000), far(100_000)]).unwrap().requests(), 100_000);
    let error = new(vec![far(u64::MAX >> 13)]).unwrap_err();
    assert_eq!(error.code(), "plan-too-many-pieces");
    let message = "up to part 0 there are more than 8388608 pieces to read, the limit of one load";
    assert_eq!(error.to_string(), message);
}
