use std::fs;
use std::path::PathBuf;

use weigh::torch::pickle::Verdict;
use weigh::torch::pickle::state::Source;
use weigh::torch::{ContainerKind, Place, TorchCheckpoint, TorchOptions};

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/checkpoints")
}

fn open(name: &str) -> Result<TorchCheckpoint, weigh::Error> {
    TorchCheckpoint::open(corpus().join(name), &TorchOptions::default())
}

#[test]
fn every_file_is_refused_or_opens_as_the_table_says() {
    let table = fs::read_to_string(corpus().join("expected.tsv")).unwrap();
    for line in table.lines().skip(1) {
        let [file, _, convert, note] = line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
        let opened = open(file).and_then(|checkpoint| {
            checkpoint.require(false)?;
            Ok(checkpoint)
        });
        match (convert, &opened) {
            ("ok", Ok(checkpoint)) => {
                assert_eq!(checkpoint.verdict(), Verdict::DataOnly, "{file}");
                assert!(!checkpoint.names().is_empty(), "{file}");
                for named in checkpoint.names() {
                    let tensor = checkpoint.tensor(named.tensor).unwrap();
                    let view = &tensor.dense().unwrap().view;
                    let Some(Place::File { start, end, deflated: false, .. }) =
                        checkpoint.stored(view.storage)
                    else {
                        panic!("{file}: {}", named.name)
                    };
                    assert!(view.span_in_storage().end <= end - start, "{file}: {}", named.name);
                    assert!(end <= checkpoint.source().len(), "{file}");
                }
            }
            // What has no data, or no tensor, is for the converter to refuse.
            ("refuse", Ok(_)) if ["meta.pt", "obj.npy"].contains(&file) => {}
            ("refuse", Err(_)) => {}
            _ => panic!("{file} ({note}): {opened:?}"),
        }
    }
}

#[test]
fn kinds_are_told_by_bytes() {
    for (file, kind) in [
        ("ok_zip.pt", ContainerKind::Zip),
        ("ok_legacy.pt", ContainerKind::Legacy),
        ("bad_tar.pt", ContainerKind::Tar),
        ("bad_named.safetensors", ContainerKind::Pickle),
        ("obj.npy", ContainerKind::NpyObjects),
    ] {
        assert_eq!(open(file).unwrap().kind(), kind, "{file}");
    }
    let error = open("bad.joblib").unwrap_err();
    assert_eq!(error.code(), "not-torch");
    assert!(error.to_string().ends_with("the file is packed as zlib: unpack it first"), "{error}");
}

#[test]
fn what_is_beside_the_state_dict_is_listed() {
    let checkpoint = open("ok_lightning.ckpt").unwrap();
    assert_eq!(*checkpoint.names_begin(), Source::Found("state_dict"));
    let left: Vec<_> = checkpoint.left_out().iter().map(|left| left.name.as_str()).collect();
    assert!(left.contains(&"optimizer_states"), "{left:?}");
}
