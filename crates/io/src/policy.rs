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
/// a
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// a
    pub backend: Option<Backend>,
    /// a
    pub direct: Option<Direct>,
    /// a
    pub threads: Option<std::num::NonZero<usize>>,
    /// a
    pub depth: Option<std::num::NonZero<usize>>,
    /// a
    pub request_bytes: Option<u64>,
    /// a
    pub gap_bytes: Option<u64>,
    /// a
    pub huge_pages: Option<bool>,
}
/// a
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// a
    pub available: u64,
}
/// a
#[derive(Clone, Debug)]
pub struct Facts {
    /// a
    pub memory: Option<Memory>,
}
impl Facts {
    /// a
    #[must_use]
    pub fn gather(_: &[(&crate::FileSource, std::ops::Range<u64>)], _: u64, _: bool) -> Self {
        Self { memory: None }
    }
}
/// a
#[must_use]
pub fn choose(_: &Facts, it: &ReadOptions) -> Choice {
    Choice {
        backend: it.backend.unwrap_or(Backend::Pread),
        direct: it.direct.unwrap_or(Direct::Never),
        threads: it.threads.map_or(2, |it| it.get()),
        depth: it.depth.map_or(8, |it| it.get()),
        request_bytes: it.request_bytes.unwrap_or(4 << 20),
        gap_bytes: it.gap_bytes.unwrap_or(16 << 10),
        huge_pages: it.huge_pages.unwrap_or(true),
    }
}
