//! Containers: what is found in honest files, and in each kind of odd one.
#![expect(clippy::cast_possible_truncation, reason = "the archives of these tests are small")]

mod hostile;
mod kinds;
mod writer;
mod zip;

use weigh_pickle::{Spans, Stop};

/// Runs a function of spans on a file, reading what it asks for; gives the result, the rounds and the bytes read.
pub(crate) fn rounds<T>(
    file: &[u8],
    mut call: impl FnMut(&Spans) -> Result<T, Stop>,
) -> (Result<T, weigh_pickle::Error>, usize, usize) {
    let mut spans = Spans::new(file.len() as u64);
    let (mut rounds, mut read) = (0, 0);
    loop {
        match call(&spans) {
            Ok(value) => return (Ok(value), rounds, read),
            Err(Stop::Fault(error)) => return (Err(error), rounds, read),
            Err(Stop::Missing(missing)) => {
                rounds += 1;
                assert!(rounds < 100_000 && !missing.is_empty(), "no end of rounds");
                for span in missing {
                    assert!(span.start < span.end && span.end <= file.len() as u64, "{span:?}");
                    let bytes = &file[span.start as usize..span.end as usize];
                    read += bytes.len();
                    spans.insert(span.start, bytes.to_vec());
                }
            }
        }
    }
}
