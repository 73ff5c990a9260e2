//! Which tensors are meant: globs on names, and dtypes.
//!
//! A glob is matched against the whole name: `*` is any run of characters, dots too; `?` is one
//! byte; `[a-z]` is one of a class, `[!a-z]` one outside it; `{a,b}` is either, and may be nested;
//! a backslash makes the next character ordinary (not in a class, where it is itself). A pattern
//! with none of `* ? [ ] { } \` is a name, and matches that name alone.
//!
//! A tensor is selected if its name matches one of the included patterns, or none are given, and
//! none of the excluded ones, and its dtype is one of those given, or none are.

mod glob;

use std::collections::HashSet;

use weigh_format::Dtype;

use crate::{DtypeSet, Item};
pub use glob::{GlobError, GlobErrorKind};
use glob::{Pattern, parse};

/// Which tensors are meant.
///
/// ```
/// use weigh_inventory::Item;
/// use weigh_inventory::select::Selection;
///
/// let experts = Selection::builder().include("*.experts.*").exclude("*.bias").build()?;
/// let item = |name| Item { name, dtype: None, shape: None, bytes: 0 };
/// assert!(experts.matches(&item("layers.0.experts.7.w1")));
/// assert!(!experts.matches(&item("layers.0.experts.7.bias")));
/// # Ok::<(), weigh_inventory::select::GlobError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection {
    include: Patterns,
    exclude: Patterns,
    dtypes: DtypeSet,
}

impl Selection {
    /// Longest glob that is accepted, in bytes. Plain names may be longer.
    pub const GLOB_BYTES: usize = 4096;
    /// Most globs that are accepted, included and excluded each. Plain names may be more.
    pub const GLOBS: usize = 256;
    /// Deepest nesting of braces that is accepted.
    pub const BRACES: usize = 16;

    /// Selects every tensor.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects every tensor, until told what.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Whether every tensor is selected, whatever it is.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && self.dtypes.is_empty()
    }

    /// Whether this tensor is selected. One of unknown dtype is not, where dtypes are given.
    #[must_use]
    pub fn matches(&self, item: &Item<'_>) -> bool {
        let dtype = || item.dtype.is_some_and(|dtype| self.dtypes.contains(dtype));
        (self.dtypes.is_empty() || dtype())
            && (self.include.is_empty() || self.include.matches(item.name))
            && (self.exclude.is_empty() || !self.exclude.matches(item.name))
    }

    /// The included patterns that match none of `names`, in the order they were given.
    ///
    /// A pattern that matches nothing is most often a typing error, which is worth a word.
    pub fn unmatched<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<&str> {
        let mut waiting: Vec<&Pattern> = self.include.globs.iter().collect();
        let mut exact: HashSet<&str> = self.include.exact.iter().map(String::as_str).collect();
        for name in names {
            waiting.retain(|pattern| !pattern.matches(name));
            exact.remove(name);
            if waiting.is_empty() && exact.is_empty() {
                break;
            }
        }
        let waiting: HashSet<&str> = waiting.iter().map(|pattern| pattern.text()).collect();
        let given = self.include.given.iter().map(String::as_str);
        given.filter(|text| waiting.contains(text) || exact.contains(text)).collect()
    }
}

/// Makes a [`Selection`]. See [`Selection::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    include: Vec<String>,
    exclude: Vec<String>,
    dtypes: DtypeSet,
}

impl Builder {
    /// Selects names that match `pattern`, beside those of other such calls.
    #[must_use]
    pub fn include(mut self, pattern: impl Into<String>) -> Self {
        self.include.push(pattern.into());
        self
    }

    /// Leaves out names that match `pattern`, even if they are included.
    #[must_use]
    pub fn exclude(mut self, pattern: impl Into<String>) -> Self {
        self.exclude.push(pattern.into());
        self
    }

    /// Selects tensors of `dtype`, beside those of other such calls.
    #[must_use]
    pub fn dtype(mut self, dtype: Dtype) -> Self {
        self.dtypes.insert(dtype);
        self
    }

