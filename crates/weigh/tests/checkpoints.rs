//! Finding, surveying and opening checkpoints as they lie on disk.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weigh::format::encode::{Declaration, Layout as HeaderLayout, encode};
use weigh::format::{Dtype, Verdict};
use weigh::{Checkpoint, Error, Layout, Options, Survey, find};

fn file(tensors: &[&str]) -> Vec<u8> {
    let declared: Vec<Declaration<'_>> =
        tensors.iter().map(|name| Declaration { name, dtype: Dtype::F32, shape: &[2] }).collect();
    let encoded = encode(&declared, None, &HeaderLayout::default()).unwrap();
    let mut bytes = encoded.bytes;
    bytes.resize(bytes.len() + usize::try_from(encoded.data_len).unwrap(), 0);
    bytes
}

/// A folder with these files; those that end in `.safetensors` have one tensor, named after them.
fn folder(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = if name.ends_with(".safetensors") { file(&[name]) } else { Vec::new() };
        fs::write(path, content).unwrap();
    }
    folder
}

fn index(folder: &Path, name: &str, map: &[(&str, &str)]) {
    let map: Vec<String> =
        map.iter().map(|(tensor, file)| format!("{tensor:?}:{file:?}")).collect();
    let text = format!("{{\"metadata\":{{}},\"weight_map\":{{{}}}}}", map.join(","));
    fs::write(folder.join(name), text).unwrap();
}

/// What is found in a folder: each checkpoint's layout and path below the folder.
fn found(folder: &Path) -> Vec<(Layout, String)> {
    let below = |path: PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
    find(folder).unwrap().into_iter().map(|it| (it.layout, below(it.path))).collect()
}

#[test]
fn a_folder_stands_for_what_is_in_it() {
    let of = |layout, path: &str| (layout, String::from(path));
    let one = folder(&["model.safetensors", "config.json", ".hidden.safetensors"]);
    assert_eq!(found(one.path()), [of(Layout::File, "")]);
    let set = folder(&["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"]);
    assert_eq!(found(set.path()), [of(Layout::Numbered, "")]);
    index(set.path(), "m.safetensors.index.json", &[]);
    assert_eq!(found(set.path()), [of(Layout::Indexed, "")]);

    let variants = folder(&["model.fp16.safetensors", "model.safetensors"]);
    let each = ["model.fp16.safetensors", "model.safetensors"].map(|it| of(Layout::File, it));
    assert_eq!(found(variants.path()), each);

    let beside = folder(&[
        "m-00001-of-00002.safetensors",
        "m-00002-of-00002.safetensors",
        "consolidated.safetensors",
    ]);
    let both = [
        of(Layout::File, "consolidated.safetensors"),
        of(Layout::Numbered, "m-00001-of-00002.safetensors"),
    ];
    assert_eq!(found(beside.path()), both);

    let pipeline =
        folder(&["unet/model.safetensors", "vae/model.safetensors", "vae/.x/a.safetensors"]);
    assert_eq!(found(pipeline.path()), [of(Layout::File, "unet"), of(Layout::File, "vae")]);

    let two = folder(&["a-00001-of-00001.safetensors", "b.safetensors"]);
    index(two.path(), "a.safetensors.index.json", &[]);
    index(two.path(), "a.fp16.safetensors.index.json", &[]);
    let three = [
        of(Layout::Indexed, "a.fp16.safetensors.index.json"),
        of(Layout::Indexed, "a.safetensors.index.json"),
        of(Layout::File, "b.safetensors"),
    ];
    assert_eq!(found(two.path()), three);
}

#[test]
fn a_folder_without_any_says_what_is_there_instead() {
    let message = |folder: &TempDir| {
        let text = find(folder.path()).unwrap_err().to_string();
        text.strip_prefix(&folder.path().display().to_string()).unwrap().to_string()
    };
    assert_eq!(message(&folder(&["a.txt"])), ": no safetensors file in this folder");
    assert_eq!(
        message(&folder(&["model.bin"])),
        ": no safetensors file in this folder, but a torch checkpoint, model.bin"
    );
    assert_eq!(
        message(&folder(&["a.pt", "b.pt"])),
        ": no safetensors file in this folder, but 2 torch checkpoints, like a.pt"
    );
    assert_eq!(find("/absent/model").unwrap_err().code(), "io-missing");
}

