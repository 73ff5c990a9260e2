//! `weigh check`, run as a program.

mod program;

use std::process::Stdio;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;
use weigh::torch::{pickle, rules as torch};

const SOUND: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}          "#;
const NOTE: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} "#;
const DEVIATION: &str = "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}\n";
const ERROR: &str = r#"{"a":{"dtype":"U8","shape":[8],"data_offsets":[2,8]}}"#;

/// A file of each verdict, and one with a note.
fn four() -> Program {
    let program = Program::new();
    program.file("sound.safetensors", SOUND, 8);
    program.file("note.safetensors", NOTE, 8);
    program.file("deviation.safetensors", DEVIATION, 8);
    program.file("error.safetensors", ERROR, 8);
    program
}

#[test]
fn each_file_has_a_verdict_and_help_comes_once() {
    let program = four();
    program.file("again.safetensors", ERROR, 8);
    let shown = program.shown(&["check", "."]);
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    ./again.safetensors: invalid
      error[size-mismatch] at 54..59: tensor `a` needs 8 bytes (8 x U8), but its offsets span 6
        help: The shape would fit with dtype F6_E2M3, F6_E3M2.
      error[data-gap] at 61..63: between the start and `a`, 2 bytes belong to no tensor
        help: Bytes that belong to no tensor can hide a payload: have the writer pack the data.
    ./deviation.safetensors: valid with deviations
      deviation[header-padding] at 61..62: the header is padded with white space other than spaces
        help: Have the writer pad with spaces (0x20).
    ./error.safetensors: invalid
      error[size-mismatch] at 54..59: tensor `a` needs 8 bytes (8 x U8), but its offsets span 6
      error[data-gap] at 61..63: between the start and `a`, 2 bytes belong to no tensor
    ./note.safetensors: valid
      1 note, shown with --notes
    ./sound.safetensors: valid
    5 files: 2 valid, 1 valid with deviations, 2 invalid
    -- stderr
    note: deviations refuse under the strict policy; --policy compatible takes them
    ");
    let shown = program.shown(&["check", "--notes", "note.safetensors"]);
    assert_snapshot!(shown, @"
    exit 0
    -- stdout
    note.safetensors: valid
      note[misaligned] at 63..71: tensors off a multiple of their element size: 1, the first is `a`
        help: A memory map cannot be viewed in place; loading copies instead.
    -- stderr
    ");
    let shown = program.shown(&["check", "deviation.safetensors"]);
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    deviation.safetensors: valid with deviations
      deviation[header-padding] at 61..62: the header is padded with white space other than spaces
        help: Have the writer pad with spaces (0x20).
    -- stderr
    note: deviations refuse under the strict policy; --policy compatible takes them
    ");
    let shown = program.shown(&["check", "--deny=note", "note.safetensors", "sound.safetensors"]);
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    note.safetensors: valid
      note[misaligned] at 63..71: tensors off a multiple of their element size: 1, the first is `a`
        help: A memory map cannot be viewed in place; loading copies instead.
    sound.safetensors: valid
    2 files: 2 valid
    -- stderr
    note: --deny note refuses files with notes
    ");
    let shown =
        program.shown(&["check", "--color=always", "note.safetensors", "error.safetensors"]);
    assert_snapshot!(shown.replace('\u{1b}', "ESC"), @"
    exit 1
    -- stdout
    note.safetensors: ESC[32mvalidESC[0m
      ESC[2m1 note, shown with --notesESC[0m
    error.safetensors: ESC[31minvalidESC[0m
      ESC[31merror[size-mismatch]ESC[0m at 54..59: tensor `a` needs 8 bytes (8 x U8), but its offsets span 6
        ESC[36mhelp:ESC[0m The shape would fit with dtype F6_E2M3, F6_E3M2.
      ESC[31merror[data-gap]ESC[0m at 61..63: between the start and `a`, 2 bytes belong to no tensor
        ESC[36mhelp:ESC[0m Bytes that belong to no tensor can hide a payload: have the writer pack the data.
    2 files: 1 valid, 1 invalid
    -- stderr
    ");
}

#[test]
fn policy_and_deny_decide_the_exit_code_and_nothing_else() {
    let program = four();
    for (flags, want) in [
        (&[][..], [0, 0, 1, 1]),
        (&["--policy=strict"], [0, 0, 1, 1]),
        (&["--policy=strict", "--deny=deviation"], [0, 0, 1, 1]),
        (&["--policy=strict", "--deny=note"], [0, 1, 1, 1]),
        (&["--policy=compatible"], [0, 0, 0, 1]),
        (&["--policy=compatible", "--deny=deviation"], [0, 0, 1, 1]),
        (&["--policy=compatible", "--deny=note"], [0, 1, 1, 1]),
    ] {
        let names =
            ["sound", "note", "deviation", "error"].map(|name| format!("{name}.safetensors"));
        for format in ["text", "json", "sarif"] {
            let codes = names.clone().map(|name| {
                let fixed = ["check", "--format", format, name.as_str()];
                let output = program.run(&[&fixed[..], flags].concat());
                output.status.code().unwrap()
            });
            assert_eq!(codes, want, "{flags:?} {format}");
        }
    }
}

#[test]
fn an_index_is_checked_with_its_files() {
    let program = Program::new();
    program.file("model-00001-of-00002.safetensors", SOUND, 8);
    program.file("model-00002-of-00002.safetensors", &SOUND.replace("\"a\"", "\"b\""), 8);
    let index = |map: &str| {
        std::fs::write(program.path("model.safetensors.index.json"), map).unwrap();
        program.shown(&["check", "--notes", "."])
    };
    let shown = index(
        r#"{"metadata":{"total_size":16},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}"#,
    );
    assert_snapshot!(shown, @"
    exit 0
    -- stdout
    ./model.safetensors.index.json: valid
    ./model-00001-of-00002.safetensors: valid
    ./model-00002-of-00002.safetensors: valid
    2 files: 2 valid
    -- stderr
    ");
    let shown = index(
        r#"{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00001-of-00002.safetensors","c":"../c.safetensors","d":"d.safetensors"}}"#,
    );
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    ./model.safetensors.index.json: invalid
      error[index-path] at 97..115: the index names `../c.safetensors`, which is not a plain file name
        help: A name that leaves the folder reads or fetches somebody else's file: do not use this index.
      error[index-shard-missing]: the file `d.safetensors` is not there
        help: Fetch the missing shard.
      error[index-tensor-missing]: tensor `b` is not in `model-00001-of-00002.safetensors`, where the index says
        help: The index and the shards are from different versions: fetch them again together.
      note[index-numbering]: the files are not numbered as one set
        help: A shard of another set may have been mixed in, or one may be missing.
    ./model-00001-of-00002.safetensors: valid
    ./model-00002-of-00002.safetensors: valid
    2 files: 2 valid; 1 set not valid
    -- stderr
    ");
    std::fs::remove_file(program.path("model.safetensors.index.json")).unwrap();
    std::fs::rename(
        program.path("model-00002-of-00002.safetensors"),
        program.path("model-00003-of-00003.safetensors"),
    )
    .unwrap();
    let shown = program.shown(&["check", "--notes", "."]);
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    ./model-00001-of-00002.safetensors (a numbered set of 1 file): invalid
      error[index-shard-missing]: the files are numbered of 2, but there is 1
        help: Fetch the missing shard.
    ./model-00001-of-00002.safetensors: valid
    ./model-00003-of-00003.safetensors (a numbered set of 1 file): invalid
      error[index-shard-missing]: the files are numbered of 3, but there is 1
    ./model-00003-of-00003.safetensors: valid
    2 files: 2 valid; 2 sets not valid
    -- stderr
    ");
}

#[test]
fn a_numbered_set_is_checked_as_one() {
    let program = Program::new();
    for number in [1, 3] {
        program.file(format!("m-0000{number}-of-00003.safetensors"), SOUND, 8);
    }
    let shown = program.shown(&["check", "--notes", "."]);
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    . (a numbered set of 2 files): invalid
      error[index-tensor-twice]: tensor `a` is in `m-00001-of-00003.safetensors` and in `m-00003-of-00003.safetensors`
        help: Readers disagree on which one counts: remove the stale shard.
      error[index-shard-missing]: the files are numbered of 3, but there are 2
        help: Fetch the missing shard.
    ./m-00001-of-00003.safetensors: valid
    ./m-00003-of-00003.safetensors: valid
    2 files: 2 valid; 1 set not valid
    -- stderr
    ");
}

#[test]
fn what_cannot_be_read_has_no_verdict() {
    let program = four();
    let shown = program.shown(&["check", "nonesuch", "sound.safetensors"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    sound.safetensors: valid
    -- stderr
    error: nonesuch: no such file or folder
      help: Check the spelling of the path.
    ");
    std::fs::create_dir(program.path("shard")).unwrap();
    let index =
        r#"{"metadata":{"total_size":8},"weight_map":{"a":"sound.safetensors","b":"shard"}}"#;
    std::fs::write(program.path("x.safetensors.index.json"), index).unwrap();
    let shown = program.shown(&["check", "x.safetensors.index.json"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    x.safetensors.index.json: no verdict, a file could not be read
    sound.safetensors: valid
    2 files: 1 valid, 1 not read; 1 set not valid
    -- stderr
    error: shard: is a folder
      help: Give a file in it.
    ");
    for format in ["json", "sarif"] {
        let output =
            program.run(&["check", "--format", format, "x.safetensors.index.json", "nonesuch"]);
        assert_eq!(output.status.code(), Some(2));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        if format == "json" {
            assert_eq!(report["schema"], "weigh.check/1");
            let checkpoint = &report["checkpoints"][0];
            assert_eq!(checkpoint["verdict"], Value::Null);
            assert_eq!(checkpoint["shards"][1]["verdict"], Value::Null);
            let codes = report["errors"].as_array().unwrap().iter().map(|it| &it["code"]);
            assert!(codes.eq(["io-missing", "io-is-folder"]));
        } else {
            let invocation = &report["runs"][0]["invocations"][0];
            assert_eq!(invocation["executionSuccessful"], false);
            assert_eq!(invocation["exitCode"], 2);
            let told = invocation["toolExecutionNotifications"].as_array().unwrap();
            let codes = told.iter().map(|it| &it["descriptor"]["id"]);
            assert!(codes.eq(["io-missing", "io-is-folder"]));
        }
    }
}

/// A header with so many tensors of an unknown field each.
fn many(count: usize) -> String {
    let entry = |number| {
        let (begin, end) = (number, number + 1);
        format!(r#""{number}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{end}],"x":0}}"#)
    };
    let entries: Vec<String> = (0..count).map(entry).collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn many_findings_are_counted_not_printed() {
    let program = Program::new();
    program.file("many.safetensors", &many(1_003), 1_003);
    let shown = program.shown(&["check", "many.safetensors"]);
    assert_snapshot!(shown, @"
    exit 1
    -- stdout
    many.safetensors: valid with deviations
      deviation[entry-field-unknown] at 60..63: tensor `0` has the unknown field `x`
        help: Readers ignore or refuse it: put such data into __metadata__.
      deviation[entry-field-unknown] at 118..121: tensor `1` has the unknown field `x`
      deviation[entry-field-unknown] at 176..179: tensor `2` has the unknown field `x`
      deviation[entry-field-unknown] at 234..237: tensor `3` has the unknown field `x`
      deviation[entry-field-unknown] at 292..295: tensor `4` has the unknown field `x`
      deviation[entry-field-unknown] at 350..353: tensor `5` has the unknown field `x`
      deviation[entry-field-unknown] at 408..411: tensor `6` has the unknown field `x`
      deviation[entry-field-unknown] at 466..469: tensor `7` has the unknown field `x`
      deviation[entry-field-unknown] at 524..527: tensor `8` has the unknown field `x`
      deviation[entry-field-unknown] at 583..586: tensor `9` has the unknown field `x`
      990 more entry-field-unknown; --format json has all that were kept
      3 more findings like these were counted, not kept
    -- stderr
    note: deviations refuse under the strict policy; --policy compatible takes them
    ");
    let output = program.run(&["check", "--json", "many.safetensors"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checkpoint = &report["checkpoints"][0];
    assert_eq!(checkpoint["findings"].as_array().unwrap().len(), 1000);
    assert_eq!(checkpoint["counts"]["deviations"], 1003);
    assert_eq!(checkpoint["dropped"], 3);
    let output = program.run(&["check", "--format=sarif", "many.safetensors"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = &report["runs"][0]["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(told["descriptor"]["id"], "findings-not-kept");
    assert_eq!(told["message"]["text"], "3 more findings were counted, not kept");
}

#[test]
fn the_document_has_a_verdict_for_each_checkpoint() {
    let program = four();
    let (examples, cases) = (repository("examples"), repository("conformance/format/cases"));
    for path in [program.path("."), examples, cases] {
        let output = program.run(&["check".as_ref(), "--json".as_ref(), path.as_os_str()]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["schema"], "weigh.check/1");
        let checkpoints = report["checkpoints"].as_array().unwrap();
        assert!(checkpoints.len() > 2);
        for checkpoint in checkpoints {
            let has = |count: &str| checkpoint["counts"][count].as_u64().unwrap() > 0;
            let want = match (has("errors"), has("deviations")) {
                (true, _) => "invalid",
                (_, true) => "valid with deviations",
                _ => "valid",
            };
            assert_eq!(checkpoint["verdict"], want);
            assert_eq!(checkpoint["refused"], want != "valid");
        }
    }
}

#[test]
fn a_finding_is_told_with_its_place_and_its_numbers() {
    let program = four();
    let output = program.run(&["check", "--json", "error.safetensors"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &report["checkpoints"][0]["findings"][0];
    assert_snapshot!(serde_json::to_string_pretty(finding).unwrap(), @r#"
    {
      "evidence": {
        "needed": 8,
        "spanned": 6
      },
      "file": "error.safetensors",
      "help": "The shape would fit with dtype F6_E2M3, F6_E3M2.",
      "id": "T7",
      "message": "tensor `a` needs 8 bytes (8 x U8), but its offsets span 6",
      "rule": "size-mismatch",
      "severity": "error",
      "span": [
        54,
        59
      ],
      "tensor": "a"
    }
    "#);
    let output = program.run(&["check", "--format=sarif", "error.safetensors"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &report["runs"][0];
    let result = &run["results"][0];
    assert_snapshot!(serde_json::to_string_pretty(result).unwrap(), @r#"
    {
      "level": "error",
      "locations": [
        {
          "logicalLocations": [
            {
              "fullyQualifiedName": "a",
              "kind": "tensor"
            }
          ],
          "physicalLocation": {
            "artifactLocation": {
              "uri": "error.safetensors"
            },
            "region": {
              "byteLength": 5,
              "byteOffset": 54
            }
          }
        }
      ],
      "message": {
        "text": "tensor `a` needs 8 bytes (8 x U8), but its offsets span 6"
      },
      "properties": {
        "evidence": {
          "needed": 8,
          "spanned": 6
        },
        "help": "The shape would fit with dtype F6_E2M3, F6_E3M2."
      },
      "ruleId": "size-mismatch",
      "ruleIndex": 26
    }
    "#);
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    let rule = &run["tool"]["driver"]["rules"][index];
    assert_snapshot!(serde_json::to_string_pretty(rule).unwrap(), @r#"
    {
      "defaultConfiguration": {
        "level": "error"
      },
      "help": {
        "text": "The dtype, the shape or the offsets are wrong: compare with the writer's."
      },
      "id": "size-mismatch",
      "properties": {
        "id": "T7"
      },
      "shortDescription": {
        "text": "data_offsets span exactly the bytes that dtype and shape need."
      }
    }
    "#);
    assert_snapshot!(serde_json::to_string_pretty(&run["artifacts"]).unwrap(), @r#"
    [
      {
        "length": 69,
        "location": {
          "uri": "error.safetensors"
        },
        "properties": {
          "verdict": "invalid"
        },
        "roles": [
          "analysisTarget"
        ]
      }
    ]
    "#);
}

#[cfg(unix)]
#[test]
fn text_from_files_reaches_no_output_as_itself() {
    let program = Program::new();
    let path = "a:b \u{1b}[31m\u{202e}%.safetensors";
    let header = "{\"[x](http://y)\u{7f}\u{202e}\\n\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[2,8]}}";
    program.file(path, header, 8);
    for format in ["text", "json", "sarif"] {
        let output = program.run(&["check", "--format", format, path]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8([output.stdout.clone(), output.stderr].concat()).unwrap();
        let raw =
            text.chars().find(|it| *it != '\n' && weigh::format::text::is_unsafe_to_print(*it));
        assert_eq!(raw, None, "{format}: {text}");
        if format == "sarif" {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let result = &report["runs"][0]["results"][0];
            let place = &result["locations"][0]["physicalLocation"]["artifactLocation"];
            assert_eq!(place["uri"], "a%3Ab%20%1B%5B31m%E2%80%AE%25.safetensors");
            let message = result["message"]["text"].as_str().unwrap();
            assert!(message.contains("\\[x\\](http://y)\\u007f\\u202e\\n"), "{message}");
        }
    }
}

#[test]
fn a_closed_pipe_does_not_change_the_verdict() {
    let program = four();
    program.file("many.safetensors", &many(1_000), 1_000);
    for format in ["text", "json", "sarif"] {
        for (name, want) in [("sound", 0), ("error", 1)] {
            let last = format!("{name}.safetensors");
            // Enough output before the last file that it fits neither the program's buffer nor a pipe.
            let mut arguments = vec!["check", "--policy=compatible", "--format", format];
            arguments.extend(["many.safetensors"; 100]);
            arguments.push(&last);
            let mut command = program.command(&arguments);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            let mut child = child.unwrap();
            drop(child.stdout.take());
            assert_eq!(child.wait().unwrap().code(), Some(want), "{format} {name}");
        }
    }
}

#[test]
fn usage_is_said_when_it_is_wrong() {
    let program = four();
    let shown = program.shown(&["check"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    -- stderr
    error: the following required arguments were not provided:
      <PATH>...

    Usage: weigh check <PATH>...

    For more information, try '--help'.
    ");
    let shown = program.shown(&["check", "sound.safetensors:a"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    -- stderr
    error: sound.safetensors: files are checked whole, not the tensors `a`
      help: Give the path alone.
    ");
    let shown = program.shown(&["check", "--format=markdown", "sound.safetensors"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    -- stderr
    error: --format markdown is for --rules
    ");
    let shown = program.shown(&["check", "--rules", "--format=sarif"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    -- stderr
    error: --format sarif is not for rules; give text or json
    ");
    let shown = program.shown(&["check", "--rules", "sound.safetensors"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    -- stderr
    error: the argument '--rules' cannot be used with '[PATH]...'

    Usage: weigh check --rules [PATH]...

    For more information, try '--help'.
    ");
}

#[test]
fn rules_are_listed_and_explained() {
    let program = Program::new();
    let table = program.run(&["check", "--rules"]);
    let table = String::from_utf8(table.stdout).unwrap();
    let tables = [
        weigh::format::rule::RULES,
        pickle::container::rules::RULES,
        pickle::rules::RULES,
        torch::RULES,
    ];
    assert_eq!(table.lines().count(), tables.iter().map(|rules| rules.len()).sum::<usize>());
    for rule in tables.into_iter().flatten() {
        assert!(table.contains(&format!(" {} ", rule.code)), "{}", rule.code);
        let shown = program.shown(&["check", "--explain", rule.code]);
        assert!(shown.starts_with("exit 0") && shown.contains(rule.help), "{}", rule.code);
    }
    let shown = program.shown(&["check", "--explain", "f9"]);
    assert_snapshot!(shown, @"
    exit 0
    -- stdout
    header-padding (F9): deviation, refuses a file under the strict policy
      rule: The header is padded with spaces only; NUL bytes are an error.
      help: Have the writer pad with spaces (0x20).
    -- stderr
    ");
    let shown = program.shown(&["check", "--explain", "data-gpa"]);
    assert_snapshot!(shown, @"
    exit 2
    -- stdout
    -- stderr
    error: no rule has the code or id `data-gpa`
      help: Did you mean `data-gap`, `data-alias`? --rules lists them all.
    ");
    for arguments in [&["check", "--rules", "--json"][..], &["check", "--explain=T9", "--json"]] {
        let output = program.run(arguments);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["schema"], "weigh.rules/1");
        assert!(!report["rules"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_page_of_rules_is_up_to_date() {
    let page = std::fs::read_to_string(repository("docs/rules.md")).unwrap();
    let output = Program::new().run(&["check", "--rules", "--format=markdown"]);
    let want = String::from_utf8(output.stdout).unwrap();
    assert!(page == want, "run `weigh check --rules --format markdown > docs/rules.md`");
}
