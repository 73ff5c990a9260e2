//! Tensors in memory, written as a sharded set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weigh_format::index::{self, IndexError};
use weigh_format::{order, shards};
use weigh_inventory::count::Parameters;
use weigh_inventory::{Item, split};
use weigh_io::{NewFile, commit_set};

use super::{Watch, WriteOptions, Writer, bytes_of};
use crate::edit::plan::replaced;
use crate::find::INDEX_SUFFIX;
use crate::targets::Targets;
use crate::work::{self, Meter};
use crate::{Error, View};

/// Writes tensors that are in memory to a folder, which is made if need be: one file named `STEM.safetensors`, or
/// several of at most `most` bytes of tensors each, and their index. A larger tensor is by itself.
///
/// Tensors go together in natural order of their names. All files are complete before the first takes its place,
/// and the index is last. Returns the paths of the files, the index last.
///
/// # Errors
///
/// Those of [`save`](super::save); [`Error::Index`] if files cannot be named like that.
pub fn save_sharded(
    folder: impl AsRef<Path>,
    stem: &str,
    most: u64,
    tensors: &[(&str, View<'_>)],
    metadata: &BTreeMap<String, String>,
    options: &WriteOptions,
    watch: Watch<'_>,
) -> Result<Vec<PathBuf>, Error> {
    let folder = folder.as_ref();
    if most == 0 {
        return Err(Error::ShardSize);
    }
    if stem.is_empty() || !index::is_plain_file_name(&shards::file_name(stem, 1, 1)) {
        return Err(IndexError::FileName(stem.into()).into());
    }
    let names: Vec<&str> = tensors.iter().map(|(name, _)| *name).collect();
    let order = order::natural(&names, crate::survey::random_key()).into_iter();
    let sorted: Vec<(&str, View<'_>)> =
        order.filter_map(|place| tensors.get(usize::try_from(place).ok()?).copied()).collect();
    let bytes: Vec<u64> = sorted.iter().map(|(_, view)| work::length(view.bytes())).collect();
    let groups = split::assign(&bytes, most);
    let count = u64::try_from(groups.len().max(1)).unwrap_or(u64::MAX);
    let files: Vec<String> =
        (1..=count).map(|number| shards::file_name(stem, number, count)).collect();
    let in_group = |place: usize| {
        let group = groups.get(place).cloned().unwrap_or_default();
        sorted.get(group).unwrap_or_default()
    };
    let index_path = folder.join(format!("{stem}{INDEX_SUFFIX}"));
    let text = if files.len() > 1 { Some(index_text(&sorted, &files, in_group)?) } else { None };
    let mut stale = replaced(&[], &index_path, stem, &files);
    if text.is_some() {
        stale.retain(|path| *path != index_path);
    }
    let mut paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    paths.extend(text.is_some().then(|| index_path.clone()));
    let (targets, replace) = (paths.iter().map(PathBuf::as_path).collect(), options.replace);
    Targets { files: targets, stale: &stale, folder: Some(folder), replace }.check()?;
    let meter = Meter::new(bytes_of(&sorted), watch);
    work::in_folder(Some(folder), options.sync, || {
        let mut members = Vec::with_capacity(files.len());
        for (place, path) in paths.iter().take(files.len()).enumerate() {
            let group = in_group(place);
            let writer = Writer::of_views(path, group, metadata, options)?;
            writer.write_views(group, &meter)?;
            let mut file = writer.complete()?;
            file.prepare()?;
            members.push(file);
        }
        let seal = text.as_ref().map(|text| {
            let seal = NewFile::create(&index_path, &options.of_files())?;
            seal.write_at(text, 0)?;
            Ok::<_, Error>(seal)
        });
        commit_set(members, seal.transpose()?, &stale)?;
        Ok(paths)
    })
}

fn index_text<'v>(
    sorted: &'v [(&'v str, View<'v>)],
    files: &[String],
    in_group: impl Fn(usize) -> &'v [(&'v str, View<'v>)],
) -> Result<Vec<u8>, Error> {
    let mut map: Vec<(&str, &str)> = Vec::with_capacity(sorted.len());
    for (place, file) in files.iter().enumerate() {
        map.extend(in_group(place).iter().map(|(name, _)| (*name, file.as_str())));
    }
    let item = |(name, view): &(&'v str, View<'v>)| Item {
        name,
        dtype: Some(view.dtype()),
        shape: Some(view.shape()),
        bytes: work::length(view.bytes()),
    };
    let nothing = BTreeMap::new();
    let items: Vec<Item<'_>> = sorted.iter().map(item).collect();
    Ok(index::encode(&map, bytes_of(sorted), Parameters::of(&items).logical, &nothing, &nothing)?)
}
