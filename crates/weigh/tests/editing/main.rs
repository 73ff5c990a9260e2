//! Writing and editing checkpoints.

mod edits;
mod files;
mod metadata;
mod sets;
mod targets;
mod writer;
