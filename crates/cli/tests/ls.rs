//! `weigh ls`, run as a program.

mod program;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;

/// A model of two shards, named in an index, whose blocks are not in order.
fn model() -> Program {
    let program = Program::new();
    program.file(
        "model-00001-of-00002.safetensors",
        concat!(
            r#"{"layers.10.w":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]},"#,
            r#""layers.2.w":{"dtype":"BF16","shape":[4,8],"data_offsets":[64,128]},"#,
            r#""layers.2.scale":{"dtype":"F32","shape":[],"data_offsets":[128,132]}}"#,
        ),
        132,
    );
    program.file(
        "model-00002-of-00002.safetensors",
        concat!(
            r#"{"embed":{"dtype":"BF16","shape":[32,16],"data_offsets":[0,1024]},"#,
            r#""empty":{"dtype":"I64","shape":[0,7],"data_offsets":[1024,1024]}}"#,
        ),
        1024,
    );
    let index = r#"{"weight_map":{
        "embed":"model-00002-of-00002.safetensors",
        "empty":"model-00002-of-00002.safetensors",
        "layers.10.w":"model-00001-of-00002.safetensors",
        "layers.2.w":"model-00001-of-00002.safetensors",
        "layers.2.scale":"model-00001-of-00002.safetensors"}}"#;
    std::fs::write(program.path("model.safetensors.index.json"), index).unwrap();
    program
}

