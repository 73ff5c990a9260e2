//! Reading the headers of files, several at a time, while others may be editing them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weigh_format::header::PREFIX_BYTES;
use weigh_format::{HashKey, inspect};
use weigh_io::{Change, Error as IoError, ErrorKind, FileSource, Source};

use super::{Keep, Options, Read, State, SurveyedShard, display};
use crate::find::Layout;

/// How many headers are read at a time.
const READERS: usize = 8;

/// How shards are read.
pub(super) struct Reading<'o> {
    pub(super) layout: Layout,
    pub(super) options: &'o Options,
    pub(super) key: HashKey,
    pub(super) keep: Keep,
}

pub(super) fn read_shards(files: &[PathBuf], reading: &Reading<'_>) -> Vec<SurveyedShard> {
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(place) else { return done };
            done.push((place, reading.shard(file)));
        }
    };
    let mut shards = std::thread::scope(|scope| {
        // Where the system gives no thread, those there are do it all.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, read_some).ok();
        let helpers: Vec<_> = (1..READERS.min(files.len())).map_while(spawn).collect();
        let mut shards = read_some();
        for helper in helpers {
            match helper.join() {
                Ok(done) => shards.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        shards
    });
    shards.sort_by_key(|(place, _)| *place);
    shards.into_iter().map(|(_, shard)| shard).collect()
}

impl Reading<'_> {
    fn shard(&self, path: &Path) -> SurveyedShard {
        let is_named = self.layout == Layout::Indexed;
        let state = match self.inspect(path) {
            Ok(read) => State::Read(Box::new(read)),
            Err(error) if is_named && matches!(error.kind(), ErrorKind::Missing) => State::Missing,
            Err(error) => State::Failed(error),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        SurveyedShard { name, path: path.into(), state }
    }

    /// Reads a header; again, if the file was written to meanwhile.
    fn inspect(&self, path: &Path) -> Result<Read, IoError> {
        let (mut pauses, mut bytes) = (PAUSES.into_iter(), 0);
        loop {
            let (mut read, meanwhile) = self.inspect_once(path)?;
            bytes += read.bytes;
            match (meanwhile, pauses.next()) {
                // Who writes on and on is writing tensors.
                (Meanwhile::Nothing, _) | (Meanwhile::Written, None) => {
                    read.bytes = bytes;
                    return Ok(read);
                }
                (Meanwhile::Edited, None) => {
                    return Err(IoError::new(path, ErrorKind::Changed(Change::Written)));
                }
                (_, Some(pause)) => std::thread::sleep(pause),
            }
        }
    }

    fn inspect_once(&self, path: &Path) -> Result<(Read, Meanwhile), IoError> {
        let source = FileSource::open(path)?;
        let mut first = None;
        let read = |span: Range<u64>| {
            let read = source.read_span(span)?;
            first.get_or_insert_with(|| read.clone());
            Ok(read)
        };
        let (len, limits) = (source.len(), &self.options.limits);
        let mut inspection = inspect::inspect(len, read, limits, self.key)?;
        inspection.findings_mut().in_file(&display(path));
        // In an edit in place it is the first to change, and the last to be as it was.
        let again = source.read_span(0..PREFIX_BYTES.min(len))?;
        let meanwhile = match first {
            Some(first) if first != again => Meanwhile::Edited,
            _ if was_written(&source) => Meanwhile::Written,
            _ => Meanwhile::Nothing,
        };
        let bytes = source.bytes_read();
        let source = (self.keep == Keep::Open).then_some(source);
        Ok((Read { source, inspection, bytes }, meanwhile))
    }
}

/// What is waited before a header is read again that was read while something wrote to its file.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
];

/// What happened to a file while its header was read, as far as that can be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Meanwhile {
    Nothing,
    /// Something wrote to it, here or there.
    Written,
    /// Its length field is another: the header is of no use.
    Edited,
}

/// Whether a file was written to after it was opened. One that was replaced or removed is still whole.
fn was_written(source: &FileSource) -> bool {
    let error = source.verify().err();
    error.is_some_and(|error| match error.kind() {
        ErrorKind::Changed(change) => *change != Change::Replaced,
        _ => false,
    })
}
