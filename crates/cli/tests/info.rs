//! `weigh info`, run as a program.

mod program;

use std::process::Stdio;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;

/// What the program shows of one of the examples.
fn example(arguments: &[&str]) -> String {
    let program = Program::new();
    let mut command = program.command(arguments);
    let output = command.current_dir(repository("examples")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_checkpoint_fits_one_screen() {
    for name in ["tiny", "lora", "quantized"] {
        let shown = example(&["info", name]);
        assert!(shown.lines().count() < 24, "{shown}");
        assert_eq!(shown, example(&[name]), "`weigh PATH` is `weigh info PATH`");
    }
    assert_snapshot!(example(&["info", "tiny"]), @"");
    assert_snapshot!(example(&["info", "lora"]), @"");
    assert_snapshot!(example(&["info", "quantized"]), @"");
}

#[test]
fn a_selector_restricts_what_is_counted() {
    assert_snapshot!(example(&["info", "tiny:model.layers.[01].*", "-x", "*norm*"]), @"");
    let program = Program::new();
    program.file("a.safetensors", ONE, 8);
    assert_snapshot!(program.shown(&["info", "a.safetensors:b.*"]), @"");
    assert_snapshot!(program.shown(&["info", "a.safetensors", "--tensors", "[", "--dtype=F16"]), @"");
}

const ONE: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}          "#;

#[test]
fn several_checkpoints_have_a_block_each() {
    let program = Program::new();
    program.file("a.safetensors", ONE, 8);
    program.file("b.safetensors", &format!("{{}}{}", " ".repeat(6)), 0);
    assert_snapshot!(program.shown(&["info", "."]), @"");
    assert_snapshot!(program.shown(&["info", "nonesuch", "a.safetensors"]), @"");
}

#[test]
fn a_damaged_checkpoint_is_shown_as_far_as_it_can_be_read() {
    let program = Program::new();
    let second = r#"{"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"c":{"dtype":"F33","shape":[4],"data_offsets":[16,32]}}"#;
    program.file("x-00001-of-00003.safetensors", ONE, 8);
    program.file("x-00002-of-00003.safetensors", second, 20);
    let index = r#"{"weight_map":{"a":"x-00001-of-00003.safetensors","b":"x-00002-of-00003.safetensors","d":"x-00003-of-00003.safetensors"}}"#;
    std::fs::write(program.path("x.safetensors.index.json"), index).unwrap();
    assert_snapshot!(program.shown(&["info", "."]), @"");
    std::fs::write(program.path("page.safetensors"), "<!DOCTYPE html>").unwrap();
    assert_snapshot!(program.shown(&["info", "page.safetensors"]), @"");
}

/// A header with this metadata and one tensor.
fn with_metadata(pairs: &[(String, String)]) -> String {
    let map: serde_json::Map<String, Value> =
        pairs.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    ONE.replacen('{', &format!("{{\"__metadata__\":{},", Value::Object(map)), 1)
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
fn metadata_is_cut_to_the_screen_and_shown_whole_on_request() {
    let program = Program::new();
    let header = with_metadata(&[
        pair("format", "pt"),
        pair("ss_tags", r#"{"10_cat": {"a": 1.50, "b": []}, "x": "{not \u202e json}"}"#),
        pair("long", &"word ".repeat(100)),
        pair("lines", "one\n\ntwo\u{1b}[2J\u{2028}"),
        pair("key\u{7f}", ""),
    ]);
    program.file("m.safetensors", &header, 8);
    assert_snapshot!(program.shown(&["info", "m.safetensors"]), @"");
    assert_snapshot!(program.shown(&["info", "--metadata", "m.safetensors"]), @"");
}

#[test]
fn large_metadata_does_not_flood() {
    let program = Program::new();
    let many: Vec<_> = (0..20_000).map(|number| pair(&format!("key_{number}"), "value")).collect();
    program.file("many.safetensors", &with_metadata(&many), 8);
    program.file("long.safetensors", &with_metadata(&[pair("k", &"v".repeat(5_000_000))]), 8);
    for name in ["many.safetensors", "long.safetensors"] {
        let shown = program.shown(&["info", name]);
        assert!(shown.lines().count() < 28, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}

#[test]
fn metadata_that_all_files_have_is_shown_once() {
    let program = Program::new();
    for (number, title) in [(1, "x"), (2, "x"), (3, "y")] {
        let header = with_metadata(&[pair("format", "pt"), pair("title", title)]);
        let header = header.replace("\"a\"", &format!("\"{number}\""));
        program.file(format!("m-0000{number}-of-00003.safetensors"), &header, 8);
    }
    assert_snapshot!(program.shown(&["info", "."]), @"");
}

/// Checks a document against its schema.
fn valid(report: &Value) {
    let path = repository("docs/schemas/weigh.info.1.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(report).map(|it| it.to_string()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(report["schema"], "weigh.info/1");
}

#[test]
fn the_document_keeps_to_its_schema() {
    let program = Program::new();
    let (examples, cases) = (repository("examples"), repository("conformance/format/cases"));
    for (path, codes) in [(examples, [0, 0]), (cases, [1, 1]), (program.path("nonesuch"), [2, 2])] {
        let output = program.run(&["info".as_ref(), "--json".as_ref(), path.as_os_str()]);
        assert!(codes.contains(&output.status.code().unwrap()), "{}", path.display());
        valid(&serde_json::from_slice(&output.stdout).unwrap());
    }
}

#[test]
fn the_document_has_the_numbers() {
    let report: Value = serde_json::from_str(&example(&["info", "--json", "quantized", "tiny"])).unwrap();
    valid(&report);
    let [quantized, tiny] = [0, 1].map(|number| &report["checkpoints"][number]);
    assert_snapshot!(quantized["parameters"].to_string(), @"");
    assert_snapshot!(quantized["traits"][0].to_string(), @"");
    assert_snapshot!(tiny["totals"].to_string(), @"");
    assert_snapshot!(tiny["dtypes"].to_string(), @"");
    assert_snapshot!(tiny["largest"][0].to_string(), @"");
    assert_snapshot!(tiny["index"].to_string(), @"");
    assert_snapshot!(tiny["metadata"][0].to_string(), @"");
}

#[test]
fn text_from_files_reaches_no_output_as_itself() {
    let program = Program::new();
    let header = with_metadata(&[pair("\u{202e}k\u{9b}", "v\u{1b}]0;t\u{7}")]);
    let header = header.replace("\"a\"", "\"a\u{202e}\u{7f}\\u001b\"");
    program.file("m.safetensors", &header, 8);
    for flags in [&["info"][..], &["info", "--json"], &["info", "--metadata"]] {
        let output = program.run(&[flags, &["m.safetensors"]].concat());
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let unsafe_to_print = |it: &char| *it != '\n' && weigh::format::text::is_unsafe_to_print(*it);
        assert_eq!(text.chars().find(unsafe_to_print), None, "{flags:?}: {text}");
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let program = Program::new();
    let header = with_metadata(&[pair("k", &"v".repeat(1_000_000))]);
    program.file("m.safetensors", &header, 8);
    let mut command = program.command(&["info", "--metadata", "m.safetensors"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
