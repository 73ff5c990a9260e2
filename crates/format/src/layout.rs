//! Where tensors may lie in the data section (rules T9, T11, F12).

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::finding::{Finding, Findings, bytes};
use crate::rule;
use crate::table::{Entry, Flags, Table, position};
use crate::text::shortened;

/// Checks that the tensors cover the data section exactly, each byte once; sets [`Table::by_offset`].
pub(crate) fn check(table: &mut Table, findings: &mut Findings) {
    let is_placed = |entry: &Entry| entry.flags.has(Flags::OFFSETS);
    let mut last = (0, 0);
    // Nearly always all are placed and in order: one look at each.
    let in_order = table.entries.iter().all(|entry| {
        let before = core::mem::replace(&mut last, (entry.begin, entry.end));
        is_placed(entry) && before <= last
    });
    let all_placed = in_order || table.entries.iter().all(is_placed);
    if !in_order {
        table.by_offset = Some(by_offset(table));
    }
    let mut walk = Walk {
        table,
        findings,
        all_placed,
        expected: 0,
        previous: None,
        last_end: None,
        pending: Vec::new(),
    };
    match &table.by_offset {
        None => table.entries.iter().for_each(|entry| walk.step(entry)),
        Some(order) => order
            .iter()
            .filter_map(|&number| table.entry(number))
            .filter(|entry| entry.flags.has(Flags::OFFSETS))
            .for_each(|entry| walk.step(entry)),
    }
    walk.end();
}

/// The numbers of the entries by their offsets; those without usable ones last.
fn by_offset(table: &Table) -> Vec<u32> {
    let mut order: Vec<u32> = (0..position(table.entries.len())).collect();
    order.sort_unstable_by_key(|&number| {
        let entry = table.entry(number);
        let offsets = entry.map_or((0, 0), |entry| (entry.begin, entry.end));
        let placed = entry.is_some_and(|entry| entry.flags.has(Flags::OFFSETS));
        (!placed, offsets, number)
    });
    order
}

/// A walk over the tensors by offset.
struct Walk<'t, 'f> {
    table: &'t Table,
    findings: &'f mut Findings,
    /// Whether every tensor has usable offsets: otherwise a gap may be where one of them lies.
    all_placed: bool,
    /// Where the next tensor has to begin: the largest end so far.
    expected: u64,
    /// The tensor before, not counting empty ones.
    previous: Option<Entry>,
    /// The tensor that ends at `expected`.
    last_end: Option<Entry>,
    /// Empty tensors that are fine only if the next tensor begins where they are.
    pending: Vec<Entry>,
}

impl Walk<'_, '_> {
    #[inline]
    fn step(&mut self, entry: &Entry) {
        if entry.begin == entry.end {
            if entry.begin != self.expected && self.all_placed {
                self.pending.push(*entry);
            }
            return;
        }
        if !self.pending.is_empty() {
            self.flush_pending(Some(entry.begin));
        }
        if entry.begin != self.expected {
            self.misplaced(entry);
        }
        if entry.end > self.expected {
            self.expected = entry.end;
            self.last_end = Some(*entry);
        }
        self.previous = Some(*entry);
    }

