//! Metadata, edited by writing files anew and in place.

use std::fs;

use weigh::{Checkpoint, MetadataOptions, Watch};

use crate::files::{content, map, names, write};

const TENSORS: &[(&str, &[u8])] = &[("b", b"bytes"), ("a", b"more")];

fn set(
    checkpoint: &Checkpoint,
    key: &str,
    value: &str,
    options: &MetadataOptions,
) -> Result<usize, weigh::Error> {
    let edit = |metadata: &mut std::collections::BTreeMap<String, String>| {
        metadata.insert(key.into(), value.into());
    };
    checkpoint.plan_metadata(edit, |_| None, options)?.write(false, Watch::default())
}

fn metadata(path: &std::path::Path) -> std::collections::BTreeMap<String, String> {
    Checkpoint::open(path).unwrap().shards()[0].header().metadata().collect()
}

#[test]
fn a_new_header_goes_before_the_same_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write(&path, TENSORS, &[("format", "pt")]);
    let before = content(&path);
    let checkpoint = Checkpoint::open(&path).unwrap();
    assert_eq!(
        set(&checkpoint, "title", &"long ".repeat(1000), &MetadataOptions::default()).unwrap(),
        1
    );
    assert_eq!(content(&path), before);
    assert_eq!(metadata(&path), map(&[("format", "pt"), ("title", &"long ".repeat(1000))]));
    assert_eq!(names(folder.path()), ["m.safetensors"]);

    // Nothing to do is not done.
    let checkpoint = Checkpoint::open(&path).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(set(&checkpoint, "format", "pt", &MetadataOptions::default()).unwrap(), 0);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
}

#[test]
fn in_place_the_file_stays_and_only_its_header_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write(&path, TENSORS, &[("format", "pt")]);
    let in_place = MetadataOptions { in_place: true, ..MetadataOptions::default() };
    let checkpoint = Checkpoint::open(&path).unwrap();
    let error = set(&checkpoint, "title", "a title", &in_place).unwrap_err();
    assert_eq!(error.code(), "no-room");

    let reserve = MetadataOptions { reserve: 1000, ..MetadataOptions::default() };
    set(&checkpoint, "title", "", &reserve).unwrap();
    let (len, before) = (fs::metadata(&path).unwrap().len(), content(&path));
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
    let checkpoint = Checkpoint::open(&path).unwrap();
    assert_eq!(set(&checkpoint, "title", "a title", &in_place).unwrap(), 1);
    assert_eq!(metadata(&path), map(&[("format", "pt"), ("title", "a title")]));
    assert_eq!((fs::metadata(&path).unwrap().len(), content(&path)), (len, before));
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap()), inode);
    assert_eq!(names(folder.path()), ["m.safetensors"]);
}

#[test]
fn an_order_of_tensors_that_is_not_ours_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    // The smaller dtype first, and names not sorted.
    let json = r#"{"z":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"a":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}}"#;
    let file = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), b"123abcd"].concat();
    fs::write(&path, file).unwrap();
    let before = content(&path);
    let checkpoint = Checkpoint::open(&path).unwrap();
    set(&checkpoint, "k", "v", &MetadataOptions::default()).unwrap();
    assert!(fs::read(&path).unwrap().ends_with(b"123abcd"));
    assert_eq!(content(&path), before);
}
