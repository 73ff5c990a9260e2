//! Headers made to be expensive, beside an honest header of the same number of bytes.

use std::fmt::Write;

use anyhow::{Result, ensure};
use weigh_format::header::Inspection;
use weigh_format::{Limits, header};

use crate::headers::{self, KEY, Order, count};
use crate::report::{Table, met};
use crate::timing::{self, ROUNDS};
use crate::{amount, memory};

/// Bytes of most headers here: as many as readers take.
const BYTES: usize = 100_000_000;

/// How much more than an honest header a hostile one may cost, for the scatter of timings.
const SCATTER: f64 = 1.1;

/// A hostile header.
struct Case {
    what: &'static str,
    /// Makes its JSON.
    make: fn() -> String,
    /// The code of a finding that it must give; `None` if it must be read to its end.
    code: Option<&'static str>,
}

/// What the target is for.
const CASES: [Case; 3] = [
    Case {
        what: "an unknown field, an array of zeros",
        make: || {
            let start = r#""dtype":"U8","shape":[0],"data_offsets":[0,0],"x":["#;
            one_entry(BYTES, start, "0,", "0]")
        },
        code: Some("entry-field-unknown"),
    },
    Case {
        what: "100 000 brackets, nested",
        make: || one_entry(100_012, r#""x":"#, "[", ""),
        code: Some("json-depth"),
    },
    Case {
        what: "a million names with one prefix",
        make: || names(|number| format!("model.layers.0.mlp.one_prefix.{number:07}")),
        code: None,
    },
];

/// Others, to know their cost.
const MORE_CASES: [Case; 6] = [
    Case {
        what: "one name, a million times",
        make: || names(|_| String::from("model.layers.0.mlp.one_prefix.0000000")),
        code: Some("duplicate-key"),
    },
    Case {
        what: "a million names with escapes",
        make: || names(|number| format!(r"model.layers.0.one\u005fprefix.{number:07}")),
        code: None,
    },
    Case {
        what: "a shape of zeros",
        make: || {
            let start = r#""dtype":"U8","data_offsets":[0,0],"shape":["#;
            one_entry(BYTES, start, "0,", "0]")
        },
        code: None,
    },
    Case {
        what: "unknown fields, all different",
        make: || {
            let start = r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]"#;
            numbered(start, "}}", |number| format!(r#","{number:x}":0"#))
        },
        code: Some("entry-field-unknown"),
    },
    Case {
        what: "entries with nothing in them",
        make: || numbered(r#"{"a":{}"#, "}", |number| format!(r#","{number:x}":{{}}"#)),
        code: Some("entry-field-missing"),
    },
    Case {
        what: "metadata, small pairs",
        make: || {
            let start = r#"{"__metadata__":{"a":"""#;
            numbered(start, "}}", |number| format!(r#","{number:x}":"""#))
        },
        code: None,
    },
];

pub(crate) fn run() -> Result<()> {
    println!(
        "\
A header made to be expensive, beside an honest one of as many bytes: medians of {ROUNDS} runs
in turn, and the most memory held, the copy of the header included. The aim is no more than the
honest one; up to {SCATTER} times is met, for the scatter of timings.
"
    );
    compare(&CASES)?;
    println!("\nOthers, to know what they cost:\n");
    compare(&MORE_CASES)
}

fn compare(cases: &[Case]) -> Result<()> {
    let mut table =
        Table::new(["header", "bytes", "time", "honest", "ratio", "memory", "honest", "ratio", ""]);
    for case in cases {
        let hostile = (case.make)().into_bytes();
        let honest = honest(hostile.len());
        verify(case, &hostile, &honest)?;
        let repeats = if hostile.len() < 1_000_000 { 100 } else { 1 };
        let times = timing::in_turn(repeats, || inspect(&hostile), || inspect(&honest));
        let [slow, fair] = times.map(|samples| samples.median());
        let [(_, large), (_, usual)] =
            [&hostile, &honest].map(|bytes| memory::peak(|| inspect(bytes)));
        let (time, memory) = (slow.div_duration_f64(fair), amount::ratio(large, usual));
        table.row([
            case.what.to_owned(),
            amount::size(count(hostile.len())),
            amount::time(slow),
            amount::time(fair),
            format!("{time:.2}"),
            amount::size(large),
            amount::size(usual),
            format!("{memory:.2}"),
            met(time <= SCATTER && memory <= SCATTER),
        ]);
    }
    table.print();
    Ok(())
}

fn inspect(bytes: &[u8]) -> Inspection {
    header::inspect(bytes.to_vec(), u64::MAX, &Limits::default(), KEY)
}

fn verify(case: &Case, hostile: &[u8], honest: &[u8]) -> Result<()> {
    let what = case.what;
    ensure!(hostile.len() <= BYTES, "{what}: {} bytes", hostile.len());
    ensure!(hostile.len() == honest.len(), "{what}: not as long as the honest header");
    let findings = inspect(hostile);
    if let Some(code) = case.code {
        ensure!(findings.findings().first(code).is_some(), "{what}: no {code}");
    } else {
        ensure!(findings.is_complete(), "{what}: not read to the end");
    }
    let honest = inspect(honest);
    ensure!(honest.is_complete() && honest.findings().first("json-syntax").is_none());
    Ok(())
}

/// The JSON of an honest header, padded to `bytes` with spaces.
fn honest(bytes: usize) -> Vec<u8> {
    // No entry is shorter than 90 bytes, so that there are enough; those too many are cut off.
    let mut tensors = headers::many_experts(bytes / 90);
    Order::Lexical.apply(&mut tensors);
    let mut json = headers::header(&tensors).json().to_vec();
    json.truncate(bytes - 1);
    if let Some(end) = json.windows(2).rposition(|pair| pair == b"},") {
        json.truncate(end + 1);
    }
    json.push(b'}');
    json.resize(bytes, b' ');
    json
}

/// A header of about `bytes` bytes with one entry, which begins with `start`, repeats `filling` and
/// finishes with `end`.
fn one_entry(bytes: usize, start: &str, filling: &str, end: &str) -> String {
    let (start, end) = (format!(r#"{{"a":{{{start}"#), format!("{end}}}}}"));
    let repeats = (bytes - start.len() - end.len()) / filling.len();
    start + &filling.repeat(repeats) + &end
}

/// A header between `start` and `end` that goes on with numbered pieces up to [`BYTES`].
fn numbered(start: &str, end: &str, piece: impl Fn(usize) -> String) -> String {
    let mut json = String::with_capacity(BYTES);
    json.push_str(start);
    for number in 0.. {
        let piece = piece(number);
        if json.len() + piece.len() + end.len() > BYTES {
            break;
        }
        json.push_str(&piece);
    }
    json + end
}

/// A header of a million entries with these names.
fn names(name: impl Fn(usize) -> String) -> String {
    let mut json = String::with_capacity(BYTES);
    for number in 0..1_000_000 {
        let (name, end) = (name(number), number + 1);
        let comma = if number == 0 { '{' } else { ',' };
        // Writing to a String does not fail.
        let _ = write!(
            json,
            r#"{comma}"{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{number},{end}]}}"#
        );
    }
    json.push('}');
    json
}
