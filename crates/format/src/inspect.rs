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
/// say what it is, and the finding `not-safetensors` takes the refusal's place (FORMAT.md §7).
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
        let head = read(0..HEAD_BYTES.min(file_len))?;
        if let Some(finding) = kind::explain(refusal, &head, file_len) {
            inspection.findings_mut().replace(kind::may_explain, finding);
        }
    }
    Ok(inspection)
}
