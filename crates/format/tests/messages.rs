//! Every rule's message and help as people see them, once each, from the first case of the conformance
//! corpus that has it. Set `UPDATE=1` to write the file again after looking at the difference.

mod memory;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use weigh_format::{Limits, rule, text::escaped};

use memory::look;

#[test]
fn every_message_is_as_it_was_approved() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/format/cases");
    let mut paths: Vec<_> = fs::read_dir(cases).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let inspection = look(&bytes, &Limits::default());
        for finding in inspection.findings().list() {
            // Each kind of file has words of its own.
            let kind = finding.evidence.iter().find(|(name, _)| *name == "kind");
            let name = kind.map_or_else(String::new, |(_, kind)| format!("{kind:?}"));
            said.entry(format!("{}{name}", finding.code())).or_insert_with(|| {
                let case = path.file_stem().unwrap().to_string_lossy().into_owned();
                format!("{case}\n  {finding}\n  {}\n", escaped(&finding.help))
            });
        }
    }
    let mut all = String::new();
    for (_, text) in said {
        let _ = writeln!(all, "{text}");
    }
    let approved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(&approved, &all).unwrap();
    }
    let want = fs::read_to_string(&approved).unwrap_or_default();
    assert!(all == want, "messages differ from tests/messages.txt; they are now:\n{all}");
    for rule in rule::RULES {
        let elsewhere = rule.code.starts_with("index-")
            || rule.code.starts_with("limit-")
            || ["reserved-name", "length-is-magic"].contains(&rule.code);
        assert!(elsewhere || all.contains(&format!("[{}]", rule.code)), "{}", rule.code);
    }
}
