//! What the policy goes by, and how it is found out.

use std::collections::HashSet;
use std::ops::Range;

use crate::system::{FileSystem, Memory, Uring, cores, file_system, memory, uring};
use crate::{FileSource, pagecache};

/// What the policy goes by.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// What the files are on; of several, the one that needs the most care.
    pub file_system: FileSystem,
    /// How many files there are.
    pub files: usize,
    /// Bytes that are wanted of them.
    pub wanted: u64,
    /// About how many of these are in the page cache; `None` where the system does not tell.
    pub cached: Option<u64>,
    /// Memory that can be had, if known.
    pub memory: Option<Memory>,
    /// Processors that may be used.
    pub cores: usize,
    /// Whether `io_uring` can be had.
    pub uring: Uring,
    /// Whether slices with gaps between them are wanted rather than whole tensors.
    pub scattered: bool,
}

impl Facts {
    /// Finds out what there is to know of a load.
    ///
    /// `wanted` are its spans, each with the place of its file in `sources`; those of no file count for nothing.
    /// The page cache is asked about at most 64 MiB of them, spread evenly, so that this takes some
    /// milliseconds whatever the size. Nothing is read.
    #[must_use]
    pub fn gather<I>(sources: &[&FileSource], wanted: I, scattered: bool) -> Self
    where
        I: IntoIterator<Item = (usize, Range<u64>)>,
        I::IntoIter: Clone,
    {
        let spans = wanted.into_iter().filter_map(|(file, span)| Some((*sources.get(file)?, span)));
        let wanted = spans.clone().map(|(_, span)| length(&span)).fold(0, u64::saturating_add);
        Self {
            file_system: most_careful(sources),
            files: sources.len(),
            wanted,
            cached: cached(spans, wanted),
            memory: memory(),
            cores: cores(),
            uring: uring(),
            scattered,
        }
    }

    /// What is assumed of a load that is sooner done than looked into: nothing is asked.
    #[must_use]
    pub const fn unknown(files: usize, wanted: u64, scattered: bool) -> Self {
        let (file_system, cached, memory) = (FileSystem::UNKNOWN, None, None);
        Self {
            file_system,
            files,
            wanted,
            cached,
            memory,
            cores: 1,
            uring: Uring::Absent,
            scattered,
        }
    }
}

fn length(span: &Range<u64>) -> u64 {
    span.end.saturating_sub(span.start)
}

/// The file system that needs the most care; each is asked once, as that may go to another machine.
fn most_careful(sources: &[&FileSource]) -> FileSystem {
    let mut devices = HashSet::new();
    let distinct = sources.iter().filter(|source| match device(source) {
        Some(device) => devices.insert(device),
        None => true,
    });
    let all = distinct.map(|source| file_system(source));
    all.max_by_key(|file_system| file_system.kind).unwrap_or(FileSystem::UNKNOWN)
}

#[cfg(target_os = "linux")]
fn device(source: &FileSource) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    source.file().metadata().ok().map(|metadata| metadata.dev())
}

#[cfg(not(target_os = "linux"))]
fn device(_source: &FileSource) -> Option<u64> {
    None
}

/// Places that the page cache is asked about.
const SAMPLES: u64 = 256;

/// Bytes that it is asked about at each: 3 to 15 µs if they are cached.
const WINDOW: u64 = 256 << 10;

/// About how many bytes of the spans are in the page cache, of `wanted` together.
fn cached<'s>(
    spans: impl Iterator<Item = (&'s FileSource, Range<u64>)>,
    wanted: u64,
) -> Option<u64> {
    let stride = wanted.div_ceil(SAMPLES).max(WINDOW);
    let mut samples = (0..SAMPLES).map(|sample| place(sample, stride));
    let mut sample = samples.next();
    let (mut looked_at, mut found, mut before) = (0_u64, 0_u64, 0_u64);
    for (source, span) in spans {
        let after = before.saturating_add(length(&span));
        while let Some(place) = sample.filter(|place| *place < after) {
            let start = span.start.saturating_add(place.saturating_sub(before));
            let end = span.end.min(start.saturating_add(WINDOW));
            let residency = pagecache::residency(source, start..end).ok()??;
            looked_at = looked_at.saturating_add(residency.total);
            found = found.saturating_add(residency.cached);
            sample = samples.next();
        }
        before = after;
    }
    let estimate = u128::from(found) * u128::from(wanted) / u128::from(looked_at.max(1));
    Some(u64::try_from(estimate).unwrap_or(wanted).min(wanted))
}

