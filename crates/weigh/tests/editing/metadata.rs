//! Metadata, edited by writing files anew and in place.

use std::fs;

use weigh::{Checkpoint, MetadataOptions, MetadataOutput, Watch};

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
    checkpoint.plan_metadata(edit, &MetadataOutput::Same, options)?.write(Watch::default())
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
    let message = "the new header needs 154 bytes and there is room for 136: 18 are missing";
    assert_eq!(error.to_string(), format!("{}: {message}", path.display()));

    let reserve = MetadataOptions { reserve: Some(1000), ..MetadataOptions::default() };
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
fn room_that_a_header_lacks_is_a_change_and_numbers_are_of_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    // Its header is 144 bytes, of them 2 spaces.
    write(&path, TENSORS, &[("format", "")]);
    let data = 9;
    let default = MetadataOptions::default();
    for (reserve, in_place, want) in [
        (0, false, Ok((144, 0))),
        (2, false, Ok((144, 0))),
        (3, false, Ok((152, data))),
        (2, true, Ok((144, 0))),
        (3, true, Err("no-room")),
    ] {
        let checkpoint = Checkpoint::open(&path).unwrap();
        let options = MetadataOptions { reserve: Some(reserve), in_place, ..default.clone() };
        let plan = checkpoint.plan_metadata(|_| (), &MetadataOutput::Same, &options);
        let got = plan.map(|plan| {
            let file = &plan.files()[0];
            assert_eq!(plan.bytes_copied(), file.data_bytes());
            assert_eq!(plan.changes(), file.data_bytes() > 0);
            (file.header_bytes(), file.data_bytes())
        });
        assert_eq!(got.map_err(|error| error.code()), want, "{reserve} {in_place}");
    }
    let checkpoint = Checkpoint::open(&path).unwrap();
    let roomy = MetadataOptions { reserve: Some(3), ..default };
    let again = |checkpoint: &Checkpoint| {
        let plan = checkpoint.plan_metadata(|_| (), &MetadataOutput::Same, &roomy).unwrap();
        plan.write(Watch::default()).unwrap()
    };
    let before = content(&path);
    assert_eq!(again(&checkpoint), 1);
    assert_eq!(content(&path), before);
    // Now it has it.
    assert_eq!(again(&Checkpoint::open(&path).unwrap()), 0);
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

/// A set of two files, in a folder of its own.
fn write_set(folder: &std::path::Path) -> std::path::PathBuf {
    let one = folder.join("one.safetensors");
    write(&one, TENSORS, &[("format", "pt")]);
    let (set, checkpoint) = (folder.join("set"), Checkpoint::open(&one).unwrap());
    let output =
        weigh::Output::Folder { path: set.clone(), stem: None, shards: weigh::Shards::Most(5) };
    let plan = weigh::Edit::of(&checkpoint)
        .unwrap()
        .plan(&output, &weigh::WriteOptions::default())
        .unwrap();
    plan.write(Watch::default()).unwrap();
    set
}

#[test]
fn a_set_is_written_elsewhere_with_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path());
    let before = names(&set);
    assert_eq!(before.len(), 3, "{before:?}");
    let checkpoint = Checkpoint::open(&set).unwrap();
    let edit = |metadata: &mut std::collections::BTreeMap<String, String>| {
        metadata.insert("k".into(), "v".into());
    };
    let there = MetadataOutput::Folder(folder.path().join("there"));
    let plan = |options| checkpoint.plan_metadata(edit, &there, &options);
    let written = plan(MetadataOptions::default()).unwrap();
    assert_eq!(written.write(Watch::default()).unwrap(), 2);
    let there_path = folder.path().join("there");
    assert_eq!(names(&there_path), before);
    assert_eq!(content(&there_path), content(&set));
    assert_eq!(metadata(&there_path), map(&[("format", "pt"), ("k", "v")]));
    assert_eq!(metadata(&set), map(&[("format", "pt")]));
    let index = before.iter().find(|name| name.contains(".index.")).unwrap();
    assert_eq!(fs::read(there_path.join(index)).unwrap(), fs::read(set.join(index)).unwrap());

    // What is there already stays, unless it is to be replaced.
    assert_eq!(plan(MetadataOptions::default()).unwrap_err().code(), "io-exists");
    let replace = MetadataOptions { replace: true, ..MetadataOptions::default() };
    assert_eq!(plan(replace).unwrap().write(Watch::default()).unwrap(), 2);
    let one = MetadataOutput::File(folder.path().join("new.safetensors"));
    let error = checkpoint.plan_metadata(edit, &one, &MetadataOptions::default()).unwrap_err();
    assert_eq!(error.code(), "many-files");
}

#[test]
fn a_set_that_was_changed_in_part_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path());
    let roomy = MetadataOptions { reserve: Some(1000), ..MetadataOptions::default() };
    set_key(&set, "title", &roomy).unwrap();
    let in_place = MetadataOptions { in_place: true, ..MetadataOptions::default() };
    for (number, want) in [(1, "io-changed"), (2, "io-changed (1 of 2)")] {
        let checkpoint = Checkpoint::open(&set).unwrap();
        let edit = |metadata: &mut std::collections::BTreeMap<String, String>| {
            metadata.insert("title".into(), want.into());
        };
        let plan = checkpoint.plan_metadata(edit, &MetadataOutput::Same, &in_place).unwrap();
        let file = set.join(format!("one-0000{number}-of-00002.safetensors"));
        let sound = fs::read(&file).unwrap();
        fs::write(&file, [&sound[..], b"x"].concat()).unwrap();
        let error = plan.write(Watch::default()).unwrap_err();
        let got = match &error {
            weigh::Error::Partly { done, files, .. } => {
                assert!(error.to_string().ends_with("(1 of 2 files have been changed)"));
                format!("{} ({done} of {files})", error.code())
            }
            error => error.code().into(),
        };
        assert_eq!(got, want);
        fs::write(&file, sound).unwrap();
    }
}

