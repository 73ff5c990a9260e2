//! Any bytes as something packed, in every format, by the first byte: it is unpacked within its budget, nothing panics,
//! and what breaks off is never clean.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh::torch::pickle::{Limits, Verdict};
use weigh::torch::scan::{ScanOptions, scan_bytes};

/// What the formats begin with.
const BEGIN: [&[u8]; 10] = [
    b"",
    b"\x1f\x8b\x08\x00",
    b"BZh91AY&SY",
    b"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46",
    b"]\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff",
    b"x\x9c",
    b"ZF0xf               ",
    b"\x04\x22\x4d\x18",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c\x00\x04",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let file = [BEGIN[usize::from(*first) % BEGIN.len()], rest].concat();
    let limits = Limits {
        nodes: 1 << 20,
        opcodes: 1 << 20,
        pickle_bytes: 1 << 24,
        ratio: 8,
        ..Limits::default()
    };
    let options = ScanOptions { limits, unpacked: 1 << 22, ..ScanOptions::default() };
    let report = scan_bytes("a.bin", file, &options).unwrap();
    if report.verdict.is_some() {
        assert!(report.complete || report.verdict >= Some(Verdict::Call), "{report:?}");
    } else {
        assert!(report.complete && report.pickles.is_empty(), "{report:?}");
    }
});
