//! The corpus of `conformance/format`: every case and every derived file gives the findings it must, where
//! it must, and no others. The tables and their languages are described in the corpus's README.

mod memory;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use weigh_format::finding::Evidence;
use weigh_format::{Finding, Limits, Policy};

use memory::look;

#[test]
fn every_case_gives_what_the_table_says() {
    let mut wrong = Vec::new();
    let rows = rows("expected.tsv");
    assert!(rows.len() > 400, "{} cases", rows.len());
    for row in &rows {
        let bytes = match row["recipe"].as_str() {
            "-" => stored(&row["case"]),
            recipe => made(recipe),
        };
        check(&row["case"], &bytes, row, &limits(&row["limits"]), &mut wrong);
    }
    report(&wrong);
}

#[test]
fn every_derived_file_gives_what_the_table_says() {
    let mut wrong = Vec::new();
    let mut files = 0;
    for row in rows("derived.tsv") {
        for bytes in derived(&row["base"], &row["operation"]) {
            let name = format!("{} {}", row["base"], row["operation"]);
            check(&name, &bytes, &row, &Limits::default(), &mut wrong);
            files += 1;
        }
    }
    assert!(files > 50_000, "{files} files");
    report(&wrong);
}

/// Every rule of the header has a case; the others are tested where they are used.
#[test]
fn every_rule_of_a_single_file_has_a_case() {
    let findings: String = rows("expected.tsv").iter().fold(String::new(), |mut all, row| {
        let _ = write!(all, " {}", row["finding"]);
        all
    });
    for rule in weigh_format::rule::RULES {
        let elsewhere = rule.code.starts_with("index-")
            || ["reserved-name", "limit-index"].contains(&rule.code);
        let has_case = findings.contains(&format!(" {}@", rule.code))
            || findings.contains(&format!(" {}:", rule.code));
        assert!(elsewhere || has_case, "{}", rule.code);
    }
}

type Row = BTreeMap<String, String>;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/format")
}

fn rows(table: &str) -> Vec<Row> {
    let text = fs::read_to_string(corpus().join(table)).unwrap();
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let row = |line: &str| {
        let cells = line.split('\t').map(String::from);
        columns.iter().map(|column| String::from(*column)).zip(cells).collect()
    };
    lines.map(row).collect()
}

fn stored(case: &str) -> Vec<u8> {
    fs::read(corpus().join("cases").join(format!("{case}.safetensors"))).unwrap()
}

fn limits(cell: &str) -> Limits {
    let mut limits = Limits::default();
    for (name, number) in cell.split(' ').filter_map(|word| word.split_once('=')) {
        let number: u64 = number.parse().unwrap();
        match name {
            "header_bytes" => limits.header_bytes = number,
            "tensors" => limits.tensors = number.try_into().unwrap(),
            "name_bytes" => limits.name_bytes = number.try_into().unwrap(),
            "depth" => limits.depth = number.try_into().unwrap(),
            _ => panic!("unknown limit {name}"),
        }
    }
    limits
}

/// The file that a recipe makes.
fn made(recipe: &str) -> Vec<u8> {
    let (length, recipe) = match recipe.strip_prefix("length=") {
        Some(rest) => {
            let (number, rest) = rest.split_once(' ').unwrap();
            (Some(number.parse::<u64>().unwrap()), rest)
        }
        None => (None, recipe),
    };
    let (kind, pieces) = recipe.split_once(' ').unwrap_or((recipe, ""));
    let mut words = pieces.split(' ').filter(|word| !word.is_empty());
    let first: Vec<u8> = words
        .by_ref()
        .take_while(|word| kind == "bytes" || *word != "data")
        .flat_map(piece)
        .collect();
    if kind == "bytes" {
        return first;
    }
    assert_eq!(kind, "header");
    let length = length.unwrap_or(first.len() as u64);
    let mut file = length.to_le_bytes().to_vec();
    file.extend(first);
    file.extend(words.flat_map(piece));
    file
}

