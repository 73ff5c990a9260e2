//! Which tensor goes to which file, and where in it.

use std::collections::BTreeMap;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use weigh_format::encode::{Declaration, Encoded, encode};
use weigh_format::index::{self, IndexError};
use weigh_format::{order, shards};
use weigh_inventory::count::Parameters;
use weigh_inventory::{Item, split};

use super::input::{Draft, Unconverted};
use super::{ConvertOptions, ConvertPlan, Format};
use crate::edit::plan::replaced;
use crate::find::INDEX_SUFFIX;
use crate::survey::random_key;
use crate::torch::npz::{self, Member};
use crate::{Error, Output, Shards, work};

/// Where what is converted goes: to a file, or to a folder. A folder is meant if it is there, if its path ends as one,
/// if there may be several files (`most` bytes of tensors in each), and if `input` is an index and the path is none of a
/// file by its name.
#[must_use]
pub fn output_for(input: &Path, path: &Path, stem: Option<String>, most: Option<u64>) -> Output {
    let is_folder = path.to_string_lossy().ends_with(['/', MAIN_SEPARATOR]) || path.is_dir();
    let is_index = input.to_string_lossy().ends_with(".index.json");
    let is_file_name = path.extension().is_some_and(|it| it == "safetensors" || it == "npz");
    if most.is_some() || is_folder || (is_index && !is_file_name) {
        let shards = most.map_or(Shards::Keep, Shards::Most);
        Output::Folder { path: path.into(), stem, shards }
    } else {
        Output::File(path.into())
    }
}

/// A file that is written.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// What it begins with, for safetensors.
    pub(super) header: Vec<u8>,
    /// The members of an archive, in the order of the tensors.
    pub(super) members: Vec<Member>,
    /// Its tensors.
    pub(super) tensors: Vec<Placed>,
    /// Where the last of them ends.
    pub(super) end: u64,
    /// Its length, about, for an archive.
    pub(super) bytes: u64,
}

/// A tensor in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) draft: usize,
    pub(super) at: u64,
}

impl ConvertPlan {
    /// Plans the files.
    pub(super) fn lay_out(
        &mut self,
        output: &Output,
        own_stem: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        match (output, self.options.format) {
            (Output::File(path), Format::Safetensors) => {
                let all: Vec<usize> = (0..self.drafts.len()).collect();
                let file = self.file(path.clone(), &all, metadata)?;
                self.files.push(file);
            }
            (Output::Folder { path, stem, shards }, Format::Safetensors) => {
                let stem = stem.as_deref().unwrap_or(own_stem);
                self.folder(path, stem, *shards, metadata)?;
            }
            (Output::File(path), Format::Npz) => {
                let file = self.npz(path.clone())?;
                self.files.push(file);
            }
            (Output::Folder { path, stem, .. }, Format::Npz) => {
                let stem = stem.as_deref().unwrap_or(own_stem);
                let file = self.npz(path.join(format!("{stem}.npz")))?;
                self.files.push(file);
                self.folder = Some(path.clone());
            }
        }
        Ok(())
    }

    fn folder(
        &mut self,
        folder: &Path,
        stem: &str,
        shards: Shards,
        metadata: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        if shards == Shards::Most(0) {
            return Err(Error::ShardSize);
        }
        if stem.is_empty() || !index::is_plain_file_name(&shards::file_name(stem, 1, 1)) {
            return Err(IndexError::FileName(stem.into()).into());
        }
        let groups = self.groups(shards);
        let count = u64::try_from(groups.len()).unwrap_or(u64::MAX);
        let names: Vec<String> =
            (1..=count).map(|number| shards::file_name(stem, number, count)).collect();
        for (name, group) in names.iter().zip(&groups) {
            let file = self.file(folder.join(name), group, metadata)?;
            self.files.push(file);
        }
        let path = folder.join(format!("{stem}{INDEX_SUFFIX}"));
        self.stale = replaced(&[], &path, stem, &names);
        if groups.len() > 1 {
            let text = self.index_text(&groups, &names)?;
            self.stale.retain(|stale| *stale != path);
            self.index = Some((path, text));
        }
        self.folder = Some(folder.into());
        Ok(())
    }

