//! The corpus: what converts gives these bytes, what is refused says why and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use weigh::torch::ConvertOptions;
use weigh::{Error, Output};

use crate::made::{Place, convert, metadata, tensors};

fn corpus(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../conformance/checkpoints").join(name)
}

/// The names of the corpus, each with what converting it should come to.
fn expected() -> Vec<(String, String)> {
    let table = fs::read_to_string(corpus("expected.tsv")).unwrap();
    let rows = table.lines().skip(1).map(|row| {
        let mut cells = row.split('\t').map(String::from);
        (cells.next().unwrap(), cells.nth(1).unwrap())
    });
    rows.collect()
}

#[test]
fn what_converts_has_the_dtypes_the_shapes_and_the_bytes_that_torch_loads() {
    let want = fs::read(corpus("tensors.json")).unwrap();
    let want: serde_json::Value = serde_json::from_slice(&want).unwrap();
    let mut checked = 0;
    for (name, _) in expected().iter().filter(|(_, convert)| convert == "ok") {
        let place = Place::new();
        let output = place.path("out.safetensors");
        let options = ConvertOptions::default();
        convert(&corpus(name), &Output::File(output.clone()), &options).unwrap();
        let got: serde_json::Map<String, serde_json::Value> = tensors(&output)
            .into_iter()
            .map(|(name, (dtype, shape, bytes))| {
                let digest = Sha256::digest(&bytes);
                let digit = |number: u8| char::from_digit(number.into(), 16).unwrap();
                let digits = digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
                let sha256: String = digits.collect();
                let dtype = dtype.name();
                (name, serde_json::json!({"dtype": dtype, "shape": shape, "sha256": sha256}))
            })
            .collect();
        assert_eq!(Some(&serde_json::Value::Object(got)), want.get(name), "{name}");
        assert_eq!(
            metadata(&output).into_iter().collect::<Vec<_>>(),
            [("format".into(), "pt".into())]
        );
        checked += 1;
    }
    assert_eq!(checked, want.as_object().unwrap().len());
}

#[test]
fn what_is_refused_says_why_and_leaves_nothing_behind() {
    for (name, _) in expected().iter().filter(|(_, convert)| convert == "refuse") {
        let place = Place::new();
        let output = Output::File(place.path("out.safetensors"));
        let error = convert(&corpus(name), &output, &ConvertOptions::default()).unwrap_err();
        let is_typed = match &error {
            Error::TorchRefused { finding, .. } => finding.is_some() || name == "hugestr.pkl",
            Error::Unconvertible { tensors, .. } => !tensors.is_empty(),
            Error::Torch { error, .. } => !error.code.is_empty(),
            _ => false,
        };
        assert!(is_typed, "{name}: {error:?}");
        assert!(error.to_string().contains(name.as_str()), "{error}");
        assert!(place.names().is_empty(), "{name}: {:?}", place.names());
    }
}

#[test]
fn the_codes_of_what_is_refused_are_those_of_the_reason() {
    for (name, code) in [
        ("meta.pt", "meta"),
        ("collide.pt", "state-name-twice"),
        ("bad_zip.pt", "torch-refused"),
        ("case_zip.pt", "torch-refused"),
        ("bad.joblib", "not-torch"),
        ("zipbomb.pt", "limit-ratio"),
        ("empty_args.pt", "tensor-args"),
        ("obj.npy", "numpy-objects"),
    ] {
        let place = Place::new();
        let output = Output::File(place.path("out.safetensors"));
        let error = convert(&corpus(name), &output, &ConvertOptions::default()).unwrap_err();
        assert_eq!(error.code(), code, "{name}");
    }
}

#[test]
fn what_cannot_be_converted_is_left_out_on_request_and_listed() {
    let place = Place::new();
    let mut options = ConvertOptions::default();
    options.torch.partial = true;
    let output = place.path("out.safetensors");
    let plan = convert(&corpus("meta.pt"), &Output::File(output.clone()), &options).unwrap();
    let left: Vec<_> = plan.unconverted().iter().map(|it| (it.name.as_str(), it.code)).collect();
    assert_eq!((left.as_slice(), tensors(&output).len()), (&[("m", "meta")][..], 0));
}