/// Where a sample begins: somewhere in its stride, each at another place in it.
///
/// Files of one length have their headers, which were just read, at one distance from each other: samples that
/// keep step with them would find only those.
fn place(sample: u64, stride: u64) -> u64 {
    // The fraction of the golden ratio: its multiples spread evenly over the unit interval.
    const GOLDEN: u32 = 0x9E37_79B9;
    let fraction = GOLDEN.wrapping_mul(u32::try_from(sample).unwrap_or(0));
    let within = (u128::from(stride.saturating_sub(WINDOW)) * u128::from(fraction)) >> u32::BITS;
    let within = u64::try_from(within).unwrap_or(0);
    sample.saturating_mul(stride).saturating_add(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::FileSystemKind;

    #[test]
    fn samples_cover_a_small_load_and_spread_over_a_large_one() {
        for sample in 0..SAMPLES {
            assert_eq!(place(sample, WINDOW), sample * WINDOW);
        }
        let stride = 5 << 30;
        let mut offsets: Vec<u64> = (0..SAMPLES).map(|sample| place(sample, stride)).collect();
        assert!(offsets.is_sorted());
        assert!(offsets.iter().zip(0..).all(|(it, sample)| it / stride == sample));
        for offset in &mut offsets {
            *offset %= stride;
        }
        offsets.sort_unstable();
        let apart = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(apart < stride / 90, "{apart}");
        assert!(place(SAMPLES - 1, u64::MAX) > place(0, u64::MAX), "nothing overflows");
    }

    #[test]
    fn a_load_is_counted_and_what_is_no_file_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 3 << 20]).unwrap();
        let [one, two] = [(), ()].map(|()| FileSource::open(&path).unwrap());
        let spans = [(0, 0..1 << 20), (1, 5..(2 << 20) + 5), (2, 0..99), (1, 7..7)];
        let facts = Facts::gather(&[&one, &two], spans, true);
        assert_eq!((facts.files, facts.wanted, facts.scattered), (2, 3 << 20, true));
        assert!(facts.cores >= 1);
        // It was just written.
        assert!(facts.cached.is_none_or(|cached| cached == facts.wanted), "{facts:?}");
        assert_eq!(one.bytes_read() + two.bytes_read(), 0);
    }

    #[test]
    fn hostile_spans_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"0123456789").unwrap();
        let source = FileSource::open(&path).unwrap();
        let spans =
            [(0, 0..u64::MAX), (0, 1..u64::MAX), (0, u64::MAX..u64::MAX), (usize::MAX, 0..5)];
        let facts = Facts::gather(&[&source], spans, false);
        assert_eq!(facts.wanted, u64::MAX);
        let facts = Facts::gather(&[], [], false);
        assert_eq!((facts.wanted, facts.file_system.kind), (0, FileSystemKind::Unknown));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn of_several_file_systems_the_one_that_needs_care_counts() {
        let (Ok(memory), disk) =
            (tempfile::NamedTempFile::new_in("/dev/shm"), tempfile::NamedTempFile::new().unwrap())
        else {
            return;
        };
        let [memory, disk] = [memory.path(), disk.path()].map(|it| FileSource::open(it).unwrap());
        let both = Facts::gather(&[&memory, &disk, &memory], [], false);
        let want = file_system(&memory).kind.max(file_system(&disk).kind);
        assert_eq!(both.file_system.kind, want);
    }
}
