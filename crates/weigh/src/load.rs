//! Plans carried out: into new memory, or into the caller's.

use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use weigh_format::Dtype;
use weigh_format::slice::{Index, reverse};
use weigh_inventory::select::Selection;
use weigh_io::arena::{self, Pages};
use weigh_io::policy::{Choice, Facts, ReadOptions};
use weigh_io::{Cancel, Progress, Reading, Report, Source};
use weigh_values::cast::Cast;

use crate::plan::{Casts, Planned};
use crate::{Array, Checkpoint, Error, Plan, Shard, Want};

/// How to load.
#[derive(Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct LoadOptions<'a> {
    /// What the policy is not to decide.
    pub read: ReadOptions,
    /// What may stop the load.
    pub cancel: Option<&'a Cancel>,
    /// Told how far the load is, from the threads that read, one at a time; may stop it.
    pub progress: Option<&'a (dyn Fn(Progress) -> ControlFlow<()> + Sync)>,
    /// Try even if the machine has less memory free than the load takes. The system may end the process.
    pub overcommit: bool,
}

/// Tensors in memory, in the order they were asked for.
#[derive(Debug)]
pub struct Loaded {
    arrays: Vec<(String, Array)>,
    places: OnceLock<HashMap<String, usize>>,
    report: LoadReport,
}

/// What a load did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadReport {
    /// What was known before.
    pub facts: Facts,
    /// What was picked, and why.
    pub choice: Choice,
    /// What pages its memory has; `None` where the memory is the caller's.
    pub pages: Option<Pages>,
    /// What was read.
    pub read: Report,
}

impl Checkpoint {
    /// Reads one tensor.
    ///
    /// ```no_run
    /// let checkpoint = weigh::Checkpoint::open("model")?;
    /// let norm = checkpoint.tensor("model.norm.weight")?;
    /// let values = norm.as_slice::<f32>();
    /// # let _ = values;
    /// # Ok::<(), weigh::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoTensor`], and those of [`Plan::load`].
    pub fn tensor(&self, name: &str) -> Result<Array, Error> {
        self.read_one(&Want::new(name))
    }

    /// Reads a slice of one tensor, by numpy's rules: a range or a place for each dimension, clamped,
    /// negative ones from the end, with steps. Reads what the slice takes, and small gaps.
    ///
    /// ```no_run
    /// use weigh::format::slice::Index;
    ///
    /// let checkpoint = weigh::Checkpoint::open("model")?;
    /// // Every second column of the last hundred rows.
    /// let columns = checkpoint.slice("wte.weight", [Index::from(-100..), Index::ALL.step(2)])?;
    /// println!("{:?}, {} bytes read", columns.shape(), columns.bytes_read());
    /// # Ok::<(), weigh::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoTensor`], [`Error::Slice`], and those of [`Plan::load`].
    pub fn slice(
        &self,
        name: &str,
        index: impl IntoIterator<Item = impl Into<Index>>,
    ) -> Result<Array, Error> {
        self.read_one(&Want::new(name).slice(index))
    }

    /// Reads every tensor that is selected, with the default [`LoadOptions`].
    ///
    /// # Errors
    ///
    /// Those of [`Plan::load`].
    pub fn load(&self, selection: &Selection) -> Result<Loaded, Error> {
        self.plan_selected(selection).load(&LoadOptions::default())
    }

    fn read_one(&self, want: &Want<'_>) -> Result<Array, Error> {
        let loaded = self.plan([want])?.load(&LoadOptions::default())?;
        let bytes_read = loaded.report.read.bytes_read;
        let array = loaded.arrays.into_iter().next();
        let missing = Error::NoTensor { name: want.name.into() };
        array.map(|(_, array)| Array { bytes_read, ..array }).ok_or(missing)
    }
}

