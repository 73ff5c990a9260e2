//! Which tensors are meant: globs and regular expressions on names, dtypes, and sizes.
//!
//! A glob is matched against the whole name: `*` is any run of characters, dots too; `?` is one
//! byte; `[a-z]` is one of a class, `[!a-z]` one outside it; `{a,b}` is either, and may be nested;
//! a backslash makes the next character ordinary (not in a class, where it is itself). A pattern
//! with none of `* ? [ ] { } \` is a name, and matches that name alone.
//!
//! A regular expression, in the syntax of the crate `regex`, is looked for anywhere in the name, as
//! `grep` does: `^` and `$` tie it to the ends.
//!
//! A tensor is selected if its name matches one of the included patterns, or none are given, and
//! none of the excluded ones, its dtype is one of those given, or none are, and its bytes are
//! within the bounds.

mod error;
mod glob;
pub(crate) mod regular;

use std::collections::HashSet;
use std::ops::RangeInclusive;

use regex::Regex;

use weigh_format::Dtype;

use crate::{DtypeSet, Item};
pub use error::{Dialect, PatternError, PatternErrorKind};
use glob::Glob;

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
/// # Ok::<(), weigh_inventory::select::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    include: Patterns,
    exclude: Patterns,
    dtypes: DtypeSet,
    bytes: RangeInclusive<u64>,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            include: Patterns::default(),
            exclude: Patterns::default(),
            dtypes: DtypeSet::EMPTY,
            bytes: 0..=u64::MAX,
        }
    }
}

impl Selection {
    /// Longest glob that is accepted, in bytes. Plain names may be longer.
    pub const GLOB_BYTES: usize = 4096;
    /// Most globs that are accepted, included and excluded each. Plain names may be more.
    pub const GLOBS: usize = 256;
    /// Deepest nesting of braces that is accepted.
    pub const BRACES: usize = 16;
    /// Longest regular expression that is accepted, in bytes.
    pub const REGEX_BYTES: usize = 4096;
    /// Most regular expressions that are accepted, included and excluded each.
    pub const REGEXES: usize = 64;
    /// Bytes that a regular expression may take when compiled, and as many again when it is used.
    pub const REGEX_COMPILED_BYTES: usize = 1 << 20;

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
        self.include.is_empty()
            && self.exclude.is_empty()
            && self.dtypes.is_empty()
            && self.bytes == (0..=u64::MAX)
    }

    /// Whether this tensor is selected. One of unknown dtype is of none of the dtypes that are given.
    #[must_use]
    pub fn matches(&self, item: &Item<'_>) -> bool {
        let dtype = || item.dtype.is_some_and(|dtype| self.dtypes.contains(dtype));
        (self.dtypes.is_empty() || dtype())
            && self.bytes.contains(&item.bytes)
            && (self.include.is_empty() || self.include.matches(item.name))
            && (self.exclude.is_empty() || !self.exclude.matches(item.name))
    }

    /// The included patterns that match none of `names`, in the order they were given.
    ///
    /// A pattern that matches nothing is most often a typing error, which is worth a word.
    pub fn unmatched<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<&str> {
        let Patterns { given, exact, matchers } = &self.include;
        let mut waiting: Vec<usize> = (0..matchers.len()).collect();
        let mut exact: HashSet<&str> = exact.iter().map(String::as_str).collect();
        for name in names {
            waiting.retain(|&number| !matchers[number].matches(name));
            exact.remove(name);
            if waiting.is_empty() && exact.is_empty() {
                break;
            }
        }
        let waiting: HashSet<usize> = waiting.into_iter().collect();
        let is_waiting = |given: &&Given| match given.matcher {
            Some(number) => waiting.contains(&number),
            None => exact.contains(given.text.as_str()),
        };
        given.iter().filter(is_waiting).map(|given| given.text.as_str()).collect()
    }
}

/// Makes a [`Selection`]. See [`Selection::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    include: Vec<(Dialect, String)>,
    exclude: Vec<(Dialect, String)>,
    dtypes: DtypeSet,
    min_bytes: Option<u64>,
    max_bytes: Option<u64>,
}

impl Builder {
    /// Selects names that the glob `pattern` matches, beside those of other such calls.
    #[must_use]
    pub fn include(mut self, pattern: impl Into<String>) -> Self {
        self.include.push((Dialect::Glob, pattern.into()));
        self
    }

    /// Leaves out names that the glob `pattern` matches, even if they are included.
    #[must_use]
    pub fn exclude(mut self, pattern: impl Into<String>) -> Self {
        self.exclude.push((Dialect::Glob, pattern.into()));
        self
    }

    /// Selects names in which the regular expression is found, beside those of other such calls.
    #[must_use]
    pub fn regex(mut self, regex: impl Into<String>) -> Self {
        self.include.push((Dialect::Regex, regex.into()));
        self
    }

    /// Leaves out names in which the regular expression is found, even if they are included.
    #[must_use]
    pub fn exclude_regex(mut self, regex: impl Into<String>) -> Self {
        self.exclude.push((Dialect::Regex, regex.into()));
        self
    }

