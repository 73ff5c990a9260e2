//! The names that tensors are written under: different ones.

use std::collections::BTreeMap;
use std::path::Path;

use weigh_format::text::escaped;
use weigh_pickle::Error as PickleError;

use super::input::Draft;
use crate::Error;

/// Takes prefixes off names, which have to stay different.
pub(super) fn strip(path: &Path, drafts: &mut [Draft], prefixes: &[String]) -> Result<(), Error> {
    let mut names: BTreeMap<&str, &Draft> = BTreeMap::new();
    let mut stripped = Vec::with_capacity(drafts.len());
    for draft in drafts.iter() {
        let name = draft.name.as_str();
        let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix.as_str()));
        let new = rest.unwrap_or(name);
        if let Some(other) = names.insert(new, draft) {
            let message = format!(
                "{} and {} would both be called {}",
                called(other),
                called(draft),
                escaped(new)
            );
            return Err(Error::torch(path, PickleError::new("state-name-twice", message)));
        }
        stripped.push(name.len() - new.len());
    }
    for (draft, cut) in drafts.iter_mut().zip(stripped) {
        draft.name.drain(..cut);
    }
    Ok(())
}

/// A tensor by its name; a part of one by what it is of.
fn called(draft: &Draft) -> String {
    let part = draft.part.as_ref();
    let of = part.and_then(|part| draft.name.strip_suffix(part.as_str())?.strip_suffix('.'));
    match (part, of) {
        (Some(part), Some(of)) => format!("the {part} of {}", escaped(of)),
        _ => escaped(&draft.name).to_string(),
    }
}
