//! What the programs of the benchmarks have in common: saying what they have cost.
#![forbid(unsafe_code)]

pub mod process;
