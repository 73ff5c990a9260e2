//! Bytes in, by ranges. This crate knows files, not tensors.
//!
//! [`FileSource`] is an open file that is read at offsets. Its errors say which file, and tell a missing
//! file from one that may not be read, from a folder, and from one that ended early.
//!
//! # Untrusted input
//!
//! A path may name anything: a folder, a pipe, a device. On Unix, opening never blocks, and only regular
//! files are read. Nothing is allocated that the caller did not ask for.
#![forbid(unsafe_code)]

mod error;
mod file;

pub use error::{Error, ErrorKind};
pub use file::FileSource;
