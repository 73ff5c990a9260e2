//! What a load will read: tensors and slices, resolved.

use std::fmt;

use weigh_format::slice::Slice;
use weigh_format::{Dtype, order};
use weigh_inventory::Item;
use weigh_inventory::select::Selection;
use weigh_io::policy::{self, Choice, Facts, ReadOptions};
use weigh_io::{Hook, Part, PlanError, Repeat, Runs, Unit};
use weigh_values::cast::{Cast, CastError};

use crate::{Checkpoint, Error, Tensor, Want};

/// Tensors and slices of one checkpoint, in the order they were asked for.
///
/// A plan is made from the headers: it reads nothing. It knows how many bytes each part has and will read,
/// and can be carried out in several ways: [`load`](Self::load), [`read_into`](Self::read_into),
/// [`stream`](Self::stream).
#[derive(Clone)]
pub struct Plan<'c> {
    checkpoint: &'c Checkpoint,
    parts: Vec<Planned<'c>>,
}

/// One tensor or slice of a plan.
#[derive(Clone, Debug)]
pub struct Planned<'c> {
    pub(crate) name: &'c str,
    /// The number of the shard.
    pub(crate) file: usize,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) runs: Runs,
    pub(crate) cast: Option<Cast>,
    /// Axes that come in the order of the file and have to be turned around.
    pub(crate) reversed: Vec<usize>,
    /// High bits of the last byte that belong to what comes next in the file.
    pub(crate) spare_bits: u32,
    pub(crate) bytes: u64,
}

impl<'c> Planned<'c> {
    fn whole(tensor: &Tensor<'c>, file: usize) -> Self {
        Self {
            name: tensor.name,
            file,
            dtype: tensor.dtype,
            shape: tensor.shape.to_vec(),
            bytes: tensor.span.end - tensor.span.start,
            runs: Runs::span(tensor.span.clone()),
            cast: None,
            reversed: Vec::new(),
            spare_bits: 0,
        }
    }

    fn sliced(tensor: &Tensor<'c>, file: usize, want: &Want<'_>) -> Result<Self, Error> {
        let failed = |error| Error::Slice { name: tensor.name.into(), error };
        let slice = Slice::new(tensor.dtype, tensor.shape, &want.index).map_err(failed)?;
        let (start, runs) = (tensor.span.start, slice.runs());
        let repeat =
            |it: &weigh_format::slice::Repeat| Repeat { count: it.count, stride: it.stride };
        let levels: Vec<Repeat> = runs.dims.iter().map(repeat).collect();
        let first = start.saturating_add(runs.first);
        let inside = Runs::strided(first, runs.run, &levels)
            .filter(|runs| runs.bytes() == 0 || runs.cover().end <= tensor.span.end);
        // What `Slice` promises, and what a header's own checks promise of the tensor's span.
        let runs = inside.ok_or(failed(weigh_format::slice::SliceError::TooLarge))?;
        Ok(Self {
            name: tensor.name,
            file,
            dtype: tensor.dtype,
            shape: slice.shape().to_vec(),
            bytes: runs.bytes(),
            runs,
            cast: None,
            reversed: slice.reversed().to_vec(),
            spare_bits: slice.spare_bits(),
        })
    }

    fn cast(&mut self, to: Dtype) -> Result<(), Error> {
        let failed = |error| Error::Cast { name: self.name.into(), error };
        let cast = Cast::between_floats(self.dtype, to).map_err(failed)?;
        if self.spare_bits > 0 {
            return Err(Error::CastInsideByte { name: self.name.into() });
        }
        if self.dtype == to {
            return Ok(());
        }
        self.cast = Some(cast);
        self.dtype = to;
        self.bytes = self.unit().apply(self.runs.bytes()).unwrap_or(u64::MAX);
        Ok(())
    }

