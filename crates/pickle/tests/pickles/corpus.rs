//! The files of `conformance/checkpoints` that are pickles without a container.

use std::path::{Path, PathBuf};

use weigh_pickle::{Limits, Verdict, run_all};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/checkpoints")
}

#[test]
fn bare_pickles_have_the_verdicts_of_the_table() {
    let table = std::fs::read_to_string(folder().join("expected.tsv")).unwrap();
    let mut count = 0;
    for row in table.lines().skip(1) {
        let [file, scan, ..] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let is_bare = Path::new(file).extension().is_some_and(|extension| extension == "pkl")
            || file == "bad_named.safetensors";
        if !is_bare {
            continue;
        }
        count += 1;
        let bytes = std::fs::read(folder().join(file)).unwrap();
        let programs = run_all(&bytes, &Limits::default());
        let verdict = programs
            .iter()
            .map(weigh_pickle::Program::verdict)
            .fold(Verdict::DataOnly, Verdict::with);
        assert_eq!(verdict.name(), scan, "{file}");
    }
    assert_eq!(count, 11);
}