/// Sets a key of every file to nothing.
fn set_key(
    path: &std::path::Path,
    key: &str,
    options: &MetadataOptions,
) -> Result<usize, weigh::Error> {
    set(&Checkpoint::open(path).unwrap(), key, "", options)
}

#[test]
fn a_run_that_is_stopped_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path());
    let checkpoint = Checkpoint::open(&set).unwrap();
    let there = folder.path().join("there");
    let output = MetadataOutput::Folder(there.clone());
    let plan = checkpoint.plan_metadata(|_| (), &output, &MetadataOptions::default()).unwrap();
    let stop = |_| std::ops::ControlFlow::Break(());
    let error = plan.write(Watch { cancel: None, progress: Some(&stop) }).unwrap_err();
    assert_eq!(error.code(), "cancelled");
    assert!(!there.exists());
}

#[test]
fn what_changes_is_told_in_the_order_of_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write(&path, TENSORS, &[("a", "1"), ("c", "3"), ("d", "4")]);
    let checkpoint = Checkpoint::open(&path).unwrap();
    let edit = |metadata: &mut std::collections::BTreeMap<String, String>| {
        metadata.remove("d");
        metadata.insert("b".into(), "2".into());
        metadata.insert("c".into(), "5".into());
    };
    let options = MetadataOptions::default();
    let plan = checkpoint.plan_metadata(edit, &MetadataOutput::Same, &options).unwrap();
    let changes: Vec<_> =
        plan.files()[0].changed().map(|it| (it.key, it.before, it.after)).collect();
    let want = [("b", None, Some("2")), ("c", Some("3"), Some("5")), ("d", Some("4"), None)];
    assert_eq!(changes, want);
}

/// A file of one byte of data, with a header of this length in all.
fn write_padded(path: &std::path::Path, header: usize) {
    let json = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    let json = format!("{json:<0$}", header - 8);
    fs::write(path, [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), b"x"].concat())
        .unwrap();
}

#[test]
fn data_that_begins_on_a_page_goes_on_doing_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    for (header, reserve, want) in [
        // Its spaces are there for the page alone.
        (4096, None, 4096),
        (4096, Some(0), 4096),
        (4096, Some(4096), 8192),
        (4096 + 8, Some(0), 128),
        (8192, None, 8192),
        (8192, Some(0), 4096),
    ] {
        write_padded(&path, header);
        let checkpoint = Checkpoint::open(&path).unwrap();
        let options = MetadataOptions { reserve, ..MetadataOptions::default() };
        set(&checkpoint, "key", &"v".repeat(38), &options).unwrap();
        let start = Checkpoint::open(&path).unwrap().shards()[0].header().data_start();
        assert_eq!(start, want, "from {header} with {reserve:?}");
    }
}

#[test]
fn room_in_a_header_is_kept_unless_it_is_said_how_much_is_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    // Without metadata the object is 53 bytes, with the pair 79 and its value.
    for (header, reserve, value, want) in [
        // Up to 7 spaces are there for the alignment.
        (8 + 53 + 7, None, 0, 88),
        (8 + 53 + 8, None, 0, 96),
        // It stays as it is while the new one fits.
        (1024, None, 0, 1024),
        (1024, None, 1016 - 79, 1024),
        (1024, None, 1016 - 79 + 1, 1992),
        (1024, Some(0), 0, 88),
        (1024, Some(64), 0, 152),
    ] {
        write_padded(&path, header);
        let before = content(&path);
        let options = MetadataOptions { reserve, ..MetadataOptions::default() };
        let checkpoint = Checkpoint::open(&path).unwrap();
        set(&checkpoint, "key", &"v".repeat(value), &options).unwrap();
        let checkpoint = Checkpoint::open(&path).unwrap();
        let start = checkpoint.shards()[0].header().data_start();
        assert_eq!(start, want, "from {header} with {reserve:?} and {value}");
        assert_eq!(content(&path), before);
    }
}

#[test]
fn tensors_whose_unknown_fields_are_dropped_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let json = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":[1,2]}}"#;
    let file = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), b"x"].concat();
    fs::write(&path, file).unwrap();
    for want in [1, 0] {
        let checkpoint = Checkpoint::open(&path).unwrap();
        let edit = |metadata: &mut std::collections::BTreeMap<String, String>| {
            metadata.insert("key".into(), want.to_string());
        };
        let options = MetadataOptions::default();
        let plan = checkpoint.plan_metadata(edit, &MetadataOutput::Same, &options).unwrap();
        assert_eq!(plan.files()[0].with_unknown_fields(), want);
        plan.write(Watch::default()).unwrap();
    }
}

#[test]
fn an_edit_in_place_that_was_cut_off_is_known_by_its_mark() {
    assert_eq!(weigh::io::INTERRUPTED, weigh::format::kind::INTERRUPTED);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    write(&path, TENSORS, &[]);
    let survey = || {
        let found = weigh::find(&path).unwrap();
        weigh::Survey::take(&found[0], &weigh::Options::default()).unwrap()
    };
    assert_eq!(survey().interrupted_edits().count(), 0);
    let mut file = fs::read(&path).unwrap();
    file[..8].copy_from_slice(&weigh::io::INTERRUPTED);
    fs::write(&path, file).unwrap();
    let survey = survey();
    assert_eq!(survey.interrupted_edits().collect::<Vec<_>>(), [&path]);
    let error = Checkpoint::open(&path).unwrap_err();
    assert_eq!(error.code(), "not-safetensors");
    assert!(error.to_string().ends_with("one whose header was being edited in place"), "{error}");
}
