//! Checkpoints of several files: split, joined, replaced.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use weigh::{Checkpoint, Edit, Error, Layout, Output, Shards, Watch, WriteOptions, find};

use crate::files::{content, map, names, write};

/// A file of five tensors of 10 bytes and one of 25.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tensors: &[(&str, &[u8])] = &[
        ("h.0", b"0000000000"),
        ("h.1", b"1111111111"),
        ("h.2", b"2222222222"),
        ("h.10", b"aaaaaaaaaa"),
        ("h.11", b"bbbbbbbbbb"),
        ("wte", b"wwwwwwwwwwwwwwwwwwwwwwwww"),
    ];
    write(&folder.path().join("one.safetensors"), tensors, &[("format", "pt")]);
    folder
}

fn split(input: &Path, output: &Path, most: u64, replace: bool) -> Result<(), Error> {
    let input = Checkpoint::open(input).unwrap();
    let shards = Shards::Most(most);
    let output = Output::Folder { path: output.into(), stem: Some("model".into()), shards };
    let options = WriteOptions { replace, ..WriteOptions::default() };
    Edit::of(&input)?.plan(&output, &options)?.write(Watch::default())?;
    Ok(())
}

fn join(input: &Path, output: &Path) {
    let input = Checkpoint::open(input).unwrap();
    let output = Output::File(output.into());
    let plan = Edit::of(&input).unwrap().plan(&output, &WriteOptions::default()).unwrap();
    plan.write(Watch::default()).unwrap();
}

#[test]
fn what_is_split_and_joined_is_the_same_file() {
    let folder = folder();
    let one = folder.path().join("one.safetensors");
    for (most, files) in [(10, 6), (20, 4), (24, 4), (25, 4), (45, 2), (74, 2), (75, 1)] {
        let set = folder.path().join(format!("set{most}"));
        split(&one, &set, most, false).unwrap();
        let shards = names(&set).iter().filter(|it| it.ends_with(".safetensors")).count();
        assert_eq!(shards, files, "{most}");
        let found = find(&set).unwrap();
        let layout = if files == 1 { Layout::File } else { Layout::Indexed };
        assert_eq!((found.len(), found[0].layout), (1, layout), "{most}");
        assert_eq!(content(&set), content(&one), "{most}");
        let again = folder.path().join(format!("again{most}.safetensors"));
        join(&set, &again);
        assert_eq!(fs::read(&again).unwrap(), fs::read(&one).unwrap(), "{most}");
    }
}

#[test]
fn shards_are_in_natural_order_and_each_has_the_metadata() {
    let folder = folder();
    let set = folder.path().join("set");
    split(&folder.path().join("one.safetensors"), &set, 30, false).unwrap();
    let checkpoint = Checkpoint::open(&set).unwrap();
    let of_shard = |shard: &weigh::Shard| {
        let mut names: Vec<String> = shard.tensors().map(|it| it.name.into()).collect();
        names.sort();
        (shard.path().file_name().unwrap().to_str().unwrap().to_owned(), names.join(" "))
    };
    let shards: Vec<(String, String)> = checkpoint.shards().iter().map(of_shard).collect();
    let want = [
        ("model-00001-of-00003.safetensors", "h.0 h.1 h.2"),
        ("model-00002-of-00003.safetensors", "h.10 h.11"),
        ("model-00003-of-00003.safetensors", "wte"),
    ];
    assert_eq!(shards, want.map(|(file, names)| (file.into(), names.into())));
    for shard in checkpoint.shards() {
        assert!(shard.header().metadata().eq([("format".into(), "pt".into())]));
    }
    let index = fs::read_to_string(set.join("model.safetensors.index.json")).unwrap();
    assert!(index.contains("\"total_size\": 75"), "{index}");
    // Tensors of U8 are no parameters.
    assert!(index.contains("\"total_parameters\": 0"), "{index}");
}

#[test]
fn a_set_is_split_anew_in_its_own_folder() {
    let folder = folder();
    let set = folder.path().join("set");
    split(&folder.path().join("one.safetensors"), &set, 10, false).unwrap();
    let before = content(&set);
    fs::write(set.join("config.json"), "{}").unwrap();
    let error = split(&set, &set, 45, false).unwrap_err();
    assert_eq!(error.code(), "io-exists");
    split(&set, &set, 45, true).unwrap();
    let want = [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ];
    assert_eq!(names(&set), want);
    assert_eq!(content(&set), before);
    // As one file, neither the index nor its files are left.
    split(&set, &set, 1000, true).unwrap();
    assert_eq!(names(&set), ["config.json", "model.safetensors"]);
    assert_eq!(content(&set), before);
}

