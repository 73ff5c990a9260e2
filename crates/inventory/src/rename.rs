//! New names for tensors: substitutions, maps of whole names, and prefixes.
//!
//! Rules are applied to each name one after the other, in the order they were given. What would
//! damage a checkpoint, and what is most often a typing error, is found before anything is written:
//! two tensors of one name, a reserved or over-long name, a rule that changes no name.
//!
//! This module knows names only. It reads no map file ([`parse_map`] reads its text) and moves no
//! bytes.

mod error;
mod map;
mod substitute;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use error::Faults;
pub use error::{Fault, RenameError};
pub use map::{MapError, MapErrorKind, parse_map};
use substitute::{Substitute, TooLong};
pub use substitute::{SubstituteError, SubstituteErrorKind};

/// Rules that give tensors new names.
///
/// ```
/// use weigh_inventory::rename::Rename;
///
/// let rename = Rename::builder().substitute(r"s/^model\.//")?.add_prefix("decoder.").build();
/// let names = ["model.norm.weight", "lm_head.weight"];
/// assert_eq!(
///     rename.apply(names)?,
///     ["decoder.norm.weight", "decoder.lm_head.weight"]
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rename {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    Substitute(Box<Substitute>),
    /// Old names, each with the new one.
    Map(HashMap<String, String>),
    StripPrefix(String),
    AddPrefix(String),
}

/// Makes a [`Rename`]. See [`Rename::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    rules: Vec<Rule>,
}

impl Builder {
    /// Replaces what a regular expression finds: `s/REGEX/REPLACEMENT/FLAGS`, as in `sed`.
    ///
    /// The regular expression is one of the crate `regex`, looked for anywhere in the name. Any
    /// character after the `s` may stand for `/`; a backslash before it makes it an ordinary one, and so do
    /// the brackets of a class in the regular expression, as in `s/[/]/./`. In the replacement `&` is all that was found and `\1` to `\9` are groups of it; `\n` is a line
    /// feed, `\t` a tab, and a backslash makes any character that is no letter and no digit ordinary;
    /// `$` is ordinary. Flags are `g`, to replace every occurrence and not only the first, and `i`,
    /// to ignore case.
    ///
    /// # Errors
    ///
    /// [`SubstituteError`], if `expression` is not that.
    pub fn substitute(mut self, expression: &str) -> Result<Self, SubstituteError> {
        self.rules.push(Rule::Substitute(Box::new(Substitute::parse(expression)?)));
        Ok(self)
    }

    /// Gives the tensor that is named `old` the name `new`.
    ///
    /// Such calls that follow each other are one rule: a name is looked up once, so that two names can be
    /// swapped. A second call for the same `old` begins another rule.
    #[must_use]
    pub fn map(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        let (old, new) = (old.into(), new.into());
        match self.rules.last_mut() {
            Some(Rule::Map(map)) if !map.contains_key(&old) => {
                map.insert(old, new);
            }
            _ => self.rules.push(Rule::Map(HashMap::from([(old, new)]))),
        }
        self
    }

    /// Takes `prefix` off the names that begin with it.
    #[must_use]
    pub fn strip_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.rules.push(Rule::StripPrefix(prefix.into()));
        self
    }

    /// Puts `prefix` before every name.
    #[must_use]
    pub fn add_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.rules.push(Rule::AddPrefix(prefix.into()));
        self
    }

    /// The rules.
    #[must_use]
    pub fn build(self) -> Rename {
        Rename { rules: self.rules }
    }
}

/// The key of the metadata, which no tensor may be named.
const RESERVED: &str = "__metadata__";

impl Rename {
    /// Longest new name that is accepted, in bytes.
    pub const NAME_BYTES: usize = 1 << 16;
    /// Bytes that new names may take together.
    pub const NAMES_BYTES: usize = 1 << 30;

