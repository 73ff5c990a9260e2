//! Torch checkpoints: what is read of them, and what a scan says.

mod archives;
mod folders;
mod opening;
mod wrappers;
