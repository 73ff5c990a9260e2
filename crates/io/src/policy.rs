//! Stub, replaced.
/// The way bytes are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Backend {
    /// a
    Pread,
    /// a
    Uring,
    /// a
    Mmap,
}
/// Whether
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direct {
    /// a
    Never,
    /// a
    Always,
    /// a
    Probe,
}
/// a
#[derive(Clone, Debug)]
pub struct Choice {
    /// a
    pub backend: Backend,
    /// a
    pub direct: Direct,
    /// a
    pub threads: usize,
    /// a
    pub depth: usize,
    /// a
    pub request_bytes: u64,
    /// a
    pub gap_bytes: u64,
    /// a
    pub huge_pages: bool,
}
