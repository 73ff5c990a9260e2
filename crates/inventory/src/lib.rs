//! What is in a checkpoint, from names, dtypes and shapes alone.
//!
//! Everything here takes [`Item`]s, which a header lists, and answers without reading a byte of
//! the data section:
//!
//! - [`select`]: which tensors are meant, by globs, regular expressions, dtypes and sizes;
//! - [`rename`]: new names for them, by substitution, map or prefix;
//! - [`split`]: which of them go into which shard of a set;
//! - [`tree`]: the modules that dotted names spell, with equal numbered siblings folded into one;
//! - [`count`]: tensors, elements, bytes, dtypes, the largest, and parameters;
//! - [`quantization`]: which tensor holds packed weights, which only helps to unpack them;
//! - [`recognize`]: what the names and shapes prove the checkpoint to be.
//!
//! It does not parse headers (`weigh-format` does), look at values, or print: texts that come
//! from names are not escaped.
//!
//! # Untrusted input
//!
//! Names and shapes are the attacker's to choose. No input makes this crate panic or recurse;
//! sums saturate; time is bounded by the bytes of the names times a logarithm, or times the number
//! of patterns, and memory by a small multiple of the items. Patterns and rules may be hostile too:
//! what they take is limited. Hash tables use the standard library's keyed hash, whose key is
//! random wherever the platform has randomness (`wasm32-unknown-unknown` has none).
#![forbid(unsafe_code)]

pub mod count;
pub mod dtypes;
pub mod item;
pub mod quantization;
pub mod recognize;
pub mod rename;
pub mod select;
pub mod split;
pub mod tree;

pub use dtypes::DtypeSet;
pub use item::{Item, Totals};
