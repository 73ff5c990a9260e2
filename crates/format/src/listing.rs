//! Tensors of a file of another format, listed as those of a header are.
//!
//! What looks at checkpoints then looks at these as well. A list is not a header: no policy accepts it, as nothing says
//! that these bytes are where the format would have them.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::header::Inspection;
use crate::lookup::Lookup;
use crate::table::{Entry, Flags, Table, position};
use crate::{Dtype, Findings, HashKey};

/// A tensor that is to be listed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a declaration, built by literal")]
pub struct Listed<'a> {
    /// The name, not escaped.
    pub name: &'a str,
    /// The element type, if the format has it.
    pub dtype: Option<Dtype>,
    /// The dimensions, if they are known.
    pub shape: Option<&'a [u64]>,
    /// Where its first byte is in the file, and from there as many bytes as it has.
    pub bytes: Option<Range<u64>>,
}

/// Lists tensors of a file of `file_len` bytes. Its data section is all of it, so that offsets are those of the file.
pub(crate) fn inspection<'a>(
    tensors: impl IntoIterator<Item = Listed<'a>>,
    file_len: u64,
    key: HashKey,
) -> Inspection {
    let mut table = Table {
        text: String::new(),
        unescaped: String::new(),
        entries: Vec::new(),
        dimensions: Vec::new(),
        metadata: Vec::new(),
        has_metadata: false,
        lookup: Lookup::with_room(key, 0),
        key,
        by_offset: None,
        data_start: 0,
        file_len,
    };
    for tensor in tensors {
        let name = position(table.text.len());
        let Range { start, end } = tensor.bytes.clone().unwrap_or_default();
        let shape = tensor.shape.unwrap_or_default();
        let entry = Entry {
            begin: start,
            end,
            key: name,
            name,
            name_len: position(tensor.name.len()),
            shape: position(table.dimensions.len()),
            rank: position(shape.len()),
            dtype: tensor.dtype,
            flags: Flags::default()
                .with(Flags::SHAPE, tensor.shape.is_some())
                .with(Flags::OFFSETS, tensor.bytes.is_some() && start <= end)
                .with(Flags::ELSEWHERE, true),
        };
        let number = position(table.entries.len());
        table.text.push_str(tensor.name);
        table.dimensions.extend_from_slice(shape);
        let hash = table.lookup.hasher().hash(tensor.name.as_bytes());
        table.entries.push(entry);
        let Table { lookup, entries, text, .. } = &mut table;
        lookup.insert(hash, number, |other| {
            let other = usize::try_from(other).ok().and_then(|other| entries.get(other));
            other.is_some_and(|other| crate::table::name(text, "", other) == tensor.name)
        });
    }
    Inspection::of_list(table, Findings::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    #[test]
    fn what_is_listed_is_there_and_no_policy_accepts_it() {
        let tensors = [
            Listed {
                name: "a.b",
                dtype: Some(Dtype::F32),
                shape: Some(&[2, 3]),
                bytes: Some(100..124),
            },
            Listed { name: "", dtype: None, shape: Some(&[]), bytes: Some(8..1000) },
            Listed { name: "鍵", dtype: None, shape: None, bytes: None },
        ];
        let inspection = Inspection::listing(tensors.clone(), 200, HashKey::new(1, 2));
        for (entry, tensor) in inspection.entries().zip(&tensors) {
            assert_eq!(
                (entry.name, entry.dtype, entry.shape),
                (tensor.name, tensor.dtype, tensor.shape)
            );
            assert_eq!(
                (entry.data_offsets.clone(), entry.is_present),
                (tensor.bytes.clone(), tensor.bytes.is_some())
            );
            assert_eq!(inspection.get(tensor.name), Some(entry));
        }
        assert_eq!((inspection.len(), inspection.file_len(), inspection.data_start()), (3, 200, 0));
        assert!(inspection.accept(Policy::Compatible).is_err());
    }
}