    /// Leaves every name as it is, until told what to do.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The new names, in the order of the old ones. Names that no rule changes are borrowed.
    ///
    /// Takes time in proportion to the bytes of the names, for each rule.
    ///
    /// # Errors
    ///
    /// [`RenameError`] with everything that is wrong: names that come twice, are reserved or too long,
    /// rules, or names in a map, that match no tensor, and rules that change nothing. No rules at all are no
    /// error: see [`Rename::is_empty`].
    pub fn apply<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Vec<Cow<'n, str>>, RenameError> {
        let old: Vec<&str> = names.into_iter().collect();
        let mut used: Vec<Used<'_>> = self.rules.iter().map(|_| Used::default()).collect();
        let mut faults = Faults::default();
        let mut left = Self::NAMES_BYTES;
        let mut all_renamed = true;
        let mut new = Vec::with_capacity(old.len());
        for &name in &old {
            let Ok(renamed) = self.one(name, left, &mut used) else {
                all_renamed = false;
                faults.add(Fault::too_long(name));
                new.push(Cow::Borrowed(name));
                continue;
            };
            if let Cow::Owned(renamed) = &renamed {
                left = left.saturating_sub(renamed.len());
            }
            if renamed == RESERVED {
                faults.add(Fault::reserved(name));
            }
            new.push(renamed);
        }
        find_collisions(&old, &new, &mut faults);
        // Rules that were not reached may have been of use.
        if all_renamed {
            self.find_unused(&used, &mut faults);
        }
        faults.none_or_error().map(|()| new)
    }

    /// The new name of one tensor, which may be as long as it was, whatever is left.
    fn one<'n, 'r>(
        &'r self,
        name: &'n str,
        left: usize,
        used: &mut [Used<'r>],
    ) -> Result<Cow<'n, str>, TooLong> {
        let most = Self::NAME_BYTES.max(name.len()).min(left.max(name.len()));
        let mut current = Cow::Borrowed(name);
        for (rule, used) in self.rules.iter().zip(used) {
            match rule {
                Rule::Substitute(substitute) => {
                    if let Some(changed) = substitute.apply(&current, most)? {
                        used.matched = true;
                        if changed != current {
                            used.changed = true;
                            current = Cow::Owned(changed);
                        }
                    }
                }
                Rule::Map(map) => {
                    if let Some((old, new)) = map.get_key_value(current.as_ref()) {
                        used.names.push(old);
                        if old != new {
                            used.changed = true;
                            current = Cow::Owned(new.clone());
                        }
                    }
                }
                Rule::StripPrefix(prefix) => {
                    if let Some(rest) = current.strip_prefix(prefix.as_str()) {
                        used.matched = true;
                        used.changed |= !prefix.is_empty();
                        let from = current.len() - rest.len();
                        match &mut current {
                            Cow::Borrowed(name) => *name = &name[from..],
                            Cow::Owned(name) => drop(name.drain(..from)),
                        }
                    }
                }
                Rule::AddPrefix(prefix) => {
                    used.matched = true;
                    if !prefix.is_empty() {
                        used.changed = true;
                        current.to_mut().insert_str(0, prefix);
                    }
                }
            }
            if current.len() > most {
                return Err(TooLong);
            }
        }
        Ok(current)
    }

    fn find_unused(&self, used: &[Used<'_>], faults: &mut Faults) {
        for (number, (rule, used)) in self.rules.iter().zip(used).enumerate() {
            let is_after_others = number > 0;
            match rule {
                Rule::Map(map) => {
                    let names: HashSet<&str> = used.names.iter().copied().collect();
                    let mut unknown: Vec<&str> =
                        map.keys().map(String::as_str).filter(|old| !names.contains(old)).collect();
                    unknown.sort_unstable();
                    for name in unknown {
                        faults.add(Fault::UnknownName { name: name.into(), is_after_others });
                    }
                    if !used.changed && !names.is_empty() {
                        faults.add(Fault::ChangesNothing { rule: rule.shown() });
                    }
                }
                _ if used.changed => {}
                _ if used.matched || rule.is_empty() => {
                    faults.add(Fault::ChangesNothing { rule: rule.shown() });
                }
                // Of no names there are none that a prefix was put before.
                Rule::AddPrefix(_) => {}
                _ => faults.add(Fault::Unused { rule: rule.shown(), is_after_others }),
            }
        }
    }
}

