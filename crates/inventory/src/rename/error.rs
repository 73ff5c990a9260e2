//! Why names cannot be given.

use std::error::Error;
use std::fmt;

use weigh_format::text::shortened;

use super::Rename;

/// One thing that is wrong with new names. Nothing has been renamed.
///
/// Names from a file are shortened when they are very long. `Display` shows them as they are, not
/// escaped.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Several tensors would have one name.
    Collision {
        /// The new name.
        name: String,
        /// Their old names, the first few of them.
        from: Vec<String>,
        /// How many tensors they are.
        count: usize,
    },
    /// A tensor would be named `__metadata__`.
    Reserved {
        /// Its old name.
        from: String,
    },
    /// A new name would be longer than [`Rename::NAME_BYTES`], or all together than
    /// [`Rename::NAMES_BYTES`].
    TooLong {
        /// The old name.
        from: String,
    },
    /// No tensor has this name, which a map gives another.
    UnknownName {
        /// The name, as the map has it.
        name: String,
        /// Whether rules come before the map.
        is_after_others: bool,
    },
    /// No name matches this rule.
    Unused {
        /// The rule, as it was given.
        rule: String,
        /// Whether rules come before it.
        is_after_others: bool,
    },
    /// Every name that this rule is for stays what it is.
    ChangesNothing {
        /// The rule, as it was given.
        rule: String,
    },
}

/// Old names that a collision lists.
const COLLIDING: usize = 4;

impl Fault {
    pub(super) fn collision<'a>(name: &str, from: impl Iterator<Item = &'a str>) -> Self {
        let mut listed = Vec::new();
        let mut count = 0;
        for old in from {
            count += 1;
            if listed.len() < COLLIDING {
                listed.push(shortened(old).into_owned());
            }
        }
        Self::Collision { name: shortened(name).into_owned(), from: listed, count }
    }

    pub(super) fn reserved(from: &str) -> Self {
        Self::Reserved { from: shortened(from).into_owned() }
    }

    pub(super) fn too_long(from: &str) -> Self {
        Self::TooLong { from: shortened(from).into_owned() }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Collision { .. } => "rename-collision",
            Self::Reserved { .. } => "reserved-name",
            Self::TooLong { .. } => "rename-too-long",
            Self::UnknownName { .. } => "rename-unknown-name",
            Self::Unused { .. } => "rename-unused",
            Self::ChangesNothing { .. } => "rename-changes-nothing",
        }
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Collision { .. } => "Have the rules keep what tells these tensors apart.",
            Self::Reserved { .. } => "That name is the key of the metadata: choose another.",
            Self::TooLong { .. } => "A replacement may be repeated by g: look at the rules.",
            Self::UnknownName { is_after_others: true, .. } => {
                "The rules before this one may have renamed it: they apply in order."
            }
            Self::UnknownName { .. } => "Look at the names with `weigh ls`: a map has whole names.",
            Self::Unused { is_after_others: true, .. } => {
                "Leave the rule out if that is meant; the rules before it may have renamed what it is for."
            }
            Self::Unused { .. } | Self::ChangesNothing { .. } => {
                "Leave the rule out if that is meant."
            }
        }
    }

    /// Kinds in the order in which they are told.
    fn rank(&self) -> usize {
        match self {
            Self::UnknownName { .. } => 0,
            Self::Unused { .. } => 1,
            Self::ChangesNothing { .. } => 2,
            Self::Collision { .. } => 3,
            Self::Reserved { .. } => 4,
            Self::TooLong { .. } => 5,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collision { name, from, count } => {
                write!(f, "{count} tensors would be named `{name}`: ")?;
                for (number, old) in from.iter().enumerate() {
                    write!(f, "{}`{old}`", if number == 0 { "" } else { ", " })?;
                }
                match count.saturating_sub(from.len()) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Reserved { from } => write!(f, "tensor `{from}` would be named `__metadata__`"),
            Self::TooLong { from } => {
                let (most, together) = (Rename::NAME_BYTES, Rename::NAMES_BYTES);
                write!(
                    f,
                    "the new name of `{from}` is over the limit of {most} bytes, or of {together} with the others"
                )
            }
            Self::UnknownName { name, .. } => write!(f, "no tensor is named `{name}`"),
            Self::Unused { rule, .. } => write!(f, "no tensor name matches `{rule}`"),
            Self::ChangesNothing { rule } => write!(f, "`{rule}` changes no name"),
        }
    }
}

/// Everything that is wrong with new names, as far as it is listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RenameError {
    faults: Vec<Fault>,
    count: usize,
}

impl RenameError {
    /// Most faults of one kind that are listed.
    pub const LISTED: usize = 100;

    /// The faults: at least one, and at most [`RenameError::LISTED`] of a kind.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many faults there are, listed or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The stable code of the first fault.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.faults.first().map_or("rename", Fault::code)
    }
}

impl fmt::Display for RenameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.faults.first() {
            write!(f, "{first}")?;
        }
        match self.count.saturating_sub(1) {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl Error for RenameError {}

/// Faults as they are found.
#[derive(Debug, Default)]
pub(super) struct Faults {
    listed: [Vec<Fault>; 6],
    count: usize,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.count += 1;
        let kind = &mut self.listed[fault.rank()];
        if kind.len() < RenameError::LISTED {
            kind.push(fault);
        }
    }

    pub(super) fn none_or_error(self) -> Result<(), RenameError> {
        match self.count {
            0 => Ok(()),
            count => {
                Err(RenameError { faults: self.listed.into_iter().flatten().collect(), count })
            }
        }
    }
}
