//! The zip files of `conformance/checkpoints`: names, shapes, dtypes and bytes are those of `tensors.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weigh_pickle::Limits;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::state::{Named, Options, Source, State, Why};
use weigh_pickle::tensor::TensorReader;
use weigh_pickle::transform::apply;

use super::sha256::sha256;
use super::{gathered, graph, names, state};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/checkpoints")
}

/// The members of a zip file that compresses nothing, without their folder.
fn members(file: &str) -> BTreeMap<String, Vec<u8>> {
    let bytes = fs::read(folder().join(file)).unwrap();
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let end = bytes.windows(4).rposition(|four| four == b"PK\x05\x06").unwrap();
    let mut at = number(end + 16, 4);
    let mut members = BTreeMap::new();
    for _ in 0..number(end + 10, 2) {
        let (size, name, extra) = (number(at + 24, 4), number(at + 28, 2), number(at + 30, 2));
        assert_eq!(number(at + 10, 2), 0, "stored");
        let local = number(at + 42, 4);
        let data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let path = std::str::from_utf8(&bytes[at + 46..at + 46 + name]).unwrap();
        let (_, path) = path.split_once('/').unwrap();
        members.insert(path.to_owned(), bytes[data..data + size].to_vec());
        at += 46 + name + extra + number(at + 32, 2);
    }
    members
}

fn pickle(file: &str) -> Vec<u8> {
    members(file)["data.pkl"].clone()
}

/// Names, dtypes, shapes and digests.
type Digests = BTreeMap<String, (String, Vec<u64>, String)>;

fn digests(file: &str) -> Digests {
    let members = members(file);
    let (graph, root) = graph(&members["data.pkl"]);
    let limits = Limits::default();
    let mut reader = TensorReader::new(&graph, &limits);
    let state = State::read(&mut reader, root, &Options::default(), &limits).unwrap();
    let mut digests = Digests::new();
    for named in &state.tensors {
        let tensor = reader.get(named.tensor).unwrap();
        let plain = tensor.plain().unwrap();
        let storage = reader.storages().get(plain.dense.view.storage).unwrap();
        let data = &members[&format!("data/{}", storage.key)];
        assert_eq!(storage.bytes, data.len() as u64, "{file} {}", storage.key);
        let mut bytes = gathered(&plain.dense.view, data);
        apply(&mut bytes, tensor.dtype, plain.dense.transforms);
        let dtype = plain.dtype.name().to_owned();
        digests.insert(named.name.clone(), (dtype, plain.shape, sha256(&bytes)));
    }
    digests
}

#[test]
fn tensors_are_those_that_torch_loads() {
    let want: Value =
        serde_json::from_slice(&fs::read(folder().join("tensors.json")).unwrap()).unwrap();
    let mut compared = 0;
    for (file, tensors) in want.as_object().unwrap() {
        if file == "ok_legacy.pt" {
            continue;
        }
        let want: Digests = tensors
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, tensor)| {
                let text = |field: &str| tensor[field].as_str().unwrap().to_owned();
                let shape = tensor["shape"].as_array().unwrap();
                let shape = shape.iter().map(|size| size.as_u64().unwrap()).collect();
                (name.clone(), (text("dtype"), shape, text("sha256")))
            })
            .collect();
        assert_eq!(digests(file), want, "{file}");
        compared += want.len();
    }
    assert_eq!(compared, 15);
}

#[test]
fn a_lightning_checkpoint_has_a_state_dict_and_what_is_left_out_is_listed() {
    let state = state(&pickle("ok_lightning.ckpt"), &Options::default()).unwrap();
    assert_eq!(state.source, Source::Found("state_dict"));
    assert_eq!(names(&state), ["w"]);
    assert!(state.left_out_count > 0);
    for left in &state.left_out {
        assert!(matches!(left.why, Why::NoTensor(_) | Why::Optimizer), "{left:?}");
    }
}

#[test]
fn a_meta_tensor_is_named_and_has_no_data() {
    let bytes = pickle("meta.pt");
    let (graph, root) = graph(&bytes);
    let mut reader = TensorReader::new(&graph, &Limits::default());
    let limits = Limits::default();
    let state = State::read(&mut reader, root, &Options::default(), &limits).unwrap();
    assert_eq!(names(&state), ["m"]);
    let tensor = reader.get(state.tensors[0].tensor).unwrap();
    assert_eq!(tensor.shape, [3]);
    assert_eq!(tensor.plain(), Err(Refusal::Meta));
}

#[test]
fn two_tensors_of_one_name_are_refused_and_both_are_named() {
    let error = state(&pickle("collide.pt"), &Options::default()).unwrap_err();
    assert_eq!(error.code, "state-name-twice");
    assert_eq!(error.message, r#"["a"]["b"] and ["a.b"] have one name, a.b"#);
}

#[test]
fn a_call_without_its_arguments_is_an_error_that_says_where() {
    let error = state(&pickle("empty_args.pt"), &Options::default()).unwrap_err();
    assert_eq!(error.code, "tensor-args");
    let message = r#"["w"]: _rebuild_tensor_v2 has 0 arguments, and takes 6 to 7"#;
    assert_eq!((error.message.as_str(), error.opcode), (message, Some("REDUCE")));
    assert_eq!(error.offset, Some(43));
}

#[test]
fn tied_names_are_one_tensor_and_an_ordinary_dictionary_twice_is_too() {
    for (file, kept, dropped) in
        [("tied.pt", "a.weight", "b.weight"), ("shared_dict.pt", "a.w", "b.w")]
    {
        let bytes = pickle(file);
        let (graph, root) = graph(&bytes);
        let mut reader = TensorReader::new(&graph, &Limits::default());
        let limits = Limits::default();
        let state = State::read(&mut reader, root, &Options::default(), &limits).unwrap();
        let [one, other] = state.tensors.as_slice() else { panic!("{state:?}") };
        assert_eq!((one.name.as_str(), other.name.as_str()), (kept, dropped));
        let view = |named: &Named| reader.get(named.tensor).unwrap().dense().unwrap().view.clone();
        assert_eq!(view(one), view(other));
    }
}

#[test]
fn graphs_that_have_no_end_are_refused_and_say_so() {
    // No tensor is in it.
    let bomb = fs::read(folder().join("bomb.pkl")).unwrap();
    assert!(state(&bomb, &Options::default()).unwrap().tensors.is_empty());
    let error = state(&pickle("deep.pt"), &Options::default()).unwrap_err();
    assert_eq!(error.code, "limit-depth");
}