#[test]
fn several_checkpoints_have_to_be_chosen_from() {
    let variants = folder(&["a.safetensors", "b.safetensors"]);
    let error = Checkpoint::open(variants.path()).unwrap_err();
    assert!(matches!(&error, Error::Several { candidates, .. } if candidates.len() == 2));
    assert!(error.to_string().contains("several checkpoints: "), "{error}");
    assert_eq!(Checkpoint::open(variants.path().join("a.safetensors")).unwrap().len(), 1);
}

#[test]
fn opening_reads_the_headers_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"];
    let (one, two) = (file(&["layers.10.w", "layers.2.w"]), file(&["a"]));
    fs::write(folder.path().join(names[0]), &one).unwrap();
    fs::write(folder.path().join(names[1]), &two).unwrap();
    let map = [("layers.10.w", names[0]), ("layers.2.w", names[0]), ("a", names[1])];
    index(folder.path(), "m.safetensors.index.json", &map);

    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let tensors = checkpoint.tensors();
    let listed: Vec<_> = tensors.iter().map(|tensor| tensor.name).collect();
    assert_eq!(listed, ["a", "layers.2.w", "layers.10.w"]);
    let read: u64 =
        checkpoint.shards().iter().map(|shard| shard.file().unwrap().bytes_read()).sum();
    // The length field of each twice: an edit may have been under way.
    assert_eq!(read, (one.len() + two.len() - 3 * 8 + 2 * 8) as u64);

    let tensor = checkpoint.get("layers.2.w").unwrap();
    assert_eq!((tensor.dtype, tensor.shape), (Dtype::F32, &[2][..]));
    assert_eq!(tensor.span, one.len() as u64 - 8..one.len() as u64);
    assert_eq!(tensor.shard.path(), folder.path().join(names[0]));
    assert!(checkpoint.get("layers.3.w").is_none());
}

#[test]
fn shards_keep_the_order_of_the_index_however_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (1..=40).map(|it| format!("m-{it:05}-of-00040.safetensors")).collect();
    for name in &names {
        fs::write(folder.path().join(name), file(&[name])).unwrap();
    }
    let map: Vec<(&str, &str)> = names.iter().rev().map(|it| (it.as_str(), it.as_str())).collect();
    index(folder.path(), "m.safetensors.index.json", &map);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let paths =
        checkpoint.shards().iter().map(|it| it.path().file_name().unwrap().to_str().unwrap());
    assert!(paths.eq(names.iter().rev()));
}

#[test]
fn a_shard_outside_the_folder_is_never_opened() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(outer.path().join("secret.safetensors"), file(&["secret"])).unwrap();
    index(&inner, "m.safetensors.index.json", &[("secret", "../secret.safetensors")]);
    let survey = Survey::take(&find(&inner).unwrap()[0], &Options::default()).unwrap();
    assert_eq!((survey.shards().len(), survey.len()), (0, 0));
    assert_eq!(survey.verdict(), Verdict::Invalid);
    assert_eq!(Checkpoint::open(&inner).unwrap_err().code(), "index-path");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_folder_is_followed_as_caches_need_it() {
    let outer = folder(&["blob.safetensors"]);
    let snapshot = outer.path().join("snapshot");
    fs::create_dir(&snapshot).unwrap();
    std::os::unix::fs::symlink("../blob.safetensors", snapshot.join("model.safetensors")).unwrap();
    assert_eq!(Checkpoint::open(&snapshot).unwrap().len(), 1);
}

