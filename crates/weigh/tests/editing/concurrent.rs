//! Edits of one file at once, and files that change while they are edited: nothing is lost without a word.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use weigh::io::Progress;
use weigh::{
    Checkpoint, Edit, Error, MetadataOptions, MetadataOutput, Output, Watch, WriteOptions,
};

use crate::files::{content, map, names, write};

const TENSORS: &[(&str, &[u8])] = &[("b", b"bytes"), ("a", b"more")];

/// Sets a key of every file of a checkpoint; `meanwhile` is done once the first bytes have been copied.
fn set(
    checkpoint: &Checkpoint,
    key: &str,
    in_place: bool,
    meanwhile: impl Fn() + Sync,
) -> Result<usize, Error> {
    let edit = |metadata: &mut BTreeMap<String, String>| {
        metadata.insert(key.into(), "set".into());
    };
    let options = MetadataOptions { in_place, ..MetadataOptions::default() };
    let plan = checkpoint.plan_metadata(edit, &MetadataOutput::Same, &options)?;
    once(meanwhile, |watch| plan.write(watch))
}

/// Does something that is watched, and something else the first time that the watch is told of it.
fn once<T>(meanwhile: impl Fn() + Sync, act: impl FnOnce(Watch<'_>) -> T) -> T {
    let is_done = Mutex::new(false);
    let told = |_: Progress| {
        if !std::mem::replace(&mut *is_done.lock().unwrap(), true) {
            meanwhile();
        }
        ControlFlow::Continue(())
    };
    act(Watch { cancel: None, progress: Some(&told) })
}

fn metadata(path: &Path) -> BTreeMap<String, String> {
    Checkpoint::open(path).unwrap().shards()[0].header().metadata().collect()
}

/// A file with room in its header.
fn roomy(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("m.safetensors");
    write(&path, TENSORS, &[]);
    let options = MetadataOptions { reserve: Some(1000), ..MetadataOptions::default() };
    let plan = Checkpoint::open(&path).unwrap();
    let plan = plan.plan_metadata(|_| (), &MetadataOutput::Same, &options).unwrap();
    plan.write(Watch::default()).unwrap();
    path
}

#[test]
fn a_file_that_is_being_edited_is_locked_for_other_edits_however_they_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = roomy(folder.path());
    let first = Checkpoint::open(&path).unwrap();
    let meanwhile = || {
        for in_place in [false, true] {
            let second = Checkpoint::open(&path).unwrap();
            for checkpoint in [&second, &first] {
                let error = set(checkpoint, "second", in_place, || ()).unwrap_err();
                assert_eq!(error.code(), "io-locked", "{in_place}");
            }
            let replace = WriteOptions { replace: true, ..WriteOptions::default() };
            let edit = Edit::of(&second).unwrap();
            let plan = edit.plan(&Output::File(path.clone()), &replace).unwrap();
            assert_eq!(plan.write(Watch::default()).unwrap_err().code(), "io-locked");
            // It may be read, to be written elsewhere.
            let elsewhere = Output::File(folder.path().join("elsewhere.safetensors"));
            edit.plan(&elsewhere, &replace).unwrap().write(Watch::default()).unwrap();
        }
    };
    assert_eq!(set(&first, "first", false, meanwhile).unwrap(), 1);
    assert_eq!(metadata(&path), map(&[("first", "set")]));
    // What was opened before that is another file by now.
    for in_place in [false, true] {
        assert_eq!(set(&first, "second", in_place, || ()).unwrap_err().code(), "io-changed");
    }
    assert_eq!(set(&Checkpoint::open(&path).unwrap(), "second", false, || ()).unwrap(), 1);
    assert_eq!(metadata(&path), map(&[("first", "set"), ("second", "set")]));
    assert_eq!(names(folder.path()), ["elsewhere.safetensors", "m.safetensors"]);
}

#[test]
fn a_file_that_replaces_itself_is_locked_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = roomy(folder.path());
    let input = Checkpoint::open(&path).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    edit.select(|tensor| tensor.name == "a");
    let replace = WriteOptions { replace: true, ..WriteOptions::default() };
    let plan = edit.plan(&Output::File(path.clone()), &replace).unwrap();
    let meanwhile = || {
        for in_place in [false, true] {
            let second = Checkpoint::open(&path).unwrap();
            assert_eq!(set(&second, "second", in_place, || ()).unwrap_err().code(), "io-locked");
        }
    };
    once(meanwhile, |watch| plan.write(watch)).unwrap();
    assert_eq!(content(&path).len(), 1);
    assert_eq!(metadata(&path), map(&[]));
}

