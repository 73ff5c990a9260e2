//! What a plan says of the places that its files go to, before anything is written.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use weigh::{
    Checkpoint, Edit, Error, MetadataOptions, MetadataOutput, Output, Shards, WriteOptions,
};

use crate::files::{names, write};

/// A file of two tensors of three bytes.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("in.safetensors"), &[("a", b"one"), ("b", b"two")], &[]);
    folder
}

fn replace(replace: bool) -> WriteOptions {
    WriteOptions { replace, ..WriteOptions::default() }
}

fn planned(folder: &Path, output: &Output, options: &WriteOptions) -> Result<Vec<String>, Error> {
    let input = Checkpoint::open(folder.join("in.safetensors")).unwrap();
    let plan = Edit::of(&input)?.plan(output, options)?;
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    Ok(plan.files().iter().map(|file| name(&file.path)).collect())
}

/// The code and the path, from the folder on, of what is in the way of files that go there.
fn refused(folder: &Path, output: &Output, options: &WriteOptions) -> (&'static str, String) {
    let before = names(folder);
    let error = planned(folder, output, options).unwrap_err();
    assert_eq!(names(folder), before);
    let path = error.path().unwrap();
    let path = path.strip_prefix(folder).unwrap_or(path);
    (error.code(), path.to_str().unwrap().into())
}

fn shards(path: &Path) -> Output {
    Output::Folder { path: path.into(), stem: Some("m".into()), shards: Shards::Most(3) }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_at_once() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    for (name, want) in [
        ("in.safetensors/x", ("io-not-a-folder", "in.safetensors")),
        ("no/such/x", ("io-missing", "no/such")),
        ("no/x", ("io-missing", "no")),
        ("folder", ("io-is-folder", "folder")),
    ] {
        for is_replaced in [false, true] {
            let got = refused(folder.path(), &Output::File(at(name)), &replace(is_replaced));
            assert_eq!((got.0, got.1.as_str()), want, "{name}");
        }
    }
    let there = Output::File(at("in.safetensors"));
    let want = ("io-exists", "in.safetensors".into());
    assert_eq!(refused(folder.path(), &there, &replace(false)), want);
    assert!(planned(folder.path(), &there, &replace(true)).is_ok());
    assert!(planned(folder.path(), &Output::File(at("folder/x")), &replace(false)).is_ok());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_and_links_that_lead_nowhere_are_refused_at_once() {
    use std::os::unix::fs::symlink;
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink("circle", at("circle")).unwrap();
    symlink("no/such", at("astray")).unwrap();
    symlink("fresh", at("free")).unwrap();
    for (path, want) in [
        (at("socket"), ("io-not-a-file", "socket")),
        ("/dev/null".into(), ("io-not-a-file", "/dev/null")),
        (at("circle"), ("io-system", "circle")),
        (at("astray"), ("io-missing", "no")),
    ] {
        let got = refused(folder.path(), &Output::File(path.clone()), &replace(true));
        assert_eq!((got.0, got.1.as_str()), want, "{}", path.display());
    }
    assert!(planned(folder.path(), &Output::File(at("free")), &replace(false)).is_ok());
}

#[test]
fn a_set_that_cannot_be_written_is_refused_at_once() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let [second, index] = ["m-00002-of-00002.safetensors", "m.safetensors.index.json"];
    for (taken, name) in [("one", second), ("other", index)] {
        fs::create_dir_all(at(taken).join(name)).unwrap();
        let got = refused(folder.path(), &shards(&at(taken)), &replace(true));
        assert_eq!(got, ("io-is-folder", format!("{taken}/{name}")));
    }
    for (name, want) in [
        ("in.safetensors", ("io-not-a-folder", "in.safetensors")),
        ("no/such", ("io-missing", "no")),
        ("in.safetensors/x", ("io-not-a-folder", "in.safetensors")),
    ] {
        let got = refused(folder.path(), &shards(&at(name)), &replace(true));
        assert_eq!((got.0, got.1.as_str()), want, "{name}");
    }
    assert_eq!(planned(folder.path(), &shards(&at("new/")), &replace(false)).unwrap().len(), 2);
}

