//! Labels of rows, and the flags from which a tree is drawn.

use std::fmt;
use std::ops::RangeInclusive;

use super::Row;

/// What a row is called: the components it adds to the row it is in. Not escaped.
///
/// Displays as its parts with dots between them: `layers.[0..31]`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Label<'t> {
    pub(super) parts: Vec<Part<'t>>,
}

impl<'t> Label<'t> {
    /// The parts, which stand for one or more components each.
    #[must_use]
    pub fn parts(&self) -> &[Part<'t>] {
        &self.parts
    }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Indices(indices) => indices.fmt(f)?,
            }
        }
        Ok(())
    }
}

/// Part of a [`Label`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Part<'t> {
    /// Components as they are in the names, with the dots between them; may be empty.
    Text(&'t str),
    /// One numeric component that stands for several equal ones.
    Indices(&'t Indices),
}

/// The numbers of siblings that were folded into one.
///
/// ```
/// use weigh_inventory::tree::Indices;
///
/// assert_eq!(Indices::new([0, 1, 2, 3]).to_string(), "[0..3]");
/// assert_eq!(Indices::new([0, 2, 5, 6, 7]).to_string(), "[0, 2, 5..7]");
/// assert_eq!(Indices::new((0..100).map(|n| 2 * n)).to_string(), "[0, 2, 4, 6, 8, 10, 12, … 198]");
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Indices {
    runs: Vec<RangeInclusive<u64>>,
    count: u64,
}

impl Indices {
    /// Runs that `Display` writes; of more, it writes all but the middle ones.
    const SHOWN: usize = 8;

    /// The set of these numbers, which are in ascending order, none twice.
    #[must_use]
    pub fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut indices = Self::default();
        for number in numbers {
            indices.count = indices.count.saturating_add(1);
            match indices.runs.last_mut() {
                Some(run) if run.end().checked_add(1) == Some(number) => {
                    *run = *run.start()..=number;
                }
                _ => indices.runs.push(number..=number),
            }
        }
        indices
    }

    /// How many numbers there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The numbers as runs, ascending, with a gap between each and the next.
    #[must_use]
    pub fn runs(&self) -> &[RangeInclusive<u64>] {
        &self.runs
    }
}

impl fmt::Display for Indices {
    /// Writes the runs; of more than eight, the first seven and the last number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.runs.len() > Self::SHOWN;
        let shown = if cut { Self::SHOWN.saturating_sub(1) } else { Self::SHOWN };
        f.write_str("[")?;
        for (place, run) in self.runs.iter().take(shown).enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            match (*run.start(), *run.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}..{last}")?,
            }
        }
        if let Some(last) = self.runs.last().filter(|_| cut) {
            write!(f, ", … {}", last.end())?;
        }
        f.write_str("]")
    }
}

/// Follows the rows of a tree, and says for each level whether a line goes on below.
///
/// ```
/// use weigh_inventory::Item;
/// use weigh_inventory::tree::{Guides, Tree};
///
/// let names = ["a.b.x", "a.b.y", "a.c"];
/// let tree = Tree::build(names.map(|name| Item { name, dtype: None, shape: None, bytes: 0 }));
/// let mut guides = Guides::default();
/// let drawn: Vec<String> = tree
///     .rows(None)
///     .map(|row| {
///         let (own, above) = guides.step(&row).split_last().unwrap();
///         let above: String = above.iter().map(|last| if *last { "   " } else { "│  " }).collect();
///         format!("{above}{}{}", if *own { "└─ " } else { "├─ " }, row.label)
///     })
///     .collect();
/// assert_eq!(drawn, ["└─ a", "   ├─ b", "   │  ├─ x", "   │  └─ y", "   └─ c"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Guides {
    last: Vec<bool>,
}

impl Guides {
    /// Goes on to `row`, the next of [`Rows`](super::Rows): for each level from the outermost to the
    /// row's own, whether the row there was the last of its siblings. Never empty.
    pub fn step(&mut self, row: &Row<'_>) -> &[bool] {
        self.last.truncate(row.depth);
        self.last.push(row.last);
        &self.last
    }
}