    #[cold]
    fn misplaced(&mut self, entry: &Entry) {
        let table = self.table;
        // Made only for findings that are kept.
        let shown = |entry: &Entry| format!("`{}`", shortened(table.name(entry)));
        let last_end = self.last_end;
        let before = || last_end.map_or_else(|| "the start".into(), |entry| shown(&entry));
        let (begin, end, expected) = (entry.begin, entry.end, self.expected);
        if begin > expected {
            if self.all_placed {
                let gap = begin.wrapping_sub(expected);
                self.report(&rule::DATA_GAP, entry, expected..begin, |finding| {
                    let finding = finding
                        .says(format!(
                            "between {} and {}, {} belong to no tensor",
                            before(),
                            shown(entry),
                            bytes(gap)
                        ))
                        .with("bytes", gap);
                    if gap < 64 && begin.is_multiple_of(8) {
                        finding.help("This looks like padding for alignment, which the format does not allow between tensors: have the writer pack the data.")
                    } else {
                        finding
                    }
                });
            }
            return;
        }
        let alias = self.previous.filter(|old| (old.begin, old.end) == (begin, end));
        if let Some(old) = alias {
            self.report(&rule::DATA_ALIAS, entry, begin..end, |finding| {
                finding
                    .says(format!(
                        "tensors {} and {} are the same {}",
                        shown(&old),
                        shown(entry),
                        bytes(end.wrapping_sub(begin))
                    ))
                    .with("other", table.name(&old))
            });
        } else {
            let shared = begin..end.min(expected);
            let common = shared.end.wrapping_sub(shared.start);
            self.report(&rule::DATA_OVERLAP, entry, shared, |finding| {
                let (name, before) = (shown(entry), before());
                finding
                    .says(format!("tensor {name} shares {} with {before}", bytes(common)))
                    .with("bytes", common)
                    .with("other", last_end.map_or("", |entry| table.name(&entry)))
            });
        }
    }

    /// Reports the empty tensors that do not lie where the next tensor begins.
    #[cold]
    fn flush_pending(&mut self, next: Option<u64>) {
        for entry in core::mem::take(&mut self.pending) {
            let begin = entry.begin;
            if Some(begin) == next {
                continue;
            }
            let table = self.table;
            self.report(&rule::EMPTY_OFF_BOUNDARY, &entry, begin..begin, |finding| {
                let name = shortened(table.name(&entry));
                finding
                    .says(format!("empty tensor `{name}` lies at {begin}, not between two tensors"))
                    .with("begin", begin)
            });
        }
    }

    fn end(mut self) {
        self.flush_pending(None);
        let (total, data_len) = (self.expected, self.table.data_len());
        if total > data_len {
            self.truncated(total, data_len);
        } else if total < data_len && self.all_placed {
            let extra = data_len.wrapping_sub(total);
            let start = self.table.data_start.saturating_add(total);
            self.findings.report(&rule::DATA_TRAILING, || {
                Finding::new(
                    &rule::DATA_TRAILING,
                    format!("after the last tensor: {}", bytes(extra)),
                )
                .at(start..self.table.file_len)
                .with("bytes", extra)
                .with("data_bytes", data_len)
                .with("tensor_bytes", total)
            });
        }
    }

    fn truncated(&mut self, total: u64, data_len: u64) {
        let missing = total.wrapping_sub(data_len);
        let entries = &self.table.entries;
        let placed = |entry: &&Entry| entry.flags.has(Flags::OFFSETS);
        let complete = entries.iter().filter(placed).filter(|entry| entry.end <= data_len).count();
        let file_len = self.table.file_len;
        self.findings.report(&rule::DATA_TRUNCATED, || {
            Finding::new(
                &rule::DATA_TRUNCATED,
                format!(
                    "missing at the end: {}; the tensors need {total}, the file has {data_len}, and {complete} of {} tensors are complete",
                    bytes(missing),
                    entries.len()
                ),
            )
            .at(file_len..file_len)
            .with("missing", missing)
            .with("tensor_bytes", total)
            .with("data_bytes", data_len)
            .with("complete_tensors", u64::try_from(complete).unwrap_or(u64::MAX))
        });
    }

    /// Records a finding at a span of the data section.
    fn report(
        &mut self,
        rule: &'static crate::Rule,
        entry: &Entry,
        span: Range<u64>,
        fill: impl FnOnce(Finding) -> Finding,
    ) {
        let table = self.table;
        self.findings.report(rule, || {
            let start = table.data_start;
            let span = start.saturating_add(span.start)..start.saturating_add(span.end);
            fill(Finding::new(rule, "").at(span).tensor(table.name(entry)))
        });
    }
}
