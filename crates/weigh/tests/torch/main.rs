//! Torch checkpoints: what is read of them.

mod opening;
