//! What a small file may cost, and how a scan is stopped.

use std::io::Write;

use weigh::Error;
use weigh::io::Cancel;
use weigh::torch::pickle::Verdict;
use weigh::torch::scan::{ScanOptions, ScanReport, scan_bytes};

use crate::made::zip;

const CALL: &[u8] = b"cos\ngetpid\n(tR.";

fn scanned(name: &str, bytes: Vec<u8>) -> ScanReport {
    scan_bytes(name, bytes, &ScanOptions::default()).unwrap()
}

fn gzip(pieces: &[(&[u8], usize)]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for (bytes, times) in pieces {
        for _ in 0..*times {
            packed.write_all(bytes).unwrap();
        }
    }
    packed.finish().unwrap()
}

fn member(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    zip(&[(name.into(), bytes)], true)
}

fn npy(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len() + 1).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.push(b'\n');
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// The code of what could not be read.
fn unread(report: &ScanReport) -> Option<String> {
    let finding = report.findings.first("unreadable")?;
    let code = finding.evidence.iter().find(|(name, _)| *name == "code")?;
    Some(format!("{:?}", code.1))
}

#[test]
fn a_file_unpacks_to_16_mib_and_32_times_its_size_and_no_more() {
    let zeros = vec![0; 1 << 20];
    let mebibytes = |count: usize| gzip(&[(&zeros, count)]);
    for (packed, fits) in [
        (mebibytes(16), true),
        (mebibytes(64), false),
        (member("a", vec![0; 16 << 20]), true),
        (member("a", vec![0; 64 << 20]), false),
        // In one another it is one sum.
        (gzip(&[(&mebibytes(15), 1)]), true),
        (zip(&[("a".into(), mebibytes(15)), ("b".into(), mebibytes(15))], false), false),
    ] {
        let report = scanned("a.bin", packed);
        assert_eq!(report.complete, fits, "{report:?}");
        if !fits {
            assert_eq!(report.verdict, Some(Verdict::Error));
            assert_eq!(unread(&report).unwrap(), "Text(\"limit-ratio\")", "{report:?}");
        }
    }
    let options = ScanOptions { unpacked: 1 << 30, ..ScanOptions::default() };
    let raised = weigh::torch::pickle::Limits { ratio: 2000, ..options.limits };
    let options = ScanOptions { limits: raised, ..options };
    assert!(scan_bytes("a.bin", mebibytes(64), &options).unwrap().complete);
}

#[test]
fn what_is_not_held_is_looked_at_all_the_same() {
    let zeros = vec![0; 1 << 20];
    // An archive at the end of what begins as nothing, farther away than what is held of the start.
    let archive = zip(&[("m.pkl".into(), CALL.to_vec())], false);
    let report = scanned("a", gzip(&[(&zeros, 6), (&archive, 1)]));
    assert_eq!(report.verdict, Some(Verdict::Call), "{report:?}");
    // A pickle that goes on for long before it calls.
    let mut long = b"(".to_vec();
    long.extend(b"I1\n0".repeat(200_000));
    long.extend(CALL);
    for packed in [gzip(&[(&long, 1)]), member("x", long)] {
        let report = scanned("a", packed);
        assert_eq!(report.verdict, Some(Verdict::Call), "{report:?}");
    }
}

#[test]
fn numbers_of_packed_arrays_are_not_unpacked_and_anything_else_is() {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (25165824,), }";
    let report = scanned("a.npz", member("a.npy", npy(header, 96 << 20)));
    assert!(report.is_clean(), "{report:?}");
    // One byte more is none of them.
    let report = scanned("a.npz", member("a.npy", npy(header, (96 << 20) + 1)));
    assert_eq!(report.verdict, Some(Verdict::Error));
    let header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }";
    let mut objects = npy(header, 0);
    objects.extend(CALL);
    let report = scanned("a.npz", member("a.npy", objects.clone()));
    assert_eq!(report.verdict, Some(Verdict::Call), "{report:?}");
    let report = scanned("a.npy.gz", gzip(&[(&objects, 1)]));
    assert_eq!(report.verdict, Some(Verdict::Call), "{report:?}");
}

#[test]
fn a_packed_pickle_has_opcodes_in_proportion_to_the_file() {
    let empty = |count: usize| gzip(&[(b"(", 1), (b"]", count), (b"l.", 1)]);
    assert!(scanned("a.pkl", empty(500_000)).complete);
    let report = scanned("a.pkl", empty(2_000_000));
    assert_eq!(report.verdict, Some(Verdict::Error));
    assert!(unread(&report).unwrap().contains("limit-"), "{report:?}");
}

#[test]
fn a_scan_that_is_cancelled_says_nothing() {
    let cancel = Cancel::new();
    let options = ScanOptions { cancel: Some(&cancel), ..ScanOptions::default() };
    assert!(scan_bytes("a.pkl", CALL.to_vec(), &options).is_ok());
    cancel.cancel();
    for bytes in [CALL.to_vec(), gzip(&[(CALL, 1)]), member("a", CALL.to_vec())] {
        assert!(matches!(scan_bytes("a.pkl", bytes, &options), Err(Error::Cancelled)));
    }
}

#[test]
fn functions_in_keras_models_are_named_with_their_places() {
    let config =
        br#"{"class_name": "Sequential", "config": {"layers": [{"class_name": "Lambda"}]}}"#;
    let mut hdf5 = b"\x89HDF\r\n\x1a\n".to_vec();
    hdf5.resize(3 << 20, 7);
    let start = hdf5.len() - 20;
    hdf5.truncate(start);
    hdf5.extend(config);
    hdf5.resize(hdf5.len() + 100, 0);
    let report = scanned("model.h5", hdf5.clone());
    // It is not looked into: what was found is not all.
    assert_eq!((report.verdict, report.complete), (Some(Verdict::Error), false));
    let finding = report.findings.first("keras-lambda").unwrap();
    let at = (start + config.len() - 26) as u64;
    assert_eq!(finding.place.span, Some(at..at + 22), "{finding:?}");
    let keras =
        zip(&[("config.json".into(), config.to_vec()), ("model.weights.h5".into(), hdf5)], false);
    let report = scanned("model.keras", keras);
    let members: Vec<_> = report
        .findings
        .list()
        .iter()
        .filter(|finding| finding.code() == "keras-lambda")
        .map(|finding| finding.place.member.clone().unwrap())
        .collect();
    assert_eq!(members, ["config.json", "model.weights.h5"]);
    let clean = b"\x89HDF\r\n\x1a\n{\"class_name\": \"Dense\"}".to_vec();
    let report = scanned("model.h5", clean);
    assert_eq!(report.verdict, Some(Verdict::Error));
    assert!(report.findings.first("keras-lambda").is_none());
}
