//! Model weights in the safetensors format: find, open, list and check checkpoints.
//!
//! A *checkpoint* is one or more files opened as one set of tensors: a file, a folder, or a shard index.
//!
//! - [`find`] says which checkpoints a path stands for;
//! - [`Survey`] reads the headers of one, damaged or not, with everything found wrong: for looking;
//! - [`Checkpoint`] is one that is sound: for loading.
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
//! outside the index's folder; links in the folder are followed, as caches need it. Memory is bounded by [`Limits`](format::Limits) before it is allocated.
#![forbid(unsafe_code)]

mod address;
mod array;
mod checkpoint;
mod error;
mod find;
mod load;
mod mapped;
mod plan;
mod ranks;
mod stream;
mod survey;
mod want;

pub use weigh_format as format;
pub use weigh_inventory as inventory;
pub use weigh_io as io;
pub use weigh_values as values;

pub use address::Address;
pub use array::{Array, Element, ElementError, View};
pub use checkpoint::{Checkpoint, Shard, Tensor};
pub use error::Error;
pub use find::{Found, Layout, find};
pub use load::{LoadOptions, LoadReport, Loaded};
pub use mapped::Mapped;
pub use plan::{Explanation, Plan, Planned};
pub use ranks::RankPlans;
pub use stream::{Order, Stream, StreamOptions, Streamed};
pub use survey::{Options, Survey, SurveyedShard};
pub use want::Want;