#[test]
fn files_that_an_index_names_and_that_are_not_its_own_stay() {
    let folder = folder();
    let set = folder.path().join("set");
    fs::create_dir(&set).unwrap();
    for name in
        ["thesis.txt", "other-00001-of-00002.safetensors", "model-00009-of-00009.safetensors"]
    {
        fs::write(set.join(name), "mine").unwrap();
    }
    let map = r#"{"metadata":{},"weight_map":{"a":"thesis.txt","b":"other-00001-of-00002.safetensors",
        "c":"model-00009-of-00009.safetensors"}}"#;
    fs::write(set.join("model.safetensors.index.json"), map).unwrap();
    split(&folder.path().join("one.safetensors"), &set, 45, true).unwrap();
    let want = [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "other-00001-of-00002.safetensors",
        "thesis.txt",
    ];
    assert_eq!(names(&set), want);
    assert!(folder.path().join("one.safetensors").exists());
}

#[test]
fn a_numbered_set_without_an_index_is_replaced_whole() {
    let folder = folder();
    let set = folder.path().join("set");
    split(&folder.path().join("one.safetensors"), &set, 10, false).unwrap();
    let before = content(&set);
    fs::remove_file(set.join("model.safetensors.index.json")).unwrap();
    let others = ["model-00001-of-00009.safetensors", "other-00001-of-00006.safetensors"];
    let other = Checkpoint::open(&set).unwrap();
    for name in others {
        fs::write(set.join(name), "mine").unwrap();
    }
    let output = |path: &Path| {
        let stem = Some("model".into());
        Output::Folder { path: path.into(), stem, shards: Shards::Most(45) }
    };
    let edit = Edit::of(&other).unwrap();
    let options = WriteOptions::default();
    assert_eq!(edit.plan(&output(&set), &options).unwrap_err().code(), "io-exists");
    // Elsewhere nothing is replaced.
    assert!(edit.plan(&output(folder.path()), &options).unwrap().removed().is_empty());
    let replace = WriteOptions { replace: true, ..options };
    // However the folder is spelled.
    let spelled = set.join("../set/.");
    edit.plan(&output(&spelled), &replace).unwrap().write(Watch::default()).unwrap();
    let want = [
        "model-00001-of-00002.safetensors",
        others[0],
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        others[1],
    ];
    assert_eq!(names(&set), want);
    assert_eq!(content(&set), before);
}

#[test]
fn one_file_of_a_set_that_is_split_stays() {
    let folder = folder();
    let path = folder.path().join("m-00001-of-00002.safetensors");
    fs::rename(folder.path().join("one.safetensors"), &path).unwrap();
    let input = Checkpoint::open(&path).unwrap();
    let stem = Some("m".into());
    let output = Output::Folder { path: folder.path().into(), stem, shards: Shards::Most(30) };
    let plan = Edit::of(&input).unwrap().plan(&output, &WriteOptions::default()).unwrap();
    assert!(plan.removed().is_empty());
}

