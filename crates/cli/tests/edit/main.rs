//! `weigh select`, `rename`, `cast`, `split`, `join` and `repair`, run as a program.

#[path = "../program/mod.rs"]
mod program;

mod checkpoint;
mod edits;
mod refusals;
mod renames;
mod stdout;
