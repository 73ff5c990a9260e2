//! Any bytes as a file that is scanned: read from a disk they say what they say in memory, and what is clean names and
//! calls nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh::torch::pickle::Limits;
use weigh::torch::scan::{ScanOptions, ScanReport, scan, scan_bytes};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        nodes: 1 << 20,
        opcodes: 1 << 20,
        pickle_bytes: 1 << 24,
        ratio: 8,
        ..Limits::default()
    };
    let options = ScanOptions { limits, unpacked: 1 << 24, ..ScanOptions::default() };
    let path = std::env::temp_dir().join(format!("weigh-fuzz-{}.pt", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let on_disk = scan(&path, &options).unwrap();
    let report = scan_bytes(&path, bytes.to_vec(), &options).unwrap();
    // It is named as a checkpoint: something is said of it.
    let verdict = report.verdict.unwrap();
    assert_eq!(said(&report), said(&on_disk));
    if report.is_clean() {
        assert!(report.calls.is_empty() && report.call_count == 0);
        assert!(report.globals.iter().all(|global| global.known), "{:?}", report.globals);
    }
    assert!(report.complete || verdict >= weigh::torch::pickle::Verdict::Call);
    for finding in report.findings.list().iter().filter(|finding| finding.place.member.is_none()) {
        let Some(span) = &finding.place.span else { continue };
        assert!(span.start <= span.end && span.end <= report.size.saturating_add(1), "{finding:?}");
    }
});

fn said(report: &ScanReport) -> impl PartialEq + std::fmt::Debug {
    let findings: Vec<_> =
        report.findings.list().iter().map(|finding| format!("{finding:?}")).collect();
    let counts =
        (report.call_count, report.pickles.clone(), report.globals.clone(), report.calls.clone());
    (report.kind, report.verdict, report.complete, counts, report.weights_only.clone(), findings)
}
