//! Torch checkpoints (`.pt`, `.pth`, `.bin`, `.ckpt`) as data: what a pickle says, without ever doing it.
//!
//! Unpickling calls what a file names. The [`machine`] here has no way to call anything: it turns the opcodes into a
//! [`graph`] in which a name is a name and a call is a node that says what would be called with what. Only a fixed
//! table of known constructors gives some of these nodes a meaning, as tensors. So to read a checkpoint is safe by
//! construction, and what else the file wants to call is seen on the way.
//!
//! This crate does no I/O: a function takes the [`Spans`] of a file that have been read, and says which others it
//! needs.
//!
//! # Untrusted input
//!
//! Everything in a file is the attacker's to choose. No input makes this crate panic, recurse, or use memory beyond a
//! small multiple of the bytes it was given; [`Limits`] are spent before memory is.
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

mod allocation;
pub mod container;
mod containers;
pub mod decode;
pub mod dtype;
pub mod error;
mod expansion;
mod foreign;
pub mod gadget;
pub mod graph;
pub mod known;
pub mod limits;
pub mod machine;
pub mod nested;
mod numpy_dtype;
pub mod opcode;
pub mod python2;
pub mod reach;
pub mod refusal;
pub mod rules;
pub mod spans;
pub mod state;
pub mod storage;
pub mod stream;
pub mod tensor;
pub mod transform;
pub mod values;
pub mod verdict;
pub mod view;
pub mod weights_only;

pub use error::Error;
pub use foreign::Foreign;
pub use graph::{Call, CallKind, Graph, Node, NodeId};
pub use known::Known;
pub use limits::Limits;
pub use machine::{Program, run};
pub use spans::{Spans, Stop};
pub use stream::run_all;
pub use verdict::Verdict;
pub use weights_only::weights_only;
