//! What a pickle comes to, in one word.

use core::fmt;

/// What unpickling would do, as far as was read. The worst is last.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "the five verdicts")]
pub enum Verdict {
    /// Read to the end, and nothing but data.
    DataOnly,
    /// Names something outside the table, and calls nothing outside it.
    UnknownGlobal,
    /// Two readers may read it differently, or it is made to exhaust them.
    Ambiguous,
    /// Calls, or makes an instance of, something outside the table.
    Call,
    /// Could not be read to its end, and no foreign call was seen up to there.
    Error,
}

impl Verdict {
    /// The word for it: `data-only`, `unknown-global`, `ambiguous`, `call`, `error`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataOnly => "data-only",
            Self::UnknownGlobal => "unknown-global",
            Self::Ambiguous => "ambiguous",
            Self::Call => "call",
            Self::Error => "error",
        }
    }

    /// What two parts of one file come to: the worse of the two. But a call that was seen is what the file comes to,
    /// even where reading it failed.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        if self == Self::Call || other == Self::Call { Self::Call } else { self.max(other) }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Ambiguous, Call, DataOnly, Error, UnknownGlobal};

    #[test]
    fn the_worse_part_decides_and_a_call_beats_an_error() {
        for (one, other, both) in [
            (DataOnly, DataOnly, DataOnly),
            (DataOnly, UnknownGlobal, UnknownGlobal),
            (UnknownGlobal, Ambiguous, Ambiguous),
            (Ambiguous, Call, Call),
            (Ambiguous, Error, Error),
            (Call, Error, Call),
        ] {
            assert_eq!((one.with(other), other.with(one)), (both, both));
        }
    }
}
