//! The safetensors format: what its bytes mean and whether they are sound.
//!
//! A safetensors file is an 8-byte little-endian header length, a JSON header (tensor name →
//! dtype, shape, offsets) and the raw bytes of the tensors. This crate reads and writes the header
//! and knows every rule of the format, the shard index beside it, and what other kinds of file
//! look like. It does no I/O: a function says which bytes it needs, another takes them.
//!
//! - [`header`]: [`locate`](header::locate) the header, [`inspect`](header::inspect) it, accept it as a [`Header`];
//! - [`mod@inspect`]: the same in one call, over anything that can hand out byte ranges;
//! - [`finding`], [`rule`]: what is wrong, where, with which numbers, and what to do;
//! - [`dtype`], [`shape`]: element types and sizes; [`limits`]: what a file may cost;
//! - [`index`], [`shards`]: the shard index (`model.safetensors.index.json`), read and written, and the
//!   files of a set;
//! - [`slice`](mod@slice): a slice of a tensor as byte runs;
//! - [`mod@encode`]: the bytes of a header, by a layout; [`repair`]: what of a damaged file they can mend;
//! - [`kind`]: what a file is when it is not safetensors;
//! - [`order`], [`text`]: names for people: natural order, and text safe to print;
//! - [`lookup`]: the key of hash tables that nobody can flood.
//!
//! # Untrusted input
//!
//! Everything in a file is the attacker's to choose. No input makes this crate panic, recurse,
//! or use memory beyond a small multiple of the bytes it was given; [`Limits`] are spent before
//! memory is, and hash tables are keyed.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod dtype;
pub mod encode;
pub mod finding;
pub mod header;
pub mod index;
pub mod inspect;
mod json;
mod keys;
pub mod kind;
mod layout;
pub mod limits;
pub mod listing;
pub mod lookup;
mod notes;
pub mod order;
mod read;
pub mod repair;
pub mod rule;
pub mod shape;
pub mod shards;
pub mod slice;
mod table;
pub mod text;

pub use dtype::Dtype;
pub use finding::{Finding, Findings, Policy, Severity, Verdict};
pub use header::{Header, Tensor};
pub use limits::Limits;
pub use lookup::HashKey;
pub use rule::Rule;
pub use slice::Slice;
