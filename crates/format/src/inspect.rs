//! The structure check of one file, over anything that can hand out ranges of bytes.

use alloc::vec::Vec;
use core::ops::Range;

use crate::header::{self, Inspection, PREFIX_BYTES};
use crate::kind;
use crate::{HashKey, Limits};

/// Bytes at the start of a file that [`kind`](mod@kind) looks at, when it is not safetensors.
pub const HEAD_BYTES: u64 = 4096;

/// Locates, reads and checks the header of a file of `file_len` bytes.
///
/// `read` is asked for the 8 bytes of the length field and then for the header, and for nothing else
/// of a safetensors file. Where that is refused for not being one at all, the first [`HEAD_BYTES`] bytes
/// say what it is, and the finding `not-safetensors` takes the refusal's place (FORMAT.md §7). The file may be edited
/// in place meanwhile: what the length field was when it was read decides.
///
/// # Errors
///
/// Those of `read`.
///
/// ```
/// use weigh_format::{HashKey, Limits, Verdict, inspect::inspect};
///
/// let file = b"\x02\0\0\0\0\0\0\0{}";
/// let read = |span: std::ops::Range<u64>| {
///     Ok::<_, std::convert::Infallible>(file[span.start as usize..span.end as usize].to_vec())
/// };
/// let inspection = inspect(file.len() as u64, read, &Limits::default(), HashKey::new(1, 2))?;
/// assert_eq!(inspection.findings().verdict(), Verdict::Valid);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
pub fn inspect<E>(
    file_len: u64,
    mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, E>,
    limits: &Limits,
    key: HashKey,
) -> Result<Inspection, E> {
    let prefix = read(0..PREFIX_BYTES.min(file_len))?;
    let mut inspection = match header::locate(&prefix, file_len, limits) {
        Ok(span) => header::inspect(read(span)?, file_len, limits, key),
        Err(finding) => Inspection::refused(finding, file_len, key),
    };
    let refusal = inspection.findings().list().iter().find(|finding| kind::may_explain(finding));
    if let Some(refusal) = refusal {
        let mut head = read(0..HEAD_BYTES.min(file_len))?;
        // An edit in place may have ended since the mark was read: that it was there is what refused the file.
        if let (true, Some(first)) = (prefix == kind::INTERRUPTED, head.get_mut(..prefix.len())) {
            first.copy_from_slice(&prefix);
        }
        if let Some(finding) = kind::explain(refusal, &head, file_len) {
            inspection.findings_mut().replace(kind::may_explain, finding);
        }
    }
    Ok(inspection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{INTERRUPTED, INTERRUPTED_EDIT};
    use core::convert::Infallible;

    #[test]
    fn a_file_that_was_being_edited_when_it_was_begun_is_called_that() {
        let file = b"\x04\0\0\0\0\0\0\0{  }";
        let marked = [&INTERRUPTED[..], &file[8..]].concat();
        // By the time of the second read the edit has ended, or has not.
        for second in [&file[..], &marked] {
            let mut reads = [&marked[..], second].into_iter();
            let read = |span: Range<u64>| {
                let bytes = reads.next().unwrap();
                Ok::<_, Infallible>(
                    bytes.get(..usize::try_from(span.end).unwrap()).unwrap().to_vec(),
                )
            };
            let Ok(inspection) = inspect(12, read, &Limits::default(), HashKey::new(1, 2));
            let kinds = inspection.findings().list().iter().map(kind::explained);
            assert_eq!(kinds.collect::<Vec<_>>(), [Some(INTERRUPTED_EDIT)], "{second:?}");
        }
    }
}
