//! What a file may cost before reading it stops.

/// Limits that are spent before memory is. One that is met is an error, `limit-…`, that names it: the file may be
/// honest, and a larger limit may read it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct Limits {
    /// Bytes of one pickle.
    pub pickle_bytes: u64,
    /// Opcodes of one pickle.
    pub opcodes: u64,
    /// Nodes of a graph.
    pub nodes: u32,
    /// Bytes of a graph in memory, about.
    pub graph_bytes: u64,
    /// Entries of the memo.
    pub memo: u32,
    /// Values on the stack.
    pub stack: u32,
    /// Bytes of one string.
    pub string_bytes: u64,
    /// Bytes of one integer.
    pub integer_bytes: u32,
    /// Levels of containers in containers that are walked for tensors.
    pub depth: u32,
    /// Tensors of a checkpoint.
    pub tensors: u32,
    /// Entries of an archive.
    pub entries: u32,
    /// Bytes of the name of an entry.
    pub name_bytes: u32,
    /// Bytes that one compressed byte may become.
    pub ratio: u32,
    /// Bytes of all tensors together, as a multiple of the bytes of their storages; see `expanded_bytes`.
    pub expansion: u32,
    /// Bytes that all tensors together may have in any case.
    pub expanded_bytes: u64,
    /// Nodes that a walk along names visits for each node there is: a list that is in many others may be reached in
    /// many ways. Those that lead to no tensor do not count.
    pub visits: u32,
    /// Nodes of the tree that a graph is written out, for each node there is. More is a finding, and no error.
    pub tree: u32,
    /// Bytes that constructors make which the file does not have, as those of `bytearray(n)`. More is a finding, and
    /// no error.
    pub made_bytes: u64,
    /// Calls of what is outside the table, in one pickle.
    pub foreign: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pickle_bytes: 512 << 20,
            opcodes: 200_000_000,
            nodes: 100_000_000,
            graph_bytes: 1 << 30,
            memo: 50_000_000,
            stack: 10_000_000,
            string_bytes: 64 << 20,
            integer_bytes: 1 << 10,
            depth: 10_000,
            tensors: 10_000_000,
            entries: 1_000_000,
            name_bytes: 4 << 10,
            ratio: 1000,
            expansion: 2,
            expanded_bytes: 64 << 20,
            visits: 4,
            tree: 256,
            made_bytes: 256 << 20,
            foreign: 100_000,
        }
    }
}
