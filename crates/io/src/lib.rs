//! Bytes in and out, by ranges. This crate knows files, not tensors.
//!
//! [`FileSource`] is an open file that is read at offsets. A [`Plan`] says which bytes of which files go
//! where, and a [`Reading`] carries it out, as fast as the machine allows, into the [`Block`]s of one
//! [arena](mod@arena). Errors say which file, and tell a missing file from one that may not be read, from a
//! folder, from one that ended early and from one that changed meanwhile.
//!
//! A [`NewFile`] is written beside its target and takes its place when it is complete, [`commit_set`] does
//! that with several that belong together, and [`rewrite_head`] edits the head of a file in place.
//!
//! - [`pagecache`]: what of a file is in the page cache, and how to get it in or out;
//! - [`system`]: facts about the machine, as what a file is on and how much memory there is;
//! - [`policy`]: how a load is best read, and why.
//!
//! # Untrusted input
//!
//! A path may name anything: a folder, a pipe, a device. On Unix, opening never blocks, and only regular
//! files are read or replaced. Nothing is allocated that the caller did not ask for. The journal of an edit is
//! believed only as far as it can do no harm: see [`mend`].
//!
//! # Unsafe code
//!
//! It is in the modules that talk to the system about memory, and nowhere else: the arena's, `io_uring`'s,
//! the maps and the page cache's. Each block has its proof.
#![deny(unsafe_code)]

pub mod arena;
mod engine;
mod error;
mod file;
mod gather;
pub mod map;
pub mod pagecache;
mod plan;
pub mod policy;
mod runs;
mod source;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system calls that no safe crate offers")]
mod sys;
pub mod system;
mod usage;
mod write;

pub use arena::{Block, OutOfMemory};
pub use engine::{Cancel, Hook, Progress, ReadError, Reading, Report};
pub use error::{Change, Error, ErrorKind, Misuse, Unmendable};
pub use file::FileSource;
pub use plan::{Cut, MOST_PIECES, Part, Plan, PlanError, Unit};
pub use runs::{Repeat, Runs};
pub use source::{Source, read_exact, read_span};
pub use usage::Usage;
pub use write::{
    Claims, INTERRUPTED, Mended, NewFile, WriteOptions, commit_set, make_folder, mend, rewrite_head,
};
