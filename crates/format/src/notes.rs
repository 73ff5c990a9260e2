//! What is legal and worth knowing: names, ranks, alignment, portability (rules N1, T3, T6, T13, P1).
//!
//! Each is one finding a file, with a count and the first tensor it is about.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::finding::{Finding, Findings};
use crate::lookup::{HashKey, Hasher};
use crate::rule::{self, Rule};
use crate::shape;
use crate::table::{Entry, Flags, Table, length};
use crate::text;
use crate::text::shortened;

/// Bytes of a header that large hub readers still take.
const PORTABLE_HEADER_BYTES: u64 = 25_000_000;

/// Names longer than this are noted.
const LONG_NAME_BYTES: u32 = 256;

/// Shapes of more dimensions are noted.
const HIGH_RANK: u32 = 8;

/// Looks at every tensor and records what is worth knowing.
pub(crate) fn take(table: &Table, key: HashKey, findings: &mut Findings) {
    let mut notes = Notes::default();
    let mut non_ascii = Vec::new();
    for (number, entry) in (0_u32..).zip(&table.entries) {
        notes.look_at(table, entry);
        if entry.flags.has(Flags::ODD) && !table.name(entry).is_ascii() {
            non_ascii.push(number);
        }
    }
    notes.report(table, findings);
    report_confusable(table, key, &non_ascii, findings);
    let header_bytes = length(&table.text);
    if header_bytes > PORTABLE_HEADER_BYTES {
        let message = format!(
            "the header is {header_bytes} bytes; large hub readers stop at {PORTABLE_HEADER_BYTES}"
        );
        findings.push(
            Finding::new(&rule::PORTABILITY, message)
                .at(0..table.data_start)
                .with("header_bytes", header_bytes),
        );
    }
}

/// How many tensors a note is about, and the first of them.
#[derive(Default)]
struct Tally {
    count: u64,
    first: Option<Entry>,
}

impl Tally {
    #[inline]
    fn add(&mut self, entry: &Entry, applies: bool) {
        if applies {
            self.count = self.count.saturating_add(1);
            self.first.get_or_insert(*entry);
        }
    }
}

#[derive(Default)]
struct Notes {
    misaligned: Tally,
    rank_high: Tally,
    rows_not_bytes: Tally,
    rare: Tally,
    name_empty: Tally,
    name_control: Tally,
    name_path: Tally,
    name_long: Tally,
    name_bidi: Tally,
}

impl Notes {
    #[inline]
    fn look_at(&mut self, table: &Table, entry: &Entry) {
        self.rank_high.add(entry, entry.rank > HIGH_RANK);
        self.name_empty.add(entry, entry.name_len == 0);
        self.name_long.add(entry, entry.name_len > LONG_NAME_BYTES);
        if let Some(dtype) = entry.dtype {
            self.rare.add(entry, dtype.is_rare());
            if dtype.bits() < 8 {
                let shape = table.shape(entry);
                let shared = entry.flags.has(Flags::SHAPE) && shape::rows_share_bytes(dtype, shape);
                self.rows_not_bytes.add(entry, shared);
            } else {
                let width = u64::from(dtype.bits() >> 3);
                let start = table.data_start.wrapping_add(entry.begin);
                // Widths are powers of two.
                let off = start & width.wrapping_sub(1) != 0;
                let has_bytes = entry.begin < entry.end;
                self.misaligned.add(entry, off && has_bytes && entry.flags.has(Flags::OFFSETS));
            }
        }
        if entry.flags.has(Flags::ODD) {
            self.look_at_name(table.name(entry), entry);
        }
    }

    #[cold]
    fn look_at_name(&mut self, name: &str, entry: &Entry) {
        let path = name.starts_with('/')
            || name.contains('\\')
            || name.split('/').any(|component| component == "..");
        self.name_path.add(entry, path);
        self.name_control.add(entry, name.contains(char::is_control));
        self.name_bidi.add(entry, name.contains(text::is_bidi_control));
    }

    fn report(&self, table: &Table, findings: &mut Findings) {
        let tallies: [(&'static Rule, &Tally, &str); 9] = [
            (&rule::MISALIGNED, &self.misaligned, "tensors off a multiple of their element size"),
            (&rule::RANK_HIGH, &self.rank_high, "tensors of more than 8 dimensions"),
            (
                &rule::ROWS_NOT_BYTES,
                &self.rows_not_bytes,
                "tensors with rows that begin inside a byte",
            ),
            (&rule::PORTABILITY, &self.rare, "tensors of a dtype that few readers know"),
            (&rule::NAME_EMPTY, &self.name_empty, "tensors with an empty name"),
            (
                &rule::NAME_CONTROL,
                &self.name_control,
                "tensors with control characters in their name",
            ),
            (&rule::NAME_PATH, &self.name_path, "tensors with a name like a path"),
            (&rule::NAME_LONG, &self.name_long, "tensors with a name of more than 256 bytes"),
            (
                &rule::NAME_BIDI,
                &self.name_bidi,
                "tensors with bidirectional controls in their name",
            ),
        ];
        for (rule, tally, what) in tallies {
            let Some(first) = tally.first else { continue };
            let span = if rule.code == rule::MISALIGNED.code {
                data_span(table, &first)
            } else {
                table.key_span(&first)
            };
            let name = shortened(table.name(&first));
            let finding =
                Finding::new(rule, format!("{what}: {}, the first is `{name}`", tally.count));
            findings.push(finding.at(span).tensor(&name).with("count", tally.count));
        }
    }
}

fn data_span(table: &Table, entry: &Entry) -> Range<u64> {
    let start = table.data_start;
    start.saturating_add(entry.begin)..start.saturating_add(entry.end)
}

/// Reports names that differ and are equal after NFC. Only names with other than ASCII can be.
fn report_confusable(table: &Table, key: HashKey, non_ascii: &[u32], findings: &mut Findings) {
    let hasher = Hasher::new(key);
    let mut normal = String::new();
    let mut keyed: Vec<(u32, u32)> = non_ascii
        .iter()
        .map(|&number| {
            normal.clear();
            let name = table.entry(number).map_or("", |entry| table.name(entry));
            for character in name.nfc() {
                // Writing to a String does not fail.
                let _ = normal.write_char(character);
            }
            (hasher.hash(normal.as_bytes()), number)
        })
        .collect();
    keyed.sort_unstable();
    let mut tally = Tally::default();
    let mut pair = None;
    for group in keyed.chunk_by(|one, other| one.0 == other.0) {
        let mut entries = group.iter().filter_map(|&(_, number)| table.entry(number));
        let Some(first) = entries.next() else {
            continue;
        };
        for second in entries {
            let (one, other) = (table.name(first), table.name(second));
            if one != other && one.nfc().eq(other.nfc()) {
                tally.count = tally.count.saturating_add(1);
                if tally.first.is_none_or(|earlier| second.key < earlier.key) {
                    tally.first = Some(*second);
                    pair = Some((*first, *second));
                }
            }
        }
    }
    let Some((first, second)) = pair else { return };
    // They look alike, so they are shown in code points.
    let shown = |entry: &Entry| {
        let name: String =
            table.name(entry).chars().take(100).flat_map(char::escape_default).collect();
        shortened(&name).into_owned()
    };
    let (one, other) = (shown(&first), shown(&second));
    findings.push(
        Finding::new(
            &rule::NAME_CONFUSABLE,
            format!(
                "names that equal another after Unicode normalization: {}, the first is `{other}`, equal to `{one}`",
                tally.count
            ),
        )
        .at(table.key_span(&second))
        .tensor(table.name(&second))
        .with("count", tally.count)
        .with("other", one),
    );
}
