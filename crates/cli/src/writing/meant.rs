//! Which tensors of an edit are meant.

use weigh::{Checkpoint, Edit};

use crate::listing::{Meant, nearest};
use crate::session::{Failure, Session};

/// Whether some tensors are meant, if any are asked for; reports it, if a selector matches none or all together do.
pub(crate) fn are_some(
    session: &mut Session,
    checkpoint: &Checkpoint,
    edit: &Edit<'_>,
    meant: &Meant<'_>,
) -> bool {
    let path = checkpoint.path().to_string_lossy().into_owned();
    let names = || edit.tensors().iter().map(|tensor| &*tensor.name);
    let unmatched = meant.unmatched(names);
    for pattern in &unmatched {
        let message = format!("{path}: no tensor name matches `{pattern}`");
        let help = nearest::help(pattern, names);
        session.found(Failure { path: path.clone(), code: "no-match", message, help });
    }
    if !unmatched.is_empty() {
        return false;
    }
    let are_some = meant.is_all() || edit.tensors().iter().any(|it| meant.has(&it.item()));
    if !are_some {
        let message = format!("{path}: no tensor is left by all selectors together");
        session.found(Failure { path, code: "no-match", message, help: None });
    }
    are_some
}
