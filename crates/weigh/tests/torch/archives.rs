use std::fs;

use weigh::torch::pickle::Verdict;
use weigh::torch::scan::{ScanOptions, ScanReport, WeightsOnly, scan};

/// It calls `os.getpid`. Nothing here unpickles it.
const CALL: &[u8] = b"cos\ngetpid\n(tR.";
/// `{}`.
const DATA: &[u8] = b"\x80\x02}.";

/// A tar archive of these members.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(header);
        archive.extend(*content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn scanned(name: &str, bytes: &[u8]) -> ScanReport {
    scanned_with(name, bytes, &ScanOptions::default())
}

fn scanned_with(name: &str, bytes: &[u8], options: &ScanOptions) -> ScanReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    scan(&path, options).unwrap()
}

#[test]
fn every_member_is_looked_into_whatever_its_name() {
    for (name, content, want) in [
        ("model.pkl", CALL, Verdict::Call),
        ("readme.txt", CALL, Verdict::Call),
        ("weights", DATA, Verdict::DataOnly),
    ] {
        let report = scanned("a.tar", &tar(&[("notes.txt", b"hello there"), (name, content)]));
        assert_eq!(report.verdict, Some(want), "{name}: {report:?}");
        assert_eq!(report.pickles[0].member.as_deref(), Some(name));
    }
}

#[test]
fn archives_in_archives_are_followed_to_the_limit() {
    let mut archive = tar(&[("model.pkl", CALL)]);
    for depth in 1..=6 {
        archive = tar(&[("inner.tar", &archive)]);
        let report = scanned("outer.tar", &archive);
        let want = if depth <= 4 { Verdict::Call } else { Verdict::Error };
        assert_eq!(report.verdict, Some(want), "{depth}: {report:?}");
        let options = ScanOptions { nesting: 6, ..ScanOptions::default() };
        let report = scanned_with("outer.tar", &archive, &options);
        assert_eq!(report.verdict, Some(Verdict::Call), "{depth}");
    }
}

#[test]
fn bytes_that_begin_unlike_a_pickle_are_run_before_they_are_nothing() {
    // A string that is longer than what kinds are told by, dropped; then the call.
    for padding in [10, 2_000, 200_000] {
        let bytes = [b"V", "word ".repeat(padding / 5).as_bytes(), b"\n0", CALL].concat();
        let report = scanned("notes.txt", &bytes);
        assert_eq!(report.verdict, Some(Verdict::Call), "{padding}: {report:?}");
    }
    for text in [
        "# Notes\n\nThis is text.\n",
        "import os\nclass Model:\n    pass\n",
        "class = 1\nname = 2\n",
        "{\"a\": [1, 2]}",
        "",
    ] {
        let report = scanned("notes.txt", text.as_bytes());
        assert_eq!((report.verdict, report.complete), (None, true), "{text:?}: {report:?}");
    }
}

#[test]
fn a_file_that_is_named_as_a_checkpoint_and_is_none_is_never_passed_over() {
    for (name, want) in [
        ("model.pt", Some(Verdict::Error)),
        ("model.ckpt", Some(Verdict::Error)),
        ("pytorch_model.bin", Some(Verdict::Error)),
        ("model.safetensors", Some(Verdict::Error)),
        ("vocabulary.bin", None),
        ("readme.md", None),
    ] {
        let report = scanned(name, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
        assert_eq!(report.verdict, want, "{name}: {report:?}");
    }
}

#[test]
fn safetensors_have_the_verdict_of_their_check() {
    let file = |header: &str, data: &[u8]| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    };
    let header = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    for (bytes, want, kind) in [
        (file(header, b"abcd"), Verdict::DataOnly, "safetensors"),
        (file(&format!("{header}\n"), b"abcd"), Verdict::Ambiguous, "safetensors"),
        (file(header, b"abc"), Verdict::Error, "safetensors"),
        (file(header, b"abcde"), Verdict::Error, "safetensors"),
        (CALL.to_vec(), Verdict::Call, "pickle"),
    ] {
        let report = scanned("model.safetensors", &bytes);
        assert_eq!((report.verdict, report.kind), (Some(want), kind), "{report:?}");
        assert_eq!(report.is_clean(), want == Verdict::DataOnly);
        let differs = report.findings.first("name-differs").is_some();
        assert_eq!(differs, kind == "pickle");
    }
}

#[test]
fn kinds_that_are_not_looked_into_are_errors() {
    for bytes in [&b"\x89HDF\r\n\x1a\n\0\0\0\0"[..], b"GGUF\x03\0\0\0\0\0\0\0"] {
        let report = scanned("model.bin", bytes);
        assert_eq!((report.verdict, report.complete), (Some(Verdict::Error), false));
        assert!(report.findings.first("not-opened").is_some());
    }
}

#[test]
fn where_weights_only_stops_is_told() {
    let report = scanned("model.pkl", b"\x80\x04\x95\x02\0\0\0\0\0\0\0}.");
    let Some(WeightsOnly::Refused(refused)) = &report.weights_only else { panic!("{report:?}") };
    assert_eq!((refused.offset, refused.opcode), (Some(2), Some("FRAME")));
    let report = scanned("model.pkl", CALL);
    let Some(WeightsOnly::Refused(refused)) = &report.weights_only else { panic!("{report:?}") };
    assert_eq!(refused.name.as_deref(), Some("os.getpid"));
}