impl Rule {
    /// As it is told of.
    fn shown(&self) -> String {
        match self {
            Self::Substitute(substitute) => substitute.expression().into(),
            Self::Map(_) => "map".into(),
            Self::StripPrefix(prefix) => format!("strip prefix {prefix}"),
            Self::AddPrefix(prefix) => format!("add prefix {prefix}"),
        }
    }

    /// Whether it can change no name, whatever that is.
    fn is_empty(&self) -> bool {
        match self {
            Self::StripPrefix(prefix) | Self::AddPrefix(prefix) => prefix.is_empty(),
            Self::Substitute(_) | Self::Map(_) => false,
        }
    }
}

/// What a rule was of use for.
#[derive(Debug, Default)]
struct Used<'r> {
    /// Whether it was for a name; of a map, `names` says that.
    matched: bool,
    /// Whether it made one another.
    changed: bool,
    /// Of a map, the names that were there.
    names: Vec<&'r str>,
}

/// Finds new names that are given to more than one tensor.
fn find_collisions(old: &[&str], new: &[Cow<'_, str>], faults: &mut Faults) {
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(new.len());
    let mut twice: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, name) in new.iter().enumerate() {
        match first.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert(number);
            }
            Entry::Occupied(first) => {
                twice.entry(*first.get()).or_default().push(number);
            }
        }
    }
    for (first, others) in twice {
        let from = std::iter::once(first).chain(others.iter().copied());
        faults.add(Fault::collision(&new[first], from.map(|number| old[number])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(rename: &Rename, names: &[&str]) -> Result<Vec<String>, Vec<String>> {
        match rename.apply(names.iter().copied()) {
            Ok(new) => Ok(new.into_iter().map(Cow::into_owned).collect()),
            Err(error) => Err(error
                .faults()
                .iter()
                .map(|fault| format!("{}: {fault}", fault.code()))
                .collect()),
        }
    }

    #[test]
    fn rules_apply_in_the_order_given() {
        let rename = Rename::builder()
            .strip_prefix("model.")
            .substitute("s/^a/b/")
            .unwrap()
            .map("b.w", "c")
            .map("x", "b.w")
            .add_prefix("p.")
            .build();
        assert_eq!(
            apply(&rename, &["model.a.w", "x", "model.y"]).unwrap(),
            ["p.c", "p.b.w", "p.y"]
        );
    }

    #[test]
    fn names_that_nothing_changes_are_borrowed() {
        let rename = Rename::builder().substitute("s/[bc]/b/").unwrap().strip_prefix("m.").build();
        let new = rename.apply(["m.a", "b.x", "c.y"]).unwrap();
        let is_borrowed = new.iter().map(|name| matches!(name, Cow::Borrowed(_)));
        assert!(is_borrowed.eq([true, true, false]), "{new:?}");
        assert_eq!(new, ["a", "b.x", "b.y"]);
        let none = Rename::builder().build();
        assert!(none.is_empty());
        assert_eq!(none.apply(["a"]).unwrap(), ["a"]);
        assert!(none.apply([]).unwrap().is_empty());
    }

    #[test]
    fn maps_swap_names_and_leave_others() {
        let rename = Rename::builder().map("a", "b").map("b", "a").build();
        assert_eq!(apply(&rename, &["a", "b", "c"]).unwrap(), ["b", "a", "c"]);
        let partly = Rename::builder().map("a", "a").map("b", "d").build();
        assert_eq!(apply(&partly, &["a", "b"]).unwrap(), ["a", "d"]);
        let again = Rename::builder().map("a", "b").map("b", "a").map("a", "c").build();
        assert_eq!(apply(&again, &["a", "b"]).unwrap(), ["b", "c"]);
    }

    #[test]
    fn what_is_wrong_is_told_before_anything_is_renamed() {
        let rename = |expression: &str| Rename::builder().substitute(expression).unwrap().build();
        for (rename, names, want) in [
            (
                rename(r"s/\d//"),
                &["l1", "k", "l2"][..],
                &["rename-collision: 2 tensors would be named `l`: `l1`, `l2`"][..],
            ),
            (
                rename("s/.*/x/"),
                &["1", "2", "3", "4", "5", "6"],
                &["rename-collision: 6 tensors would be named `x`: `1`, `2`, `3`, `4` and 2 more"],
            ),
            (
                rename("s/^a$/b/"),
                &["b", "a"],
                &["rename-collision: 2 tensors would be named `b`: `b`, `a`"],
            ),
            (
                rename("s/a/__metadata__/"),
                &["a"],
                &["reserved-name: tensor `a` would be named `__metadata__`"],
            ),
            (rename("s/a/b/"), &["x"], &["rename-unused: no tensor name matches `s/a/b/`"]),
            (
                Rename::builder().strip_prefix("m.").map("y", "z").map("b", "c").build(),
                &["x", "y"],
                &[
                    "rename-unknown-name: no tensor is named `b`",
                    "rename-unused: no tensor name matches `strip prefix m.`",
                ],
            ),
            (
                Rename::builder().add_prefix("p".repeat(Rename::NAME_BYTES)).build(),
                &["", "a"],
                &[
                    "rename-too-long: the new name of `a` is over the limit of 65536 bytes, or of 1073741824 with the others",
                ],
            ),
        ] {
            assert_eq!(apply(&rename, names).unwrap_err(), want, "{rename:?}");
        }
    }

    #[test]
    fn a_rule_that_changes_nothing_is_a_fault() {
        let substitute = |expression: &str| Rename::builder().substitute(expression).unwrap();
        for (builder, want) in [
            (substitute("s/a/a/"), "`s/a/a/` changes no name"),
            (substitute("s/x/a/"), "no tensor name matches `s/x/a/`"),
            (substitute("s/a/b/").substitute("s/a/c/").unwrap(), "no tensor name matches `s/a/c/`"),
            (Rename::builder().map("a", "a"), "`map` changes no name"),
            (Rename::builder().add_prefix(""), "`add prefix ` changes no name"),
            (Rename::builder().strip_prefix(""), "`strip prefix ` changes no name"),
            (Rename::builder().strip_prefix("b"), "no tensor name matches `strip prefix b`"),
        ] {
            let error = builder.build().apply(["a"]).unwrap_err();
            assert_eq!((error.count(), error.to_string().as_str()), (1, want));
        }
        // Of what comes before the rule nothing is said where nothing does.
        let help = |builder: Builder| builder.build().apply(["a"]).unwrap_err().faults()[0].help();
        for before in [false, true] {
            let first = || if before { substitute("s/a/b/") } else { Rename::builder() };
            for builder in [first().map("x", "y"), first().strip_prefix("x")] {
                assert_eq!(help(builder).contains("before"), before);
            }
        }
        for names in [&[][..], &["a"]] {
            let prefixed = Rename::builder().add_prefix("p").build();
            assert_eq!(apply(&prefixed, names).map(|it| it.len()), Ok(names.len()));
        }
    }

    #[test]
    fn a_long_list_of_faults_is_cut_and_counted() {
        let builder = (0..500).fold(Rename::builder(), |it, i| it.map(format!("n{i}"), "x"));
        let error = builder.build().apply(["a"]).unwrap_err();
        assert_eq!((error.faults().len(), error.count()), (RenameError::LISTED, 500));
        assert_eq!(error.to_string(), "no tensor is named `n0` (and 499 more)");
        assert_eq!(error.code(), "rename-unknown-name");
    }

    #[test]
    fn a_name_that_is_long_already_may_stay() {
        let long = "x".repeat(Rename::NAME_BYTES + 1);
        let rename = Rename::builder().substitute("s/^a$/b/").unwrap().build();
        assert_eq!(rename.apply([long.as_str(), "a"]).unwrap(), [long.as_str(), "b"]);
    }
}
