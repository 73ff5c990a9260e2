//! Bars of text, in eighths of a column.

/// A bar of `width` columns, filled as `part` is of `whole`: something is never nothing.
pub(super) fn bar(part: u64, whole: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let columns = width as u128 * 8;
    let exact = (u128::from(part) * columns + u128::from(whole) / 2) / u128::from(whole.max(1));
    let filled = exact.min(columns).max(u128::from(part > 0));
    let full = usize::try_from(filled / 8).unwrap_or(width);
    let rest = EIGHTHS[usize::try_from(filled % 8).unwrap_or_default()];
    let blank = width - full - usize::from(!rest.is_empty());
    format!("{}{rest}{}", "█".repeat(full), " ".repeat(blank))
}

/// A share in per cent, five columns: `100%`, `12.3%`, `<0.1%`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let thousandths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    match thousandths {
        0 if part > 0 => "<0.1%".into(),
        1000.. if part >= whole => "100%".into(),
        // A part is not the whole.
        1000.. => "99.9%".into(),
        _ => format!("{}.{}%", thousandths / 10, thousandths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_its_width() {
        for (part, whole, want) in [
            (0, 0, "    "),
            (0, 100, "    "),
            (1, u64::MAX, "▏   "),
            (1, 32, "▏   "),
            (50, 100, "██  "),
            (99, 100, "████"),
            (31, 32, "███▉"),
            (100, 100, "████"),
            (u64::MAX, u64::MAX, "████"),
            (200, 100, "████"),
        ] {
            assert_eq!(bar(part, whole, 4), want, "{part} of {whole}");
        }
    }

    #[test]
    fn only_the_whole_is_all_of_it() {
        for (part, whole, want) in [
            (0, 0, "0.0%"),
            (0, 10, "0.0%"),
            (1, 1_000_000, "<0.1%"),
            (1, 1000, "0.1%"),
            (123, 1000, "12.3%"),
            (999_999, 1_000_000, "99.9%"),
            (7, 7, "100%"),
        ] {
            assert_eq!(percent(part, whole), want, "{part} of {whole}");
        }
    }
}
