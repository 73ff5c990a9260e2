//! Every finding is mended, remains as a note, or stands in the way; and what is mended is sound.

mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use weigh_format::encode::{Layout, encode};
use weigh_format::header::{Inspection, inspect};
use weigh_format::repair::{Fate, Repair, fate, plan};
use weigh_format::{Finding, HashKey, Limits, Verdict, rule};

use memory::look;

const MENDED: [&str; 14] = [
    "header-bom",
    "header-leading-space",
    "header-padding",
    "header-trailing-data",
    "header-large-padding",
    "entry-field-unknown",
    "data-trailing",
    "data-gap",
    "data-overlap",
    "data-alias",
    "empty-off-boundary",
    "misaligned",
    "metadata-type",
    "metadata-null",
];

const IN_THE_WAY: [&str; 27] = [
    "file-too-short",
    "header-over-limit",
    "header-past-end",
    "header-empty",
    "header-not-utf8",
    // In another encoding than UTF-8.
    "header-bom",
    "data-truncated",
    "json-syntax",
    "json-depth",
    "duplicate-key",
    "entry-field-missing",
    "entry-field-type",
    "dtype-unknown",
    "number-form",
    "shape-overflow",
    // Which dimension to change, nobody can tell.
    "shape-overflow-beside-zero",
    "size-overflow",
    "size-not-bytes",
    "size-mismatch",
    "offsets-reversed",
    // `__metadata__` itself.
    "metadata-type",
    "limit-tensors",
    "limit-name",
    "not-safetensors",
    // Of other places than the header of a file.
    "reserved-name",
    "limit-index",
    "index-…",
];

/// A file of this header and so many bytes of data.
fn file(header: &str, data: usize) -> Vec<u8> {
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    [&length[..], header.as_bytes(), &vec![7; data]].concat()
}

/// The header of the file that a repair makes, inspected.
fn mended(repair: &Repair<'_>) -> Inspection {
    let encoded =
        encode(&repair.declarations(), repair.metadata.as_ref(), &Layout::default()).unwrap();
    for (tensor, offsets) in repair.tensors.iter().zip(&encoded.data_offsets) {
        let [source, new] = [&tensor.bytes, offsets].map(|it| it.end - it.start);
        assert_eq!(source, new, "{}", tensor.name);
    }
    let file_len = u64::try_from(encoded.bytes.len()).unwrap() + encoded.data_len;
    inspect(encoded.bytes[8..].to_vec(), file_len, &Limits::default(), HashKey::new(3, 5))
}

/// Whether every byte of the data section is a tensor's or dropped, and none is both.
fn all_accounted_for(repair: &Repair<'_>, inspection: &Inspection) -> bool {
    let mut spans: Vec<_> = repair.tensors.iter().map(|tensor| tensor.bytes.clone()).collect();
    let dropped = &repair.dropped;
    assert!(dropped.is_sorted_by(|one, other| one.end <= other.start), "{dropped:?}");
    let in_header = dropped.iter().filter(|span| span.start < inspection.data_start());
    assert!(in_header.clone().all(|span| span.end <= inspection.data_start()), "{dropped:?}");
    spans.extend(dropped.iter().filter(|it| it.start >= inspection.data_start()).cloned());
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let covered = spans.iter().fold(inspection.data_start(), |end, span| {
        assert!(span.start <= end, "{spans:?}");
        end.max(span.end)
    });
    covered == inspection.file_len()
}

#[test]
fn every_case_of_the_corpus_is_mended_or_says_why_not() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/format/cases");
    let (mut gone, mut stood) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(cases).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let tight = Limits { tensors: 0, name_bytes: 0, ..Limits::default() };
        let few = Limits { tensors: 0, ..Limits::default() };
        for limits in [Limits::default(), tight, few] {
            let inspection = look(&bytes, &limits);
            match plan(&inspection) {
                Ok(repair) => {
                    let name = path.display();
                    assert_eq!(mended(&repair).findings().verdict(), Verdict::Valid, "{name}");
                    assert!(all_accounted_for(&repair, &inspection), "{name}: {repair:?}");
                    let left = mended(&repair);
                    for finding in &repair.mended {
                        assert!(left.findings().first(finding.code()).is_none(), "{name}");
                        gone.insert(finding.code());
                    }
                }
                Err(findings) => {
                    assert!(!findings.is_empty(), "{}", path.display());
                    stood.extend(findings.iter().map(Finding::code));
                }
            }
        }
    }
    assert_eq!(gone, BTreeSet::from(MENDED));
    let elsewhere = ["reserved-name", "limit-index", "index-…", "header-over-limit"];
    let here = IN_THE_WAY.into_iter().filter(|code| !elsewhere.contains(code));
    stood.remove("header-over-limit");
    assert_eq!(stood, here.collect());
}