    /// Selects tensors of `dtype`, beside those of other such calls.
    #[must_use]
    pub fn dtype(mut self, dtype: Dtype) -> Self {
        self.dtypes.insert(dtype);
        self
    }

    /// Selects tensors of at least so many bytes.
    #[must_use]
    pub fn min_bytes(mut self, bytes: u64) -> Self {
        self.min_bytes = Some(bytes);
        self
    }

    /// Selects tensors of at most so many bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Compiles the patterns.
    ///
    /// # Errors
    ///
    /// [`PatternError`], for the first pattern that is not one or is over a limit.
    pub fn build(self) -> Result<Selection, PatternError> {
        Ok(Selection {
            include: Patterns::compile(self.include)?,
            exclude: Patterns::compile(self.exclude)?,
            dtypes: self.dtypes,
            bytes: self.min_bytes.unwrap_or(0)..=self.max_bytes.unwrap_or(u64::MAX),
        })
    }
}

/// Patterns, any of which may match.
#[derive(Clone, Debug, Default)]
struct Patterns {
    /// In the order they were given.
    given: Vec<Given>,
    /// Those that are names: looked up, so that thousands of them cost no more than one.
    exact: HashSet<String>,
    /// The others.
    matchers: Vec<Matcher>,
}

/// A pattern as it was given.
#[derive(Clone, Debug)]
struct Given {
    text: String,
    /// The number of its matcher; `None` for a name.
    matcher: Option<usize>,
}

#[derive(Clone, Debug)]
enum Matcher {
    Glob(Glob),
    Regex(Regex),
}

impl Matcher {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(name),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

impl Patterns {
    fn compile(given: Vec<(Dialect, String)>) -> Result<Self, PatternError> {
        let mut patterns = Self::default();
        let (mut globs, mut regexes) = (0, 0);
        for (dialect, text) in given {
            let (matcher, count, most) = match dialect {
                Dialect::Glob => {
                    (glob::parse(&text)?.map(Matcher::Glob), &mut globs, Selection::GLOBS)
                }
                Dialect::Regex => (
                    Some(Matcher::Regex(regular::compile(&text, false)?)),
                    &mut regexes,
                    Selection::REGEXES,
                ),
            };
            let number = matcher.is_some().then_some(patterns.matchers.len());
            if let Some(matcher) = matcher {
                if *count >= most {
                    return Err(PatternError::new(dialect, &text, 0, PatternErrorKind::TooMany));
                }
                *count += 1;
                patterns.matchers.push(matcher);
            } else {
                patterns.exact.insert(text.clone());
            }
            patterns.given.push(Given { text, matcher: number });
        }
        Ok(patterns)
    }

    fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    fn matches(&self, name: &str) -> bool {
        self.exact.contains(name) || self.matchers.iter().any(|matcher| matcher.matches(name))
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
        assert_eq!((error.kind(), error.pattern()), (PatternErrorKind::TooMany, "n256*"));
        assert!(many(5000, "").build().is_ok());
    }

    #[test]
    fn a_regex_is_looked_for_anywhere() {
        let regex = |text: &str| Selection::builder().regex(text).build().unwrap();
        for (text, yes, no) in [
            ("attn", &["attn", "l.0.attn.w"][..], &["att"][..]),
            ("^attn$", &["attn"], &["attn.w", "attn\n"]),
            (r"\.(q|k)\.", &["a.q.w"], &["a.v.w", "q.w"]),
            ("(?i)W$", &["a.w", "a.W"], &["w.a"]),
            ("", &["", "a"], &[]),
            ("é.", &["éa"], &["é"]),
        ] {
            for name in yes {
                assert!(regex(text).matches(&item(name, None)), "{text} should match {name:?}");
            }
            for name in no {
                assert!(!regex(text).matches(&item(name, None)), "{text} should not: {name:?}");
            }
        }
    }

    #[test]
    fn globs_and_regexes_are_either_when_included_and_neither_when_excluded() {
        let selection = Selection::builder()
            .include("a*")
            .regex("b$")
            .exclude("*.bias")
            .exclude_regex("^ab")
            .build()
            .unwrap();
        for (name, want) in
            [("ac", true), ("cb", true), ("c", false), ("a.bias", false), ("abb", false)]
        {
            assert_eq!(selection.matches(&item(name, None)), want, "{name}");
        }
        let unmatched = Selection::builder().regex("x").include("x").regex("a").include("b*");
        assert_eq!(unmatched.build().unwrap().unmatched(["a"]), ["x", "x", "b*"]);
    }

    #[test]
    fn sizes_are_bounds_and_both_are_in() {
        let sized = |bytes| Item { bytes, ..item("a", None) };
        let within = Selection::builder().min_bytes(2).max_bytes(4).build().unwrap();
        for (bytes, want) in [(1, false), (2, true), (4, true), (5, false)] {
            assert_eq!(within.matches(&sized(bytes)), want, "{bytes}");
        }
        assert!(!within.is_all());
        let none = Selection::builder().min_bytes(4).max_bytes(2).build().unwrap();
        assert!(!none.matches(&sized(3)));
        let most = Selection::builder().max_bytes(0).build().unwrap();
        assert!(most.matches(&sized(0)) && !most.matches(&sized(1)) && !most.is_all());
    }
}
