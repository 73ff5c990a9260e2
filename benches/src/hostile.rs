//! Headers made to be expensive, beside an honest header of the same number of bytes.

use std::fmt::Write;

use anyhow::{Result, ensure};
use weigh_format::header::Inspection;
use weigh_format::{Limits, header};

use crate::headers::{self, KEY, Order, count};
use crate::report::{Table, met};
use crate::{amount, memory, timing};

/// Bytes of most headers here: as many as readers take.
const BYTES: usize = 100_000_000;

/// How much more than an honest header a hostile one may cost, for the scatter of timings.
const SCATTER: f64 = 1.1;

/// A hostile header: what it is, its bytes, and the codes of findings of which it must have one.
struct Case {
    what: &'static str,
    make: fn() -> String,
    code: Option<&'static str>,
}

const CASES: [Case; 10] = [
    Case {
        what: "an unknown field, an array of zeros",
        make: || {
            one_entry(
                r#""dtype":"U8","shape":[0],"data_offsets":[0,0],"x":["#,
                "0,",
                "0]",
            )
        },
        code: Some("entry-field-unknown"),
    },
    Case {
        what: "100 000 brackets, nested",
        make: || one_entry_of(100_012, r#""x":"#, "[", ""),
        code: Some("json-depth"),
    },
    Case {
        what: "a million names with one prefix",
        make: || {
            names(
                |number| format!("model.layers.0.prefix{number:07}"),
                1_000_000,
            )
        },
        code: None,
    },
    Case {
        what: "a shape of zeros",
        make: || one_entry(r#""dtype":"U8","data_offsets":[0,0],"shape":["#, "0,", "0]"),
        code: None,
    },
    Case {
        what: "data_offsets of zeros",
        make: || one_entry(r#""dtype":"U8","shape":[0],"data_offsets":["#, "0,", "0]"),
        code: Some("entry-field-type"),
    },
    Case {
        what: "unknown fields, all different",
        make: || {
            many(
                r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]"#,
                "}}",
                |json, number| {
                    let _ = write!(json, r#","{number:x}":0"#);
                },
            )
        },
        code: Some("entry-field-unknown"),
    },
    Case {
        what: "entries with nothing in them",
        make: || {
            many(r#"{"a":{}"#, "}", |json, number| {
                let _ = write!(json, r#","{number:x}":{{}}"#);
            })
        },
        code: Some("entry-field-missing"),
    },
    Case {
        what: "one name, over and over",
        make: || names(|_| String::from("model.layers.0.prefix0000000"), 1_000_000),
        code: Some("duplicate-key"),
    },
    Case {
        what: "metadata, small pairs",
        make: || {
            many(r#"{"__metadata__":{"a":"""#, "}}", |json, number| {
                let _ = write!(json, r#","{number:x}":"""#);
            })
        },
        code: None,
    },
    Case {
        what: "names of escapes",
        make: || names(|number| format!(r"\u0061\u0062{number:07}"), 1_000_000),
        code: None,
    },
];

pub(crate) fn run() -> Result<()> {
    println!(
        "Reading a header that is made to be expensive, beside an honest one of as many bytes:"
    );
    println!(
        "medians of {} runs in turn, and the most memory held, copy of the header included. Aim:",
        timing::ROUNDS
    );
    println!(
        "no more than the honest one; met if no more than {SCATTER} times, for the scatter of timings.\n"
    );
    let mut table = Table::new([
        "header", "bytes", "time", "honest", "ratio", "memory", "honest", "ratio", "",
    ]);
    for case in CASES {
        let hostile = (case.make)().into_bytes();
        let honest = honest(hostile.len());
        verify(&case, &hostile, &honest)?;
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
    ensure!(
        hostile.len() == honest.len(),
        "{what}: not as long as the honest header"
    );
    let findings = inspect(hostile);
    if let Some(code) = case.code {
        ensure!(
            findings.findings().first(code).is_some(),
            "{what}: no {code}"
        );
    } else {
        ensure!(findings.is_complete(), "{what}: not read to the end");
    }
    let honest = inspect(honest);
    ensure!(honest.is_complete() && honest.findings().first("json-syntax").is_none());
    Ok(())
}

/// The JSON of an honest header, padded to `bytes` with spaces.
fn honest(bytes: usize) -> Vec<u8> {
    // No entry is shorter than this, so that there are enough; those too many are cut off.
    let mut tensors = headers::experts(bytes / 90);
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

/// A header of one entry, whose object begins with `start`, goes on with `filling` up to [`BYTES`] and ends with `end`.
fn one_entry(start: &str, filling: &str, end: &str) -> String {
    one_entry_of(BYTES, start, filling, end)
}

fn one_entry_of(bytes: usize, start: &str, filling: &str, end: &str) -> String {
    let (start, end) = (format!(r#"{{"a":{{{start}"#), format!("{end}}}}}"));
    let repeats = (bytes - start.len() - end.len()) / filling.len();
    start + &filling.repeat(repeats) + &end
}

/// A header that goes on with numbered pieces up to [`BYTES`].
fn many(start: &str, end: &str, piece: impl Fn(&mut String, usize)) -> String {
    let mut json = String::with_capacity(BYTES);
    json.push_str(start);
    for number in 0.. {
        let before = json.len();
        piece(&mut json, number);
        if json.len() + end.len() > BYTES {
            json.truncate(before);
            break;
        }
    }
    json + end
}

/// A header of `tensors` entries with these names.
fn names(name: impl Fn(usize) -> String, tensors: usize) -> String {
    let mut json = String::with_capacity(BYTES);
    for number in 0..tensors {
        json.push(if number == 0 { '{' } else { ',' });
        let (name, end) = (name(number), number + 1);
        let _ = write!(
            json,
            r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{number},{end}]}}"#
        );
    }
    json.push('}');
    json
}
