//! Numbers for people.

/// Bytes in binary units, three digits: `512 B`, `13.5 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    scaled(
        bytes,
        1024,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
        " ",
    )
}

/// A count in decimal units, three digits: `512`, `7.24B` as model sizes are written.
pub(crate) fn count(count: u64) -> String {
    scaled(count, 1000, &["", "K", "M", "B", "T", "P", "E"], "")
}

/// An exact count with its thousands apart: `7 241 732 096`.
pub(crate) fn exact(number: u64) -> String {
    let digits = number.to_string();
    let mut spaced = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            spaced.push(' ');
        }
        spaced.push(digit);
    }
    spaced
}

/// `1 tensor`, `2 tensors`.
pub(crate) fn plural(number: u64, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{} {one}s", exact(number))
    }
}

fn scaled(number: u64, base: u64, units: &[&str], space: &str) -> String {
    let mut unit = 0;
    let mut divisor = 1_u64;
    while number / divisor >= base && unit + 1 < units.len() {
        divisor = divisor.saturating_mul(base);
        unit += 1;
    }
    if unit == 0 {
        return format!("{number}{space}{}", units[0]);
    }
    // Thousandths of the unit, exactly; printed with three significant digits, rounded.
    let thousandths = u128::from(number) * 1000 / u128::from(divisor);
    let (whole, decimals) = match thousandths {
        0..9_995 => ((thousandths + 5) / 10, 2),
        9_995..99_950 => ((thousandths + 50) / 100, 1),
        _ => ((thousandths + 500) / 1000, 0),
    };
    if whole >= u128::from(base) && decimals == 0 && unit + 1 < units.len() {
        return format!("1.00{space}{}", units[unit + 1]);
    }
    let text = match decimals {
        2 => format!("{}.{:02}", whole / 100, whole % 100),
        1 => format!("{}.{}", whole / 10, whole % 10),
        _ => whole.to_string(),
    };
    format!("{text}{space}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_boundary() {
        for (number, as_bytes, as_count) in [
            (0, "0 B", "0"),
            (999, "999 B", "999"),
            (1000, "1000 B", "1.00K"),
            (1023, "1023 B", "1.02K"),
            (1024, "1.00 KiB", "1.02K"),
            (10_234, "9.99 KiB", "10.2K"),
            (10_240, "10.0 KiB", "10.2K"),
            (102_400, "100 KiB", "102K"),
            (999_999, "977 KiB", "1.00M"),
            (1_048_575, "1.00 MiB", "1.05M"),
            (7_241_732_096, "6.74 GiB", "7.24B"),
            (u64::MAX, "16.0 EiB", "18.4E"),
        ] {
            assert_eq!(
                (bytes(number).as_str(), count(number).as_str()),
                (as_bytes, as_count)
            );
        }
    }

    #[test]
    fn exact_counts_are_spaced_by_thousands() {
        for (number, want) in [
            (0, "0"),
            (999, "999"),
            (1000, "1 000"),
            (1_234_567, "1 234 567"),
        ] {
            assert_eq!(exact(number), want);
        }
        assert_eq!(
            (plural(1, "tensor"), plural(2, "tensor")),
            ("1 tensor".into(), "2 tensors".into())
        );
    }
}