/// Names that would do things to a terminal, and one that is longer than a line.
fn odd_names() -> Program {
    let program = Program::new();
    let long = "long.".repeat(30);
    let header = format!(
        "{{{},{},{},{},{}}}",
        r#""\u001b[31mred\u001b[0m\r\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#,
        "\"a\u{202e}b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}",
        r#""a, \"quoted\" \\ name":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}"#,
        "\"ключ\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}",
        format_args!(r#""{long}":{{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}"#),
    );
    program.file("odd.safetensors", &header, 5);
    program
}

/// A file that ends early, of which some entries cannot be read.
fn damaged() -> Program {
    let program = Program::new();
    program.file(
        "damaged.safetensors",
        concat!(
            r#"{"whole":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"#,
            r#""cut":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"#,
            r#""dtype":{"dtype":"I4","shape":[4],"data_offsets":[8,10]},"#,
            r#""shape":{"dtype":"U8","shape":"4","data_offsets":[10,14]},"#,
            r#""offsets":{"dtype":"U8","shape":[4]},"#,
            r#""nothing":{}}"#,
        ),
        5,
    );
    program
}

#[test]
fn a_line_a_tensor_in_natural_order() {
    assert_snapshot!(model().shown(&["ls", "."]), @"");
}

#[test]
fn the_long_form_says_where_the_bytes_are() {
    assert_snapshot!(model().shown(&["ls", "-l", "--bytes", "."]), @"");
}

#[test]
fn every_order_and_its_reverse() {
    let program = model();
    let names = |arguments: &[&str]| {
        let output = program.run(&[&["ls", "."], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    for (arguments, want) in [
        (&[][..], "embed empty layers.2.scale layers.2.w layers.10.w"),
        (&["--sort=name", "--reverse"], "layers.10.w layers.2.w layers.2.scale empty embed"),
        (&["--sort=size"], "embed layers.2.w layers.10.w layers.2.scale empty"),
        (&["--sort=size", "-r"], "empty layers.2.scale layers.10.w layers.2.w embed"),
        (&["--sort=offset"], "layers.10.w layers.2.w layers.2.scale embed empty"),
        (&["--sort=dtype"], "embed layers.2.w layers.10.w layers.2.scale empty"),
        (&["--sort=dtype", "--limit=2"], "embed layers.2.w"),
        (&["-n", "0"], ""),
        (&["-n", "99", "-x", "l*"], "embed empty"),
    ] {
        assert_eq!(names(arguments), want, "{arguments:?}");
    }
}

#[test]
fn selectors_and_flags_narrow_each_other() {
    let program = model();
    for (arguments, want) in [
        (&[".:layers.*"][..], 3),
        (&[".:layers.*", "--tensors", "*.w"], 2),
        (&[".", "--tensors", "*.w", "--include", "embed"], 3),
        (&[".:layers.*", "--exclude", "*.w"], 1),
        (&[".", "--dtype", "f32"], 1),
        (&[".", "--dtype", "F32,i64"], 2),
        (&["model.safetensors.index.json:embed"], 1),
        (&["model-*.safetensors:*e*"], 4),
        (&["model-00001-of-00002.safetensors:*.w"], 2),
    ] {
        let output = program.run(&[&["ls", "--jsonl"], arguments].concat());
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shown.lines().count(), want, "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn what_matches_nothing_is_a_finding_with_help() {
    let program = model();
    let shown = |arguments: &[&str]| program.shown(&[&["ls"], arguments].concat());
    assert_snapshot!(shown(&[".:layers.2.q"]), @"");
    assert_snapshot!(shown(&[".:layers"]), @"");
    assert_snapshot!(shown(&[".", "-i", "*.w", "-i", "*.zzz"]), @"");
    assert_snapshot!(shown(&[".", "--dtype", "F16,F64"]), @"");
    assert_snapshot!(shown(&[".:*.w", "--tensors", "embed"]), @"");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let program = model();
    let shown = |arguments: &[&str]| program.shown(&[&["ls"], arguments].concat());
    assert_snapshot!(shown(&[".:*["]), @"");
    assert_snapshot!(shown(&[".", "--dtype", "bfloat16"]), @"");
    assert_snapshot!(shown(&[".", "--dtype", "I4"]), @"");
    assert_snapshot!(shown(&[".", "--json", "--csv"]), @"");
    assert_snapshot!(shown(&[".", "--json", "--long"]), @"");
}

#[test]
fn several_checkpoints_have_a_heading_each_and_failures_do_not_end_the_run() {
    let program = Program::new();
    let header = r#"{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    for name in ["unet/model.safetensors", "vae/model.safetensors"] {
        program.file(name, header, 1);
    }
    assert_snapshot!(program.shown(&["ls", "absent", "."]), @"");
    assert_snapshot!(program.shown(&["ls", "--csv", "absent", "vae", "unet:w"]), @"");
    assert_snapshot!(program.shown(&["ls", "--json", "absent", "vae"]), @"");
}

#[test]
fn text_from_a_file_is_escaped_and_one_long_name_pads_no_line() {
    let program = odd_names();
    assert_snapshot!(program.shown(&["ls", "."]), @"");
    assert_snapshot!(program.shown(&["ls", "--csv", "."]), @"");
    assert_snapshot!(program.shown(&["ls", "--jsonl", "."]), @"");
}

#[test]
fn names_in_json_read_back_as_they_are() {
    let program = odd_names();
    let output = program.run(&["ls", "--json", "."]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    let document: Value = serde_json::from_str(&text).unwrap();
    let names = document["checkpoints"][0]["tensors"].as_array().unwrap();
    let names: Vec<&str> = names.iter().map(|tensor| tensor["name"].as_str().unwrap()).collect();
    for name in ["\u{1b}[31mred\u{1b}[0m\r\n", "a\u{202e}b", "a, \"quoted\" \\ name", "ключ"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn damaged_tensors_are_marked() {
    let program = damaged();
    assert_snapshot!(program.shown(&["ls", "."]), @"");
    assert_snapshot!(program.shown(&["ls", "--csv", "."]), @"");
    assert_snapshot!(String::from_utf8(program.run(&["ls", "-l", "."]).stdout).unwrap(), @"");
    assert_snapshot!(String::from_utf8(program.run(&["ls", "--jsonl", "."]).stdout).unwrap(), @"");
}

#[test]
fn tensors_of_a_missing_shard_are_listed_as_the_index_names_them() {
    let program = model();
    std::fs::remove_file(program.path("model-00002-of-00002.safetensors")).unwrap();
    assert_snapshot!(program.shown(&["ls", "-l", "."]), @"");
}

#[test]
fn a_file_that_is_something_else_is_a_finding() {
    let program = Program::new();
    std::fs::write(program.path("model.safetensors"), "<!DOCTYPE html><html>").unwrap();
    assert_snapshot!(program.shown(&["ls", "model.safetensors"]), @"");
}

#[test]
fn colour_is_only_around_cells() {
    let shown = damaged().shown(&["ls", "--color=always", "-l", "."]);
    assert_snapshot!(shown.replace('\u{1b}', "ESC"), @"");
}

#[test]
fn documents_keep_to_their_schema() {
    let path = repository("docs/schemas/weigh.ls.1.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let (damaged, odd) = (damaged(), odd_names());
    let cases = repository("conformance/format/cases");
    let paths = [damaged.path("."), odd.path("."), repository("examples"), cases, "absent".into()];
    for path in paths {
        let output = model().run(&["ls".as_ref(), "--json".as_ref(), path.as_os_str()]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let faults: Vec<_> = validator.iter_errors(&document).map(|it| it.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:#?}", path.display());
    }
}

#[test]
fn csv_and_json_lines_have_the_same_tensors_as_the_document() {
    let cases = repository("conformance/format/cases");
    let run = |format: &str| {
        let program = Program::new();
        let output = program.run(&["ls".as_ref(), format.as_ref(), cases.as_os_str()]);
        String::from_utf8(output.stdout).unwrap()
    };
    let document: Value = serde_json::from_str(&run("--json")).unwrap();
    let tensors = document["checkpoints"].as_array().unwrap().iter().flat_map(|checkpoint| {
        let tensors = checkpoint["tensors"].as_array().unwrap().iter().cloned();
        tensors.map(|mut tensor| {
            tensor["path"] = checkpoint["path"].clone();
            tensor
        })
    });
    let tensors: Vec<Value> = tensors.collect();
    let lines = run("--jsonl");
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(tensors.len() > 500);
    assert_eq!(lines, tensors);
    assert_eq!(run("--csv").matches("\r\n").count(), tensors.len() + 1);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let program = Program::new();
    let entry = |number: usize| {
        let end = number + 1;
        format!(r#""w.{number}":{{"dtype":"U8","shape":[1],"data_offsets":[{number},{end}]}}"#)
    };
    let entries: Vec<String> = (0..20_000).map(entry).collect();
    program.file("many.safetensors", &format!("{{{}}}", entries.join(",")), 20_000);
    for format in [&[][..], &["--json"], &["--jsonl"], &["--csv"]] {
        let arguments = [&["ls", "many.safetensors"], format].concat();
        let mut command = program.command(&arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!line.is_empty());
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{format:?}");
    }
}
