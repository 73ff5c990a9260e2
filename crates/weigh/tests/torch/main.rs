//! Checkpoints of torch and numpy: what is read of them, what a scan says, and what is converted.

mod archives;
mod budget;
mod corpus;
mod elements;
mod folders;
mod hidden;
mod made;
mod names;
mod numpy;
mod opening;
mod views;
mod wrappers;
