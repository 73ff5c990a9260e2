//! Torch checkpoints (`.pt`, `.pth`, `.bin`, `.ckpt`), read as data: nothing that a file names is imported, nothing
//! that it calls is called.
//!
//! [`TorchCheckpoint`] is the tensors of one file, and where their bytes are. [`scan()`](scan::scan) says what
//! unpickling a file would do.
//!
//! # Untrusted input
//!
//! Files are read in spans as [`weigh_pickle`] asks for them, so a checkpoint of gigabytes costs its directory and its
//! pickle. Limits are spent before memory is.

mod convert;
mod file;
mod gather;
mod listing;
mod npz;
mod reading;
pub mod rules;
pub mod scan;
mod sizes;

pub use weigh_pickle as pickle;

pub use convert::{
    Beside, Complex, ConvertOptions, ConvertPlan, ConvertReport, Converted, ConvertedFile, Cost,
    Format, NestedRule, QuantizedRule, SparseRule, Unconverted, load, output_for,
};
pub use file::{ContainerKind, LeftOut, Place, TorchCheckpoint, TorchOptions};

pub use listing::{Listing, is_listed, list};
