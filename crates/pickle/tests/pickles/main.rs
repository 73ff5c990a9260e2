//! The machine and what it is made of, against pickles written by hand and the files of `conformance/checkpoints`.

#[macro_use]
mod assembler;

mod corpus;
mod hostile;
mod lines;
mod nested;
mod opcodes;
mod semantics;
mod verdicts;
mod weights_only;
