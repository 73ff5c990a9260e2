//! What is brought to the disk before what: asserted of a traced run.

use std::fs;
use std::path::Path;

use weigh_io::{WriteOptions, commit_set, rewrite_head};

use crate::folder::{Folder, KEEP, REPLACE, write, written};
use crate::trace::{self, Traced};

/// The steps of a traced run, in order: what is synced, what takes its place, what is removed.
fn steps(traced: Traced, files: &[(&str, &str)]) -> Option<Vec<String>> {
    if traced.is_child() || !trace::is_there() {
        return None;
    }
    let folder = Folder::with(files);
    let path = fs::canonicalize(folder.path()).unwrap();
    let calls = traced.calls(&path);
    Some(calls.iter().filter_map(|call| step(call, path.to_str().unwrap())).collect())
}

/// One step, if the call is one: where the file system has no files without a name, there are other calls for
/// the temporary names, which are none.
fn step(call: &str, folder: &str) -> Option<String> {
    let (name, arguments) = call.split_once('(').filter(|_| !call.contains(" = -1 "))?;
    let place = |path: &str| match path.strip_prefix(folder).map(|it| it.trim_start_matches('/')) {
        Some("") => "folder".to_owned(),
        Some(inner) if inner.starts_with('#') || inner.contains(".tmp") => "file".to_owned(),
        Some(inner) if inner.contains(".old") => {
            let name = inner.trim_start_matches('.').split(".weigh-").next();
            format!("old {}", name.unwrap_or_default())
        }
        Some(inner) => inner.to_owned(),
        None => path.to_owned(),
    };
    // fsync(3</folder/file>)
    let descriptor = || arguments.split(['<', '>']).nth(1).map(place);
    let last_path = || arguments.rsplit('"').nth(1).map(place);
    match name {
        "fsync" | "fdatasync" => Some(format!("sync {}", descriptor()?)),
        "link" | "linkat" | "rename" | "renameat" | "renameat2" => {
            let target = last_path()?;
            (target != "file").then(|| format!("place {target}"))
        }
        "unlink" | "unlinkat" => Some(format!("remove {}", last_path()?)),
        "pwrite64" => {
            let offset = arguments.split(") = ").next()?.rsplit(", ").next()?;
            Some(format!("write {} at {offset}", descriptor()?))
        }
        "fchmod" => Some("mode".to_owned()),
        _ => None,
    }
}

fn without_writes(steps: Vec<String>) -> Vec<String> {
    steps.into_iter().filter(|step| !step.starts_with("write")).collect()
}

#[test]
fn a_file_is_synced_then_placed_then_its_folder_is_synced() {
    let name = "order::a_file_is_synced_then_placed_then_its_folder_is_synced";
    let act = |folder: &Path| {
        write(folder.join("m"), "new", REPLACE).unwrap();
        write(folder.join("n"), "new", KEEP).unwrap();
    };
    let Some(steps) = steps(Traced { name, act }, &[("m", "old")]) else { return };
    let m = ["write file at 0", "mode", "sync file", "place m", "sync folder"];
    let n = ["write file at 0", "sync file", "place n", "sync folder"];
    assert_eq!(steps, [&m[..], &n].concat());
}

#[test]
fn without_syncing_nothing_is_synced() {
    let name = "order::without_syncing_nothing_is_synced";
    let act = |folder: &Path| {
        let options = WriteOptions { replace: true, sync: false };
        write(folder.join("m"), "new", options).unwrap();
        let new = |name: &str| written(folder.join(name), "new", options).unwrap();
        commit_set(vec![new("m"), new("n")], None, &[]).unwrap();
    };
    let Some(steps) = steps(Traced { name, act }, &[("m", "old")]) else { return };
    assert!(!steps.iter().any(|step| step.starts_with("sync")), "{steps:?}");
}

#[test]
fn a_set_is_complete_before_the_old_one_is_touched_and_sealed_last() {
    let name = "order::a_set_is_complete_before_the_old_one_is_touched_and_sealed_last";
    let act = |folder: &Path| {
        let new = |name: &str| written(folder.join(name), "new", REPLACE).unwrap();
        commit_set(vec![new("3"), new("1"), new("2")], Some(new("index")), &[folder.join("4")])
            .unwrap();
    };
    let files = ["2", "3", "4", "index"].map(|name| (name, "old"));
    let Some(steps) = steps(Traced { name, act }, &files) else { return };
    let steps = without_writes(steps);
    let want = [
        &["sync file"; 4][..],
        &["sync folder", "place old index", "sync folder", "place old 2", "sync folder"],
        &["place 1", "place old 3", "place 3", "place 2", "sync folder"],
        &["place old 4", "sync folder", "place index", "sync folder"],
        &["remove old 4", "remove old 3", "remove old 2", "remove old index"],
    ];
    let steps: Vec<_> = steps.iter().map(String::as_str).filter(|it| *it != "mode").collect();
    assert_eq!(steps, want.concat());
}

#[test]
fn an_edit_in_place_is_synced_at_every_step() {
    let name = "order::an_edit_in_place_is_synced_at_every_step";
    let act = |folder: &Path| {
        rewrite_head(&folder.join("m"), b"the old head: 20 b..", b"the new head: 20 b..").unwrap();
    };
    let Some(steps) = steps(Traced { name, act }, &[("m", "the old head: 20 b.. and body")]) else {
        return;
    };
    let want = [
        "mode",
        "write .m.weigh-journal at 0",
        "sync .m.weigh-journal",
        "sync folder",
        // The mark and the token.
        "write m at 0",
        "write m at 8",
        "sync m",
        // All that is behind them.
        "write m at 16",
        "sync m",
        // What belongs in their places.
        "write m at 8",
        "write m at 0",
        "sync m",
        "remove .m.weigh-journal",
    ];
    assert_eq!(steps, want);
}
