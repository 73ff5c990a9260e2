//! Which keys are meant, by name or by glob.

use weigh::inventory::Item;
use weigh::inventory::select::{Builder, Selection};

use crate::listing::nearest;
use crate::session::{Failure, Session};

/// Keys that are meant: all, unless some are given.
#[derive(Debug)]
pub(super) struct Keys(Selection);

impl Keys {
    /// Those that one of the globs matches.
    ///
    /// # Errors
    ///
    /// If one is no glob.
    pub(super) fn new(globs: &[String]) -> Result<Self, Failure> {
        let selection = globs.iter().fold(Selection::builder(), Builder::include).build();
        let selection = selection.map_err(|error| Failure {
            path: String::new(),
            code: error.code(),
            message: error.to_string(),
            help: Some(error.help().into()),
        })?;
        Ok(Self(selection))
    }

    /// Whether this one is.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.matches(&Item { name: key, dtype: None, shape: None, bytes: 0 })
    }

    /// Reports as findings what matches none of the keys there are; whether everything matches some.
    pub(super) fn report_missing(&self, session: &mut Session, path: &str, there: &[&str]) -> bool {
        let missing = self.0.unmatched(there.iter().copied());
        for key in &missing {
            session.found(Failure {
                path: path.into(),
                code: "no-key",
                message: format!("{path}: no key of the metadata matches `{key}`"),
                help: nearest::help_with("key", key, || there.iter().copied()),
            });
        }
        missing.is_empty()
    }
}
