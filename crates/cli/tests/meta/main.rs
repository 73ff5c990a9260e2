//! `weigh meta`, run as a program.

#[path = "../program/mod.rs"]
mod program;

mod changing;
mod checkpoints;
mod get;
mod hostile;
mod mending;
mod objects;
