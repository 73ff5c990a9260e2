//! The shard index and the checks across a set: what each finding says, once.

use weigh_format::encode::{Declaration, Layout, encode};
use weigh_format::header::{Inspection, inspect};
use weigh_format::index::{Index, is_plain_file_name};
use weigh_format::shards::{Member, State, check_set, file_name, numbering};
use weigh_format::{Dtype, Findings, HashKey, Limits};

const KEY: HashKey = HashKey::new(1, 2);

fn shard(names: &[&str]) -> Inspection {
    let tensors: Vec<Declaration<'_>> =
        names.iter().map(|name| Declaration { name, dtype: Dtype::U8, shape: &[4] }).collect();
    let encoded = encode(&tensors, None, &Layout::default()).unwrap();
    let file_len = encoded.bytes.len() as u64 + encoded.data_len;
    inspect(encoded.bytes[8..].to_vec(), file_len, &Limits::default(), KEY)
}

fn said(findings: &Findings) -> Vec<String> {
    findings.list().iter().map(ToString::to_string).collect()
}

fn read(text: &str) -> (Index, Vec<String>) {
    let (index, findings) = Index::read(text.as_bytes(), KEY);
    let said = said(&findings);
    (index, said)
}

#[test]
fn a_sound_set_gives_no_finding() {
    let (index, findings) = read(
        r#" {"metadata": {"total_size": 12, "total_parameters": "12", "other": [1]},
             "weight_map": {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors",
                            "\u0063": "m-00001-of-00002.safetensors"}, "more": {}} "#,
    );
    assert_eq!(findings, [""; 0]);
    assert_eq!((index.len(), index.is_empty()), (3, false));
    assert_eq!((index.total_size(), index.total_parameters()), (Some(12), Some(12)));
    assert_eq!(index.files(), ["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"]);
    assert_eq!(index.get("c"), Some("m-00001-of-00002.safetensors"));
    assert_eq!(index.get("d"), None);
    let (one, two) = (shard(&["a", "c"]), shard(&["b"]));
    let members = [
        Member { file: "m-00001-of-00002.safetensors", state: State::Read(&one) },
        Member { file: "m-00002-of-00002.safetensors", state: State::Read(&two) },
    ];
    assert_eq!(said(&check_set(Some(&index), &members, KEY)), [""; 0]);
}

#[test]
fn each_fault_across_a_set_is_told() {
    let (index, _) = read(
        r#"{"metadata": {"total_size": 99}, "weight_map": {"a": "m-00001-of-00003.safetensors",
            "b": "m-00002-of-00003.safetensors", "gone": "m-00001-of-00003.safetensors",
            "x": "m-00003-of-00003.safetensors"}}"#,
    );
    let (one, two) = (shard(&["a", "twice"]), shard(&["b", "twice", "extra"]));
    let mut members = vec![
        Member { file: "m-00001-of-00003.safetensors", state: State::Read(&one) },
        Member { file: "m-00002-of-00003.safetensors", state: State::Read(&two) },
        Member { file: "m-00003-of-00003.safetensors", state: State::Missing },
    ];
    let findings = check_set(Some(&index), &members, KEY);
    assert_eq!(
        said(&findings),
        [
            "error[index-shard-missing]: the file `m-00003-of-00003.safetensors` is not there",
            "error[index-tensor-missing]: tensor `gone` is not in `m-00001-of-00003.safetensors`, where the index says",
            "deviation[index-tensor-unmapped]: tensor `twice` of `m-00001-of-00003.safetensors` is not in the index",
            "deviation[index-tensor-unmapped]: tensor `extra` of `m-00002-of-00003.safetensors` is not in the index",
            "error[index-tensor-twice]: tensor `twice` is in `m-00001-of-00003.safetensors` and in `m-00002-of-00003.safetensors`",
            "deviation[index-tensor-unmapped]: tensor `twice` of `m-00002-of-00003.safetensors` is not in the index",
        ]
    );
    members.pop();
    let findings = said(&check_set(Some(&index), &members, KEY));
    let notes: Vec<_> = findings.into_iter().filter(|it| it.starts_with("note")).collect();
    assert_eq!(
        notes,
        [
            "note[index-total-size]: the index claims 99 bytes; the tensors have 20",
            "note[index-numbering]: the files are numbered of 3, but there are 2",
        ]
    );
}

#[test]
fn a_set_without_an_index_is_checked_against_itself() {
    let (one, two) = (shard(&["a"]), shard(&["a"]));
    let members = [
        Member { file: "m-00001-of-00002.safetensors", state: State::Read(&one) },
        Member { file: "n-00002-of-00002.safetensors", state: State::Read(&two) },
    ];
    assert_eq!(
        said(&check_set(None, &members, KEY)),
        [
            "error[index-tensor-twice]: tensor `a` is in `m-00001-of-00002.safetensors` and in `n-00002-of-00002.safetensors`",
            "note[index-numbering]: the files are not numbered as one set",
        ]
    );
}

#[test]
fn a_set_without_an_index_is_whole_only_with_all_its_numbers() {
    let one = shard(&["a"]);
    let named = |file| Member { file, state: State::Read(&one) };
    let members = [named("m-00002-of-00003.safetensors")];
    assert_eq!(
        said(&check_set(None, &members, KEY)),
        ["error[index-shard-missing]: the files are numbered of 3, but there is 1"]
    );
}

