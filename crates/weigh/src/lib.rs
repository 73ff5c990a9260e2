//! Model weights in the safetensors format: find, open, list, check, load, write and edit checkpoints.
//!
//! A *checkpoint* is one or more files opened as one set of tensors: a file, a folder, or a shard index.
//!
//! - [`find`] says which checkpoints a path stands for;
//! - [`Survey`] reads the headers of one, damaged or not, with everything found wrong: for looking;
//! - [`Checkpoint`] is one that is sound: for loading. [`Checkpoint::load`], [`tensor`](Checkpoint::tensor),
//!   [`slice`](Checkpoint::slice) and [`stream`](Checkpoint::stream) read, a [`Plan`] says what will be.
//! - [`save`] and [`Writer`] write tensors that are made here; an [`Edit`] says what becomes of those of
//!   checkpoints, and a [`WritePlan`] writes it; [`Checkpoint::plan_metadata`] edits metadata, a [`RepairPlan`]
//!   mends damaged files. What is written replaces what is there whole, or not at all.
//!
//! ```no_run
//! let checkpoint = weigh::Checkpoint::open("model")?;
//! for tensor in checkpoint.tensors() {
//!     println!("{} {} {:?}", tensor.name, tensor.dtype, tensor.shape);
//! }
//! # Ok::<(), weigh::Error>(())
//! ```
//!
//! # Untrusted input
//!
//! Opening reads the headers and nothing else and runs no code from any file. No name in an index leads
//! outside the index's folder; links in the folder are followed, as caches need it. Memory is bounded by
//! [`Limits`](format::Limits) before it is allocated; a load takes what its tensors take, which their files have.
//! A file that changes while it is read is an error.
#![forbid(unsafe_code)]

/// The guide, so that its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/loading.md")]
struct Loading;

/// The same, of writing and editing.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/editing.md")]
struct Editing;

mod address;
mod array;
mod checkpoint;
mod edit;
mod error;
mod find;
mod load;
mod looks;
mod mapped;
mod metadata;
mod plan;
mod ranks;
mod repair;
mod stream;
mod survey;
mod targets;
pub mod torch;
mod want;
mod work;
mod write;

pub use weigh_format as format;
pub use weigh_inventory as inventory;
pub use weigh_io as io;
pub use weigh_values as values;

pub use address::Address;
pub use array::{Array, Element, ElementError, View};
pub use checkpoint::{Checkpoint, Shard, Tensor, inspect_source};
pub use edit::{
    CastReport, Edit, Edited, Output, PlannedCast, PlannedFile, PlannedIndex, Shards, WritePlan,
    WriteReport,
};
pub use error::Error;
pub use find::{Found, Layout, find};
pub use load::{LoadOptions, LoadReport, Loaded};
pub use looks::{Looked, TensorStatistics};
pub use mapped::Mapped;
pub use metadata::{
    MetadataChange, MetadataOptions, MetadataOutput, MetadataPlan, PlannedMetadata,
};
pub use plan::{Explanation, Plan, Planned};
pub use ranks::RankPlans;
pub use repair::RepairPlan;
pub use stream::{Order, Stream, StreamOptions, Streamed};
pub use survey::{Options, Survey, SurveyedShard};
pub use want::Want;
pub use write::{Watch, WriteOptions, Writer, save, save_sharded, save_watched};
