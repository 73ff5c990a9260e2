//! The index of several checkpoints of torch: `pytorch_model.bin.index.json`.

use std::collections::BTreeSet;
use std::path::Path;

use weigh_format::Policy;
use weigh_format::index::{Index, is_plain_file_name};
use weigh_io::FileSource;
use weigh_pickle::Error as PickleError;
use weigh_pickle::state::Why;

use super::ConvertOptions;
use super::input::{Input, Opened};
use crate::survey::random_key;
use crate::{Error, Options};

impl Input {
    /// Adds all files of an index, which has to name the tensors that they have, each in its file.
    pub(super) fn add_index(&mut self, path: &Path, options: &ConvertOptions) -> Result<(), Error> {
        let wrong = |code, message: String| Error::torch(path, PickleError::new(code, message));
        let source = FileSource::open(path)?;
        let limit = Options::default().index_bytes;
        if source.len() > limit {
            let message = format!("the index is {} bytes, the limit is {limit}", source.len());
            return Err(wrong("limit-index", message));
        }
        let (index, mut findings) = Index::read(&source.read_span(0..source.len())?, random_key());
        findings.in_file(&path.to_string_lossy());
        if findings.refused_by(Policy::Compatible) {
            return Err(Error::Refused(Box::new(findings)));
        }
        if index.is_empty() {
            let message = "the index names no tensor, and so no file: its weight_map is empty";
            return Err(wrong("index-empty", message.into()));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in index.files() {
            // It was reported, and no policy takes it.
            if !is_plain_file_name(file) {
                let message = format!("the index names {file}, which is no plain file name");
                return Err(wrong("index-path", message));
            }
            self.add_torch(&folder.join(file), options)?;
            let has = self.last_names();
            let mut wants = index.tensors().filter(|(_, own)| own == file).map(|(name, _)| name);
            if let Some(missing) = wants.find(|name| !has.contains(name)) {
                let message = format!("the index has tensor {missing} in {file}, which has it not");
                return Err(wrong("index-tensor-missing", message));
            }
            if let Some(more) = has.iter().find(|name| index.get(name) != Some(file.as_str())) {
                let message = format!("{file} has tensor {more}, the index has it not in there");
                return Err(wrong("index-tensor-unnamed", message));
            }
        }
        self.is_set = true;
        Ok(())
    }

    /// The names of the tensors of the file that was added last, as it has them.
    fn last_names(&self) -> BTreeSet<&str> {
        let Some(Opened::Torch(checkpoint)) = self.opened.last() else { return BTreeSet::new() };
        let left_out = checkpoint.left_out().iter();
        let left_out = left_out.filter(|it| matches!(it.why, Why::Refused(_) | Why::Unreadable(_)));
        let names = checkpoint.names().iter().map(|named| named.name.as_str());
        names.chain(left_out.map(|it| it.name.as_str())).collect()
    }
}
