//! What the bytes of a tensor say.
//!
//! Everything here takes little-endian elements as a file has them, at any alignment, chunk by
//! chunk:
//!
//! - [`cast`]: from any dtype to any other, and a [`Tally`] of what did not fit;
//! - [`decode`]: from any dtype to numbers;
//! - [`odd`]: what a checkpoint should not have, NaN and infinities first of all;
//! - [`statistics`]: extremes, mean, deviation and what there is how often;
//! - [`codes`]: how often there is each value, and with that quantiles and histograms;
//! - [`compare`]: how far two tensors are apart.
//!
//! What looks at values takes a tensor in chunks, on as many threads as there are: results of chunks join to those of
//! the whole. It does not know where tensors are (`weigh-format` does), and does not read files.
//!
//! # Untrusted input
//!
//! Every pattern of bits has a meaning. No bytes and no lengths make this crate panic; what it
//! allocates does not grow with the bytes, and time is proportional to them.
#![forbid(unsafe_code)]

mod bits;
pub mod cast;
mod code;
pub mod codes;
pub mod compare;
mod complex;
pub mod decode;
mod float;
mod format;
mod integer;
mod kernel;
mod length;
mod moments;
mod number;
pub mod odd;
mod pair;
mod range;
mod route;
mod small;
pub mod statistics;
mod tally;

pub use compare::CompareError;
pub use length::{LengthError, Unit};
pub use moments::Moments;
pub use number::Number;
pub use tally::Tally;
