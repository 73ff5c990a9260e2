//! Which keys are meant, by name or by glob.

use std::collections::HashSet;

use weigh::inventory::Item;
use weigh::inventory::select::{PatternError, Selection};

use crate::listing::nearest;
use crate::session::{Failure, Session};

/// Keys that are meant: all, unless some are given.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

/// A key of the metadata, or a glob for several. What is a key there means that key alone, whatever it looks like.
#[derive(Debug)]
struct Key {
    text: String,
    /// What it means where it is no key.
    glob: Result<Selection, PatternError>,
}

impl Keys {
    pub(super) fn new(texts: &[String]) -> Self {
        let key = |text: &String| Key {
            text: text.clone(),
            glob: Selection::builder().include(text).build(),
        };
        Self(texts.iter().map(key).collect())
    }

    /// Those of the keys there that are meant.
    pub(super) fn among<'t>(&self, there: &[&'t str]) -> HashSet<&'t str> {
        let all: HashSet<&str> = there.iter().copied().collect();
        if self.0.is_empty() {
            return all;
        }
        self.0.iter().flat_map(|key| key.among(&all)).collect()
    }

    /// Reports what means none of the keys there are, as findings if they might; whether everything means some.
    pub(super) fn report_missing(&self, session: &mut Session, path: &str, there: &[&str]) -> bool {
        let all: HashSet<&str> = there.iter().copied().collect();
        let missing = self.0.iter().filter(|key| key.among(&all).is_empty());
        let mut is_any_missing = false;
        for Key { text, glob } in missing {
            is_any_missing = true;
            if let Err(error) = glob {
                session.failed(Failure {
                    path: String::new(),
                    code: error.code(),
                    message: error.to_string(),
                    help: Some(error.help().into()),
                });
                continue;
            }
            session.found(Failure {
                path: path.into(),
                code: "no-key",
                message: format!("{path}: no key of the metadata matches `{text}`"),
                help: nearest::help_with("key", text, || there.iter().copied()),
            });
        }
        !is_any_missing
    }
}

impl Key {
    fn among<'t>(&self, there: &HashSet<&'t str>) -> Vec<&'t str> {
        if let Some(key) = there.get(self.text.as_str()) {
            return vec![key];
        }
        let Ok(glob) = &self.glob else { return Vec::new() };
        let matches =
            |key: &&&str| glob.matches(&Item { name: key, dtype: None, shape: None, bytes: 0 });
        there.iter().filter(matches).copied().collect()
    }
}
