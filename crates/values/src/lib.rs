//! What the bytes of a tensor say.
//!
//! Everything here takes little-endian elements as a file has them, at any alignment, chunk by
//! chunk:
//!
//! - [`cast`]: from any dtype to any other, and a [`Tally`] of what did not fit;
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
mod code;
mod complex;
pub mod decode;
mod float;
mod format;
mod integer;
mod kernel;
mod length;
mod pair;
mod range;
mod route;
mod small;
mod tally;

pub use length::{LengthError, Unit};
pub use tally::Tally;
