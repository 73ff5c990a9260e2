//! Why a pattern cannot be used, and where in it.

use std::error::Error;
use std::fmt;

use super::Selection;

/// A language of patterns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Dialect {
    /// A glob, as [`crate::select`] describes it.
    Glob,
    /// A regular expression, as the crate `regex` has them.
    Regex,
}

impl Dialect {
    /// The word for it: `glob`, `regex`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Glob => "glob",
            Self::Regex => "regex",
        }
    }
}

/// A pattern that is not one, or is over a limit.
///
/// `Display` shows the pattern as it was given, not escaped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PatternError {
    dialect: Dialect,
    pattern: String,
    at: usize,
    kind: PatternErrorKind,
    /// What is wrong, where the kind does not say.
    detail: Option<String>,
}

impl PatternError {
    pub(crate) fn new(dialect: Dialect, pattern: &str, at: usize, kind: PatternErrorKind) -> Self {
        Self { dialect, pattern: pattern.to_owned(), at, kind, detail: None }
    }

    /// The same, saying what is wrong.
    pub(crate) fn detailed(self, detail: String) -> Self {
        Self { detail: Some(detail), ..self }
    }

    /// What the pattern should be.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The whole pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Where in the pattern it goes wrong, as a byte offset.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> PatternErrorKind {
        self.kind
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "selector-syntax"
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self.kind {
            PatternErrorKind::TooLong | PatternErrorKind::TooMany => {
                "Give several shorter selections."
            }
            PatternErrorKind::TooLarge => {
                "Lower the counts in braces, or write [a-z0-9_] instead of \\w."
            }
            PatternErrorKind::TooDeep => "Write the alternatives out side by side.",
            PatternErrorKind::ReversedRange => "Write the lower end of the range first.",
            PatternErrorKind::ClassNotAscii => "Use braces: {é,è} instead of [éè].",
            PatternErrorKind::ClassName => {
                "Write the characters out: [a-z] instead of [[:lower:]]."
            }
            PatternErrorKind::DanglingEscape
            | PatternErrorKind::UnclosedClass
            | PatternErrorKind::UnopenedClass
            | PatternErrorKind::UnclosedBrace
            | PatternErrorKind::UnopenedBrace
            | PatternErrorKind::Syntax
            | PatternErrorKind::Unsupported => {
                "Put a backslash before a character that is meant as itself."
            }
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dialect, pattern, at, kind, detail } = self;
        let dialect = dialect.name();
        let (bytes, many) = match self.dialect {
            Dialect::Glob => (Selection::GLOB_BYTES, Selection::GLOBS),
            Dialect::Regex => (Selection::REGEX_BYTES, Selection::REGEXES),
        };
        match kind {
            PatternErrorKind::TooLong => {
                write!(f, "{dialect} of {} bytes, over the limit of {bytes}", pattern.len())
            }
            PatternErrorKind::TooMany => {
                write!(f, "{dialect} \"{pattern}\" is one over the limit of {many}")
            }
            PatternErrorKind::TooLarge => {
                let most = Selection::REGEX_COMPILED_BYTES;
                write!(f, "{dialect} \"{pattern}\" takes over {most} bytes when compiled")
            }
            _ => {
                let what = detail.as_deref().unwrap_or_else(|| kind.text());
                write!(f, "{dialect} \"{pattern}\" at byte {at}: {what}")
            }
        }
    }
}

impl Error for PatternError {}

/// What is wrong with a pattern.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PatternErrorKind {
    /// Over [`Selection::GLOB_BYTES`] or [`Selection::REGEX_BYTES`].
    TooLong,
    /// Over [`Selection::GLOBS`] or [`Selection::REGEXES`].
    TooMany,
    /// Braces nested over [`Selection::BRACES`] deep.
    TooDeep,
    /// A backslash with nothing after it.
    DanglingEscape,
    /// `[` without `]`.
    UnclosedClass,
    /// `]` without `[`.
    UnopenedClass,
    /// `{` without `}`.
    UnclosedBrace,
    /// `}` without `{`.
    UnopenedBrace,
    /// A range like `[z-a]`.
    ReversedRange,
    /// A character outside ASCII in a class, which is matched byte by byte.
    ClassNotAscii,
    /// A named class like `[[:alpha:]]`.
    ClassName,
    /// Over [`Selection::REGEX_COMPILED_BYTES`] when compiled.
    TooLarge,
    /// Not a regular expression; the message says what is wrong.
    Syntax,
    /// Something else that could not be compiled.
    Unsupported,
}

impl PatternErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::TooLong => "too long",
            Self::TooMany => "too many patterns",
            Self::TooLarge => "too large",
            Self::Syntax => "not a regular expression",
            Self::TooDeep => "braces nested too deep",
            Self::DanglingEscape => "nothing follows the backslash",
            Self::UnclosedClass => "[ without a closing ]",
            Self::UnopenedClass => "] without an opening [",
            Self::UnclosedBrace => "{ without a closing }",
            Self::UnopenedBrace => "} without an opening {",
            Self::ReversedRange => "the range ends before it begins",
            Self::ClassNotAscii => "only ASCII characters can be in [ ]",
            Self::ClassName => "named classes are not supported",
            Self::Unsupported => "not supported",
        }
    }
}