impl Plan<'_> {
    /// Reads everything into one new allocation.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if a file cannot be read, or has changed since it was opened or while it was read:
    ///   there is no load of two versions;
    /// - [`Error::OutOfMemory`] if there is less memory than the load takes;
    /// - [`Error::Cancelled`].
    pub fn load(&self, options: &LoadOptions<'_>) -> Result<Loaded, Error> {
        let ready = Ready::new(self, options)?;
        // Memory in the order of the files: neighbours are filled by the same requests.
        let order = in_file_order(self.parts());
        let sizes: Vec<u64> = ready.parts(&order).map(|part| part.bytes).collect();
        check_memory(&sizes, &ready.facts, options)?;
        let (blocks, pages) = arena::allocate(&sizes, ready.choice.huge_pages)?;
        let mut numbered: Vec<(usize, arena::Block)> = order.into_iter().zip(blocks).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        let mut blocks: Vec<arena::Block> = numbered.into_iter().map(|(_, block)| block).collect();
        let read = ready.run(blocks.iter_mut().map(|block| &mut **block).collect())?;
        let arrays = self.parts().iter().zip(blocks).map(|(part, block)| {
            let (dtype, shape, bytes_read) = (part.dtype, part.shape.clone(), part.runs.bytes());
            (part.name.to_owned(), Array { dtype, shape, block, bytes_read })
        });
        let report = LoadReport { pages: Some(pages), ..ready.report(read) };
        Ok(Loaded { arrays: arrays.collect(), places: OnceLock::new(), report })
    }

    /// Where [`read_into`](Self::read_into) puts each part: one after another, each on a multiple of 64
    /// bytes from the start. The last end is the length of the buffer.
    #[must_use]
    pub fn places(&self) -> Vec<Range<u64>> {
        let mut end = 0_u64;
        let place = |part: &Planned<'_>| {
            let start = end.checked_next_multiple_of(64).unwrap_or(u64::MAX);
            end = start.saturating_add(part.bytes);
            start..end
        };
        self.parts().iter().map(place).collect()
    }

    /// Reads everything into memory of the caller's, at the [`places`](Self::places).
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] if the buffer is too small, and those of [`load`](Self::load). After an error the
    /// buffer's content is of no use.
    pub fn read_into(
        &self,
        buffer: &mut [u8],
        options: &LoadOptions<'_>,
    ) -> Result<LoadReport, Error> {
        let places = self.places();
        let wanted = places.last().map_or(0, |last| last.end);
        let small = Error::Buffer { wanted, got: u64::try_from(buffer.len()).unwrap_or(u64::MAX) };
        let (mut rest, mut at) = (buffer, 0);
        let mut destinations = Vec::with_capacity(places.len());
        for place in places {
            let lengths = [place.start - at, place.end - place.start];
            let [gap, len] = lengths.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
            let destination = rest.split_off_mut(..gap).and_then(|_| rest.split_off_mut(..len));
            let Some(destination) = destination else { return Err(small) };
            destinations.push(destination);
            at = place.end;
        }
        self.read_into_each(destinations, options)
    }

    /// Reads part number *i* into `destinations[i]`, each of the part's exact length.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] if their number or a length is another, and those of [`load`](Self::load).
    pub fn read_into_each(
        &self,
        destinations: Vec<&mut [u8]>,
        options: &LoadOptions<'_>,
    ) -> Result<LoadReport, Error> {
        let ready = Ready::new(self, options)?;
        let read = ready.run(destinations)?;
        Ok(ready.report(read))
    }
}

/// A plan that is ready to be carried out.
pub(crate) struct Ready<'p> {
    parts: &'p [Planned<'p>],
    sources: Vec<&'p dyn Source>,
    plan: weigh_io::Plan,
    casts: Vec<Option<Cast>>,
    facts: Facts,
    choice: Choice,
    options: LoadOptions<'p>,
}

impl<'p> Ready<'p> {
    pub(crate) fn new(plan: &'p Plan<'_>, options: &LoadOptions<'p>) -> Result<Self, Error> {
        let (facts, choice) = plan.choose(&options.read);
        let cut = plan.cut(&choice)?;
        let shards = plan.checkpoint().shards().iter();
        let sources = shards.map(Shard::source).collect();
        let casts = plan.parts().iter().map(|part| part.cast).collect();
        let options = *options;
        Ok(Self { parts: plan.parts(), sources, plan: cut, casts, facts, choice, options })
    }