    /// The tensors of each file.
    fn groups(&self, shards: Shards) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = match shards {
            Shards::Keep => {
                let mut files: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                for (place, draft) in self.drafts.iter().enumerate() {
                    files.entry(draft.file).or_default().push(place);
                }
                files.into_values().collect()
            }
            Shards::Most(most) => {
                let names: Vec<&str> = self.drafts.iter().map(|it| it.name.as_str()).collect();
                let order = order::natural(&names, random_key()).into_iter();
                let order: Vec<usize> =
                    order.filter_map(|place| usize::try_from(place).ok()).collect();
                let bytes = |place: &usize| self.drafts.get(*place).map(|it| it.gathered.bytes());
                let bytes: Vec<u64> = order.iter().filter_map(bytes).collect();
                let groups = split::assign(&bytes, most).into_iter();
                groups.map(|group| order.get(group).unwrap_or_default().to_vec()).collect()
            }
        };
        if groups.is_empty() {
            groups.push(Vec::new());
        }
        groups
    }

    /// Plans a file of safetensors.
    fn file(
        &self,
        path: PathBuf,
        group: &[usize],
        metadata: &BTreeMap<String, String>,
    ) -> Result<File, Error> {
        let drafts: Vec<&Draft> =
            group.iter().filter_map(|place| self.drafts.get(*place)).collect();
        let declarations: Vec<Declaration<'_>> = drafts
            .iter()
            .map(|draft| Declaration { name: &draft.name, dtype: draft.dtype, shape: &draft.shape })
            .collect();
        let metadata = (!metadata.is_empty()).then_some(metadata);
        let Encoded { bytes: header, data_offsets, data_len, .. } =
            encode(&declarations, metadata, &self.options.write.layout)
                .map_err(Error::encode(&path))?;
        let start = work::length(&header);
        let mut tensors = Vec::with_capacity(group.len());
        for ((draft, offsets), of) in group.iter().zip(data_offsets).zip(&drafts) {
            if offsets.end.saturating_sub(offsets.start) != of.gathered.bytes() {
                return Err(Error::internal(format!("{} has other bytes than declared", of.name)));
            }
            tensors.push(Placed { draft: *draft, at: start.saturating_add(offsets.start) });
        }
        let end = start.saturating_add(data_len);
        Ok(File { path, header, members: Vec::new(), tensors, end, bytes: end })
    }

    /// Plans an archive, members in the order of their names.
    fn npz(&self, path: PathBuf) -> Result<File, Error> {
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.sort_by_key(|place| self.drafts.get(*place).map(|draft| draft.name.as_str()));
        let mut arrays = Vec::with_capacity(order.len());
        for draft in order.iter().filter_map(|place| self.drafts.get(*place)) {
            let (descr, shape) = numpy(draft, self.options.raw_bits)
                .ok_or_else(|| Error::internal("an array of no dtype"))?;
            arrays.push((draft.name.as_str(), descr, shape, draft.gathered.bytes()));
        }
        let members = npz::lay_out(
            arrays
                .iter()
                .map(|(name, descr, shape, bytes)| (*name, *descr, shape.as_slice(), *bytes)),
        );
        let members = members.map_err(|name| Error::Index(IndexError::FileName(name)))?;
        let placed = order.iter().zip(&members);
        let tensors = placed.map(|(draft, member)| Placed { draft: *draft, at: member.data.start });
        let tensors = tensors.collect();
        let end = members.last().map_or(0, |member| member.data.end);
        let sums: Vec<(&Member, u32)> = members.iter().map(|member| (member, 0)).collect();
        let bytes = end.saturating_add(work::length(&npz::directory(&sums, end)));
        Ok(File { path, header: Vec::new(), members, tensors, end, bytes })
    }

    fn index_text(&self, groups: &[Vec<usize>], names: &[String]) -> Result<Vec<u8>, Error> {
        let mut map: Vec<(&str, &str)> = Vec::with_capacity(self.drafts.len());
        for (group, file) in groups.iter().zip(names) {
            let drafts = group.iter().filter_map(|place| self.drafts.get(*place));
            map.extend(drafts.map(|draft| (draft.name.as_str(), file.as_str())));
        }
        let item = |draft: &'_ Draft| draft.gathered.bytes();
        let total = self.drafts.iter().map(item).fold(0, u64::saturating_add);
        let items: Vec<Item<'_>> = self
            .drafts
            .iter()
            .map(|draft| Item {
                name: &draft.name,
                dtype: Some(draft.dtype),
                shape: Some(&draft.shape),
                bytes: draft.gathered.bytes(),
            })
            .collect();
        let nothing = BTreeMap::new();
        let parameters = Parameters::of(&items).logical;
        Ok(index::encode(&map, total, parameters, &nothing, &nothing)?)
    }
}

/// What numpy calls the elements of a tensor, and its shape there.
fn numpy(draft: &Draft, raw: bool) -> Option<(&'static str, Vec<u64>)> {
    if let Some(descr) = npz::descr(draft.dtype) {
        return Some((descr, draft.shape.clone()));
    }
    if raw { npz::raw(draft.dtype, &draft.shape) } else { None }
}

/// Keeps what can be in an archive of numpy's.
pub(super) fn keep_numpy(
    drafts: &mut Vec<Draft>,
    unconverted: &mut Vec<Unconverted>,
    options: &ConvertOptions,
) {
    drafts.retain(|draft| {
        let (code, why, help) = if numpy(draft, options.raw_bits).is_none() {
            let why = format!("numpy has no dtype {}", draft.dtype);
            ("numpy-dtype", why, "Write the bits as unsigned integers, if readers know.")
        } else if !npz::is_plain_name(&draft.name) {
            let why = "the name leads elsewhere, as the name of a file".into();
            ("numpy-name", why, "Rename the tensor first.")
        } else {
            return true;
        };
        let (shape, bytes) = (Some(draft.shape.clone()), Some(draft.gathered.bytes()));
        let name = draft.name.clone();
        unconverted.push(Unconverted { name, code, why, help, shape, bytes });
        false
    });
}
