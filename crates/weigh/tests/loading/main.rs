//! Loading: the bytes, and what is promised beside them.

mod bytes;
mod made;
mod promises;