#[test]
fn tensors_stay_in_their_files_unless_told_otherwise() {
    let folder = folder();
    let set = folder.path().join("set");
    split(&folder.path().join("one.safetensors"), &set, 30, false).unwrap();
    let input = Checkpoint::open(&set).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    edit.select(|tensor| !tensor.name.starts_with("h.1"));
    let out = folder.path().join("out");
    let output = Output::Folder { path: out.clone(), stem: None, shards: Shards::Keep };
    edit.plan(&output, &WriteOptions::default()).unwrap().write(Watch::default()).unwrap();
    let checkpoint = Checkpoint::open(&out).unwrap();
    let counts: Vec<usize> = checkpoint.shards().iter().map(|it| it.header().len()).collect();
    assert_eq!(counts, [2, 1]);
    let first = "model-00001-of-00002.safetensors";
    assert_eq!(
        names(&out),
        [first, "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    );
}

#[test]
fn what_else_an_index_says_is_kept() {
    let folder = folder();
    let set = folder.path().join("set");
    split(&folder.path().join("one.safetensors"), &set, 30, false).unwrap();
    let path = set.join("model.safetensors.index.json");
    let index = fs::read_to_string(&path).unwrap();
    let index = index.replacen('{', r#"{"made": {"by": ["x", 1]},"#, 1);
    let index = index.replace("\"total_size\"", "\"nested\": {\"a\" : null}, \"total_size\"");
    fs::write(&path, index).unwrap();
    let out = folder.path().join("out");
    split(&set, &out, 45, false).unwrap();
    let index = fs::read_to_string(out.join("model.safetensors.index.json")).unwrap();
    for kept in [r#""made": {"by":["x",1]}"#, r#""nested": {"a":null}"#] {
        assert!(index.contains(kept), "{index}");
    }
}

#[test]
fn no_file_is_without_tensors_but_one_where_there_are_none() {
    let folder = folder();
    let set = folder.path().join("set");
    split(&folder.path().join("one.safetensors"), &set, 10, false).unwrap();
    let input = Checkpoint::open(&set).unwrap();
    let mut edit = Edit::of(&input).unwrap();
    edit.select(|_| false);
    for shards in [Shards::Keep, Shards::Most(10)] {
        let output =
            Output::Folder { path: folder.path().join("out"), stem: Some("m".into()), shards };
        let plan = edit.plan(&output, &WriteOptions::default()).unwrap();
        let files: Vec<_> = plan.files().iter().map(|it| (it.path.clone(), it.tensors)).collect();
        assert_eq!(files, [(folder.path().join("out/m.safetensors"), 0)]);
        assert!(plan.index().is_none());
    }
}

#[test]
fn files_that_differ_in_metadata_keep_it_while_they_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    fs::create_dir(&set).unwrap();
    for (number, name) in [(1, "a"), (2, "b")] {
        let file = format!("m-0000{number}-of-00002.safetensors");
        write(&set.join(file), &[(name, b"x")], &[("made", name)]);
    }
    let input = Checkpoint::open(&set).unwrap();
    let edit = Edit::of(&input).unwrap();
    let out = folder.path().join("out");
    let to = |shards| Output::Folder { path: out.clone(), stem: None, shards };
    let options = WriteOptions::default();
    let error = edit.plan(&to(Shards::Most(1)), &options).unwrap_err();
    assert_eq!(error.code(), "metadata-differs");
    edit.plan(&to(Shards::Keep), &options).unwrap().write(Watch::default()).unwrap();
    let output = Checkpoint::open(&out).unwrap();
    let metadata = output
        .shards()
        .iter()
        .map(|it| it.header().metadata().collect::<std::collections::BTreeMap<_, _>>());
    assert!(metadata.eq([map(&[("made", "a")]), map(&[("made", "b")])]));
}

/// Without `fallocate` nobody can tell.
#[cfg(target_os = "linux")]
#[test]
fn a_set_that_the_disk_has_no_room_for_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.safetensors");
    let entry = |n: u64| {
        let (begin, end) = (n << 40, (n + 1) << 40);
        format!(
            r#""{n}":{{"dtype":"U8","shape":[{}],"data_offsets":[{begin},{end}]}}"#,
            1_u64 << 40
        )
    };
    let header = format!("{{{}}}", [0, 1, 2, 3, 4, 5].map(entry).join(","));
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    fs::write(&path, &file).unwrap();
    let file_bytes = file.len() as u64 + (6 << 40);
    fs::File::options().write(true).open(&path).unwrap().set_len(file_bytes).unwrap();
    let input = Checkpoint::open(&path).unwrap();
    let out = folder.path().join("out");
    let output = Output::Folder { path: out.clone(), stem: None, shards: Shards::Most(1 << 40) };
    let plan = Edit::of(&input).unwrap().plan(&output, &WriteOptions::default()).unwrap();
    assert_eq!(plan.files().len(), 6);
    let stop = |_| std::ops::ControlFlow::Break(());
    let error = plan.write(Watch { cancel: None, progress: Some(&stop) }).unwrap_err();
    let message =
        format!("{}: the file system has no room for {} bytes more", out.display(), plan.bytes());
    assert_eq!(error.to_string(), message);
    assert_eq!(names(folder.path()), ["in.safetensors"]);
}

#[test]
fn a_folder_that_was_made_for_nothing_is_removed() {
    let folder = folder();
    let one = folder.path().join("one.safetensors");
    let input = Checkpoint::open(&one).unwrap();
    let out = folder.path().join("out");
    let output = Output::Folder { path: out.clone(), stem: None, shards: Shards::Most(10) };
    let plan = Edit::of(&input).unwrap().plan(&output, &WriteOptions::default()).unwrap();
    fs::write(&one, "changed").unwrap();
    assert!(plan.write(Watch::default()).is_err());
    assert!(!out.exists());
}
