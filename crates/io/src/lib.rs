//! Bytes in, by ranges. This crate knows files, not tensors.
//!
//! [`FileSource`] is an open file that is read at offsets. A [`Plan`] says which bytes of which files go
//! where, and a [`Reading`] carries it out, as fast as the machine allows, into the [`Block`]s of one
//! [arena](mod@arena). Errors say which file, and tell a missing file from one that may not be read, from a
//! folder, from one that ended early and from one that changed meanwhile.
//!
//! # Untrusted input
//!
//! A path may name anything: a folder, a pipe, a device. On Unix, opening never blocks, and only regular
//! files are read. Nothing is allocated that the caller did not ask for.
//!
//! # Unsafe code
//!
//! It is in the modules that talk to the system about memory, and nowhere else: the arena's, `io_uring`'s,
//! the maps and the page cache's. Each block has its proof.

pub mod arena;
mod engine;
mod error;
mod file;
mod gather;
pub mod map;
mod plan;
pub mod policy;
mod runs;
mod source;
mod usage;

pub use arena::{Block, OutOfMemory};
pub use engine::{Cancel, Hook, Progress, ReadError, Reading, Report, io_uring_available};
pub use error::{Change, Error, ErrorKind};
pub use file::FileSource;
pub use plan::{Cut, Part, Plan, Unit};
pub use runs::{Repeat, Runs};
pub use source::Source;
pub use usage::Usage;
