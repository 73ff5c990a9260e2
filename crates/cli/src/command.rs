//! The commands, a module each: its arguments, and what it does.

pub(crate) mod bench;
pub(crate) mod cast;
pub(crate) mod check;
pub(crate) mod convert;
pub(crate) mod generate;
pub(crate) mod info;
pub(crate) mod join;
pub(crate) mod ls;
pub(crate) mod meta;
pub(crate) mod pagecache;
pub(crate) mod rename;
pub(crate) mod repair;
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod split;
pub(crate) mod tree;
