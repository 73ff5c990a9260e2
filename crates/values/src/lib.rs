//! What the bytes of a tensor say.
//!
//! Everything here takes little-endian elements as a file has them, at any alignment, chunk by
//! chunk:
//!
//! - [`cast`]: from one float dtype to another;
//! - [`decode`]: from any dtype to numbers.
//!
//! It does not know where tensors are (`weigh-format` does), read files, or keep state between
//! chunks.
//!
//! # Untrusted input
//!
//! Every pattern of bits has a meaning. No bytes and no lengths make this crate panic; it
//! allocates nothing, and time is proportional to the bytes.
#![forbid(unsafe_code)]

pub mod cast;
pub mod decode;
mod float;
mod kernel;
mod length;
mod pair;
mod small;

pub use length::{LengthError, Unit};