#[test]
fn a_missing_shard_is_a_finding_and_an_unreadable_one_a_failure() {
    let folder = folder(&["m-00001-of-00002.safetensors"]);
    let own = "m-00001-of-00002.safetensors";
    let map = [(own, own), ("b", "m-00002-of-00002.safetensors")];
    index(folder.path(), "m.safetensors.index.json", &map);
    let take = || Survey::take(&find(folder.path()).unwrap()[0], &Options::default()).unwrap();
    let survey = take();
    let codes: Vec<_> = survey
        .findings()
        .flat_map(weigh::format::Findings::list)
        .map(weigh::format::Finding::code)
        .collect();
    assert_eq!(codes, ["index-shard-missing"]);
    assert_eq!(survey.failures().count(), 0);

    fs::create_dir(folder.path().join("m-00002-of-00002.safetensors")).unwrap();
    let survey = take();
    assert_eq!(survey.failures().map(weigh::io::Error::code).collect::<Vec<_>>(), ["io-is-folder"]);
    assert_eq!(Checkpoint::open(folder.path()).unwrap_err().code(), "io-is-folder");
}

#[test]
fn an_unsound_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let whole = file(&["a"]);
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let error = Checkpoint::open(&path).unwrap_err();
    assert_eq!(error.code(), "data-truncated");
    let message = error.to_string();
    assert!(message.starts_with(&path.display().to_string()), "{message}");
    assert!(message.ends_with("0 of 1 tensors are complete"), "{message}");
    assert!(error.help().is_some());
}

#[test]
fn an_index_over_the_limit_is_not_read() {
    let folder = folder(&["a.safetensors"]);
    index(folder.path(), "m.safetensors.index.json", &[("a.safetensors", "a.safetensors")]);
    let options = Options { index_bytes: 10, ..Options::default() };
    let error = Checkpoint::open_with(folder.path(), &options).unwrap_err();
    assert_eq!(error.code(), "limit-index");
}

/// A file of the size of a 70-billion-parameter model lists from its header alone, whatever its size.
#[test]
fn a_file_of_141_gigabytes_costs_its_header() {
    let names: Vec<String> = (0..723).map(|it| format!("model.layers.{it}.weight")).collect();
    let shape = [195_000_000_u64 / 2];
    let declared: Vec<Declaration<'_>> =
        names.iter().map(|name| Declaration { name, dtype: Dtype::BF16, shape: &shape }).collect();
    let encoded = encode(&declared, None, &HeaderLayout::default()).unwrap();
    let header_bytes = encoded.bytes.len() as u64;
    assert_eq!(encoded.data_len, 140_985_000_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::write(&path, &encoded.bytes).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // Sparse: takes no space.
    file.set_len(header_bytes + encoded.data_len).unwrap();

    let survey = Survey::take(&find(&path).unwrap()[0], &Options::default()).unwrap();
    assert_eq!((survey.len(), survey.verdict()), (723, Verdict::Valid));
    assert_eq!(survey.file_bytes(), header_bytes + encoded.data_len);
    assert_eq!(survey.bytes_read(), header_bytes + 8);
}

#[test]
fn the_files_of_a_checkpoint_are_told_without_reading_them() {
    let paths = |folder: &Path| {
        let found = find(folder).unwrap();
        let paths = found.iter().map(|it| it.shard_paths(&Options::default()));
        paths.collect::<Result<Vec<_>, _>>()
    };
    let numbered = ["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"];
    let set = folder(&numbered);
    let at = |name: &str| set.path().join(name);
    assert_eq!(paths(set.path()).unwrap(), [numbered.map(at).to_vec()]);
    let absent = [("a", numbered[1]), ("b", "absent.safetensors")];
    index(set.path(), "m.safetensors.index.json", &absent);
    assert_eq!(paths(set.path()).unwrap(), [absent.map(|(_, file)| at(file)).to_vec()]);
    index(set.path(), "m.safetensors.index.json", &[("a", "../m.safetensors")]);
    assert_eq!(paths(set.path()).unwrap_err().code(), "index-path");
}