#[test]
fn a_file_of_a_set_that_changes_after_it_was_copied_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    for number in [1, 2] {
        let name = format!("m-0000{number}-of-00002.safetensors");
        let tensor = if number == 1 { "a" } else { "b" };
        write(&folder.path().join(name), &[(tensor, b"bytes")], &[]);
    }
    let before = names(folder.path());
    let first = folder.path().join(&before[0]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.shards().len(), 2);
    let edit = |metadata: &mut BTreeMap<String, String>| {
        metadata.insert("k".into(), "v".into());
    };
    let options = MetadataOptions::default();
    let plan = checkpoint.plan_metadata(edit, &MetadataOutput::Same, &options).unwrap();
    // Told of the second file: the first is complete by then.
    let told = Mutex::new(0);
    let watch = |_: Progress| {
        *told.lock().unwrap() += 1;
        if *told.lock().unwrap() == 2 {
            write(&first, &[("a", b"other")], &[]);
        }
        ControlFlow::Continue(())
    };
    let error = plan.write(Watch { cancel: None, progress: Some(&watch) }).unwrap_err();
    assert_eq!((error.code(), error.path()), ("io-changed", Some(first.as_path())));
    assert_eq!(content(&first)[0].2, b"other");
    for name in &before {
        assert_eq!(metadata(&folder.path().join(name)), map(&[]));
    }
    assert_eq!(names(folder.path()), before);
}

#[test]
fn of_many_edits_at_once_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = roomy(folder.path());
    let edit = |own: usize| {
        for number in 0..15 {
            let in_place = usize::is_multiple_of(own + number, 3);
            let key = format!("{own}-{number}");
            loop {
                // It may be marked just now.
                let Ok(checkpoint) = Checkpoint::open(&path) else { continue };
                match set(&checkpoint, &key, in_place, || ()) {
                    Ok(_) => break,
                    Err(Error::NoRoom { .. }) => panic!("no room"),
                    Err(error) => {
                        assert!(["io-locked", "io-changed"].contains(&error.code()), "{error}");
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let edit = &edit;
        for own in 0..3 {
            scope.spawn(move || edit(own));
        }
    });
    assert_eq!(metadata(&path).len(), 45);
    assert_eq!(content(&path).len(), 2);
}

#[test]
fn a_journal_beside_a_sound_file_goes_with_the_next_edit() {
    let folder = tempfile::tempdir().unwrap();
    let path = roomy(folder.path());
    for in_place in [false, true] {
        fs::write(folder.path().join(".m.safetensors.weigh-journal"), "stale").unwrap();
        let checkpoint = Checkpoint::open(&path).unwrap();
        set(&checkpoint, &in_place.to_string(), in_place, || ()).unwrap();
        assert_eq!(names(folder.path()), ["m.safetensors"]);
    }
}

#[test]
fn a_header_that_is_read_while_it_is_edited_is_the_old_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let long = 1 << 19;
    write(&path, TENSORS, &[("k", &"a".repeat(long))]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let edit = || {
        let in_place = MetadataOptions { in_place: true, ..MetadataOptions::default() };
        for letter in ["b", "a"].into_iter().cycle().take(60) {
            let Ok(checkpoint) = Checkpoint::open(&path) else { continue };
            let edit = |metadata: &mut BTreeMap<String, String>| {
                metadata.insert("k".into(), letter.repeat(long));
            };
            let plan = checkpoint.plan_metadata(edit, &MetadataOutput::Same, &in_place).unwrap();
            plan.write(Watch::default()).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let found = weigh::find(&path).unwrap();
    let (mut sound, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(edit);
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let survey = weigh::Survey::take(&found[0], &weigh::Options::default()).unwrap();
            if let Some(failure) = survey.failures().next() {
                assert_eq!(failure.code(), "io-changed");
            } else if survey.interrupted_edits().count() > 0 {
                refused += 1;
            } else {
                assert_eq!(survey.verdict(), weigh::format::Verdict::Valid);
                let (_, _, value) = survey.metadata().next().unwrap();
                let letter = &value[..1];
                assert!(value.len() == long && value == letter.repeat(long), "{letter}");
                sound += 1;
            }
        }
    });
    assert!(sound > 0, "{sound} {refused}");
}
