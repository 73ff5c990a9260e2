use serde_json::Value;

use crate::program::{Program, repository};
use crate::schema;

/// File, verdict and note of every line of the table.
fn table() -> Vec<[String; 3]> {
    let table = repository("conformance/checkpoints/expected.tsv");
    let table = std::fs::read_to_string(table).unwrap();
    let line = |line: &str| {
        let [file, scan, _, note] = line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
        [file, scan, note].map(String::from)
    };
    table.lines().skip(1).map(line).collect()
}

fn scanned(path: &std::path::Path) -> (i32, Value) {
    let output = Program::new().run(&["scan".as_ref(), "--json".as_ref(), path.as_os_str()]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::check("weigh.scan.1.json", &document);
    (output.status.code().unwrap(), document["files"][0].clone())
}

#[test]
fn every_file_of_the_corpus_has_the_verdict_of_the_table() {
    let table = table();
    assert!(table.len() >= 33);
    for [file, want, note] in table {
        let (code, report) = scanned(&repository("conformance/checkpoints").join(&file));
        let verdict = report["verdict"].as_str().unwrap();
        assert!(want == "any" || verdict == want, "{file} ({note}): {verdict}, not {want}");
        let clean = verdict == "data-only";
        assert_eq!(code, i32::from(!clean), "{file}");
        assert_eq!(report["clean"], clean, "{file}");
        if verdict == "call" {
            let calls = report["calls"].as_array().unwrap();
            let name = if file == "unlisted.pkl" { "import_module" } else { "getpid" };
            assert!(calls.iter().any(|call| call["name"] == name), "{file}: {calls:?}");
        }
        if verdict == "error" {
            assert_eq!(report["complete"], false, "{file}");
        }
    }
}

#[test]
fn whether_weights_only_takes_a_file_is_told_with_where_it_stops() {
    for (file, taken, opcode, name) in [
        ("ok_zip.pt", true, None, None),
        ("ok_legacy.pt", true, None, None),
        ("bad_zip.pt", false, Some("GLOBAL"), Some("os.getpid")),
        ("bad_inst.pkl", false, Some("INST"), None),
        ("empty_args.pt", false, Some("REDUCE"), None),
        ("bad_tar.pt", false, None, None),
    ] {
        let (_, report) = scanned(&repository("conformance/checkpoints").join(file));
        let weights_only = &report["weights_only"];
        assert_eq!(weights_only["taken"], taken, "{file}");
        assert_eq!(weights_only["opcode"].as_str(), opcode, "{file}");
        assert_eq!(weights_only["name"].as_str(), name, "{file}");
        assert_eq!(weights_only["reason"].is_string(), !taken, "{file}");
    }
    let (_, report) = scanned(&repository("conformance/checkpoints/obj.npy"));
    assert!(report["weights_only"].is_null());
}
