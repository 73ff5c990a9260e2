//! What `torch.load(weights_only=True)` of torch 2.15 asks of an archive, beside the pickle.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::Root;
use crate::Graph;
use crate::container::rules;
use crate::container::zip::Archive;
use crate::dtype::TorchDtype;
use crate::storage::{PersistentId, persistent_id};

impl Root {
    /// The position of the pickle that torch reads: it does not look at case, and takes the last.
    #[must_use]
    pub fn pickle_for_torch(&self, archive: &Archive) -> usize {
        let name = format!("{}/data.pkl", self.folder);
        let same = |entry: &super::Entry| entry.name.eq_ignore_ascii_case(&name);
        archive.entries.iter().rposition(same).unwrap_or(self.pickle)
    }

    /// Why torch does not take the archive with `weights_only=True`, whatever its pickle says: for its members, or for
    /// the storages that the pickle, of which this is the graph, names.
    #[must_use]
    pub fn torch_refuses(&self, archive: &Archive, graph: &Graph<'_>) -> Option<String> {
        for rule in [&rules::ZIP_ROOT, &rules::TORCH_VERSION, &rules::TORCH_BYTE_ORDER] {
            if let Some(finding) = self.findings.first(rule.code) {
                let member = finding.place.member.as_ref();
                let member = member.map_or(String::new(), |member| format!("{member}: "));
                return Some(format!("{member}{}", finding.message));
            }
        }
        if archive.entry(&format!("{}/constants.pkl", self.folder)).is_some() {
            return Some("it is a TorchScript archive".into());
        }
        if self.serialization_id.as_ref().is_some_and(|id| id.contains('\u{fffd}')) {
            return Some(".data/serialization_id is not UTF-8".into());
        }
        if self.storage_alignment.as_ref().is_some_and(|text| !is_integer(text)) {
            return Some(".storage_alignment is no number".into());
        }
        self.storage_that_torch_refuses(archive, graph)
    }

    /// A storage without a member of its size.
    fn storage_that_torch_refuses(&self, archive: &Archive, graph: &Graph<'_>) -> Option<String> {
        let mut sizes: Option<BTreeMap<String, u64>> = None;
        for id in graph.persistent_ids() {
            let Ok(PersistentId::Storage { dtype, key, numel, .. }) = persistent_id(graph, id)
            else {
                continue;
            };
            // Names end at a NUL.
            let key = key.split('\0').next().unwrap_or_default();
            let there = match self.storage(archive, key) {
                Some(entry) => Some(entry.size),
                None => {
                    let all = || {
                        let name = |entry: &super::Entry| entry.name.to_ascii_lowercase();
                        archive.entries.iter().map(|entry| (name(entry), entry.size)).collect()
                    };
                    let name = format!("{}/data/{key}", self.folder).to_ascii_lowercase();
                    sizes.get_or_insert_with(all).get(&name).copied()
                }
            };
            let wanted = numel.checked_mul(dtype.map_or(1, TorchDtype::bytes));
            match there {
                None => return Some(format!("no member has the storage {}", short(key))),
                Some(size) if Some(size) != wanted => {
                    return Some(format!(
                        "the storage {} has {size} bytes, and {} in the pickle",
                        short(key),
                        wanted.unwrap_or(u64::MAX)
                    ));
                }
                Some(_) => {}
            }
        }
        None
    }
}

fn short(key: &str) -> String {
    weigh_format::text::shortened(key).into_owned()
}

/// Whether Python's `int` takes a text, more or less: white space around it was taken away.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).to_owned();
    digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit()))
}
