//! Numbers for people.

/// Bytes in binary units, three digits: `512 B`, `13.5 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    Short::bytes(bytes).as_str().into()
}

/// A count in decimal units, three digits: `512`, `7.24B` as model sizes are written.
pub(crate) fn count(count: u64) -> String {
    Short::count(count).as_str().into()
}

/// A number of bytes as people write it: `4096`, `64K`, `1.5GiB`, `5GB`.
///
/// `K` and `KiB` are 1024 bytes, `KB` is 1000, and so on: as dd has it, and as model hubs mean `5GB`.
///
/// # Errors
///
/// If it is none.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    const FORM: &str = "a number of bytes is written 4096, 64K, 1.5GiB or 5GB";
    let lower = text.trim().to_ascii_lowercase();
    let end = lower.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(end);
    let (power, base) = match unit.trim() {
        "" | "b" => (0, 1024_u64),
        unit => {
            let (prefix, rest) = unit.split_at_checked(1).ok_or(FORM)?;
            let power = "kmgt".find(prefix).ok_or(FORM)? + 1;
            match rest {
                "" | "ib" => (power, 1024),
                "b" => (power, 1000),
                _ => return Err(FORM.into()),
            }
        }
    };
    let unit = base.pow(u32::try_from(power).unwrap_or_default());
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(|| "that is over 2^64 bytes".into());
    }
    let fraction = number.parse::<f64>().ok().filter(|it| it.is_finite());
    let fraction = fraction.ok_or(FORM)?;
    #[expect(clippy::cast_precision_loss, reason = "2^64 or less, and compared with that")]
    if fraction * unit as f64 >= u64::MAX as f64 {
        return Err("that is over 2^64 bytes".into());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "saturates, and what is lost is less than a byte in 2^53"
    )]
    let bytes = (fraction * unit as f64) as u64;
    Ok(bytes)
}

/// A number with its unit, where there are too many of them to allocate each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    text: [u8; Self::ROOM],
    len: usize,
}

impl Short {
    /// The longest are `1023 KiB` and 20 digits.
    const ROOM: usize = 24;

    /// Bytes in binary units, as [`bytes`].
    pub(crate) fn bytes(bytes: u64) -> Self {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        scaled(bytes, 1024, &UNITS, " ")
    }

    /// A count in decimal units, as [`count`].
    pub(crate) fn count(count: u64) -> Self {
        const UNITS: [&str; 7] = ["", "K", "M", "B", "T", "P", "E"];
        scaled(count, 1000, &UNITS, "")
    }

    pub(crate) fn as_str(&self) -> &str {
        let text = self.text.get(..self.len).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    fn new() -> Self {
        let text = [0; Self::ROOM];
        Self { text, len: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        for (to, from) in self.text.iter_mut().skip(self.len).zip(bytes) {
            *to = *from;
        }
        self.len = (self.len + bytes.len()).min(Self::ROOM);
    }
}

/// The decimal digits of a number, in `room`: what `to_string` allocates, without.
pub(crate) fn digits(number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut start = room.len();
    let mut rest = number;
    for (place, slot) in room.iter_mut().enumerate().rev() {
        *slot = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        start = place;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    room.get(start..).unwrap_or_default()
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
    if number == 1 { format!("1 {one}") } else { format!("{} {one}s", exact(number)) }
}

#[inline]
fn scaled(number: u64, base: u64, units: &[&str; 7], space: &str) -> Short {
    let mut short = Short::new();
    let (mut unit, mut divisor, mut rest) = (0, 1_u64, number);
    while rest >= base && unit + 1 < units.len() {
        (unit, divisor, rest) = (unit + 1, divisor.saturating_mul(base), rest / base);
    }
    let mut whole = number;
    let mut decimals = 0;
    if unit > 0 {
        // Thousandths of the unit, exactly; shown with three significant digits, rounded.
        let thousandths = match number.checked_mul(1000) {
            Some(thousandfold) => thousandfold / divisor,
            None => {
                let thousandths = u128::from(number) * 1000 / u128::from(divisor);
                u64::try_from(thousandths).unwrap_or(u64::MAX)
            }
        };
        (whole, decimals) = match thousandths {
            0..9_995 => ((thousandths + 5) / 10, 2),
            9_995..99_950 => ((thousandths + 50) / 100, 1),
            _ => ((thousandths + 500) / 1000, 0),
        };
        if decimals == 0 && whole >= base && unit + 1 < units.len() {
            (whole, decimals) = (100, 2);
            unit += 1;
        }
    }
    let mut room = [0; 20];
    let digits = digits(whole, &mut room);
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(decimals));
    short.push(whole);
    if !fraction.is_empty() {
        short.push(b".");
        short.push(fraction);
    }
    short.push(space.as_bytes());
    short.push(units.get(unit).unwrap_or(&"").as_bytes());
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes_are_read_as_people_write_them() {
        for (text, want) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("10b", Some(10)),
            ("64K", Some(64 << 10)),
            ("64 KiB", Some(64 << 10)),
            ("1.5GiB", Some(3 << 29)),
            ("2mb", Some(2_000_000)),
            ("1kB", Some(1000)),
            ("5GB", Some(5_000_000_000)),
            ("0.5 tb", Some(500_000_000_000)),
            ("5GiB", Some(5 << 30)),
            ("1T", Some(1 << 40)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("17179869184G", None),
            ("", None),
            ("K", None),
            ("1i", None),
            ("1Ki", None),
            ("1é", None),
            ("1.2.3", None),
            ("-1", None),
            ("1X", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), want, "{text}");
        }
    }

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
            assert_eq!((bytes(number).as_str(), count(number).as_str()), (as_bytes, as_count));
        }
    }

    #[test]
    fn digits_are_those_of_to_string() {
        for number in [0, 7, 10, 99, 100, 1_000_000, u64::MAX / 10, u64::MAX] {
            assert_eq!(digits(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn exact_counts_are_spaced_by_thousands() {
        for (number, want) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(exact(number), want);
        }
        assert_eq!(
            (plural(1, "tensor"), plural(2, "tensor")),
            ("1 tensor".into(), "2 tensors".into())
        );
    }
}