    pub(crate) fn unit(&self) -> Unit {
        self.cast.map_or(Unit::SAME, |cast| {
            let bytes = |bytes: usize| u32::try_from(bytes).unwrap_or(1);
            let unit = cast.unit();
            Unit { from: bytes(unit.from_bytes), to: bytes(unit.to_bytes) }
        })
    }

    /// The name of the tensor, unescaped.
    #[must_use]
    pub fn name(&self) -> &'c str {
        self.name
    }

    /// The dtype that it will have in memory.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The shape that it will have; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes that it will have in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the file that it consists of; reading may cost more, where there are gaps.
    #[must_use]
    pub fn bytes_in_file(&self) -> u64 {
        self.runs.bytes()
    }

    /// Which of the checkpoint's [shards](Checkpoint::shards) it is in.
    #[must_use]
    pub fn shard(&self) -> usize {
        self.file
    }
}

impl Checkpoint {
    /// Plans the reading of some tensors and slices.
    ///
    /// # Errors
    ///
    /// [`Error::NoTensor`], [`Error::Slice`], [`Error::Cast`]: the first fault.
    pub fn plan<'w>(
        &self,
        wants: impl IntoIterator<Item = &'w Want<'w>>,
    ) -> Result<Plan<'_>, Error> {
        let parts = wants.into_iter().map(|want| {
            let missing = || Error::NoTensor { name: want.name.into() };
            let (file, tensor) = self.find(want.name).ok_or_else(missing)?;
            let mut part = if want.index.is_empty() {
                Planned::whole(&tensor, file)
            } else {
                Planned::sliced(&tensor, file, want)?
            };
            want.cast.map_or(Ok(()), |to| part.cast(to))?;
            Ok(part)
        });
        Ok(Plan { checkpoint: self, parts: parts.collect::<Result<_, Error>>()? })
    }

    /// Plans the reading of every tensor that is selected, whole, in natural order of the names.
    #[must_use]
    pub fn plan_selected(&self, selection: &Selection) -> Plan<'_> {
        let shards = self.shards().iter().enumerate();
        let tensors = shards.flat_map(|(file, shard)| shard.tensors().map(move |it| (file, it)));
        let is_meant = |tensor: &Tensor<'_>| {
            let (dtype, shape) = (Some(tensor.dtype), Some(tensor.shape));
            let bytes = tensor.span.end - tensor.span.start;
            selection.is_all()
                || selection.matches(&Item { name: tensor.name, dtype, shape, bytes })
        };
        let meant = tensors.filter(|(_, tensor)| is_meant(tensor));
        let mut parts: Vec<Option<Planned<'_>>> =
            meant.map(|(file, tensor)| Some(Planned::whole(&tensor, file))).collect();
        let names: Vec<&str> = parts.iter().flatten().map(|part| part.name).collect();
        let order = order::natural(&names, self.key()).into_iter();
        let place = |number| parts.get_mut(usize::try_from(number).ok()?)?.take();
        Plan { checkpoint: self, parts: order.filter_map(place).collect() }
    }
}

impl<'c> Plan<'c> {
    /// Converts every float of the plan to F64, F32, F16 or BF16 while it is read. Other dtypes stay, and so does
    /// what its [`Want`] has converted already.
    ///
    /// # Errors
    ///
    /// [`Error::Cast`] if `to` is none of these, or [`Error::CastInsideByte`].
    pub fn cast_floats(mut self, to: Dtype) -> Result<Self, Error> {
        for part in &mut self.parts {
            let cast = Cast::between_floats(part.dtype, to);
            let is_float = !matches!(cast, Err(CastError::NotFloat { .. }));
            if part.cast.is_none() && is_float {
                part.cast(to)?;
            }
        }
        Ok(self)
    }

    /// What is read, in the order it was asked for.
    #[must_use]
    pub fn parts(&self) -> &[Planned<'c>] {
        &self.parts
    }

