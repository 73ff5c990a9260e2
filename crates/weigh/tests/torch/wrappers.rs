use std::fs;

use weigh::torch::pickle::Verdict;
use weigh::torch::scan::{ScanOptions, ScanReport, scan};

/// A pickle that calls `os.getpid`, packed. Nothing here unpickles it.
const PACKED: [(&str, &str); 9] = [
    (
        "bzip2",
        "425a6839314159265359bb44645b000002d3800010004110000ea0cc0020003100d0014c4f41a6a0d70a4908cad5f177245385090bb44645b0",
    ),
    (
        "xz",
        "fd377a585a000004e6d6b4460200210116000000742fe5a301000e636f730a6765747069640a2874522e00004f2ddeda8afff0840001270fdf1afc6a1fb6f37d010000000004595a",
    ),
    ("lzma", "5d00008000ffffffffffffffff00319bcac6b209d73a1c08e11a487970585135662ffff9700000"),
    // The first member is a pickle of None: what is behind it counts.
    (
        "gzip",
        "1f8b0800000000000203f3d30300bb7df5f3020000001f8b08000000000002034bce2fe64a4f2d29c84ce1d22809d20300d08930590f000000",
    ),
    ("zlib", "789c4bce2fe64a4f2d29c84ce1d22809d203002a6704f3"),
    (
        "joblib ZF",
        "5a4630786620202020202020202020202020202020789c4bce2fe64a4f2d29c84ce1d22809d203002a6704f3",
    ),
    ("lz4", "04224d186040820f000080636f730a6765747069640a2874522e00000000"),
    ("zstd", "28b52ffd0438790000636f730a6765747069640a2874522e0944f411"),
    (
        "7z",
        "377abcaf271c0004685efe1f13000000000000003e00000000000000896dc7d501000e636f730a6765747069640a2874522e00010406000109130a0124f7fdf400070b010001212101160c0f00080a01d0893059000005011115006d006f00640065006c002e0070006b006c0000000000",
    ),
];

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap();
    (0..hexadecimal.len()).step_by(2).map(digit).collect()
}

fn scanned(bytes: &[u8], options: &ScanOptions) -> ScanReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.joblib");
    fs::write(&path, bytes).unwrap();
    scan(&path, options).unwrap()
}

#[test]
fn what_is_packed_is_unpacked_and_scanned() {
    for (name, packed) in PACKED {
        let report = scanned(&bytes(packed), &ScanOptions::default());
        assert_eq!(report.verdict, Some(Verdict::Call), "{name}: {report:?}");
        let call = &report.calls[0];
        assert_eq!(call.callee, Some(("os".into(), "getpid".into())), "{name}");
        assert!(call.member.as_ref().unwrap().starts_with(name), "{name}");
        assert!(report.complete, "{name}: {report:?}");
        assert!(report.findings.first("wrapped").is_some(), "{name}");
    }
}

#[test]
fn a_packed_file_that_is_cut_off_is_never_clean() {
    for (name, packed) in PACKED {
        let packed = bytes(packed);
        for end in 1..packed.len() {
            if (name, end) == ("gzip", 22) {
                // The end of its first member.
                continue;
            }
            let report = scanned(&packed[..end], &ScanOptions::default());
            assert!(!report.is_clean(), "{name} to {end}: {report:?}");
        }
    }
}

#[test]
fn what_follows_the_end_is_scanned_and_ambiguous() {
    // None, packed, and then a pickle that calls.
    let mut packed = bytes("789cf3d3030000cc007d");
    packed.extend(b"cos\ngetpid\n(tR.");
    let report = scanned(&packed, &ScanOptions::default());
    assert_eq!(report.verdict, Some(Verdict::Call));
    assert!(report.findings.first("wrapper-trailing-bytes").is_some(), "{report:?}");
}

#[test]
fn whatever_follows_is_noticed_in_every_format() {
    for (name, packed) in PACKED {
        let packed = [bytes(packed).as_slice(), b"cos\ngetpid\n(tR."].concat();
        let report = scanned(&packed, &ScanOptions::default());
        let tail = report.findings.first("wrapper-trailing-bytes").is_some();
        assert!(tail || !report.complete, "{name}: {report:?}");
    }
}

#[test]
fn unpacking_ends_at_the_limits() {
    for (name, packed) in PACKED {
        if name == "gzip" {
            continue;
        }
        let packed = bytes(packed);
        for (most, complete) in [(15, true), (14, false)] {
            let options = ScanOptions { unpacked: most, ..ScanOptions::default() };
            let report = scanned(&packed, &options);
            assert_eq!(report.complete, complete, "{name} {most}: {report:?}");
        }
    }
}

#[test]
fn a_format_that_is_not_unpacked_is_an_error() {
    let report = scanned(b"Rar!\x1a\x07\x01\x00rest", &ScanOptions::default());
    assert_eq!((report.verdict, report.complete), (Some(Verdict::Error), false));
}
