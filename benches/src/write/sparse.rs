//! Files that are a header with room in it, and a hole: what an edit in place touches of a file, it has.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The length of the JSON with the spaces after it: the room for edits.
const HEADER: usize = 64 << 10;

/// The key of the metadata that is set.
const KEY: &str = "note";

/// Writes such a file: one tensor of so many bytes, and no metadata. It is on the disk then.
pub(crate) fn write(path: &Path, bytes: u64) -> Result<()> {
    let text = entries(bytes).to_string();
    let mut head = u64::try_from(HEADER)?.to_le_bytes().to_vec();
    head.extend(text.bytes());
    head.resize(8 + HEADER, b' ');
    let mut file = File::create(path)?;
    file.write_all(&head)?;
    file.set_len(length(bytes)?).context("no such sparse file can be had here")?;
    Ok(file.sync_all()?)
}

/// What is wrong with such a file after its note was set, if something is.
pub(crate) fn fault(path: &Path, bytes: u64, note: &str) -> Result<Option<String>> {
    if fs::metadata(path)?.len() != length(bytes)? {
        return Ok(Some("its length is another".into()));
    }
    let mut head = vec![0; 8 + HEADER];
    File::open(path)?.read_exact(&mut head)?;
    let (prefix, text) = head.split_at(8);
    if prefix != u64::try_from(HEADER)?.to_le_bytes() {
        return Ok(Some("the length of its header is another".into()));
    }
    let found: Value = serde_json::from_slice(text).context("its header is no JSON")?;
    let mut want = entries(bytes);
    want["__metadata__"] = json!({ KEY: note });
    Ok((found != want).then(|| format!("its header is {found}")))
}

fn entries(bytes: u64) -> Value {
    json!({"weight": {"dtype": "U8", "shape": [bytes], "data_offsets": [0, bytes]}})
}

fn length(bytes: u64) -> Result<u64> {
    let head = u64::try_from(8 + HEADER)?;
    head.checked_add(bytes).context("a file of that size cannot be")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_note_may_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let set = |metadata: Value, length: usize| {
            write(&path, 10).unwrap();
            let mut whole = entries(10);
            whole["__metadata__"] = metadata;
            let mut text = whole.to_string();
            text.extend(std::iter::repeat_n(' ', HEADER - text.len()));
            let mut file = HEADER.to_le_bytes().to_vec();
            file.extend(text.bytes());
            file.resize(length, 0);
            fs::write(&path, file).unwrap();
        };
        for (metadata, length, is_right) in [
            (json!({"note": "x"}), 8 + HEADER + 10, true),
            (json!({"note": "x"}), 8 + HEADER + 9, false),
            (json!({"note": "y"}), 8 + HEADER + 10, false),
            (json!({"note": "x", "more": ""}), 8 + HEADER + 10, false),
        ] {
            set(metadata.clone(), length);
            let fault = fault(&path, 10, "x").unwrap();
            assert_eq!(fault.is_none(), is_right, "{metadata}, {length}: {fault:?}");
        }
    }
}
