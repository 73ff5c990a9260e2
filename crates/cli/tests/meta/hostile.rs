//! Metadata that was made to do harm.

use weigh::format::text::is_unsafe_to_print;

use crate::checkpoints::{content, header, one};
use crate::program::Program;

const FILE: &str = "m.safetensors";

/// What a command prints, in which nothing acts on a terminal.
fn safe(program: &Program, arguments: &[&str]) -> String {
    let output = program.run(arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let found = text.chars().find(|it| *it != '\n' && is_unsafe_to_print(*it));
    assert_eq!(found, None, "{arguments:?}: {text}");
    text
}

#[test]
fn nothing_from_a_file_acts_on_a_terminal() {
    let (key, value) = ("\u{202e}k\u{9b}", "v\u{1b}]0;t\u{7}\u{2028}");
    let json = format!("{{\"{value}\": [\"\u{202e}\"]}}").replace(['\u{1b}', '\u{7}'], "\\n");
    let program = one(&[(key, value), ("json", &json)]);
    for arguments in [
        &["meta", "get", FILE][..],
        &["meta", "get", FILE, "--json"],
        &["meta", "get", FILE, "\u{202e}"],
        &["meta", "export", FILE],
        &["meta", "set", FILE, "k=v", "\u{202e}k\u{9b}=\u{1b}", "--dry-run"],
        &["meta", "set", FILE, "\u{1b}"],
        &["meta", "set", FILE, "--json", "\u{1b}=\u{1b}", "--dry-run"],
        &["meta", "unset", FILE, "*", "--dry-run"],
        &["meta", "unset", FILE, "\u{1b}"],
    ] {
        safe(&program, arguments);
    }
}

#[test]
fn huge_values_and_keys_are_shortened_wherever_they_are_shown() {
    let huge = "x".repeat(1_000_000);
    let program = one(&[("long", &huge), (&huge, "v"), ("bytes", &format!("[\"{huge}\"]"))]);
    for arguments in [
        &["meta", "get", FILE][..],
        &["info", "--metadata", FILE],
        &["meta", "unset", FILE, "*", "--dry-run"],
        &["meta", "unset", FILE, "*"],
    ] {
        let shown = safe(&program, arguments);
        assert!(shown.len() < 10_000, "{arguments:?}: {} bytes", shown.len());
    }
}

#[test]
fn many_keys_are_no_trouble() {
    let names: Vec<String> = (0..50_000).map(|number| format!("key_{number}")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "value")).collect();
    let program = one(&pairs);
    assert_eq!(safe(&program, &["meta", "get", FILE]).lines().count(), 50_001);
    assert_eq!(safe(&program, &["meta", "get", FILE, "key_4999?"]).lines().count(), 11);
    assert!(safe(&program, &["meta", "get", FILE, "key"]).contains("contain it"));
    let shown = safe(&program, &["meta", "unset", FILE, "key_*"]);
    assert!(shown.contains("49 950 more keys, --json has all"), "{shown}");
    assert_eq!(content(&program.path(FILE)).0, []);
}

#[test]
fn json_in_a_string_has_no_depth_and_no_lines_without_end() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let wide = format!("[{}1]", "1,".repeat(1_000_000));
    let indented = "[".repeat(31) + &"1,".repeat(500_000) + "1" + &"]".repeat(31);
    let within = (0..12).fold(String::from("x"), |json, _| serde_json::to_string(&[json]).unwrap());
    let program = one(&[("d", &deep), ("w", &wide), ("i", &indented), ("n", &within)]);
    let shown = safe(&program, &["meta", "get", FILE]);
    assert!(shown.lines().count() < 20_100, "{} lines", shown.lines().count());
    assert!(shown.len() < 2_000_000, "{} bytes", shown.len());
}

#[test]
fn a_header_that_readers_refuse_is_not_written() {
    let program = one(&[]);
    let before = std::fs::read(program.path(FILE)).unwrap();
    std::fs::write(program.path("value"), "v".repeat(100_000_000)).unwrap();
    let shown = program.shown(&["meta", "set", FILE, "--file", "k=value"]);
    let message = "bytes; readers take 100000000";
    assert!(shown.starts_with("exit 2\n") && shown.contains(message), "{shown}");
    let shown = program.shown(&["meta", "set", FILE, "k=v", "--reserve", "1T"]);
    assert!(shown.starts_with("exit 2\n") && shown.contains(message), "{shown}");
    assert_eq!(std::fs::read(program.path(FILE)).unwrap(), before);
}

#[test]
fn a_key_that_is_there_twice_is_shown_and_not_written() {
    let program = Program::new();
    let twice = header(&[("k", "1"), ("l", "2")]).replace("\"l\"", "\"k\"");
    program.file(FILE, &twice, 8);
    let shown = program.shown(&["meta", "get", FILE]);
    assert!(shown.contains("  k  1\n  k  2\n") && shown.starts_with("exit 1\n"), "{shown}");
    let shown = program.shown(&["meta", "set", FILE, "k=3"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("metadata key"), "{shown}");
}
