//! Writes a safetensors file: `encode PATH` one with a tensor of every dtype and two metadata pairs,
//! `encode PATH FROM` what `FROM` declares, laid out as the reference implementation does.
//!
//! The whole file is the encoded header and the data; here every byte of a tensor is 0.

use std::collections::BTreeMap;
use std::error::Error;

use weigh_format::encode::{Declaration, Encoded, Layout, encode};
use weigh_format::header::inspect;
use weigh_format::{Dtype, HashKey, Limits, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("usage: encode PATH [FROM]")?;
    let encoded = match arguments.next() {
        Some(from) => again(&std::fs::read(from)?)?,
        None => every_dtype()?,
    };
    let mut file = encoded.bytes;
    file.resize(file.len() + usize::try_from(encoded.data_len)?, 0);
    std::fs::write(path, file)?;
    Ok(())
}

fn every_dtype() -> Result<Encoded, Box<dyn Error>> {
    let names: Vec<String> = Dtype::ALL.iter().map(|dtype| format!("of \"{dtype}\" é")).collect();
    let tensors: Vec<Declaration<'_>> = Dtype::ALL
        .into_iter()
        .zip(&names)
        .map(|(dtype, name)| Declaration { name, dtype, shape: &[3, 4] })
        .collect();
    let metadata = [("format", "pt"), ("note", "tab\tand \u{1f600}")]
        .map(|(key, value)| (String::from(key), String::from(value)));
    let layout = Layout { alignment: 64, ..Layout::default() };
    Ok(encode(&tensors, Some(&BTreeMap::from(metadata)), &layout)?)
}

fn again(file: &[u8]) -> Result<Encoded, Box<dyn Error>> {
    let file_len = u64::try_from(file.len())?;
    let prefix = *file.first_chunk().ok_or("no length")?;
    let header = file[8..][..usize::try_from(u64::from_le_bytes(prefix))?].to_vec();
    let inspection = inspect(header, file_len, &Limits::default(), HashKey::new(1, 2));
    let header = inspection.accept(Policy::Strict).map_err(|findings| format!("{findings:?}"))?;
    let mut tensors: Vec<Declaration<'_>> = header
        .tensors()
        .map(|it| Declaration { name: it.name, dtype: it.dtype, shape: it.shape })
        .collect();
    // The order must not be that of the file.
    tensors.reverse();
    let metadata: BTreeMap<String, String> = header.metadata().collect();
    let metadata = Some(&metadata).filter(|pairs| !pairs.is_empty());
    Ok(encode(&tensors, metadata, &Layout::reference())?)
}
