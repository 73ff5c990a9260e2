//! Writes a safetensors file with a tensor of every dtype and two metadata pairs to the path given.
//!
//! The whole file is the encoded header and the data; here every byte of a tensor is 0.

use std::collections::BTreeMap;
use std::error::Error;

use weigh_format::Dtype;
use weigh_format::encode::{Declaration, encode};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: encode PATH")?;
    let names: Vec<String> = Dtype::ALL.iter().map(|dtype| format!("of \"{dtype}\" é")).collect();
    let tensors: Vec<Declaration<'_>> = Dtype::ALL
        .into_iter()
        .zip(&names)
        .map(|(dtype, name)| Declaration { name, dtype, shape: &[3, 4] })
        .collect();
    let metadata = [("format", "pt"), ("note", "tab\tand \u{1f600}")]
        .map(|(key, value)| (String::from(key), String::from(value)));
    let encoded = encode(&tensors, &BTreeMap::from(metadata), 64)?;
    let mut file = encoded.bytes;
    file.resize(file.len() + usize::try_from(encoded.data_len)?, 0);
    std::fs::write(path, file)?;
    Ok(())
}