#[cfg(unix)]
#[test]
fn two_files_that_links_make_one_are_refused_at_once() {
    let folder = folder();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(folder.path().join("shared"), "").unwrap();
    for number in [1, 2] {
        let link = out.join(format!("m-0000{number}-of-00002.safetensors"));
        std::os::unix::fs::symlink("../shared", link).unwrap();
    }
    let error = planned(folder.path(), &shards(&out), &replace(true)).unwrap_err();
    assert!(matches!(&error, Error::SameTarget { .. }), "{error}");
    assert_eq!(error.code(), "same-target");
}

#[test]
fn an_index_says_whether_it_replaces_one() {
    let folder = folder();
    let out = folder.path().join("out");
    let input = Checkpoint::open(folder.path().join("in.safetensors")).unwrap();
    for replaces in [false, true] {
        let plan = Edit::of(&input).unwrap().plan(&shards(&out), &replace(true)).unwrap();
        assert_eq!(plan.index().unwrap().replaces, replaces);
        plan.write(weigh::Watch::default()).unwrap();
    }
}

#[test]
fn metadata_goes_only_where_files_can() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let input = Checkpoint::open(at("in.safetensors")).unwrap();
    fs::write(at("file"), "").unwrap();
    for (output, code) in [
        (MetadataOutput::Folder(at("file")), "io-not-a-folder"),
        (MetadataOutput::Folder(at("no/such")), "io-missing"),
        (MetadataOutput::File(at("no/such")), "io-missing"),
        (MetadataOutput::File(at("file")), "io-exists"),
    ] {
        let options = MetadataOptions::default();
        let error = input.plan_metadata(|_| (), &output, &options).unwrap_err();
        assert_eq!(error.code(), code, "{output:?}");
    }
}

#[test]
fn files_of_a_set_are_named_after_what_is_split() {
    let folder = folder();
    let named = |own: &str, given: Option<&str>, shards| {
        let stem = given.map(String::from);
        let path = folder.path().join(format!("{own}.safetensors"));
        write(&path, &[("a", b"one"), ("b", b"two")], &[]);
        let input = Checkpoint::open(&path).unwrap();
        let output = Output::Folder { path: folder.path().join("out"), stem, shards };
        let plan = Edit::of(&input).unwrap().plan(&output, &replace(false));
        fs::remove_file(&path).unwrap();
        plan.map(|plan| {
            let file = plan.files()[0].path.file_name().unwrap().to_str().unwrap();
            file.strip_suffix(".safetensors").unwrap().to_owned()
        })
    };
    let part = "x-00001-of-00002";
    let long = "l".repeat(255 - ".safetensors.index.json".len());
    for (own, given, shards, want) in [
        ("x", None, Shards::Most(3), part),
        (part, None, Shards::Most(3), part),
        (part, None, Shards::Most(6), "x"),
        (part, None, Shards::Keep, part),
        ("00001-of-00002", None, Shards::Most(6), "model"),
        ("x", Some("y"), Shards::Most(6), "y"),
        ("x", Some(part), Shards::Most(6), part),
        (".x", None, Shards::Keep, ".x"),
        ("x", Some(long.as_str()), Shards::Most(6), long.as_str()),
    ] {
        assert_eq!(named(own, given, shards).unwrap(), want, "{own} {given:?} {shards:?}");
    }
    let longer = format!("{long}l");
    for (own, given) in [
        (".x", None),
        ("we:ird", None),
        ("x", Some("")),
        ("x", Some(".")),
        ("x", Some(".y")),
        ("x", Some("a/b")),
        ("x", Some(longer.as_str())),
    ] {
        let error = named(own, given, Shards::Most(3)).unwrap_err();
        assert_eq!(error.code(), "index-path", "{own} {given:?}");
        assert!(error.help().unwrap().contains("--name"));
    }
    assert_eq!(named("x", None, Shards::Most(0)).unwrap_err().code(), "shard-size");
}
