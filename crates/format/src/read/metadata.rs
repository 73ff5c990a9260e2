//! `__metadata__`: an object of strings (rule M1).

use alloc::format;

use super::{Reader, shown};
use crate::json::{Kind, RawString, Stop};
use crate::keys::Keys;
use crate::rule;
use crate::table::position;

impl<'t> Reader<'t, '_> {
    /// Reads the value of a `__metadata__` key.
    pub(super) fn metadata(&mut self, key: RawString<'t>) -> Result<(), Stop> {
        let first = self.metadata_key;
        match first {
            Some(first) => self.duplicate("key", first, key, None),
            None => self.metadata_key = Some(key.at),
        }
        match self.cursor.kind()? {
            Kind::Null => {
                let span = self.skip(2)?;
                self.report(&rule::METADATA_NULL, span, |finding| {
                    finding.says("`__metadata__` is null")
                });
            }
            Kind::Object => {
                self.has_metadata |= first.is_none();
                self.pairs(first.is_none())?;
            }
            kind => {
                let span = self.skip(2)?;
                self.report(&rule::METADATA_TYPE, span, |finding| {
                    finding.says(format!("`__metadata__` is {}, not an object", kind.name()))
                });
            }
        }
        Ok(())
    }

    fn pairs(&mut self, keep: bool) -> Result<(), Stop> {
        let mut keys = Keys::default();
        self.cursor.open(2, self.limits.depth)?;
        if self.cursor.eat(b"}") {
            return Ok(());
        }
        loop {
            let key = self.cursor.string("a string")?;
            self.cursor.expect(b':', "':'")?;
            keys.add(self.lookup.hasher(), key);
            let kind = self.cursor.kind()?;
            let span = self.skip(3)?;
            if kind == Kind::String {
                if keep {
                    self.metadata.push(position(key.at));
                }
            } else {
                self.report(&rule::METADATA_TYPE, span, |finding| {
                    let key = shown(key);
                    finding
                        .says(format!("metadata `{key}` is {}, not a string", kind.name()))
                        .with("key", key)
                });
            }
            if !self.cursor.another(b'}')? {
                self.repeated("metadata key", keys, None);
                return Ok(());
            }
        }
    }
}
