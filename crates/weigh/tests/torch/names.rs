//! Names: shared, stripped, and of several files.

use std::fs;

use weigh::torch::ConvertOptions;
use weigh::{Output, Shards};

use crate::made::{Made, Place, convert, metadata, tensors};

/// Two names of one tensor, one of a part of it, and one of its own.
fn tied() -> Made {
    let mut made = Made::default();
    let of = made.storage("FloatStorage", 4, (0..64).collect());
    made.view("lm_head.weight", of, 0, &[4, 4], &[4, 1]);
    made.view("model.embed.weight", of, 0, &[4, 4], &[4, 1]);
    made.view("model.turned", of, 0, &[4, 4], &[1, 4]);
    made.view("model.part", of, 4, &[4], &[1]);
    made
}

#[test]
fn every_name_is_written_unless_it_is_asked_otherwise() {
    let (place, options) = (Place::new(), ConvertOptions::default());
    let input = place.file("in.pt", &tied().zip());
    let output = Output::File(place.path("out.safetensors"));
    let plan = convert(&input, &output, &options).unwrap();
    assert_eq!(tensors(&place.path("out.safetensors")).len(), 4);
    let cost = plan.cost();
    assert_eq!((cost.storages, cost.every_name, cost.once), (64, 208, 144));
    let same: Vec<_> = plan.tensors().iter().filter_map(|it| it.same_as.as_deref()).collect();
    assert_eq!(same, ["lm_head.weight"]);
}

#[test]
fn of_names_of_the_same_elements_one_is_written_and_the_metadata_has_the_others() {
    for (tied_keys, kept, dropped) in [
        (&[][..], "lm_head.weight", "model.embed.weight"),
        (&["lm_head.weight"], "model.embed.weight", "lm_head.weight"),
        (&["lm_head.weight", "model.embed.weight"], "lm_head.weight", "model.embed.weight"),
    ] {
        let place = Place::new();
        let tied_keys = tied_keys.iter().map(|key| String::from(*key)).collect();
        let options = ConvertOptions { dedupe: true, tied: tied_keys, ..ConvertOptions::default() };
        let got = place.converted(&tied().zip(), &options).unwrap();
        assert_eq!(
            got.keys().map(String::as_str).collect::<Vec<_>>(),
            [kept, "model.part", "model.turned"]
        );
        let metadata = metadata(&place.path("out.safetensors"));
        assert_eq!(metadata.get(dropped).map(String::as_str), Some(kept));
        assert_eq!(metadata.len(), 2);
    }
}

#[test]
fn prefixes_are_taken_off_and_names_stay_different() {
    let mut made = Made::default();
    let of = made.storage("ByteStorage", 1, vec![1, 2, 3]);
    for (place, name) in ["module.a", "module.model.b", "c"].iter().enumerate() {
        made.view(name, of, place as u64, &[1], &[1]);
    }
    let place = Place::new();
    let strip = |prefixes: &[&str]| {
        let strip = prefixes.iter().map(|prefix| String::from(*prefix)).collect();
        let options = ConvertOptions { strip, ..ConvertOptions::default() };
        place.converted(&made.zip(), &options)
    };
    for (prefixes, want) in [
        (&[][..], ["c", "module.a", "module.model.b"]),
        (&["module."], ["a", "c", "model.b"]),
        (&["module.model.", "module."], ["a", "b", "c"]),
    ] {
        let got = strip(prefixes).unwrap();
        assert_eq!(got.keys().map(String::as_str).collect::<Vec<_>>(), want);
    }
    let error = strip(&["module.a", "c"]).unwrap_err();
    assert_eq!(error.code(), "state-name-twice");
    assert!(error.to_string().contains("module.a and c would both"), "{error}");
}

fn shard(names: &[&str]) -> Vec<u8> {
    let mut made = Made::default();
    for (number, name) in names.iter().enumerate() {
        let of = made.storage("ByteStorage", 1, vec![u8::try_from(number).unwrap(); 10]);
        made.view(name, of, 0, &[10], &[1]);
    }
    made.zip()
}

#[test]
fn the_files_of_an_index_are_one_checkpoint_and_may_be_several_files_again() {
    let place = Place::new();
    place.file("pytorch_model-00001-of-00002.bin", &shard(&["a", "b"]));
    place.file("pytorch_model-00002-of-00002.bin", &shard(&["c"]));
    let index = r#"{"metadata": {"total_size": 30}, "weight_map": {
        "a": "pytorch_model-00001-of-00002.bin", "b": "pytorch_model-00001-of-00002.bin",
        "c": "pytorch_model-00002-of-00002.bin"}}"#;
    let index = place.file("pytorch_model.bin.index.json", index.as_bytes());
    let options = ConvertOptions::default();
    for (shards, files) in [(Shards::Keep, 2), (Shards::Most(10), 3), (Shards::Most(1000), 1)] {
        let folder = place.path("out");
        let _ = fs::remove_dir_all(&folder);
        let output = Output::Folder { path: folder.clone(), stem: None, shards };
        let plan = convert(&index, &output, &options).unwrap();
        assert_eq!(plan.files().count(), files);
        assert_eq!(plan.index().is_some(), files > 1);
        assert_eq!(tensors(&folder).keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
    // The folder stands for its index.
    let output = Output::File(place.path("one.safetensors"));
    convert(&place.path(""), &output, &options).unwrap();
    assert_eq!(tensors(&place.path("one.safetensors")).len(), 3);
}

#[test]
fn an_index_that_names_other_tensors_than_its_files_have_is_refused() {
    for (map, code) in [
        (r#"{"a": "m.bin", "b": "m.bin"}"#, None),
        (r#"{"a": "m.bin"}"#, Some("index-tensor-unnamed")),
        (r#"{"a": "m.bin", "b": "m.bin", "c": "m.bin"}"#, Some("index-tensor-missing")),
        (r#"{"a": "m.bin", "b": "n.bin"}"#, Some("index-tensor-unnamed")),
        (r#"{"a": "../m.bin", "b": "m.bin"}"#, Some("index-path")),
        (r#"{"a": "o.bin"}"#, Some("io-missing")),
    ] {
        let place = Place::new();
        place.file("m.bin", &shard(&["a", "b"]));
        place.file("n.bin", &shard(&["b"]));
        let index =
            place.file("x.bin.index.json", format!(r#"{{"weight_map": {map}}}"#).as_bytes());
        let output = Output::File(place.path("out.safetensors"));
        let got = convert(&index, &output, &ConvertOptions::default());
        assert_eq!(got.as_ref().map_err(weigh::Error::code).err(), code, "{map}");
        assert_eq!(place.path("out.safetensors").exists(), code.is_none());
    }
}
