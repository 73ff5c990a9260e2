//! Writing and editing checkpoints.

mod concurrent;
mod edits;
mod files;
mod metadata;
mod sets;
mod targets;
mod writer;
