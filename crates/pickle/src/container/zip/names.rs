//! What names an archive's members may have.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use weigh_format::Findings;

use super::super::rules::{self, report};
use super::directory::Record;

/// The positions of the records by name, those of one name in the order of the directory. Reports names that come
/// twice, that differ only in case, and that look like paths to elsewhere.
pub(super) fn sorted(records: &[Record], findings: &mut Findings) -> Vec<usize> {
    let name = |position: &usize| records.get(*position).map_or("", |record| &record.name);
    let mut by_name: Vec<usize> = (0..records.len()).collect();
    // Stable, and fast on the runs that the numbers of storages are.
    by_name.sort_by(|one, other| name(one).cmp(name(other)));
    for record in records {
        if let Some(wrong) = path_fault(&record.name) {
            report(findings, &rules::ZIP_PATH, &record.name, || format!("the name has {wrong}"));
        }
    }
    for pair in by_name.windows(2) {
        if let [one, other] = pair
            && name(one) == name(other)
        {
            report(findings, &rules::ZIP_DUPLICATE, name(one), || {
                String::from("the name comes twice")
            });
        }
    }
    // Two names that are their own lower case differ in more than case.
    if records.iter().all(|record| matches!(fold(&record.name), Cow::Borrowed(_))) {
        return by_name;
    }
    let mut folded: Vec<(Cow<'_, str>, &str)> =
        records.iter().map(|record| (fold(&record.name), record.name.as_str())).collect();
    folded.sort_unstable();
    for pair in folded.windows(2) {
        let [(one_folded, one), (other_folded, other)] = pair else { continue };
        if one_folded == other_folded && one != other {
            report(findings, &rules::ZIP_CASE, one, || {
                format!("differs from {other} in case only")
            });
        }
    }
    by_name
}

/// What in a name is unsafe to unpack, or read in several ways.
pub(crate) fn path_fault(name: &str) -> Option<&'static str> {
    let mut bytes = name.bytes();
    if name.is_empty() {
        Some("no characters")
    } else if name.starts_with('/') || name.get(1..2) == Some(":") {
        Some("a root at its start")
    } else if name.split('/').any(|part| part == "..") {
        Some("`..` in it")
    } else if name.contains('\\') {
        Some("a backslash in it")
    } else if bytes.any(|byte| byte < 0x20 || byte == 0x7f) {
        Some("control characters in it")
    } else {
        None
    }
}

fn fold(name: &str) -> Cow<'_, str> {
    if name.is_ascii() && !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.to_lowercase())
    }
}