fn piece(word: &str) -> Vec<u8> {
    let (text, times) = match word.split_once('*') {
        Some((text, times)) => (text, times.parse().unwrap()),
        None => (word, 1),
    };
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            bytes.push(hex(std::str::from_utf8(&tail[..2]).unwrap()));
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    bytes.repeat(times)
}

fn hex(digits: &str) -> u8 {
    u8::from_str_radix(digits, 16).unwrap()
}

/// The files that a row of `derived.tsv` stands for.
fn derived(base: &str, operation: &str) -> Vec<Vec<u8>> {
    if base == "-" {
        return vec![made(operation)];
    }
    let mut files = vec![stored(base)];
    for change in operation.split(" | ") {
        let words: Vec<&str> = change.split(' ').collect();
        let number = |place: usize| words[place].parse::<usize>().unwrap();
        files = files
            .into_iter()
            .flat_map(|mut file| match words[0] {
                "truncate" => {
                    file.truncate(number(1));
                    vec![file]
                }
                "length" => {
                    file[..8].copy_from_slice(&words[1].parse::<u64>().unwrap().to_le_bytes());
                    vec![file]
                }
                "delete" => {
                    file.drain(number(1)..number(1) + number(2));
                    vec![file]
                }
                "insert" => {
                    let digits = words[2].as_bytes().chunks(2);
                    let bytes = digits.map(|pair| hex(std::str::from_utf8(pair).unwrap()));
                    file.splice(number(1)..number(1), bytes.collect::<Vec<_>>());
                    vec![file]
                }
                "set" => values(words[2])
                    .map(|value| {
                        let mut file = file.clone();
                        file[number(1)] = value;
                        file
                    })
                    .collect(),
                other => panic!("unknown operation {other}"),
            })
            .collect();
    }
    files
}

fn values(cell: &str) -> impl Iterator<Item = u8> {
    cell.split(',').flat_map(|range| match range.split_once('-') {
        Some((low, high)) => hex(low)..=hex(high),
        None => hex(range)..=hex(range),
    })
}

/// A finding as the tables write it.
fn written(finding: &Finding) -> String {
    let at = finding.place.span.as_ref().map_or(0, |span| span.start);
    let kind = finding.evidence.iter().find(|(name, _)| *name == "kind");
    match kind {
        Some((_, Evidence::Text(kind))) => format!("{}:{kind}@{at}", finding.code()),
        _ => format!("{}@{at}", finding.code()),
    }
}

fn check(name: &str, bytes: &[u8], row: &Row, limits: &Limits, wrong: &mut Vec<String>) {
    let inspection = look(bytes, limits);
    let findings = inspection.findings();
    let mut got: Vec<String> = findings.list().iter().map(written).collect();
    got.sort();
    let mut want: Vec<&str> = row["finding"].split(' ').filter(|word| *word != "-").collect();
    want.sort_unstable();
    let stops = ["json-syntax", "json-depth", "limit-tensors", "limit-name", "not-safetensors"];
    let stopped = want.iter().any(|word| stops.iter().any(|stop| word.starts_with(stop)));
    let mut extra = got.clone();
    let missing = want.iter().any(|word| match extra.iter().position(|it| it == word) {
        Some(place) => {
            extra.remove(place);
            false
        }
        None => true,
    });
    let verdict = |policy| {
        if findings.refused_by(policy) { "reject" } else { "accept" }
    };
    let verdicts = [verdict(Policy::Strict), verdict(Policy::Compatible)];
    let wanted = [row["strict"].as_str(), row["compatible"].as_str()];
    if missing || (!stopped && !extra.is_empty()) || verdicts != wanted {
        wrong.push(format!("{name}: want {want:?} {wanted:?}, got {got:?} {verdicts:?}"));
    }
}

fn report(wrong: &[String]) {
    let shown = wrong.iter().take(30).fold(String::new(), |all, line| all + line + "\n");
    assert!(wrong.is_empty(), "{} differ:\n{shown}", wrong.len());
}
