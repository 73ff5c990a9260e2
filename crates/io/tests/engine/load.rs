//! Loads, what they should give by a naive reading, and how they are asked for.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use weigh_io::policy::{Backend, Choice, Direct};
use weigh_io::{Cut, Hook, Part, Plan, ReadError, Reading, Repeat, Report, Runs, Source, Unit};

/// The one place where a choice is made of its fields.
pub(crate) fn choice(backend: Backend, direct: Direct, threads: usize, depth: usize) -> Choice {
    let mut choice = Choice::plain(4 << 20);
    choice.backend = backend;
    choice.direct = direct;
    choice.threads = threads;
    choice.depth = depth;
    choice.gap_bytes = 0;
    choice
}

/// Every way to read a file, with a few threads.
pub(crate) fn ways(threads: usize) -> Vec<Choice> {
    let ways = [
        (Backend::Pread, Direct::Never),
        (Backend::Pread, Direct::Always),
        (Backend::Uring, Direct::Never),
        (Backend::Uring, Direct::Always),
        (Backend::Mmap, Direct::Never),
    ];
    ways.map(|(backend, direct)| choice(backend, direct, threads, 2)).into()
}

/// So many bytes, no two stretches of which are alike.
pub(crate) fn content(len: usize) -> Arc<[u8]> {
    let mix = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
    (0..len).map(mix).collect()
}

/// What a load reads, and the offsets of its bytes, part by part.
pub(crate) struct Wanted {
    pub(crate) parts: Vec<Part>,
    offsets: Vec<Vec<u64>>,
}

impl Wanted {
    pub(crate) fn nothing() -> Self {
        Self { parts: Vec::new(), offsets: Vec::new() }
    }

    pub(crate) fn span(self, span: Range<u64>) -> Self {
        self.part(0, span.start, span.end - span.start, &[], Unit::SAME)
    }

    /// Adds runs of `run` bytes from `first`, repeated by (count, stride), outermost first.
    pub(crate) fn part(
        mut self,
        file: usize,
        first: u64,
        run: u64,
        levels: &[(u64, u64)],
        unit: Unit,
    ) -> Self {
        let repeats: Vec<_> =
            levels.iter().map(|&(count, stride)| Repeat { count, stride }).collect();
        let runs = Runs::strided(first, run, &repeats).unwrap();
        let mut starts = vec![first];
        for &(count, stride) in levels {
            let again = |start: u64| (0..count).map(move |number| start + number * stride);
            starts = starts.into_iter().flat_map(again).collect();
        }
        let offsets: Vec<u64> = starts.into_iter().flat_map(|start| start..start + run).collect();
        assert_eq!(runs.bytes(), offsets.len() as u64);
        self.parts.push(Part { file, runs, unit });
        self.offsets.push(offsets);
        self
    }

    /// Offsets that are wanted of one file, each once, in order.
    pub(crate) fn offsets(&self, file: usize) -> Vec<u64> {
        let parts = self.parts.iter().zip(&self.offsets).filter(|(part, _)| part.file == file);
        let mut offsets: Vec<u64> =
            parts.flat_map(|(_, offsets)| offsets.iter().copied()).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// What should arrive, if this is in the files.
    pub(crate) fn from(&self, files: &[&[u8]]) -> Vec<Vec<u8>> {
        let parts = self.parts.iter().zip(&self.offsets);
        let arrives = parts.map(|(part, offsets)| {
            let byte = |at: &u64| files[part.file][usize::try_from(*at).unwrap()];
            let bytes: Vec<u8> = offsets.iter().map(byte).collect();
            if part.unit == Unit::SAME {
                return bytes;
            }
            let units = bytes.chunks_exact(part.unit.from as usize).zip(0_u64..);
            let from = u64::from(part.unit.from);
            units.flat_map(|(unit, number)| converted(unit, number * from, part.unit)).collect()
        });
        arrives.collect()
    }

    pub(crate) fn plan(&self, cut: &Cut) -> Plan {
        Plan::new(self.parts.clone(), cut).unwrap()
    }
}

/// What one unit becomes: something that shows which it was, and where in its part.
fn converted(unit: &[u8], at: u64, shape: Unit) -> impl Iterator<Item = u8> {
    let place = at.to_le_bytes()[0] ^ at.to_le_bytes()[1];
    (0..shape.to as usize).map(move |byte| {
        let value = unit[byte % unit.len()];
        value.wrapping_add(byte.to_le_bytes()[0]).wrapping_mul(5) ^ place
    })
}

/// Converts, and remembers what it was given.
#[derive(Default)]
pub(crate) struct Mix {
    units: Vec<Unit>,
    /// Part, place in the part, bytes.
    pub(crate) calls: Mutex<Vec<(usize, u64, usize)>>,
}

impl Mix {
    pub(crate) fn of(parts: &[Part]) -> Self {
        Self { units: parts.iter().map(|part| part.unit).collect(), calls: Mutex::default() }
    }
}

impl Hook for Mix {
    fn convert(&self, part: usize, at: u64, from: &[u8], to: &mut [u8]) {
        let unit = self.units[part];
        assert_ne!(unit, Unit::SAME);
        let (read, becomes) = (unit.from as usize, unit.to as usize);
        assert_eq!((from.len() % read, from.len() / read), (0, to.len() / becomes));
        for ((from, to), number) in from.chunks(read).zip(to.chunks_mut(becomes)).zip(0_u64..) {
            let at = at + number * u64::from(unit.from);
            to.iter_mut().zip(converted(from, at, unit)).for_each(|(to, byte)| *to = byte);
        }
        self.calls.lock().unwrap().push((part, at, from.len()));
    }
}

/// A loaded plan: how it went, and what is in its memory.
pub(crate) struct Loaded {
    pub(crate) result: Result<Report, ReadError>,
    pub(crate) parts: Vec<Vec<u8>>,
}

impl Loaded {
    /// The bytes, of a load that succeeded.
    pub(crate) fn unwrap(self) -> Vec<Vec<u8>> {
        self.result.unwrap();
        self.parts
    }

    /// The code, of a load that failed.
    pub(crate) fn code(&self) -> &'static str {
        self.result.as_ref().map_or_else(ReadError::code, |_| "fine")
    }
}

/// Memory for each part of a plan, full of something else.
pub(crate) fn destinations(plan: &Plan) -> Vec<Vec<u8>> {
    let bytes = |part: &Part| part.unit.apply(part.runs.bytes()).unwrap();
    plan.parts().iter().map(|part| vec![0xa5; usize::try_from(bytes(part)).unwrap()]).collect()
}

/// Loads a plan from some sources.
pub(crate) fn load(sources: &[&dyn Source], plan: &Plan, choice: &Choice) -> Loaded {
    let hook = Mix::of(plan.parts());
    let hook = Some(&hook as &dyn Hook);
    load_with(&Reading { sources, plan, choice, hook, cancel: None, progress: None })
}

/// Carries out what is about to be done.
pub(crate) fn load_with(reading: &Reading<'_>) -> Loaded {
    let mut parts = destinations(reading.plan);
    let result = reading.run(parts.iter_mut().map(Vec::as_mut_slice).collect());
    Loaded { result, parts }
}
