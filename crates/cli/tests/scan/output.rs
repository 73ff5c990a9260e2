use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Program, repository};

#[test]
fn a_log_of_sarif_has_rules_results_and_artifacts() {
    let folder = repository("conformance/checkpoints");
    let program = Program::new();
    let output = program.run(&["scan".as_ref(), "--sarif".as_ref(), folder.as_os_str()]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() > 30);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"];
        assert!(place["uri"].as_str().unwrap().contains("conformance/checkpoints/"));
    }
    let call = results.iter().find(|result| {
        result["ruleId"] == "foreign-call" && result.to_string().contains("bad_zip.pt")
    });
    let place = &call.unwrap()["locations"][0];
    assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "ok_zip/data.pkl");
    assert_eq!(place["physicalLocation"]["region"]["byteOffset"], 12);
    let artifacts = run["artifacts"].as_array().unwrap();
    let bad = artifacts.iter().find(|it| it["location"].to_string().contains("bad_raw.pkl"));
    assert_eq!(bad.unwrap()["properties"]["verdict"], "call");
    assert_eq!(run["invocations"][0]["exitCode"], 1);
}

#[test]
fn text_from_files_reaches_no_output_as_itself() {
    let program = Program::new();
    // A name of a module, a name of a member, a name of a file.
    let pickle = "c\u{1b}[31mos\u{202e}\nget\u{7f}pid\u{9b}[x](http://y)\n(tR.";
    let mut archive = vec![0; 512];
    let member = "a\u{1b}[31m\u{202e}\n";
    archive[..member.len()].copy_from_slice(member.as_bytes());
    archive[124..135].copy_from_slice(format!("{:011o}", pickle.len()).as_bytes());
    archive[148..156].fill(b' ');
    archive[156] = b'0';
    archive[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = archive.iter().map(|byte| u32::from(*byte)).sum();
    archive[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(pickle.as_bytes());
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    let name = if cfg!(unix) { "b \u{1b}[31m\u{202e}.pt" } else { "b.pt" };
    fs::write(program.path(name), archive).unwrap();
    fs::write(program.path("c.pkl"), pickle).unwrap();
    for format in ["text", "json", "sarif"] {
        let output = program.run(&["scan", "--format", format, "."]);
        assert_eq!(output.status.code(), Some(1), "{format}");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let raw =
            text.chars().find(|it| *it != '\n' && weigh::format::text::is_unsafe_to_print(*it));
        assert_eq!(raw, None, "{format}: {text}");
        assert!(text.contains("\\u202e"), "{format}: {text}");
    }
}

#[test]
fn a_closed_pipe_does_not_change_the_verdict() {
    let program = Program::new();
    fs::write(program.path("clean.pkl"), b"\x80\x02}.").unwrap();
    fs::write(program.path("call.pkl"), b"cos\ngetpid\n(tR.").unwrap();
    for format in ["text", "json", "sarif"] {
        for (name, want) in [("clean", 0), ("call", 1)] {
            let last = format!("{name}.pkl");
            // Enough output before the last file that it fits neither the program's buffer nor a pipe.
            let mut arguments = vec!["scan", "--format", format];
            arguments.extend(std::iter::repeat_n("clean.pkl", 4000));
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
fn a_rule_of_scan_is_explained() {
    let shown = Program::new().shown(&["check", "--explain", "foreign-call"]);
    assert!(shown.starts_with("exit 0") && shown.contains("of `weigh scan`"), "{shown}");
}
