//! The tensors of a checkpoint in memory, made as they would be written.

use std::path::Path;
use std::sync::Mutex;

use weigh_io::{FileSource, Source, arena};

use super::{ConvertOptions, ConvertPlan, Opened};
use crate::torch::gather::{Gathered, Job, Scratch, Sums, lost, unpack};
use crate::work::{self, Meter};
use crate::{Array, Error, Watch};

/// Reads the tensors of a checkpoint of torch or numpy into memory of their own: those that
/// [`ConvertPlan::new`] would write, as it would write them, with their names, in their order.
///
/// Nothing that a file names is imported, nothing that it calls is called.
///
/// # Errors
///
/// Those of [`ConvertPlan::new`] that are not about the output, and of [`ConvertPlan::write`] that are about the input;
/// [`Error::OutOfMemory`].
pub fn load(
    path: impl AsRef<Path>,
    options: &ConvertOptions,
    watch: Watch<'_>,
) -> Result<Vec<(String, Array)>, Error> {
    let (plan, ..) = ConvertPlan::read(path.as_ref(), options)?;
    let sources: Vec<&FileSource> =
        plan.opened.iter().map(Opened::file).collect::<Result<_, _>>()?;
    let gathered: Vec<&Gathered> = plan.drafts.iter().map(|draft| &draft.gathered).collect();
    let sizes: Vec<u64> = gathered.iter().map(|gathered| gathered.bytes()).collect();
    let total = sizes.iter().copied().fold(0, u64::saturating_add);
    let meter = Meter::new(total, watch);
    // What is too large to be inflated in memory is, for a while, in a file that has no name for long.
    let aside = std::env::temp_dir().join("weigh");
    let unpacked = unpack(&sources, &plan.blobs, gathered.iter().copied(), &aside)?;
    let (blocks, _) = arena::allocate(&sizes, true)?;
    let blocks: Vec<Mutex<arena::Block>> = blocks.into_iter().map(Mutex::new).collect();
    // As in a file: one after another.
    let mut begins = Vec::with_capacity(sizes.len());
    let mut end = 0_u64;
    for size in &sizes {
        begins.push(end);
        end = end.saturating_add(*size);
    }
    let sums = Sums::new(plan.blobs.len());
    let tensors = gathered.into_iter().zip(begins.iter().copied()).collect();
    let (blobs, sums) = (plan.blobs.as_slice(), Some(&sums));
    let job = Job { sources: &sources, blobs, unpacked: &unpacked, tensors, sums };
    work::spread(&job.works(), |piece, scratch: &mut Scratch| {
        meter.check()?;
        job.run(piece, scratch, &mut |at, bytes| {
            copy(&blocks, &begins, at, bytes)?;
            meter.add(work::length(bytes))
        })
    })?;
    plan.check_sums(&job, &unpacked, &meter)?;
    sources.iter().try_for_each(|source| source.verify())?;
    let loaded = plan.drafts.iter().zip(blocks).map(|(draft, block)| {
        let block = block.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (dtype, shape, bytes_read) = (draft.dtype, draft.shape.clone(), work::length(&block));
        (draft.name.clone(), Array { dtype, shape, block, bytes_read })
    });
    Ok(loaded.collect())
}

/// Puts bytes where they go: those of one tensor, or of several next to each other.
fn copy(
    blocks: &[Mutex<arena::Block>],
    begins: &[u64],
    at: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    let (mut at, mut rest) = (at, bytes);
    while !rest.is_empty() {
        // The last one that begins there or before: those without bytes begin where the next one does.
        let number =
            begins.partition_point(|begin| *begin <= at).checked_sub(1).ok_or_else(lost)?;
        let block = blocks.get(number).ok_or_else(lost)?;
        let begin = begins.get(number).copied().ok_or_else(lost)?;
        let mut block = work::lock(block);
        let offset = usize::try_from(at.saturating_sub(begin)).map_err(|_| lost())?;
        let place = block.get_mut(offset..).filter(|place| !place.is_empty()).ok_or_else(lost)?;
        let (now, later) = rest.split_at(rest.len().min(place.len()));
        if let Some(place) = place.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        at = at.saturating_add(work::length(now));
        rest = later;
    }
    Ok(())
}