    /// Bytes that all parts will have in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of the files that all parts consist of.
    #[must_use]
    pub fn bytes_in_files(&self) -> u64 {
        self.parts.iter().map(|part| part.runs.bytes()).fold(0, u64::saturating_add)
    }

    /// Says how the parts would be read now, and why. Looks at the machine, unless there is too little to read
    /// for that to pay, and reads nothing.
    #[must_use]
    pub fn explain(&self, options: &ReadOptions) -> Explanation {
        let (facts, choice) = self.choose(options);
        let plan = self.cut(&choice);
        let (requests, bytes_read) = plan.map_or((0, 0), |it| (it.requests(), it.bytes_read()));
        Explanation { facts, choice, requests, bytes_read }
    }

    pub(crate) fn checkpoint(&self) -> &'c Checkpoint {
        self.checkpoint
    }

    /// How to read now: by what there is to know of the files and the machine, or without asking if that
    /// would take longer than to read.
    pub(crate) fn choose(&self, options: &ReadOptions) -> (Facts, Choice) {
        let covers = self.parts.iter().map(|part| part.runs.cover());
        let covered = covers.map(|cover| cover.end - cover.start).fold(0, u64::saturating_add);
        if covered > SMALL || options.backend.is_some() || options.direct.is_some() {
            return self.look_and_choose(options);
        }
        let facts = Facts::unknown(1, self.bytes_in_files(), self.is_scattered());
        let choice = policy::choose(&facts, options);
        (facts, choice)
    }

    fn look_and_choose(&self, options: &ReadOptions) -> (Facts, Choice) {
        let mut used = vec![false; self.checkpoint.shards().len()];
        for part in &self.parts {
            if let Some(used) = used.get_mut(part.file) {
                *used = true;
            }
        }
        let mut places = vec![0; used.len()];
        let mut sources = Vec::new();
        for ((place, shard), _) in
            places.iter_mut().zip(self.checkpoint.shards()).zip(used).filter(|(_, used)| *used)
        {
            *place = sources.len();
            sources.extend(shard.file());
        }
        // Of a slice as many bytes as it has, from where it begins: what lies between is not wanted.
        let span = |part: &Planned<'_>| {
            let start = part.runs.cover().start;
            (places.get(part.file).copied().unwrap_or(usize::MAX), start..start + part.runs.bytes())
        };
        let facts = Facts::gather(&sources, self.parts.iter().map(span), self.is_scattered());
        let choice = policy::choose(&facts, options);
        (facts, choice)
    }

    fn is_scattered(&self) -> bool {
        self.parts.iter().any(|part| part.runs.count() > 1)
    }

    /// The requests, their parts in the order of [`Plan::parts`].
    pub(crate) fn cut(&self, choice: &Choice) -> Result<weigh_io::Plan, PlanError> {
        let part = |part: &Planned<'_>| Part {
            file: part.file,
            runs: part.runs.clone(),
            unit: part.unit(),
        };
        weigh_io::Plan::new(self.parts.iter().map(part).collect(), &choice.cut())
    }
}

/// Bytes that are read sooner than the system is asked about them.
const SMALL: u64 = 4 << 20;

/// How a plan would be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// What is known of the files and the machine.
    pub facts: Facts,
    /// What follows from it.
    pub choice: Choice,
    /// Requests that there would be.
    pub requests: usize,
    /// Bytes that they would read.
    pub bytes_read: u64,
}

/// Converts each part as it says.
pub(crate) struct Casts<'p>(pub(crate) &'p [Option<Cast>]);

impl Hook for Casts<'_> {
    fn convert(&self, part: usize, _: u64, from: &[u8], to: &mut [u8]) {
        if let Some(Some(cast)) = self.0.get(part) {
            let converted = cast.convert(from, to);
            debug_assert!(converted.is_ok(), "{converted:?}: the plan cuts at whole units");
        }
    }
}

impl fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("parts", &self.parts).finish_non_exhaustive()
    }
}
