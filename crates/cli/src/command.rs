//! The commands, a module each: its arguments, and what it does.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod generate;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod pagecache;
pub(crate) mod tree;
