//! The metadata of a checkpoint: what its files claim of themselves.

mod json;
mod value;

use std::io::{self, Write};

use weigh::Survey;
use weigh::format::text::write_escape;

use crate::output::{Output, Style};
use crate::units;
pub(crate) use json::compact;

/// A key and a value, and the files that have both.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    /// Places in [`Survey::shards`].
    pub(crate) shards: Vec<usize>,
}

/// The metadata of a checkpoint, as far as it is looked at.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// Each pair once, in natural order of the keys.
    pub(crate) entries: Vec<Entry>,
    /// How many pairs there are: each once, or as often as it comes where not all were looked at.
    pub(crate) pairs: usize,
}

/// Pairs that are looked at for the screen, which shows a few: a header may have millions.
pub(crate) const ENOUGH: usize = 10_000;

impl Metadata {
    /// The first pairs of all files, `most` of them at most.
    pub(crate) fn of(survey: &Survey, most: usize) -> Self {
        let shards = survey.shards().iter().filter_map(weigh::SurveyedShard::inspection);
        let all: usize = shards.map(|inspection| inspection.metadata().len()).sum();
        let entries = entries(survey, most);
        let pairs = if all > most { all } else { entries.len() };
        Self { entries, pairs }
    }

    /// How many pairs there are, and whose word they are.
    pub(crate) fn claimed(&self) -> String {
        if self.pairs == 0 {
            return "none".into();
        }
        let pairs = units::plural(self.pairs as u64, "pair");
        format!("{pairs}, claimed by the file, not verified")
    }
}

fn entries(survey: &Survey, most: usize) -> Vec<Entry> {
    let pairs = survey.metadata().map(|(shard, key, value)| (key, value, shard));
    let mut pairs: Vec<(String, String, usize)> = pairs.take(most).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut entries: Vec<Entry> = Vec::new();
    for (key, value, shard) in pairs {
        match entries.last_mut() {
            Some(last) if last.key == key && last.value == value => last.shards.push(shard),
            _ => entries.push(Entry { key, value, shards: vec![shard] }),
        }
    }
    let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let order = survey.natural_order(&keys);
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    let places = order.into_iter().filter_map(|place| usize::try_from(place).ok());
    places.filter_map(|place| entries.get_mut(place)?.take()).collect()
}

impl Entry {
    /// The value so that it can be seen: an empty one is shown as two quotes.
    pub(crate) fn value_or_quotes(&self) -> &str {
        value_or_quotes(&self.value)
    }

    /// Whether all files of the checkpoint have the pair.
    pub(crate) fn is_in_all(&self, survey: &Survey) -> bool {
        self.shards.len() == survey.shards().len()
    }

    /// Which files have the pair, as it is shown after it, if not all of them have it.
    pub(crate) fn in_files(&self, survey: &Survey) -> String {
        if self.is_in_all(survey) {
            return String::new();
        }
        match self.shards.as_slice() {
            [shard] => {
                let name = survey.shards().get(*shard).map_or("", |shard| shard.name());
                format!("  (in {})", cut(name, 40).0)
            }
            shards => format!("  (in {} of {} files)", shards.len(), survey.shards().len()),
        }
    }
}

/// A value so that it can be seen: an empty one is shown as two quotes.
pub(crate) fn value_or_quotes(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

/// Writes pairs, JSON in values expanded, and what is very long shortened with its size.
pub(crate) fn write_entries<'e>(
    output: &mut Output,
    survey: &Survey,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> io::Result<()> {
    for entry in entries {
        let key = output.styled(Style::Bold, value::shown(&entry.key));
        let after = entry.in_files(survey);
        let out = output.data();
        if entry.value.contains('\n') || json::is_structure(&entry.value) {
            writeln!(out, "  {key}{after}")?;
            value::write_lines(out, &entry.value, "    ")?;
        } else {
            writeln!(out, "  {key}  {}{after}", value::shown(entry.value_or_quotes()))?;
        }
    }
    Ok(())
}

/// Text cut to `width` columns, escaped; `true` if something is left out.
pub(crate) fn cut(text: &str, width: usize) -> (String, bool) {
    let mut shown = String::new();
    let mut columns = 0;
    for (at, character) in text.char_indices() {
        let mut piece = String::new();
        if weigh::format::text::is_unsafe_to_print(character) {
            // Writing to a String does not fail.
            let _ = write_escape(&mut piece, character);
        } else {
            piece.push(character);
        }
        let length = piece.chars().count();
        let is_last = at + character.len_utf8() == text.len();
        if columns + length + usize::from(!is_last) > width {
            shown.push('…');
            return (shown, true);
        }
        columns += length;
        shown.push_str(&piece);
    }
    (shown, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_after_it_is_escaped() {
        for (text, width, want) in [
            ("", 5, ("", false)),
            ("12345", 5, ("12345", false)),
            ("123456", 5, ("1234…", true)),
            ("a\nb", 5, ("a\\nb", false)),
            ("\u{202e}ab", 8, ("\\u202eab", false)),
            ("\u{202e}ab", 7, ("\\u202e…", true)),
            ("\u{202e}ab", 5, ("…", true)),
            ("é漢", 2, ("é漢", false)),
        ] {
            let (shown, is_cut) = cut(text, width);
            assert_eq!((shown.as_str(), is_cut), want, "{text:?} in {width}");
        }
    }
}
