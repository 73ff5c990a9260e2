//! The sizes of the storages of files that have them one after the other.

use std::collections::HashMap;

use weigh_pickle::Program;
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::known::{Known, known};
use weigh_pickle::storage::{PersistentId, persistent_id};

/// Elements, and bytes of an element, of storages by their keys.
pub(super) type Sizes = HashMap<String, (u64, u32)>;

/// The elements of a storage of this class.
pub(super) fn dtype_of_class(module: &str, name: &str) -> Option<TorchDtype> {
    match known(module, name)? {
        Known::Storage(dtype) => TorchDtype::from_name(dtype),
        _ => None,
    }
}

/// The bytes of an element of a storage of this class.
pub(super) fn of_class(module: &str, name: &str) -> Option<u32> {
    dtype_of_class(module, name).and_then(|dtype| u32::try_from(dtype.bytes()).ok())
}

/// The sizes of every storage that a pickle names, whether a tensor is of it or not.
pub(super) fn of(program: &Program<'_>) -> Sizes {
    let graph = &program.graph;
    let mut sizes = Sizes::new();
    for id in graph.persistent_ids() {
        if let Ok(PersistentId::Storage { dtype, key, numel, .. }) = persistent_id(graph, id) {
            let bytes = dtype.map_or(1, TorchDtype::bytes);
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            sizes.entry(key.into()).or_insert((numel, bytes));
        }
    }
    sizes
}
