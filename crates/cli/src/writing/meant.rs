//! Which tensors of an edit are meant.

use anyhow::Result;
use weigh::inventory::Item;
use weigh::inventory::select::Selection;
use weigh::{Checkpoint, Edit};

use crate::args::Select;
use crate::listing::{by_address, by_flags, nearest};
use crate::session::{Failure, Session};

/// Those that both the flags and the selector of an address mean.
#[derive(Debug)]
pub(crate) struct MeantTensors([Selection; 2]);

impl MeantTensors {
    pub(crate) fn is_all(&self) -> bool {
        self.0.iter().all(Selection::is_all)
    }

    pub(crate) fn has(&self, item: &Item<'_>) -> bool {
        self.0.iter().all(|selection| selection.matches(item))
    }
}

/// The tensors that are meant; nothing, reported, if a selector matches none or all together do.
pub(crate) fn meant(
    session: &mut Session,
    checkpoint: &Checkpoint,
    edit: &Edit<'_>,
    select: &Select,
    selector: Option<&str>,
) -> Result<Option<MeantTensors>> {
    let path = checkpoint.path();
    let selections = [by_flags(select)?, by_address(path, selector)?];
    let meant = MeantTensors(selections);
    let names = || edit.tensors().iter().map(|tensor| &*tensor.name);
    let unmatched = meant.0.iter().flat_map(|it| it.unmatched(names()));
    let mut is_sound = true;
    let path = path.to_string_lossy().into_owned();
    for pattern in unmatched {
        let message = format!("{path}: no tensor name matches `{pattern}`");
        let help = nearest::help(pattern, names);
        session.found(Failure { path: path.clone(), code: "no-match", message, help });
        is_sound = false;
    }
    if is_sound && !meant.is_all() && !edit.tensors().iter().any(|it| meant.has(&it.item())) {
        let message = format!("{path}: no tensor is left by all selectors together");
        session.found(Failure { path, code: "no-match", message, help: None });
        is_sound = false;
    }
    Ok(is_sound.then_some(meant))
}
