//! The cases: what is loaded, how it is held, and where the files are at first.

/// What a loader does, in the words of `weigh-load` and `peer.py`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    Own,
    Cold,
    Hold,
    Stream,
    SliceFirst,
    SliceLast,
}

/// A mode, with the files in the page cache or not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Case {
    pub(crate) mode: Mode,
    pub(crate) is_cold: bool,
}

pub(crate) const CASES: [Case; 8] = [
    Case { mode: Mode::Own, is_cold: false },
    Case { mode: Mode::Cold, is_cold: true },
    Case { mode: Mode::Hold, is_cold: false },
    Case { mode: Mode::Stream, is_cold: false },
    Case { mode: Mode::SliceFirst, is_cold: false },
    Case { mode: Mode::SliceLast, is_cold: false },
    Case { mode: Mode::SliceFirst, is_cold: true },
    Case { mode: Mode::SliceLast, is_cold: true },
];

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Cold => "cold",
            Self::Hold => "hold",
            Self::Stream => "stream",
            Self::SliceFirst => "slice-first",
            Self::SliceLast => "slice-last",
        }
    }
}

impl Case {
    pub(crate) const fn name(self) -> &'static str {
        match (self.mode, self.is_cold) {
            (Mode::SliceFirst, true) => "slice-first-cold",
            (Mode::SliceLast, true) => "slice-last-cold",
            (mode, _) => mode.name(),
        }
    }

    pub(crate) const fn described(self) -> &'static str {
        match (self.mode, self.is_cold) {
            (Mode::Own, _) => "Every tensor in private, writable memory, from the page cache.",
            (Mode::Cold, _) => "Every tensor in private, writable memory, from storage.",
            (Mode::Hold, _) => "Every tensor at hand, as lazily as the loader can.",
            (Mode::Stream, _) => {
                "Every tensor handed over, summed and let go, from the page cache."
            }
            (Mode::SliceFirst, false) => "The middle eighth of all rows, from the page cache.",
            (Mode::SliceFirst, true) => "The middle eighth of all rows, from storage.",
            (Mode::SliceLast, false) => "The middle eighth of each row, from the page cache.",
            (Mode::SliceLast, true) => "The middle eighth of each row, from storage.",
        }
    }
}
