//! The table of one case, and what it comes to.

use std::time::Duration;

use crate::load::contenders::{Contender, Role};
use crate::load::measurement::Outcome;
use crate::report::Table;
use crate::timing::Samples;
use crate::{amount, report};

/// Prints the row of each contender, then how we compare with the best peer.
pub(crate) fn print(contenders: &[Contender], outcomes: &[Outcome]) {
    let of = |role: Role| {
        let pairs = contenders.iter().zip(outcomes);
        let chosen = pairs.filter(move |(contender, _)| contender.role == role);
        chosen.map(|(contender, outcome)| (contender.name.as_str(), outcome))
    };
    let best = best(of(Role::Peer), "no peer ran");
    let mut table = Table::new([
        "loader",
        "time",
        "GB/s",
        "beside the best peer",
        "processor",
        "memory",
        "faults",
        "major",
        "from storage",
    ]);
    for (contender, outcome) in contenders.iter().zip(outcomes) {
        table.row(row(contender, outcome, best.as_ref().ok().map(|(_, time)| *time)));
    }
    table.print();
    println!();
    let ours = self::best(of(Role::Ours), "we did not run");
    println!("{}.", compared(&ours, &best, "the best peer"));
    if of(Role::HelpedPeer).next().is_some() {
        let helped = self::best(of(Role::HelpedPeer), "none ran");
        println!("{}.", compared(&ours, &helped, "the best peer that was given huge pages"));
    }
    report::fresh_memory(outcomes.iter().flat_map(Outcome::first_touches).collect());
}

type Best<'c> = Result<(&'c str, Duration), String>;

/// How we compare with `whom`, or why that cannot be said.
fn compared(ours: &Best<'_>, theirs: &Best<'_>, whom: &str) -> String {
    match (theirs, ours) {
        (Ok((peer, theirs)), Ok((weigh, ours))) => {
            let times = theirs.div_duration_f64(*ours);
            format!("{weigh}: {times:.2} times as fast as {whom}, {peer}")
        }
        (Err(why), _) | (_, Err(why)) => format!("No ratio to {whom}: {why}"),
    }
}

/// The least of the medians, and whose it is; `none` is why there is none among none.
///
/// There is none either where one failed or answered wrongly: it might have been the best.
fn best<'c>(outcomes: impl Iterator<Item = (&'c str, &'c Outcome)>, none: &str) -> Best<'c> {
    let mut best = None;
    for (name, outcome) in outcomes {
        let Some(times) = outcome.times() else {
            let how = if outcome.failure.is_some() { "failed" } else { "gave a wrong answer" };
            return Err(format!("{name} {how}"));
        };
        let time = times.median();
        if best.is_none_or(|(_, least)| time < least) {
            best = Some((name, time));
        }
    }
    best.ok_or_else(|| none.to_owned())
}

fn row(contender: &Contender, outcome: &Outcome, best: Option<Duration>) -> [String; 9] {
    let name = match (contender.role, outcome.called()) {
        // What stands for us says what it is.
        (Role::Ours, Some(called)) => format!("{} ({called})", contender.name),
        _ => contender.name.clone(),
    };
    let Some(times) = outcome.times() else {
        let what = match (&outcome.failure, &outcome.wrong) {
            (Some(failure), _) => format!("failed: {failure}"),
            (_, Some(wrong)) => format!("**void**: {wrong}"),
            _ => String::from("did not run"),
        };
        // A bar or a line break would end the cell.
        let what = what.replace('|', "/").replace('\n', " ");
        let mut cells = [const { String::new() }; 9];
        [cells[0], cells[1]] = [name, what];
        return cells;
    };
    let beside = best.map_or_else(
        || String::from("no ratio"),
        |best| format!("{:.2} ×", best.div_duration_f64(times.median())),
    );
    let [minor, major, read] = outcome.counts();
    let rate = amount::speed(outcome.bytes(), times.median());
    let shown = |text: String| if outcome.is_measured() { text } else { String::from("–") };
    [
        name,
        range(&times),
        format!("{rate:.2}"),
        beside,
        shown(amount::time(outcome.computing())),
        shown(amount::size(outcome.memory())),
        shown(minor.to_string()),
        shown(major.to_string()),
        amount::size(read),
    ]
}

fn range(times: &Samples) -> String {
    let [least, median, most] = [times.least(), times.median(), times.most()].map(amount::time);
    format!("{median} ({least} to {most})")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::load::measurement::Line;
    use crate::load::sets::Answer;

    #[test]
    fn the_best_is_the_least_median_unless_one_failed() {
        let answer = Answer { tensors: 0, bytes: 8, checksum: String::new() };
        let outcome = |seconds: &[f64]| {
            let mut outcome = Outcome::default();
            for &seconds in seconds {
                outcome.add(Ok(Line::of_reading(seconds, 8)), &answer);
            }
            outcome
        };
        let steady = outcome(&[2.0, 2.0, 2.0]);
        let lucky = outcome(&[1.0, 3.0, 3.0]);
        let mut failing = outcome(&[1.0]);
        failing.add(Err(anyhow!("killed")), &answer);
        for (outcomes, want) in [
            (vec![], Err("none at all")),
            (vec![("lucky", &lucky)], Ok(("lucky", 3))),
            (vec![("lucky", &lucky), ("steady", &steady)], Ok(("steady", 2))),
            (vec![("steady", &steady), ("failing", &failing)], Err("failing failed")),
        ] {
            let got = best(outcomes.into_iter(), "none at all");
            let got = got.map(|(name, time)| (name, time.as_secs()));
            assert_eq!(got, want.map_err(str::to_owned));
        }
    }
}
