//! Names: shared, stripped, and of several files.

use std::fs;

use weigh::torch::{ConvertOptions, output_for};
use weigh::{Output, Shards};

use crate::made::{Made, Place, convert, integer, metadata, tensors, text};

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
        (r#"{"a": "m.bin", "b": "m.bin", "c": "o.bin"}"#, Some("io-missing")),
        ("{}", Some("index-empty")),
        // One file by two spellings; files elsewhere.
        (r#"{"a": "m.bin", "b": "./m.bin"}"#, Some("index-path")),
        (r#"{"a": "m.bin", "b": "x/../m.bin"}"#, Some("index-path")),
        (r#"{"a": "/m.bin", "b": "m.bin"}"#, Some("index-path")),
        (r#"{"a": "..", "b": "m.bin"}"#, Some("index-path")),
        (r#"{"a": "", "b": "m.bin"}"#, Some("index-path")),
        (r#"{"a": "m.bin", "b": "M.bin"}"#, Some("index-tensor-unnamed")),
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

/// A state dict with two values of one name beside its tensor.
fn with_values(second: u64) -> Made {
    let mut made = Made::default();
    let of = made.storage("ByteStorage", 1, vec![1]);
    made.view("w", of, 0, &[1], &[1]);
    let inner = [b"}(", text("b").as_slice(), &integer(1), &text("w"), b"K\x01u"].concat();
    made.value("a", inner).value("a.b", integer(second));
    made
}

#[test]
fn values_are_in_the_json_once_or_it_is_an_error() {
    let mut made = with_values(2);
    // The inner dictionary has no tensor: it is one value.
    let place = Place::new();
    let mut options =
        ConvertOptions { values: Some(place.path("v.json")), ..ConvertOptions::default() };
    options.torch.values = true;
    place.converted(&made.zip(), &options).unwrap();
    let json = fs::read_to_string(place.path("v.json")).unwrap();
    assert_eq!(json, "{\n  \"a\": {\"b\":1,\"w\":1},\n  \"a.b\": 2\n}\n");
    fs::remove_file(place.path("v.json")).unwrap();
    // With a tensor beside it the inner value has a dotted name of its own.
    let (_, tensor) = made.entries.remove(0);
    let inner = [b"}(", text("b").as_slice(), &integer(1), &text("w"), &tensor, b"u"].concat();
    for (other, code) in [(1, None), (2, Some("value-name-twice"))] {
        made.entries.clear();
        made.value("a", inner.clone()).value("a.b", integer(other));
        let _ = fs::remove_file(place.path("v.json"));
        let got = place.converted(&made.zip(), &options);
        assert_eq!(got.as_ref().map_err(weigh::Error::code).err(), code);
    }
    let json = fs::read_to_string(place.path("v.json"));
    assert!(json.is_err());
}

#[test]
fn values_do_not_go_to_a_file_that_is_read_or_written() {
    let place = Place::new();
    let input = place.file("in.pt", &with_values(2).zip());
    let output = Output::File(place.path("out.safetensors"));
    for (values, code) in [
        ("in.pt", Some("read-and-written")),
        ("./in.pt", Some("read-and-written")),
        ("out.safetensors", Some("same-target")),
        ("./out.safetensors", Some("same-target")),
        ("values.json", None),
    ] {
        let values = Some(place.path("").join(values));
        let mut options = ConvertOptions { values, ..ConvertOptions::default() };
        options.torch.values = true;
        options.write.replace = true;
        let got = convert(&input, &output, &options);
        assert_eq!(got.as_ref().map_err(weigh::Error::code).err(), code);
    }
    assert_eq!(place.names(), ["in.pt", "out.safetensors", "values.json"]);
}

#[test]
fn a_file_without_a_tensor_is_an_error_unless_its_state_dict_is_empty() {
    let mut made = Made::default();
    let place = Place::new();
    let empty = place.converted(&made.zip(), &ConvertOptions::default()).unwrap();
    assert!(empty.is_empty());
    made.value("epoch", integer(3));
    let error = place.converted(&made.zip(), &ConvertOptions::default()).unwrap_err();
    assert_eq!(error.code(), "no-tensor");
}

#[test]
fn what_is_written_is_a_file_or_a_folder_by_one_rule() {
    let place = Place::new();
    for (input, output, most, is_folder) in [
        ("a.pt", "out.safetensors", None, false),
        ("a.pt", "out", None, false),
        ("a.pt", "out/", None, true),
        ("a.pt", "", None, true),
        ("a.pt", "out", Some(5), true),
        ("a.bin.index.json", "out.safetensors", None, false),
        ("a.bin.index.json", "out.npz", None, false),
        ("a.bin.index.json", "out", None, true),
    ] {
        let got = output_for(&place.path(input), &place.path(output), None, most);
        assert_eq!(matches!(got, Output::Folder { .. }), is_folder, "{input} {output}");
    }
}
