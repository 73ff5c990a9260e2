//! What is no tensor, as one JSON object.

use std::collections::BTreeMap;
use std::path::Path;

use weigh_format::text::escaped;
use weigh_pickle::Error as PickleError;
use weigh_pickle::values::{Value, to_json};

use super::input::Beside;
use crate::Error;

/// One object of what is no tensor, by name. What several files of a set say alike is in it once.
///
/// # Errors
///
/// [`Error::Torch`] if there are two values of one name, of which readers of JSON would lose one.
pub(super) fn json(path: &Path, beside: &[Beside]) -> Result<String, Error> {
    let mut json = String::from("{");
    let mut comma = "";
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for beside in beside {
        let Some(value) = &beside.json else { continue };
        match seen.insert(&beside.name, value) {
            None => {}
            Some(other) if other == value => continue,
            Some(_) => {
                let message = format!(
                    "two values that are no tensors would both be called {}: leave out --values, or \
                     take one part with --key",
                    escaped(&beside.name)
                );
                return Err(Error::torch(path, PickleError::new("value-name-twice", message)));
            }
        }
        json.extend([comma, "\n  ", &to_json(&[Value::Text(beside.name.clone())]), ": ", value]);
        comma = ",";
    }
    json.push_str(if comma.is_empty() { "}\n" } else { "\n}\n" });
    Ok(json)
}
