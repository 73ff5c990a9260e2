//! numpy's `.npy` and `.npz`: read as inputs, and `.npz` laid out to be written.

mod read;
mod write;

pub(super) use read::{begins_as_npz, read_npy, read_npz};
pub(super) use write::{Member, descr, directory, is_plain_name, lay_out, raw};