    /// Compiles the patterns.
    ///
    /// # Errors
    ///
    /// [`GlobError`], for the first pattern that is not a glob or is over a limit.
    pub fn build(self) -> Result<Selection, GlobError> {
        Ok(Selection {
            include: Patterns::compile(self.include)?,
            exclude: Patterns::compile(self.exclude)?,
            dtypes: self.dtypes,
        })
    }
}

/// Patterns, any of which may match.
#[derive(Clone, Debug, Default)]
struct Patterns {
    /// As they were given, in order.
    given: Vec<String>,
    /// Those that are names: looked up, so that thousands of them cost no more than one.
    exact: HashSet<String>,
    globs: Vec<Pattern>,
}

impl Patterns {
    fn compile(given: Vec<String>) -> Result<Self, GlobError> {
        let mut patterns = Self::default();
        for text in &given {
            match parse(text)? {
                None => {
                    patterns.exact.insert(text.clone());
                }
                Some(_) if patterns.globs.len() >= Selection::GLOBS => {
                    return Err(GlobError::new(text, 0, GlobErrorKind::TooMany));
                }
                Some(pattern) => patterns.globs.push(pattern),
            }
        }
        patterns.given = given;
        Ok(patterns)
    }

    fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    fn matches(&self, name: &str) -> bool {
        self.exact.contains(name) || self.globs.iter().any(|pattern| pattern.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, dtype: Option<Dtype>) -> Item<'_> {
        Item { name, dtype, shape: None, bytes: 0 }
    }

    #[test]
    fn nothing_given_selects_everything() {
        let all = Selection::all();
        assert!(all.is_all() && all.matches(&item("", None)));
        assert!(!Selection::builder().include("*").build().unwrap().is_all());
    }

    #[test]
    fn included_excluded_and_dtypes_must_all_agree() {
        let selection = Selection::builder()
            .include("a.*")
            .include("exact.name")
            .exclude("*.bias")
            .exclude("a.gone")
            .dtype(Dtype::F16)
            .dtype(Dtype::BF16)
            .build()
            .unwrap();
        for (name, dtype, want) in [
            ("a.weight", Some(Dtype::F16), true),
            ("a.weight", Some(Dtype::BF16), true),
            ("a.weight", Some(Dtype::F32), false),
            ("a.weight", None, false),
            ("a.b.bias", Some(Dtype::F16), false),
            ("a.gone", Some(Dtype::F16), false),
            ("exact.name", Some(Dtype::F16), true),
            ("exact.name.x", Some(Dtype::F16), false),
            ("b.weight", Some(Dtype::F16), false),
        ] {
            assert_eq!(selection.matches(&item(name, dtype)), want, "{name} {dtype:?}");
        }
    }

    #[test]
    fn an_empty_pattern_is_the_empty_name() {
        let selection = Selection::builder().include("").build().unwrap();
        assert!(selection.matches(&item("", None)) && !selection.matches(&item("a", None)));
    }

    #[test]
    fn patterns_that_matched_nothing_are_named_in_order() {
        let build = Selection::builder().include("b.*").include("typo").include("a").include("c?");
        let selection = build.build().unwrap();
        assert_eq!(selection.unmatched(["a", "b.x"]), ["typo", "c?"]);
        assert_eq!(selection.unmatched([]), ["b.*", "typo", "a", "c?"]);
        assert!(Selection::all().unmatched([]).is_empty());
    }

    #[test]
    fn limits_hold_for_globs_and_not_for_names() {
        let many = |count: usize, glob: &str| {
            (0..count).fold(Selection::builder(), |build, i| build.include(format!("n{i}{glob}")))
        };
        assert!(many(Selection::GLOBS, "*").build().is_ok());
        let error = many(Selection::GLOBS + 1, "*").build().unwrap_err();
        assert_eq!((error.kind(), error.glob()), (GlobErrorKind::TooMany, "n256*"));
        assert!(many(5000, "").build().is_ok());
    }
}
