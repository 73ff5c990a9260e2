//! What this process has used, as the system counts it.

/// Counts since the process began, and memory now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// Page faults that needed no reading.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Bytes of memory that are resident now.
    pub resident: u64,
    /// The most bytes that were resident at a time.
    pub peak: u64,
}

impl Usage {
    /// As it is now; `None` where the system does not say.
    #[must_use]
    pub fn now() -> Option<Self> {
        let text = |name| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
        Self::parse(&text("stat")?, &text("status")?)
    }

    /// From the texts of `/proc/self/stat` and `/proc/self/status` (proc(5)).
    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The name of the program is in parentheses, and may have any character.
        let (_, fields) = stat.rsplit_once(')')?;
        // The first field here is the third in the manual, the state; minflt is the 10th there.
        let field = |number: usize| fields.split_whitespace().nth(number - 3)?.parse().ok();
        let bytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
            kilobytes.checked_mul(1024)
        };
        Some(Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            resident: bytes("VmRSS:")?,
            peak: bytes("VmHWM:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_the_system_are_read_and_others_refused() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 77 8 99 10";
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\n";
        let want = Usage { minor_faults: 77, major_faults: 99, resident: 1 << 20, peak: 2 << 20 };
        assert_eq!(Usage::parse(stat, status), Some(want));
        for (stat, status) in [
            ("", status),
            ("1 (a) S 1", status),
            (stat, ""),
            (stat, "VmHWM: x\nVmRSS: 18446744073709551615 kB"),
        ] {
            assert_eq!(Usage::parse(stat, status), None, "{stat} {status}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_something() {
        let usage = Usage::now().unwrap();
        assert!(usage.minor_faults > 0 && usage.resident > 0, "{usage:?}");
    }
}