#[test]
fn every_rule_has_a_fate() {
    for rule in rule::RULES {
        let finding = Finding::new(rule, "");
        let index = rule.code.starts_with("index-");
        let stands = index || IN_THE_WAY.contains(&rule.code);
        let want = match rule.severity {
            _ if MENDED.contains(&rule.code) && !stands => Fate::Mended,
            weigh_format::Severity::Note => Fate::Remains,
            _ => {
                assert!(stands, "{}", rule.code);
                Fate::StandsInTheWay
            }
        };
        assert_eq!(fate(&finding), want, "{}", rule.code);
    }
}

#[test]
fn metadata_becomes_strings() {
    let of = |text: &str| {
        let bytes = file(text, 0);
        let inspection = look(&bytes, &Limits::default());
        plan(&inspection).map(|repair| repair.metadata).map_err(|findings| findings.len())
    };
    let pairs = |pairs: &[(&str, &str)]| {
        let owned = pairs.iter().map(|(key, value)| (String::from(*key), String::from(*value)));
        Ok(Some(owned.collect::<BTreeMap<_, _>>()))
    };
    for (text, want) in [
        ("{}", Ok(None)),
        (r#"{"__metadata__":null}"#, Ok(None)),
        (r#"{"__metadata__":{}}"#, pairs(&[])),
        (
            r#" {"\u005f_metadata__" : { "n" : 1.50 , "t":true, "z":null, "s":"\u00e9", "o":{"a": [1]},
               "a":[] } }"#,
            pairs(&[
                ("n", "1.50"),
                ("t", "true"),
                ("z", "null"),
                ("s", "é"),
                ("o", r#"{"a": [1]}"#),
                ("a", "[]"),
            ]),
        ),
        (r#"{"__metadata__":[]}"#, Err(1)),
        (r#"{"__metadata__":"text"}"#, Err(1)),
        (r#"{"__metadata__":{"a":1,"a":2}}"#, Err(1)),
    ] {
        assert_eq!(of(text), want, "{text}");
    }
}

#[test]
fn what_belongs_to_nothing_is_dropped_and_what_is_shared_is_copied() {
    let header = concat!(
        "\t",
        r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[2,6],"note":1},"#,
        r#""b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]},"#,
        r#""c":{"dtype":"U16","shape":[2],"data_offsets":[4,8]},"#,
        r#""e":{"dtype":"U8","shape":[4294967295,0,4294967296],"data_offsets":[99,99]}}"#,
        "\0\0"
    );
    let bytes = file(header, 11);
    let start = u64::try_from(bytes.len()).unwrap() - 11;
    let inspection = look(&bytes, &Limits::default());
    let repair = plan(&inspection).unwrap();
    let spans: Vec<_> = repair.tensors.iter().map(|tensor| tensor.bytes.clone()).collect();
    let at = |from: u64, to: u64| start + from..start + to;
    assert_eq!(spans, [at(2, 6), at(2, 6), at(4, 8), at(0, 0)]);
    assert_eq!(repair.dropped, [8..9, start - 2..start, at(0, 2), at(8, 11)]);
    assert_eq!(*repair.tensors[3].shape, [(1 << 32) - 1, 0, 1 << 32]);
    assert_eq!(mended(&repair).findings().list(), []);
}

#[test]
fn a_sound_file_has_nothing_to_mend() {
    let padded = format!("{:<64}", r#"{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#);
    let bytes = file(&padded, 2);
    let inspection = look(&bytes, &Limits::default());
    let repair = plan(&inspection).unwrap();
    assert!(repair.mended.is_empty() && repair.dropped.is_empty());
}

#[test]
fn gaps_beyond_those_that_are_listed_are_dropped_too() {
    let entry = |number: usize| {
        let begin = 2 * number + 1;
        format!(r#""{number}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{}]}}"#, begin + 1)
    };
    let entries: Vec<String> = (0..1500).map(entry).collect();
    let bytes = file(&format!("{{{}}}", entries.join(",")), 3000);
    let inspection = look(&bytes, &Limits::default());
    let repair = plan(&inspection).unwrap();
    assert_eq!((repair.mended.len(), repair.dropped.len()), (1000, 1500));
    assert!(all_accounted_for(&repair, &inspection));
}
