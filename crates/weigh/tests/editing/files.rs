//! Small checkpoints, and what is in a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weigh::format::Dtype;
use weigh::{Checkpoint, View, WriteOptions};

/// Writes a file of tensors of one byte an element, and metadata.
pub(crate) fn write(path: &Path, tensors: &[(&str, &[u8])], metadata: &[(&str, &str)]) {
    let shapes: Vec<[u64; 1]> = tensors.iter().map(|(_, bytes)| [bytes.len() as u64]).collect();
    let views = tensors
        .iter()
        .zip(&shapes)
        .map(|((name, bytes), shape)| (*name, View::of(Dtype::U8, shape, bytes).unwrap()));
    let options = WriteOptions { replace: true, ..WriteOptions::default() };
    weigh::save(path, views, &map(metadata), &options).unwrap();
}

pub(crate) fn map(metadata: &[(&str, &str)]) -> BTreeMap<String, String> {
    metadata.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

/// The names in a folder, hidden ones too.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every tensor with its dtype and bytes, in natural order.
pub(crate) fn content(path: &Path) -> Vec<(String, Dtype, Vec<u8>)> {
    let checkpoint = Checkpoint::open(path).unwrap();
    let tensors = checkpoint.tensors().into_iter();
    let read = |name| checkpoint.tensor(name).unwrap().bytes().to_vec();
    tensors.map(|tensor| (tensor.name.into(), tensor.dtype, read(tensor.name))).collect()
}
