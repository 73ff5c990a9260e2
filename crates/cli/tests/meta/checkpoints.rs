//! Small checkpoints with metadata.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::program::Program;

/// The header of a file with a tensor `a` of two floats, and metadata.
pub(crate) fn header(pairs: &[(&str, &str)]) -> String {
    named("a", pairs)
}

fn named(tensor: &str, pairs: &[(&str, &str)]) -> String {
    let map: Map<String, Value> =
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let metadata = Value::Object(map);
    let entry = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    let header = format!(r#"{{"__metadata__":{metadata},"{tensor}":{entry}}}"#);
    // Files are as Weigh writes them: the data begins on a multiple of 8.
    let padding = header.len().next_multiple_of(8) - header.len();
    header + &" ".repeat(padding)
}

/// A program and a file `m.safetensors` with this metadata.
pub(crate) fn one(pairs: &[(&str, &str)]) -> Program {
    let program = Program::new();
    program.file("m.safetensors", &header(pairs), 8);
    program
}

/// A set of three files in the folder `set`, with an index that names the last one first.
pub(crate) fn set(program: &Program, metadata: [&[(&str, &str)]; 3]) {
    let mut map = Map::new();
    for (number, pairs) in (1..4_u8).zip(metadata).rev() {
        let (tensor, file) = (format!("t{number}"), format!("m-0000{number}-of-00003.safetensors"));
        program.file(Path::new("set").join(&file), &named(&tensor, pairs), 8);
        map.insert(tensor, file.into());
    }
    let index =
        format!(r#"{{"metadata":{{"total_size":24}},"weight_map":{}}}"#, Value::Object(map));
    fs::write(program.path("set/m.safetensors.index.json"), index).unwrap();
}

/// The metadata of a file, and its bytes from the data on.
pub(crate) fn content(path: &Path) -> (Vec<(String, String)>, Vec<u8>) {
    let checkpoint = weigh::Checkpoint::open(path).unwrap();
    let header = checkpoint.shards()[0].header();
    let start = usize::try_from(header.data_start()).unwrap();
    (header.metadata().collect(), fs::read(path).unwrap().split_off(start))
}

/// Pairs as [`content`] has them.
pub(crate) fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

/// The names in a folder, hidden ones too.
pub(crate) fn names(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