    fn parts<'a>(&'a self, order: &'a [usize]) -> impl Iterator<Item = &'a Planned<'p>> {
        order.iter().filter_map(|number| self.parts.get(*number))
    }

    fn run(&self, mut destinations: Vec<&mut [u8]>) -> Result<Report, Error> {
        let reading = Reading {
            sources: &self.sources,
            plan: &self.plan,
            choice: &self.choice,
            hook: Some(&Casts(&self.casts)),
            cancel: self.options.cancel,
            progress: self.options.progress,
        };
        let again = destinations.iter_mut().map(|destination| &mut **destination).collect();
        let report = reading.run(again)?;
        for (part, destination) in self.parts.iter().zip(destinations) {
            finish(destination, part.dtype, &part.shape, &part.reversed, part.spare_bits);
        }
        Ok(report)
    }

    fn report(self, read: Report) -> LoadReport {
        LoadReport { facts: self.facts, choice: self.choice, pages: None, read }
    }
}

/// Does what is left to do when the bytes of a part are there, in the order of the file.
pub(crate) fn finish(
    bytes: &mut [u8],
    dtype: Dtype,
    shape: &[u64],
    reversed: &[usize],
    spare_bits: u32,
) {
    if let Some(last) = bytes.last_mut().filter(|_| spare_bits > 0) {
        *last &= 0xff_u8.checked_shr(spare_bits).unwrap_or(0);
    }
    if !reversed.is_empty() {
        let reversed = reverse(bytes, shape, reversed, dtype);
        debug_assert!(reversed.is_ok(), "{reversed:?}: the slice was made of this shape");
    }
}

/// The numbers of the parts, by file and offset.
pub(crate) fn in_file_order(parts: &[Planned<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|number| parts.get(*number).map(|part| (part.file, part.runs.cover().start)));
    order
}

fn check_memory(sizes: &[u64], facts: &Facts, options: &LoadOptions<'_>) -> Result<(), Error> {
    let wanted = arena::allocation_bytes(sizes).unwrap_or(u64::MAX);
    match facts.memory {
        Some(memory) if wanted > memory.available && !options.overcommit => {
            Err(Error::NotEnoughMemory { wanted, available: memory.available })
        }
        _ => Ok(()),
    }
}

impl Loaded {
    /// The tensor of this name; the first of several slices of it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Array> {
        let places = self.places.get_or_init(|| {
            let names = self.arrays.iter().enumerate().rev();
            names.map(|(place, (name, _))| (name.clone(), place)).collect()
        });
        self.arrays.get(*places.get(name)?).map(|(_, array)| array)
    }

    /// Takes the tensor of this name out, in time that grows with their number; the first of several slices.
    pub fn take(&mut self, name: &str) -> Option<Array> {
        let place = self.arrays.iter().position(|(own, _)| own == name)?;
        self.places = OnceLock::new();
        Some(self.arrays.remove(place).1)
    }

    /// Names and tensors, in the order they were asked for.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Array)> {
        self.arrays.iter().map(|(name, array)| (name.as_str(), array))
    }

    /// Number of tensors and slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arrays.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// Bytes that were read, gaps included.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.report.read.bytes_read
    }

    /// What the load did.
    #[must_use]
    pub fn report(&self) -> &LoadReport {
        &self.report
    }
}

impl IntoIterator for Loaded {
    type Item = (String, Array);
    type IntoIter = std::vec::IntoIter<(String, Array)>;

    fn into_iter(self) -> Self::IntoIter {
        self.arrays.into_iter()
    }
}

impl fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LoadOptions");
        shown.field("read", &self.read).field("overcommit", &self.overcommit);
        shown.finish_non_exhaustive()
    }
}
