//! What a caller allows a file to cost.

/// Limits that are spent before memory is.
///
/// A limit that is met is its own finding (`header-over-limit`, `limit-tensors`, `limit-name`,
/// `json-depth`): the file may be sound, and a larger limit may read it.
///
/// ```
/// let limits = weigh_format::Limits { tensors: 1_000, ..Default::default() };
/// assert_eq!(limits.header_bytes, 100_000_000);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Limits {
    /// Bytes of the JSON header, inclusive (rule F2). At most 2^32 − 1 has an effect.
    pub header_bytes: u64,
    /// Number of tensors in one file (rule L1). By default more than a header of 100 000 000 bytes has room for.
    pub tensors: u32,
    /// Bytes of one tensor name (rule L1).
    pub name_bytes: u32,
    /// Levels of JSON nesting, the outermost object being the first (rule J3). At most 64.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_bytes: Self::HEADER_BYTES, tensors: 2_000_000, name_bytes: 1 << 20, depth: 8 }
    }
}

impl Limits {
    /// Bytes of a header that every reader takes: the default of [`Limits::header_bytes`].
    pub const HEADER_BYTES: u64 = 100_000_000;

    /// [`Limits::header_bytes`] as it takes effect: positions in a header are 32-bit.
    #[must_use]
    pub(crate) fn effective_header_bytes(&self) -> u64 {
        self.header_bytes.min(u64::from(u32::MAX))
    }
}
