//! What a contest is about: how we compare, what is aimed at, and whether that came out.

use std::time::Duration;

use crate::amount;
use crate::ls::Outcome;
use crate::report::{Table, met};
use crate::timing::Samples;
use crate::write::contest::{Contest, Storage, Work};

/// Something to look at; contenders are named as their rows are.
#[derive(Clone, Copy, Debug)]
enum Claim {
    /// Its time, as a part of that of the fastest of others, at most if something is aimed at.
    Time { ours: &'static str, beside: &'static [&'static str], most: Option<f64> },
    /// How many times as fast as the fastest of others, at least.
    Speed { ours: &'static str, beside: &'static [&'static str], least: f64 },
    /// Its time in milliseconds is below this.
    Milliseconds { ours: &'static str, below: f64 },
    /// Its largest resident set in bytes is below this.
    Memory { ours: &'static str, below: u64 },
}

/// What edits may hold in memory, casts, and conversions.
const EDIT_BYTES: u64 = 50_000_000;
const CAST_BYTES: u64 = 100_000_000;
const CONVERT_BYTES: u64 = 100_000_000;

const EDITS: [&str; 4] = ["weigh split", "weigh join", "weigh rename", "weigh meta set"];

fn claims(contest: Contest) -> Vec<Claim> {
    let is_on_disk = contest.storage == Storage::Disk;
    match contest.work {
        Work::Save if is_on_disk => {
            let ours = "weigh save";
            vec![
                Claim::Time { ours, beside: &["dd conv=fsync"], most: Some(1.2) },
                Claim::Time { ours, beside: &["safetensors save_file, fsync"], most: None },
            ]
        }
        Work::Save => {
            vec![Claim::Speed {
                ours: "weigh save",
                beside: &["safetensors save_file"],
                least: 2.0,
            }]
        }
        Work::Edit => {
            let beside: &[&str] = if is_on_disk { &["cp, sync"] } else { &["cp"] };
            let of = |ours| {
                let time = Claim::Time { ours, beside, most: Some(1.3) };
                [time, Claim::Memory { ours, below: EDIT_BYTES }]
            };
            EDITS.into_iter().flat_map(of).collect()
        }
        Work::Cast => {
            let ours = "weigh cast";
            let torch: &[&str] = if is_on_disk {
                &["torch, fsync", "torch, 1 thread, fsync"]
            } else {
                &["torch", "torch, 1 thread"]
            };
            vec![
                Claim::Time { ours, beside: &["read all, write half"], most: Some(1.5) },
                Claim::Speed { ours, beside: torch, least: 3.0 },
                Claim::Memory { ours, below: CAST_BYTES },
            ]
        }
        Work::Convert => {
            let copy: &[&str] = if is_on_disk { &["cp, sync"] } else { &["cp"] };
            let ours = "weigh convert";
            vec![
                Claim::Time { ours: "weigh convert --no-verify", beside: copy, most: Some(1.3) },
                Claim::Time { ours, beside: copy, most: None },
                Claim::Speed { ours, beside: torch(is_on_disk), least: 3.0 },
                Claim::Memory { ours, below: CONVERT_BYTES },
            ]
        }
        Work::ConvertSmall => {
            let ours = "weigh convert";
            vec![
                Claim::Speed { ours, beside: torch(is_on_disk), least: 5.0 },
                Claim::Memory { ours, below: CONVERT_BYTES },
            ]
        }
        Work::InPlace => {
            let of = |ours| {
                let bare = Claim::Time { ours, beside: &["4 × write, fsync"], most: None };
                [Claim::Milliseconds { ours, below: 10.0 }, bare]
            };
            let both = ["weigh meta set --in-place", "weigh meta set --in-place, 200 GB"];
            let claims = both.into_iter().flat_map(of);
            // In memory a sync costs nothing, so nothing is to be learnt from four of them.
            claims.filter(|claim| is_on_disk || !matches!(claim, Claim::Time { .. })).collect()
        }
    }
}

/// The peers that convert.
const fn torch(is_on_disk: bool) -> &'static [&'static str] {
    if is_on_disk { &["torch.load, save_file, fsync"] } else { &["torch.load, save_file"] }
}

/// The runs of a contender, by its name: none if it failed or wrote something wrong.
pub(crate) type Row = (&'static str, Option<Outcome>);

/// Prints what is aimed at in a contest, of those who took part.
pub(crate) fn print(contest: Contest, rows: &[Row]) {
    let mut table = Table::new(["what", "came out", "target", ""]);
    let mut is_empty = true;
    for claim in claims(contest) {
        if let Some(cells) = row(&claim, rows) {
            table.row(cells);
            is_empty = false;
        }
    }
    if !is_empty {
        println!();
        table.print();
    }
}

/// A claim and what came of it; nothing if nobody took part whom it is about.
fn row(claim: &Claim, rows: &[Row]) -> Option<[String; 4]> {
    let find = |name: &str| rows.iter().find(|(known, _)| *known == name);
    match *claim {
        Claim::Time { ours, beside, most } => {
            let what = format!("{ours}: time, beside {}", beside.join(" or "));
            let target = most.map(|most| format!("at most {most} ×"));
            let times = times(find(ours)?, &found(rows, beside)?);
            let ratios = times.map(|times| times.map(|[ours, best]| ours.div_duration_f64(best)));
            Some(judged(what, target, ratios, |ratio| most.map(|most| ratio <= most)))
        }
        Claim::Speed { ours, beside, least } => {
            let what = format!("{ours}: times as fast as {}", beside.join(" or "));
            let target = format!("at least {least} ×");
            let times = times(find(ours)?, &found(rows, beside)?);
            let ratios = times.map(|times| times.map(|[ours, best]| best.div_duration_f64(ours)));
            Some(judged(what, Some(target), ratios, |ratio| Some(ratio >= least)))
        }
        Claim::Milliseconds { ours, below } => {
            let times = find(ours)?.1.as_ref().map(|outcome| &outcome.times);
            let verdict = times
                .map(|times| (times.shown(), Some(times.median().as_secs_f64() * 1e3 < below)));
            Some(cells(format!("{ours}: time"), format!("below {below} ms"), verdict))
        }
        Claim::Memory { ours, below } => {
            let memory = find(ours)?.1.as_ref().map(|outcome| outcome.memory);
            let verdict = memory.map(|bytes| (amount::size(bytes), Some(bytes < below)));
            let target = format!("below {}", amount::size(below));
            Some(cells(format!("{ours}: memory"), target, verdict))
        }
    }
}

/// Those of these names, if all took part.
fn found<'r>(rows: &'r [Row], names: &[&str]) -> Option<Vec<&'r Row>> {
    names.iter().map(|name| rows.iter().find(|(known, _)| known == name)).collect()
}

/// Our time and that of the best of the others: the medians, and the fastest runs.
///
/// There are none if one failed: it might have been the best.
fn times(ours: &Row, others: &[&Row]) -> Option<[[Duration; 2]; 2]> {
    let ours = &ours.1.as_ref()?.times;
    let others: Vec<&Samples> =
        others.iter().map(|(_, outcome)| Some(&outcome.as_ref()?.times)).collect::<Option<_>>()?;
    let best = others.into_iter().min_by_key(|times| times.median())?;
    Some([[ours.median(), best.median()], [ours.least(), best.least()]])
}

fn judged(
    what: String,
    target: Option<String>,
    ratios: Option<[f64; 2]>,
    is_met: impl Fn(f64) -> Option<bool>,
) -> [String; 4] {
    let verdict =
        ratios.map(|[median, least]| (format!("{median:.2} × ({least:.2} ×)"), is_met(median)));
    cells(what, target.unwrap_or_default(), verdict)
}

fn cells(what: String, target: String, verdict: Option<(String, Option<bool>)>) -> [String; 4] {
    let (came_out, is_met) = match verdict {
        Some((came_out, is_met)) => (came_out, is_met.map(met).unwrap_or_default()),
        None => (String::from("nothing"), String::new()),
    };
    [what, came_out, target, is_met]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Cost;
    use crate::write::contest::CONTESTS;

    fn outcome(milliseconds: &[u64], memory: u64) -> Outcome {
        let cost = |&time: &u64| {
            let time = Duration::from_millis(time);
            Cost { time, computing: time, memory }
        };
        Outcome::new(&milliseconds.iter().map(cost).collect::<Vec<_>>())
    }

    #[test]
    fn claims_are_met_up_to_their_bounds() {
        let time = Claim::Time { ours: "we", beside: &["slow", "fast"], most: Some(1.5) };
        let bare = Claim::Time { ours: "we", beside: &["slow", "fast"], most: None };
        let speed = Claim::Speed { ours: "we", beside: &["slow", "fast"], least: 2.0 };
        let short = Claim::Milliseconds { ours: "we", below: 10.0 };
        let small = Claim::Memory { ours: "we", below: 50 };
        for (claim, ours, memory, want) in [
            (time, [14, 15, 16], 0, "1.50 × (1.75 ×), met"),
            (time, [14, 16, 16], 0, "1.60 × (1.75 ×), **not met**"),
            (bare, [14, 16, 16], 0, "1.60 × (1.75 ×), "),
            (speed, [4, 5, 6], 0, "2.00 × (2.00 ×), met"),
            (speed, [4, 6, 6], 0, "1.67 × (2.00 ×), **not met**"),
            (short, [9, 9, 11], 0, "9.00 ms (9.00 ms), met"),
            (short, [9, 10, 11], 0, "10.0 ms (9.00 ms), **not met**"),
            (small, [1, 1, 1], 49, "0.0 MB, met"),
            (small, [1, 1, 1], 50, "0.0 MB, **not met**"),
        ] {
            let rows = [
                ("fast", Some(outcome(&[8, 10, 99], 0))),
                ("slow", Some(outcome(&[1, 11, 12], 0))),
                ("we", Some(outcome(&ours, memory))),
            ];
            let [_, came_out, _, verdict] = row(&claim, &rows).unwrap();
            assert_eq!(format!("{came_out}, {verdict}"), want, "{claim:?}, {ours:?}");
        }
    }

    #[test]
    fn without_one_of_them_there_is_no_ratio() {
        let claim = Claim::Time { ours: "we", beside: &["other"], most: Some(1.5) };
        let failed = [("we", Some(outcome(&[1], 0))), ("other", None)];
        assert_eq!(row(&claim, &failed).unwrap()[1..], ["nothing", "at most 1.5 ×", ""]);
        assert_eq!(row(&claim, &failed[..1]), None);
    }

    #[test]
    fn every_contest_aims_at_something() {
        for contest in CONTESTS {
            assert!(!claims(contest).is_empty(), "{}", contest.name());
        }
    }
}
