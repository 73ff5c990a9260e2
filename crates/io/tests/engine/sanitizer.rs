//! Whether a sanitizer looks on.

/// Sanitizers take more addresses than any machine has memory, and a multiple of what the program has. Limits
/// and measurements of memory mean nothing then, and everything takes ten times as long.
pub(crate) fn is_there() -> bool {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.is_some_and(|pages| pages > 1 << 30)
}
