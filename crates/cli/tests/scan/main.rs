//! `weigh scan`, run as a program. No fixture is ever unpickled; what they would call is `os.getpid`.

#[path = "../program/mod.rs"]
mod program;

mod corpus;
mod output;
mod paths;
mod schema;