#[test]
fn a_damaged_index_says_where() {
    for (text, want) in [
        ("", "error[index-syntax]: expected '{' at byte 0"),
        ("[]", "error[index-syntax]: expected '{' at byte 0"),
        ("{}", "error[index-syntax]: the index has no weight_map"),
        ("{\"weight_map\":{}} x", "error[index-syntax]: expected nothing more at byte 18"),
        ("{\"weight_map\":{\"a\":1}}", "error[index-syntax]: expected a file name at byte 19"),
        ("{\"weight_map\":[]}", "error[index-syntax]: expected '{' at byte 14"),
        (
            "{\"weight_map\":{\"a\":\"f\",\"\\u0061\":\"f\"}}",
            "error[duplicate-key]: `a` comes twice in the index, at bytes 15 and 23",
        ),
        (
            "{\"x\":1,\"\\u0078\":2,\"weight_map\":{}}",
            "error[duplicate-key]: `x` comes twice in the index, at bytes 1 and 7",
        ),
        (
            "{\"metadata\":{\"q\":1,\"q\":2},\"weight_map\":{}}",
            "error[duplicate-key]: `q` comes twice in the index, at bytes 13 and 19",
        ),
        ("\u{feff}{\"weight_map\":{}}", "error[index-syntax]: expected '{' at byte 0"),
        (
            "{\"weight_map\":{},\"weight_map\":{}}",
            "error[duplicate-key]: `weight_map` comes twice in the index, at bytes 1 and 17",
        ),
        (
            "{\"weight_map\":{\"a\":\"../f\",\"b\":\"../f\"}}",
            "error[index-path]: the index names `../f`, which is not a plain file name",
        ),
    ] {
        assert_eq!(read(text).1, [want], "{text}");
    }
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert_eq!(
        read(&deep).1,
        ["error[index-syntax]: brackets nest more than 32 levels deep at byte 36"]
    );
    let (_, findings) = Index::read(b"{\"weight_map\xff\":{}}", KEY);
    assert_eq!(said(&findings), ["error[index-syntax]: the index is not UTF-8 from byte 12 on"]);
}

#[test]
fn only_a_plain_name_stays_in_the_folder() {
    for name in ["model.safetensors", "a b", "ключ", "..a", "%2e%2e%2f", "console.x"] {
        assert!(is_plain_file_name(name), "{name}");
    }
    assert!(is_plain_file_name(&"x".repeat(255)) && !is_plain_file_name(&"x".repeat(256)));
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "/a",
        "..\\a",
        "C:a",
        "a\0",
        "a\u{1b}[2J",
        "\u{202e}a",
        "nul",
        "COM1.safetensors",
        "a.",
        "a ",
    ] {
        assert!(!is_plain_file_name(name), "{name}");
    }
}

#[test]
fn a_numbered_name_says_its_place() {
    let place = |file| numbering(file).map(|it| (it.prefix, it.number, it.total));
    for (file, want) in [
        ("model-00001-of-00003.safetensors", Some(("model", 1, 3))),
        ("model_000001_of_000003.safetensors", Some(("model", 1, 3))),
        ("00001-of-00003.safetensors", Some(("", 1, 3))),
        ("a-b-00002-of-00003.safetensors", Some(("a-b", 2, 3))),
        ("model.safetensors", None),
        ("model-1-of-x.safetensors", None),
        ("model-0000000001-of-2.safetensors", None),
        ("model-00001-of-00003.bin", None),
    ] {
        assert_eq!(place(file), want, "{file}");
    }
}

#[test]
fn what_is_not_known_is_not_held_against_the_rest() {
    let text = r#"{"metadata":{"total_size":8},"weight_map":{"a":"m-00001-of-00002.safetensors",
        "b":"m-00002-of-00002.safetensors"}}"#;
    let (index, _) = read(text);
    let one = shard(&["a"]);
    let members = [
        Member { file: "m-00001-of-00002.safetensors", state: State::Read(&one) },
        Member { file: "m-00002-of-00002.safetensors", state: State::Unread },
    ];
    assert_eq!(said(&check_set(Some(&index), &members, KEY)), [""; 0]);
    let (cut, findings) = read(&text[..text.len() - 50]);
    assert!(!cut.is_complete() && findings.len() == 1, "{findings:?}");
    assert_eq!(said(&check_set(Some(&cut), &members[..1], KEY)).len(), 1);
}

#[test]
fn a_total_that_is_no_number_is_told_from_one_that_is_not_there() {
    let one = shard(&["a"]);
    let members = [Member { file: "m.safetensors", state: State::Read(&one) }];
    for (total, want) in [
        (
            "8.0",
            "note[index-total-size]: the index's total_size is not a whole number of bytes; the tensors have 4",
        ),
        ("5", "note[index-total-size]: the index claims 5 bytes; the tensors have 4"),
    ] {
        let (index, _) = read(&format!(
            "{{\"metadata\":{{\"total_size\":{total}}},\"weight_map\":{{\"a\":\"m.safetensors\"}}}}"
        ));
        assert_eq!(said(&check_set(Some(&index), &members, KEY)), [want]);
    }
}

#[test]
fn file_names_are_numbered_as_they_are_read() {
    for (number, count, want) in [
        (1, 1, "model.safetensors"),
        (1, 2, "model-00001-of-00002.safetensors"),
        (99_999, 99_999, "model-99999-of-99999.safetensors"),
        (1, 100_000, "model-000001-of-100000.safetensors"),
        (100_000, 100_000, "model-100000-of-100000.safetensors"),
    ] {
        let name = file_name("model", number, count);
        assert_eq!(name, want);
        assert!(is_plain_file_name(&name));
        let read = numbering(&name).map(|it| (it.prefix, it.number, it.total));
        assert_eq!(read, (count > 1).then_some(("model", number, count)));
    }
}
